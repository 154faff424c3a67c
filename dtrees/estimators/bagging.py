"""Bagged trees: bags of rows, and all columns at each node."""

from __future__ import annotations

from dtrees.estimators.docstrings import documented
from dtrees.estimators.forests import ForestClassifier, ForestRegressor


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
        interaction_cst=None,
        max_bins=255,
        categorical_features="from_dtype",
        handle_unknown="missing",
        category_penalty=1.0,
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
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.category_penalty = category_penalty
        self.regime = regime


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
        interaction_cst=None,
        max_bins=255,
        categorical_features="from_dtype",
        handle_unknown="missing",
        category_penalty=1.0,
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
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.category_penalty = category_penalty
        self.regime = regime
