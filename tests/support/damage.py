"""Damage to the files of a checkpoint: cut, flipped, deleted."""

from bisac.runs.checkpoint.manifest import read_manifest


def damages(path):
    """Ways to spoil a file, by name: each is a function of its content that gives other content, or None to delete."""
    size = path.stat().st_size

    def flip(at):
        def change(content):
            changed = bytearray(content)
            changed[at] ^= 1 << (at % 8)
            return bytes(changed)

        return change

    cuts = {0, 1, size // 2, size - 1}
    flips = sorted({0, 9, size // 3, size // 2, size - 2})
    return {
        **{f"cut to {cut}": lambda content, cut=cut: content[:cut] for cut in sorted(cuts)},
        **{f"bit flipped at {at}": flip(at) for at in flips if at < size},
        "deleted": lambda content: None,
    }


def every_file(folder):
    """The files of the newest checkpoint."""
    newest = read_manifest(max((folder / "checkpoints").glob("step-*")))
    pieces = [newest.path.parent / "replay" / piece.file.name for piece in newest.pieces]
    return [*sorted(newest.path.iterdir()), *pieces]


def spoil(path, change):
    """Apply one of `damages`."""
    content = change(path.read_bytes())
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
