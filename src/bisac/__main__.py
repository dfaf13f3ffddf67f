"""`python -m bisac`, and the `bisac` command."""

import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    sys.path.append(os.getcwd())  # an environment of the user's own may lie here; last, so that it hides nothing

    from bisac.cli import run  # after the interpreter is up: --help should not wait for more than it needs

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
