"""The cells of a raw table that trees look at.

All trees of a call look at the same columns. What has to be found out about a column before rows
walk is found out once, however many trees test it: which numbers it holds, and for labels, which
code and which number each *distinct* label is (`CodeBook.read_labels`)::

    column of labels     rows     [ 2  0  0 -1  2 ]       numbers of the labels, -1 missing
                         labels   [ red  7.5  blue ]
                         codes    [  4    3    2  | 0 ]   by label, and missing at the end
                         numbers  [ nan  7.5  nan | nan ]

Most trees test few columns of a wide table, so a row that walks holds these alone, ascending::

    table          0   1   2   3   4   5
    tested             1       3   4          a row that walks   [ 1   3   4 ]
    slot          -1   0  -1   1   2  -1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dtrees._forks import cached_property
from dtrees.coding.tables import Table
from dtrees.core.model.tree import LEAF, Tree

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from dtrees.coding import CodeBook

NOWHERE = -1  # slot of a column that is not in the row


def used_columns(tree: Tree) -> np.ndarray:
    """Columns that the tree tests, int64, ascending."""
    return np.unique(tree.feature[tree.test != LEAF]).astype(np.int64)


def slots_of(columns: np.ndarray, n_columns: int) -> np.ndarray:
    """Where each column of the table stands among `columns`, int32 (n_columns,)."""
    slot = np.full(n_columns, NOWHERE, dtype=np.int32)
    slot[columns] = np.arange(len(columns))
    return slot


@dataclass(frozen=True, eq=False)
class LabelCells:
    """A column of labels.

    Attributes
    ----------
    column : int
    rows : integers (n_rows,)
        Place of each row's label; -1 is missing.
    codes : uint32 (n_labels + 1,)
        Of each label, as `CodeBook.read_labels`; 0 at the end, where -1 leads.
    numbers : float64 (n_labels + 1,)
        nan for what is no number, and at the end.
    """

    column: int
    rows: np.ndarray
    codes: np.ndarray
    numbers: np.ndarray


def parts_of(matrix: csc_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a matrix by columns: int64 ``indptr``, int32 rows, and values of 32 or 64 bits."""
    numbers = np.result_type(matrix.dtype, np.float32)  # as in numpy: of 16 bits, float32
    return (
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data.astype(numbers, copy=False),
    )


class RawCells:
    """A table as its codebook reads it, for all trees of a call.

    Parameters
    ----------
    book : CodeBook
    table : Table
        What ``book.check`` returned.
    """

    def __init__(self, book: CodeBook, table: Table) -> None:
        self.book = book
        self.table = table
        self._labels: dict[int, LabelCells] = {}

    @cached_property
    def sparse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Those of a sparse table."""
        assert self.table.sparse is not None
        return parts_of(self.table.sparse)

    def numbers(self, slot: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Blocks of numbers that hold wanted columns.

        Parameters
        ----------
        slot : int (n_columns,)
            -1 for columns that are not wanted.

        Yields
        ------
        values : number (n_rows, k)
        inside : int64 (n_wanted,)
            Wanted columns of the block.
        columns : int64 (n_wanted,)
            The same in the table.
        """
        for block in self.table.numbers:
            inside = np.flatnonzero(slot[block.columns] != NOWHERE)
            if len(inside):
                yield block.values, inside, block.columns[inside]

    def labels(self, slot: np.ndarray) -> Iterator[LabelCells]:
        """Wanted columns of labels; each is read when it is first asked for.

        Raises
        ------
        UnseenCategoryError
            With ``book.handle_unknown == "error"``.
        """
        for column in self.table.labels:
            j = column.column
            if slot[j] == NOWHERE:
                continue
            found = self._labels.get(j)
            if found is None:
                codes, numbers = self.book.read_labels(column, self.table.name(j))
                found = self._labels[j] = LabelCells(
                    j, column.codes, np.append(codes, np.uint32(0)), np.append(numbers, np.nan)
                )
            yield found
