"""Experience of one's own, for Python: `from_arrays` makes what `bisac.train(..., demos=...)` learns from."""

from bisac.collect.data_files import read_dataset
from bisac.collect.dataset import Dataset, from_arrays

__all__ = ["Dataset", "from_arrays", "read_dataset"]
