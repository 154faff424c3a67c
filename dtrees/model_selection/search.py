"""Searches with scikit-learn's interface and results, over all candidates or a sample of them."""

from __future__ import annotations

import sklearn.model_selection
from sklearn.model_selection import ParameterGrid, ParameterSampler

from dtrees.model_selection.candidates import Parameters
from dtrees.model_selection.shared_search import SharedSearch


class GridSearchCV(SharedSearch, sklearn.model_selection.GridSearchCV):
    """Search over all combinations of parameters, by cross-validation, growing as little as can be.

    A drop-in for :class:`sklearn.model_selection.GridSearchCV`, whose parameters and attributes
    these are. ``max_depth``, ``min_samples_split``, ``min_impurity_decrease``, ``max_leaf_nodes``,
    ``ccp_alpha``, and ``n_estimators`` of a forest, are decided on grown trees [SF] 3, however many
    values they have. Each combination of the *other* parameters is grown once, all splits together
    ([CV] 2.2.2), from one coded table. Of a boosted model, ``max_iter`` is what is decided later.

    Parameters
    ----------
    estimator : tree, forest or boosted model of dtrees, or a Pipeline that ends in a tree or forest
        Of a pipeline, the steps before the last are fitted once for each split and each of their
        settings, to the training rows only, and the last step's candidates grow together there.
        Others are handed to scikit-learn's own search.
    param_grid : dict or list of dict
        Values to try, by parameter.
    scoring : str, callable, list, tuple or dict, default=None
        One scorer or several; None: the estimator's ``score``.
    n_jobs : int, default=None
        For scikit-learn's own search. Trees grow on the estimator's ``n_jobs`` threads.
    refit : bool, str or callable, default=True
        Whether `best_estimator_` is fitted to all rows, and by which scorer it is the best.
    cv : int, cross-validation generator or iterable of (train, test), default=None
        None: 5 folds, stratified for classifiers.
    verbose : int, default=0
        1: the number of fits that a search by brute force would take, and for forests a bar of the
        trees that grow, on the standard error stream. Above 1: scikit-learn's line for each of
        these fits, when the scores of its growth are there; its time is its share of the growth.
    pre_dispatch : int or str, default="2*n_jobs"
        For scikit-learn's own search.
    error_score : "raise" or number, default=nan
        Score where a fit or a scorer fails.
    return_train_score : bool, default=False
        Whether `cv_results_` has scores of the training sides.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As scikit-learn's. ``mean_fit_time`` is the time of a growth, divided by the fits that it
        stands for.
    best_estimator_ : estimator
        Fitted to all rows. Its ``fit_report_`` is that of the growth that it stands in.
    best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_, multimetric_, classes_
        As scikit-learn's.

    See Also
    --------
    RandomizedSearchCV : The same for a sample of combinations.
    validation_surface : Scores over depth and rows of a node, without naming values.

    Notes
    -----
    For single trees and the scorers accuracy, balanced_accuracy, neg_log_loss, neg_brier_score,
    neg_mean_squared_error, neg_root_mean_squared_error, r2 and neg_mean_poisson_deviance, a further
    value of a limit costs next to nothing. f1, precision, recall and jaccard with their averages,
    matthews_corrcoef, and what `sklearn.metrics.make_scorer` makes of such functions, are computed
    by scikit-learn from the matrix of predicted and true classes, once for each different one (2
    ms). For forests and any other scorer, trees that are different cost a prediction of the
    held-out rows. Scores are weighted, as scikit-learn's, where ``sample_weight`` is given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import GridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"max_depth": [1, 2, 3, None], "ccp_alpha": [0.0, 0.01, 0.1]}
    >>> search = GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=10).fit(X, y)
    >>> len(search.cv_results_["params"])
    12
    """

    def _candidates(self) -> list[Parameters]:
        return list(ParameterGrid(self.param_grid))


class RandomizedSearchCV(SharedSearch, sklearn.model_selection.RandomizedSearchCV):
    """Search over a sample of combinations of parameters, growing as little as can be.

    A drop-in for :class:`sklearn.model_selection.RandomizedSearchCV`; see `GridSearchCV` for what
    is shared.

    Parameters
    ----------
    estimator : tree, forest or boosted model of dtrees
        Others are handed to scikit-learn's own search.
    param_distributions : dict or list of dict
        Values, or distributions with a method ``rvs``, by parameter.
    n_iter : int, default=10
        Number of combinations.
    random_state : int, RandomState or None, default=None
        Seed of the sample.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As for `GridSearchCV`.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_
        As for `GridSearchCV`.

    See Also
    --------
    GridSearchCV : All combinations.

    Examples
    --------
    >>> from scipy.stats import randint, uniform
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import DecisionTreeRegressor
    >>> from dtrees.model_selection import RandomizedSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> limits = {"min_samples_split": randint(2, 100), "ccp_alpha": uniform(0, 100)}
    >>> search = RandomizedSearchCV(DecisionTreeRegressor(), limits, n_iter=500, random_state=0)
    >>> len(search.fit(X, y).cv_results_["params"])
    500
    """

    def _candidates(self) -> list[Parameters]:
        return list(
            ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state)
        )
