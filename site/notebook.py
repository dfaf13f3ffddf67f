"""Execute examples/figures.ipynb from top to bottom and keep its outputs: python site/notebook.py [NOTEBOOK]."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOK = Path(__file__).parents[1] / "examples" / "figures.ipynb"
LARGEST = 300_000
"""Bytes that the notebook may have with its outputs: it is committed."""


def execute(path: Path) -> None:
    """Execute a notebook in its folder, and write it anew; what fails leaves it as it was."""
    notebook = nbformat.read(path, as_version=4)
    try:
        NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(path.parent)}}).execute()
    except CellExecutionError as error:
        sys.exit(f"{path}: a cell failed.\n{error}")
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when each began and ended: news in every commit
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    text = nbformat.writes(notebook) + "\n"
    if len(text) > LARGEST:
        sys.exit(f"{path} would have {len(text):,} bytes with its outputs; at most {LARGEST:,} are kept.")
    path.write_text(text)
    sys.stdout.write(f"{path.name}: {len(text):,} bytes\n")


if __name__ == "__main__":
    execute(Path(sys.argv[1]) if len(sys.argv) > 1 else NOTEBOOK)
