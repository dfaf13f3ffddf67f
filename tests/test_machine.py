import os
import subprocess
import sys
import zlib
from pathlib import Path

import jax
import pytest

from bisac import machine


@pytest.fixture
def no_cache_chosen(tmp_path, monkeypatch):
    """As a user begins: with a home, and JAX's settings untouched."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)


def test_compiled_programs_are_kept_by_processor_and_number_of_cores(no_cache_chosen, monkeypatch):
    machine.keep_compiled_programs()
    folder = Path(jax.config.jax_compilation_cache_dir)
    assert folder.parent == no_cache_chosen / "bisac"
    assert folder.is_dir()
    others = set()
    for name, value in (("cores", lambda: 77), ("_processor", lambda: "another")):
        with monkeypatch.context() as patch:
            patch.setattr(machine, name, value)
            others.add(machine._cache_folder())
    assert len({folder, *others}) == 3


def test_a_choice_already_made_stands(no_cache_chosen):
    jax.config.update("jax_compilation_cache_dir", str(no_cache_chosen / "mine"))
    machine.keep_compiled_programs()
    assert jax.config.jax_compilation_cache_dir == str(no_cache_chosen / "mine")


def test_without_a_place_to_write_nothing_is_kept(no_cache_chosen, monkeypatch):
    (no_cache_chosen / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(no_cache_chosen / "file"))
    machine.keep_compiled_programs()
    assert jax.config.jax_compilation_cache_dir is None


def test_what_was_half_written_is_dropped(no_cache_chosen):
    folder = machine._cache_folder()
    folder.mkdir(parents=True)
    whole = zlib.compress(os.urandom(1000))
    for name, content in (("whole", whole), ("half", whole[:500]), ("empty", b""), ("other", b"not zlib's")):
        (folder / f"{name}-cache").write_bytes(content)
    machine.keep_compiled_programs()
    assert {path.name for path in folder.iterdir()} == {"whole-cache", "other-cache"}


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 3, 5}, raising=False)
    assert machine.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # macOS and Windows have none
    assert machine.cores() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.cores() == 1


FAULTS = """
import ctypes, resource
from bisac.machine import keep_freed_memory
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
keep_freed_memory()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(ctypes.c_size_t(16 * 2**20))
    ctypes.memset(block, 1, 16 * 2**20)
    libc.free(ctypes.c_void_p(block))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults)
"""


def test_a_workspace_freed_and_allocated_again_costs_no_page_faults():
    result = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 100  # of 4,096 pages
