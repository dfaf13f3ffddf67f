"""Crashes and failing disks, at every call that changes a file."""

import errno
import os
import warnings
from contextlib import contextmanager

from probe_envs import Counter
from small_runs import SHORT, SMALL, Crash

import bisac
from bisac.runs.folder import RunFolder


def full_disk():
    """What the operating system says when there is no room."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def broken_disk():
    """What it says when the disk does not answer."""
    return OSError(errno.EIO, os.strerror(errno.EIO))


def forbidden_disk():
    """What it says when somebody else's rules changed."""
    return OSError(errno.EACCES, os.strerror(errno.EACCES))


def never(_nth):
    """A disk that works."""
    return False


CHANGING = ("open", "write", "ftruncate", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir")


@contextmanager
def faulty_disk(folder, fails, fault):
    """Calls that would change something in `folder` raise `fault` where `fails` says so of their number, from 1 on.

    Crash from the n-th call on is what a killed process leaves: it cannot even tidy up. Yields the calls made.
    """
    calls, descriptors, originals = [], set(), {name: getattr(os, name) for name in (*CHANGING, "close")}

    def patched(name):
        def call(target, *arguments, **keywords):
            if isinstance(target, int):
                concerned = target in descriptors
            elif keywords.get("dir_fd") is not None:  # how shutil.rmtree calls
                concerned = keywords["dir_fd"] in descriptors
            else:
                concerned = os.path.abspath(os.fspath(target)).startswith(str(folder))
            if concerned:
                calls.append(name)
                if fails(len(calls)):
                    raise fault
            result = originals[name](target, *arguments, **keywords)
            if name == "open":
                (descriptors.add if concerned else descriptors.discard)(result)
            return result

        return call

    def close(descriptor):  # its number is soon another file's
        descriptors.discard(descriptor)
        originals["close"](descriptor)

    for name in CHANGING:
        setattr(os, name, patched(name))
    os.close = close
    try:
        yield calls
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def counted_calls(out):
    """The calls of a run that goes well."""
    with faulty_disk(out, never, Crash) as calls:
        bisac.train(Counter, out=out, **SMALL, **SHORT)
    return calls


def crash_and_go_on(out, nth):
    """A run that is dead from the n-th call on, then resumed."""
    try:
        with faulty_disk(out, lambda n: n >= nth, Crash):
            bisac.train(Counter, out=out, **SMALL, **SHORT)
    except Crash:
        pass
    if RunFolder(out).config.exists():
        bisac.resume(out, env=Counter, verbose=False)
    else:  # it had not begun
        bisac.train(Counter, out=out, **SMALL, **SHORT)


def fail_and_go_on(out, nth, fault):
    """A run whose n-th call fails, then resumed, for it may have ended; returns whether it did, and what it said."""
    ended = False
    with warnings.catch_warnings(record=True) as caught, faulty_disk(out, lambda n: n == nth, fault):
        warnings.simplefilter("always")
        try:
            bisac.train(Counter, out=out, **SMALL, **SHORT)
        except (bisac.BisacError, OSError):
            ended = True
    if RunFolder(out).config.exists():
        bisac.resume(out, env=Counter, verbose=False)
    else:
        bisac.train(Counter, out=out, **SMALL, **SHORT)
    return ended, [str(warning.message) for warning in caught]
