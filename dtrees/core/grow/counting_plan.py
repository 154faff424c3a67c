"""What blocks count of the columns of a growth in rounds, and how much of it there is to send."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dtrees.coding.coded import SPARSE
from dtrees.core.grow.round_spec import RoundSpec
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_counts import LISTED, sizes_of, ways_of, without_intervals
from dtrees.core.stores.blocks.messages import NUMBER_BYTES


class CountingPlan:
    """How each column is counted (`_node_counts`), and what that adds up to.

    Parameters
    ----------
    spec : RoundSpec
    dataset : Dataset
        Of a tree; it tells how many words a cell has.
    all_columns : int32 (n_columns,)
        0, 1, 2, ...: the very array that requests of all columns have.
    n_drawn : int
        Columns of a node.

    Attributes
    ----------
    first : int64 (n_columns + 1,)
        Places of the columns before each one, if each code has a cell.
    """

    def __init__(
        self, spec: RoundSpec, dataset: Dataset, all_columns: np.ndarray, n_drawn: int
    ) -> None:
        self._all_columns = all_columns
        self._n_drawn = n_drawn
        ways = ways_of(dataset, spec.common.resolution)
        self._ways = ways, without_intervals(ways)  # by whether all is asked for by code
        self._sizes = [sizes_of(dataset, each) for each in self._ways]
        places = sizes_of(dataset)
        self.first: np.ndarray = np.concatenate([[0], np.cumsum(places)])
        self._words = int(places[0]) // (int(spec.sample.n_codes[0]) + 1)
        self._with_histogram = all_columns[ways != LISTED]
        self._n_numbers = int(self._sizes[0].sum())
        self._most_numbers = int(np.sort(self._sizes[0])[-n_drawn:].sum())
        self._is_sparse = spec.sample.storage == SPARSE
        self._n_rows = max(1, int(spec.n_rows.max(initial=0)))
        self._n_stored = spec.n_stored * min(3, self._words)  # numbers of sparse columns, of all
        self._most_stored = int(places[self._is_sparse].sum())  # rows, and of all codes

    def searched(self, columns: np.ndarray, by_code: bool) -> tuple[np.ndarray, np.ndarray]:
        """Those of some columns that have a histogram, and how all columns are counted."""
        ways = self._ways[by_code]
        if columns is self._all_columns and not by_code:
            return self._with_histogram, ways
        return columns[ways[columns] != LISTED], ways

    def n_numbers(self, columns: np.ndarray, by_code: bool) -> int:
        """Numbers of the histograms of some columns."""
        if columns is self._all_columns and not by_code:
            return self._n_numbers
        return int(self._sizes[by_code][columns].sum())

    def n_listed(self, n: int, columns: np.ndarray, by_code: bool) -> int:
        """Numbers of those of some columns that are listed, of a node of n rows, about."""
        share = len(columns) / len(self._all_columns)
        stored = min(n / self._n_rows * share * self._n_stored, share * self._most_stored)
        listed = (self._ways[by_code] == LISTED) & ~self._is_sparse
        of_dense = np.minimum(n * self._words, np.diff(self.first))[columns][listed[columns]]
        return int(stored) + int(of_dense.sum())

    def bytes_of_node(self, n: int) -> int:
        """Bytes of the histograms of a node of n rows and one set, about."""
        share = self._n_drawn / len(self._all_columns)
        listed = self.n_listed(n, self._all_columns, False)
        return 8 * self._most_numbers + NUMBER_BYTES * int(share * listed)

    def n_alive(self, n: int, wanted: Mapping[int, np.ndarray]) -> int:
        """Numbers of the codes of some intervals in a node of n rows, at most."""
        found = 0
        for column, alive in wanted.items():
            n_codes = int(np.bitwise_count(alive).sum()) << int(self._ways[0][column])
            found += self._words * min(n, n_codes)
        return found
