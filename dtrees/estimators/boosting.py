"""Gradient boosting: parameters and defaults, the fit of a model, and what a fitted one answers.

    X ──────────▶ codebook, codes ─┐
    y, weights ─▶ numbers, codes ──┴─▶ Start ──▶ boost ──▶ trees of steps ──▶ forest_

What is known before the first tree is the business of `dtrees.estimators.boosted_start`; how a
model grows stands in `dtrees.core.grow.boosting`. Attributes are set in one go when all trees
stand; a fit that fails leaves the estimator as it was.

Trees stand iteration by iteration, and within an iteration class by class
(`dtrees.core.predict.raw`). Each is a regression tree of steps, so it is an estimator of its
own, that predicts its step::

    estimators_     class 0   class 1   class 2
    iteration 0     tree 0    tree 1    tree 2
    iteration 1     tree 3    tree 4    tree 5

A model file holds the name of the loss and its quantile (of Huber's, that of its width; of
Tweedie's, the power), and not the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dtrees import losses
from dtrees._warnings import warn
from dtrees.callbacks import Callback, ProgressBar, check_callbacks, listening
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.outputs import raw_by_output
from dtrees.coding.tables import row_values
from dtrees.coding.target import Ask, Target, TargetUnits, exact_bincount
from dtrees.constraints import (
    COLUMN_RULES,
    RANDOM_STATE,
    ArrayLike,
    ArrayOf,
    Boolean,
    CallableObject,
    Constraint,
    Having,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RealIn,
    checked,
)
from dtrees.core.data.scale import units_of
from dtrees.core.grow.boosting import TAKEN_BYTES, boost
from dtrees.core.losses.losses import CLASSES, NUMBERS, Loss, OwnLoss, initial_of_classes
from dtrees.core.losses.outputs import AnyLoss, OutputLosses, losses_by_output
from dtrees.core.model.tree import Forest, Tree
from dtrees.estimators import base
from dtrees.estimators.base import (
    LEARNS_CLASSES,
    LEARNS_COLUMNS,
    LEARNS_TARGETS,
    MOST,
    TREE_CONSTRAINTS,
    BaseModel,
)
from dtrees.estimators.boosted_elsewhere import begin_elsewhere
from dtrees.estimators.boosted_init import (
    check_arguments,
    check_rows,
    fitted_init,
    is_model,
    raw_of_init,
    with_starts,
)
from dtrees.estimators.boosted_start import (
    JOINT,
    NO_EVALS,
    ONE_EACH,
    UNDRAWN,
    CodedTable,
    Start,
    drawn_columns,
    sides_of,
    start_of,
)
from dtrees.estimators.boosted_stopping import (
    Curves,
    Iterations,
    Watch,
    best_iteration,
    check_same_start,
    going_on,
    kept_forest,
    kept_predictions,
)
from dtrees.estimators.docstrings import documented
from dtrees.estimators.eval_sets import EvalSets
from dtrees.estimators.fit_plan import FitPlan, RowsElsewhere
from dtrees.estimators.fitted_sets import model_of_trees
from dtrees.estimators.other_names import names_others
from dtrees.estimators.prediction import BoostedPredictor, offsets_of, side_by_side
from dtrees.estimators.resume import (
    Unfinished,
    bring_along,
    brought_along,
    facts_of,
    saved_trees,
    seed_of,
    unfinished_fit,
)
from dtrees.estimators.tree_view import columns_tested, read_only
from dtrees.estimators.trees import DecisionTreeRegressor
from dtrees.exceptions import ClusterError
from dtrees.export.books import expect
from dtrees.export.parts import Parts, check_target_names
from dtrees.inspection.importance import summed_importances
from dtrees.parallel import (
    REGIMES,
    Checkpoint,
    Choice,
    CodedPartitions,
    FitStatistics,
    LocalRunner,
    SpreadModel,
    admitted,
    admitted_where_they_are,
    boost_partitioned,
    computed,
    is_lazy,
    map_rows,
    place_of_boosting,
    place_of_rows,
    threaded,
)

FLOATS = ArrayOf(1, np.dtype(np.float64))


class BaseBoosting(BaseModel):
    """What boosted models of classes and of numbers share; not meant to be used itself."""

    _adds_steps = True
    _takes_outputs = True
    _recursion_class = "BaseHistGradientBoosting"
    _tree_class = DecisionTreeRegressor
    _losses: ClassVar[Mapping[str, Loss]]
    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
        "learning_rate": (RealIn(0, math.inf, "()"),),
        "max_iter": (IntegerIn(1),),
        "max_leaf_nodes": (IntegerIn(2), Nothing()),
        "max_depth": (IntegerIn(1), Nothing()),
        "min_samples_split": (IntegerIn(2),),
        "min_samples_leaf": (IntegerIn(1),),
        "min_child_weight": (RealIn(0, math.inf, "[)"),),
        "min_split_gain": (RealIn(0, math.inf, "[)"),),
        "l2_regularization": (RealIn(0, math.inf, "[)"),),
        "l1_regularization": (RealIn(0, math.inf, "[)"),),
        "max_delta_step": (RealIn(0, math.inf, "[)"),),
        "path_smooth": (RealIn(0, math.inf, "[)"),),
        "multi_strategy": (OneOf((ONE_EACH, JOINT)),),
        "subsample": (RealIn(0, 1, "(]"),),
        "oob_score": (Boolean(),),
        "init": (OneOf(("zero",)), Having("predict"), Nothing()),
        "colsample_bytree": (RealIn(0, 1, "(]"),),
        "feature_weights": (ArrayLike(), InstanceOf(dict, "dict"), Nothing()),
        "max_features": TREE_CONSTRAINTS["max_features"],
        "max_bins": (IntegerIn(2), Nothing()),
        "categorical_features": (OneOf(("from_dtype",)), ArrayLike(), Nothing()),
        **COLUMN_RULES,
        "handle_unknown": (OneOf(("missing", "majority", "error")),),
        "category_penalty": (RealIn(0, math.inf, "[)"),),
        "early_stopping": (OneOf(("auto",)), Boolean()),
        "scoring": (InstanceOf(str, "str"), CallableObject(), Nothing()),
        "validation_fraction": (IntegerIn(1), RealIn(0, 1, "()", integers=False), Nothing()),
        "n_iter_no_change": (IntegerIn(1),),
        "tol": (RealIn(0, math.inf, "[)"),),
        "use_best_model": (Boolean(),),
        "warm_start": (Boolean(),),
        "verbose": (InstanceOf(Integral, "int"),),
        "regime": (OneOf(REGIMES), Nothing()),
        "random_state": RANDOM_STATE,
        "n_jobs": (InstanceOf(Integral, "int"), Nothing()),
    }
    _learns: ClassVar = {
        **LEARNS_COLUMNS,
        **LEARNS_TARGETS,
        "n_trees_per_iteration_": (IntegerIn(1, MOST),),
        "do_early_stopping_": (InstanceOf(bool, "bool"),),
        "train_score_": (FLOATS,),
        "validation_score_": (FLOATS,),
        "_initial": (FLOATS,),
        "_fit_loss": (InstanceOf(dict, "dict"),),  # in files
        "_fit_seed": (IntegerIn(0, MOST),),
        "_curves": (InstanceOf(dict, "dict"),),
        "_oob_before": (InstanceOf(float, "float"),),  # the loss; absent: not asked for
        "_has_offset": (InstanceOf(bool, "bool"),),  # of the fit; absent: no
        "init_": (Having("predict"),),  # where `init` is a model
        "_fit_facts": (InstanceOf(dict, "dict"),),  # of an unfinished one
    }
    _learns_at_times = BaseModel._learns_at_times | (
        {"_curves", "_oob_before", "_has_offset", "_fit_facts", "init_"}
    )

    loss: Any
    learning_rate: float
    max_iter: int
    min_samples_split: int
    min_samples_leaf: int
    min_child_weight: float
    min_split_gain: float
    l2_regularization: float
    l1_regularization: float
    max_delta_step: float
    path_smooth: float
    multi_strategy: str
    subsample: float
    oob_score: bool
    init: Any
    colsample_bytree: float
    max_features: float | str | None
    category_penalty: float
    early_stopping: str | bool
    scoring: Any
    validation_fraction: float | None
    n_iter_no_change: int
    tol: float
    use_best_model: bool
    warm_start: bool
    verbose: int
    regime: str | None
    train_score_: np.ndarray
    validation_score_: np.ndarray
    n_trees_per_iteration_: int
    _initial: np.ndarray
    _fit_loss: AnyLoss

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        init_score: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        init_score_val: Any = None,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        eval_sample_weight: Sequence[Any] | None = None,
        eval_init_score: Sequence[Any] | None = None,
        eval_metric: Any = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `DecisionTreeClassifier.fit`. Codes of a Dask collection stay on the workers of
            a cluster, and the model grows there, unless ``regime="local"``.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            The target. Each of several ones has trees of its own: those of a model of it alone,
            but for what early stopping decides, by the mean over targets. Of a Dask collection,
            several targets come to this process.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. None: every row has weight one.
        init_score : array-like of shape (n_rows,) or (n_rows, n_values), default=None
            Raw predictions that the rows begin with, as of LightGBM (``base_margin`` of XGBoost):
            numbers, their logarithms (Poisson, gamma), or log odds; of three classes or more, one
            for each; of several targets, those of all, side by side. The model then has no constant
            of its own. It knows only what it adds, so give those of other rows to `predict`. None:
            rows begin with the best constant.
        X_val : table of shape (n_val, n_columns), default=None
            Rows that early stopping scores, instead of some of `X`: the set "validation". They are
            not grown from, and have no part in the codes. Dask collections, if `y_val` is one, too,
            stay on the workers where the model grows there and is scored by the loss only.
            Otherwise they come to this process.
        y_val : array-like of shape (n_val,) or (n_val, n_targets), default=None
            Their target; of a classifier, labels that `y` has.
        sample_weight_val, init_score_val : array-like of shape (n_val,), default=None
            Their weights in the score, and raw predictions that they begin with. Class weights do
            not concern them.
        eval_set : list of pairs (X, y), default=None
            More rows to be scored, each pair as `X_val` and `y_val`. A pair that holds the rows of
            `X` and `y` are the training rows. The first set of other rows may end the fit, by the
            score of the parameter ``scoring``. With ``early_stopping=False`` none does.
        eval_names : list of str, default=None
            Names of these sets; None: "valid_0", "valid_1", ..., and "training".
        eval_sample_weight, eval_init_score : list of array-like or None, default=None
            Of each set; the training rows have those of the fit.
        eval_metric : str, scorer, list of these, or dict of scorers by name, default=None
            By what sets are scored beside ``scoring``: "loss", scorers of scikit-learn, or
            functions of a model, `X` and `y`. See `evals_result_`.
        callbacks : sequence of dtrees.callbacks.Callback, default=None
            Hear of every iteration in this thread, and may stop the fit; the iterations so far are
            then the model. Where it grows on a cluster, they hear about once a second.

        checkpoint : str or path, default=None
            A folder for the trees of finished iterations, or its URL, as of forests. The same fit
            goes on with those that are there: rows are scored again, and callbacks hear of new
            iterations only. ``max_iter`` and what is scored may be others.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be, or `checkpoint` holds trees of another
            fit; the estimator is then as it was. `X_val` is given without `y_val`, or with
            ``early_stopping=False``. Some of the rows that are scored have an `init_score`, and
            others have none; or only one of two fits with ``warm_start`` has it. Two sets or two
            metrics have one name, there are no rows to be scored by `eval_metric`, or the score
            that may end the fit is nan throughout. Rows that stay on their workers are to be scored
            by something else than the loss.
        TypeError
            `callbacks` are no callbacks, `eval_set` is no list of pairs, or a scorer asks for rows
            of a Dask collection.
        dtrees.exceptions.ClusterError
            A Dask cluster is in force, or asked for by ``regime``, and cannot be used. The error's
            ``estimator`` is a model of the iterations that were complete, if there are any, and its
            `resume` goes on.
        dtrees.exceptions.TableTooLargeError
            The codes of a Dask collection do not fit this process, or the table no worker.
        dtrees.exceptions.ModelFileError
            `checkpoint` is damaged.

        Notes
        -----
        Costs one coding of the table and, for each tree, about O(rows x columns x log leaves).
        """
        given = dict(locals())
        del given["self"]
        return self._fit(None, **given)

    def resume(self, X: Any, y: Any, sample_weight: Any = None, **given: Any) -> Self:
        """Go on with a fit that has ended early on a cluster.

        For the model that `dtrees.exceptions.ClusterError` brings along as ``estimator``, of the
        iterations that were complete; as ``resume`` of forests.

        Parameters
        ----------
        X, y, sample_weight
            Those of the fit that ended early.
        **given : dict
            Other arguments of `fit`.

        Returns
        -------
        self : object
            The model that the fit would have made, bit for bit.

        Raises
        ------
        ValueError
            This is no model that a fit left unfinished, or the data or parameters are others than
            in that fit; the message says what differs. The estimator is then as it was before.
        dtrees.exceptions.ClusterError
            As for `fit`, with the iterations that there are now.
        """
        with brought_along(self):
            return self._fit(unfinished_fit(self), X, y, sample_weight, **given)

    def _fit(
        self,
        unfinished: Unfinished | None,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        init_score: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        init_score_val: Any = None,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        eval_sample_weight: Sequence[Any] | None = None,
        eval_init_score: Sequence[Any] | None = None,
        eval_metric: Any = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Grow the iterations that are missing, and become the model."""
        self._check_parameters()
        own = X_val, y_val, sample_weight_val, init_score_val
        listed = eval_set, eval_names, eval_sample_weight, eval_init_score
        evals, stats, begins = NO_EVALS, FitStatistics(), is_model(self.init)
        stay = partial(
            admitted_where_they_are, stats=stats, regime=self.regime, regimes=REGIMES[1:]
        )
        if any(each is not None for each in (*own, *listed, eval_metric)):
            of_fit = X, y, sample_weight, init_score
            is_here = begins or (self.warm_start and hasattr(self, "forest_"))
            of_evals = None if is_here else stay
            evals = EvalSets.of(of_fit, own, listed, eval_metric, self, of_evals)
        if begins:
            check_arguments((init_score, init_score_val, eval_init_score), (X, y))
        callbacks = [] if callbacks is None else check_callbacks(callbacks)
        if self.verbose > 0:
            callbacks = [ProgressBar(), *callbacks]
        place = place_of_boosting(self.regime)
        there = kept_forest(self) if self.warm_start and unfinished is None else None
        if there is not None:
            check_same_start(self, begins, init_score is not None)
        folder = None if checkpoint is None else Checkpoint(checkpoint)
        plan, run = FitPlan(self), threaded(self.n_jobs)
        of_rows = {"y": y, "sample_weight": sample_weight, "init_score": init_score}
        may_stay = there is None and evals.may_be_elsewhere(self)
        admit = stay if may_stay else partial(admitted, stats=stats)
        X, y, sample_weight, init_score = admit(X, of_rows)
        is_new = there is None and unfinished is None
        seed = seed_of(self, folder) if is_new else self._fit_seed
        table, values, offset, begun, is_shown = X, y, None, None, len(evals.sets) > 0
        target: Target
        if is_lazy(y):
            columns = {"y": y, "sample_weight": sample_weight, "init_score": init_score}
            sample_weight = RowsElsewhere.of(self, X, columns, stats)
            target = sample_weight.target
            sides, begun = begin_elsewhere(self, sample_weight, seed, is_shown, stats)
        else:
            table, values = plan.read(X, y)
            target = plan.target(values, sample_weight)
            if isinstance(values, list):
                values = side_by_side(values)
            if init_score is not None:
                offset = offsets_of(init_score, target.n_rows, sum(raw_by_output(target)))
            sides = sides_of(self, values, target, seed, is_shown)
            if begins:
                check_rows(sides.loss, target)
                if there is None:
                    own_init = fitted_init(self.init, X, values, target, sides, sample_weight)
                else:
                    own_init = self.init_
                n_classes = target.n_classes if target.kind == "classification" else 0
                raw_of = partial(raw_of_init, own_init, sides.loss, n_classes)
                offset, evals = raw_of(X), with_starts(evals, raw_of)
        with stats.phase("coding"):
            book, coded = plan.code(table, seed, run, stats, sample_weight, target)
        here = coded if isinstance(coded, CodedMatrix) else None
        place, coded = place_of_rows(place, coded)
        here = coded if isinstance(coded, CodedMatrix) else here
        kept = None
        if there is not None:
            kept = kept_predictions(self, book, target, table, offset, run)
        given = CodedTable(X, values, book, coded, seed, offset)
        start = start_of(self, given, target, sides, kept, evals, run, begun)
        if begins:
            start.learned["init_"] = own_init
        del sides  # eight bytes a row
        if there is not None:
            start = going_on(self, start, table, run)
        kept_trees = [] if there is None else list(there.trees)
        codes = book, coded if here is None else here, target, seed
        begin = {**start.facts, "kept": len(kept_trees)}
        facts = partial(facts_of, self, codes, start=begin)
        saved = saved_trees(folder, facts, codes, stats, unfinished, kept_trees)
        earlier = [] if saved is None else saved.trees()[0][len(kept_trees) :]
        heard = None
        is_spread = isinstance(coded, CodedPartitions)
        if start.watch is not None or callbacks or saved is not None or is_spread:
            heard = Iterations(self, start, kept_trees, callbacks, here, earlier, saved)
            if earlier and not is_spread:
                start = heard.begin(start)
        listens = listening(heard.fit, callbacks) if heard is not None else nullcontext()
        with listens, nullcontext() if saved is None else saved.saving():
            try:
                return self._grow(start, there, heard, run, place, stats)
            except ClusterError as error:
                self._bring_along(error, start, heard, facts, stats)
                raise

    def _grow(
        self,
        start: Start,
        there: Forest | None,
        heard: Iterations | None,
        run: LocalRunner,
        place: Choice,
        stats: FitStatistics,
    ) -> Self:
        """Grow the iterations that are missing, and become the model."""
        rows, growing, watch = start.rows, start.growing, start.watch
        thresholds = start.learned["codebook_"].thresholds
        coded: Any = rows.coded
        is_spread = isinstance(coded, CodedPartitions)
        has_missing = np.zeros(coded.n_columns, dtype=bool)
        if not is_spread:
            has_missing = coded.missing_columns()  # growth may take the codes
        trees = [] if there is None else list(there.trees)
        if growing.n_iterations > 0:
            stats.regime, stats.reason = place.regime, place.reason
            with stats.phase("growth"):
                if is_spread:
                    assert heard is not None
                    self._grow_elsewhere(start, heard, stats)
                    has_missing = coded.facts.has_missing
                else:
                    takes_codes = rows.coded.u8.nbytes >= TAKEN_BYTES
                    takes_codes = takes_codes and not (watch is not None and watch.reads_codes)
                    trees += boost(
                        rows,
                        growing,
                        thresholds,
                        run.led,
                        run.n_threads,
                        run.cancelled.is_set,
                        heard,
                        takes_codes,
                    )
        if heard is not None:
            trees = heard.fit.trees
        if there is not None:
            has_missing = has_missing | self._saw_missing
        self._learn(start.learned | {"_fit_report": stats.report()}, trees, watch, has_missing)
        return self

    def _bring_along(
        self,
        error: ClusterError,
        start: Start,
        heard: Iterations | None,
        facts: Callable[[], dict[str, Any]],
        stats: FitStatistics,
    ) -> None:
        """Give an error the model of the iterations that are complete, if there are any."""
        trees = [] if heard is None else heard.fit.trees[: heard.n_heard]
        if not trees or start.growing.first > 0:
            return  # those that a warm start has kept are in the model
        made = self._unfitted()
        learned = start.learned | {"_fit_report": stats.report(), "_fit_facts": facts()}
        everywhere = np.ones(start.rows.coded.n_columns, dtype=bool)
        made._learn(learned, trees, start.watch, everywhere)
        if made.regime == "replicated":  # on a cluster that may be gone
            made.regime = None
        bring_along(error, made, made.n_iter_, self.max_iter, "iteration")

    def _grow_elsewhere(self, start: Start, heard: Iterations, stats: FitStatistics) -> None:
        """Grow iterations where the rows are, up to the last one wanted."""
        rows, watch = start.rows, start.watch
        scores = None if watch is None else watch.elsewhere()
        coded: Any = rows.coded
        thresholds = start.learned["codebook_"].thresholds
        about = start.growing, thresholds, start.begun.held, scores
        others = None if watch is None or watch.others is None else watch.others.parts
        model = SpreadModel(coded, rows, *about, heard.earlier, start.begun.elsewhere, others)
        there = heard.earlier
        if scores is None and len(heard.fit.numbers) == 0:
            heard.replay(there)
            return
        with closing(boost_partitioned([model], stats)) as grown:
            for _, some, told in grown:
                if watch is not None and told is not None:
                    watch.hear(told)
                heard.replay([*there, *some])
                if heard.is_over:
                    break
                there = []

    def _learn(
        self,
        learned: dict[str, Any],
        trees: Sequence[Tree],
        watch: Watch | None,
        has_missing: np.ndarray,
    ) -> None:
        """Become the model of these trees; `watch` has the scores of rows.

        has_missing : bool (n_columns,), of columns that trees test at least
        """
        none = found = np.array([])
        is_apart = watch is None or watch.is_apart
        if watch is not None:
            found = np.array(watch.scores)
            learned = learned | {"_curves": watch.curves()}
            if watch.sets[-1].undrawn is not None:
                learned["_oob_before"] = -watch.sets[-1].scores["loss"][0]
            decides = watch.decides and "_fit_facts" not in learned
            if decides and np.isnan(found[1:]).all():
                first = watch.sets[0]
                raise ValueError(
                    f"The score {next(iter(first.measures))!r} of the rows {first.name!r} is nan "
                    "after each iteration, so that none is the best one. Set another scoring, give "
                    "other rows, or set early_stopping=False."
                )
            if decides and self.use_best_model:
                trees = trees[: best_iteration(found) * learned["n_trees_per_iteration_"]]
        self._forget_at_times()
        self.__dict__.update(
            learned,
            codebook_=learned["codebook_"].without_values(),  # the trees have their thresholds
            forest_=Forest(tuple(trees)),
            _saw_missing=read_only(has_missing & columns_tested(trees, len(has_missing))),
            train_score_=none if is_apart else found,
            validation_score_=found if is_apart else none,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.oob_score and self.subsample == 1.0:
            raise ValueError(
                "oob_score=True scores the rows that an iteration has not drawn, and subsample=1.0 "
                "draws all. Set subsample below 1."
            )

    def _loss(self) -> Loss | OwnLoss:
        """The loss that the parameters name."""
        raise NotImplementedError

    def _begin(
        self, loss: Loss | OwnLoss, target: Target, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        """Raw predictions before the first tree, float64 (n_values,), of rows that all count.

        y : float64 or uint8 (n_rows,), as the loss wants it
        weight : float64 (n_rows,) or None
        """
        raise NotImplementedError

    def _predictor(self) -> BoostedPredictor:
        return BoostedPredictor(
            self.codebook_,
            getattr(self, "classes_", None),
            type(self).__name__,
            self.forest_,
            self._initial,
            self._fit_loss,
        )

    def _from(self, method: str, X: Any, init_score: Any) -> Any:
        """The predictor's answer for rows that begin with raw predictions, if any."""
        if init_score is None and "init_" not in self.__dict__:
            return self._answer(method, X)
        check_is_fitted(self)
        init_score = self._start_of(X, init_score)
        if is_lazy(X):
            return map_rows(self._predictor(), method, X, init_score)
        (found,) = map(row_values, computed(init_score))
        return self._predictor().begun(method, X, found, threaded(self.n_jobs))

    def _start_of(self, X: Any, init_score: Any) -> Any:
        """What rows begin with: as given, or what the model that begins says."""
        if "init_" not in self.__dict__:
            return init_score
        check_arguments([init_score], [X])
        classes = getattr(self, "classes_", ())
        return raw_of_init(self.init_, self._fit_loss, len(classes), X)

    def predict(self, X: Any, init_score: Any = None) -> np.ndarray:
        """Predict the class, or the number, of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes_), default=None
            Raw predictions that the rows begin with, as at fit. None: zeros. Those of a Dask
            collection have its partitions, or `X` is an array of known lengths.

        Returns
        -------
        y : array of shape (n_rows,) or (n_rows, n_targets)
            The class of the largest share, of equal ones the first; dtype of the labels at fit. Or
            a number: what the steps add up to, or its exponential.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError
            `X` is a Dask collection of unknown lengths, and `init_score` is in memory.
        ValueError
            Columns are not those of the fit, or `init_score` has another shape or partitions.
        """
        return self._from("predict", X, init_score)

    def _staged(self, method: str, X: Any, init_score: Any) -> Iterator[Any]:
        """The answers of 1, 2, ... iterations; the table is checked at once."""
        check_is_fitted(self)
        init_score = self._start_of(X, init_score)
        predictor, n_trees = self._predictor(), self.n_trees_per_iteration_
        if is_lazy(X):
            ends = range(n_trees, len(self.forest_) + 1, n_trees)
            return (map_rows(predictor.first(end), method, X, init_score) for end in ends)
        run, offset = threaded(self.n_jobs), None
        table = predictor.check(X, run)
        if init_score is not None:
            (found,) = map(row_values, computed(init_score))
            offset = offsets_of(found, table.n_rows, len(self._initial))
        return (predictor.of_raw(method, raw) for raw in predictor.staged(table, run, offset))

    def staged_predict(self, X: Any, init_score: Any = None) -> Iterator[np.ndarray]:
        """Predict after each iteration.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. Of a Dask array or data frame, each answer is lazy, and costs a
            prediction of its own.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes_), default=None
            As for `predict`.

        Yields
        ------
        y : array of shape (n_rows,)
            As `predict` of a model of 1, 2, ... iterations.
        """
        return self._staged("predict", X, init_score)

    @property
    def is_categorical_(self) -> np.ndarray | None:
        """Which columns have categories, bool (n_features_in_,); None: there are none."""
        check_is_fitted(self)
        found = np.zeros(self.codebook_.n_columns, dtype=bool)
        found[list(self.codebook_.categories)] = True
        return found if found.any() else None

    @property
    def n_iter_(self) -> int:
        """Number of iterations."""
        check_is_fitted(self)
        return len(self.forest_) // self.n_trees_per_iteration_

    @checked(n=(IntegerIn(1),))
    def first_iterations(self, n: int) -> Self:
        """Return the model of the first `n` iterations, fitted; ``model[:n]`` is another way.

        Parameters
        ----------
        n : int
            From 1 to `n_iter_`.

        Returns
        -------
        model : object
            Of the same class, with ``max_iter=n``. It shares the trees: O(n_trees). Its scores end
            with iteration `n`, which need not be the best one.

        Raises
        ------
        ValueError
            The model has fewer iterations.
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        if n > self.n_iter_:
            raise ValueError(f"n must be at most n_iter_={self.n_iter_}. Got {n} instead.")
        made: Self = shortened(clone(self).set_params(max_iter=int(n)), self, int(n))
        return made

    def __getitem__(self, iterations: slice) -> Self:
        """The model of the first iterations: ``model[:n]``."""
        is_slice = isinstance(iterations, slice) and iterations.step in (None, 1)
        if not is_slice or iterations.start not in (None, 0):
            raise TypeError(
                f"{type(self).__name__} takes slices of its first iterations only, as model[:10]. "
                f"Got {iterations!r}."
            )
        check_is_fitted(self)
        return self.first_iterations(len(range(self.n_iter_)[iterations]))

    @property
    def best_iteration_(self) -> int | None:
        """Iterations after which rows were scored highest; None without early stopping."""
        check_is_fitted(self)
        scores = self._scores
        return best_iteration(scores) if len(scores) > 0 else None

    @property
    def best_score_(self) -> float | None:
        """The score of `best_iteration_`, as in `evals_result_`; None without early stopping."""
        best, curves = self.best_iteration_, self.evals_result_
        if best is None:
            return None
        of_first = next(iter(curves.values()), [self.scoring])
        sign = -1.0 if next(iter(of_first)) == "loss" else 1.0
        return sign * float(self._scores[best])

    @property
    def evals_result_(self) -> Curves:
        """Curves by name of rows and of measure, as of LightGBM: lists, one value an iteration."""
        check_is_fitted(self)
        return first_values(self.__dict__.get("_curves", {}))

    @property
    def max_features_(self) -> int:
        """Number of columns drawn at each node."""
        check_is_fitted(self)
        return drawn_columns(self, self.n_features_in_)

    @property
    def oob_scores_(self) -> np.ndarray:
        """Mean loss after each iteration of the rows that it has not drawn, float64 (n_iter_,)."""
        return self._undrawn_losses()[1:]

    @property
    def oob_score_(self) -> float:
        """The last of `oob_scores_`."""
        return float(self.oob_scores_[-1])

    @property
    def oob_improvement_(self) -> np.ndarray:
        """By how much each of `oob_scores_` is less than the one before it, float64 (n_iter_,)."""
        return -np.diff(self._undrawn_losses())

    def _undrawn_losses(self) -> np.ndarray:
        """Those of the rows of the first iteration before it, and then `oob_scores_`."""
        check_is_fitted(self)
        curve = self.__dict__.get("_curves", {}).get(UNDRAWN, {}).get("loss")
        if curve is None or "_oob_before" not in self.__dict__:
            raise AttributeError("Scores out of bag need oob_score=True and subsample < 1 at fit.")
        return np.array([self._oob_before, *curve[: self.n_iter_]])

    def _undrawn_scores(self, n_iterations: int) -> list[float]:
        """What iterations that stay have scored: zeros, where that is not known."""
        if "_oob_before" not in self.__dict__:
            return [0.0] * (n_iterations + 1)
        scores: list[float] = (-self._undrawn_losses()).tolist()
        return scores

    @property
    def _scores(self) -> np.ndarray:
        """Of early stopping, float64 (iterations that were grown + 1,); or empty."""
        return self.validation_score_ if len(self.validation_score_) > 0 else self.train_score_

    def _n_iter_of(self, max_iter: int) -> int:
        """Iterations of the model that has grown no more than so many."""
        scores = self._scores[: max_iter + 1]
        is_cut = len(scores) > 0 and self.use_best_model
        return best_iteration(scores) if is_cut else min(max_iter, self.n_iter_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every column in what splits take off the loss of the training rows.

        float64 (n_features_in_,).
        """
        check_is_fitted(self)
        return summed_importances(self.forest_.trees)

    def __sklearn_is_fitted__(self) -> bool:
        return "forest_" in self.__dict__

    @property
    def estimators_(self) -> np.ndarray:
        """The trees as fitted `DecisionTreeRegressor`, object (n_iter_, n_trees_per_iteration_).

        Each predicts its steps, `learning_rate` included. Made at the first look.
        """
        check_is_fitted(self)
        made = self._trees_as_estimators()
        found = np.empty(len(made), dtype=object)
        found[:] = made
        return found.reshape(-1, self.n_trees_per_iteration_)

    of_target = base.of_target

    def _of_target(self, number: int) -> Self:
        assert isinstance(self._fit_loss, OutputLosses)
        (loss, own), n_trees = self._fit_loss.own[number], self.n_trees_per_iteration_
        trees = self.forest_.trees
        if n_trees < len(self._initial):
            trees = tuple(tree.of_output(k) for tree in trees for k in range(own.start, own.stop))
        else:
            firsts = range(0, len(trees), n_trees)
            trees = tuple(tree for at in firsts for tree in trees[at : at + n_trees][own])
        made: Self = self._unfitted()
        if isinstance(self.class_weight, list):
            made.class_weight = self.class_weight[number]
        learned = self._learned_attributes()
        for name in ("_curves", "_oob_before", "target_names_in_"):
            learned.pop(name, None)
        for name in ("classes_", "n_classes_"):
            if name in learned:
                learned[name] = learned[name][number]
        made.__dict__.update(
            learned,
            n_trees_per_iteration_=own.stop - own.start,
            train_score_=np.array([]),
            validation_score_=np.array([]),
            codebook_=self.codebook_,
            forest_=Forest(trees),
            _saw_missing=read_only(self._saw_missing & columns_tested(trees, self.n_features_in_)),
            _initial=self._initial[own].copy(),
            _fit_loss=loss,
        )
        return made

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        check_is_fitted(self)
        return getattr(self._fit_loss, "n_outputs", 1)

    def _summed(self) -> tuple[Any, ...]:
        if "init_" in self.__dict__:
            raise ValueError(
                "What reads trees knows nothing of init, a model of its own. Fit with init=None "
                "and its raw predictions as init_score: then trees are what is read."
            )
        trees, classes = self.forest_.trees, getattr(self, "classes_", None)
        losses: Any = losses_by_output(self._fit_loss, len(self._initial))
        if classes is None:
            return (
                trees,
                self._initial,
                "log" if getattr(losses[0][0], "is_log", False) else "identity",
            )
        start, links, of_each = self._initial.copy(), set(), classes
        if not isinstance(classes, list):
            of_each = [classes]
        for (_, values), own in zip(losses, of_each, strict=True):
            links.add({1: "identity", 2: "logit"}.get(len(own), "softmax"))
            if len(own) == 1:  # the share is 1: no odds, no link
                start[values] = 1.0
        return trees, start, links.pop() if len(links) == 1 else "several"

    def _parts(self) -> Parts:
        if "init_" in self.__dict__:
            raise TypeError(
                f"init of this {type(self).__name__} is a {type(self.init_).__name__}, and a model "
                "file holds no other model. Pickle it instead."
            )
        parts = super()._parts()
        parts.attributes["_fit_loss"] = said_of(self._fit_loss, type(self).__name__)
        return parts

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        learned, trees = parts.attributes, parts.trees
        initial, n_classes = learned["_initial"], learned.get("n_classes_", 0)
        loss = loss_of(learned["_fit_loss"], cls._losses)
        if trees[0].criterion != "squared_error":
            raise ValueError("the trees are not those of a boosted model")
        if not np.isfinite(initial).all():
            raise ValueError("_initial is not finite")
        of_outputs = getattr(loss, "n_values", None)
        of_classes = tuple(n if n > 2 else 1 for n in np.ravel(n_classes).tolist())
        if "n_classes_" in learned and (of_outputs or of_classes[:1]) != of_classes:
            raise ValueError("_fit_loss is not that of the classes")
        n_values = sum(of_outputs or of_classes)
        n_trees = 1 if trees[0].n_outputs == n_values else n_values
        if not (n_values == len(initial) and n_trees == learned["n_trees_per_iteration_"]):
            raise ValueError(f"n_trees_per_iteration_ and _initial are not {n_values} of each")
        check_target_names(learned, getattr(loss, "n_outputs", 1))
        if trees[0].n_outputs * n_trees != n_values or len(trees) % n_trees > 0:
            raise ValueError("an iteration has not all of its trees")
        for name in ("train_score_", "validation_score_"):
            if 0 < len(learned[name]) <= len(trees) // n_trees:
                raise ValueError(f"{name} has no score for some iterations")
        check_curves(learned.get("_curves", {}), len(trees) // n_trees)

    @classmethod
    def _of_parts(cls, parts: Parts) -> Any:
        made = super()._of_parts(parts)
        made._fit_loss = loss_of(made._fit_loss, cls._losses)
        return made


def _has_one_target(model: BaseBoosting) -> bool:
    """Whether raw predictions are those of one target, as scikit-learn wants them."""
    return getattr(model, "n_outputs_", 1) == 1


@documented("boosting", "classes")
class GradientBoostingClassifier(ClassifierMixin, BaseBoosting):
    """Gradient boosting for classes.

    Trees follow each other, and each is grown to what the others leave of the loss. Sums are those
    of integers, so the model has the same bits for any number of threads. Parameters mean what they
    mean in scikit-learn's ``HistGradientBoostingClassifier``, which is another name of this class.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    GradientBoostingRegressor : The same for numbers.
    RandomForestClassifier : Trees that do not depend on each other.

    Notes
    -----
    With three classes or more, an iteration grows a tree for each class; with several targets, the
    trees of each target.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dtrees import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier(max_iter=50).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.95
    """

    classes_: Any  # of several targets, a list of an array for each
    n_classes_: Any

    _losses = CLASSES
    _learns = {**BaseBoosting._learns, **LEARNS_CLASSES}  # noqa: RUF012
    _constraints = {  # noqa: RUF012
        **BaseBoosting._constraints,
        "init": (OneOf(("zero",)), Having("predict_proba"), Nothing()),
        "loss": (OneOf(tuple(CLASSES)), InstanceOf(losses.Loss, "dtrees.losses.Loss")),
        "class_weight": (
            InstanceOf(dict, "dict"),
            OneOf(("balanced",)),
            InstanceOf(list, "list"),
            Nothing(),
        ),
    }

    def __init__(
        self,
        loss: str | losses.Loss = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 20,
        min_child_weight: float = 1e-3,
        min_split_gain: float = 0.0,
        l2_regularization: float = 1.0,
        l1_regularization: float = 0.0,
        max_delta_step: float = 0.0,
        path_smooth: float = 0.0,
        multi_strategy: str = ONE_EACH,
        subsample: float = 1.0,
        oob_score: bool = False,
        init: Any = None,
        colsample_bytree: float = 1.0,
        feature_weights: Any = None,
        max_features: float | str | None = 1.0,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        handle_unknown: str = "missing",
        category_penalty: float = 1.0,
        early_stopping: bool | str = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        use_best_model: bool = True,
        warm_start: bool = False,
        verbose: int = 0,
        regime: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._set_all(locals())

    score = base.score

    def predict_proba(self, X: Any, init_score: Any = None) -> Any:
        """Predict the share of every class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes_), default=None
            As for `predict`.

        Returns
        -------
        shares : float64 array of shape (n_rows, n_classes_)
            In the order of ``classes_``; rows sum to 1. Of several targets, a list of arrays.
        """
        return self._from("predict_proba", X, init_score)

    def predict_log_proba(self, X: Any, init_score: Any = None) -> Any:
        """Predict the logarithm of the share of every class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes_), default=None
            As for `predict`.

        Returns
        -------
        logarithms : float64 array of shape (n_rows, n_classes_)
            -inf where a share is zero. Of several targets, a list of arrays.
        """
        return self._from("predict_log_proba", X, init_score)

    @available_if(_has_one_target)
    @names_others
    def decision_function(self, X: Any, init_score: Any = None) -> np.ndarray:
        """Compute the raw predictions of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes_), default=None
            As for `predict`.

        Returns
        -------
        raw : float64 array of shape (n_rows,) or (n_rows, n_classes_)
            Log odds of the second of two classes; of more, a number for each, of which
            `predict_proba` takes the exponentials. Models of several targets have no such method.
        """
        return self._from("decision_function", X, init_score)

    @available_if(_has_one_target)
    def staged_decision_function(self, X: Any, init_score: Any = None) -> Iterator[np.ndarray]:
        """Compute the raw predictions after each iteration.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. Of a Dask array or data frame, each answer is lazy, and costs a
            prediction of its own.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes_), default=None
            As for `predict`.

        Yields
        ------
        raw : float64 array of shape (n_rows,) or (n_rows, n_classes_)
            As `decision_function` of a model of 1, 2, ... iterations.
        """
        return self._staged("decision_function", X, init_score)

    def staged_predict_proba(self, X: Any, init_score: Any = None) -> Iterator[Any]:
        """Predict the share of every class after each iteration.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. Of a Dask array or data frame, each answer is lazy, and costs a
            prediction of its own.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes_), default=None
            As for `predict`.

        Yields
        ------
        shares : float64 array of shape (n_rows, n_classes_)
            As `predict_proba` of a model of 1, 2, ... iterations.
        """
        return self._staged("predict_proba", X, init_score)

    def _loss(self) -> Loss | OwnLoss:
        return CLASSES[self.loss] if isinstance(self.loss, str) else OwnLoss(self.loss)

    def _units(self, ask: Ask) -> TargetUnits:
        return TargetUnits.of_classes(ask, self.class_weight)

    def _begin(
        self, loss: Loss | OwnLoss, target: Target, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        if isinstance(loss, OwnLoss):
            return loss.initial(y, weight, target.n_classes if target.n_classes > 2 else 1)
        totals = exact_bincount(target.y, units_of(target), target.n_classes)
        return initial_of_classes(totals / totals.sum())


@documented("boosting", "numbers")
class GradientBoostingRegressor(RegressorMixin, BaseBoosting):
    """Gradient boosting for numbers.

    Trees follow each other, and each is grown to what the others leave of the loss. Sums are those
    of integers, so the model has the same bits for any number of threads. Parameters mean what they
    mean in scikit-learn's ``HistGradientBoostingRegressor``, which is another name of this class.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    GradientBoostingClassifier : The same for classes.
    RandomForestRegressor : Trees that do not depend on each other.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(max_iter=30, max_leaf_nodes=8).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 1)
    0.4
    """

    quantile: float
    alpha: float
    power: float

    _losses = NUMBERS
    _constraints = {  # noqa: RUF012
        **BaseBoosting._constraints,
        "loss": (OneOf(tuple(NUMBERS)), InstanceOf(losses.Loss, "dtrees.losses.Loss")),
        "quantile": (RealIn(0, 1, "[]"), Nothing()),
        "alpha": (RealIn(0, 1, "()"),),
        "power": (RealIn(1, 2, "()"),),
    }

    def __init__(
        self,
        loss: str | losses.Loss = "squared_error",
        *,
        quantile: float | None = None,
        alpha: float = 0.9,
        power: float = 1.5,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 20,
        min_child_weight: float = 1e-3,
        min_split_gain: float = 0.0,
        l2_regularization: float = 1.0,
        l1_regularization: float = 0.0,
        max_delta_step: float = 0.0,
        path_smooth: float = 0.0,
        multi_strategy: str = ONE_EACH,
        subsample: float = 1.0,
        oob_score: bool = False,
        init: Any = None,
        colsample_bytree: float = 1.0,
        feature_weights: Any = None,
        max_features: float | str | None = 1.0,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        handle_unknown: str = "missing",
        category_penalty: float = 1.0,
        early_stopping: bool | str = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        use_best_model: bool = True,
        warm_start: bool = False,
        verbose: int = 0,
        regime: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._set_all(locals())

    score = base.score

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.alpha != 0.9 and self.loss != "huber":
            warn("alpha is of loss='huber' only. Did you mean l1_regularization or quantile?")

    def predict_raw(self, X: Any, init_score: Any = None) -> np.ndarray:
        """Compute the raw prediction of every row: the sum of the steps.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.
        init_score : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            As for `predict`.

        Returns
        -------
        raw : float64 array of shape (n_rows,) or (n_rows, n_targets)
            The number itself; its logarithm with the losses "poisson", "gamma" and "tweedie". So
            it is what `init_score` of another fit may be.
        """
        return self._from("decision_function", X, init_score)

    def _loss(self) -> Loss | OwnLoss:
        if not isinstance(self.loss, str):
            return OwnLoss(self.loss)
        loss = NUMBERS[self.loss]
        if self.loss == "huber":
            return replace(loss, beyond=float(self.alpha))
        if self.loss == "tweedie":
            return replace(loss, power=float(self.power))
        if self.loss != "quantile":
            return loss
        if self.quantile is None:
            raise ValueError("loss='quantile' needs the parameter quantile, between 0 and 1.")
        return replace(loss, level=float(self.quantile))

    def _units(self, ask: Ask) -> TargetUnits:
        return TargetUnits.of_numbers(ask)

    def _begin(
        self, loss: Loss | OwnLoss, target: Target, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        if isinstance(loss, OwnLoss):
            return loss.initial(y, weight, 1)
        total = len(y) if target.w is None else int(target.w.sum())
        sums = np.array([total, int(target.y.sum() if target.wy is None else target.wy.sum())])
        units = None if weight is None else units_of(target)
        return np.array([loss.initial(y, units, float(target.to_value(sums)))])


# scikit-learn's names, of the same classes (docs/development/decisions/0019)
HistGradientBoostingClassifier = GradientBoostingClassifier
HistGradientBoostingRegressor = GradientBoostingRegressor


def shortened(estimator: Any, fitted: Any, n_iterations: int | None = None) -> Any:
    """An estimator, fitted: with the first iterations of a fitted one. O(n_trees).

    `fitted` has the same parameters but for a ``max_iter`` that is as large or larger. None: as
    many iterations as the fit of `estimator` keeps.
    """
    if n_iterations is None:
        n_iterations = fitted._n_iter_of(estimator.max_iter)
    trees = fitted.forest_.trees[: n_iterations * fitted.n_trees_per_iteration_]
    made = model_of_trees(estimator, fitted, trees)
    made.train_score_ = fitted.train_score_[: estimator.max_iter + 1]
    made.validation_score_ = fitted.validation_score_[: estimator.max_iter + 1]
    if hasattr(made, "_curves"):
        made._curves = first_values(made._curves, estimator.max_iter)
    return made


def first_values(curves: Curves, n: int | None = None) -> Curves:
    """A copy of the first `n` values of each curve; None: of all."""
    return {
        name: {measure: values[:n] for measure, values in of_rows.items()}
        for name, of_rows in curves.items()
    }


def check_curves(curves: Any, n_iterations: int) -> None:
    """Refuse (ValueError) curves of a file that are none, or lack an iteration."""
    for name, of_rows in curves.items():
        expect(isinstance(name, str) and isinstance(of_rows, dict), "_curves")
        for measure, values in of_rows.items():
            expect(isinstance(measure, str) and isinstance(values, list), "_curves")
            expect(all(type(value) is float for value in values), "_curves")
            expect(len(values) >= n_iterations, "_curves")


def said_of(loss: AnyLoss, owner: str) -> dict[str, Any]:
    """What a model file says of a loss.

    Raises
    ------
    TypeError
        It is a loss of the user's own.
    """
    if isinstance(loss, OutputLosses):  # which differ in the widths of Huber's, not told here
        return {**said_of(loss.losses[0], owner), "n_values": list(loss.n_values)}
    if type(loss) is not Loss:
        raise TypeError(
            f"The loss of this {owner} is an object of the class {loss.name}, which is code, and a "
            "model file holds none. Pickle the model, or save one of a loss that has a name."
        )
    numbers = (loss.beyond, loss.power, loss.level)
    return {"name": loss.name, "level": next((x for x in numbers if x is not None), None)}


def loss_of(said: Mapping[str, Any], losses: Mapping[str, Loss]) -> Loss | OutputLosses:
    """The loss that a model file speaks of; of several outputs, with their `n_values`.

    Raises
    ------
    ValueError
        There is none of this name, or none with this level.
    """
    if "n_values" in said:
        own = loss_of({name: each for name, each in said.items() if name != "n_values"}, losses)
        n_values = said["n_values"]
        is_known = type(n_values) is list and all(type(n) is int and n > 0 for n in n_values)
        if not is_known or len(n_values) < 2 or isinstance(own, OutputLosses):
            raise ValueError(f"_fit_loss has the values {str(n_values)[:20]}")
        return OutputLosses((own,) * len(n_values), tuple(n_values))
    name, level = said.get("name"), said.get("level")
    if said.keys() != {"name", "level"} or not isinstance(name, str) or name not in losses:
        raise ValueError(f"_fit_loss is {str(said)[:60]}")
    loss = losses[name]
    if name == "quantile" and type(level) is float and 0 <= level <= 1:
        return replace(loss, level=level)
    if name == "huber" and type(level) is float and 0 < level < 1:
        return replace(loss, beyond=level)
    if name == "tweedie" and type(level) is float and 1 < level < 2:
        return replace(loss, power=level)
    if name == "tweedie" or level != loss.level:
        raise ValueError(f"_fit_loss has the level {str(level)[:20]}")
    return loss
