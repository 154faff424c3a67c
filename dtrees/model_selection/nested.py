"""Searches within a cross-validation, all of them from one coded table.

Nested cross-validation searches anew on every training side, and scores what it finds on rows that
no part of the search has seen::

    all rows     [outer test][outer training side ..................]
    search          ──▶      [inner test][inner training side ......]    rows of the same table

A training side is a set of rows, and so is the training side of a split of it: both are cells of
the table that was coded once, and nothing is copied or coded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from dtrees.estimators.sets import FittedSets, TrainingTable
from dtrees.exceptions import ClusterError
from dtrees.model_selection.ours import TogetherError, why_not, why_not_splits
from dtrees.model_selection.search import SharedSearch
from dtrees.model_selection.stand_in import RowNumbers, Split, TrainingRows
from dtrees.parallel import Ledger, PartitionedTable


def why_not_nested(search: Any, y: Any, params: Sequence[str]) -> str | None:
    """Why searches are not made on one coded table; None: they are."""
    if not search.refit:
        return "refit=False leaves no model to be scored"
    return why_not(search.estimator, y, params)


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


class GrownSearches:
    """Fitted searches for all splits and for all rows: `stand_in.Models`.

    Parameters
    ----------
    search : GridSearchCV or RandomizedSearchCV of dtrees
        Never fitted itself.
    X, y
        As for its ``fit``.
    splits : sequence of (train, test)
    sample_weight : array-like of shape (n_rows,) or None
    ledger : Ledger
        Where it is written down what has been done for the table so far.

    Attributes
    ----------
    rows : RowNumbers

    Raises
    ------
    TogetherError
        A search cannot be made from the codes of the table.
    ClusterError, MemoryError
        Of whichever search; other errors are those of a fit, and are kept for it.
    """

    def __init__(
        self,
        search: SharedSearch,
        X: Any,
        y: Any,
        splits: Sequence[Split],
        sample_weight: Any,
        ledger: Ledger,
    ) -> None:
        self.rows = RowNumbers(len(y), splits)
        self._found: list[tuple[Any, FittedSets] | Exception] = []
        table = TrainingTable(X, y, sample_weight, ledger)
        sides = TrainingRows(splits, len(y), np.ones(len(y), dtype=bool))
        for number in range(len(sides)):
            self._found.append(_searched(search, table, sides[number]))

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
        found = self._found[number]
        assert not isinstance(found, Exception)
        return found[0]

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the best estimator of a set says of rows."""
        found = self._found[number]
        assert not isinstance(found, Exception)
        search, fitted = found
        return fitted.values_of(search.best_estimator_, rows)


def _looks_at_rows_only(cv: Any) -> bool:
    """Whether a splitter asks X for its number of rows, and for nothing else."""
    return cv is None or isinstance(cv, int) or type(cv).__module__.startswith("sklearn.")


def _searched(
    search: SharedSearch, table: TrainingTable, rows: np.ndarray
) -> tuple[Any, FittedSets] | Exception:
    """A fitted search of some rows of a table, or the error of its fit."""
    numbers = np.flatnonzero(rows)
    try:
        own: Any = clone(search)  # type: ignore[type-var]
        own._validate_params()
        X, y = numbers[:, None], _safe_indexing(table.y, numbers)
        is_partitioned = isinstance(table.X, PartitionedTable)  # whose rows cannot be taken
        if not is_partitioned and not _looks_at_rows_only(own.cv):
            X = _safe_indexing(table.X, numbers)
        splits = own._splits(X, y, None)
        reason = why_not_splits(splits, len(numbers))
        if reason is not None:
            raise TogetherError(reason)
        of_table = [(numbers[train], numbers[test]) for train, test in splits]
        return own, own._search(table, of_table, rows)
    except (ClusterError, MemoryError, TogetherError):
        raise
    except Exception as error:  # the error of a fit: scikit-learn decides what it is worth
        return error
