"""The forests: parameters, their defaults, and what only one of them has.

How a forest is fitted stands in `dtrees.estimators.ensemble`, how a tree of it grows in
`dtrees.core.forest`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from dtrees.coding.target import Target
from dtrees.estimators.base import LEARNS_CLASSES
from dtrees.estimators.constraints import ArrayOf, InstanceOf, Nothing, OneOf
from dtrees.estimators.ensemble import SPARE_BITS, BaseForest
from dtrees.estimators.prediction import LazyScore
from dtrees.estimators.trees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    classification_target,
    regression_target,
)


class ForestClassifier(LazyScore, ClassifierMixin, BaseForest):
    """What forests for classes share; not meant to be used itself."""

    _tree_class = DecisionTreeClassifier
    _criteria = DecisionTreeClassifier._criteria
    _constraints = {  # noqa: RUF012
        **BaseForest._constraints,
        "criterion": DecisionTreeClassifier._constraints["criterion"],
        "class_weight": (
            InstanceOf(dict, "dict"),
            OneOf(("balanced", "balanced_subsample")),
            Nothing(),
        ),
    }
    _learns = {  # noqa: RUF012
        **BaseForest._learns,
        **LEARNS_CLASSES,
        "oob_decision_function_": (ArrayOf(2, np.dtype(np.float64)),),
    }

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : array of shape (n_rows,)
            The class with the largest mean share; of equal ones, the first.
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
            Mean over the trees, in the order of ``classes_``; rows sum to 1.
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
            -inf for classes that no leaf of the row holds.
        """
        return self._answer("predict_log_proba", X)

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        weight = self.class_weight
        if weight == "balanced_subsample":  # in the bags; without bags, in the table
            weight = None if self.bootstrap else "balanced"
        return classification_target(y, sample_weight, weight, spare_bits=SPARE_BITS)

    def _learned(self, target: Target) -> dict[str, Any]:
        return {"classes_": target.classes, "n_classes_": target.n_classes}

    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        voted = ~np.isnan(mean[:, 0])
        if not voted.any():
            return math.nan
        codes = mean[voted].argmax(axis=1)
        if not callable(self.oob_score):
            return float(np.mean(codes == target.y[voted]))  # accuracy
        assert target.classes is not None
        return float(self.oob_score(y[voted], target.classes.take(codes)))

    def _oob_predictions(self, mean: np.ndarray) -> dict[str, Any]:
        return {"oob_decision_function_": mean}


class ForestRegressor(LazyScore, RegressorMixin, BaseForest):
    """What forests for numbers share; not meant to be used itself."""

    _tree_class = DecisionTreeRegressor
    _criteria = DecisionTreeRegressor._criteria
    _constraints = {  # noqa: RUF012
        **BaseForest._constraints,
        "criterion": DecisionTreeRegressor._constraints["criterion"],
    }
    _learns = {  # noqa: RUF012
        **BaseForest._learns,
        "oob_prediction_": (ArrayOf(1, np.dtype(np.float64)),),
    }

    def predict(self, X: Any) -> np.ndarray:
        """Predict a number for every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : float64 array of shape (n_rows,)
            Mean of the trees.
        """
        return self._answer("predict", X)

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        return regression_target(y, sample_weight, self.criterion, spare_bits=SPARE_BITS)

    def _learned(self, target: Target) -> dict[str, Any]:
        return {}

    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        from sklearn.metrics import r2_score

        voted = ~np.isnan(mean[:, 0])
        if np.count_nonzero(voted) < 2:
            return math.nan
        score = self.oob_score if callable(self.oob_score) else r2_score
        return float(score(y[voted], mean[voted, 0]))

    def _oob_predictions(self, mean: np.ndarray) -> dict[str, Any]:
        return {"oob_prediction_": mean[:, 0]}


class RandomForestClassifier(ForestClassifier):
    """A random forest for classes.

    Trees of bagged rows that search a few drawn columns at each node; the forest predicts the
    mean of their class shares (Breiman 2001). The table is coded once, with 255 codes a column
    unless `max_codes` says otherwise. Trees do not depend on each other,
    so any number of threads or workers grows the same forest, bit for bit.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        What a split makes smaller. "log_loss" is another name for "entropy", in bits.
    max_depth : int, default=None
        Nodes at this depth are leaves. None: no limit.
    min_samples_split : int or float, default=2
        Least number of rows of a node that is split; a float is a share of the rows of positive
        weight, rounded up. Rows are counted once, however often they are in the bag, and shares
        are of the rows of the table.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the rows of positive
        weight, rounded up.
    min_weight_fraction_leaf : float, default=0.0
        Least weight on each side of a split, as a share of the weight of the rows of the tree.
    max_features : int, float or {"sqrt", "log2"}, default="sqrt"
        Number of columns drawn at each node: that many, a share of all, their root or their
        binary logarithm. None: all. The draw goes on until a column can be split.
    max_leaf_nodes : int, default=None
        The trees with the most profitable splits that have so many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A node is split when that lowers the weighted impurity of the whole tree by so much.
    bootstrap : bool, default=True
        Whether each tree sees a bag of rows; otherwise it sees all of them. A row is in the bag of
        a tree as often as a Poisson draw of (seed, tree, row) says, with mean `max_samples`.
    oob_score : bool or callable, default=False
        Whether rows are predicted by the trees whose bag lacks them, and scored:
        accuracy, or by a callable (y, predictions) -> float. Needs ``bootstrap=True``.
    oob_tol : float, default=None
        No more trees are added when the out-of-bag score, smoothed over ten trees, has not improved
        by more than this in the second half of the trees. Larger scores are better. About a
        tolerance is what more trees could still win. None: all `n_estimators` trees are grown.
        Needs ``bootstrap=True``.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.
    random_state : int, RandomState or None, default=None
        Seed of bags, of the draws of columns and between columns of equal gain, and of the sample
        behind cuts. The same seed gives the same forest on any number of threads.
    verbose : int, default=0
        1 or more shows a bar of the trees grown (`dtrees.callbacks.ProgressBar`).
    warm_start : bool, default=False
        Whether `fit` keeps the trees that are there and adds those that are missing to
        `n_estimators`. With the same table the forest is the one that is grown at once.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        Weight of each class by its label, 1 for classes left out; "balanced" gives all classes
        the same total weight, "balanced_subsample" does so in every bag, or in the table where
        there are no bags. None: every class has weight one.
    ccp_alpha : float, default=0.0
        What a leaf costs in minimal cost-complexity pruning of each tree.
    max_samples : int, float or None, default=None
        Mean size of a bag: a number of rows (or groups), or a share of them. None: as many as
        there are.
    monotonic_cst : None
        Not supported yet.
    max_codes : int, default=255
        Largest number of distinct values that a numeric column keeps; columns with more are cut
        at quantiles. None: every value is kept and the trees are exact.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types (strings, pandas and polars
        categoricals), a mask, a list of numbers or names, or none of them.
    unseen : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit: goes where missing values
        go, goes with most rows, or raises a ValueError.
    category_penalty : float, default=2.0
        What a column pays for many categories when columns are compared: each category beyond
        eleven in a node takes so many times the impurity of a row within its category off the
        gain of the best split. 0: nothing, and such columns win by what they fit by chance.
    regime : {"local", "replicated", "partitioned"} or None, default=None
        Where the trees are grown: on threads of this process, or on the workers of a Dask cluster,
        each of which gets the coded table. None: on the cluster of the current
        ``distributed.Client``, and without one on threads. Changes nothing but the time.

    Attributes
    ----------
    n_estimators_ : int
        Number of trees; less than `n_estimators` when the fit was stopped.
    estimators_ : list of DecisionTreeClassifier
        The trees as fitted estimators, made at the first look.
    classes_ : array of shape (n_classes_,)
        The labels, sorted.
    n_classes_ : int
        Number of classes.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Mean share of every column in the impurity decrease.
    max_features_ : int
        Number of columns drawn at each node.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    n_outputs_ : int
        1.
    oob_score_ : float
        Score of the out-of-bag predictions; only with `oob_score` or `oob_tol`.
    oob_scores_ : float64 array of shape (n_estimators_,)
        The same of the first 1, 2, ... trees; only with `oob_tol`. nan where too few rows have a
        prediction.
    oob_decision_function_ : float64 array of shape (n_rows, n_classes_)
        Shares of the classes by the trees whose bag lacks the row; nan where there is none.
    forest_ : dtrees.core.model.Forest
        The trees as flat arrays.
    codebook_ : dtrees.coding.codebook.CodeBook
        What their codes mean.

    See Also
    --------
    DecisionTreeClassifier : A single tree.

    Notes
    -----
    Bags differ from scikit-learn's: there a bag has a fixed size, and how often a row is in it
    depends on the other rows; here every row draws for itself, so the size varies by about its
    square root. The forests predict equally well.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=20, oob_score=True, random_state=0).fit(X, y)
    >>> forest.oob_score_ > 0.9
    True
    """

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features="sqrt",
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        oob_tol=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        class_weight=None,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        max_codes=255,
        categorical_features="from_dtype",
        unseen="missing",
        category_penalty=2.0,
        regime=None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_codes = max_codes
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.category_penalty = category_penalty
        self.regime = regime


class RandomForestRegressor(ForestRegressor):
    """A random forest for numbers.

    Trees of bagged rows that search drawn columns at each node; the forest predicts their mean
    (Breiman 2001). The table is coded once, with
    255 codes a column unless `max_codes` says otherwise. Trees do not depend on each other,
    so any number of threads or workers grows the same forest, bit for bit.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared_error", "poisson"}, default="squared_error"
        What a split makes smaller: the variance, or half the Poisson deviance. The latter needs
        a `y` that is not negative.
    max_depth : int, default=None
        Nodes at this depth are leaves. None: no limit.
    min_samples_split : int or float, default=2
        Least number of rows of a node that is split; a float is a share of the rows of positive
        weight, rounded up. Rows are counted once, however often they are in the bag, and shares
        are of the rows of the table.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the rows of positive
        weight, rounded up.
    min_weight_fraction_leaf : float, default=0.0
        Least weight on each side of a split, as a share of the weight of the rows of the tree.
    max_features : int, float or {"sqrt", "log2"}, default=1.0
        Number of columns drawn at each node: that many, a share of all, their root or their
        binary logarithm. None: all. The draw goes on until a column can be split.
    max_leaf_nodes : int, default=None
        The trees with the most profitable splits that have so many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A node is split when that lowers the weighted impurity of the whole tree by so much.
    bootstrap : bool, default=True
        Whether each tree sees a bag of rows; otherwise it sees all of them. A row is in the bag of
        a tree as often as a Poisson draw of (seed, tree, row) says, with mean `max_samples`.
    oob_score : bool or callable, default=False
        Whether rows are predicted by the trees whose bag lacks them, and scored:
        R squared, or by a callable (y, predictions) -> float. Needs ``bootstrap=True``.
    oob_tol : float, default=None
        No more trees are added when the out-of-bag score, smoothed over ten trees, has not improved
        by more than this in the second half of the trees. Larger scores are better. About a
        tolerance is what more trees could still win. None: all `n_estimators` trees are grown.
        Needs ``bootstrap=True``.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.
    random_state : int, RandomState or None, default=None
        Seed of bags, of the draws of columns and between columns of equal gain, and of the sample
        behind cuts. The same seed gives the same forest on any number of threads.
    verbose : int, default=0
        1 or more shows a bar of the trees grown (`dtrees.callbacks.ProgressBar`).
    warm_start : bool, default=False
        Whether `fit` keeps the trees that are there and adds those that are missing to
        `n_estimators`. With the same table the forest is the one that is grown at once.
    ccp_alpha : float, default=0.0
        What a leaf costs in minimal cost-complexity pruning of each tree.
    max_samples : int, float or None, default=None
        Mean size of a bag: a number of rows (or groups), or a share of them. None: as many as
        there are.
    monotonic_cst : None
        Not supported yet.
    max_codes : int, default=255
        Largest number of distinct values that a numeric column keeps; columns with more are cut
        at quantiles. None: every value is kept and the trees are exact.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types (strings, pandas and polars
        categoricals), a mask, a list of numbers or names, or none of them.
    unseen : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit: goes where missing values
        go, goes with most rows, or raises a ValueError.
    category_penalty : float, default=2.0
        What a column pays for many categories when columns are compared: each category beyond
        eleven in a node takes so many times the impurity of a row within its category off the
        gain of the best split. 0: nothing, and such columns win by what they fit by chance.
    regime : {"local", "replicated", "partitioned"} or None, default=None
        Where the trees are grown: on threads of this process, or on the workers of a Dask cluster,
        each of which gets the coded table. None: on the cluster of the current
        ``distributed.Client``, and without one on threads. Changes nothing but the time.

    Attributes
    ----------
    n_estimators_ : int
        Number of trees; less than `n_estimators` when the fit was stopped.
    estimators_ : list of DecisionTreeRegressor
        The trees as fitted estimators, made at the first look.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Mean share of every column in the impurity decrease.
    max_features_ : int
        Number of columns drawn at each node.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    n_outputs_ : int
        1.
    oob_score_ : float
        Score of the out-of-bag predictions; only with `oob_score` or `oob_tol`.
    oob_scores_ : float64 array of shape (n_estimators_,)
        The same of the first 1, 2, ... trees; only with `oob_tol`. nan where too few rows have a
        prediction.
    oob_prediction_ : float64 array of shape (n_rows,)
        Mean of the trees whose bag lacks the row; nan where there is none.
    forest_ : dtrees.core.model.Forest
        The trees as flat arrays.
    codebook_ : dtrees.coding.codebook.CodeBook
        What their codes mean.

    See Also
    --------
    DecisionTreeRegressor : A single tree.

    Notes
    -----
    Bags differ from scikit-learn's: there a bag has a fixed size, and how often a row is in it
    depends on the other rows; here every row draws for itself, so the size varies by about its
    square root. The forests predict equally well.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(n_estimators=50, random_state=0).fit(X, y)
    >>> forest.predict(X[:2]).shape
    (2,)
    """

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=1.0,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        oob_tol=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        max_codes=255,
        categorical_features="from_dtype",
        unseen="missing",
        category_penalty=2.0,
        regime=None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_codes = max_codes
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.category_penalty = category_penalty
        self.regime = regime


class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomized trees for classes.

    Trees that look at one split per drawn column, cut at a random value between the least and the
    greatest of the node (Geurts, Ernst and Wehenkel 2006); categories go left or right at random.
    The table is coded once, with 255 codes a column unless `max_codes` says otherwise. Trees do
    not depend on each other, so any number of threads or workers grows the same forest, bit for
    bit.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        What a split makes smaller. "log_loss" is another name for "entropy", in bits.
    max_depth : int, default=None
        Nodes at this depth are leaves. None: no limit.
    min_samples_split : int or float, default=2
        Least number of rows of a node that is split; a float is a share of the rows of positive
        weight, rounded up. Rows are counted once, however often they are in the bag, and shares
        are of the rows of the table.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the rows of positive
        weight, rounded up.
    min_weight_fraction_leaf : float, default=0.0
        Least weight on each side of a split, as a share of the weight of the rows of the tree.
    max_features : int, float or {"sqrt", "log2"}, default="sqrt"
        Number of columns drawn at each node: that many, a share of all, their root or their
        binary logarithm. None: all. The draw goes on until a column can be split.
    max_leaf_nodes : int, default=None
        The trees with the most profitable splits that have so many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A node is split when that lowers the weighted impurity of the whole tree by so much.
    bootstrap : bool, default=False
        Whether each tree sees a bag of rows; otherwise it sees all of them. A row is in the bag of
        a tree as often as a Poisson draw of (seed, tree, row) says, with mean `max_samples`.
    oob_score : bool or callable, default=False
        Whether rows are predicted by the trees whose bag lacks them, and scored:
        accuracy, or by a callable (y, predictions) -> float. Needs ``bootstrap=True``.
    oob_tol : float, default=None
        No more trees are added when the out-of-bag score, smoothed over ten trees, has not improved
        by more than this in the second half of the trees. Larger scores are better. About a
        tolerance is what more trees could still win. None: all `n_estimators` trees are grown.
        Needs ``bootstrap=True``.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.
    random_state : int, RandomState or None, default=None
        Seed of bags, of the draws of columns and between columns of equal gain, and of the sample
        behind cuts. The same seed gives the same forest on any number of threads.
    verbose : int, default=0
        1 or more shows a bar of the trees grown (`dtrees.callbacks.ProgressBar`).
    warm_start : bool, default=False
        Whether `fit` keeps the trees that are there and adds those that are missing to
        `n_estimators`. With the same table the forest is the one that is grown at once.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        Weight of each class by its label, 1 for classes left out; "balanced" gives all classes
        the same total weight, "balanced_subsample" does so in every bag, or in the table where
        there are no bags. None: every class has weight one.
    ccp_alpha : float, default=0.0
        What a leaf costs in minimal cost-complexity pruning of each tree.
    max_samples : int, float or None, default=None
        Mean size of a bag: a number of rows (or groups), or a share of them. None: as many as
        there are.
    monotonic_cst : None
        Not supported yet.
    max_codes : int, default=255
        Largest number of distinct values that a numeric column keeps; columns with more are cut
        at quantiles. None: every value is kept and the trees are exact.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types (strings, pandas and polars
        categoricals), a mask, a list of numbers or names, or none of them.
    unseen : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit: goes where missing values
        go, goes with most rows, or raises a ValueError.
    regime : {"local", "replicated", "partitioned"} or None, default=None
        Where the trees are grown: on threads of this process, or on the workers of a Dask cluster,
        each of which gets the coded table. None: on the cluster of the current
        ``distributed.Client``, and without one on threads. Changes nothing but the time.

    Attributes
    ----------
    n_estimators_ : int
        Number of trees; less than `n_estimators` when the fit was stopped.
    estimators_ : list of DecisionTreeClassifier
        The trees as fitted estimators, made at the first look.
    classes_ : array of shape (n_classes_,)
        The labels, sorted.
    n_classes_ : int
        Number of classes.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Mean share of every column in the impurity decrease.
    max_features_ : int
        Number of columns drawn at each node.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    n_outputs_ : int
        1.
    oob_score_ : float
        Score of the out-of-bag predictions; only with `oob_score` or `oob_tol`.
    oob_scores_ : float64 array of shape (n_estimators_,)
        The same of the first 1, 2, ... trees; only with `oob_tol`. nan where too few rows have a
        prediction.
    oob_decision_function_ : float64 array of shape (n_rows, n_classes_)
        Shares of the classes by the trees whose bag lacks the row; nan where there is none.
    forest_ : dtrees.core.model.Forest
        The trees as flat arrays.
    codebook_ : dtrees.coding.codebook.CodeBook
        What their codes mean.

    See Also
    --------
    RandomForestClassifier : The best split per drawn column.

    Notes
    -----
    A cut falls between two codes: with many more distinct values than `max_codes`, it is drawn
    from the cuts of the column.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = ExtraTreesClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> len(forest)
    20
    """

    _random_cuts = True

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features="sqrt",
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=False,
        oob_score=False,
        oob_tol=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        class_weight=None,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        max_codes=255,
        categorical_features="from_dtype",
        unseen="missing",
        regime=None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_codes = max_codes
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.regime = regime


class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomized trees for numbers.

    Trees that look at one split per drawn column, cut at a random value between the least and the
    greatest of the node (Geurts, Ernst and Wehenkel 2006); categories go left or right at random.
    The table is coded once, with 255 codes a column unless `max_codes` says otherwise. Trees do
    not depend on each other, so any number of threads or workers grows the same forest, bit for
    bit.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared_error", "poisson"}, default="squared_error"
        What a split makes smaller: the variance, or half the Poisson deviance. The latter needs
        a `y` that is not negative.
    max_depth : int, default=None
        Nodes at this depth are leaves. None: no limit.
    min_samples_split : int or float, default=2
        Least number of rows of a node that is split; a float is a share of the rows of positive
        weight, rounded up. Rows are counted once, however often they are in the bag, and shares
        are of the rows of the table.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the rows of positive
        weight, rounded up.
    min_weight_fraction_leaf : float, default=0.0
        Least weight on each side of a split, as a share of the weight of the rows of the tree.
    max_features : int, float or {"sqrt", "log2"}, default=1.0
        Number of columns drawn at each node: that many, a share of all, their root or their
        binary logarithm. None: all. The draw goes on until a column can be split.
    max_leaf_nodes : int, default=None
        The trees with the most profitable splits that have so many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A node is split when that lowers the weighted impurity of the whole tree by so much.
    bootstrap : bool, default=False
        Whether each tree sees a bag of rows; otherwise it sees all of them. A row is in the bag of
        a tree as often as a Poisson draw of (seed, tree, row) says, with mean `max_samples`.
    oob_score : bool or callable, default=False
        Whether rows are predicted by the trees whose bag lacks them, and scored:
        R squared, or by a callable (y, predictions) -> float. Needs ``bootstrap=True``.
    oob_tol : float, default=None
        No more trees are added when the out-of-bag score, smoothed over ten trees, has not improved
        by more than this in the second half of the trees. Larger scores are better. About a
        tolerance is what more trees could still win. None: all `n_estimators` trees are grown.
        Needs ``bootstrap=True``.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.
    random_state : int, RandomState or None, default=None
        Seed of bags, of the draws of columns and between columns of equal gain, and of the sample
        behind cuts. The same seed gives the same forest on any number of threads.
    verbose : int, default=0
        1 or more shows a bar of the trees grown (`dtrees.callbacks.ProgressBar`).
    warm_start : bool, default=False
        Whether `fit` keeps the trees that are there and adds those that are missing to
        `n_estimators`. With the same table the forest is the one that is grown at once.
    ccp_alpha : float, default=0.0
        What a leaf costs in minimal cost-complexity pruning of each tree.
    max_samples : int, float or None, default=None
        Mean size of a bag: a number of rows (or groups), or a share of them. None: as many as
        there are.
    monotonic_cst : None
        Not supported yet.
    max_codes : int, default=255
        Largest number of distinct values that a numeric column keeps; columns with more are cut
        at quantiles. None: every value is kept and the trees are exact.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types (strings, pandas and polars
        categoricals), a mask, a list of numbers or names, or none of them.
    unseen : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit: goes where missing values
        go, goes with most rows, or raises a ValueError.
    regime : {"local", "replicated", "partitioned"} or None, default=None
        Where the trees are grown: on threads of this process, or on the workers of a Dask cluster,
        each of which gets the coded table. None: on the cluster of the current
        ``distributed.Client``, and without one on threads. Changes nothing but the time.

    Attributes
    ----------
    n_estimators_ : int
        Number of trees; less than `n_estimators` when the fit was stopped.
    estimators_ : list of DecisionTreeRegressor
        The trees as fitted estimators, made at the first look.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Mean share of every column in the impurity decrease.
    max_features_ : int
        Number of columns drawn at each node.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    n_outputs_ : int
        1.
    oob_score_ : float
        Score of the out-of-bag predictions; only with `oob_score` or `oob_tol`.
    oob_scores_ : float64 array of shape (n_estimators_,)
        The same of the first 1, 2, ... trees; only with `oob_tol`. nan where too few rows have a
        prediction.
    oob_prediction_ : float64 array of shape (n_rows,)
        Mean of the trees whose bag lacks the row; nan where there is none.
    forest_ : dtrees.core.model.Forest
        The trees as flat arrays.
    codebook_ : dtrees.coding.codebook.CodeBook
        What their codes mean.

    See Also
    --------
    RandomForestRegressor : The best split per drawn column.

    Notes
    -----
    A cut falls between two codes: with many more distinct values than `max_codes`, it is drawn
    from the cuts of the column.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = ExtraTreesRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> len(forest)
    20
    """

    _random_cuts = True

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=1.0,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=False,
        oob_score=False,
        oob_tol=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        max_codes=255,
        categorical_features="from_dtype",
        unseen="missing",
        regime=None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_codes = max_codes
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.regime = regime


class BaggingClassifier(ForestClassifier):
    """Bagged decision trees for classes.

    Trees of bagged rows that search all columns at every node (Breiman 1996). The table is coded
    once, with 255 codes a column unless `max_codes` says otherwise. Trees do not depend on each
    other, so any number of threads or workers grows the same forest, bit for bit.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        What a split makes smaller. "log_loss" is another name for "entropy", in bits.
    max_depth : int, default=None
        Nodes at this depth are leaves. None: no limit.
    min_samples_split : int or float, default=2
        Least number of rows of a node that is split; a float is a share of the rows of positive
        weight, rounded up. Rows are counted once, however often they are in the bag, and shares
        are of the rows of the table.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the rows of positive
        weight, rounded up.
    min_weight_fraction_leaf : float, default=0.0
        Least weight on each side of a split, as a share of the weight of the rows of the tree.
    max_leaf_nodes : int, default=None
        The trees with the most profitable splits that have so many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A node is split when that lowers the weighted impurity of the whole tree by so much.
    bootstrap : bool, default=True
        Whether each tree sees a bag of rows; otherwise it sees all of them. A row is in the bag of
        a tree as often as a Poisson draw of (seed, tree, row) says, with mean `max_samples`.
    oob_score : bool or callable, default=False
        Whether rows are predicted by the trees whose bag lacks them, and scored:
        accuracy, or by a callable (y, predictions) -> float. Needs ``bootstrap=True``.
    oob_tol : float, default=None
        No more trees are added when the out-of-bag score, smoothed over ten trees, has not improved
        by more than this in the second half of the trees. Larger scores are better. About a
        tolerance is what more trees could still win. None: all `n_estimators` trees are grown.
        Needs ``bootstrap=True``.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.
    random_state : int, RandomState or None, default=None
        Seed of bags, of the draws of columns and between columns of equal gain, and of the sample
        behind cuts. The same seed gives the same forest on any number of threads.
    verbose : int, default=0
        1 or more shows a bar of the trees grown (`dtrees.callbacks.ProgressBar`).
    warm_start : bool, default=False
        Whether `fit` keeps the trees that are there and adds those that are missing to
        `n_estimators`. With the same table the forest is the one that is grown at once.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        Weight of each class by its label, 1 for classes left out; "balanced" gives all classes
        the same total weight, "balanced_subsample" does so in every bag, or in the table where
        there are no bags. None: every class has weight one.
    ccp_alpha : float, default=0.0
        What a leaf costs in minimal cost-complexity pruning of each tree.
    max_samples : int, float or None, default=None
        Mean size of a bag: a number of rows (or groups), or a share of them. None: as many as
        there are.
    monotonic_cst : None
        Not supported yet.
    max_codes : int, default=255
        Largest number of distinct values that a numeric column keeps; columns with more are cut
        at quantiles. None: every value is kept and the trees are exact.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types (strings, pandas and polars
        categoricals), a mask, a list of numbers or names, or none of them.
    unseen : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit: goes where missing values
        go, goes with most rows, or raises a ValueError.
    category_penalty : float, default=2.0
        What a column pays for many categories when columns are compared: each category beyond
        eleven in a node takes so many times the impurity of a row within its category off the
        gain of the best split. 0: nothing, and such columns win by what they fit by chance.
    regime : {"local", "replicated", "partitioned"} or None, default=None
        Where the trees are grown: on threads of this process, or on the workers of a Dask cluster,
        each of which gets the coded table. None: on the cluster of the current
        ``distributed.Client``, and without one on threads. Changes nothing but the time.

    Attributes
    ----------
    n_estimators_ : int
        Number of trees; less than `n_estimators` when the fit was stopped.
    estimators_ : list of DecisionTreeClassifier
        The trees as fitted estimators, made at the first look.
    classes_ : array of shape (n_classes_,)
        The labels, sorted.
    n_classes_ : int
        Number of classes.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Mean share of every column in the impurity decrease.
    max_features_ : int
        Number of columns drawn at each node.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    n_outputs_ : int
        1.
    oob_score_ : float
        Score of the out-of-bag predictions; only with `oob_score` or `oob_tol`.
    oob_scores_ : float64 array of shape (n_estimators_,)
        The same of the first 1, 2, ... trees; only with `oob_tol`. nan where too few rows have a
        prediction.
    oob_decision_function_ : float64 array of shape (n_rows, n_classes_)
        Shares of the classes by the trees whose bag lacks the row; nan where there is none.
    forest_ : dtrees.core.model.Forest
        The trees as flat arrays.
    codebook_ : dtrees.coding.codebook.CodeBook
        What their codes mean.

    See Also
    --------
    DecisionTreeClassifier : A single tree.

    Notes
    -----
    Bags differ from scikit-learn's: there a bag has a fixed size, and how often a row is in it
    depends on the other rows; here every row draws for itself, so the size varies by about its
    square root. The forests predict equally well.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import BaggingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> len(BaggingClassifier(n_estimators=5, random_state=0).fit(X, y))
    5
    """

    max_features = None  # all columns at every node
    _constraints = {  # noqa: RUF012
        name: rule for name, rule in ForestClassifier._constraints.items() if name != "max_features"
    }

    def __init__(
        self,
        n_estimators=10,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        oob_tol=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        class_weight=None,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        max_codes=255,
        categorical_features="from_dtype",
        unseen="missing",
        category_penalty=2.0,
        regime=None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_codes = max_codes
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.category_penalty = category_penalty
        self.regime = regime


class BaggingRegressor(ForestRegressor):
    """Bagged decision trees for numbers.

    Trees of bagged rows that search all columns at every node (Breiman 1996). The table is coded
    once, with 255 codes a column unless `max_codes` says otherwise. Trees do not depend on each
    other, so any number of threads or workers grows the same forest, bit for bit.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees.
    criterion : {"squared_error", "poisson"}, default="squared_error"
        What a split makes smaller: the variance, or half the Poisson deviance. The latter needs
        a `y` that is not negative.
    max_depth : int, default=None
        Nodes at this depth are leaves. None: no limit.
    min_samples_split : int or float, default=2
        Least number of rows of a node that is split; a float is a share of the rows of positive
        weight, rounded up. Rows are counted once, however often they are in the bag, and shares
        are of the rows of the table.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the rows of positive
        weight, rounded up.
    min_weight_fraction_leaf : float, default=0.0
        Least weight on each side of a split, as a share of the weight of the rows of the tree.
    max_leaf_nodes : int, default=None
        The trees with the most profitable splits that have so many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A node is split when that lowers the weighted impurity of the whole tree by so much.
    bootstrap : bool, default=True
        Whether each tree sees a bag of rows; otherwise it sees all of them. A row is in the bag of
        a tree as often as a Poisson draw of (seed, tree, row) says, with mean `max_samples`.
    oob_score : bool or callable, default=False
        Whether rows are predicted by the trees whose bag lacks them, and scored:
        R squared, or by a callable (y, predictions) -> float. Needs ``bootstrap=True``.
    oob_tol : float, default=None
        No more trees are added when the out-of-bag score, smoothed over ten trees, has not improved
        by more than this in the second half of the trees. Larger scores are better. About a
        tolerance is what more trees could still win. None: all `n_estimators` trees are grown.
        Needs ``bootstrap=True``.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.
    random_state : int, RandomState or None, default=None
        Seed of bags, of the draws of columns and between columns of equal gain, and of the sample
        behind cuts. The same seed gives the same forest on any number of threads.
    verbose : int, default=0
        1 or more shows a bar of the trees grown (`dtrees.callbacks.ProgressBar`).
    warm_start : bool, default=False
        Whether `fit` keeps the trees that are there and adds those that are missing to
        `n_estimators`. With the same table the forest is the one that is grown at once.
    ccp_alpha : float, default=0.0
        What a leaf costs in minimal cost-complexity pruning of each tree.
    max_samples : int, float or None, default=None
        Mean size of a bag: a number of rows (or groups), or a share of them. None: as many as
        there are.
    monotonic_cst : None
        Not supported yet.
    max_codes : int, default=255
        Largest number of distinct values that a numeric column keeps; columns with more are cut
        at quantiles. None: every value is kept and the trees are exact.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types (strings, pandas and polars
        categoricals), a mask, a list of numbers or names, or none of them.
    unseen : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit: goes where missing values
        go, goes with most rows, or raises a ValueError.
    category_penalty : float, default=2.0
        What a column pays for many categories when columns are compared: each category beyond
        eleven in a node takes so many times the impurity of a row within its category off the
        gain of the best split. 0: nothing, and such columns win by what they fit by chance.
    regime : {"local", "replicated", "partitioned"} or None, default=None
        Where the trees are grown: on threads of this process, or on the workers of a Dask cluster,
        each of which gets the coded table. None: on the cluster of the current
        ``distributed.Client``, and without one on threads. Changes nothing but the time.

    Attributes
    ----------
    n_estimators_ : int
        Number of trees; less than `n_estimators` when the fit was stopped.
    estimators_ : list of DecisionTreeRegressor
        The trees as fitted estimators, made at the first look.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Mean share of every column in the impurity decrease.
    max_features_ : int
        Number of columns drawn at each node.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    n_outputs_ : int
        1.
    oob_score_ : float
        Score of the out-of-bag predictions; only with `oob_score` or `oob_tol`.
    oob_scores_ : float64 array of shape (n_estimators_,)
        The same of the first 1, 2, ... trees; only with `oob_tol`. nan where too few rows have a
        prediction.
    oob_prediction_ : float64 array of shape (n_rows,)
        Mean of the trees whose bag lacks the row; nan where there is none.
    forest_ : dtrees.core.model.Forest
        The trees as flat arrays.
    codebook_ : dtrees.coding.codebook.CodeBook
        What their codes mean.

    See Also
    --------
    DecisionTreeRegressor : A single tree.

    Notes
    -----
    Bags differ from scikit-learn's: there a bag has a fixed size, and how often a row is in it
    depends on the other rows; here every row draws for itself, so the size varies by about its
    square root. The forests predict equally well.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import BaggingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> len(BaggingRegressor(n_estimators=5, random_state=0).fit(X, y))
    5
    """

    max_features = None  # all columns at every node
    _constraints = {  # noqa: RUF012
        name: rule for name, rule in ForestRegressor._constraints.items() if name != "max_features"
    }

    def __init__(
        self,
        n_estimators=10,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        oob_tol=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        max_codes=255,
        categorical_features="from_dtype",
        unseen="missing",
        category_penalty=2.0,
        regime=None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_codes = max_codes
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.category_penalty = category_penalty
        self.regime = regime
