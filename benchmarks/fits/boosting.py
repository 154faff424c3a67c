"""Boosted models beside LightGBM, XGBoost and scikit-learn, coding included, and predictions.

100 iterations of 31 leaves, learning rate 0.1, 255 bins, at least 20 rows in a leaf. XGBoost bounds
the hessian of a leaf instead of its rows. Categories: our own and LightGBM's are native, the others
get ordinal codes. The remark says how well both predict the last fifth of the rows.

`boost-processor-` cases have one thread and are surveys in processor time, for busy machines.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, mean_squared_error

import dtrees
from benchmarks import data
from benchmarks.cases import THREADS, Case, Contest, Scale, Skipped, Survey, Table
from benchmarks.forests.opponents import CALLS, is_regression, row_by_row, wanted
from benchmarks.measure import in_turns

TURNS, BUDGET = 7, 60.0
ITERATIONS, TEXT_ITERATIONS, FEW_ITERATIONS = 100, 20, 20
PREDICTED = 1_000_000  # rows
TABLE = Table(
    ("work, one thread", "ours, s", "theirs, s", "ours / theirs", "reach / aim", "verdict"),
    "Processor time, medians of turns in one process; theirs is the best of those installed.",
)

Parts = tuple[Any, Any, np.ndarray]  # a table, the same with categories as numbers, the target


def _numbers(n_rows: int, scale: Scale) -> Parts:
    X, y = data.classification(scale.rows(n_rows))
    return X, X, y


def _real(name: str, scale: Scale) -> Parts:
    X, y = data.real_part(name, scale)
    return X, data.ordinal(X), y


Work = tuple[str, Callable[[Scale], Parts], float, float]  # words, table, reach, aim of our share
WORKS: Mapping[str, Work] = {
    "random": ("100,000 × 30, two classes", partial(_numbers, 100_000), 1.0, 0.6),
    "covertype": ("covertype 20k, 7 classes", partial(_real, "covertype_20k"), 1.0, 0.7),
    "adult": ("adult", partial(_real, "adult"), 1.0, 0.7),
    "california": ("california", partial(_real, "california_housing"), 1.0, 0.7),
    "weather": ("weather", partial(_real, "weather_aus"), 1.0, 0.7),
}
MILLION: Work = ("1,000,000 × 30, two classes", partial(_numbers, 1_000_000), 0.9, 0.6)


def ours(X: Any, y: np.ndarray, n_threads: int, n_iterations: int = ITERATIONS) -> Any:
    """A model of dtrees."""
    name = f"GradientBoosting{'Regressor' if is_regression(y) else 'Classifier'}"
    model = getattr(dtrees, name)(max_iter=n_iterations, early_stopping=False, n_jobs=n_threads)
    return model.fit(X, y)


def scikit_learn(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """A model of scikit-learn, which takes all threads that OpenMP has."""
    from threadpoolctl import threadpool_limits

    kind = HistGradientBoostingRegressor if is_regression(y) else HistGradientBoostingClassifier
    with threadpool_limits(n_threads):
        return kind(max_iter=ITERATIONS, early_stopping=False).fit(X, y)


def lightgbm(
    X: Any, y: np.ndarray, n_threads: int, n_iterations: int = ITERATIONS, **more: Any
) -> Any:
    """A model of LightGBM."""
    library = wanted("lightgbm", "lightgbm")
    kind = library.LGBMRegressor if is_regression(y) else library.LGBMClassifier
    return kind(n_estimators=n_iterations, n_jobs=n_threads, verbose=-1, **more).fit(X, y)


def xgboost(
    X: Any, y: np.ndarray, n_threads: int, n_iterations: int = ITERATIONS, **more: Any
) -> Any:
    """A model of XGBoost, leaf by leaf."""
    library = wanted("xgboost", "xgboost")
    kind = library.XGBRegressor if is_regression(y) else library.XGBClassifier
    shape = {"grow_policy": "lossguide", "max_leaves": 31, "max_depth": 0, "max_bin": 255}
    model = kind(n_estimators=n_iterations, learning_rate=0.1, n_jobs=n_threads, **shape, **more)
    return model.fit(X, np.unique(y, return_inverse=True)[1] if y.dtype.kind in "OSU" else y)


def sides(
    parts: Parts, n_threads: int
) -> tuple[Callable[[], Any], dict[str, Callable[[], Any]], Callable[[Any], float]]:
    """Our fit, those of the libraries that are installed, and the loss of a model held out."""
    X, numbers, y = parts
    if not is_regression(y):
        y = np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[len(y) // 5 :], order[: len(y) // 5]
    tables = [part.iloc if hasattr(part, "iloc") else part for part in (X, numbers)]
    (native, plain), (native_test, plain_test) = (
        [table[rows] for table in tables] for rows in (train, test)
    )
    theirs: dict[str, Callable[[], Any]] = {
        "scikit-learn": partial(scikit_learn, plain, y[train], n_threads)
    }
    for name, fit, table in (("LightGBM", lightgbm, native), ("XGBoost", xgboost, plain)):
        try:
            wanted(name.lower(), name.lower())
        except Skipped:
            continue
        theirs[name] = partial(fit, table, y[train], n_threads)

    def loss(model: Any) -> float:
        is_plain = not type(model).__module__.startswith(("dtrees", "lightgbm"))
        rows = plain_test if is_plain else native_test
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if is_regression(y):
                return float(mean_squared_error(y[test], model.predict(rows)))
            return float(log_loss(y[test], model.predict_proba(rows), labels=np.unique(y)))

    return partial(ours, native, y[train], n_threads), theirs, loss


def _contest(parts: Callable[[Scale], Parts], scale: Scale) -> Contest:
    own, theirs, loss = sides(parts(scale), THREADS)
    return Contest(own, theirs, lambda a, b: f"losses {loss(a):.4g} and {loss(b):.4g}")


def _survey(name: str, scale: Scale) -> Survey:
    work, parts, reach, aim = WORKS[name]

    def lines() -> Iterable[tuple[str, ...]]:
        own, theirs, loss = sides(parts(scale), 1)
        turns = 1 if scale.quick else TURNS
        seconds, models = in_turns([own, *theirs.values()], turns, BUDGET, time.process_time)
        best = min(seconds[1:])
        ratio = seconds[0] / best
        told = ", ".join(
            f"{other} {taken:.3g} s, loss {loss(model):.4g}"
            for other, taken, model in zip(theirs, seconds[1:], models[1:], strict=True)
        )
        yield (
            f"{work} (our loss {loss(models[0]):.4g}; {told})",
            f"{seconds[0]:.3g}",
            f"{best:.3g}",
            f"{ratio:.2f}",
            f"{reach:g} / {aim:g}",
            scale.verdict(ratio <= reach, f"{ratio / reach:.2f} times the reach", aim=ratio <= aim),
        )

    return Survey(TABLE, lines)


def _text(scale: Scale) -> Contest:
    """Sparse columns, which scikit-learn does not take; XGBoost takes five times as long."""
    X, y = data.real("newsgroups20")
    n = data.loader().train_rows("newsgroups20")
    rows = scale.rows(n)
    X = data.loader().tfidf(X, n)[:rows].tocsr()
    y = np.unique(y[:rows], return_inverse=True)[1]
    wanted("lightgbm", "lightgbm")
    return Contest(
        lambda: ours(X, y, THREADS, TEXT_ITERATIONS),
        {"LightGBM": lambda: lightgbm(X, y, THREADS, TEXT_ITERATIONS)},
        lambda a, b: f"training losses {_loss(a, X, y):.3g} and {_loss(b, X, y):.3g}",
    )


def _loss(model: Any, X: Any, y: np.ndarray) -> float:
    return float(log_loss(y, model.predict_proba(X), labels=np.unique(y)))


def _predict(n_rows: int, scale: Scale) -> Contest:
    """Many rows; LightGBM's model has its own format, and is asked with the same threads."""
    X, _, y = _numbers(100_000, scale)
    wanted("lightgbm", "lightgbm")
    own, other = ours(X, y, THREADS), lightgbm(X, y, THREADS)
    rows = np.resize(X, (scale.rows(n_rows), X.shape[1]))
    return Contest(lambda: own.predict_proba(rows), {"LightGBM": lambda: other.predict_proba(rows)})


def _one_by_one(scale: Scale) -> Contest:
    """Beside LightGBM's own `predict`, without what its scikit-learn classes check; one thread."""
    X, _, y = _numbers(25_000, scale)
    wanted("lightgbm", "lightgbm")
    return row_by_row(ours(X, y, 1), lightgbm(X, y, 1).booster_, X)


def _targets(strategy: str, scale: Scale) -> Contest:
    """Ten targets of numbers, by either strategy of XGBoost's; one thread."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(scale.rows(20_000), 20)).astype(np.float32)
    y = X[:, :10] + X[:, 1:11] ** 2 + 0.5 * rng.normal(size=(len(X), 10))
    how = {"multi_strategy": strategy}
    wanted("xgboost", "xgboost")

    def mean_squares(one: Any, other: Any) -> str:
        errors = [mean_squared_error(y, model.predict(X)) for model in (one, other)]
        return "training errors {:.4g} and {:.4g}".format(*errors)

    model = dtrees.GradientBoostingRegressor(
        max_iter=FEW_ITERATIONS, early_stopping=False, n_jobs=1, **how
    )
    other = partial(xgboost, X, y, 1, FEW_ITERATIONS, min_child_weight=20, **how)
    return Contest(partial(model.fit, X, y), {"XGBoost": other}, mean_squares)


CASES = [
    *(
        Case(
            f"boost-targets-{name}",
            "boost",
            f"boosting, 20,000 × 20 float32, ten targets, {words}, 20 iterations, against XGBoost",
            partial(_targets, strategy),
            2,
            4,
        )
        for name, strategy, words in (
            ("each", "one_output_per_tree", "a tree for each"),
            ("joint", "multi_output_tree", "a tree for all"),
        )
    ),
    *(
        Case(
            f"boost-{name}",
            "boost",
            f"boosting, {work}, against the best of LightGBM, XGBoost, scikit-learn",
            partial(_contest, parts),
            1 / reach,
            1 / aim,
        )
        for name, (work, parts, reach, aim) in {**WORKS, "million": MILLION}.items()
    ),
    Case(
        "boost-text",
        "boost",
        "boosting, 20 newsgroups, tf-idf, 130,107 columns, 20 iterations, against LightGBM",
        _text,
        2,
        5,
    ),
    Case(
        "boost-predict",
        "boost",
        "predict_proba, 1,000,000 rows × 30, 100 iterations, against LightGBM",
        partial(_predict, PREDICTED),
        1,
        2,
    ),
    Case(
        "boost-one-by-one",
        "boost",
        f"predict_proba of {CALLS} rows one by one, 100 iterations, against LightGBM",
        _one_by_one,
    ),
    *(
        Case(
            f"boost-processor-{name}",
            "boost-processor",
            f"boosting, {WORKS[name][0]}, processor time of one thread",
            partial(_survey, name),
        )
        for name in WORKS
    ),
]
