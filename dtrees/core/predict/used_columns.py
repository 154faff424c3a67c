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

from dtrees.core.model.tree import LEAF, Tree

NOWHERE = -1  # slot of a column that is not in the row


def used_columns(tree: Tree) -> np.ndarray:
    """Columns that the tree tests, int64, ascending."""
    return np.unique(tree.feature[tree.test != LEAF]).astype(np.int64)


def slots_of(columns: np.ndarray, n_columns: int) -> np.ndarray:
    """Where each column of the table stands among `columns`, int32 (n_columns,)."""
    slot = np.full(n_columns, NOWHERE, dtype=np.int32)
    slot[columns] = np.arange(len(columns))
    return slot
