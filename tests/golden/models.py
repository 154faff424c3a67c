"""About 250 models, and a digest of all arrays of each.

What they are stands in some lists: *drawn* ones are small and of all kinds, seeds of
`tests/parallel/random_layouts.py`; *chosen* ones are large enough for every way that growth takes
(rows that need 16 bits and more, nodes that are large, cells that are packed, columns side by
side); *boosted* ones have every loss; *balanced* ones have classes and rows that weigh fractions;
*reweighted* ones are of AdaBoost; *several* ones have several targets; *functions* are criteria
that are, of which rounds refuse those of users; *random* ones draw the splits of a tree; *blocks*
have trees of blocks with other categories and classes; *infinite* ones are boosted, of tables with
ends.
The drawn cases depend on that file: their digests are written anew after a change of what it
draws. Each is made in several ways (`ways`), which have to agree: with wide instructions and
without, on one thread and on two, in the table's own process and in rounds over its blocks.

A digest is of the arrays of all trees, of what their numbers mean, of the codebook and of the
classes. It does not know what an array or an attribute is called, so names may change.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import UndefinedMetricWarning

import dtrees
from dtrees.core.data import _cpu
from dtrees.criteria import Criterion
from dtrees.model_selection import GridSearchCV, HashKFold, cost_complexity_cv
from tests.golden import boosted
from tests.golden.tables import made, table, target, validated, weights
from tests.golden.ways import Way
from tests.parallel import random_layouts

FILE = Path(__file__).with_name("digests.json")
N_DRAWN = 100
BOOSTED = ("_initial", "train_score_", "validation_score_", "estimator_weights_", "offset_")
ROUNDS = {"dtrees.regime": "partitioned", "dtrees.gather-rows": 700}


def digests_of(name: str, way: Way) -> list[str]:
    """One digest for each model of a case, made in one way."""
    before = _cpu.use_wide(way.wide)
    config = {"scheduler": "threads", **(ROUNDS if way.in_rounds else {})}
    try:
        with dask.config.set(config), warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
            return [digest(model) for model in CASES[name](way)]
    finally:
        _cpu.use_wide(before)


def digest(model: Any) -> str:
    """One hash of all that a fitted estimator knows of the data."""
    is_forest = hasattr(model, "forest_")
    trees = model.forest_.trees if is_forest else [model.tree_.model]
    book = model.codebook_ if is_forest else model.tree_.codebook
    parts: list[Any] = [book.n_codes, book.n_ordered, book.offsets, book.low, book.high, book.exact]
    parts += [book.units, *((j, names.tolist()) for j, names in sorted(book.categories.items()))]
    classes = getattr(model, "classes_", np.empty(0))
    several = isinstance(classes, list)
    parts.append([own.tolist() for own in classes] if several else classes.tolist())
    parts += [getattr(model, name) for name in BOOSTED if hasattr(model, name)]
    for tree in trees:
        parts += tree.arrays().values()
        parts += [tree.n_columns, tree.criterion, tree.weight_unit, tree.unit, tree.offset]
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype} {part.shape}".encode() + part.tobytes())
        else:
            found.update(repr(part).encode())
    return found.hexdigest()


def expected() -> dict[str, list[str]]:
    """What the file says of each case."""
    found: dict[str, list[str]] = json.loads(FILE.read_text(encoding="ascii"))
    return found


# ---------------------------------------------------------------------------------------------
# drawn


def drawn(seed: int, way: Way) -> list[Any]:
    """The models of a seed, whatever layout it draws."""
    case = random_layouts.drawn(seed)
    X, y = random_layouts.table_of(case), random_layouts.target_of(case)
    weights, groups = random_layouts.weights_of(case), random_layouts.groups_of(case)
    if case.table == "sparse":
        X = sp.csc_array(X)
    model = case.model(way.n_jobs)
    if case.n_folds == 0:
        given = {"bootstrap_groups": groups} if groups is not None else {}
        return [model.fit(X, y, weights, **given)]
    params = {} if weights is None else {"sample_weight": weights}
    return validated(model, X, y, HashKFold(case.n_folds, random_state=seed), **params)


# ---------------------------------------------------------------------------------------------
# chosen


def chosen(
    estimator: str,
    table_kind: str,
    n_rows: int,
    criterion: str,
    weight: str,
    parameters: dict[str, Any],
    entry: str,
    way: Way,
) -> list[Any]:
    """The models of a chosen case."""
    is_regression = estimator.endswith("Regressor")
    n_classes = 0 if is_regression else 5 if criterion == "entropy" else 2
    X, y = table(table_kind, n_rows), target(table_kind, n_rows, n_classes)
    more = {} if estimator.startswith("DecisionTree") else {"n_estimators": 3}
    model = getattr(dtrees, estimator)(
        criterion=criterion, random_state=3, n_jobs=way.n_jobs, **more, **parameters
    )
    w = weights(weight, n_rows)
    if entry in ("fit", "folds"):
        return made(model, X, y, w, way, 5 if entry == "folds" else None)
    params = {} if w is None else {"sample_weight": w}
    if entry == "groups":
        rng = np.random.default_rng(5)
        folds = rng.integers(0, 3, n_rows)
        cv = [(np.flatnonzero(folds != i), np.flatnonzero(folds == i)) for i in range(3)]
        return validated(model, X, y, cv, **params)
    if entry == "search":
        grid = {"max_depth": [2, 5, None], "min_samples_leaf": [1, 9]}
        return [GridSearchCV(model, grid, cv=3).fit(X, y, **params).best_estimator_]
    return [cost_complexity_cv(model, X, y, cv=3, params=params).estimator]


SIZES: tuple[dict[str, Any], ...] = (
    {},
    {"max_bins": None, "min_samples_leaf": 5},
    {"max_bins": 16, "max_depth": 6, "max_features": 2},
    {"max_leaf_nodes": 20, "min_impurity_decrease": 1e-4},
    {"ccp_alpha": 1e-3, "min_samples_split": 0.01},
)


def _chosen() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    estimators = {
        "DecisionTree": {"max_bins": 255},
        "RandomForest": {},
        "ExtraTrees": {},
        "Bagging": {},
    }
    kinds = [("Classifier", "gini"), ("Classifier", "entropy")]
    kinds += [("Regressor", "squared_error"), ("Regressor", "poisson")]
    tables = [("numbers", 5_000), ("steps", 5_000), ("sparse", 3_000), ("mixed", 4_000)]
    tables += [("wide", 2_000), ("numbers", 70_000)]
    entries = ("fit", "folds", "fit", "groups", "search")
    mixes = product(estimators.items(), kinds, tables)
    for number, ((short, base), (suffix, criterion), (name, n_rows)) in enumerate(mixes):
        sizes = dict(SIZES[number % len(SIZES)])
        weight = ("none", "whole", "none", "fractions")[(number // 2) % 4]
        entry = entries[(number // 3) % len(entries)]
        if n_rows > 50_000:
            entry, sizes = "fit", {"max_depth": 9, **sizes}
            sizes.pop("max_bins", None)
        if short == "Bagging":
            sizes.pop("max_features", None)
        more = {**base, **sizes}
        text = f"{short}{suffix} {criterion} {name} {n_rows} {weight} {entry} {number + 1}"
        yield (
            text,
            partial(chosen, short + suffix, name, n_rows, criterion, weight, more, entry),
        )


BALANCED = (  # sides of 1,024 rows or more that weigh fractions: decision 13
    ("DecisionTreeClassifier", "numbers", 5_000, "gini", {"min_samples_leaf": 5}, "folds"),
    ("DecisionTreeClassifier", "sparse", 3_000, "entropy", {"max_depth": 5}, "fit"),
    ("RandomForestClassifier", "mixed", 4_000, "gini", {"max_depth": 6}, "folds"),
)


SAMPLED = (  # rows without replacement, and columns of each tree
    ("RandomForestClassifier", "mixed", 4_000, "gini", "none", "folds"),
    ("ExtraTreesRegressor", "numbers", 5_000, "squared_error", "fractions", "fit"),
    ("BaggingClassifier", "sparse", 3_000, "entropy", "whole", "fit"),
    ("BaggingRegressor", "steps", 5_000, "poisson", "none", "folds"),
)
PASTED = {"bootstrap": False, "max_samples": 0.6}
SOME_COLUMNS = {"colsample_bytree": 0.5}


def _sampled() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    for number, (estimator, kind, n_rows, criterion, weight, entry) in enumerate(SAMPLED):
        for name, draws in (
            ("pasted", PASTED),
            ("columns", SOME_COLUMNS),
            ("pasted columns", {**PASTED, "max_samples": 900 + number, **SOME_COLUMNS}),
        ):
            found = partial(chosen, estimator, kind, n_rows, criterion, weight, draws, entry)
            yield f"{name} {estimator} {criterion} {kind} {n_rows} {weight} {entry}", found


def _balanced() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    for estimator, kind, n_rows, criterion, limits, entry in BALANCED:
        rules = {"class_weight": "balanced", **limits}
        found = partial(chosen, estimator, kind, n_rows, criterion, "fractions", rules, entry)
        yield f"balanced {estimator} {criterion} {kind} {n_rows} fractions {entry}", found


MEDIANS = (
    ("DecisionTreeRegressor", "numbers", 5_000, "none", {}, "fit"),
    ("DecisionTreeRegressor", "mixed", 4_000, "fractions", {"min_samples_leaf": 3}, "folds"),
    ("RandomForestRegressor", "sparse", 3_000, "whole", {"max_features": 0.3}, "fit"),
    ("BaggingRegressor", "mixed", 4_000, "none", {"max_depth": 8}, "fit"),
    ("ExtraTreesRegressor", "steps", 5_000, "whole", {"min_samples_leaf": 2}, "fit"),
    ("RandomForestRegressor", "numbers", 70_000, "none", {"max_depth": 6}, "fit"),
)


def _medians() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    criterion = "absolute_error"
    for estimator, kind, n_rows, weight, limits, entry in MEDIANS:
        found = partial(chosen, estimator, kind, n_rows, criterion, weight, limits, entry)
        yield f"{estimator} {criterion} {kind} {n_rows} {weight} {entry}", found


REWEIGHTED = (  # AdaBoost: the third tree is of two changes of the weights
    ("AdaBoostClassifier", "steps", 5_000, "gini", {"max_depth": 4}),
    ("AdaBoostClassifier", "mixed", 4_000, "entropy", {"max_depth": 6, "max_features": 2}),
    ("AdaBoostClassifier", "sparse", 3_000, "entropy", {"learning_rate": 0.3}),
    ("AdaBoostRegressor", "mixed", 4_000, "squared_error", {"loss": "square"}),
)


def _reweighted() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    for estimator, kind, n_rows, criterion, limits in REWEIGHTED:
        found = partial(chosen, estimator, kind, n_rows, criterion, "fractions", limits, "fit")
        yield f"reweighted {estimator} {criterion} {kind} {n_rows} fractions fit", found


ISOLATED: tuple[tuple[str, int, str, dict[str, Any]], ...] = (
    ("numbers", 5_000, "none", {}),
    ("mixed", 4_000, "fractions", {"contamination": 0.1}),
    ("sparse", 3_000, "none", {"max_features": 0.5, "max_samples": 0.3}),
    ("steps", 5_000, "whole", {"bootstrap": True, "max_samples": 1.0}),
)


def _isolated() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    def models(kind: str, n_rows: int, weight: str, own: dict[str, Any], way: Way) -> list[Any]:
        forest = dtrees.IsolationForest(n_estimators=9, random_state=3, n_jobs=way.n_jobs, **own)
        return [forest.fit(table(kind, n_rows), sample_weight=weights(weight, n_rows))]

    for case in ISOLATED:
        yield f"IsolationForest {case[0]} {case[2]}", partial(models, *case)


SEVERAL = (
    ("DecisionTreeClassifier", "mixed", 4_000, "gini", "none", {"min_samples_leaf": 3}),
    ("DecisionTreeClassifier", "sparse", 3_000, "entropy", "fractions", {"max_depth": 8}),
    ("DecisionTreeRegressor", "steps", 5_000, "squared_error", "none", {}),
    ("DecisionTreeRegressor", "mixed", 4_000, "squared_error", "fractions", {"max_bins": 60}),
    ("DecisionTreeRegressor", "numbers", 70_000, "squared_error", "none", {"max_depth": 8}),
    ("RandomForestClassifier", "mixed", 4_000, "entropy", "whole", {"max_features": 2}),
    ("RandomForestRegressor", "sparse", 3_000, "squared_error", "none", {"max_features": 5}),
    ("ExtraTreesClassifier", "steps", 5_000, "gini", "none", {"class_weight": "balanced"}),
    ("ExtraTreesRegressor", "mixed", 4_000, "squared_error", "fractions", {"bootstrap": True}),
    ("BaggingRegressor", "numbers", 5_000, "squared_error", "none", {"max_samples": 0.5}),
    ("RandomForestClassifier", "mixed", 3_000, "gain_ratio", "whole", {"max_features": 2}),
    ("ExtraTreesClassifier", "sparse", 3_000, "chi_square", "none", {"max_depth": 7}),
    ("DecisionTreeRegressor", "mixed", 4_000, "absolute_error", "fractions", {"max_depth": 8}),
    ("RandomForestRegressor", "sparse", 3_000, "absolute_error", "none", {"max_features": 5}),
    ("ExtraTreesRegressor", "steps", 5_000, "absolute_error", "whole", {"min_samples_leaf": 2}),
)
LABELS = (  # of two classes each: grown as numbers
    ("DecisionTreeClassifier", "numbers", 5_000, "gini", "none", {}),
    ("DecisionTreeClassifier", "mixed", 4_000, "gini", "fractions", {"class_weight": "balanced"}),
    ("RandomForestClassifier", "numbers", 5_000, "gini", "none", {}),
    ("RandomForestClassifier", "sparse", 3_000, "gini", "whole", {"max_depth": 9}),
    ("ExtraTreesClassifier", "mixed", 4_000, "gini", "none", {"max_features": 0.5}),
)


def several(
    estimator: str,
    kind: str,
    n_rows: int,
    criterion: str,
    weight: str,
    parameters: dict[str, Any],
    way: Way,
    n_classes: tuple[int, ...] = (2, 3, 5),
) -> list[Any]:
    """A model of several targets."""
    X, n_classes = table(kind, n_rows), (0, 0, 0) if criterion.endswith("error") else n_classes
    y = np.column_stack([target(kind, n_rows, n) for n in n_classes])
    if not any(n_classes):
        rng = np.random.default_rng(n_rows)
        y = y * [1.0, 1e-6, -1e5] + rng.normal(size=(n_rows, 3)) * [0.3, 2e-7, 1e4]
    elif max(n_classes) == 2:
        noise = np.random.default_rng(n_rows).random(y.shape)
        y = (0.8 * y + noise > np.linspace(0.3, 1.8, len(n_classes))).astype(int)
    more = {} if estimator.startswith("DecisionTree") else {"n_estimators": 3}
    made_of = {"random_state": 3, "n_jobs": way.n_jobs, **more, **parameters}
    model = getattr(dtrees, estimator)(criterion=criterion, **made_of)
    return [model.fit(X, y, sample_weight=weights(weight, n_rows))]


def _several() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    for case in SEVERAL:
        yield "several " + " ".join(map(str, case[:5])), partial(several, *case)
    for case in LABELS:
        own = partial(several, *case, n_classes=(2,) * 7)
        yield "labels " + " ".join(map(str, case[:5])), own


class Normal(Criterion):
    """Of normal distributions on either side, about."""

    def score(self, left, right):
        return 1e4 - sum(w * v / (v + m * m + 1) for w, m, v in (left, right))


FUNCTIONS = (
    ("DecisionTreeClassifier", "mixed", 4_000, "gain_ratio", "none", {"min_samples_leaf": 3}),
    ("DecisionTreeClassifier", "sparse", 3_000, "chi_square", "fractions", {"max_depth": 8}),
    ("RandomForestClassifier", "steps", 5_000, "chi_square", "whole", {"max_features": 2}),
    ("ExtraTreesClassifier", "mixed", 4_000, "gain_ratio", "none", {"class_weight": "balanced"}),
    ("DecisionTreeRegressor", "mixed", 4_000, Normal(), "fractions", {"max_bins": 60}),
    ("RandomForestRegressor", "sparse", 3_000, Normal(), "whole", {"max_depth": 5}),
    ("ExtraTreesRegressor", "steps", 5_000, Normal(), "none", {"max_depth": 7}),
)


def _functions() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    def models(*case: Any) -> list[Any]:
        *case, way = case
        of_users = not isinstance(case[3], str)
        with dask.config.set({"dtrees.regime": "local"} if of_users else {}):
            return chosen(*case, "fit", way)

    for *case, rules in FUNCTIONS:
        names = [each if isinstance(each, str | int) else type(each).__name__ for each in case]
        yield "function " + " ".join(map(str, names)), partial(models, *case, rules)


RANDOM = (
    ("DecisionTreeClassifier", "mixed", 4_000, "gini", "fractions", {"max_features": 3}, "folds"),
    ("DecisionTreeClassifier", "sparse", 3_000, "entropy", "none", {"max_bins": 255}, "fit"),
    ("DecisionTreeRegressor", "steps", 5_000, "poisson", "whole", {"max_bins": None}, "folds"),
    ("DecisionTreeRegressor", "mixed", 4_000, "squared_error", "none", {"ccp_alpha": 0.01}, "fit"),
)


def _random() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    for estimator, kind, n_rows, criterion, weight, limits, entry in RANDOM:
        rules = {"splitter": "random", **limits}
        found = partial(chosen, estimator, kind, n_rows, criterion, weight, rules, entry)
        yield f"random {estimator} {criterion} {kind} {n_rows} {weight} {entry}", found


def _blocks() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    def models(estimator: str, n_classes: int, way: Way) -> list[Any]:
        X, y = table("mixed", 4_000), target("mixed", 4_000, n_classes)
        model = getattr(dtrees, estimator)(3, random_state=3, n_jobs=way.n_jobs)
        classes = {"classes": np.arange(n_classes)} if n_classes else {}
        code = X["many"].cat.codes.to_numpy()
        for rows in (code < 45, (code > 20) & (y < 3)):
            model.partial_fit(X[rows], y[rows], **classes)
        return [model]

    for estimator, n_classes in (("RandomForestClassifier", 4), ("ExtraTreesRegressor", 0)):
        yield f"blocks {estimator} mixed 4000", partial(models, estimator, n_classes)


def _infinite() -> Iterator[tuple[str, Callable[[Way], list[Any]]]]:
    def models(kind: str, n_rows: int, way: Way) -> list[Any]:
        X, y = table(kind, n_rows).copy(), target(kind, n_rows, 0).copy()
        cells = X.data if kind == "sparse" else X[:, :3].T
        cells[..., ::9], cells[..., 4::9] = np.inf, -np.inf
        how = {"max_iter": 6, "random_state": 3, "n_jobs": way.n_jobs, "regime": "local"}
        return made(dtrees.GradientBoostingRegressor(**how), X, y, weights("whole", n_rows), way)

    for kind, n_rows in (("numbers", 5_000), ("sparse", 3_000)):
        yield f"infinite {kind} {n_rows}", partial(models, kind, n_rows)


CASES: dict[str, Callable[[Way], list[Any]]] = {
    **{f"drawn {seed}": partial(drawn, seed) for seed in range(5_000, 5_000 + N_DRAWN)},
    **dict(_chosen()),
    **dict(boosted.cases()),
    **dict(_balanced()),
    **dict(_medians()),
    **dict(_sampled()),
    **dict(_reweighted()),
    **dict(_isolated()),
    **dict(_several()),
    **dict(_functions()),
    **dict(_random()),
    **dict(_blocks()),
    **dict(_infinite()),
}
