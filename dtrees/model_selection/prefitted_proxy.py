"""What scikit-learn's own loops see in the place of estimators: models that are there already.

`sklearn.model_selection` clones an estimator, sets its parameters, fits it to a training side, and
hands it to scorers. A proxy goes through all that. It is given the numbers of the rows as a table.
A fit looks up which training side they are; predictions come from the rows' codes::

    fit(numbers of a training side)    ──▶ which split it is, and the error of its model, if any
    predict(numbers of any rows)       ──▶ models.values(candidate, split, numbers)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from dtrees._forks import cached_property
from dtrees.coding.outputs import shares_by_output
from dtrees.estimators.prediction import labels_of_outputs, logarithms_of
from dtrees.estimators.scorers import with_labels
from dtrees.model_selection.folds import TEST, TRAIN, Split, side_of

if TYPE_CHECKING:
    from dtrees.model_selection.candidates import Cells
    from dtrees.model_selection.search import FittedSearches


class RowNumbers:
    """The rows of a table by number, and the splits by their training sides."""

    def __init__(self, n_rows: int, splits: Sequence[Split]) -> None:
        self._n_rows, self._splits = n_rows, splits

    @cached_property
    def table(self) -> np.ndarray:
        """Stands for the table in scikit-learn's loops; int64 (n_rows, 1)."""
        return np.arange(self._n_rows)[:, None]

    def split_of(self, table: np.ndarray) -> int:
        """Number of the split whose training side a table is."""
        return self._number[_digest(table)]

    def rows(self, number: int, side: int = TEST) -> np.ndarray:
        """Row numbers of a side of a split, int64 (n,)."""
        found = np.asarray(side_of(self._splits, number, side))
        are_rows = found.dtype == np.int64 and found.min(initial=0) >= 0
        return found if are_rows else np.arange(self._n_rows)[found if len(found) else []]

    def sides(self, with_train: bool = False) -> Iterator[tuple[int, np.ndarray]]:
        """Number of each split and of the rows of its test side; then those of train sides."""
        for side in (TEST, TRAIN) if with_train else (TEST,):
            for number in range(len(self._splits)):
                yield number, self.rows(number, side)

    @cached_property
    def _number(self) -> dict[bytes, int]:
        return {_digest(self.table[train]): i for i, (train, _) in enumerate(self._splits)}


def _digest(table: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(table).data, digest_size=16).digest()


def _has_classes(proxy: PrefittedProxy) -> bool:
    return is_classifier(proxy.estimator)


def _has_scores(proxy: PrefittedProxy) -> bool:
    """Whether scorers ask the models for raw predictions before they ask for shares."""
    return is_classifier(proxy.estimator) and hasattr(proxy.estimator, "decision_function")


class PrefittedProxy(BaseEstimator):
    """An estimator whose fits have been done.

    `by_label`: classes go by labels, not by numbers. `distinct`, int64 (n, n_sets): `candidate` is
    a row of it, which has one of each set; None: it is the same one in all sets.
    """

    def __init__(
        self,
        models: Cells | FittedSearches,
        rows: RowNumbers,
        estimator: Any,
        candidate: int = 0,
        by_label: bool = True,
        distinct: np.ndarray | None = None,
    ) -> None:
        self.models = models
        self.rows = rows
        self.estimator = estimator
        self.candidate = candidate
        self.by_label = by_label
        self.distinct = distinct

    def __sklearn_clone__(self) -> PrefittedProxy:
        return PrefittedProxy(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def fit(self, X: np.ndarray, y: Any = None, sample_weight: Any = None) -> PrefittedProxy:
        """Find out which model this is, or raise the error of its fit."""
        return self.of_split(self.rows.split_of(X), y)

    def of_split(self, number: int, y: Any = None) -> PrefittedProxy:
        """Become the model of a split, as a fit to its training side does."""
        self.number_ = number
        error = self.models.error(number)
        if error is not None:
            raise error
        classes = self.models.classes
        if classes is not None:
            # by number: scikit-learn has numbered y, and asks for classes of the training side only
            self.classes_ = classes
            if not self.by_label:
                are_several = isinstance(classes, list)
                self.classes_ = (
                    list(map(np.unique, np.transpose(y))) if are_several else np.unique(y)
                )
        return self

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.models.model(*self._cell())

    def predict(self, X: np.ndarray) -> np.ndarray:
        """A label or a number for every row."""
        values = self._values(X)
        if not hasattr(self, "classes_"):
            return values[:, 0] if values.shape[1] == 1 else values
        if isinstance(self.classes_, list):
            return labels_of_outputs(self.classes_, self._by_output(values))
        labels: np.ndarray = self.classes_.take(values.argmax(axis=1))
        return labels

    @available_if(_has_classes)
    def predict_proba(self, X: np.ndarray) -> Any:
        """Shares of the classes; of several targets a list."""
        values = self._values(X)
        if isinstance(self.classes_, list):
            shares = self._by_output(values)
            if self.by_label:
                return shares
            return [own[:, some] for own, some in zip(shares, self.classes_, strict=True)]
        return values if self.by_label else values[:, self.classes_]

    @available_if(_has_classes)
    def predict_log_proba(self, X: np.ndarray) -> Any:
        """Logarithms of the shares."""
        return logarithms_of(self.predict_proba(X))

    @available_if(_has_scores)
    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Raw predictions, of boosted models."""
        return self.models.scores(*self._cell(), X[:, 0])

    def _by_output(self, values: np.ndarray) -> list[np.ndarray]:
        return shares_by_output(values, list(map(len, self.models.classes)))

    def _values(self, X: np.ndarray) -> np.ndarray:
        return self.models.values(*self._cell(), X[:, 0])

    def _cell(self) -> tuple[int, int]:
        """The candidate, and the set."""
        if self.distinct is None:
            return self.candidate, self.number_
        return int(self.distinct[self.candidate, self.number_]), self.number_

    def score(self, X: np.ndarray, y: Any, sample_weight: Any = None) -> float:
        """What the estimator's ``score`` says: accuracy, or R^2."""
        metric = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))


def asks_for_predictions(scoring: Any) -> bool:
    """Whether scorers look at nothing of a model but its predictions, as scikit-learn's own do."""
    if isinstance(scoring, Mapping):
        return all(map(asks_for_predictions, scoring.values()))
    return not callable(scoring) or type(scoring).__module__ == get_scorer.__module__


def refuse_functions(scoring: Any) -> None:
    """Refuse (ValueError) scorers that predict by a model, which knows no init_score of rows."""
    if not asks_for_predictions(scoring):
        raise ValueError(
            "A function that is given as scoring predicts by the model, which knows no init_score "
            "of the held-out rows. Give a scorer of scikit-learn, by name or of make_scorer."
        )


def scoring_of_proxies(scoring: Any, X: Any, classes: np.ndarray | None) -> Any:
    """Scorers that see the model and rows of the table, as without proxies.

    Those that ask for predictions only, as scikit-learn's own do, are told the classes.
    """
    if isinstance(scoring, Mapping):
        return {name: scoring_of_proxies(one, X, classes) for name, one in scoring.items()}
    if asks_for_predictions(scoring):
        return with_labels(scoring, classes)

    @wraps(scoring)
    def score(proxy: PrefittedProxy, numbers: np.ndarray, y: Any, **params: Any) -> Any:
        return scoring(proxy.model, _safe_indexing(X, numbers[:, 0]), y, **params)

    return score
