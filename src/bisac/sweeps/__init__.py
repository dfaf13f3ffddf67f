"""Many runs: what to train, what was trained, and where."""
