"""The one exception that a user's own mistake raises; the command line prints it as a sentence."""

import difflib
from collections.abc import Iterable

LONGEST = 300
"""Characters of another exception's text that a sentence of ours repeats."""


class BisacError(Exception):
    """Bad input: the message says what is wrong, where, and what to do about it."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a sentence about a name that is not known: those that are near, or what else to say."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else f"{otherwise}."


def reason(error: BaseException) -> str:
    """Return what an exception says, in short: some repeat all that they could not read."""
    text = next(iter(str(error).splitlines()), "")
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return text.rstrip(".") if isinstance(error, BisacError) else f"{type(error).__name__}: {text}"
