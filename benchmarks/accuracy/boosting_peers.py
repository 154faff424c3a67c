"""Boosted models of other libraries, as they come and *matched* to ours, and losses held out.

All have 100 iterations of 31 leaves that are grown leaf by leaf, learning rate 0.1 and 255 bins.
As they come, the rest is as each library has it. Matched, they have what ours has:

                               dtrees    LightGBM  XGBoost            CatBoost
    l2                         1         0, m. 1   1                  3, matched 1
    rows in a leaf, at least   20        20        hessian 1 (*)      1, matched 20
    rows drawn, noise          none      none      none               .8 or weights, noise 1; none
    depth, at most             none      none      none               6, matched 16
    Newton steps for a leaf    1         1         1                  10 of two classes, matched 1
    beginning of two classes   log odds  the same  the same           0, matched log odds
    score of a split           G^2 / H   the same  the same           cosine, matched G^2 / rows
    cuts of 255 bins           as many rows in each, as near as can be   by logarithms, matched so

(*) XGBoost bounds the hessian of a leaf, which is the number of rows for squared errors: 20 there.
For classes it keeps its 1, which is four rows or more. scikit-learn comes as ours but for its l2
of 0.

What cannot be matched: how categories are read (subsets in the order of means in LightGBM, which
smooths them by 10, and XGBoost, ordered statistics in CatBoost); CatBoost's scores, which know no
hessians; its trees of three classes or more, one for all classes with a vector in each leaf, where
the others have a tree for each; the hessians of many classes, twice as large in XGBoost, and larger
by classes / (classes - 1) in LightGBM; our bound of steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, root_mean_squared_error

from benchmarks.accuracy.seeds import take
from benchmarks.cases import THREADS
from benchmarks.fits import boosting as fits
from benchmarks.forests.opponents import is_regression, wanted

Fit = Callable[[Any, np.ndarray, int], Any]

LEAST_ROWS = 20  # of a leaf of ours
MATCHED_CATBOOST = {
    "l2_leaf_reg": 1,
    "min_data_in_leaf": LEAST_ROWS,
    "bootstrap_type": "No",
    "random_strength": 0,
    "depth": 16,  # the most that it takes
    "leaf_estimation_iterations": 1,
    "score_function": "L2",
    "model_size_reg": 0,
    "feature_border_type": "Median",
}


def catboost(X: Any, y: np.ndarray, n_threads: int, **more: Any) -> Any:
    """A model of CatBoost, leaf by leaf."""
    library = wanted("catboost", "catboost")
    kind = library.CatBoostRegressor if is_regression(y) else library.CatBoostClassifier
    return kind(
        iterations=fits.ITERATIONS,
        learning_rate=0.1,
        grow_policy="Lossguide",
        max_leaves=31,
        border_count=254,
        thread_count=n_threads,
        random_seed=0,
        cat_features=[c for c in X if X[c].dtype == "category"],
        allow_writing_files=False,
        verbose=False,
        **more,
    ).fit(X, y)


def catboost_matched(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """The same with the parameters of ours, as far as it has them."""
    more: dict[str, Any] = dict(MATCHED_CATBOOST)
    if is_regression(y) or len(np.unique(y)) == 2:
        more["boost_from_average"] = True
    return catboost(X, y, n_threads, **more)


def lightgbm_matched(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """A model of LightGBM with the parameters of ours."""
    return fits.lightgbm(X, y, n_threads, reg_lambda=1)


def xgboost(X: Any, y: np.ndarray, n_threads: int, **more: Any) -> Any:
    """A model of XGBoost that is given the categories."""
    return fits.xgboost(X, y, n_threads, enable_categorical=True, **more)


def xgboost_matched(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """The same with the parameters of ours, as far as it has them."""
    least = LEAST_ROWS if is_regression(y) else 1
    return xgboost(X, y, n_threads, min_child_weight=least)


def texts(X: Any) -> Any:
    """Categories as CatBoost takes them: texts, the missing ones as a text of their own."""
    names = [c for c in X if X[c].dtype == "category"]
    return X.assign(
        **{c: pd.Categorical(X[c].astype(object).fillna("missing").astype(str)) for c in names}
    )


def loss(fit: Fit, X: Any, y: np.ndarray, seed: int, train: np.ndarray, out: np.ndarray) -> float:
    """Of rows held out, by a model of the others: log-loss of classes, RMSE of numbers."""
    del seed  # nothing is drawn: it parts the rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_regression(y):
            model = fit(take(X, train), y[train], THREADS)
            return float(root_mean_squared_error(y[out], model.predict(take(X, out))))
        classes, own = np.unique(y[train], return_inverse=True)
        out = out[np.isin(y[out], classes)]  # nobody gives a share to a class of no row
        model = fit(take(X, train), own, THREADS)
        of_out = np.searchsorted(classes, y[out])
        shares = model.predict_proba(take(X, out))
        return float(log_loss(of_out, shares, labels=np.arange(len(classes))))
