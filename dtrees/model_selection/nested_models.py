"""Models that lack one fold, or two: grown together where they can be, else fitted one by one.

::

    trees and forests of dtrees    training sets of one growth; answers are read from codes
    searches of dtrees             a search for each set, all on one coded table; from codes
    pipelines, other estimators    a fit for each set, and predictions of its rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import sklearn.model_selection
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from dtrees.core.membership.resampling import Rows, of_sets
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.training_sets import fit_table
from dtrees.model_selection.eligibility import NotShareableError, unsupported_reason
from dtrees.model_selection.nested import unsupported_search
from dtrees.model_selection.prepare import Prepared
from dtrees.model_selection.shared_search import SharedSearch, search_rows
from dtrees.model_selection.splits import Split
from dtrees.parallel import tables_kept


class Answers(Protocol):
    """What models say of rows that they have not seen."""

    @property
    def y(self) -> np.ndarray:
        """Numbers of classes, or targets."""

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""

    def values(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Shares of all classes, or predictions in one column, of a model."""

    def labels(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Predicted classes."""


Models = Callable[[Rows, Sequence[np.ndarray]], Answers]  # of training sets, and other rows


def models_of(prepared: Prepared) -> Models:
    """What fits the models of some training sets, and answers of rows that they lack.

    Raises TypeError where rows of a Dask collection would have to be taken.
    """
    estimator, params = prepared.arguments.estimator, prepared.arguments.params or {}
    if isinstance(estimator, SharedSearch):
        reason = unsupported_search(estimator, prepared.y, list(params))
    else:
        reason = unsupported_reason(estimator, prepared.y, params)
    if reason is not None:
        replace(prepared, reason=reason).refuse_partitions()
        return OneByOne(prepared)
    return Searched(prepared) if isinstance(estimator, SharedSearch) else GrownTogether(prepared)


class GrownTogether:
    """Trees, forests, boosted models: training sets of a growth, from a table coded once."""

    def __init__(self, prepared: Prepared) -> None:
        self._estimator, self._table = prepared.arguments.estimator, prepared.shared().table

    def __call__(self, sets: Rows, sides: Sequence[np.ndarray]) -> Answers:
        """Answers of the models of all sets."""
        fitted = fit_table(self._estimator, self._table, of_sets(sets))
        for model in fitted.models:
            if isinstance(model, Exception):
                raise model
        fitted.bring_values(enumerate(sides))
        return FromCodes([(fitted, model) for model in fitted.models])


class Searched:
    """Searches of dtrees: one for each set, all of them on a table that is coded once."""

    def __init__(self, prepared: Prepared) -> None:
        self._search, self._table = prepared.arguments.estimator, prepared.shared().table
        self._one_by_one = OneByOne(prepared)

    @tables_kept()
    def __call__(self, sets: Rows, sides: Sequence[np.ndarray]) -> Answers:
        """Answers of the best estimators of all sets."""
        found = []
        for number in range(len(sets)):
            try:
                searched = search_rows(self._search, self._table, sets[number])
            except NotShareableError:
                return self._one_by_one(sets, sides)
            if isinstance(searched, Exception):
                raise searched
            search, fitted = searched
            found.append((fitted, search.best_estimator_))
        return FromCodes(found)


@dataclass(frozen=True, eq=False)
class FromCodes:
    """Answers of models that were grown from codes of the table, from these codes."""

    models: list[tuple[FittedSets, Any]]  # each with what it was grown with

    @property
    def y(self) -> np.ndarray:
        """Numbers of classes, or targets."""
        return self.models[0][0].y

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        return self.models[0][0].classes

    def values(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Shares of all classes, or predictions in one column, of a model."""
        fitted, model = self.models[number]
        if number < len(fitted.models) and model is fitted.models[number]:
            return fitted.values(number, rows)  # which are here, where codes are on workers
        return fitted.values_of(model, rows)

    def labels(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Predicted classes."""
        assert self.classes is not None
        return self.classes.take(self.values(number, rows).argmax(axis=1))


class OneByOne:
    """Any estimators, fitted and asked as scikit-learn does it."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def __call__(self, sets: Rows, sides: Sequence[np.ndarray]) -> Answers:
        """Answers of the models of all sets."""
        given, X, y = self._prepared.arguments, self._prepared.X, self._prepared.y
        splits: list[Split] = [
            (np.flatnonzero(sets[number]), rows) for number, rows in enumerate(sides)
        ]
        found = sklearn.model_selection.cross_validate(
            given.estimator,
            *(X, y),
            cv=splits,
            params=given.params,
            scoring=_nothing,
            error_score="raise",
            return_estimator=True,
        )
        classes, numbers = None, np.asarray(y)
        if is_classifier(given.estimator):
            classes, numbers = np.unique(numbers, return_inverse=True)
        return Predictions(found["estimator"], X, numbers.ravel(), classes)


def _nothing(model: Any, X: Any, y: Any) -> float:
    """A score that costs nothing."""
    return 0.0


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers of fitted estimators, by their own methods."""

    models: list[Any]
    X: Any
    y: np.ndarray
    classes: np.ndarray | None

    def values(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Shares of all classes, 0 of those that a model does not know; or predictions."""
        model, X = self.models[number], _safe_indexing(self.X, rows)
        if self.classes is None:
            return np.asarray(model.predict(X), dtype=np.float64).reshape(len(rows), -1)
        shares = np.zeros((len(rows), len(self.classes)))
        shares[:, np.searchsorted(self.classes, model.classes_)] = model.predict_proba(X)
        return shares

    def labels(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Predicted classes."""
        return np.asarray(self.models[number].predict(_safe_indexing(self.X, rows)))
