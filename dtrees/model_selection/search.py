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
the rows outside of the training side set to zero. Of a pipeline, the last step grows once for all
candidates of a split (`dtrees.model_selection.pipelines`).

Nested cross-validation searches anew on every training side, and scores what it finds on rows that
no part of the search has seen::

    all rows     [outer test][outer training side ..................]
    search          ──▶      [inner test][inner training side ......]    rows of the same table

A training side is a set of rows, and so is the training side of a split of it. Both are cells of
the table that was coded once. Nothing is copied or coded again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
import sklearn.model_selection
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel

from dtrees._other_words import refuse_other_scorers
from dtrees._warnings import warn
from dtrees.callbacks import Bar
from dtrees.coding.sparse_positions import in_scipy
from dtrees.coding.tables import row_values
from dtrees.constraints import ARRAY, ROWS, InvalidParameterError, checked
from dtrees.core.membership.resampling import Resampling
from dtrees.estimators.boosted_init import BY_MODEL, is_model
from dtrees.estimators.boosted_sets import FittedBoosts
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.forests import BaseForest
from dtrees.estimators.training_sets import TrainingTable, fit_table
from dtrees.exceptions import ClusterError, NotSharedWarning
from dtrees.model_selection.candidates import Cells, Growth, Parameters, cells_of, growths_of
from dtrees.model_selection.fitted_splits import score_models, scores_by_leaves, warn_of_undefined
from dtrees.model_selection.folds import RowsOfSides, Split, folds_elsewhere, sets_of
from dtrees.model_selection.pipelines import (
    PipelineWork,
    ends_in_dtrees,
    last_step,
    settings_of,
    unsupported_pipeline,
)
from dtrees.model_selection.prefitted_proxy import refuse_functions
from dtrees.model_selection.prepare import (
    Arguments,
    NotShareableError,
    OfCollections,
    SplitTable,
    check_rows_can_be_taken,
    draw_splits,
    prepare,
    refuse_starts,
    unsupported_callbacks,
    unsupported_reason,
    unsupported_splits,
    with_collections,
)
from dtrees.model_selection.search_scores import FitLines, SearchScores
from dtrees.parallel import PartitionedTable, check_lengths, is_lazy, tables_kept

logger = logging.getLogger(__name__)

ONE_EACH = "no two candidates have the steps before the last in common"


class SharedSearch:
    """What the two searches have in common; mixed into scikit-learn's."""

    estimator: Any
    scoring: Any
    cv: Any
    n_jobs: int | None
    pre_dispatch: int | str
    refit: Any
    error_score: Any
    return_train_score: bool
    verbose: int

    @checked(X=ARRAY, y=ROWS)
    def fit(self, X: Any, y: Any = None, *, checkpoint: Any = None, **params: Any) -> Self:
        """Search.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Anything that the estimator takes.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            The target.
        checkpoint : str or path, default=None
            A folder for trees that have grown, or its URL, as of forests. The same search goes on
            with them, and scores models anew. Its candidates may be more or others.
        **params : dict
            ``sample_weight``, of shape (n_rows,), for the estimator's ``fit``, ``init_score`` of
            boosted models, and ``groups`` for the splitter. With others scikit-learn's own search
            does the work. For the last step of a pipeline, ``<step>__sample_weight``.

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
        refuse_other_scorers(self.scoring)
        X, groups = in_scipy(X), params.pop("groups", None)
        given, self.cv = self.cv, with_collections(self.cv, y, groups)
        who = type(self).__name__
        arguments = Arguments(who, self.estimator, self.cv, groups, params, checkpoint=checkpoint)
        try:
            reason = unsupported_reason(self.estimator, y, params) or unsupported_callbacks(self)
            if reason is None:
                self._validate_params()  # type: ignore[attr-defined]
            else:
                check_rows_can_be_taken(f"{arguments.who}.fit", X, reason)
            prepared = prepare(arguments, X, y, reason=reason, draw=self._draw, checks_weight=True)
            self.cv = prepared.cv  # not drawn twice, from an iterator
            return self._fit(prepared, X, y)
        finally:
            self.cv = given

    def _fit(self, prepared: Arguments, X: Any, y: Any) -> Any:
        """Search together, or by scikit-learn's own search."""
        reason = prepared.reason
        if reason is None:
            try:
                counts = self.verbose > 0 and isinstance(self.estimator, BaseForest)
                with Bar() if counts else nullcontext() as bar:
                    work = prepared.shared(bar)
                    with work.table.saving():
                        self._search_splits(work)
                return self
            except NotShareableError as error:
                is_needed = isinstance(prepared.X, PartitionedTable)
                is_needed |= prepared.checkpoint is not None
                if is_needed and error.__cause__ is not None:
                    raise error.__cause__ from None
                reason = str(error)
        refuse_starts(prepared, reason)
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
        groups = prepared.groups
        if isinstance(self.cv, OfCollections):
            self.cv = draw_splits(self.cv, X, X if y is None else prepared.y, groups)
        own = {} if groups is None else {"groups": groups}
        params = prepared.params
        return super().fit(X, prepared.y, **params, **own)  # type: ignore[misc]

    @tables_kept()
    def _search_splits(self, work: SplitTable) -> FittedSets | None:
        """Search by splits of some rows of a table; returns the growth of the best model.

        That model, which is there when it is asked for (``refit``), is of ``work.rows``. Raises
        NotShareableError where models cannot be grown from the input as a whole.
        """
        scorers, refit_metric = self._get_scorers()  # type: ignore[attr-defined]
        candidates, splits, table = self._candidates(), work.splits, work.table
        if table.init_score is not None:
            refuse_functions(self.scoring)
        if any(is_model(candidate.get("init")) for candidate in candidates):
            raise NotShareableError(BY_MODEL)
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
        keeps_final = bool(self.refit) and len(growths) == 1
        sets = sets_of(splits, table, work.rows, keeps_final)
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
        fitted, model = self._best(growth, work, cells if keeps_final else None)
        if isinstance(model, Exception):
            raise model
        self._keep_best(model, start)
        return fitted

    def _grown(
        self, growth: Growth, work: SplitTable, sets: Resampling, found: SearchScores
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
        self, growth: Growth, work: SplitTable, cells: Cells | None
    ) -> tuple[FittedSets, Any]:
        """The best candidate's model of some rows; `cells` have it, if there are any."""
        candidate = growth.places.index(self.best_index_)
        if cells is None:
            rows = sets_of((), work.table, work.rows)
            fitted = fit_table(growth.estimator_of(candidate), work.table, rows)
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

    def _search_pipeline(self, prepared: Arguments, X: Any) -> str | None:
        """Search over a pipeline, with one growth of its last step for all candidates of a split.

        Returns
        -------
        str or None
            Why the candidates are not fitted together, for scikit-learn to fit them; "" where no
            two of them have anything in common. None: they have been.
        """
        y, params = prepared.y, prepared.params
        reason = unsupported_pipeline(self.estimator, y, params)
        reason = reason or unsupported_callbacks(self, self.estimator)
        if reason is not None:
            return reason
        self._validate_params()  # type: ignore[attr-defined]
        scorers, refit_metric = self._get_scorers()  # type: ignore[attr-defined]
        candidates = self._candidates()
        try:
            settings = settings_of(self.estimator, candidates)
        except NotShareableError as error:
            return str(error)
        if all(len(setting.places) == 1 for setting in settings):
            return ""
        if is_lazy(X):
            return "X is a Dask collection, whose rows are taken for each candidate"
        X, y = indexable(X, y)
        groups = prepared.groups
        weight = params.get(f"{last_step(self.estimator)[0]}__sample_weight")
        check_lengths(len(y), {"groups": groups, "sample_weight": weight})
        splits = self._draw(X, y, groups)
        reason = unsupported_splits(splits, len(y))
        if reason is not None:
            self.cv = splits  # which cannot be drawn twice from an iterator
            return reason
        lines = self._lines(candidates, len(splits), scorers)
        work = PipelineWork(
            *(self.estimator, X, y, weight),
            *(self.scoring, self.error_score, self.return_train_score),
        )
        lines.start(range(len(candidates)))
        run = Parallel(n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch)
        found = work.score_all(settings, splits, len(candidates), run)
        lines.end(range(len(candidates)), found)
        self._conclude(found, candidates, splits, y, (scorers, refit_metric))
        if self.refit:
            start = time.perf_counter()
            best = clone(dict(self.best_params_), safe=False)
            best_estimator = clone(clone(self.estimator).set_params(**best)).fit(X, y, **params)
            self._keep_best(best_estimator, start)
        return None

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Score of the best estimator, by the scorer of the search; as scikit-learn's.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default=None
        **params : dict
            For the scorer, where metadata routing is enabled.

        Returns
        -------
        score : float
        """
        return super().score(X, row_values(y), **params)  # type: ignore[misc]

    def _lines(self, candidates: Sequence[Parameters], n_splits: int, scorers: Any) -> FitLines:
        """Print how many fits there would be one by one, as scikit-learn does; lines of each."""
        if self.verbose > 0:
            print(
                f"Fitting {n_splits} folds for each of {len(candidates)} candidates, totalling "
                f"{len(candidates) * n_splits} fits"
            )
        names = list(getattr(scorers, "_scorers", ["score"]))
        return FitLines(self.verbose, candidates, n_splits, names, self.return_train_score)

    def _keep_best(self, model: Any, start: float) -> None:
        """The best model, which was begun at a time of the clock."""
        self.best_estimator_ = model
        self.refit_time_ = time.perf_counter() - start
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_

    def _draw(self, X: Any, y: Any, groups: Any) -> Sequence[Split]:
        """The splits of ``cv``, drawn once."""
        cv, of_classes = self.cv, is_classifier(self.estimator)
        found = folds_elsewhere(cv, of_classes, X, y, groups)
        if found is not None:
            return found
        cv = check_cv(cv, y, classifier=of_classes)
        n_splits = cv.get_n_splits(X, y, groups)
        splits = draw_splits(cv, X, y, groups)
        if len(splits) != n_splits:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{n_splits} splits, got {len(splits)}"
            )
        return splits

    def _candidates(self) -> list[Parameters]:
        raise NotImplementedError

    def _conclude(
        self,
        found: SearchScores,
        candidates: Sequence[Parameters],
        splits: Sequence[Split],
        y: Any,
        scoring: tuple[Any, Any],
    ) -> None:
        """Report failures, then the results, and which candidate is the best.

        `scoring` are scorers and metric.
        """
        found.report(self.error_score)
        n_splits = len(splits)
        scorers, refit_metric = scoring
        if is_classifier(self.estimator) and not found.failures:
            warn_of_undefined(found.test, splits, y, getattr(scorers, "_scorers", scorers))
        results = self._format_results(  # type: ignore[attr-defined]
            candidates, n_splits, found.outputs()
        )
        self.multimetric_ = not found.is_single
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(found.test)  # type: ignore[attr-defined]
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(  # type: ignore[attr-defined]
                self.refit, refit_metric, results
            )
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        self.scorer_ = getattr(scorers, "_scorers", scorers)
        self.cv_results_ = results
        self.n_splits_ = n_splits


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
        cv = own.cv  # scikit-learn's splitters ask X for its number of rows only
        is_plain = cv is None or isinstance(cv, int) or type(cv).__module__.startswith("sklearn.")
        if not (is_partitioned or is_plain):
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
        with work.table.saving():
            for number in range(len(sides)):
                self._found.append(search_rows(search, work.table, sides[number]))

    @property
    def classes(self) -> Any:
        """Labels of the classes, of several targets a list; None for regression."""
        fitted = [found[1] for found in self._found if not isinstance(found, Exception)]
        return fitted[0].target.labels if fitted else None

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


class GridSearchCV(SharedSearch, sklearn.model_selection.GridSearchCV):
    """Search over all combinations of parameters, by cross-validation, growing as little as can be.

    A drop-in for :class:`sklearn.model_selection.GridSearchCV`, whose parameters and attributes
    these are. ``max_depth``, ``min_samples_split``, ``min_impurity_decrease``, ``max_leaf_nodes``,
    ``ccp_alpha``, and ``n_estimators`` of a forest, are decided on grown trees [SF] 3, however many
    values they have. Each combination of the *other* parameters is grown once, all splits together
    ([CV] 2.2.2), from one coded table. Of a boosted model, ``max_iter`` is what is decided later.

    Parameters
    ----------
    estimator : tree, forest or boosted model of dtrees, or a Pipeline that ends in a tree or forest
        Of a pipeline, the steps before the last are fitted once for each split and each of their
        settings, to the training rows only, and the last step's candidates grow together there.
        Others are handed to scikit-learn's own search.
    param_grid : dict or list of dict
        Values to try, by parameter.
    scoring : str, callable, list, tuple or dict, default=None
        One scorer or several; None: the estimator's ``score``.
    n_jobs : int, default=None
        For scikit-learn's own search. Trees grow on the estimator's ``n_jobs`` threads.
    refit : bool, str or callable, default=True
        Whether `best_estimator_` is fitted to all rows, and by which scorer it is the best.
    cv : int, cross-validation generator or iterable of (train, test), default=None
        None: 5 folds, stratified for classifiers.
    verbose : int, default=0
        1: the number of fits that a search by brute force would take, and for forests a bar of the
        trees that grow, on the standard error stream. Above 1: scikit-learn's line for each of
        these fits, when the scores of its growth are there; its time is its share of the growth.
    pre_dispatch : int or str, default="2*n_jobs"
        For scikit-learn's own search.
    error_score : "raise" or number, default=nan
        Score where a fit or a scorer fails.
    return_train_score : bool, default=False
        Whether `cv_results_` has scores of the training sides.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As scikit-learn's. ``mean_fit_time`` is the time of a growth, divided by the fits that it
        stands for.
    best_estimator_ : estimator
        Fitted to all rows. Its ``fit_report_`` is that of the growth that it stands in.
    best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_, multimetric_, classes_
        As scikit-learn's.

    See Also
    --------
    RandomizedSearchCV : The same for a sample of combinations.
    validation_surface : Scores over depth and rows of a node, without naming values.

    Notes
    -----
    For single trees and the scorers accuracy, balanced_accuracy, neg_log_loss, neg_brier_score,
    neg_mean_squared_error, neg_root_mean_squared_error, r2 and neg_mean_poisson_deviance, a further
    value of a limit costs next to nothing. f1, precision, recall and jaccard with their averages,
    matthews_corrcoef, and what `sklearn.metrics.make_scorer` makes of such functions, are computed
    by scikit-learn from the matrix of predicted and true classes, once for each different one (2
    ms). For forests and any other scorer, trees that are different cost a prediction of the
    held-out rows. Scores are weighted, as scikit-learn's, where ``sample_weight`` is given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import GridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"max_depth": [1, 2, 3, None], "ccp_alpha": [0.0, 0.01, 0.1]}
    >>> search = GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=10).fit(X, y)
    >>> len(search.cv_results_["params"])
    12
    """

    def _candidates(self) -> list[Parameters]:
        return list(ParameterGrid(self.param_grid))


class RandomizedSearchCV(SharedSearch, sklearn.model_selection.RandomizedSearchCV):
    """Search over a sample of combinations of parameters, growing as little as can be.

    A drop-in for :class:`sklearn.model_selection.RandomizedSearchCV`; see `GridSearchCV` for what
    is shared.

    Parameters
    ----------
    estimator : tree, forest or boosted model of dtrees
        Others are handed to scikit-learn's own search.
    param_distributions : dict or list of dict
        Values, or distributions with a method ``rvs``, by parameter.
    n_iter : int, default=10
        Number of combinations.
    random_state : int, RandomState or None, default=None
        Seed of the sample.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As for `GridSearchCV`.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_
        As for `GridSearchCV`.

    See Also
    --------
    GridSearchCV : All combinations.

    Examples
    --------
    >>> from scipy.stats import randint, uniform
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import DecisionTreeRegressor
    >>> from dtrees.model_selection import RandomizedSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> limits = {"min_samples_split": randint(2, 100), "ccp_alpha": uniform(0, 100)}
    >>> search = RandomizedSearchCV(DecisionTreeRegressor(), limits, n_iter=500, random_state=0)
    >>> len(search.fit(X, y).cv_results_["params"])
    500
    """

    def _candidates(self) -> list[Parameters]:
        return list(
            ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state)
        )
