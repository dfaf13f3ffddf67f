"""Files are written whole or not at all."""

import errno
import os

import pytest

from bisac.storage import write_atomic


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
