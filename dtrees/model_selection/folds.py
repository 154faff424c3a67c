"""Folds: how rows are cut into them, and what a cross-validation says of each.

k-fold cross-validation [CV 1] cuts the rows into k parts. Model i, a tree or a forest, is grown on
all parts but the i-th and scored on the i-th::

    rows     0 .......................... n
    model 1  [test ][train ................]
    model 2  [train][test ][train .........]
    model k  [train ................][test ]

`dtrees.model_selection.validation` grows the k models, all of them together.

A splitter of scikit-learn shuffles the numbers of all rows, and hands out two lists of them for
each split. `HashKFold` asks a function of (seed, row id) instead. So a row has the same fold
however the table is cut into partitions, and one small number per row is kept::

    row id      0  1  2  3  4  5  6  7      draw of (seed, row id), brought to 0 .. k - 1
    fold        2  0  0  1  2  1  1  0      ──▶ test side i: rows of fold i, when they are asked for

Of groups it asks a function of (seed, key of the label), the key being a number that follows from
the label alone (`dtrees.coding.group_keys`).

A splitter is asked once, and what it gives is kept in short. The training side of most splits is
what the test side leaves over; it is found again when it is looked at.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from dtrees._random import FOLDS, keyed_draws, keyed_uint64
from dtrees._warnings import warn
from dtrees.coding.group_keys import group_keys
from dtrees.coding.target import exact_bincount
from dtrees.constraints import (
    ARRAY,
    RANDOM_STATE,
    ROWS,
    Boolean,
    Constraints,
    IntegerIn,
    check_values,
    checked,
)
from dtrees.core.membership.resampling import CellsElsewhere, Lacking, Resampling, of_sets
from dtrees.parallel import (
    FitStatistics,
    LazyColumn,
    PartitionedTable,
    RowColumns,
    admitted,
    check_lengths,
    is_lazy,
    known_length,
    lazy_keys,
)
from dtrees.parallel.tasks import identity, raise_copy

if TYPE_CHECKING:
    from dtrees.estimators.training_sets import TrainingTable


@dataclass(frozen=True)
class ModelSize:
    """What is counted in a model."""

    trees: int  # 1 for a tree
    depth: int  # of the deepest leaf of all trees
    n_leaves: int  # of all trees


def size_of(model: Any) -> ModelSize:
    """Count the trees and leaves of a fitted tree or forest. O(nodes)."""
    trees = model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)
    return ModelSize(
        trees=len(trees),
        depth=max(tree.max_depth for tree in trees),
        n_leaves=sum(tree.n_leaves for tree in trees),
    )


Split = tuple[np.ndarray, np.ndarray]
TRAIN, TEST = 0, 1  # sides of a split
MOST_FOLDS = 2**16


class DrawnSplits(Sequence[Split]):
    """Splits that have been drawn, as scikit-learn's functions take them: one after the other."""

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """The splits."""
        return (self[number] for number in range(len(self)))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits."""
        return len(self)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[i] for i in range(len(self))[number]]
        return self.side(number, TRAIN), self.side(number, TEST)

    def side(self, number: int, side: int) -> Any:
        """One side of a split, without the other one."""
        raise NotImplementedError


def side_of(splits: Sequence[Split], number: int, side: int) -> Any:
    """One side of a split, and no other one is made where that can be had."""
    if isinstance(splits, DrawnSplits):
        return splits.side(number, side)
    return splits[number][side]


@dataclass(frozen=True, eq=False)
class FoldCounts:
    """How many rows folds have, and which is the first of them; of folds that have rows."""

    numbers: np.ndarray  # ascending
    sizes: np.ndarray  # int64, as the next one
    firsts: np.ndarray

    @classmethod
    def of(cls, fold: np.ndarray, first_row: int = 0) -> FoldCounts:
        """Those of some rows; the number of the first one is given."""
        numbers, firsts, sizes = np.unique(fold, return_index=True, return_counts=True)
        return cls(numbers, sizes, firsts + first_row)

    @classmethod
    def joined(cls, parts: Sequence[FoldCounts]) -> FoldCounts:
        """Those of the rows of all parts, one behind the other."""
        every = np.concatenate([part.numbers for part in parts])
        numbers, place, which = np.unique(every, return_index=True, return_inverse=True)
        sizes = exact_bincount(which, np.concatenate([part.sizes for part in parts]), len(numbers))
        return cls(numbers, sizes, np.concatenate([part.firsts for part in parts])[place])


class FoldSplits(DrawnSplits):
    """The splits of folds, whose sides are found when somebody looks at them, in O(n_rows).

    `fold`, uint16 (n_rows,), is all that is kept. It may be a `LazyColumn`, of which `counts` are
    known.
    """

    def __init__(
        self, fold: np.ndarray | LazyColumn, n_folds: int, counts: FoldCounts | None = None
    ) -> None:
        self.fold, self._n_folds, self._counts = fold, n_folds, counts

    def __len__(self) -> int:
        return self._n_folds

    @property
    def counts(self) -> FoldCounts:
        """How many rows each has, and which is the first of them."""
        if self._counts is None:
            self._counts = FoldCounts.of(np.asarray(self.fold))
        return self._counts

    def sets(self, has_last: bool, X: Any, stats: FitStatistics) -> Resampling:
        """The training sides, and at last all rows of the table, as `of_sets` has them."""
        counts = self.counts
        order = np.argsort(counts.firsts)
        number = np.zeros(MOST_FOLDS, dtype=np.uint16)  # of the cell, by fold
        number[counts.numbers[order]] = np.arange(len(order))
        lacking = np.full(len(self) + has_last, -1, dtype=np.int32)
        held_out = counts.numbers[counts.numbers < len(self)]
        lacking[held_out] = number[held_out]
        cells: np.ndarray | CellsElsewhere
        if isinstance(self.fold, LazyColumn):
            rows = RowColumns.of(X, {"fold": self.fold}, stats)
            numbered = partial(_cells_of_part, number), "cells-of-part"
            column = rows.column(*numbered, stats)
            cells = CellsElsewhere(counts.sizes[order], partial(rows.each, *numbered), column)
        else:
            cells = number[self.fold]
        return Resampling(cells, Lacking(lacking, (len(lacking), len(order))))

    def side(self, number: int, side: int) -> np.ndarray:
        """One side of a split, row numbers in ascending order."""
        return np.flatnonzero(self.has(number, side))

    def has(self, number: int, side: int) -> np.ndarray:
        """Which rows a side has, bool (n_rows,)."""
        number, fold = range(len(self))[number], np.asarray(self.fold)
        return fold == number if side == TEST else fold != number


def _cells_of_part(number: np.ndarray, fold: np.ndarray, first_row: int) -> np.ndarray:
    found: np.ndarray = number[fold]
    return found


def _counted(X: Any, fold: LazyColumn, stats: FitStatistics) -> FoldCounts:
    """How many rows of a table each fold has."""
    rows = RowColumns.of(X, {"fold": fold}, stats)
    return rows.asked(FoldCounts.of, lambda ask: FoldCounts.joined(ask(identity)), stats)


class Splits(DrawnSplits):
    """Splits that are drawn once; what a test side leaves over is not kept, but found again.

    Test sides that share no rows are one number per row (`FoldSplits`); others take 8 bytes for
    each of their rows. O(n_rows) for each side that is looked at.
    """

    def __init__(self, splits: Iterable[Any], n_rows: int) -> None:
        self._n_rows, self._n_splits = n_rows, 0
        self._fold = np.full(n_rows, MOST_FOLDS - 1, dtype=np.uint16)
        self._others: dict[int, Any] = {}  # what is not among the folds: test sides, odd splits
        for number, split in enumerate(splits):
            self._n_splits += 1
            if not self._are_parts(split):
                self._others[number] = split
                continue
            test = split[TEST]
            is_apart = number < MOST_FOLDS - 1 and (self._fold[test] == MOST_FOLDS - 1).all()
            if is_apart and _ascend(test):
                self._fold[test] = number
            else:
                self._others[number] = test

    def in_short(self) -> DrawnSplits:
        """The same, as folds, where that is all."""
        return FoldSplits(self._fold, len(self)) if len(self) > len(self._others) == 0 else self

    def __len__(self) -> int:
        return self._n_splits

    def side(self, number: int, side: int) -> Any:
        """One side of a split."""
        number = range(len(self))[number]
        if number not in self._others:
            return FoldSplits(self._fold, len(self)).side(number, side)
        kept = self._others[number]
        if not isinstance(kept, np.ndarray):
            return kept[side]
        return kept if side == TEST else np.flatnonzero(self._are_others(kept))

    def __getitem__(self, number: Any) -> Any:
        if not isinstance(number, slice):
            kept = self._others.get(range(len(self))[number], self._fold)
            if not isinstance(kept, np.ndarray):
                return kept
        return super().__getitem__(number)

    def _are_parts(self, split: Any) -> bool:
        """Whether the training side is what the test side leaves over, in ascending order."""
        are_numbers = isinstance(split, tuple) and all(
            isinstance(side, np.ndarray) and side.dtype == np.intp and side.ndim == 1
            for side in split
        )
        if not are_numbers or len(split) != 2 or sum(map(len, split)) != self._n_rows:
            return False
        train, test = split
        if not all((side >= 0).all() and (side < self._n_rows).all() for side in split):
            return False
        is_other = self._are_others(test)
        are_all = np.count_nonzero(is_other) == len(train)  # not so where a test side repeats rows
        return bool(are_all and _ascend(train) and is_other[train].all())

    def _are_others(self, test: np.ndarray) -> np.ndarray:
        """Which rows are not in a test side, bool (n_rows,)."""
        is_other = np.ones(self._n_rows, dtype=bool)
        is_other[test] = False
        return is_other


def _ascend(rows: np.ndarray) -> bool:
    return bool((rows[1:] > rows[:-1]).all())


@dataclass(frozen=True, eq=False)
class RowsOfSides:
    """Sides of splits as sets of rows, made one at a time; `final` is one set more."""

    splits: Sequence[Split]
    n_rows: int
    final: np.ndarray | None = None
    side: int = TRAIN  # of each split

    def __len__(self) -> int:
        return len(self.splits) + (self.final is not None)

    def __getitem__(self, number: int) -> np.ndarray:
        if number == len(self.splits) and self.final is not None:
            return self.final
        if isinstance(self.splits, FoldSplits):
            return self.splits.has(number, self.side)
        rows = np.zeros(self.n_rows, dtype=bool)
        side = side_of(self.splits, number, self.side)
        if len(side) > 0:
            rows[side] = True
        return rows


def sets_of(
    splits: Sequence[Split], table: TrainingTable, rows: np.ndarray | None, has_last: bool = True
) -> Resampling:
    """The training sides of splits, and at last some rows of the table, None: all, as sets."""
    n_rows = len(table.y)
    if rows is None and isinstance(table.y, LazyColumn) and len(splits) == 0:
        splits = no_folds(table.X, table.stats)
    if rows is None and isinstance(splits, FoldSplits):
        return splits.sets(has_last, table.X, table.stats)
    if has_last:
        rows = np.ones(n_rows, dtype=bool) if rows is None else rows
    return of_sets(RowsOfSides(splits, n_rows, rows if has_last else None))


def no_folds(X: Any, stats: FitStatistics) -> FoldSplits:
    """No splits of a table of a Dask collection: no row is held out."""
    parts = RowColumns.of(X, {"nothing": None}, stats)
    lengths = [length for _, _, length in X.parts()]
    fold = parts.column(_in_no_fold, "no-folds", stats, lengths)
    none = np.array([MOST_FOLDS - 1])
    return FoldSplits(fold, 0, FoldCounts(none, np.array([X.n_rows]), np.zeros(1, dtype=np.int64)))


def _in_no_fold(nothing: None, first_row: int, n_rows: int) -> np.ndarray:
    return np.full(n_rows, MOST_FOLDS - 1, dtype=np.uint16)


ROWS_AT_ONCE = 2**16  # whose draws are held
LARGEST_SEED = np.iinfo(np.int32).max
CONSTRAINTS: Constraints = {
    "n_splits": (IntegerIn(2, MOST_FOLDS),),
    "stratify": (Boolean(),),
    "random_state": RANDOM_STATE,
}


@dataclass(frozen=True)
class FoldResult:
    """Score and size of the model of one fold."""

    fold: int  # number, from 1
    n_train: int  # rows the model was grown on
    n_test: int  # rows it was scored on
    score: float  # accuracy in [0, 1] or R^2 in (-inf, 1], unless another is asked for
    depth: int  # of the deepest tree
    n_leaves: int  # of all trees


def shuffled_folds(y: np.ndarray, n_folds: int, seed: int, *, stratified: bool) -> list[Split]:
    """Row numbers of each fold's sides, shuffled by `seed`; every row is in one test side.

    With `stratified`, every fold gets its share of every class. Raises ValueError where `n_folds`
    is larger than the number of rows or, when stratified, than every class.
    """
    kind = StratifiedKFold if stratified else KFold
    splitter = kind(n_splits=n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1), dtype=np.uint8), y))


class HashKFold(BaseEstimator):
    """k folds by row id: a splitter for tables of any size, as ``cv`` of every function here.

    The fold of a row is a function of the seed and the number of the row. If folds are stratified,
    it is one of the rows of its class, too. It does not depend on partitions, workers or chunk
    sizes. Folds of a plain split stay as they are when rows are added at the end.

    Where ``split`` is given groups, all rows of a group are in one fold. That is a function of the
    seed and the label of the group alone. It stays when groups or rows are added, taken away or
    sorted. Each group draws for itself, so that sizes of folds differ the more the fewer or the
    more uneven the groups are. For few groups there is :class:`sklearn.model_selection.GroupKFold`,
    which makes them even.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds k, 2 to 65,536.
    stratify : bool, default=False
        Whether every fold gets its share of every class, to a row: the rows of a class are dealt in
        the order of their draws. Otherwise each row draws for itself, and a fold has n_rows / k of
        them, give or take the square root of that.
    random_state : int, RandomState instance or None, default=None
        None: other folds each time.

    Notes
    -----
    Labels that are equal are one group, whatever type or partition they are stored in: 1 and 1.0,
    strings of numpy and of Arrow, a date of nanoseconds and of days. Groups in a Dask collection
    stay where they are; eight bytes per row are fetched of them.

    Keeps two bytes per row in this process, and draws them in O(n_rows); 24 bytes per row for a
    moment where rows are dealt, or groups draw. Sides are found when they are looked at, and not
    kept. In a validation of a Dask collection whose codes and `y` stay on the workers, folds are
    drawn there, and nothing is fetched.

    Examples
    --------
    >>> import numpy as np
    >>> from dtrees.model_selection import HashKFold
    >>> HashKFold(3, random_state=0).folds(np.zeros((8, 1)))
    array([1, 2, 1, 1, 0, 2, 0, 0], dtype=uint16)
    """

    def __init__(
        self, n_splits: int = 5, *, stratify: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.stratify = stratify
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    @checked(X=ARRAY, y=ROWS, groups=ROWS)
    def split(self, X: Any, y: Any = None, groups: Any = None) -> FoldSplits:
        """The splits: a sequence of (train, test), numbers of rows in ascending order.

        Parameters
        ----------
        X : table of n_rows rows
            Only their number matters.
        y : array-like of shape (n_rows,), default=None
            Classes, if folds are stratified.
        groups : array-like of shape (n_rows,), default=None
            Numbers, strings or dates.

        Raises
        ------
        ValueError, TypeError
            As `folds`.
        """
        return FoldSplits(self.folds(X, y, groups), self.n_splits)

    @checked(X=ARRAY, y=ROWS, groups=ROWS)
    def folds(self, X: Any, y: Any = None, groups: Any = None) -> np.ndarray:
        """The fold that each row is held out in, uint16 (n_rows,).

        Parameters
        ----------
        X, y, groups
            As for `split`.

        Raises
        ------
        ValueError
            A parameter is out of its range; a fold has no row or no group; a class has
            fewer rows than there are folds; groups and `stratify` are both given, or no `y` to
            stratify by; `X`, `y` and `groups` are not of one length, or a label is missing.
        TypeError
            A label of a group is neither number, string nor date.
        """
        seed = self._seed(y, groups)
        n_rows, y, groups = self._counted(X, y, groups)
        if self.stratify:
            return self._stratified(np.asarray(y), seed)
        keys = None
        if groups is not None:
            keys = group_keys(groups)
            if keys.size != n_rows:
                raise ValueError(
                    f"groups must have one label per row: expected shape ({n_rows},), got "
                    f"{keys.shape}."
                )
        found = self._of_rows(seed, keys, 0, n_rows)
        self._check_all_occur(FoldCounts.of(found), n_rows, keys)
        return found

    def _elsewhere(self, X: PartitionedTable, y: LazyColumn, groups: Any) -> FoldSplits:
        """The splits of rows that are not here; arguments and errors as of `split`."""
        seed, stats = self._seed(y, groups), y.stats
        if self.stratify:
            rows = RowColumns.of(X, {"y": y}, stats)
            fold, error = rows.column_of_all(
                lambda y: (self._stratified(y, seed), None), "dealt-folds", stats
            )
            if fold is None:
                raise_copy(error)
        else:
            rows = RowColumns.of(X, {"groups": groups}, stats)
            lengths = [length for _, _, length in X.parts()]
            drawn = partial(_drawn_of_part, self._of_rows, seed), "drawn-folds"
            fold = rows.column(*drawn, stats, lengths)
        counts = _counted(X, fold, stats)
        if not self.stratify:
            self._check_all_occur(counts, X.n_rows, groups)
        return FoldSplits(fold, self.n_splits, counts)

    def _seed(self, y: Any, groups: Any) -> int:
        """A seed of the random state, where these columns are as they should be."""
        check_values(CONSTRAINTS, self.get_params(), "HashKFold")
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        if groups is not None and self.stratify:
            raise ValueError(
                "Folds of groups cannot be stratified: give stratify=False, or no groups."
            )
        if self.stratify and y is None:
            raise ValueError("stratify=True needs y, whose classes are dealt to the folds.")
        return seed

    def _of_rows(
        self, seed: int, keys: np.ndarray | None, first_row: int, n_rows: int
    ) -> np.ndarray:
        """Folds of some rows, or of those of groups of these keys; uint16 (n_rows,)."""
        if keys is not None:
            return self._drawn(keyed_draws(seed, FOLDS, 0, keys.ravel()))
        found = np.empty(n_rows, dtype=np.uint16)
        for first in range(0, n_rows, ROWS_AT_ONCE):
            some = found[first : first + ROWS_AT_ONCE]
            some[:] = self._drawn(keyed_uint64(seed, FOLDS, first_row + first, len(some)))
        return found

    def _check_all_occur(self, counts: FoldCounts, n_rows: int, keys: Any) -> None:
        """Raise ValueError where a fold has no row; `keys` of groups, None: there are none."""
        if len(counts.numbers) == self.n_splits:
            return
        if keys is None:
            raise ValueError(
                f"n_splits={self.n_splits} folds of n_samples={n_rows} rows: one of them has no "
                "row. Give fewer folds, or another random_state."
            )
        raise ValueError(
            f"n_splits={self.n_splits} folds of {len(np.unique(group_keys(keys)))} groups: one of "
            "them has no group, as each group draws its own fold. Give fewer folds, another "
            "random_state, or sklearn.model_selection.GroupKFold."
        )

    def _counted(self, X: Any, y: Any, groups: Any) -> tuple[int, Any, Any]:
        """The number of rows, and what belongs to them, in memory: one value per row.

        Of groups that are elsewhere, their keys; they are labels, whose keys they are themselves.
        """
        n_rows = known_length(X)
        if n_rows is None:
            n_rows = admitted(X, {})[0].n_rows if is_lazy(X) else len(X)
        columns = {"y": y, "groups": lazy_keys(groups)}
        check_lengths(n_rows, columns)
        if not self.stratify and known_length(y) is not None:
            columns["y"] = None  # which is not looked at
        _, y, groups = admitted(None, columns)
        check_lengths(n_rows, {"y": y, "groups": groups})
        return n_rows, y, groups

    def _drawn(self, draws: np.ndarray) -> np.ndarray:
        """Draws brought to the numbers of the folds; uint16 (n,)."""
        k = np.uint64(self.n_splits)
        found: np.ndarray = ((draws >> np.uint64(32)) * k >> np.uint64(32)).astype(np.uint16)
        return found

    def _stratified(self, y: np.ndarray, seed: int) -> np.ndarray:
        if y.ndim > 1 and y.shape[1] > 1:
            raise ValueError(
                f"stratify=True takes one target of classes, and y has {y.shape[1]} columns. Give "
                "one of them as y, or stratify=False."
            )
        _, numbers, counts = np.unique(y, return_inverse=True, return_counts=True)
        if counts.max(initial=0) < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} cannot be greater than the number of members in each "
                f"class, of which the largest has {counts.max(initial=0)}."
            )
        found = np.empty(len(y), dtype=np.uint16)
        # class by class, dealt in the order of the draws: each goes on where the one before ends
        order = np.lexsort((keyed_uint64(seed, FOLDS, 0, len(y)), numbers.ravel()))
        found[order] = np.arange(len(y)) % self.n_splits
        return found


def _drawn_of_part(
    of_rows: Callable[..., np.ndarray], seed: int, groups: Any, first_row: int, n_rows: int
) -> np.ndarray:
    """Folds of the rows of a partition."""
    return of_rows(seed, None if groups is None else group_keys(groups), first_row, n_rows)


def folds_elsewhere(cv: Any, of_classes: bool, X: Any, y: Any, groups: Any) -> FoldSplits | None:
    """The splits of ``cv`` where the rows are; None: they are no folds, or have to be drawn here.

    A splitter of scikit-learn is asked on a worker, which has `y` and `groups` for a moment. It is
    asked here where it draws from a random state of this process, or fails.
    """
    if not isinstance(y, LazyColumn):
        return None
    if type(cv) is HashKFold:
        return cv._elsewhere(X, y, groups)
    if not _is_drawn_anywhere(cv):
        return None
    stats = y.stats
    needs_y = of_classes or not isinstance(cv, Integral | None)
    rows = RowColumns.of(X, {"y": y if needs_y else None, "groups": groups}, stats)
    ask = partial(_drawn_by_sklearn, cv, of_classes, X.n_rows)
    fold, told = rows.column_of_all(ask, "folds", stats)
    if fold is None:
        return None
    for words, category in told[1]:
        warn(words, category)
    return FoldSplits(fold, told[0], _counted(X, fold, stats))


def _is_drawn_anywhere(cv: Any) -> bool:
    """Whether a splitter is one of scikit-learn, and gives the same wherever it is asked."""
    if isinstance(cv, Integral | None):
        return True
    if not type(cv).__module__.startswith("sklearn.model_selection."):
        return False
    own = vars(cv)
    is_seeded = isinstance(own.get("random_state", 0), Integral) or own.get("shuffle") is False
    return is_seeded and hasattr(cv, "split")


def _drawn_by_sklearn(
    cv: Any, of_classes: bool, n_rows: int, y: np.ndarray | None, groups: np.ndarray | None
) -> tuple[np.ndarray | None, Any]:
    """Folds of all rows, how many there are, and warnings; no folds: it is to be asked anew."""
    with warnings.catch_warnings(record=True, action="always") as heard:
        splits = check_cv(cv, y, classifier=of_classes).split(np.empty((n_rows, 0)), y, groups)
        drawn = Splits(splits, n_rows).in_short()
    if not isinstance(drawn, FoldSplits):
        return None, None
    theirs = [each for each in heard if "sklearn" in each.filename]  # and not of other threads
    said = [(str(each.message), each.category) for each in theirs]
    return np.asarray(drawn.fold), (len(drawn), said)


def fold_results(
    splits: Sequence[Split], scores: np.ndarray, models: Sequence[Any]
) -> list[FoldResult]:
    """Score and size of the model of each fold."""
    results = []
    per_fold = zip(splits, scores.tolist(), models, strict=True)
    for number, ((train, test), score, model) in enumerate(per_fold, start=1):
        size = size_of(model)
        results.append(FoldResult(number, len(train), len(test), score, size.depth, size.n_leaves))
    return results


def mean_and_standard_error(scores: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the scores and its standard error, ``s / sqrt(k)``.

    ``s`` is the sample standard deviation (k - 1 in the denominator) of the k >= 2 scores. The
    folds share training rows, so the scores depend on each other and the error is somewhat small.
    """
    values = np.asarray(scores, dtype=np.float64)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
