"""Coded rows to leaves.

The rows that a tree is grown from are there as codes, and need not be read again to walk down it. A
code walks as the number that it is, and missing (code 0) as nan: ``value <= Tree.threshold`` is
``code <= Tree.code`` for every row of the fit (`CodeBook.thresholds`)::

    value     -2.0   0.5   1.25   7.0   nan           value <= 1.25
    code         1     2      3     4     0 -> nan    code  <= 3

Used columns of a few thousand rows at a time are brought together, so rows that are not asked for
cost nothing. Only sparse columns are walked by all rows, as storage by column has no quick way to a
row.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from dtrees.coding.coded import SPARSE, CodedMatrix
from dtrees.core._predict import Walk, walk_mixed, walk_numbers, walk_sparse
from dtrees.core.model import Tree
from dtrees.core.used_columns import places_of, sparse_block, used_columns

BLOCK_ROWS = 8_192  # rows of used columns that are brought together at a time
FLOAT_CODES = 2**24  # largest code that float32 holds exactly


class CodedRows:
    """A coded table, made ready to walk down the trees that are grown from it.

    Parameters
    ----------
    coded : CodedMatrix
        Not copied; of a sparse table, the codes are held once more, as numbers, once rows walk.
    """

    def __init__(self, coded: CodedMatrix) -> None:
        self._coded = coded
        self._has_categories = coded.n_ordered < coded.n_codes
        exact = coded.n_codes.max(initial=0) < FLOAT_CODES
        self._dtype = np.dtype(np.float32 if exact else np.float64)
        is_sparse = coded.n_columns > 0 and bool((coded.storage == SPARSE).all())
        self._is_sparse = is_sparse and not self._has_categories.any()

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows.

        Parameters
        ----------
        tree : Tree
            Grown from this table.
        rows : int64 (n,)
            Row numbers.

        Returns
        -------
        intp (n,)
            Node numbers.

        Notes
        -----
        O(n x (used columns + depth)), and O(all stored codes of used columns) for sparse tables.
        Any thread may ask.
        """
        used = used_columns(tree)
        if self._is_sparse:
            return self._sparse_leaves(tree, used)[rows]
        leaves = np.empty(len(rows), dtype=np.intp)
        numbers = used[self._coded.n_ordered[used] > 0]
        codes = used[self._has_categories[used]]
        walk = self._walk(tree, tree.code.astype(np.float64), numbers, codes)
        for first in range(0, len(rows), BLOCK_ROWS):
            some = rows[first : first + BLOCK_ROWS]
            if walk.with_rules:
                block = np.empty((len(some), len(numbers)))
            else:
                block = np.empty((len(numbers), len(some)), dtype=self._dtype).T
            for place, column in enumerate(numbers.tolist()):
                block[:, place] = self._coded.column(column).take(some)
            block[block == 0] = np.nan
            found = leaves[first : first + BLOCK_ROWS]
            if walk.with_rules:
                labels = np.empty((len(some), len(codes)), dtype=np.uint32)
                for place, column in enumerate(codes.tolist()):
                    labels[:, place] = self._coded.column(column).take(some)
                walk_mixed(walk, block, labels, found)
            else:
                walk_numbers(walk, block, found)
        return leaves

    def _walk(
        self, tree: Tree, threshold: np.ndarray, numbers: np.ndarray, codes: np.ndarray
    ) -> Walk:
        """The tree, packed for codes in the place of numbers."""
        coded = self._coded
        return Walk(
            replace(tree, threshold=threshold),
            places_of(numbers, coded.n_columns),
            places_of(codes, coded.n_columns),
            coded.n_codes,
            coded.n_ordered,
        )

    @cached_property
    def _stored(self) -> csc_array:
        """Codes less the fill code of their column, which is then zero."""
        coded = self._coded
        fill = coded.fill_code[coded.slot].astype(np.int64)
        slots = coded.slot
        assert (slots == np.arange(coded.n_columns)).all()
        codes = coded.sparse_codes.astype(self._dtype)
        codes -= np.repeat(fill, np.diff(coded.sparse_indptr)).astype(self._dtype)
        codes[coded.sparse_codes == 0] = np.nan
        parts = (codes, coded.sparse_rows, coded.sparse_indptr)
        return csc_array(parts, shape=(coded.n_rows, coded.n_columns))

    def _sparse_leaves(self, tree: Tree, used: np.ndarray) -> np.ndarray:
        """Leaf of every row of a sparse table; see `dtrees.core._predict.walk_sparse`."""
        fill = self._coded.fill_code[np.maximum(tree.feature, 0)].astype(np.float64)
        walk = self._walk(tree, tree.code - fill, used, used[:0])
        matrix = self._stored[:, used]
        leaves = np.empty(self._coded.n_rows, dtype=np.intp)
        walk_sparse(
            walk,
            matrix.indptr.astype(np.int64, copy=False),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data,
            sparse_block(len(used), self._dtype),
            0,
            leaves,
        )
        return leaves
