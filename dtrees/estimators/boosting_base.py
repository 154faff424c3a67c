"""How a boosted model is fitted; what a fitted one answers stands in `fitted_boosting`.

    X ──────────▶ codebook, codes ─┐
    y, weights ─▶ numbers, codes ──┴─▶ Start ──▶ boost ──▶ trees of steps ──▶ forest_

What is known before the first tree is the business of `boosted_start`. Attributes are set in one go
when all trees stand; a fit that fails leaves the estimator as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dtrees.callbacks import BoostingFit, Callback, ProgressBar, check_callbacks, listening
from dtrees.coding.coded import CodedMatrix
from dtrees.core.grow.boosting import TAKEN_BYTES
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.binned import CodedRows
from dtrees.estimators.boosted_listening import (
    Iterations,
    Kept,
    check_goes_on,
    in_memory,
    kept_forest,
)
from dtrees.estimators.boosted_start import CodedTable, StartingBoosting
from dtrees.estimators.boosted_stopping import Watch, best_iteration
from dtrees.estimators.boosted_validation import GivenRows
from dtrees.estimators.fit_plan import TablePlan
from dtrees.estimators.growing_forest import all_or_nothing
from dtrees.estimators.tree_view import columns_tested, read_only
from dtrees.parallel import (
    BoostedWork,
    Choice,
    FitStatistics,
    LocalRunner,
    admitted,
    boost_in_place,
    place_of_boosting,
    threaded,
)


class BaseBoosting(StartingBoosting):
    """What boosted models of classes and of numbers share; not meant to be used itself."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `DecisionTreeClassifier.fit`. Codes of a Dask collection come to this process.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. None: every row has weight one.
        X_val : table of shape (n_val, n_columns), default=None
            Rows that early stopping scores, instead of some of `X`; in memory. They are not grown
            from, and have no part in the codes.
        y_val : array-like of shape (n_val,), default=None
            Their target; of a classifier, labels that `y` has.
        sample_weight_val : array-like of shape (n_val,), default=None
            Their weights in the score. Class weights do not concern them.
        callbacks : sequence of dtrees.callbacks.Callback, default=None
            Hear of every iteration in this thread, and may stop the fit; the iterations so far are
            then the model. In the replicated regime they hear when all iterations are grown.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be; the estimator is then as it was.
            `X_val` is given without `y_val`, or with ``early_stopping=False``.
        TypeError
            `callbacks` are no callbacks, `X_val` is a Dask collection, or a scorer asks for rows of
            one.
        dtrees.exceptions.ClusterError
            A Dask cluster is asked for by ``regime``, or has the collection, and cannot be used.
        dtrees.exceptions.TableTooLargeError
            The codes of a Dask collection do not fit this process, or the table no worker.

        Notes
        -----
        Costs one coding of the table and, for each tree, about O(rows x columns x log leaves).
        """
        self._check_parameters()
        shown = GivenRows.of(X_val, y_val, sample_weight_val, self.early_stopping)
        callbacks, name = check_callbacks(callbacks), type(self).__name__
        place, stats = place_of_boosting(self.regime, name), FitStatistics()
        if self.verbose > 0:
            callbacks = [ProgressBar(), *callbacks]
        there = kept_forest(self)
        plan, run = TablePlan(self), threaded(self.n_jobs)
        X, y, sample_weight = admitted(X, {"y": y, "sample_weight": sample_weight}, stats)
        table, values = plan.read(X, y)
        target = self._encode_target(values, sample_weight)
        seed = plan.seed() if there is None else self._fit_seed
        sides = self._sides(values, target, seed, shown is not None)
        with stats.phase("coding"):
            book, coded = plan.code(table, seed, run, stats, sample_weight)
            assert isinstance(coded, CodedMatrix)
        kept = None
        if there is not None:
            check_goes_on(self, book, target.classes, self._loss())
            kept = Kept(there, self._initial, book, in_memory(table))
        given = CodedTable(X, values, book, coded, CodedRows(coded), seed)
        start = self._start(
            given, target, sides, None if kept is None else (kept.initial, kept.raw_of(run)), shown
        )
        del sides  # eight bytes a row
        watch, growing = start.watch, start.growing
        n_there = 0 if kept is None else self.n_iter_
        is_over = kept is not None and watch is not None and kept.shown_to(watch, run)
        growing = replace(
            growing,
            n_iterations=0 if is_over else self.max_iter - n_there,
            first=n_there,
            n_there=n_there * len(growing.initial),
        )
        fit = BoostingFit(
            self,
            range(n_there, n_there + growing.n_iterations),
            [] if kept is None else list(kept.forest.trees),
            len(growing.initial),
            [] if watch is None else watch.scores,
        )
        with all_or_nothing(self):
            iterations = Iterations(fit, callbacks, watch, growing, start.rows)
            return self._grow(start.learned, iterations, run, place, stats)

    def _grow(
        self,
        learned: dict[str, Any],
        iterations: Iterations,
        run: LocalRunner,
        place: Choice,
        stats: FitStatistics,
    ) -> Any:
        """Grow the iterations that are missing, and become the model."""
        fit, growing, rows = iterations.fit, iterations.growing, iterations.rows
        has_missing = rows.coded.missing_columns()
        with listening(fit, iterations.callbacks):
            trees = list(fit.trees)
            n_kept = len(trees)
            if growing.n_iterations > 0:
                watch = iterations.watch
                takes_codes = place.regime == "local" and rows.coded.u8.nbytes >= TAKEN_BYTES
                takes_codes = takes_codes and not (watch is not None and watch.reads_codes)
                work = BoostedWork(rows, growing, learned["codebook_"].thresholds, takes_codes)
                told = iterations if iterations.is_heard else None
                found = boost_in_place(work, place, run, told, iterations.ends, stats)
                trees += found if place.regime == "local" else iterations.replay(found)
            before = self._saw_missing if n_kept > 0 else False
            self._learn(learned, trees, iterations.watch, has_missing | before)
            self._fit_report = stats.report()
        return self

    def _learn(
        self,
        learned: dict[str, Any],
        trees: Sequence[Tree],
        watch: Watch | None,
        has_missing: np.ndarray,
    ) -> None:
        """Become the model of these trees; `watch` has the scores of early stopping.

        has_missing : bool (n_columns,), of columns that trees test at least
        """
        if watch is not None and self.use_best_model:
            n_values = len(watch.predictor.initial)
            trees = trees[: best_iteration(watch.scores) * n_values]
        none = np.array([])
        found = none if watch is None else np.array(watch.scores)
        is_apart = watch is None or watch.is_apart
        self._forget_at_times()
        self.__dict__.update(
            learned,
            codebook_=learned["codebook_"].without_values(),  # the trees have their thresholds
            forest_=Forest(tuple(trees)),
            _saw_missing=read_only(has_missing & columns_tested(trees, len(has_missing))),
            train_score_=none if is_apart else found,
            validation_score_=found if is_apart else none,
        )
