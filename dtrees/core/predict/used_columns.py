"""The columns that a tree tests, and where they stand in the rows that walk.

Most trees test few columns of a wide table, so a row that walks holds these alone, ascending::

    table          0   1   2   3   4   5
    tested             1       3   4          a row that walks   [ 1   3   4 ]
    slot          -1   0  -1   1   2  -1

Raw rows (`dtrees.core.predict.raw`) and coded ones (`dtrees.core.predict.binned`) are laid out
alike.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtrees.core.model.tree import LEAF, Tree

NOWHERE = -1  # slot of a column that is not in the row
SPARSE_CELLS = 65_536  # cells of the dense block that sparse rows are written into
SPARSE_ROWS = 8, 256  # least and most rows of it


def used_columns(tree: Tree) -> np.ndarray:
    """Columns that the tree tests, int64, ascending."""
    return np.unique(tree.feature[tree.test != LEAF]).astype(np.int64)


def slots_of(columns: np.ndarray, n_columns: int) -> np.ndarray:
    """Where each column of the table stands among `columns`, int32 (n_columns,)."""
    slot = np.full(n_columns, NOWHERE, dtype=np.int32)
    slot[columns] = np.arange(len(columns))
    return slot


def sparse_block(n_used: int, dtype: npt.DTypeLike) -> np.ndarray:
    """Zeros for a few sparse rows at a time (a few, n_used); see `_raw.walk_sparse`."""
    height = np.clip(SPARSE_CELLS // max(1, n_used), *SPARSE_ROWS)
    return np.zeros((int(height), n_used), dtype=dtype)
