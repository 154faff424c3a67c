"""The decision trees: parameters, their defaults, and what only one of the two has.

How a tree is fitted stands in `dtrees.estimators.single_tree`, how it grows in
`dtrees.core.grow.grower`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from dtrees.coding.target import Target
from dtrees.coding.weights import check_finite
from dtrees.constraints import InstanceOf, Nothing, OneOf
from dtrees.estimators.docstrings import documented
from dtrees.estimators.prediction import LazyScore
from dtrees.estimators.single_tree import BaseDecisionTree
from dtrees.estimators.stored import LEARNS_CLASSES


@documented("tree", "classes")
class DecisionTreeClassifier(LazyScore, ClassifierMixin, BaseDecisionTree):
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

    _criteria = {"gini": "gini", "entropy": "entropy", "log_loss": "entropy"}  # noqa: RUF012
    _constraints = {  # noqa: RUF012
        **BaseDecisionTree._constraints,
        "criterion": (OneOf(("gini", "entropy", "log_loss")),),
        "class_weight": (InstanceOf(dict, "dict"), OneOf(("balanced",)), Nothing()),
    }
    _learns = {**BaseDecisionTree._learns, **LEARNS_CLASSES}  # noqa: RUF012

    def __init__(
        self,
        *,
        criterion: str = "gini",
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
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.random_state = random_state
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.category_penalty = category_penalty
        self.n_jobs = n_jobs

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : array of shape (n_rows,)
            The class with the largest weight in the row's leaf; of equal ones, the first. dtype
            of the labels at fit.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Columns are not those of the fit.
        """
        return self._answer("predict", X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the share of every class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        shares : float64 array of shape (n_rows, n_classes_)
            Weight of the classes in the row's leaf, in the order of ``classes_``; rows sum to 1.
        """
        return self._answer("predict_proba", X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict the logarithm of the share of every class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        logarithms : float64 array of shape (n_rows, n_classes_)
            -inf for classes that the leaf does not hold.
        """
        return self._answer("predict_log_proba", X)

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        return classification_target(y, sample_weight, self.class_weight)

    def _class_weight_of_target(self) -> Any:
        return self.class_weight

    def _learned(self, target: Target) -> dict[str, Any]:
        return {"classes_": target.classes, "n_classes_": target.n_classes}


@documented("tree", "numbers")
class DecisionTreeRegressor(LazyScore, RegressorMixin, BaseDecisionTree):
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

    _criteria = {"squared_error": "squared_error", "poisson": "poisson"}  # noqa: RUF012
    _constraints = {  # noqa: RUF012
        **BaseDecisionTree._constraints,
        "criterion": (OneOf(("squared_error", "poisson")),),
    }

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
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
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.random_state = random_state
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.category_penalty = category_penalty
        self.n_jobs = n_jobs

    def predict(self, X: Any) -> np.ndarray:
        """Predict a number for every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : float64 array of shape (n_rows,)
            The weighted mean of the target in the row's leaf.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Columns are not those of the fit.
        """
        return self._answer("predict", X)

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        return regression_target(y, sample_weight, self.criterion)

    def _learned(self, target: Target) -> dict[str, Any]:
        return {}


def classification_target(
    y: np.ndarray, sample_weight: Any, class_weight: Any, **how: Any
) -> Target:
    """Labels as codes; raises as scikit-learn does when they are none."""
    if y.dtype.kind == "f":
        check_finite(y, "y")
        check_classification_targets(y)
    return Target.classification(y, sample_weight, class_weight, **how)


def regression_target(y: np.ndarray, sample_weight: Any, criterion: str, **how: Any) -> Target:
    """Numbers in fixed point; raises for numbers that the criterion has no use for."""
    if criterion != "poisson":
        return Target.regression(y, sample_weight, **how)
    target = Target.regression(y, sample_weight, center=False, **how)
    if np.any(np.asarray(y, dtype=np.float64) < 0):
        raise ValueError(
            "Some value(s) of y are negative which is not allowed for Poisson regression."
        )
    live = target.has_weight
    if not np.any(target.y if live is None else target.y[live]):
        raise ValueError("Sum of y is not positive which is necessary for Poisson regression.")
    return target
