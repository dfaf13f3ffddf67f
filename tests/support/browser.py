"""The browser in which pages are tested; run as a script, it says what to install where there is none."""

import shutil
import sys
from pathlib import Path

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APPLICATIONS = ("Chromium", "Google Chrome")
ADVICE = "no browser found: install Chromium or Chrome (Debian and Ubuntu: apt-get install chromium)."


def find_browser() -> str | None:
    """The command of an installed Chromium or Chrome."""
    macos = (f"/Applications/{name}.app/Contents/MacOS/{name}" for name in APPLICATIONS)
    return next((path for name in COMMANDS if (path := shutil.which(name))), None) or next(
        (path for path in macos if Path(path).exists()), None
    )


if __name__ == "__main__":
    sys.exit(None if find_browser() else ADVICE)
