"""The one exception that a user's own mistake raises; the command line prints it as a sentence."""

import difflib
from collections.abc import Iterable


class BisacError(Exception):
    """Bad input: the message says what is wrong, where, and what to do about it."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a sentence about a name that is not known: those that are near, or what else to say."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else f"{otherwise}."
