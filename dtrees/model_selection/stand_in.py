"""What scikit-learn's own loops see in the place of estimators: models that are there already.

`sklearn.model_selection` clones an estimator, sets its parameters, fits it to a training side, and
hands it to scorers. A stand-in goes through all that. The table it is given are the numbers of the
rows; a fit looks up which training side they are, and predictions come from the rows' codes::

    fit(numbers of a training side)    ──▶ which split it is, and the error of its model, if any
    predict(numbers of any rows)       ──▶ models.values(candidate, split, numbers)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from dtrees.core.resampling import Resampling, of_sets

Split = tuple[np.ndarray, np.ndarray]


class Models(Protocol):
    """Models of training sets, for some candidates."""

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        ...

    def error(self, number: int) -> Exception | None:
        """Why there is no model of a set; None: there is one."""
        ...

    def model(self, candidate: int, number: int) -> Any:
        """A fitted estimator."""
        ...

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What a model says of rows: float64 (n, n_classes) or (n, 1)."""
        ...


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
    """The splits of folds, whose sides are found when somebody looks at them.

    Parameters
    ----------
    fold : uint16 (n_rows,)
        Of every row.
    n_folds : int

    Notes
    -----
    Keeps two bytes per row. O(n_rows) for each split that is looked at.
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

    Parameters
    ----------
    splits : iterable of (train, test)
        As a splitter gives them, and whatever they are.
    n_rows : int

    Notes
    -----
    Parts of the rows take 8 bytes per row in all, also where they are single rows (leave-one-out):
    the training sides of those are as many numbers as the square of the rows. O(n_rows) for each
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


class TrainingRows:
    """The training sides of splits as sets of rows, made one at a time.

    Parameters
    ----------
    splits : sequence of (train, test)
    n_rows : int
    final : bool (n_rows,) or None, default=None
        One set more. None: none.
    """

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


def training_sets(splits: Sequence[Split], n_rows: int, *, final: bool = True) -> Resampling:
    """The training sides of splits, and all rows, if the final model is wanted."""
    return of_sets(TrainingRows(splits, n_rows, np.ones(n_rows, dtype=bool) if final else None))


class RowNumbers:
    """The rows of a table by number, and the splits by their training sides.

    Parameters
    ----------
    n_rows : int
    splits : sequence of (train, test)

    Attributes
    ----------
    table : int64 (n_rows, 1)
        Stands for the table.
    """

    def __init__(self, n_rows: int, splits: Sequence[Split]) -> None:
        self.table = np.arange(n_rows)[:, None]
        self._splits = splits

    def split_of(self, table: np.ndarray) -> int:
        """Number of the split whose training side a table is."""
        return self._number[_digest(table)]

    def sides(self, with_train: bool = False) -> Iterator[tuple[int, np.ndarray]]:
        """Number of each split and of the rows of its test side; then those of train sides."""
        for number, (_, test) in enumerate(self._splits):
            yield number, self.table[test, 0]
        if with_train:
            for number, (train, _) in enumerate(self._splits):
                yield number, self.table[train, 0]

    @cached_property
    def _number(self) -> dict[bytes, int]:
        return {_digest(self.table[train]): i for i, (train, _) in enumerate(self._splits)}


def _digest(table: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(table).data, digest_size=16).digest()


def _has_classes(stand_in: StandIn) -> bool:
    return is_classifier(stand_in.estimator)


class StandIn(BaseEstimator):
    """An estimator whose fits have been done.

    Parameters
    ----------
    models : Models
    rows : RowNumbers
    estimator : tree or forest
        What it stands for.
    candidate : int, default=0
    by_label : bool, default=True
        Whether classes go by their labels, or by their numbers.
    """

    def __init__(
        self,
        models: Models,
        rows: RowNumbers,
        estimator: Any,
        candidate: int = 0,
        by_label: bool = True,
    ) -> None:
        self.models = models
        self.rows = rows
        self.estimator = estimator
        self.candidate = candidate
        self.by_label = by_label

    def __sklearn_clone__(self) -> StandIn:
        return StandIn(self.models, self.rows, self.estimator, self.candidate, self.by_label)

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def fit(self, X: np.ndarray, y: Any = None, sample_weight: Any = None) -> StandIn:
        """Find out which model this is, or raise the error of its fit."""
        self.number_ = self.rows.split_of(X)
        error = self.models.error(self.number_)
        if error is not None:
            raise error
        classes = self.models.classes
        if classes is not None:
            # by number: scikit-learn has numbered y, and asks for classes of the training side only
            self.classes_ = classes if self.by_label else np.unique(y)
        return self

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.models.model(self.candidate, self.number_)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """A label or a number for every row."""
        values = self._values(X)
        if not hasattr(self, "classes_"):
            return values[:, 0]
        labels: np.ndarray = self.classes_.take(values.argmax(axis=1))
        return labels

    @available_if(_has_classes)
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Shares of the classes."""
        values = self._values(X)
        return values if self.by_label else values[:, self.classes_]

    @available_if(_has_classes)
    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        """Logarithms of the shares."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _values(self, X: np.ndarray) -> np.ndarray:
        return self.models.values(self.candidate, self.number_, X[:, 0])

    def score(self, X: np.ndarray, y: Any, sample_weight: Any = None) -> float:
        """What the estimator's ``score`` says: accuracy, or R^2."""
        metric = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))


def asks_for_predictions(scoring: Any) -> bool:
    """Whether scorers look at nothing of a model but its predictions, as scikit-learn's own do.

    Parameters
    ----------
    scoring : None, str, callable, list, tuple, set or mapping
        As scikit-learn takes it.
    """
    if isinstance(scoring, Mapping):
        return all(map(asks_for_predictions, scoring.values()))
    return not callable(scoring) or type(scoring).__module__ == get_scorer.__module__


def scoring_of_stand_ins(scoring: Any, X: Any) -> Any:
    """Scorers that see what they would see without stand-ins: the model, and rows of the table.

    Parameters
    ----------
    scoring : None, str, callable, list, tuple, set or mapping
        As scikit-learn takes it. Those that ask for predictions only, as scikit-learn's own do,
        stay as they are.
    X : table
    """
    if isinstance(scoring, Mapping):
        return {name: scoring_of_stand_ins(one, X) for name, one in scoring.items()}
    if asks_for_predictions(scoring):
        return scoring

    @wraps(scoring)
    def score(stand_in: StandIn, numbers: np.ndarray, y: Any, **params: Any) -> Any:
        return scoring(stand_in.model, _safe_indexing(X, numbers[:, 0]), y, **params)

    return score
