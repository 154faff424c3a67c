"""Forests: many trees of one coded table, for classes and for numbers.

The table is coded once. A tree is a task, and a function of the codes, the rules, the seed and its
number (`dtrees.core.grow.forest`). It does not matter which thread or worker grows it, or when::

    parameters, X, y ---FitPlan.encode---> codes, target, rules       once for many sets of rows
                                                 |
                bags: (seed, tree, row) -> times |
                                                 v
                          tree 0   tree 1   tree 2   ...        tasks
                                                 |  one by one, in this order
                       out-of-bag sums, callbacks: go on? or stop
                                                 |
                            estimators_, out-of-bag predictions

Adding trees (``warm_start``) therefore gives the forest that would have been grown at once.
Parameters and defaults of the forests stand in `dtrees.estimators.forest_kinds`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dtrees.callbacks import Callback, ProgressBar, check_callbacks
from dtrees.coding.tables import row_values
from dtrees.coding.target import Ask, SpreadTarget, Target, TargetUnits
from dtrees.constraints import (
    ARRAY,
    CONFIDENCE,
    ArrayLike,
    ArrayOf,
    Boolean,
    CallableObject,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RealIn,
    checked,
)
from dtrees.core.membership.resampling import LARGEST_RATE, Bags, Resampling
from dtrees.core.model.tree import Tree
from dtrees.core.predict.out_of_bag import OutOfBag
from dtrees.criteria import Criterion
from dtrees.estimators import base, blocks, quantiles
from dtrees.estimators.base import LEARNS_CLASSES, TREE_CONSTRAINTS, TREE_LEARNS
from dtrees.estimators.fit_plan import LARGEST_SEED, FitPlan, Training
from dtrees.estimators.forest_growth import (
    FitOfForest,
    KeptTrees,
    TreeCounter,
    bags_of,
    check_same_bags,
    check_same_labels,
    has_bags,
    kept_trees,
    leaves_of,
)
from dtrees.estimators.prediction import (
    ForestPredictor,
    IntervalPredictor,
    IntervalsOfTargets,
    Predictor,
    labels_of_outputs,
    scaled_errors,
    warn_of_infinite,
)
from dtrees.estimators.resume import (
    Unfinished,
    brought_along,
    facts_of,
    saved_trees,
    seed_of,
    start_of_kept,
    unfinished_fit,
)
from dtrees.estimators.trees import (
    BaseDecisionTree,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    units_of_numbers,
)
from dtrees.export.parts import Parts
from dtrees.inspection.importance import OF_A_SPLIT, mean_importances
from dtrees.parallel import (
    REGIMES,
    Checkpoint,
    FitStatistics,
    RowColumns,
    admitted,
    admitted_where_they_are,
    computed,
    is_lazy,
    threaded,
)

logger = logging.getLogger(__name__)


class BaseForest(base.Ensemble):
    """What forests of classifiers and of regressors share; not meant to be used itself."""

    oob_score_: float

    _constraints: ClassVar = {
        **TREE_CONSTRAINTS,
        "n_estimators": (IntegerIn(1),),
        "bootstrap": (Boolean(),),
        "max_samples": (IntegerIn(1), RealIn(0, LARGEST_RATE, "(]", integers=False), Nothing()),
        "colsample_bytree": (RealIn(0, 1, "(]"),),
        "feature_weights": (ArrayLike(), InstanceOf(dict, "dict"), Nothing()),
        "oob_score": (Boolean(), CallableObject()),
        "oob_tol": (RealIn(0, math.inf, "[)"), Nothing()),
        "warm_start": (Boolean(),),
        "verbose": (InstanceOf(Integral, "int"),),
        "regime": (OneOf(REGIMES), Nothing()),
    }
    _learns: ClassVar = {
        **TREE_LEARNS,
        "oob_score_": (InstanceOf(float, "float"),),
        "oob_scores_": (ArrayOf(1, np.dtype(np.float64)),),
        "_fit_seed": (IntegerIn(0, LARGEST_SEED),),
        "_fit_bags": (InstanceOf(str, "str"), Nothing()),
        "_fit_rows": (IntegerIn(1, LARGEST_SEED),),
        "_fit_facts": (InstanceOf(dict, "dict"),),
    }
    _learns_at_times = (
        base.BaseModel._learns_at_times
        | {"oob_score_", "oob_scores_", "oob_decision_function_", "oob_prediction_"}
        | {"_fit_bags", "_fit_rows", "_fit_facts"}  # not in older models; in unfinished ones
    )
    _draws_ties = True
    _takes_outputs = True
    _spare_bits = 5  # a row is in a bag at most 20 times as often as on average

    n_estimators: int
    criterion: str | Criterion
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    max_features: int | float | str | None
    min_impurity_decrease: float
    bootstrap: bool
    max_samples: int | float | None
    colsample_bytree: float
    ccp_alpha: float
    oob_score: Any
    oob_tol: float | None
    warm_start: bool
    verbose: int
    regime: str | None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        bootstrap_groups: Any = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `DecisionTreeClassifier.fit`.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. A row is drawn into bags in proportion to its weight. In a
            tree it then counts as often as it was drawn. Without bags, and in samples without
            replacement, it counts with its weight.
        bootstrap_groups : array-like of shape (n_rows,), default=None
            Rows of one group are in a bag together, or not at all: patients, days, machines.
            None: every row is a group of its own.
        callbacks : sequence of dtrees.callbacks.Callback, default=None
            Hear of every tree, in the order of the trees, and may stop the fit; the trees so far
            are then the forest.
        checkpoint : str or path, default=None
            A folder, or the URL of one that fsspec knows (``s3://...``), to which complete trees
            are written as they come. A fit that is given the same one, the same table and the same
            parameters goes on with the trees that are there. It makes the forest that would have
            been grown at once. ``n_estimators``, ``n_jobs`` and ``regime`` may be others;
            ``random_state=None`` takes the seed of the trees that are there. One fit at a time.

        Returns
        -------
        self : object
            The fitted forest.

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be, or `checkpoint` holds trees of
            another fit (the message says what differs); the estimator is then as it was before.
        TypeError
            `callbacks` are no callbacks.
        dtrees.exceptions.ClusterError
            A Dask cluster is in force, or asked for by ``regime``, and cannot be used, or does not
            end the fit. The error's ``estimator`` is a forest of the trees that were complete, if
            there are any, and its `resume` goes on.
        dtrees.exceptions.ModelFileError
            `checkpoint` is damaged.
        BaseException
            What a callback raises; the estimator is then as it was before.

        Notes
        -----
        Costs one coding of the table and, for each tree, O(rows of the bag x max_features x
        depth). A forest of the same seed has the same first trees whatever ``n_estimators`` is.
        """
        self._check_parameters()
        stays = self.warm_start and hasattr(self, "forest_")
        kept = kept_trees(self) if stays else ()
        there = None if checkpoint is None else Checkpoint(checkpoint)
        seed = self._fit_seed if stays else seed_of(self, there)
        given = {"sample_weight": sample_weight, "bootstrap_groups": bootstrap_groups}
        return self._fit(X, {"y": y, **given}, callbacks, there, kept, seed)

    def resume(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        bootstrap_groups: Any = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Go on with a fit that has ended early on a cluster.

        For the forest that `dtrees.exceptions.ClusterError` brings along as ``estimator``. It has
        the trees that were complete and no data, so these are given again. The rest is grown where
        a fit would grow it now: on another cluster, or on threads. So its ``regime`` is None where
        it was "replicated".

        Parameters
        ----------
        X, y, sample_weight, bootstrap_groups
            Those of the fit that ended early.
        callbacks, checkpoint
            As for `fit`.

        Returns
        -------
        self : object
            The forest that the fit would have made, bit for bit.

        Raises
        ------
        ValueError
            This is no forest that a fit left unfinished, or the data or parameters are others than
            in that fit; the message says what differs. The estimator is then as it was before.
        dtrees.exceptions.ClusterError
            As for `fit`, with the trees that there are now.

        Examples
        --------
        ::

            try:
                forest.fit(X, y)
            except ClusterError as error:
                if error.estimator is None:  # no tree was complete
                    raise
                forest = error.estimator.resume(X, y)
        """
        unfinished = unfinished_fit(self)
        self._check_parameters()
        given = {"sample_weight": sample_weight, "bootstrap_groups": bootstrap_groups}
        there = None if checkpoint is None else Checkpoint(checkpoint)
        with brought_along(self):
            return self._fit(X, {"y": y, **given}, callbacks, there, (), self._fit_seed, unfinished)

    def _fit(
        self,
        X: Any,
        columns: Mapping[str, Any],
        callbacks: Sequence[Callback] | None,
        checkpoint: Checkpoint | None,
        kept: tuple[Tree, ...],
        seed: int,
        unfinished: Unfinished | None = None,
        can_resume: bool = True,
    ) -> Any:
        """Grow the trees that are missing, and become the forest."""
        heard = [] if callbacks is None else check_callbacks(callbacks)
        run = threaded(self.n_jobs)
        stats = FitStatistics()
        admit = partial(admitted_where_they_are, regime=self.regime)
        if self.oob_score or self.oob_tol is not None or self.keep_rows:
            admit = partial(admitted)  # what is asked for is as long as the table
        X, y, sample_weight, groups = admit(X, columns, stats)
        with stats.phase("coding"):
            encoded = FitPlan(self).encode(X, (y, sample_weight), seed, run, stats)
        if is_lazy(groups) and groups.ndim == 1 and isinstance(encoded.target, SpreadTarget):
            groups = RowColumns.of(X, {"bootstrap_groups": groups}, stats)
        else:
            (groups,) = map(row_values, computed(groups))
        fit = FitOfForest(self, Training(encoded, y, run, stats=stats), groups)
        bags = fit.learned["_fit_bags"]

        @cache
        def facts() -> dict[str, Any]:
            start = start_of_kept(kept, checkpoint, unfinished, encoded.book)
            return facts_of(self, encoded.table, bags=bags, start=start)

        if kept:
            check_same_labels(self, encoded.book, fit.learned)
            check_same_bags(self, fit.growth.bags)
        if self.verbose > 0:
            heard = [ProgressBar(), *heard]
        saved = saved_trees(checkpoint, facts, encoded.table, stats, unfinished, kept)
        fit.training = replace(fit.training, saved=saved)
        there = KeptTrees(kept, partial(leaves_of, self, kept, encoded.book, X, run))
        fit.grow(heard, there, facts if can_resume else None)
        return self

    def _fit_coded(self, training: Training) -> Any:
        FitOfForest(self, training).grow([TreeCounter(training.advance)])
        if self.n_estimators_ < self.n_estimators:
            training.advance(self.n_estimators - self.n_estimators_)  # that are not wanted
        return self

    def _fit_sets(self, training: Training, resampling: Resampling) -> list[Any]:
        """An estimator with these parameters, fitted to each training set; or the error of it."""
        return FitOfForest(self, training).of_sets(resampling)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not has_bags(self) and (self.oob_score or self.oob_tol is not None):
            asked = "oob_score" if self.oob_score else "oob_tol"
            raise ValueError(
                f"Out of bag estimation only available if bootstrap=True, or with max_samples: "
                f"{type(self).__name__} got {asked}={getattr(self, asked)!r}, bootstrap=False."
            )

    of_target = base.of_target

    def _rows_by_bag(
        self, y: Any, sample_weight: Any, bootstrap_groups: Any
    ) -> tuple[np.ndarray | None, Iterator[tuple[np.ndarray, np.ndarray | None]]]:
        """What rows of the fit count, None: once each; and what they are to the bag of each tree.

        That is the rows that are out of it, and what each row counts in it.

        Raises ValueError where the bags of the fit are not those of these rows, or there are none.
        """
        if not has_bags(self):
            raise ValueError(
                "There are no bags: fit the forest with bootstrap=True, or with max_samples."
            )
        target = self._encode_target(y, sample_weight)
        bags = bags_of(self, self._fit_seed, target, bootstrap_groups)
        assert bags is not None
        if bags.digest() != self._fit_bags:
            raise ValueError(
                "The bags of this forest are not those of these rows. Give y, sample_weight and "
                f"bootstrap_groups of the fit, and leave the parameters as they were. {OF_A_SPLIT}"
            )
        numbers = range(len(self.forest_))
        times = (bags.multiplicity(number, target.has_weight) for number in numbers)
        weight = target.w if target.means is None else target.means
        return weight, ((bags.rows_out(each), target.bagged(each).w) for each in times)

    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        """Score of out-of-bag predictions, of rows that have one; nan where there are too few."""
        raise NotImplementedError

    def _oob_predictions(self, mean: np.ndarray, target: Target) -> dict[str, Any]:
        """The attribute that holds out-of-bag predictions."""
        raise NotImplementedError

    def _oob_errors_of(
        self, oob: OutOfBag, y: np.ndarray, counts: np.ndarray | None
    ) -> dict[str, Any]:
        """What prediction intervals are made from; `counts` says which rows have a weight."""
        return {}

    def _predictor(self) -> Predictor:
        classes = getattr(self, "classes_", None)
        return ForestPredictor(self.codebook_, classes, type(self).__name__, self.forest_)

    @property
    def n_estimators_(self) -> int:
        """Number of trees; less than ``n_estimators`` when the fit was stopped."""
        check_is_fitted(self)
        return len(self.forest_)

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows in the bag of each tree, int32, ascending; a row stands there as often as it counts.

        All rows without bags. Made anew at each look. AttributeError: the trees have bags by what
        weights and groups of the rows say, which a model does not keep, or are of several blocks.
        Rows out of a fold weigh nothing.
        """
        check_is_fitted(self)
        name, n_rows = self.__dict__.get("_fit_bags"), self.__dict__.get("_fit_rows")
        roots = [tree.n_node_samples[0] for tree in self.forest_.trees]
        try:
            if name is None:
                found = [np.ones(n, dtype=np.uint8) for n in roots if n == n_rows]
            else:
                bags = Bags.of_digest(name)
                found = [bags.multiplicity(number) for number in range(len(roots))]
            if [*map(np.count_nonzero, found)] != roots:
                raise ValueError("Some rows weigh nothing, and do not count.")
        except ValueError:
            raise AttributeError(
                "There is no estimators_samples_: rows were drawn by their weights or in groups, "
                "some weigh nothing, as those out of a fold, or they came in several blocks, which "
                "a model does not keep."
            ) from None
        return [np.repeat(np.arange(len(times), dtype=np.int32), times) for times in found]

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        learned = parts.attributes
        if learned["max_features_"] > learned["n_features_in_"]:
            raise ValueError("max_features_ is more than n_features_in_")
        n_outputs, n_classes = learned["n_outputs_"], learned.get("n_classes_")
        several = (n_outputs,) if n_outputs > 1 else ()
        for name, widths in (
            ("oob_decision_function_", (np.max(n_classes or 0), *several)),
            ("oob_prediction_", several),
        ):
            if name in learned and learned[name].shape[1:] != widths:
                raise ValueError(f"{name} has not a column for every class and target")
        scores = learned.get("oob_scores_")
        if scores is not None and len(scores) != len(parts.trees):
            raise ValueError("oob_scores_ are not those of the trees")

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean share of every column in the impurity decrease of the rows in the bags.

        float64 (n_features_in_,). Columns of many values get more than their due: see
        :func:`dtrees.inspection.oob_importances` for rows that did not choose the splits.
        """
        check_is_fitted(self)
        mean = mean_importances(self.forest_.trees)
        return np.zeros(self.n_features_in_) if mean is None else mean


class ForestClassifier(ClassifierMixin, BaseForest):
    """What forests for classes share; not meant to be used itself."""

    classes_: np.ndarray
    n_classes_: int

    _tree_class = DecisionTreeClassifier
    _criteria = DecisionTreeClassifier._criteria
    _constraints = {  # noqa: RUF012
        **BaseForest._constraints,
        "criterion": DecisionTreeClassifier._constraints["criterion"],
        "class_weight": (
            InstanceOf(dict, "dict"),
            InstanceOf(list, "list"),
            OneOf(("balanced", "balanced_subsample")),
            Nothing(),
        ),
    }
    _learns = {  # noqa: RUF012
        **BaseForest._learns,
        **LEARNS_CLASSES,
        "oob_decision_function_": tuple(ArrayOf(n, np.dtype(np.float64)) for n in (2, 3)),
    }

    score = base.score
    predict_proba = base.predict_proba
    predict_log_proba = base.predict_log_proba

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add `n_estimators` trees of a block of rows, which see these rows only.

        Each block has trees of its own, as of a forest that is fitted to it alone. So this is not
        the forest of all rows, and blocks are best drawn at random. Blocks may differ in size, and
        have other categories.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `fit`; columns as in earlier blocks, of the same types.
        y : array-like of shape (n_rows,)
            Labels, all of which are in `classes`.
        classes : array-like of shape (n_classes,), default=None
            All labels. Needed at the first call, unless `fit` came before; of several targets a
            list of arrays.
        sample_weight : array-like of shape (n_rows,), default=None
            As for `fit`. ``class_weight="balanced"`` balances each block.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be, or `oob_score`, `oob_tol` or
            `keep_rows` ask for rows of earlier blocks; the estimator is then as it was before.

        Notes
        -----
        With an integer `random_state`, trees of a block are those of a forest of which it is
        larger by the number of trees that are there.
        """
        blocks.add_block(self, X, y, sample_weight, classes)
        return self

    def _units(self, ask: Ask) -> TargetUnits:
        weight = FitPlan(self).class_weight
        return TargetUnits.of_classes(ask, weight, self._spare_bits, self.bootstrap)

    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        voted = ~np.isnan(mean[:, 0])
        if not voted.any():
            return math.nan
        shares = target.by_output(mean[voted])
        if not callable(self.oob_score):
            codes = np.stack([own.argmax(axis=1) for own in shares], axis=1)
            right = codes == target.y[voted].reshape(codes.shape)
            return float(np.mean(right.all(axis=1)))  # accuracy
        classes = [own.classes for own in target.of_outputs if own.classes is not None]
        labels = labels_of_outputs(classes, shares)
        return float(self.oob_score(y[voted], labels.reshape(y[voted].shape)))

    def _oob_predictions(self, mean: np.ndarray, target: Target) -> dict[str, Any]:
        shares = target.by_output(mean)
        if len(shares) == 1:
            return {"oob_decision_function_": mean}
        found = np.zeros((len(mean), max(own.shape[1] for own in shares), len(shares)))
        for output, own in enumerate(shares):
            found[:, : own.shape[1], output] = own
        return {"oob_decision_function_": found}


class ForestRegressor(RegressorMixin, BaseForest):
    """What forests for numbers share; not meant to be used itself."""

    _tree_class = DecisionTreeRegressor
    _criteria = DecisionTreeRegressor._criteria
    _constraints = {  # noqa: RUF012
        **BaseForest._constraints,
        "criterion": DecisionTreeRegressor._constraints["criterion"],
        "keep_rows": (Boolean(),),
    }
    _learns = {  # noqa: RUF012
        **BaseForest._learns,
        **quantiles.LEARNS_ROWS,
        "oob_prediction_": tuple(ArrayOf(n, np.dtype(np.float64)) for n in (1, 2)),
        "_oob_errors": (ArrayOf(1, np.dtype(np.float64)),),  # in models of older versions
        "_oob_scaled_errors": tuple(ArrayOf(n, np.dtype(np.float64)) for n in (1, 2)),
        "_oob_keys": (ArrayOf(1, np.dtype(np.uint64)),),
        "_oob_means": (ArrayOf(1, np.dtype(np.float64)),),
    }
    _learns_at_times = BaseForest._learns_at_times | {
        "_oob_errors",
        "_oob_scaled_errors",
        "_oob_keys",
        "_oob_means",
        *quantiles.LEARNS_ROWS,
    }

    score = base.score

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add `n_estimators` trees of a block of rows, which see these rows only.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `fit`; columns as in earlier blocks, of the same types.
        y : array-like of shape (n_rows,)
            Numbers.
        sample_weight : array-like of shape (n_rows,), default=None
            As for `fit`.

        Returns
        -------
        self : object

        See Also
        --------
        RandomForestClassifier.partial_fit : What such a forest is, and which errors there are.
        """
        blocks.add_block(self, X, y, sample_weight)
        return self

    predict_quantiles = quantiles.predict_quantiles
    predict_cdf = quantiles.predict_cdf

    @checked(X=ARRAY, confidence=CONFIDENCE)
    def prediction_interval(self, X: Any, confidence: float = 0.9) -> np.ndarray:
        """Predict an interval for every row, by the rows out of the bags.

        Jackknife+ after bootstrap: each row that the forest was fitted to has an error, of its
        out-of-bag prediction, in units of the spread of the trees that have not seen it. These
        trees predict the new row, give or take the error in units of their spread there. So
        intervals are wide where trees disagree. Their ends are order statistics over all rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.
        confidence : float, default=0.9
            Share of rows whose target is to be in its interval, from 0.5 to below 1.

        Returns
        -------
        interval : float64 array of shape (n_rows, 2) or (n_rows, n_outputs_, 2)
            Lower and upper end. They are infinite, with a warning, where too few rows were fitted:
            fewer than ``(1 + confidence) / (1 - confidence)``.

        Raises
        ------
        ValueError
            The forest was fitted without `oob_score` or `oob_tol`, or `confidence` is not in its
            range.

        Notes
        -----
        For rows that come from the same distribution as those of the fit, about `confidence` of
        the targets are in their intervals; at least ``2 * confidence - 1`` of them in the worst
        case (for the mean over forests whose number of trees is drawn, see Kim, Xu, Barber 2020).
        Rows without a weight do not count, and all others count once. With `bootstrap_groups`, it
        is groups that have to be alike. A row that every bag holds makes the interval wider, so
        there should be 20 trees or more.

        Costs O(fitted rows x trees) for each row of `X`, in blocks of a few MB.
        """
        check_is_fitted(self)
        found = [
            IntervalPredictor.of(own._predictor(), vars(own), confidence)
            for own in map(self.of_target, range(self.n_outputs_))
        ]
        for own in found:
            warn_of_infinite(own.errors[~np.isnan(own.errors)], confidence, own.is_scaled)
        predictor = found[0] if len(found) == 1 else IntervalsOfTargets(found)
        return self._answer("prediction_interval", X, predictor)

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        quantiles.check_rows(parts)

    def _units(self, ask: Ask) -> TargetUnits:
        how = {"spare_bits": self._spare_bits, "drawn": self.bootstrap}
        return units_of_numbers(ask, self.criterion, **how)

    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        from sklearn.metrics import r2_score

        voted = ~np.isnan(mean[:, 0])
        if np.count_nonzero(voted) < 2:
            return math.nan
        score = self.oob_score if callable(self.oob_score) else r2_score
        return float(score(y[voted], mean[voted].reshape(y[voted].shape)))

    def _oob_predictions(self, mean: np.ndarray, target: Target) -> dict[str, Any]:
        return {"oob_prediction_": mean[:, 0] if target.n_outputs == 1 else mean}

    def _oob_errors_of(
        self, oob: OutOfBag, y: np.ndarray, counts: np.ndarray | None
    ) -> dict[str, Any]:
        n_outputs, mean = oob.growth.target.n_outputs, oob.mean()
        errors = np.empty((len(mean), n_outputs))
        columns = np.asarray(y).reshape(errors.shape).T
        for k, own in enumerate(columns):
            errors[:, k] = scaled_errors(own, mean[:, k], oob.spread(k), counts)
        return {"_oob_scaled_errors": errors if n_outputs > 1 else errors[:, 0]}


BaseTrees = BaseDecisionTree | BaseForest  # of dtrees, that are no steps of boosting
