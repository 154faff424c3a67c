"""Searches within a cross-validation, all of them from one coded table.

Nested cross-validation searches anew on every training side, and scores what it finds on rows that
no part of the search has seen::

    all rows     [outer test][outer training side ..................]
    search          ──▶      [inner test][inner training side ......]    rows of the same table

A training side is a set of rows, and so is the training side of a split of it. Both are cells of
the table that was coded once. Nothing is copied or coded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtrees.estimators.boosted_sets import FittedBoosts
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.model_selection.folds import RowsOfSides
from dtrees.model_selection.prepare import SplitTable, unsupported_callbacks, unsupported_reason
from dtrees.model_selection.search import SharedSearch, search_rows
from dtrees.parallel import tables_kept


def unsupported_model(estimator: Any, y: Any, params: Iterable[str]) -> str | None:
    """Why models, or searches, are not made on one coded table; None: they are."""
    if not isinstance(estimator, SharedSearch):
        return unsupported_reason(estimator, y, params)
    if not estimator.refit:
        return "refit=False leaves no model to be scored"
    return unsupported_callbacks(estimator) or unsupported_reason(estimator.estimator, y, params)


def scoring_of_search(search: Any) -> Any:
    """What the ``score`` of a fitted search computes, as a ``scoring``."""
    scoring = search.scoring
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    if isinstance(scoring, dict):
        scoring = scoring[search.refit]
    if not callable(scoring):
        return scoring

    def score(fitted: Any, X: Any, y: Any) -> Any:
        found = scoring(fitted.best_estimator_, X, y)
        return found[search.refit] if isinstance(found, dict) else found

    return score


class FittedSearches:
    """Fitted searches for all splits, and for all rows, which a `PrefittedProxy` asks.

    Raises NotShareableError where a search cannot be made from the codes of the table. Errors of
    a fit are kept for it, but for ClusterError and MemoryError.
    """

    @tables_kept()
    def __init__(self, search: SharedSearch, work: SplitTable) -> None:
        n_rows = len(work.table.y)
        self._found: list[tuple[Any, FittedSets] | Exception] = []
        every = np.ones(n_rows, dtype=bool) if work.has_last else None
        sides = RowsOfSides(work.splits, n_rows, every)
        for number in range(len(sides)):
            self._found.append(search_rows(search, work.table, sides[number]))

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        fitted = [found[1] for found in self._found if not isinstance(found, Exception)]
        return fitted[0].classes if fitted else None

    def error(self, number: int) -> Exception | None:
        """Why there is no search of a set."""
        found = self._found[number]
        return found if isinstance(found, Exception) else None

    def model(self, candidate: int, number: int) -> Any:
        """The fitted search of a set."""
        return self._of(number)[0]

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the best estimator of a set says of rows."""
        search, fitted = self._of(number)
        return fitted.values_of(search.best_estimator_, rows)

    def spreads(
        self, searches: Sequence[Any], sides: Sequence[tuple[int, np.ndarray]]
    ) -> list[np.ndarray]:
        """How sure the best estimators of sets are of rows, as `Cells.spreads`."""
        return [
            self._of(number)[1].spreads_of([(searches[number].best_estimator_, rows)])[0]
            for number, rows in sides
        ]

    def scores(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """Its raw predictions, if it is a boosted model."""
        search, fitted = self._of(number)
        assert isinstance(fitted, FittedBoosts)
        return fitted.scores_of(search.best_estimator_, rows)

    def _of(self, number: int) -> tuple[Any, FittedSets]:
        found = self._found[number]
        assert not isinstance(found, Exception)
        return found
