"""The codebook: what every code of every column means.

    exact ordered column     code c is one value:                  low[c] == high[c]
    binned ordered column    code c is the values in (high[c - 1], high[c]]; low[c] is the least seen
    categories               code n_ordered + i is categories[column][i - 1]
    hybrid                   numbers first, then categories

Values of ordered codes stand one behind the other for all columns (``offsets``), so a table of
100,000 sparse columns costs a handful of arrays and no Python object per column.

Thresholds are in the user's units. Between two neighbouring values a, b *present in the node* the
threshold is the midpoint ``a / 2 + b / 2``, as in scikit-learn; where rounding would bring it up to
b, it is a. Codes of values that were not there at fit are those of the nearest known value, the
lower of two equally near, so a test between neighbours at the whole table's midpoint sends them the
same way; deeper in a tree, where the neighbours of a node are further apart, raw values compared
with the threshold are right and codes may not be. Prediction on ordered columns therefore uses raw
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtrees.coding import _encode
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.ordered import (
    CodeStore,
    CutRules,
    OrderedValues,
    code_numbers,
    code_sparse,
    join_values,
    read_sparse,
)
from dtrees.coding.tables import UNITS, Table, read_table
from dtrees.typing import Runner, serial


@dataclass(frozen=True, eq=False)
class CodeBook:
    """Codes and their meaning, for every column of a table."""

    n_columns: int
    feature_names: np.ndarray | None
    n_codes: np.ndarray
    n_ordered: np.ndarray
    offsets: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exact: np.ndarray
    units: np.ndarray
    categories: dict[int, np.ndarray] = field(default_factory=dict)
    unseen: str = "missing"

    @classmethod
    def fit_encode(
        cls,
        X: Any,
        *,
        categorical_features: Any = "from_dtype",
        max_codes: int | None = None,
        unseen: str = "missing",
        seed: int = 0,
        sample_rows: int = 200_000,
        run: Runner = serial,
    ) -> tuple[CodeBook, CodedMatrix]:
        """Learn the codes of a table and code it."""
        table = read_table(X)
        rules = CutRules(max_codes=max_codes, sample_rows=sample_rows, seed=seed)
        if table.sparse is not None:
            coded, part, status = code_sparse(read_sparse(table), rules, run)
            _refuse_infinities(table, status)
            parts = [part]
        else:
            largest = table.n_rows if max_codes is None else min(table.n_rows, max_codes)
            store = CodeStore(table.n_rows, table.n_columns, largest)
            parts = code_numbers(table.numbers, store, rules, run)
            _refuse_infinities(table, store.status)
            coded = store.finish()
        return cls._of(table, coded, parts, {}, unseen), coded

    @classmethod
    def _of(
        cls,
        table: Table,
        coded: CodedMatrix,
        parts: Sequence[OrderedValues],
        categories: dict[int, np.ndarray],
        unseen: str,
    ) -> CodeBook:
        offsets, low, high, exact = join_values(parts, table.n_columns)
        return cls(
            n_columns=table.n_columns,
            feature_names=table.names,
            n_codes=coded.n_codes,
            n_ordered=coded.n_ordered,
            offsets=offsets,
            low=low,
            high=high,
            exact=exact,
            units=table.units,
            categories=categories,
            unseen=unseen,
        )

    def thresholds(
        self, column: np.ndarray, code_left: np.ndarray, code_right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Thresholds between neighbouring codes of nodes, and the last code that goes left.

        Parameters
        ----------
        column : int (m,)
        code_left, code_right : int (m,)
            Greatest ordered code of the left side and least of the right side that are present
            in the node: ``1 <= code_left < code_right <= n_ordered``.

        Returns
        -------
        threshold : float64 (m,)
        last_left_code : uint32 (m,)
            The greatest code whose values are all at most the threshold.
        """
        column = np.asarray(column, dtype=np.int64)
        base = self.offsets[column] - 1
        left = base + np.asarray(code_left, dtype=np.int64)
        right = base + np.asarray(code_right, dtype=np.int64)
        below = self.high[left].astype(np.float64)
        above = self.low[right].astype(np.float64)
        middle = midpoints(below, above)
        # the greatest place in left .. right - 1 with high <= middle
        first, last = left.copy(), right - 1
        while np.any(first < last):
            half = (first + last + 1) >> 1
            fits = self.high[half] <= middle
            first = np.where(fits, half, first)
            last = np.where(fits, last, half - 1)
        exact = self.exact[column]
        following = np.minimum(first + 1, right - 1)
        nearer = ~exact & (self.high[following] - middle < middle - self.high[first])
        chosen = np.where(nearer, following, first)
        threshold = np.where(exact, middle, self.high[chosen])
        return threshold, (chosen - base).astype(np.uint32)

    def name(self, column: int) -> str:
        """How messages call a column."""
        names = self.feature_names
        return f"{names[column]!r}" if names is not None else f"{column}"

    def unit(self, column: int) -> str:
        """Unit of a column's ordered values, one of `UNITS`."""
        return UNITS[self.units[column]]


def midpoints(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Halfway between values a < b, float64; a where that is not below b."""
    middle = below / 2 + above / 2
    return np.where(middle < above, middle, below)


def _refuse_infinities(table: Table, status: np.ndarray) -> None:
    """Raise in scikit-learn's words when a column holds an infinity."""
    infinite = np.flatnonzero(status == _encode.STATUS_INFINITE)
    if len(infinite):
        raise ValueError(
            "Input X contains infinity or a value too large for dtype('float64'). "
            f"(column {table.name(int(infinite[0]))}) Replace infinities by a large number, or by "
            "NaN, which counts as missing."
        )
