"""Files are written whole or not at all, and a folder is one process's at a time."""

import errno
import os
import signal
import subprocess
import sys
import threading

import pytest

from bisac.errors import BisacError
from bisac.storage import exclusive, sync_folder, write_atomic


def test_full_disk_leaves_the_old_file_and_names_it(tmp_path, monkeypatch):
    path = tmp_path / "policy.safetensors"
    write_atomic(path, b"old")

    def full(_descriptor, _content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomic(path, b"new")
    monkeypatch.undo()
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


HOLD = """
import sys
from pathlib import Path
from bisac.storage import exclusive
with exclusive(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder until it is ended."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with process:
        yield process
        process.kill()


@pytest.mark.parametrize("end", ["close", "kill"])
def test_folder_is_one_process_until_that_ends(holder, end, tmp_path):
    with pytest.raises(BisacError, match="busy"), exclusive(tmp_path, "busy"):
        pass
    if end == "kill":
        holder.send_signal(signal.SIGKILL)
    else:
        holder.stdin.close()
    holder.wait(10)
    with exclusive(tmp_path, "busy"):
        pass


def test_folder_is_held_once_within_a_process_too(tmp_path):
    with exclusive(tmp_path, "busy"), pytest.raises(BisacError, match="busy"), exclusive(tmp_path, "busy"):
        pass
    with exclusive(tmp_path / "made" / "for it", "busy"):
        pass


def test_folder_is_set_free_from_another_thread(tmp_path):
    held = exclusive(tmp_path, "busy")
    held.__enter__()
    thread = threading.Thread(target=held.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    with exclusive(tmp_path, "busy"):
        pass


def test_folder_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BisacError, match=r"file/run cannot be written or locked: Not a directory\.$"):
        exclusive(tmp_path / "file" / "run", "busy").__enter__()


def test_file_system_without_locks_is_one_sentence(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def missing(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", missing)
    with pytest.raises(BisacError, match=r"cannot be written or locked: Function not implemented\.$"):
        exclusive(tmp_path, "busy").__enter__()


def test_nothing_but_windows_lacks_the_sync_of_folders(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    sync_folder(tmp_path)
    assert len(synced) == 1
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setattr(os, "open", None)
    sync_folder(tmp_path)
    assert len(synced) == 1
