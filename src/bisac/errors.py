"""The one exception that a user's own mistake raises; the command line prints it as a sentence."""


class BisacError(Exception):
    """Bad input: the message says what is wrong, where, and what to do about it."""
