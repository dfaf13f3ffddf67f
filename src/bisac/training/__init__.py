"""Training: the loop, evaluation, and everything that a run leaves on disk."""
