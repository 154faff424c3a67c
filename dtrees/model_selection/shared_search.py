"""Searches with scikit-learn's interface and results, which grow once and decide later.

Every candidate of a grid names k models. Those of candidates that differ in limits of trees only
stand inside the same grown trees (`dtrees.model_selection.candidates`), and all candidates grow
from one coded table::

    candidates ──▶ growths ──▶ k models each, from one coding ──▶ scores of all their candidates
                                                                     │
                        best ◀── cv_results_ ◀───────────────────────┘

Scores that are sums over leaves are computed for all candidates at once
(`dtrees.model_selection.leaf_scores`). For any other scorer, scikit-learn's own search goes through
the different trees of a growth, with proxies for the estimators. Either way every cell is what
the fit of its candidate scores: ``clone(estimator).set_params(**candidate)``, with the weights of
the rows outside of the training side set to zero.
"""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from dtrees._warnings import warn
from dtrees.callbacks import Bar
from dtrees.coding.sparse_positions import in_scipy
from dtrees.constraints import ARRAY, ROWS, InvalidParameterError, checked
from dtrees.core.membership.resampling import Resampling, of_sets
from dtrees.estimators.ensemble import BaseForest
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.training_sets import fit_table
from dtrees.estimators.training_table import TrainingTable
from dtrees.exceptions import ClusterError, NotSharedWarning
from dtrees.model_selection.boosted_cells import cells_of
from dtrees.model_selection.candidates import Growth, growths_of
from dtrees.model_selection.cell_scores import score_models, scores_by_leaves
from dtrees.model_selection.cells import Cells
from dtrees.model_selection.eligibility import (
    NotShareableError,
    check_rows_can_be_taken,
    unsupported_callbacks,
    unsupported_reason,
    unsupported_splits,
)
from dtrees.model_selection.pipeline_search import PipelineSearch
from dtrees.model_selection.pipelines import ends_in_dtrees
from dtrees.model_selection.prepare import (
    Arguments,
    OfCollections,
    Prepared,
    SplitTable,
    draw_splits,
    prepare,
    with_collections,
)
from dtrees.model_selection.search_scores import SearchScores
from dtrees.model_selection.splits import TrainingRows
from dtrees.parallel import PartitionedTable, tables_kept

logger = logging.getLogger(__name__)

ONE_EACH = "no two candidates have the steps before the last in common"


class SharedSearch(PipelineSearch):
    """What the two searches have in common; mixed into scikit-learn's."""

    @checked(X=ARRAY, y=ROWS)
    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Search.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Anything that the estimator takes.
        y : array-like of shape (n_rows,)
            The target.
        **params : dict
            ``sample_weight``, of shape (n_rows,), for the estimator's ``fit``, and ``groups`` for
            the splitter. With others scikit-learn's own search does the work. For the last step of
            a pipeline, ``<step>__sample_weight``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As scikit-learn's search does: a parameter that the estimator does not have, fits that
            all fail, splits that cannot be made; and where `groups` or `sample_weight` have not
            one value per row.
        TypeError
            `X` is a Dask collection, and models cannot be grown together: rows of it cannot be
            taken for scikit-learn's own search, or for a scorer that asks for them. Nor can a
            splitter look at them.
        ClusterError
            A Dask cluster is in force, or asked for by ``regime``, and cannot be used.

        Warns
        -----
        NotSharedWarning
            Each candidate is fitted on its own. The search has callbacks of scikit-learn, which
            hear of each fit. Or the estimator is a pipeline that ends in one of dtrees, and it has
            callbacks, metadata routing is enabled, ``fit`` is given other parameters, the pipeline
            is of a class derived from scikit-learn's, a candidate has a last step that is none of
            dtrees, or a training side lists a row twice.
        sklearn.exceptions.FitFailedWarning
            Some fits have failed.

        Notes
        -----
        A growth for each combination of parameters that are not decided later, all splits
        together, from one coding. Then, for c candidates of limits and each split:

        ======================================  ================================================
        accuracy, losses, R^2 of a tree         O(nodes + c)
        F1, precision, recall, Jaccard,         the same for each pair of classes, and
        Matthews' coefficient of a tree         scikit-learn's scorer for each different matrix
        others of scikit-learn, and all of a    a prediction and a score for each different tree
        forest
        a function of the model and its rows    a model, a prediction and a score for each c
        ======================================  ================================================

        Losses, by name: see `GridSearchCV`. Splits that are parts of the rows, leave-one-out among
        them, take 8 bytes per row, and a byte for each pair of different training sides.
        """
        X, groups = in_scipy(X), params.pop("groups", None)
        given, self.cv = self.cv, with_collections(self.cv, y, groups)
        arguments = Arguments(type(self).__name__, self.estimator, self.cv, groups, params)
        try:
            prepared = self._prepared(arguments, X, y)
            self.cv = prepared.arguments.cv  # not drawn twice, from an iterator
            return self._fit(prepared, X, y)
        finally:
            self.cv = given

    def _prepared(self, arguments: Arguments, X: Any, y: Any) -> Prepared:
        """Checked arguments."""
        reason = unsupported_reason(self.estimator, y, arguments.params)
        reason = reason or unsupported_callbacks(self)
        who = f"{arguments.who}.fit"
        check_rows_can_be_taken(who, X, reason)
        if reason is None:
            self._validate_params()  # type: ignore[attr-defined]
        return prepare(arguments, X, y, reason=reason, draw=self._draw, checks_weight=True)

    def _fit(self, prepared: Prepared, X: Any, y: Any) -> Any:
        """Search together, or by scikit-learn's own search."""
        reason = prepared.reason
        if reason is None:
            try:
                counts = self.verbose > 0 and isinstance(self.estimator, BaseForest)
                with Bar() if counts else nullcontext() as bar:
                    self._search_splits(prepared.shared(bar))
                return self
            except NotShareableError as error:
                if isinstance(prepared.X, PartitionedTable) and error.__cause__ is not None:
                    raise error.__cause__ from None
                reason = str(error)
        if ends_in_dtrees(self.estimator):
            reason = self._search_pipeline(prepared, X)
            if reason is None:
                return self
        if reason and (ends_in_dtrees(self.estimator) or reason == unsupported_callbacks(self)):
            warn(
                f"Every candidate of this {type(self).__name__} is fitted on its own, which "
                f"may take many times as long: {reason}.",
                NotSharedWarning,
            )
        logger.info("%s.fit is scikit-learn's: %s", type(self).__name__, reason or ONE_EACH)
        groups = prepared.arguments.groups
        if isinstance(self.cv, OfCollections):
            self.cv = draw_splits(self.cv, X, X if y is None else prepared.y, groups)
        own = {} if groups is None else {"groups": groups}
        params = prepared.arguments.params
        return super().fit(X, prepared.y, **params, **own)  # type: ignore[misc]

    @tables_kept()
    def _search_splits(self, work: SplitTable) -> FittedSets | None:
        """Search by splits of some rows of a table; returns the growth of the best model.

        That model, which is there when it is asked for (``refit``), is of ``work.rows``. Raises
        NotShareableError where models cannot be grown from the input as a whole.
        """
        scorers, refit_metric = self._get_scorers()  # type: ignore[attr-defined]
        candidates, splits, table = self._candidates(), work.splits, work.table
        if not candidates or not splits:
            raise ValueError(
                "No fits were performed. Was the CV iterator empty? Were there no candidates?"
            )
        lines = self._lines(candidates, len(splits), scorers)
        growths, errors = growths_of(self.estimator, candidates)
        if errors and self.error_score == "raise":
            raise errors[min(errors)]
        found = SearchScores.of(len(candidates), len(splits), self.error_score)
        for error in errors.values():
            found.fail(error, len(splits))
        lines.start(sorted(errors))
        lines.end(sorted(errors), found)
        rows = np.ones(len(table.y), dtype=bool) if work.rows is None else work.rows
        keeps_final = bool(self.refit) and len(growths) == 1
        sets = of_sets(TrainingRows(splits, len(rows), rows if keeps_final else None))
        cells = None
        for growth in growths:
            lines.start(growth.places)
            cells = self._grown(growth, work, sets, found)
            lines.end(growth.places, found)
        self._conclude(found, candidates, splits, table.y, (scorers, refit_metric))
        if not self.refit:
            return None
        start = time.perf_counter()
        growth = next(growth for growth in growths if self.best_index_ in growth.places)
        fitted, model = self._best(growth, table, rows, cells if keeps_final else None)
        if isinstance(model, Exception):
            raise model
        self._keep_best(model, start)
        return fitted

    def _grown(
        self,
        growth: Growth,
        work: SplitTable,
        sets: Resampling,
        found: SearchScores,
    ) -> Cells | None:
        """Grow the models of some candidates, and score them; None: every fit fails."""
        start = time.perf_counter()
        try:
            fitted = fit_table(growth.estimator, work.table, sets, bar=work.bar)
        except InvalidParameterError as error:  # of every fit
            if self.error_score == "raise":
                raise
            found.fail(error, len(growth.places) * len(work.splits))
            return None
        except (ValueError, TypeError, NotImplementedError) as error:
            raise NotShareableError(str(error)) from error
        cells = cells_of(growth, fitted)
        seconds = (time.perf_counter() - start) / (len(growth.places) * sets.n_sets)
        found.fit_time[growth.places] = seconds
        self._score(cells, work, found)
        return cells

    def _best(
        self, growth: Growth, table: TrainingTable, rows: np.ndarray, cells: Cells | None
    ) -> tuple[FittedSets, Any]:
        """The best candidate's model of some rows; `cells` have it, if there are any."""
        candidate = growth.places.index(self.best_index_)
        if cells is None:
            fitted = fit_table(growth.estimator_of(candidate), table, of_sets(rows[None]))
            return fitted, fitted.models[0]
        model = cells.fitted.models[-1]
        if not isinstance(model, Exception):
            model = cells.model(candidate, -1)
        return cells.fitted, model

    def _score(self, cells: Cells, work: SplitTable, found: SearchScores) -> None:
        """Score the candidates of a growth."""
        places, splits = cells.growth.places, work.splits
        errors = [cells.error(number) for number in range(len(splits))]
        failed = [error for error in errors if error is not None]
        if failed and self.error_score == "raise":
            raise failed[0]
        for error in failed:
            found.fail(error, len(places))
        if len(failed) == len(splits):
            return
        weight, with_train = work.table.sample_weight, self.return_train_score
        scored = scores_by_leaves(cells, splits, self.scoring, with_train, weight)
        if scored is None:
            scored = score_models(
                *(cells, work.table.X, work.table.y, splits),
                *(self.scoring, self.error_score, with_train, weight),
            )
        found.put(places, scored)


def _looks_at_rows_only(cv: Any) -> bool:
    """Whether a splitter asks X for its number of rows, and for nothing else."""
    return cv is None or isinstance(cv, int) or type(cv).__module__.startswith("sklearn.")


def search_rows(
    search: SharedSearch, table: TrainingTable, rows: np.ndarray
) -> tuple[Any, FittedSets] | Exception:
    """A fitted clone of a search, of some rows, bool (n_rows,); or the error of its fit.

    With it comes what the best estimator was grown with. Raises NotShareableError, ClusterError
    and MemoryError.
    """
    numbers = np.flatnonzero(rows)
    try:
        own: Any = clone(search)  # type: ignore[type-var]
        own._validate_params()  # scikit-learn's
        X, y = numbers[:, None], _safe_indexing(table.y, numbers)
        is_partitioned = isinstance(table.X, PartitionedTable)  # whose rows cannot be taken
        if not is_partitioned and not _looks_at_rows_only(own.cv):
            X = _safe_indexing(table.X, numbers)
        splits = own._draw(X, y, None)
        reason = unsupported_splits(splits, len(numbers))
        if reason is not None:
            raise NotShareableError(reason)
        of_table = [(numbers[train], numbers[test]) for train, test in splits]
        return own, own._search_splits(SplitTable(table, of_table, rows))
    except (ClusterError, MemoryError, NotShareableError):
        raise
    except Exception as error:  # the error of a fit: scikit-learn decides what it is worth
        return error
