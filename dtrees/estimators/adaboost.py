"""AdaBoost: trees that follow each other, each grown to rows that weigh more where others erred.

The table is coded once. Every iteration grows a tree of the same codes by other weights, rows walk
down it by their codes, and where it errs says what they weigh in the next one::

    codes ──────────────┬───────────────────────────────┐
                        ▼                               ▼
    weights ──▶ integers ──▶ tree ──▶ leaves of rows ──▶ errors ──▶ weights ──▶ ...
                                                          └──▶ what the tree's vote weighs

Classes are those of SAMME (Zhu, Zou, Rosset, Hastie 2009). Of two classes that is the algorithm of
[SK], *Boosting*: weights of rows that are missed are divided by 2 e and those of others by
2 (1 - e), up to a factor, and a vote weighs log((1 - e) / e), twice as much as there. Numbers are
those of AdaBoost.R2 (Drucker 1997): rows are drawn into bags in proportion to their weights.

*What is exact.* Weights are float64, of which each is a product of numbers that are the same for
all rows, or a function of the row alone. A tree sees them as integers in fixed point
(`dtrees.coding.target`): multiples of 2**-52 of the largest (or 2**-61 of their sum, if that is
more), and a positive weight never becomes zero. Errors are quotients of sums of these integers. So
nothing depends on the order in which rows are added up, and the model has the same bits for any
number of threads, and wherever the rows are. Weights of rows that were never missed stay above
2**-52 of the largest, as scikit-learn has it, too.

Rows may be in several parts, on the workers of a cluster. Each part has its own target, weights and
leaves; what is said of all rows is a few numbers of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.tables import row_values
from dtrees.coding.target import (
    LARGEST,
    Ask,
    GivenRows,
    MeanDraws,
    Target,
    TargetUnits,
    exact_total,
    exponent_of_weights,
    weights_in_units,
)
from dtrees.constraints import ArrayOf, Constraint, IntegerIn, Nothing, OneOf, RealIn
from dtrees.core.data._logarithm import log
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.losses._derivatives import exponential
from dtrees.core.membership.resampling import Bags, plain
from dtrees.core.model.tree import SMALL, Forest, Tree, relative_gains, total_of
from dtrees.core.predict.binned import LeafLookup
from dtrees.criteria import Criterion
from dtrees.estimators import base
from dtrees.estimators.base import LEARNS_CLASSES, TREE_CONSTRAINTS, TREE_LEARNS, Ensemble
from dtrees.estimators.docstrings import documented
from dtrees.estimators.fit_plan import FitPlan, Training
from dtrees.estimators.resume import facts_of, saved_trees, seed_of
from dtrees.estimators.tree_view import columns_with_missing
from dtrees.estimators.trees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    units_of_numbers,
)
from dtrees.estimators.weighted_votes import (
    MedianPredictor,
    VotePredictor,
    WeightedPredictor,
    sum_of,
    votes_of,
)
from dtrees.export.parts import Parts
from dtrees.inspection.importance import impurity_importances
from dtrees.parallel import (
    REGIMES,
    Checkpoint,
    FitStatistics,
    LocalRunner,
    MemberOfSequence,
    SavedTrees,
    admitted_where_they_are,
    computed,
    grow_sequence,
    grow_sets,
    is_lazy,
    map_rows,
    tables_kept,
    threaded,
)

FLOATS = ArrayOf(1, np.dtype(np.float64))
LEAST = 1.0 / LARGEST  # of a positive weight, as a share of the largest


class BaseAdaBoost(Ensemble):
    """What AdaBoost of classes and of numbers share; not meant to be used itself."""

    estimator_weights_: np.ndarray
    estimator_errors_: np.ndarray

    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
        **TREE_CONSTRAINTS,
        "n_estimators": (IntegerIn(1),),
        "learning_rate": (RealIn(0, math.inf, "()"),),
        "regime": (OneOf(REGIMES), Nothing()),
    }
    _learns: ClassVar = {
        **TREE_LEARNS,
        "estimator_weights_": (FLOATS,),
        "estimator_errors_": (FLOATS,),
    }

    n_estimators: int
    learning_rate: float
    criterion: str | Criterion
    ccp_alpha: float
    regime: str | None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, checkpoint: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `DecisionTreeClassifier.fit`.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            What rows weigh at first: not negative, not all zero. None: all the same.
        checkpoint : str or path, default=None
            A folder for trees that have grown, or its URL, as of forests. The same fit goes on with
            those that are there. ``n_estimators`` may be another one.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be, the first tree of a classifier is no
            better than chance, or `checkpoint` holds trees of another fit; the estimator is then as
            it was before.
        dtrees.exceptions.ModelFileError
            `checkpoint` is damaged.
        dtrees.exceptions.ClusterError
            A Dask cluster is asked for by ``regime``, or has the collection, and cannot be used.

        Notes
        -----
        Costs one coding of the table and, for each tree, O(rows x columns x depth).
        """
        self._check_parameters()
        plan, run, stats = FitPlan(self), threaded(self.n_jobs), FitStatistics()
        there = None if checkpoint is None else Checkpoint(checkpoint)
        columns = {"y": y, "sample_weight": sample_weight}
        X, y, sample_weight = admitted_where_they_are(X, columns, stats, self.regime)
        with stats.phase("coding"):
            encoded = plan.encode(X, (y, sample_weight), seed_of(self, there), run, stats)
        saved = saved_trees(there, partial(facts_of, self, encoded.table), encoded.table, stats)
        self._grow(Training(encoded, y, run, stats=stats, saved=saved))
        return self

    @tables_kept()
    def _grow(self, training: Training) -> None:
        """Grow the trees, and become the model."""
        encoded, run, stats = training.encoded, training.run, training.stats
        target, bags = encoded.target, None
        if self.bootstrap:
            bags = Bags(encoded.seed, 1.0, target.n_rows, target.means)
        growth = ForestGrowth(
            encoded.coded,
            target,
            encoded.rules,
            bags,
            encoded.book.thresholds,
            shares=encoded.shares,
            max_leaf_nodes=self.max_leaf_nodes,
            ccp_alpha=self.ccp_alpha,
        )
        trees: list[Tree] = []
        learned: dict[str, list[float]] = {"estimator_weights_": [], "estimator_errors_": []}
        saved = training.saved or SavedTrees([])
        (earlier,) = saved.trees()
        here = RowsHere(growth, training.coded_rows, run, {"regime": self.regime, "stats": stats})
        about = growth, self._reweighting(), earlier, here
        grown = grow_sequence(*about, regime=self.regime, stats=stats)
        with stats.phase("growth"), saved.saving(), closing(grown) as found:
            for number, (tree, (vote, error)) in enumerate(found):
                if tree is None:
                    tree = earlier[number]
                else:
                    saved.add(0, [tree])
                if vote is None:
                    if trees:
                        break
                    vote = self._vote_of_chance(error)
                trees.append(tree)
                for name, value in zip(learned, (vote, error), strict=True):
                    learned[name].append(value)
        facts = self._learned_of(encoded.book, target) | {
            "n_outputs_": 1,
            "max_features_": encoded.max_features,
            "codebook_": encoded.book.without_values(),
            "forest_": Forest(tuple(trees)),
            "_saw_missing": columns_with_missing(trees, encoded.coded),
            "_fit_report": stats.report(),
        }
        self._forget_at_times()
        self.__dict__.update(facts)
        self.__dict__.update({name: np.array(values) for name, values in learned.items()})

    def _reweighting(self) -> Reweighting:
        """How trees follow each other."""
        raise NotImplementedError

    def _vote_of_chance(self, error: float) -> float:
        """What the vote of a first tree weighs that is no better than chance; or a ValueError."""
        return 1.0

    def _staged(self, method: str, X: Any) -> Iterator[Any]:
        """The answers of 1, 2, ... trees; the table is checked at once."""
        check_is_fitted(self)
        predictor: WeightedPredictor = self._predictor()  # type: ignore[assignment]
        if is_lazy(X):
            numbers = range(1, len(self.forest_) + 1)
            return (map_rows(predictor.first(number), method, X) for number in numbers)
        run = threaded(self.n_jobs)
        return predictor.staged(method, predictor.check(X, run), run)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predict after each tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. Of a Dask array or data frame, each answer is lazy, and costs a
            prediction of its own.

        Yields
        ------
        y : array of shape (n_rows,)
            As `predict` of a model of 1, 2, ... trees.
        """
        return self._staged("predict", X)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Score after each tree: accuracy for classes, R^2 for numbers.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit.
        y : array-like of shape (n_rows,)
            The true values.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Yields
        ------
        score : float
            As `score` of a model of 1, 2, ... trees.
        """
        from sklearn.metrics import accuracy_score, r2_score

        metric = accuracy_score if is_classifier(self) else r2_score
        found = self.staged_predict(X)
        y, sample_weight = map(row_values, computed(y, sample_weight))
        scored = partial(metric, y, sample_weight=sample_weight)
        return (float(scored(np.asarray(computed(each)[0]))) for each in found)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean share of every column in the impurity decrease of the trees, by their weights.

        float64 (n_features_in_,).
        """
        check_is_fitted(self)
        shares = [impurity_importances(tree) for tree in self.forest_.trees]
        mean: np.ndarray = np.average(shares, axis=0, weights=self.estimator_weights_)
        return mean

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        for name in ("estimator_weights_", "estimator_errors_"):
            values = parts.attributes[name]
            if len(values) != len(parts.trees) or not (np.isfinite(values) & (values >= 0)).all():
                raise ValueError(f"{name} are not those of the trees")
        if not parts.attributes["estimator_weights_"].all():
            raise ValueError("a tree has no weight")


def first_weights(target: Target) -> np.ndarray:
    """The weights of rows before the first tree, float64 (n_rows,)."""
    if target.means is not None:
        return target.means.copy()
    if target.w is None:
        return np.ones(target.n_rows)
    return np.ldexp(target.w.astype(np.float64), -target.w_exponent)


@dataclass(frozen=True, eq=False)
class RowsHere:
    """The rows of a table as one part, as `MemberOfSequence` has those of its blocks."""

    growth: ForestGrowth
    lookup: LeafLookup
    run: LocalRunner
    how: Mapping[str, Any]  # trees are grown, as `grow_sets` has it

    @property
    def targets(self) -> list[Target]:
        """That of all rows."""
        return [self.growth.target]

    def gather(self, own: list[Any]) -> list[Any]:
        """What the part says."""
        return own

    def leaves(self, tree: Tree) -> list[np.ndarray]:
        """Leaf of every row, by its codes; intp (n_rows,)."""
        rows = np.arange(self.growth.target.n_rows)
        n_parts = self.run.n_threads if self.lookup.is_here else 1
        parts = [partial(self.lookup.leaves, tree, some) for some in np.array_split(rows, n_parts)]
        return [np.concatenate(self.run(parts))]

    def tree(self, number: int, targets: Sequence[Target]) -> Tree:
        """Grow a tree from another target."""
        (target,), bags = targets, self.growth.bags
        bags = None if bags is None else replace(bags, means=target.means)
        growth = replace(self.growth, target=target, bags=bags)
        numbers = range(number, number + 1)
        ((tree,),) = grow_sets(growth, numbers, plain(), self.run, **self.how)
        return tree


Rows = RowsHere | MemberOfSequence  # in parts, of which some are here
Targets = Sequence[Target]  # of the parts that are here,
Weights = Sequence[np.ndarray]  # and what their rows weigh
Judged = tuple[float, float | None, list[np.ndarray] | None]


def asking(weights: Sequence[np.ndarray], gather: Callable[[list[Any]], list[Any]]) -> Ask:
    """What asks all parts about weights, from those of the parts that are here."""

    def ask(function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return gather([function(GivenRows(own, None, own), *arguments) for own in weights])

    return ask


@dataclass(frozen=True)
class Reweighting:
    """How trees follow each other, as `Follow`; sent to workers, who may not have the estimator."""

    n_estimators: int
    learning_rate: float

    def __call__(
        self, rows: Rows, trees: Sequence[Tree]
    ) -> Generator[tuple[Tree | None, tuple[float | None, float]]]:
        """All trees, None for the first ones, which are there; and the vote and error of each."""
        targets = rows.targets
        weights = [first_weights(target) for target in targets]
        are_live = [own > 0 for own in weights]
        for number in range(self.n_estimators):
            if number > 0:
                targets = self._weighed(targets, asking(weights, rows.gather), weights)
            tree = trees[number] if number < len(trees) else rows.tree(number, targets)
            error, vote, factors = self._judged(tree, rows, targets, weights)
            yield None if number < len(trees) else tree, (vote, error)
            if factors is None or number + 1 == self.n_estimators:
                return
            for own, factor in zip(weights, factors, strict=True):
                own *= factor
            largest = max(rows.gather([float(own.max()) for own in weights]))
            weights = [np.ldexp(own, -math.frexp(largest)[1]) for own in weights]
            for own, is_live in zip(weights, are_live, strict=True):
                np.maximum(own, LEAST, out=own, where=is_live)

    def _weighed(self, targets: Targets, ask: Ask, weights: Weights) -> list[Target]:
        """The targets of the next tree, in which rows have other weights; of the parts here."""
        raise NotImplementedError

    def _judged(self, tree: Tree, rows: Rows, targets: Targets, weights: Weights) -> Judged:
        """The error of a tree, what its vote weighs, and by what weights of rows are multiplied.

        The vote is None where the tree is no better than chance, and so are factors where it is
        the last one.
        """
        raise NotImplementedError


class ReweightedClasses(Reweighting):
    """Votes, and weights of rows, of classes: SAMME."""

    def _weighed(self, targets: Targets, ask: Ask, weights: Weights) -> list[Target]:
        exponent = exponent_of_weights(ask)
        return [
            replace(target, w=weights_in_units(own, exponent), w_exponent=exponent)
            for target, own in zip(targets, weights, strict=True)
        ]

    def _judged(self, tree: Tree, rows: Rows, targets: Targets, weights: Weights) -> Judged:
        votes, leaves = votes_of(tree), rows.leaves(tree)
        are_missed = [
            votes.take(own) != target.y for own, target in zip(leaves, targets, strict=True)
        ]
        sums = [
            (target.only(is_missed).total_units, target.total_units)
            for is_missed, target in zip(are_missed, targets, strict=True)
        ]
        missed, total = (sum(each) for each in zip(*rows.gather(sums), strict=True))
        error = missed / total
        if missed == 0:
            return error, 1.0, None
        n_classes = targets[0].n_classes
        if missed * n_classes >= total * (n_classes - 1):  # no better than chance
            return error, None, None
        vote = self.learning_rate * (log((1.0 - error) / error) + log(n_classes - 1))
        factor = exponential(np.array(-vote))
        return error, vote, [np.where(is_missed, 1.0, factor) for is_missed in are_missed]


@dataclass(frozen=True)
class ReweightedNumbers(Reweighting):
    """Votes, and weights of rows, of numbers: AdaBoost.R2."""

    loss: str

    def _weighed(self, targets: Targets, ask: Ask, weights: Weights) -> list[Target]:
        draws = MeanDraws.of(ask, exponent_of_weights(ask), None, None)
        return [
            replace(target, means=draws.draws(GivenRows(own, None, own))[1])
            for target, own in zip(targets, weights, strict=True)
        ]

    def _judged(self, tree: Tree, rows: Rows, targets: Targets, weights: Weights) -> Judged:
        losses = []
        for leaves, target, own in zip(rows.leaves(tree), targets, weights, strict=True):
            y = target.y * target.value_unit + target.offset
            losses.append(np.where(own > 0, np.abs(tree.value[:, 0].take(leaves) - y), 0.0))
        largest = max(rows.gather([float(own.max()) for own in losses]))
        if largest == 0:
            return 0.0, 1.0, None
        losses = [own / largest for own in losses]
        if self.loss == "square":
            losses = [own**2 for own in losses]
        elif self.loss == "exponential":
            losses = [1.0 - exponential(-own) for own in losses]
        weighted = [own * loss for own, loss in zip(weights, losses, strict=True)]
        ask_losses, ask = (asking(each, rows.gather) for each in (weighted, weights))
        error = exact_total(ask_losses) / exact_total(ask)
        if error >= 0.5:
            return error, None, None
        vote = self.learning_rate * log((1.0 - error) / error)
        return error, vote, [exponential(-vote * (1.0 - loss)) for loss in losses]


@documented("adaboost", "classes")
class AdaBoostClassifier(ClassifierMixin, BaseAdaBoost):
    """AdaBoost for classes.

    Trees follow each other, and each is grown to rows that weigh more where the one before was
    wrong; they vote with weights (SAMME; Freund and Schapire 1997, Zhu and others 2009). The table
    is coded once, and weights are integers, so the model has the same bits for any number of
    threads and in every regime.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    AdaBoostRegressor : The same for numbers.
    GradientBoostingClassifier : Trees that are grown to what others leave of a loss.

    Notes
    -----
    The fit ends early with a tree that is right about all rows, and before one that is no better
    than chance. There are no class weights: give `fit` a ``sample_weight``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dtrees import AdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier().fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.94
    """

    classes_: np.ndarray
    n_classes_: int

    _tree_class = DecisionTreeClassifier
    _criteria = DecisionTreeClassifier._criteria
    _constraints = {  # noqa: RUF012
        **BaseAdaBoost._constraints,
        "criterion": DecisionTreeClassifier._constraints["criterion"],
    }
    _learns = {**BaseAdaBoost._learns, **LEARNS_CLASSES}  # noqa: RUF012

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        learning_rate: float = 1.0,
        criterion: str | Criterion = "gini",
        max_depth: int | None = 1,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        category_penalty: float = 1.25,
        regime: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._set_all(locals())

    score = base.score
    predict_proba = base.predict_proba
    predict_log_proba = base.predict_log_proba

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute what the votes say of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        votes : float64 array of shape (n_rows,) or (n_rows, n_classes_)
            Of two classes, twice the share of the votes for the second one less that for the
            first. Of more, for each class the share of its votes, less that of the others divided
            by their number.
        """
        return self._answer("decision_function", X)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Compute what the votes say after each tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `staged_predict`.

        Yields
        ------
        votes : float64 array of shape (n_rows,) or (n_rows, n_classes_)
            As `decision_function` of a model of 1, 2, ... trees.
        """
        return self._staged("decision_function", X)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Predict the share of every class after each tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `staged_predict`.

        Yields
        ------
        shares : float64 array of shape (n_rows, n_classes_)
            As `predict_proba` of a model of 1, 2, ... trees.
        """
        return self._staged("predict_proba", X)

    def _predictor(self) -> VotePredictor:
        own = self.codebook_, self.classes_, type(self).__name__, self.forest_
        return VotePredictor(*own, self.estimator_weights_)

    def _summed(self) -> tuple[Any, ...]:
        n, weights = self.n_classes_, self.estimator_weights_
        if n == 1:
            return tuple(as_step(tree, 1, 0.0, 1.0) for tree in self.forest_.trees), np.ones(1)
        outputs, of_all = (range(n), 1) if n > 2 else ([1], 2)  # log odds are of both classes
        shares = of_all * weights / sum_of(weights) / (n - 1) ** 2
        steps = tuple(
            as_step(tree, k, n * share, weight)
            for tree, share, weight in zip(self.forest_.trees, shares, weights, strict=True)
            for k in outputs
        )
        start = np.full(len(outputs), -of_all / (n - 1) ** 2)
        return steps, start, "softmax" if n > 2 else "logit"

    def _units(self, ask: Ask) -> TargetUnits:
        return TargetUnits.of_classes(ask)

    def _reweighting(self) -> Reweighting:
        return ReweightedClasses(self.n_estimators, self.learning_rate)

    def _vote_of_chance(self, error: float) -> float:
        raise ValueError(
            f"The first tree of {type(self).__name__} is wrong about {error:.0%} of the rows by "
            "weight, which is no better than chance: there is nothing to go on with. Let trees be "
            "deeper, or look whether the columns tell anything of y."
        )


@documented("adaboost", "numbers")
class AdaBoostRegressor(RegressorMixin, BaseAdaBoost):
    """AdaBoost for numbers.

    Trees follow each other, and each is grown to a bag into which rows are drawn more often where
    the one before was far off; the weighted median of the trees is predicted (AdaBoost.R2; Drucker
    1997). The table is coded once, and the model has the same bits for any number of threads and in
    every regime.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    AdaBoostClassifier : The same for classes.
    GradientBoostingRegressor : Trees that are grown to what others leave of a loss.

    Notes
    -----
    The fit ends early with a tree that is right about all rows, and before one whose mean loss is a
    half or more.

    {bags}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import AdaBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AdaBoostRegressor(random_state=0).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 1)
    0.3
    """

    bootstrap = True

    _tree_class = DecisionTreeRegressor
    _criteria = DecisionTreeRegressor._criteria
    _spare_bits = 5  # as of forests
    _constraints = {  # noqa: RUF012
        **BaseAdaBoost._constraints,
        "criterion": DecisionTreeRegressor._constraints["criterion"],
        "loss": (OneOf(("linear", "square", "exponential")),),
    }

    loss: str

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        learning_rate: float = 1.0,
        loss: str = "linear",
        criterion: str | Criterion = "squared_error",
        max_depth: int | None = 3,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        category_penalty: float = 1.25,
        regime: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._set_all(locals())

    score = base.score

    def _summed(self) -> tuple[Any, ...]:
        raise TypeError(
            f"{type(self).__name__} predicts a weighted median of its trees, which other formats "
            "and explanations have not. Take one of its estimators_, or gradient boosting."
        )

    def _predictor(self) -> MedianPredictor:
        own = self.codebook_, None, type(self).__name__, self.forest_
        return MedianPredictor(*own, self.estimator_weights_)

    def _units(self, ask: Ask) -> TargetUnits:
        return units_of_numbers(ask, self.criterion, spare_bits=self._spare_bits, drawn=True)

    def _reweighting(self) -> Reweighting:
        return ReweightedNumbers(self.n_estimators, self.learning_rate, self.loss)


def as_step(tree: Tree, number: int, step: float, weight: float) -> Tree:
    """A tree whose nodes have a value of `step` where they vote for a class, and else of 0.

    `weight` is the sum of the gains of its splits, as a share of the weight of the root.
    """
    total = total_of(tree.statistics, tree.criterion)
    statistics = np.c_[total, total * (votes_of(tree) == number)]
    gain = relative_gains(tree)
    gain = gain * (weight * float(total[0]) * tree.weight_unit / max(gain.sum(), SMALL))
    how: dict[str, Any] = {"unit": tree.weight_unit * step, "offset": 0.0, "gain": gain}
    return replace(tree, criterion="squared_error", statistics=statistics, **how)
