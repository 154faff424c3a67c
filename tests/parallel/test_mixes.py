"""Tables and columns of different kinds in one call: the answer is that of the same in memory.

Each column is of the same small integers, so that where two columns change places there is no error
but another answer. All public functions that take values of rows in two arguments stand in
`ENTRIES`; the law at the end looks for those that do not.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GroupKFold

import dtrees
from dtrees import (
    AdaBoostClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from dtrees.callbacks import Callback
from dtrees.estimators import forest_growth
from dtrees.exceptions import WorkerLostError
from dtrees.inspection import held_out_importances, oob_importances, outlier_scores
from dtrees.model_selection import (
    GridSearchCV,
    HashKFold,
    RandomizedSearchCV,
    boosting_curve,
    cost_complexity_cv,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    nested_standard_error,
    tuned_size,
    validation_surface,
)
from tests.pairs import some_of
from tests.parallel.clusters import digest

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
dd = pytest.importorskip("dask.dataframe")

PACKAGES = ("model_selection", "inspection", "export", "callbacks")  # besides the main one
OF_ROWS = {"X", "y", "sample_weight", "groups", "bootstrap_groups", "y_true", "y_pred"}
N_ROWS = 180
CHUNKS = {"X": (70, 110), "y": (30, 90, 60), "sample_weight": (180,)}
RNG = np.random.default_rng(0)
VALUES = {
    "X": RNG.integers(0, 6, (N_ROWS, 3)),
    "y": RNG.integers(1, 4, N_ROWS),
    "sample_weight": RNG.integers(1, 4, N_ROWS),
    "groups": RNG.integers(1, 6, N_ROWS),
}
VALUES["X"][:, 1] += 2 * VALUES["y"]
VALUES["bootstrap_groups"] = VALUES["groups"]

# How Dask says it, and what that is in memory.
TABLES = {"array": "numpy", "frame": "pandas"}
COLUMNS = {"array": "numpy", "series": "Series", "one": "pandas"}


def given(name, kind):
    """The values of an argument as one of the kinds."""
    values, chunks = VALUES[name], CHUNKS.get(name, (100, 80))
    if kind == "list":
        return values.tolist()
    if kind == "Series":
        return pd.Series(values, index=np.arange(N_ROWS) * 3, name=name)
    if kind == "pandas":
        columns = list("abc") if values.ndim == 2 else [name]
        return pd.DataFrame(values, columns=columns, index=np.arange(N_ROWS)[::-1])
    if kind == "array":
        return da.from_array(values, chunks=(chunks, 3) if values.ndim == 2 else (chunks,))
    if kind == "delayed":
        return dask.delayed(values)
    if kind in ("frame", "one"):
        return dd.from_pandas(given(name, "pandas"), npartitions=len(chunks), sort=False)
    if kind == "series":
        return dd.from_pandas(given(name, "Series"), npartitions=len(chunks), sort=False)
    return values


def twin(name, kind):
    """The kind in memory of a kind."""
    return (TABLES if name == "X" else COLUMNS).get(kind, kind)


# -------------------------------------------------------------------------------------------------
# what is asked


def trees_of(model):
    model = getattr(model, "best_estimator_", model)
    trees = model.forest_.trees if hasattr(model, "forest_") else [model.tree_.model]
    return digest(trees)


def fit(estimator, **given):
    return trees_of(estimator.fit(**given))


@functools.cache
def fitted(make, has_names):
    return make().fit(given("X", "pandas" if has_names else "numpy"), VALUES["y"])


def score(make, X, y, **given):
    return fitted(make, hasattr(X, "columns")).score(X, y, **given)


def staged_scores(X, y, **given):
    return [*fitted(REWEIGHTED, hasattr(X, "columns")).staged_score(X, y, **given)]


def found_by(function, estimator, *, sample_weight=None, result=None, **given):
    params = None if sample_weight is None else {"sample_weight": sample_weight}
    cv = GroupKFold(3) if given.get("groups") is not None else 3
    found = function(estimator, **given, params=params, cv=cv)
    return result(found) if result else found


def of_validation(found):
    return [found["test_score"].tolist(), trees_of(found["final_estimator"])]


def searched(search, *, sample_weight=None, **given):
    if sample_weight is not None:
        given["sample_weight"] = sample_weight
    cv = GroupKFold(3) if given.get("groups") is not None else 3
    model = search(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, cv=cv)
    model.fit(**given)
    return [model.cv_results_["mean_test_score"].tolist(), trees_of(model)]


def search():
    return GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, cv=2)


def resumed(X, **given):
    """A forest that has lost its cluster after two trees, and goes on; it compares the data."""
    forest, grow = RandomForestClassifier(4, max_depth=3, random_state=0), forest_growth.grow_trees

    def lost(growth, numbers, *others, **more):
        yield from grow(growth, numbers[:2], *others, **more)
        raise WorkerLostError("all are gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest_growth, "grow_trees", lost)
        try:
            forest.fit(X, **given)
        except WorkerLostError as error:
            unfinished = error.estimator
    return trees_of(unfinished.resume(X, **given))


def of_blocks(**given):
    return trees_of(FOREST().fit(**given).partial_fit(**given))


def boosted_again(X, **given):
    """A boosted model that has lost its cluster after two iterations, and goes on."""

    class Lost(Callback):
        def on_iteration_end(self, fit, number):
            if number == 1:
                raise WorkerLostError("all are gone")

    try:
        BOOSTED().fit(X, **given, callbacks=[Lost()])
    except WorkerLostError as error:
        unfinished = error.estimator
    return trees_of(unfinished.resume(X, **given))


def tuned(**given):
    splits = list(GroupKFold(3).split(VALUES["X"], groups=VALUES["groups"]))
    return repr(tuned_size(DecisionTreeClassifier(random_state=0), splits=splits, **given).choices)


def of_splits(splitter, *given):
    tests = [test.tolist() for _, test in splitter.split(*given)]
    return [splitter.folds(*given).tolist(), tests]


@dataclass(frozen=True)
class Entry:
    """A function, and what it is given besides.

    Attributes
    ----------
    names : tuple of str
        Public names that it stands for.
    arguments : tuple of str
        Values of rows.
    ask : callable
        Called with the arguments by name; returns something that can be compared.
    """

    names: tuple[str, ...]
    arguments: tuple[str, ...]
    ask: Callable[..., Any]


def of_forests(method):
    kinds = ("RandomForest", "ExtraTrees", "Bagging")
    return tuple(f"{kind}{of}.{method}" for kind in kinds for of in ("Classifier", "Regressor"))


def of_trees(method):
    return tuple(f"DecisionTree{of}.{method}" for of in ("Classifier", "Regressor"))


def of_boosting(method):
    return tuple(f"GradientBoosting{of}.{method}" for of in ("Classifier", "Regressor"))


def of_adaboost(method):
    return tuple(f"AdaBoost{of}.{method}" for of in ("Classifier", "Regressor"))


WEIGHTED = ("X", "y", "sample_weight")
BAGGED = (*WEIGHTED, "bootstrap_groups")
GROUPED = (*WEIGHTED, "groups")
TREE = functools.partial(DecisionTreeClassifier, max_depth=3, random_state=0)
REGRESSOR = functools.partial(BaggingRegressor, 2, max_depth=3, random_state=0)
ISOLATED = functools.partial(IsolationForest, n_estimators=3, random_state=0)
REWEIGHTED = functools.partial(AdaBoostClassifier, 2, max_depth=2)
BOOSTED = functools.partial(GradientBoostingClassifier, max_iter=2)
FOREST = functools.partial(RandomForestClassifier, 3, max_depth=3, random_state=0)

ENTRIES = [
    Entry(of_trees("fit"), WEIGHTED, lambda **given: fit(TREE(), **given)),
    Entry(
        ("DecisionTreeRegressor.fit",),
        WEIGHTED,
        lambda **given: fit(DecisionTreeRegressor(max_depth=3, random_state=0), **given),
    ),
    Entry(
        of_trees("cost_complexity_pruning_path"),
        WEIGHTED,
        lambda **given: TREE().cost_complexity_pruning_path(**given)["impurities"].tolist(),
    ),
    Entry(of_trees("score"), WEIGHTED, functools.partial(score, TREE)),
    Entry(("DecisionTreeRegressor.score",), WEIGHTED, functools.partial(score, REGRESSOR)),
    Entry(of_forests("fit"), BAGGED, lambda **given: fit(FOREST(), **given)),
    Entry(
        ("ExtraTreesClassifier.fit",),
        BAGGED,
        lambda **given: fit(
            ExtraTreesClassifier(2, max_depth=3, random_state=0, bootstrap=True), **given
        ),
    ),
    Entry(of_forests("resume"), BAGGED, resumed),
    Entry(of_forests("partial_fit"), WEIGHTED, of_blocks),
    Entry(
        ("inspection.oob_importances",),
        BAGGED,
        lambda **given: oob_importances(FOREST().fit(**given), **given).tolist(),
    ),
    Entry(
        ("inspection.held_out_importances",),
        WEIGHTED,
        lambda **given: held_out_importances(TREE().fit(**given), **given).tolist(),
    ),
    Entry(of_forests("score"), WEIGHTED, functools.partial(score, FOREST)),
    Entry(of_boosting("fit"), WEIGHTED, lambda **given: fit(BOOSTED(), **given)),
    Entry(of_boosting("resume"), WEIGHTED, boosted_again),
    Entry(of_boosting("score"), WEIGHTED, functools.partial(score, BOOSTED)),
    Entry(of_adaboost("fit"), WEIGHTED, lambda **given: fit(REWEIGHTED(), **given)),
    Entry(of_adaboost("score"), WEIGHTED, functools.partial(score, REWEIGHTED)),
    Entry(of_adaboost("staged_score"), WEIGHTED, staged_scores),
    Entry(
        ("model_selection.cross_validate",),
        GROUPED,
        lambda **given: found_by(cross_validate, FOREST(), result=of_validation, **given),
    ),
    Entry(
        ("model_selection.cross_val_score",),
        GROUPED,
        lambda **given: found_by(cross_val_score, TREE(), result=list, **given),
    ),
    Entry(
        ("model_selection.cross_val_predict",),
        GROUPED,
        lambda **given: found_by(cross_val_predict, TREE(), result=list, **given),
    ),
    Entry(
        ("model_selection.validation_surface",),
        GROUPED,
        lambda **given: found_by(
            functools.partial(validation_surface, max_depth=[1, 2]),
            TREE(),
            result=lambda found: found.scores.tolist(),
            **given,
        ),
    ),
    Entry(
        ("model_selection.cost_complexity_cv",),
        GROUPED,
        lambda **given: found_by(
            cost_complexity_cv, TREE(), result=lambda found: repr(found), **given
        ),
    ),
    Entry(
        ("model_selection.boosting_curve",),
        GROUPED,
        lambda **given: found_by(
            boosting_curve, BOOSTED(), result=lambda found: found.scores.tolist(), **given
        ),
    ),
    Entry(
        ("model_selection.nested_standard_error",),
        GROUPED,
        lambda **given: found_by(
            functools.partial(nested_standard_error, random_state=0), TREE(), result=repr, **given
        ),
    ),
    Entry(
        ("model_selection.GridSearchCV.fit",), GROUPED, functools.partial(searched, GridSearchCV)
    ),
    Entry(
        ("model_selection.RandomizedSearchCV.fit",),
        GROUPED,
        functools.partial(
            searched, functools.partial(RandomizedSearchCV, n_iter=2, random_state=0)
        ),
    ),
    Entry(
        ("model_selection.GridSearchCV.score", "model_selection.RandomizedSearchCV.score"),
        ("X", "y"),
        functools.partial(score, search),
    ),
    Entry(("model_selection.tuned_size",), ("X", "y"), tuned),
    Entry(
        ("model_selection.HashKFold.split", "model_selection.HashKFold.folds"),
        ("X", "y", "groups"),
        lambda X, y, groups: of_splits(HashKFold(3, random_state=0), X, y, groups),
    ),
    Entry(
        ("model_selection.HashKFold.split", "model_selection.HashKFold.folds"),
        ("X", "y"),
        lambda X, y: of_splits(HashKFold(3, random_state=0, stratify=True), X, y),
    ),
    Entry(
        ("IsolationForest.fit",),
        ("X", "sample_weight"),
        lambda **given: fit(ISOLATED(), **given),
    ),
    Entry(
        ("IsolationForest.fit_predict",),
        ("X",),
        lambda **given: np.asarray(ISOLATED().fit_predict(**given)).tolist(),
    ),
    Entry(
        ("inspection.outlier_scores",),
        ("X", "y"),
        lambda X, y: outlier_scores(fitted(FOREST, hasattr(X, "columns")), X, y).tolist(),
    ),
    Entry(
        ("model_selection.HashKFold.get_n_splits",),
        ("X", "y", "groups"),
        lambda **given: HashKFold(3).get_n_splits(**given),
    ),
]


def outcome(entry, kinds):
    """What a function answers, or which error it raises."""
    arguments = {name: given(name, kind) for name, kind in kinds if kind is not None}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DataConversionWarning
            )  # of columns of one-column frames
            return entry.ask(**arguments)
    except (ValueError, TypeError) as error:
        return type(error)


@functools.cache
def expected(place, kinds):
    return outcome(ENTRIES[place], kinds)


def all_mixes(arguments):
    """All mixes of all kinds of which one is Dask's."""
    kinds = [
        [*LAZY, "numpy", "list", "pandas"] if name == "X" else [*LAZY, "numpy", "list", "Series"]
        for name in arguments
        for LAZY in ([list(TABLES)] if name == "X" else [list(COLUMNS)])
    ]
    return mixes_of(arguments, itertools.product(*kinds))


def some_mixes(arguments):
    """For any two arguments, all mixes of Dask's array, Dask's frame and memory; and the rest."""
    main = [("numpy", "array", "frame" if name == "X" else "series") for name in arguments]
    rows = some_of([3] * len(arguments))
    mixes = [[main[i][number] for i, number in enumerate(row)] for row in rows]
    others = [("list", "pandas") if name == "X" else ("list", "one") for name in arguments]
    for place, kinds in enumerate(others):
        for number, kind in enumerate(kinds):
            mix = [each[(number + i) % 2 + 1] for i, each in enumerate(main)]
            mixes.append([*mix[:place], kind, *mix[place + 1 :]])
    return mixes_of(arguments, mixes)


def mixes_of(arguments, mixes):
    named = (tuple(zip(arguments, mix, strict=True)) for mix in mixes)
    return [mix for mix in dict.fromkeys(named) if any(twin(*each) != each[1] for each in mix)]


def check(place, mixes):
    wrong = []
    entry = ENTRIES[place]
    for kinds in mixes:
        found = outcome(entry, kinds)
        in_memory = expected(place, tuple((name, twin(name, kind)) for name, kind in kinds))
        if found != in_memory:
            wrong.append((dict(kinds), found, in_memory))
    assert not wrong, f"{len(wrong)} of {len(mixes)} mixes differ, such as {wrong[0]}"


IDS = [f"{place}-{entry.names[0]}" for place, entry in enumerate(ENTRIES)]


@pytest.mark.one_of(10)
@pytest.mark.parametrize("place", range(len(ENTRIES)), ids=IDS)
def test_a_mix_is_what_it_is_in_memory(place):
    with dask.config.set(scheduler="synchronous"):
        check(place, some_mixes(ENTRIES[place].arguments))


@pytest.mark.chaos
@pytest.mark.parametrize("place", range(len(ENTRIES)), ids=IDS)
def test_any_mix_is_what_it_is_in_memory(place):
    with dask.config.set(scheduler="synchronous"):
        check(place, all_mixes(ENTRIES[place].arguments))


def test_all_mixes_together_with_a_cluster(here):
    """What is computed comes as futures, which are told apart as the results are."""
    for place in (0, 5, 8, 11, 16):
        mixes = some_mixes(ENTRIES[place].arguments)
        check(place, mixes[:: max(1, len(mixes) // 2)])


@pytest.mark.parametrize("place", range(len(ENTRIES)), ids=IDS)
def test_delayed_values_are_refused_in_words_or_handled(place):
    """A score computes what is beside the table, and a number of splits looks at nothing."""
    entry = ENTRIES[place]
    for delayed, table in itertools.product(entry.arguments, ("numpy", "array")):
        kinds = dict.fromkeys(entry.arguments, "numpy") | {"X": table, delayed: "delayed"}
        arguments = {name: given(name, kind) for name, kind in kinds.items()}
        is_score = entry.names[0].endswith((".score", ".staged_score")) and delayed != "X"
        if is_score or "get_n_splits" in entry.names[0]:
            in_memory = expected(place, tuple((name, "numpy") for name in entry.arguments))
            assert entry.ask(**arguments) == in_memory
            continue
        said = rf"({delayed}|params\['{delayed}'\]) is a (dask\.delayed value\. Give|Dask col)"
        with pytest.raises(TypeError, match=rf"^{said}"):
            entry.ask(**arguments)


# -------------------------------------------------------------------------------------------------
# columns of other libraries

LETTERS = np.array(list("-abcde"))
OTHERS = {  # what `frame["y"].values` and its siblings are, of pandas 2 and 3
    "Index": lambda values: pd.Index(values),
    "values": lambda values: pd.Series(values).values,
    "array": lambda values: pd.Series(values).array,
    "nullable": lambda values: pd.Series(values).convert_dtypes().array,
    "categories": lambda values: pd.Categorical(values),
    "objects": lambda values: np.array(values.tolist(), dtype=object),
    "series": lambda values: pd.Series(values, dtype=object),
    "ArrowDtype": lambda values: pd.array(values, dtype=pd.ArrowDtype(arrow(values).type)),
    "Arrow": lambda values: arrow(values),
    "chunks": lambda values: pa.chunked_array([arrow(values[:50]), arrow(values[50:])]),
    "dictionary": lambda values: arrow(values).dictionary_encode(),
    "polars": lambda values: pl.Series(values.tolist()),
    "StringDType": lambda values: (
        values.astype(np.dtypes.StringDType()) if values.dtype.kind == "U" else values.tolist()
    ),
}


def arrow(values):
    return pa.array(values.tolist())


def in_container(entry, container):
    """What a function answers where all that belongs to the rows has one form."""
    arguments = {name: VALUES[name] for name in entry.arguments}
    for name in arguments.keys() - {"X", "sample_weight"}:
        is_number = "Regressor" in entry.names[0] or (name == "y" and "score" in entry.names[0])
        arguments[name] = arguments[name] if is_number else LETTERS[arguments[name]]
    of_rows = arguments.keys() - {"X"}
    return entry.ask(**arguments | {name: container(arguments[name]) for name in of_rows})


@pytest.mark.one_of(6)
@pytest.mark.parametrize("place", range(len(ENTRIES)), ids=IDS)
def test_columns_of_every_library_are_those_of_numpy(place):
    plain = in_container(ENTRIES[place], lambda values: values)
    found = {name: in_container(ENTRIES[place], make) for name, make in OTHERS.items()}
    assert found == dict.fromkeys(OTHERS, plain)


@pytest.mark.one_of(12)
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("scoring", ["roc_auc_ovr", None], ids=["shares", "score"])
def test_scorers_take_rows_of_columns_of_every_library(name, scoring):
    X, y, groups = VALUES["X"], LETTERS[VALUES["y"]], LETTERS[VALUES["groups"]]

    def scores(container):
        return cross_val_score(
            FOREST(),
            X,
            container(y),
            groups=container(groups),
            cv=GroupKFold(3),
            scoring=scoring,
            params={"sample_weight": container(VALUES["sample_weight"])},
        ).tolist()

    assert scores(OTHERS[name]) == scores(lambda values: values)


# -------------------------------------------------------------------------------------------------
# the laws

PUBLIC = [dtrees, *(import_module(f"dtrees.{name}") for name in PACKAGES)]


def takes_rows(function):
    """The arguments of a function that are values of rows."""
    try:
        parameters = set(inspect.signature(function).parameters)
    except ValueError:  # one without a signature, of a base class in C
        return set()
    return parameters & OF_ROWS


def public_functions():
    """All public functions and methods by name, but those that say where metadata goes."""
    for module in PUBLIC:
        place = module.__name__.partition(".")[2]
        elsewhere = {name for other in PUBLIC[1:] if module is dtrees for name in other.__all__}
        for name in module.__all__:
            if name in elsewhere:
                continue
            thing = getattr(module, name)  # which may have a second name
            path = ".".join(filter(None, [place, getattr(thing, "__name__", name)]))
            if inspect.isclass(thing):
                for method, function in inspect.getmembers(thing, callable):
                    if not method.startswith("_") and not method.endswith("_request"):
                        yield f"{path}.{method}", function
            elif callable(thing):
                yield path, thing


def test_every_function_of_several_values_of_rows_is_here():
    several = {name for name, function in public_functions() if len(takes_rows(function)) > 1}
    tried = {name for entry in ENTRIES for name in entry.names}
    assert several == tried, "write an Entry for each new function, and drop what is gone"
    assert "DecisionTreeClassifier.fit" in several
