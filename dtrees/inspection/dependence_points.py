"""The values of a column that a partial dependence is asked for, as the tests of trees see them.

::

    values of the user's      numbers, dates, categories, missing ──┐
    or those of the trees     thresholds, a number above them, all ─┴──▶ Points ──go_left──▶ sides
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.coding.labels import is_missing, object_array
from dtrees.core.model.tree import ABOVE, IN_SUBSET, Tree
from dtrees.inspection.tree_formatter import TreeFormatter

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

TIMES = ("datetime64[ns]", "timedelta64[ns]")  # units whose numbers are nanoseconds
SECOND, DAY = 10**9, 86_400 * 10**9
LAST_TIME = 2**63 - 2**10  # the last float64 that is a time


@dataclass(frozen=True, eq=False)
class Points:
    """Values of a column as tests see them; a missing value has neither number nor code.

    Attributes
    ----------
    numbers : float64 (n,)
        NaN where there is none; dates and durations in nanoseconds.
    codes : int64 (n,)
        Of categories; 0 where there is none.
    """

    numbers: np.ndarray
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    def with_missing(self) -> Points:
        """The points, and a missing value behind them."""
        return Points(np.append(self.numbers, np.nan), np.append(self.codes, 0))

    def go_left(self, formatter: TreeFormatter, nodes: np.ndarray) -> np.ndarray:
        """Tell which points the tests of nodes send left, bool (n_nodes, n)."""
        tree, tests = formatter.tree, formatter.tree.test[nodes][:, None]
        cuts = tree.threshold[nodes][:, None]
        left = np.where(tests == ABOVE, self.numbers > cuts, self.numbers <= cuts)
        for i in np.flatnonzero(tests == IN_SUBSET).tolist():
            left[i] = formatter.subset(int(nodes[i]))[self.codes] & (self.codes > 0)
        gaps = np.isnan(self.numbers) & (self.codes == 0)
        left[:, gaps] = tree.missing_go_to_left[nodes][:, None]
        return left


def points_asked_for(
    trees: Sequence[Tree], book: CodeBook, column: int, values: Any, resolution: int
) -> tuple[np.ndarray, Points]:
    """The values of a column that are asked for; None: those where answers change."""
    if values is None:
        return _values_of(trees, book, column, resolution)
    is_mixed = column in book.categories and not isinstance(values, np.ndarray)
    shown = object_array(list(values)) if is_mixed else np.asarray(values)
    return shown, _points_of(book, column, shown)


def _values_of(
    trees: Sequence[Tree], book: CodeBook, column: int, resolution: int
) -> tuple[np.ndarray, Points]:
    """Where the answers of trees change, a number above, and all categories."""
    numbers = np.empty(0)
    if book.n_ordered[column] > 0:
        is_bool = book.unit(column) == "bool"
        numbers = np.array([0.0, 1.0]) if is_bool else _steps(trees, book, column)
    if len(numbers) > resolution:
        numbers = numbers[np.linspace(0, len(numbers) - 1, resolution).astype(np.int64)]
    categories = book.categories.get(column)
    if categories is None:
        shown = numbers
        if book.unit(column) in TIMES:
            shown = np.floor(numbers).astype(np.int64).astype(book.unit(column))
            numbers = shown.astype(np.int64).astype(np.float64)
        return shown, Points(numbers, np.zeros(len(numbers), dtype=np.int64))
    first = int(book.n_ordered[column]) + 1
    codes = np.arange(first, first + len(categories))
    shown = np.empty(len(numbers) + len(codes), dtype=object)
    shown[:] = [*numbers.tolist(), *categories.tolist()]
    points = Points(
        np.append(numbers, np.full(len(codes), np.nan)),
        np.append(np.zeros(len(numbers), dtype=np.int64), codes),
    )
    return shown, points


def _steps(trees: Sequence[Tree], book: CodeBook, column: int) -> np.ndarray:
    """Thresholds of a column, and a number above the last; 0 where there is none."""
    found = np.concatenate([tree.threshold[tree.feature == column] for tree in trees])
    found = np.unique(found[np.isfinite(found)])
    if len(found) == 0:
        return np.zeros(1)
    last, reach = float(found[-1]), float(found[-1] - found[0])
    beyond = min(last + (max(reach, abs(last)) / 10 or 1.0), np.finfo(np.float64).max)
    if book.unit(column) in TIMES:
        beyond = _whole_time_after(last, reach)
    elif book.n_ordered[column] == 2 and reach == 0 and last % 0.5 == 0 and abs(last) < 2**52:
        beyond = np.floor(last) + 1.0  # halfway between 0 and 1, 1 and 2, -1 and 1
    return np.append(found, beyond) if beyond > last else found


def _whole_time_after(last: float, reach: float) -> float:
    """The next whole day after a number of nanoseconds; the next second where times are close."""
    is_of_days = reach >= DAY or last % (DAY // 2) == 0  # halfway between two days
    unit = DAY if is_of_days else SECOND
    return float(min((int(last) // unit + 1) * unit, LAST_TIME))


def _points_of(book: CodeBook, column: int, values: np.ndarray) -> Points:
    """Points of values that the user has given; raises ValueError for a category never seen."""
    unit = book.unit(column)
    if unit in TIMES:
        times = values.astype(unit)
        nanoseconds = np.where(np.isnat(times), np.nan, times.astype(np.int64))
        return Points(nanoseconds, np.zeros(len(values), dtype=np.int64))
    known = book.numbers_of_categories(column)
    numbers, codes = np.full(len(values), np.nan), np.zeros(len(values), dtype=np.int64)
    for i, value in enumerate(values.tolist()):
        if is_missing(value):
            continue
        if value in known:
            codes[i] = known[value]
        elif isinstance(value, bool | int | float) and book.n_ordered[column] > 0:
            numbers[i] = value
        else:
            raise ValueError(f"{value!r} was not in column {book.name(column)} at fit.")
    return Points(numbers, codes)
