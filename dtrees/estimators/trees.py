"""The decision trees: parameters, their defaults, and what only one of the two has.

How a tree is fitted stands in `dtrees.estimators.base`, how it grows in `dtrees.core.grower`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from dtrees.coding.target import Target
from dtrees.coding.weights import check_finite
from dtrees.estimators.base import LEARNS_CLASSES, BaseDecisionTree
from dtrees.estimators.constraints import InstanceOf, Nothing, OneOf
from dtrees.estimators.prediction import LazyScore


class DecisionTreeClassifier(LazyScore, ClassifierMixin, BaseDecisionTree):
    """A decision tree for classes.

    Grown on codes, exactly: every threshold and, for two classes, every set of categories that
    could be the best is looked at. Equal splits are decided by rule (see `random_state`), so the
    tree does not depend on the number of threads, on the order of the rows or on sparse or dense
    storage.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        What a split makes smaller. "log_loss" is another name for "entropy", in bits.
    max_depth : int, default=None
        Nodes at this depth are leaves. None: no limit.
    min_samples_split : int or float, default=2
        Least number of rows of a node that is split; a float is a share of the rows of positive
        weight, rounded up.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the rows of positive
        weight, rounded up.
    min_weight_fraction_leaf : float, default=0.0
        Least weight on each side of a split, as a share of the weight of all rows.
    max_features : int, float or {"sqrt", "log2"}, default=None
        Number of columns drawn at each node: that many, a share of all, their root or their
        binary logarithm. None: all. The draw goes on until a column can be split.
    max_leaf_nodes : int, default=None
        The tree with the most profitable splits that has so many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A node is split when that lowers the weighted impurity of the whole tree by so much.
    class_weight : dict or "balanced", default=None
        Weight of each class by its label, 1 for classes left out; "balanced" gives all classes
        the same total weight. None: every class has weight one.
    ccp_alpha : float, default=0.0
        What a leaf costs in minimal cost-complexity pruning.
    random_state : int, RandomState or None, default=None
        Seed of the draws of columns, and of the sample behind cuts (see `max_codes`). Where splits
        of several columns gain the same, the seed and the node decide between them. None: the
        lowest of these columns is taken, so a tree that searches all columns of exact codes draws
        nothing and is the same each time.
    monotonic_cst : None
        Not supported yet.
    max_codes : int, default=None
        Largest number of distinct values that a numeric column keeps; columns with more are cut
        at quantiles. None: every value is kept and the tree is exact.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types (strings, pandas and polars
        categoricals), a mask, a list of numbers or names, or none of them.
    unseen : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit: goes where missing values
        go, goes with most rows, or raises a ValueError.
    category_penalty : float, default=1.0
        What a column pays for many categories when columns are compared: each category beyond
        eleven in a node takes so many times the impurity of a row within its category off the
        gain of the best split. 0: nothing, and such columns win by what they fit by chance.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.

    Attributes
    ----------
    classes_ : array of shape (n_classes_,)
        The labels, sorted.
    n_classes_ : int
        Number of classes.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Share of every column in the impurity decrease.
    max_features_ : int
        Number of columns drawn at each node.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    n_outputs_ : int
        1.
    tree_ : TreeView
        The nodes as flat arrays.

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
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        class_weight=None,
        ccp_alpha=0.0,
        random_state=None,
        monotonic_cst=None,
        max_codes=None,
        categorical_features="from_dtype",
        unseen="missing",
        category_penalty=1.0,
        n_jobs=None,
    ):
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
        self.max_codes = max_codes
        self.categorical_features = categorical_features
        self.unseen = unseen
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

    def _learned(self, target: Target) -> dict[str, Any]:
        return {"classes_": target.classes, "n_classes_": target.n_classes}


class DecisionTreeRegressor(LazyScore, RegressorMixin, BaseDecisionTree):
    """A decision tree for numbers.

    Grown on codes, exactly: every threshold and every set of categories that could be the best is
    looked at, and the sums behind them are sums of integers. Equal splits are decided by rule (see
    `random_state`), so the tree does not depend on the number of threads, on the order of the rows
    or on sparse or dense storage.

    Parameters
    ----------
    criterion : {"squared_error", "poisson"}, default="squared_error"
        What a split makes smaller: the variance, or half the Poisson deviance. The latter needs
        a `y` that is not negative.
    max_depth : int, default=None
        Nodes at this depth are leaves. None: no limit.
    min_samples_split : int or float, default=2
        Least number of rows of a node that is split; a float is a share of the rows of positive
        weight, rounded up.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the rows of positive
        weight, rounded up.
    min_weight_fraction_leaf : float, default=0.0
        Least weight on each side of a split, as a share of the weight of all rows.
    max_features : int, float or {"sqrt", "log2"}, default=None
        Number of columns drawn at each node: that many, a share of all, their root or their
        binary logarithm. None: all. The draw goes on until a column can be split.
    max_leaf_nodes : int, default=None
        The tree with the most profitable splits that has so many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A node is split when that lowers the weighted impurity of the whole tree by so much.
    ccp_alpha : float, default=0.0
        What a leaf costs in minimal cost-complexity pruning.
    random_state : int, RandomState or None, default=None
        Seed of the draws of columns, and of the sample behind cuts (see `max_codes`). Where splits
        of several columns gain the same, the seed and the node decide between them. None: the
        lowest of these columns is taken, so a tree that searches all columns of exact codes draws
        nothing and is the same each time.
    monotonic_cst : None
        Not supported yet.
    max_codes : int, default=None
        Largest number of distinct values that a numeric column keeps; columns with more are cut
        at quantiles. None: every value is kept and the tree is exact.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types (strings, pandas and polars
        categoricals), a mask, a list of numbers or names, or none of them.
    unseen : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit: goes where missing values
        go, goes with most rows, or raises a ValueError.
    category_penalty : float, default=1.0
        What a column pays for many categories when columns are compared: each category beyond
        eleven in a node takes so many times the impurity of a row within its category off the
        gain of the best split. 0: nothing, and such columns win by what they fit by chance.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.

    Attributes
    ----------
    feature_importances_ : float64 array of shape (n_features_in_,)
        Share of every column in the impurity decrease.
    max_features_ : int
        Number of columns drawn at each node.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    n_outputs_ : int
        1.
    tree_ : TreeView
        The nodes as flat arrays.

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
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        ccp_alpha=0.0,
        random_state=None,
        monotonic_cst=None,
        max_codes=None,
        categorical_features="from_dtype",
        unseen="missing",
        category_penalty=1.0,
        n_jobs=None,
    ):
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
        self.max_codes = max_codes
        self.categorical_features = categorical_features
        self.unseen = unseen
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
    y: np.ndarray, sample_weight: Any, class_weight: Any, spare_bits: int = 0
) -> Target:
    """Labels as codes; raises as scikit-learn does when they are none."""
    if y.dtype.kind == "f":
        check_finite(y, "y")
        check_classification_targets(y)
    return Target.classification(y, sample_weight, class_weight, spare_bits)


def regression_target(
    y: np.ndarray, sample_weight: Any, criterion: str, spare_bits: int = 0
) -> Target:
    """Numbers in fixed point; raises for numbers that the criterion has no use for."""
    if criterion != "poisson":
        return Target.regression(y, sample_weight, spare_bits=spare_bits)
    target = Target.regression(y, sample_weight, center=False, spare_bits=spare_bits)
    if np.any(np.asarray(y, dtype=np.float64) < 0):
        raise ValueError(
            "Some value(s) of y are negative which is not allowed for Poisson regression."
        )
    if not np.any(target.wy):
        raise ValueError("Sum of y is not positive which is necessary for Poisson regression.")
    return target
