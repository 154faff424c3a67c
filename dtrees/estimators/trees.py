"""The decision trees: parameters and defaults, how one tree is fitted, and what it answers.

``max_leaf_nodes`` and ``ccp_alpha`` are limits that a grown tree can answer: they are applied to it
afterwards [SF 3]. How a tree grows stands in `dtrees.core.grow.shared`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.target import Ask, GivenRows, TargetUnits
from dtrees.constraints import Boolean, InstanceOf, Nothing, OneOf
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Resampling, plain
from dtrees.core.model.pruning import cost_complexity_path
from dtrees.core.model.tree import Tree
from dtrees.criteria import Criterion
from dtrees.estimators import base, quantiles
from dtrees.estimators.base import LEARNS_CLASSES, TREE_CONSTRAINTS, TREE_LEARNS, BaseModel
from dtrees.estimators.docstrings import documented
from dtrees.estimators.fit_plan import Encoded, FitPlan, Training
from dtrees.estimators.prediction import Predictor, TreePredictor
from dtrees.estimators.resume import facts_of, saved_trees, seed_of
from dtrees.estimators.tree_view import TreeView, missing_by_model
from dtrees.export.parts import Parts
from dtrees.parallel import (
    Checkpoint,
    FitStatistics,
    admitted,
    admitted_where_they_are,
    grow_sets,
    threaded,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


SPLITTERS = (OneOf(("best", "random")),)
OF_A_USER = InstanceOf(Criterion, "dtrees.criteria.Criterion")


class BaseDecisionTree(BaseModel):
    """What the two decision trees share; not meant to be used itself."""

    tree_: TreeView

    _learns: ClassVar = TREE_LEARNS
    _takes_outputs = True

    criterion: str | Criterion
    splitter: str
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    max_features: int | float | str | None
    min_impurity_decrease: float
    ccp_alpha: float

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, checkpoint: Any = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            A NumPy array, a SciPy sparse matrix or array, a pandas or polars data frame, an Arrow
            table or a list of rows; or a Dask array (of dense or sparse blocks) or data frame,
            which is coded where its partitions are. Numbers, booleans, dates, strings and
            categories; missing values are welcome. It is read only, and not kept.
        y : array-like of shape (n_rows,)
            The target; a Dask collection, if you like, cut in any way.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. A row of weight 2 is as good as two rows, except for
            ``min_samples_split`` and ``min_samples_leaf``, which count rows of positive weight.
        checkpoint : str or path, default=None
            A folder for the tree, or its URL, as of forests. The same fit finds it there.

        Returns
        -------
        self : object
            The fitted tree.

        Raises
        ------
        ValueError
            A parameter, `X`, `y` or `sample_weight` is not what it should be, or `checkpoint` holds
            another tree; the estimator is then as it was before.
        dtrees.exceptions.ModelFileError
            `checkpoint` is damaged.

        Notes
        -----
        Costs O(n_rows x n_columns x depth), and one sort of every ordered column.
        """
        return self._fit_coded(self._training(X, y, sample_weight, checkpoint))

    of_target = base.of_target

    def _fit_coded(self, training: Training) -> Any:
        growth, how = self._growth_of(training.encoded), training.listeners
        with training.stats.phase("growth"), training.saving():
            ((tree,),) = grow_sets(growth, range(1), plain(), training.run, **how)
        (learned,) = self._learned_by(training.encoded, [tree])
        if self.keep_rows:
            learned |= quantiles.learned_rows(growth, training, [tree])
        learned["_fit_report"] = training.stats.report()
        self._forget_at_times()
        self.__dict__.update(learned)
        return self

    def _learned_by(self, encoded: Encoded, trees: Sequence[Tree]) -> list[dict[str, Any]]:
        """The attributes of a fit for each of the trees that were grown with these parameters."""
        book = encoded.book.without_values()  # as large as the table; the tree has its thresholds
        facts = self._learned_of(encoded.book, encoded.target)
        facts |= {"n_outputs_": encoded.target.n_outputs, "max_features_": encoded.max_features}
        missing = missing_by_model([[tree] for tree in trees], encoded.coded)
        return [
            {**facts, "tree_": TreeView(tree, book, mine)}
            for tree, mine in zip(trees, missing, strict=True)
        ]

    def _growth_of(self, encoded: Encoded) -> ForestGrowth:
        """What the tree is grown from."""
        return ForestGrowth(
            encoded.coded,
            encoded.target,
            encoded.rules,
            None,
            encoded.book.thresholds,
            values=encoded.book.code_values() if self.splitter == "random" else None,
            shares=encoded.shares,
            max_leaf_nodes=self.max_leaf_nodes,
            ccp_alpha=self.ccp_alpha,
            arena=Arena(),
        )

    def _fit_sets(self, training: Training, resampling: Resampling) -> list[Any]:
        """An estimator with these parameters, fitted to each training set."""
        growth = self._growth_of(training.encoded)
        grown = grow_sets(growth, range(1), resampling, training.run, **training.listeners)
        models = [self._unfitted() for _ in grown]
        trees = [tree for (tree,) in grown]
        for model, learned in zip(models, self._learned_by(training.encoded, trees), strict=True):
            model.__dict__.update(learned)
        if self.keep_rows:
            kept = quantiles.learned_rows_of_sets(growth, training, resampling, grown)
            for model, learned in zip(models, kept, strict=True):
                model.__dict__.update(learned)
        return models

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        leaves : intp array of shape (n_rows,)
            Node numbers in ``[0, tree_.node_count)``. O(n_rows x depth).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Columns are not those of the fit.
        """
        return self._answer("apply", X)

    def decision_path(self, X: Any) -> csr_matrix:
        """Return the nodes that every row passes on its way to its leaf.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        indicator : csr matrix of shape (n_rows, tree_.node_count)
            1 where the row passes the node, the leaf included.
        """
        return self._answer("decision_path", X)

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return every step of minimal cost-complexity pruning; fits nothing.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `fit`.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            As for `fit`.

        Returns
        -------
        path : Bunch
            ``ccp_alphas``, ascending from 0, float64 of shape (n_steps,), and ``impurities``, the
            weighted impurity of the leaves from that alpha on, of the same shape.

        Notes
        -----
        Costs one fit; ``ccp_alpha`` is not looked at.
        """
        training = self._training(X, y, sample_weight)
        growth = replace(self._growth_of(training.encoded), ccp_alpha=0.0)
        ((tree,),) = grow_sets(growth, range(1), plain(), training.run)
        alphas, impurities = cost_complexity_path(tree)
        return Bunch(ccp_alphas=alphas, impurities=impurities)

    def get_depth(self) -> int:
        """Return the depth of the deepest leaf; a tree of one leaf has depth 0."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every column in the impurity decrease of the training rows.

        float64 (n_features_in_,). Columns of many values get more than their due: see
        :func:`dtrees.inspection.held_out_importances` for rows that did not choose the splits.
        """
        check_is_fitted(self)
        return self.tree_.compute_feature_importances()

    def _predictor(self) -> Predictor:
        view, classes = self.tree_, getattr(self, "classes_", None)
        return TreePredictor(view.codebook, classes, type(self).__name__, view.model)

    def _parts(self) -> Parts:
        learned, parameters = self._learned_attributes(), self.get_params(deep=False)
        view = self.tree_
        return Parts(parameters, learned, (view.model,), view.codebook, view.saw_missing)

    @classmethod
    def _of_parts(cls, parts: Parts) -> Any:
        made = cls(**parts.parameters)
        (tree,) = parts.trees
        made.__dict__.update(parts.attributes, tree_=TreeView(tree, parts.book, parts.saw_missing))
        return made

    def _training(self, X: Any, y: Any, sample_weight: Any, checkpoint: Any = None) -> Training:
        """Check the parameters and code the table."""
        self._check_parameters()
        plan, run, stats = FitPlan(self), threaded(self.n_jobs), FitStatistics()
        there = None if checkpoint is None else Checkpoint(checkpoint)
        columns = {"y": y, "sample_weight": sample_weight}
        if self.keep_rows:  # which is as long as the table
            X, y, sample_weight = admitted(X, columns, stats)
        else:
            X, y, sample_weight = admitted_where_they_are(X, columns, stats, None)
        with stats.phase("coding"):
            encoded = plan.encode(X, (y, sample_weight), seed_of(self, there), run, stats)
        saved = saved_trees(there, partial(facts_of, self, encoded.table), encoded.table, stats)
        return Training(encoded, y, run, stats=stats, saved=saved)


@documented("tree", "classes")
class DecisionTreeClassifier(ClassifierMixin, BaseDecisionTree):
    """A decision tree for classes.

    Grown on codes, exactly: every threshold and, for two classes, every set of categories that
    could be the best is looked at. Equal splits are decided by rule (see `random_state`). So the
    tree does not depend on the number of threads, on the order of the rows or on sparse or dense
    storage.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    DecisionTreeRegressor : The same for numbers.
    dtrees.export_text : The rules of a tree as text.

    Notes
    -----
    With class weights *and* sample weights, "balanced" balances the weighted classes, so a row of
    weight 2 stays the same as two rows; scikit-learn counts rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier, export_text
    >>> iris = load_iris(as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> print(export_text(tree))
    |--- petal length (cm) <= 2.45
    |   |--- class: 0
    |--- petal length (cm) >  2.45
    |   |--- petal width (cm) <= 1.75
    |   |   |--- class: 1
    |   |--- petal width (cm) >  1.75
    |   |   |--- class: 2
    <BLANKLINE>
    """

    classes_: np.ndarray
    n_classes_: int

    _criteria = {  # noqa: RUF012
        "gini": "gini",
        "entropy": "entropy",
        "log_loss": "entropy",
        "chi_square": "chi_square",
        "gain_ratio": "gain_ratio",
    }
    _constraints = {  # noqa: RUF012
        **TREE_CONSTRAINTS,
        "criterion": (OneOf(tuple(_criteria)), OF_A_USER),
        "splitter": SPLITTERS,
        "class_weight": (
            InstanceOf(dict, "dict"),
            InstanceOf(list, "list"),
            OneOf(("balanced",)),
            Nothing(),
        ),
    }
    _learns = {**TREE_LEARNS, **LEARNS_CLASSES}  # noqa: RUF012

    def __init__(
        self,
        *,
        criterion: str | Criterion = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        ccp_alpha: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        category_penalty: float = 1.25,
        n_jobs: int | None = None,
    ) -> None:
        self._set_all(locals())

    score = base.score
    predict_proba = base.predict_proba
    predict_log_proba = base.predict_log_proba

    def _units(self, ask: Ask) -> TargetUnits:
        return TargetUnits.of_classes(ask, self.class_weight)


@documented("tree", "numbers")
class DecisionTreeRegressor(RegressorMixin, BaseDecisionTree):
    """A decision tree for numbers.

    Grown on codes, exactly. Every threshold and every set of categories that could be the best is
    looked at, and the sums behind them are sums of integers. Equal splits are decided by rule (see
    `random_state`). So the tree does not depend on the number of threads, on the order of the rows
    or on sparse or dense storage.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    DecisionTreeClassifier : The same for classes.
    dtrees.export_text : The rules of a tree as text.

    Notes
    -----
    `y` is kept in fixed point; `dtrees.coding.target` states the error bound, which is about
    1e-14 of its range.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = DecisionTreeRegressor(max_depth=2, min_samples_leaf=3).fit(X, y)
    >>> float(((tree.predict(X) - y) ** 2).mean().round(2))
    3360.05
    """

    _recursion_class = "DecisionTreeRegressor"
    _criteria = {  # noqa: RUF012
        "squared_error": "squared_error",
        "absolute_error": "absolute_error",
        "poisson": "poisson",
    }
    _constraints = {  # noqa: RUF012
        **TREE_CONSTRAINTS,
        "criterion": (OneOf(tuple(_criteria)), OF_A_USER),
        "splitter": SPLITTERS,
        "keep_rows": (Boolean(),),
    }
    _learns = {**TREE_LEARNS, **quantiles.LEARNS_ROWS}  # noqa: RUF012
    _learns_at_times = BaseDecisionTree._learns_at_times | quantiles.LEARNS_ROWS.keys()

    def __init__(
        self,
        *,
        criterion: str | Criterion = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
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
        n_jobs: int | None = None,
        keep_rows: bool = False,
    ) -> None:
        self._set_all(locals())

    score = base.score
    predict_quantiles = quantiles.predict_quantiles
    predict_cdf = quantiles.predict_cdf

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        quantiles.check_rows(parts)

    def _units(self, ask: Ask) -> TargetUnits:
        return units_of_numbers(ask, self.criterion)


def units_of_numbers(ask: Ask, criterion: Any, **how: Any) -> TargetUnits:
    """Units of numbers; raises for numbers that the criterion has no use for."""
    if criterion != "poisson":
        return TargetUnits.of_numbers(ask, **how)
    units = TargetUnits.of_numbers(ask, center=False, **how)
    negative, positive = zip(*ask(_signs, units), strict=True)
    if any(negative):
        raise ValueError(
            "Some value(s) of y are negative which is not allowed for Poisson regression."
        )
    if not any(positive):
        raise ValueError("Sum of y is not positive which is necessary for Poisson regression.")
    return units


def _signs(rows: GivenRows, units: TargetUnits) -> tuple[bool, bool]:
    """Whether some numbers are negative, and some that count are not zero."""
    target = units.target(rows)
    live = target.has_weight
    return bool((rows.y < 0).any()), bool((target.y if live is None else target.y[live]).any())
