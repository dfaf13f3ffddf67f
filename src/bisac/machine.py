"""The machine and this process on it: how many cores there are, and what makes the same computation faster.

Nothing here changes a number that is computed, or knows what is.
"""

import contextlib
import ctypes
import hashlib
import os
import platform
import zlib
from importlib.metadata import version
from pathlib import Path

import jax

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LARGEST_MMAP_THRESHOLD = 32 * 2**20


def own_version() -> str:
    """Return the version of bisac, as files name the one that wrote them."""
    return version("bisac")


def tune_process() -> None:
    """Do what a process that trains should begin with."""
    keep_freed_memory()
    keep_compiled_programs()


def offer_devices(runs: int) -> None:
    """Let JAX see as many processors as there are runs to step side by side, but no more than cores.

    It must be asked before JAX computes anything; later, the runs take turns on one. Accelerators are as many as they
    are. Set by hand, XLA_FLAGS=--xla_force_host_platform_device_count comes first.
    """
    if runs > 1 and "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", min(runs, cores()))


def keep_freed_memory() -> None:
    """Let glibc keep what is freed.

    Each compiled step allocates its workspace anew. Given back to the system in between, it costs a page fault for
    every 4 KiB at each step: up to a fifth of SAC's update.
    """
    if platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs on disk, so that only the first run waits for them.

    JAX's own settings come first: JAX_COMPILATION_CACHE_DIR moves them, JAX_ENABLE_COMPILATION_CACHE=false
    does without.
    """
    if jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return
    try:
        folder = _cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        _drop_truncated(folder)
    except (OSError, RuntimeError):  # no home, or one that cannot be written: do without
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def _drop_truncated(folder: Path) -> None:
    """Delete what a killed process or a full disk left half written: JAX would warn of it for ever."""
    for entry in folder.glob("*-cache"):
        content = entry.read_bytes()
        stream = zlib.decompressobj()
        with contextlib.suppress(zlib.error):  # compressed in another way
            stream.decompress(content)
            if not stream.eof:
                entry.unlink(missing_ok=True)


def _cache_folder() -> Path:
    """Return a folder for this processor and number of cores: a program compiled for others may be slow or fail."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kind = hashlib.sha256(_processor().encode()).hexdigest()[:12]
    return base / "bisac" / f"{kind}-{cores()}"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    """Return the processor's model and features, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
