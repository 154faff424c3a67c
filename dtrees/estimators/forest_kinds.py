"""The kinds of forests, which differ in what a tree draws: rows, columns, splits.

random forest    bags of rows, and a few drawn columns at each node
extra trees      one random split per drawn column
bagging          bags of rows, and all columns at every node
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtrees.criteria import Criterion
from dtrees.estimators.docstrings import documented
from dtrees.estimators.forests import ForestClassifier, ForestRegressor


@documented("forest", "classes")
class RandomForestClassifier(ForestClassifier):
    """A random forest for classes.

    Trees of bagged rows that search a few drawn columns at each node; the forest predicts the
    mean of their class shares (Breiman 2001).

    {coding}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    DecisionTreeClassifier : A single tree.

    Notes
    -----
    {bags}

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
        n_estimators: int = 100,
        *,
        criterion: str | Criterion = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        colsample_bytree: float = 1.0,
        feature_weights: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        category_penalty: float = 1.0,
        regime: str | None = None,
    ) -> None:
        self._set_all(locals())


@documented("forest", "numbers")
class RandomForestRegressor(ForestRegressor):
    """A random forest for numbers.

    Trees of bagged rows that search drawn columns at each node; the forest predicts their mean
    (Breiman 2001).

    {coding}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    DecisionTreeRegressor : A single tree.

    Notes
    -----
    {bags}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(n_estimators=50, random_state=0).fit(X, y)
    >>> forest.predict(X[:2]).shape
    (2,)
    """

    _recursion_class = "RandomForestRegressor"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str | Criterion = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        colsample_bytree: float = 1.0,
        feature_weights: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        category_penalty: float = 1.0,
        regime: str | None = None,
        keep_rows: bool = False,
    ) -> None:
        self._set_all(locals())


@documented("forest", "classes")
class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomized trees for classes.

    Trees that look at one split per drawn column (Geurts, Ernst and Wehenkel 2006). It is cut at a
    random value between the least and the greatest of the node. Categories go left or right at
    random.

    {coding}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    RandomForestClassifier : The best split per drawn column.

    Notes
    -----
    A cut falls between two codes: with many more distinct values than `max_bins`, it is drawn
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

    splitter = "random"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str | Criterion = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: bool | Callable[..., float] = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        colsample_bytree: float = 1.0,
        feature_weights: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        regime: str | None = None,
    ) -> None:
        self._set_all(locals())


@documented("forest", "numbers")
class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomized trees for numbers.

    Trees that look at one split per drawn column (Geurts, Ernst and Wehenkel 2006). It is cut at a
    random value between the least and the greatest of the node. Categories go left or right at
    random.

    {coding}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    RandomForestRegressor : The best split per drawn column.

    Notes
    -----
    A cut falls between two codes: with many more distinct values than `max_bins`, it is drawn
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

    splitter = "random"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str | Criterion = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: bool | Callable[..., float] = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        colsample_bytree: float = 1.0,
        feature_weights: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        regime: str | None = None,
        keep_rows: bool = False,
    ) -> None:
        self._set_all(locals())


@documented("forest", "classes")
class BaggingClassifier(ForestClassifier):
    """Bagged decision trees for classes.

    Trees of bagged rows that search all columns at every node (Breiman 1996).

    {coding}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    DecisionTreeClassifier : A single tree.

    Notes
    -----
    {bags}

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
        n_estimators: int = 10,
        *,
        criterion: str | Criterion = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        colsample_bytree: float = 1.0,
        feature_weights: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        category_penalty: float = 1.0,
        regime: str | None = None,
    ) -> None:
        self._set_all(locals())


@documented("forest", "numbers")
class BaggingRegressor(ForestRegressor):
    """Bagged decision trees for numbers.

    Trees of bagged rows that search all columns at every node (Breiman 1996).

    {coding}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    DecisionTreeRegressor : A single tree.

    Notes
    -----
    {bags}

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
        n_estimators: int = 10,
        *,
        criterion: str | Criterion = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        colsample_bytree: float = 1.0,
        feature_weights: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        category_penalty: float = 1.0,
        regime: str | None = None,
        keep_rows: bool = False,
    ) -> None:
        self._set_all(locals())
