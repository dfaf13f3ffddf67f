"""Writing a film of an episode as an mp4, so that a film that could not be finished leaves nothing behind."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import imageio.v2 as imageio

from bisac.collect.dispatch import Film
from bisac.errors import BisacError


def write_video(film: Film, folder: Path, seed: int) -> Path:
    """Write a film into `folder` as an mp4, and return its path."""
    path = folder / f"{film.name.replace('/', '-').replace(':', '-')}-seed{seed}.mp4"
    partial = path.with_suffix(".partial.mp4")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writer: Any = imageio.get_writer(partial, fps=film.rate, macro_block_size=2)  # pyright: ignore[reportCallIssue, reportArgumentType]
        with _quiet_fork(), writer as encoder:
            for frame in film.frames:
                encoder.append_data(frame)
        partial.replace(path)
    except OSError as error:
        raise BisacError(f"the video cannot be written to {path}: {error}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return path


@contextmanager
def _quiet_fork() -> Iterator[None]:
    """Silence JAX, which warns of any fork: the encoder's process replaces itself at once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
        yield
