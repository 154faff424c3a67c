"""Splits that are drawn once, and their training sides as sets of rows.

A splitter is asked once, and what it gives is kept in short. The training side of most splits is
what the test side leaves over; it is found again when it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

Split = tuple[np.ndarray, np.ndarray]


class DrawnSplits(Sequence[Split]):
    """Splits that have been drawn, as scikit-learn's functions take them: one after the other."""

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """The splits."""
        return (self[number] for number in range(len(self)))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits."""
        return len(self)


def drawn(splits: Iterable[Any], n_rows: int) -> DrawnSplits:
    """What a splitter gives, drawn once."""
    return splits if isinstance(splits, DrawnSplits) else Splits(splits, n_rows)


class FoldSplits(DrawnSplits):
    """The splits of folds, whose sides are found when somebody looks at them, in O(n_rows).

    `fold`, uint16 (n_rows,), is all that is kept.
    """

    def __init__(self, fold: np.ndarray, n_folds: int) -> None:
        self._fold, self._n_folds = fold, n_folds

    def __len__(self) -> int:
        return self._n_folds

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[i] for i in range(len(self))[number]]
        is_test = self._fold == range(len(self))[number]
        return np.flatnonzero(~is_test), np.flatnonzero(is_test)


class Splits(DrawnSplits):
    """Splits that are drawn once; what a test side leaves over is not kept, but found again.

    Parts of the rows take 8 bytes per row in all, also where they are single rows (leave-one-out).
    The training sides of those are as many numbers as the square of the rows. O(n_rows) for each
    side that is looked at.
    """

    def __init__(self, splits: Iterable[Any], n_rows: int) -> None:
        self._n_rows = n_rows
        self._kept = [self._short(split) for split in splits]

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[i] for i in range(len(self))[number]]
        kept = self._kept[number]
        return (self._others(kept), kept) if isinstance(kept, np.ndarray) else kept

    def test(self, number: int) -> Any:
        """The test side of a split; O(1)."""
        kept = self._kept[number]
        return kept if isinstance(kept, np.ndarray) else kept[1]

    def _short(self, split: Any) -> Any:
        """The test side alone, if the training side are all other rows in their order."""
        if not isinstance(split, tuple) or len(split) != 2:
            return split
        train, test = split
        for side in split:
            if not isinstance(side, np.ndarray) or side.dtype != np.intp or side.ndim != 1:
                return split
        if (
            len(train) + len(test) != self._n_rows
            or (test < 0).any()
            or (test >= self._n_rows).any()
        ):
            return split
        return test if np.array_equal(self._others(test), train) else split

    def _others(self, test: np.ndarray) -> np.ndarray:
        is_other = np.ones(self._n_rows, dtype=bool)
        is_other[test] = False
        return np.flatnonzero(is_other)


def rows_of_side(splits: Sequence[Split], number: int, side: str) -> Any:
    """One side of a split, "train" or "test", without the other one where that has to be found."""
    if side == "test" and isinstance(splits, Splits):
        return splits.test(number)
    return splits[number][("train", "test").index(side)]


class TrainingRows:
    """The training sides of splits as sets of rows, made one at a time; `final` is one set more."""

    def __init__(
        self, splits: Sequence[Split], n_rows: int, final: np.ndarray | None = None
    ) -> None:
        self._splits, self._n_rows, self._final = splits, n_rows, final

    def __len__(self) -> int:
        return len(self._splits) + (self._final is not None)

    def __getitem__(self, number: int) -> np.ndarray:
        if number == len(self._splits) and self._final is not None:
            return self._final
        rows = np.zeros(self._n_rows, dtype=bool)
        train = self._splits[number][0]
        if len(train) > 0:
            rows[train] = True
        return rows
