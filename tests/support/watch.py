"""What a stranger's file makes Python do, by its audit hooks: unpickling, other programs, sockets, foreign code."""

import sys
from contextlib import contextmanager

FOREIGN = "foreign_code"
"""A word that every hostile file's program has in it."""
NEVER = (
    "ctypes.dlopen", "os.exec", "os.fork", "os.posix_spawn", "os.system", "pickle.find_class", "socket.bind",
    "socket.connect", "subprocess.Popen",
)  # fmt: skip

_seen: list[str] | None = None


def _hook(event, arguments):
    if _seen is None:
        return
    if event == "ctypes.dlopen" and arguments == (None,):  # our own process, whose memory is set up so
        return
    if event in NEVER or (event in ("exec", "import") and FOREIGN in _words(arguments[0])):
        _seen.append(f"{event}: {arguments}")


def _words(code):
    return code if isinstance(code, str) else repr((code.co_names, code.co_consts))


sys.addaudithook(_hook)  # it stays for good: Python takes none away


@contextmanager
def watched():
    """Gives the list of what happens inside that reading a file must never do."""
    global _seen
    _seen = seen = []
    try:
        yield seen
    finally:
        _seen = None
