"""Criteria of users: the trees of compiled ones, in Python; and as compiled functions."""

import copy
import ctypes
import math
import pickle
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import dask
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import LowLevelCallable
from sklearn.base import clone
from sklearn.model_selection import KFold

import dtrees
from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    cross_validate,
)
from dtrees.callbacks import Callback
from dtrees.constraints import InvalidParameterError
from dtrees.core.search._criterion import side_score
from dtrees.criteria import CompiledCriterion, Criterion
from dtrees.inspection import export_graphviz


class ChiSquare(Criterion):
    """The compiled criterion once more, in Python: the same operations in the same order."""

    def score(self, left, right):
        w = rest = found = 0.0
        for a, b in zip(left.tolist(), right.tolist(), strict=True):
            w, rest = w + a, rest + b
        for a, b in zip(left.tolist(), right.tolist(), strict=True):
            expected = (a + b) * w / (w + rest)
            if expected > 0:
                found += (a - expected) * (a - expected) / expected * (w + rest) / rest
        return found


class Gini(Criterion):
    def score(self, left, right):
        both = left + right
        w, rest = left.sum(), right.sum()
        return (left @ left) / w + (right @ right) / rest - (both @ both) / both.sum()


def table(n_classes, n_rows=300):
    """Numbers with ties and missing values, most of one column zero, and categories.

    Of several numbers of classes, as many targets.
    """
    import pandas as pd

    rng = np.random.default_rng(n_classes)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)).round(1), columns=list("abc"))
    X.loc[rng.random(n_rows) < 0.2, "b"] = np.nan
    X.loc[rng.random(n_rows) < 0.7, "c"] = 0.0
    X["d"] = pd.Categorical(rng.choice(list("pqrst"), n_rows))
    y = (X["a"] + X["c"] + (X["d"] == "p") + rng.normal(size=n_rows) * 0.5) * 2
    if isinstance(n_classes, tuple):
        each = [np.roll(y, k // 2) + k % 2 * X["b"].fillna(1) for k in range(len(n_classes))]
        found = [np.clip(np.floor(own), 0, n - 1) for own, n in zip(each, n_classes, strict=True)]
        return X, np.column_stack(found).astype(int)
    return X, np.clip(np.floor(y), 0, n_classes - 1).astype(int)


def shape(tree):
    """What rows meet, without what is measured in units of the criterion."""
    left_out = ("gain", "impurity", "criterion")
    return {name: repr(own.tolist()) for name, own in tree.arrays().items() if name not in left_out}


@pytest.mark.parametrize("n_classes", [2, 3, 5, (3, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_of_python_is_that_of_the_compiled_function(n_classes, weighted):
    X, y = table(n_classes)
    w = np.arange(len(y)) % 3 + 0.5 if weighted else None
    trees = [
        DecisionTreeClassifier(criterion=criterion, random_state=0).fit(X, y, w).tree_.model
        for criterion in ("chi_square", ChiSquare())
    ]
    assert trees[0].node_count > 20
    own, of_python = (dict(tree.arrays()) for tree in trees)
    assert all(np.array_equal(own[name], of_python[name], equal_nan=True) for name in own)


@pytest.mark.parametrize("n_classes", [2, 3, (3, 4)])
def test_gini_in_python_has_the_splits_of_gini(n_classes):
    """Gains as well, but for roundings; nodes whose columns tie by a rounding are below depth 3."""
    X, y = table(n_classes)
    how = {"random_state": 0, "max_depth": 3, "category_penalty": 0}
    own = DecisionTreeClassifier(**how).fit(X, y).tree_.model
    of_python = DecisionTreeClassifier(criterion=Gini(), **how).fit(X, y).tree_.model
    assert shape(own) == shape(of_python)
    assert np.allclose(own.gain, of_python.gain)
    assert np.array_equal(own.impurity, of_python.impurity)


@pytest.mark.parametrize("n_classes", [3, (3, 2, 1)])
@pytest.mark.parametrize("forest", ["RandomForest", "ExtraTrees", "Bagging"])
def test_forests(forest, n_classes):
    """Columns that are drawn, random splits, and bags; on threads as on one."""
    X, y = table(n_classes)
    trees = [
        getattr(dtrees, forest + "Classifier")(
            4, criterion=criterion, random_state=0, n_jobs=n_jobs
        )
        .fit(X, y)
        .forest_.trees
        for criterion, n_jobs in [("chi_square", 1), ("chi_square", 2), (ChiSquare(), 2)]
    ]
    for other in trees[1:]:
        for a, b in zip(trees[0], other, strict=True):
            assert shape(a) == shape(b)


OF_CLASSES = {
    "chi_square": side_score("chi_square", None),
    "gain_ratio": side_score("gain_ratio", None),
    "gini": Gini().score,
}


@pytest.mark.parametrize("criterion", OF_CLASSES)
@pytest.mark.parametrize("n_classes", [(3, 2), (2, 2), (2, 3, 4, 1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_splits_of_several_targets_have_the_best_mean(criterion, n_classes, weighted):
    """Of all boundaries of all columns, each target alone in floats; less than nothing is none."""
    rng = np.random.default_rng(1)
    X, (_, Y) = rng.integers(0, 5, (80, 3)).astype(float), table(n_classes, 80)
    weight = rng.integers(1, 4, 80) if weighted else np.ones(80)
    given = Gini() if criterion == "gini" else criterion
    model = DecisionTreeClassifier(criterion=given, max_depth=4).fit(X, Y, weight)
    tree, passed = model.tree_.model, model.decision_path(X).toarray().astype(bool)
    n_inner = 0
    for node in range(tree.node_count):
        rows, best = passed[:, node], -np.inf
        for x in X.T:
            for cut in range(4):
                left, right = rows & (x <= cut), rows & (x > cut)
                if left.any() and right.any():
                    each = [
                        [np.bincount(y[side], weight[side], y.max() + 1) for side in (left, right)]
                        for y in Y.T
                    ]
                    best = max(best, np.mean([OF_CLASSES[criterion](*both) for both in each]))
        if tree.children_left[node] >= 0:
            n_inner += 1
            np.testing.assert_allclose(tree.gain[node], max(best, 0), rtol=1e-12, atol=1e-12)
    assert n_inner > 5


@pytest.mark.parametrize(
    "criterion", ["chi_square", "gain_ratio", ChiSquare()], ids=["chi_square", "gain_ratio", "own"]
)
@pytest.mark.parametrize("forest", ["RandomForest", "ExtraTrees"])
def test_targets_have_no_order(criterion, forest):
    """Nor does it matter how often one is there, or that another one has one class."""
    X, y = table((3, 2, 4, 2))
    kind = partial(getattr(dtrees, forest + "Classifier"), 2, criterion=criterion, random_state=0)
    one, other = (kind().fit(X, y[:, order]) for order in ([0, 1, 2, 3], [2, 0, 3, 1]))
    alone, thrice = kind().fit(X, y[:, 0]), kind().fit(X, y[:, [0, 0, 0]])
    pure = kind().fit(X, np.column_stack([y[:, 0], np.zeros((len(y), 3), dtype=int)]))
    names = "feature", "threshold", "children_left", "n_node_samples", "gain"
    for a, b in ((one, other), (alone, thrice), (alone, pure)):
        for tree, twin in zip(a.forest_.trees, b.forest_.trees, strict=True):
            for name in names[: 4 if b is pure else 5]:
                np.testing.assert_array_equal(getattr(tree, name), getattr(twin, name))


def test_a_fit_goes_on_with_an_equal_criterion(tmp_path):
    X, y = table(3)

    def forest(n_trees):
        return RandomForestClassifier(n_trees, criterion=ChiSquare(), random_state=0)

    forest(2).fit(X, y, checkpoint=tmp_path)
    heard = []
    forest(4).fit(X, y, checkpoint=tmp_path, callbacks=[Heard(heard)])
    assert heard == [2, 3]
    other = RandomForestClassifier(4, criterion=Gini(), random_state=0)
    with pytest.raises(ValueError, match="criterion was"):
        other.fit(X, y, checkpoint=tmp_path)


class Heard(Callback):
    def __init__(self, numbers):
        self.numbers = numbers

    def on_tree_end(self, fit, number):
        self.numbers.append(number)


def test_folds_grow_one_by_one():
    """As folds that grow together do by the compiled function."""
    X, y = table(3)
    scores = [
        cross_validate(RandomForestClassifier(2, criterion=criterion, random_state=0), X, y, cv=3)
        for criterion in ("chi_square", ChiSquare())
    ]
    assert np.array_equal(scores[0]["test_score"], scores[1]["test_score"])


def same(one, other):
    arrays = dict(one.arrays()), dict(other.arrays())
    return all(np.array_equal(arrays[0][n], arrays[1][n], equal_nan=True) for n in arrays[0])


@pytest.mark.one_of(6)
@pytest.mark.parametrize("n_classes", [2, 4, (3, 2)])
@pytest.mark.parametrize("criterion", ["chi_square", "gain_ratio"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_grow_together(n_classes, criterion, class_weight, weighted, caplog):
    """Each has the tree of a fit in which other rows weigh nothing."""
    X, y = table(n_classes)
    weight = np.arange(len(y)) % 3 + 1 if weighted else np.ones(len(y), dtype=int)
    how = {"criterion": criterion, "class_weight": class_weight, "min_samples_leaf": 2}
    for kind in (DecisionTreeClassifier, partial(dtrees.ExtraTreesClassifier, 2)):
        model = kind(random_state=0, max_bins=None, **how)
        cv = list(KFold(4).split(y))
        with caplog.at_level("INFO", logger="dtrees"):
            found = cross_validate(
                model,
                *(X, y),
                cv=cv,
                params={"sample_weight": weight},
                return_estimator=True,
                scoring=lambda *_: 0.0,
            )
        if y.ndim == 1 or class_weight is None:  # weights of several classes have other units
            assert "one by one" not in caplog.text
        for (rows, _), fold in zip(cv, found["estimator"], strict=True):
            own = np.zeros(len(y))
            own[rows] = weight[rows]
            one = clone(model).fit(X, y, own)
            trees = [
                each.forest_.trees if hasattr(each, "forest_") else [each.tree_.model]
                for each in (one, fold)
            ]
            assert all(map(same, *trees))


@pytest.mark.one_of(12)
@pytest.mark.parametrize("n_classes", [2, 4, (3, 2)])
@pytest.mark.parametrize("criterion", ["chi_square", "gain_ratio"])
@pytest.mark.parametrize("forest", ["RandomForest", "ExtraTrees", "Bagging"])
@pytest.mark.parametrize("max_bins", [None, 20])
def test_rounds_over_blocks_have_the_same_bits(n_classes, criterion, forest, max_bins):
    X, y = table(n_classes, 1_000)
    kind = getattr(dtrees, forest + "Classifier")
    model = kind(2, criterion=criterion, random_state=0, max_bins=max_bins)
    here = clone(model).fit(X, y)
    with dask.config.set({"scheduler": "threads", "dtrees.gather-rows": 50}):
        rounds = clone(model).set_params(regime="partitioned").fit(X, y)
    assert all(map(same, here.forest_.trees, rounds.forest_.trees))


class Broken(Criterion):
    def score(self, left, right):
        if left.sum() > 100:
            raise ZeroDivisionError("as the user wrote it")
        return 0.0


class Nothing(Criterion):
    def score(self, left, right):
        return float("nan")


class Forbidding(Criterion):
    def score(self, left, right):
        return float("-inf")


class Endless(Criterion):
    def score(self, left, right):
        return float("inf")


def test_what_a_criterion_raises_is_raised_by_fit():
    X, y = table(3)
    with pytest.raises(ZeroDivisionError, match="as the user wrote it"):
        DecisionTreeClassifier(criterion=Broken()).fit(X, y)
    with pytest.raises(ZeroDivisionError, match="as the user wrote it"):
        RandomForestClassifier(3, criterion=Broken(), n_jobs=2).fit(X, y)
    with pytest.raises(ValueError, match="is nan: give a finite number"):
        DecisionTreeClassifier(criterion=Nothing()).fit(X, y)
    with pytest.raises(ValueError, match="is inf: give a finite number"):
        DecisionTreeClassifier(criterion=Endless()).fit(X, y)
    tree = DecisionTreeClassifier(criterion=Forbidding()).fit(X, y).tree_.model
    assert tree.node_count == 1


def test_what_a_criterion_cannot_do_is_refused():
    X, y = table(2)
    with pytest.raises(InvalidParameterError, match=r"dtrees\.criteria\.Criterion"):
        DecisionTreeClassifier(criterion=lambda left, right: 0.0).fit(X, y)


def test_limits_and_pruning_go_on_working():
    X, y = table(3)
    whole = DecisionTreeClassifier(criterion=ChiSquare(), random_state=0).fit(X, y)
    for limits in ({"max_leaf_nodes": 5}, {"ccp_alpha": 0.01}, {"min_impurity_decrease": 0.05}):
        model = DecisionTreeClassifier(criterion=ChiSquare(), random_state=0, **limits).fit(X, y)
        assert 1 < model.tree_.model.node_count < whole.tree_.model.node_count
    assert whole.feature_importances_.sum() == pytest.approx(1)


# ---------------------------------------------------------------------------------------------
# numbers


class SquaredErrors(Criterion):
    """The mean over the outputs of what splits take off their squared errors."""

    def score(self, left, right):
        w, v = left[0], right[0]
        return w * v / (w + v) * np.mean((left[1::2] - right[1::2]) ** 2)


class Within(Criterion):
    """The same, by variances."""

    def score(self, left, right):
        return 1e6 - left[0] * left[2::2].mean() - right[0] * right[2::2].mean()


class Told(Criterion):
    """Remembers what it is told."""

    def __init__(self):
        self.sides = []

    def score(self, left, right):
        self.sides.append((left.tolist(), right.tolist()))
        return 0.0


def numbers(n_outputs=1, n_rows=300):
    X, _ = table(2, n_rows)
    rng = np.random.default_rng(n_outputs)
    y = rng.normal(size=(n_rows, n_outputs)) + np.nan_to_num(X[["a"]].to_numpy()) * [3.0]
    return X, y.squeeze() * 7 + 1e3


def test_what_a_criterion_of_numbers_is_told():
    """Weight, mean and variance of both sides of each boundary, by NumPy."""
    x, y = np.array([1, 2, 3, 4, np.nan]), np.array([1e6, 1e6 + 3, 1e6 + 1, 0.5, -2])
    w = np.array([1, 0.5, 2, 3, 0.25])
    criterion = Told()
    DecisionTreeRegressor(criterion=criterion, max_depth=1).fit(x.reshape(-1, 1), y, w)
    sides = [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [4, 0], [4, 0, 1], [4, 0, 1, 2]]
    assert len(criterion.sides) == len(sides)
    for found, side in zip(criterion.sides, sides, strict=True):
        for told, rows in zip(found, (side, np.setdiff1d(range(5), side)), strict=True):
            mean = np.average(y[rows], weights=w[rows])
            variance = np.average((y[rows] - mean) ** 2, weights=w[rows])
            assert told == pytest.approx([w[rows].sum(), mean, variance], abs=1e-3)
            assert told[2] >= 0


@pytest.mark.one_of(4)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", [SquaredErrors(), Within()], ids=["means", "variances"])
def test_squared_errors_in_python_have_the_splits_of_squared_error(n_outputs, weighted, criterion):
    X, y = numbers(n_outputs)
    X = X[list("abc")]  # subsets pay for their categories
    w = np.arange(len(y)) % 3 + 0.5 if weighted else None
    how = {"random_state": 0, "max_depth": 4}
    own = DecisionTreeRegressor(**how).fit(X, y, w).tree_.model
    of_python = DecisionTreeRegressor(criterion=criterion, **how).fit(X, y, w).tree_.model
    assert shape(own) == shape(of_python)
    assert np.allclose(own.impurity, of_python.impurity, rtol=1e-12, atol=1e-9)
    if type(criterion) is SquaredErrors:
        assert np.allclose(own.gain, of_python.gain)


def test_categories_are_split_in_the_order_of_their_means():
    X, y = numbers()
    own = DecisionTreeRegressor(max_depth=1, category_penalty=0).fit(X[["d"]], y)
    of_python = DecisionTreeRegressor(max_depth=1, criterion=SquaredErrors()).fit(X[["d"]], y)
    assert shape(own.tree_.model) == shape(of_python.tree_.model)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("forest", ["RandomForest", "ExtraTrees", "Bagging"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_forests_of_numbers(forest, n_outputs):
    X, y = numbers(n_outputs)
    X = X[list("abc")].fillna(0).to_numpy()
    w = np.arange(len(y)) % 3
    how = {"random_state": 0, "max_depth": 4}
    kind = getattr(dtrees, forest + "Regressor")
    models = [
        kind(4, criterion=criterion, n_jobs=n_jobs, **how).fit(table, y, w)
        for criterion, n_jobs, table in [
            ("squared_error", 1, X),
            (SquaredErrors(), 1, X),
            (SquaredErrors(), 2, sp.csr_array(X)),
        ]
    ]
    for other in models[1:]:
        assert np.array_equal(other.predict(X), models[0].predict(X))


rows_of_numbers = st.lists(
    st.tuples(st.integers(0, 5), st.integers(-9, 9), st.integers(1, 4)), min_size=2, max_size=30
)


@settings(max_examples=40, deadline=None)
@given(rows_of_numbers)
def test_a_weight_is_so_many_rows_and_order_does_not_show(rows):
    x, y, w = np.array(rows, dtype=float).T
    w, how = w.astype(int), {"criterion": Normal(), "max_depth": 3}
    weighted = DecisionTreeRegressor(**how).fit(x.reshape(-1, 1), y, w).tree_.model
    again = np.repeat(np.arange(len(y)), w)[::-1]
    repeated = DecisionTreeRegressor(**how).fit(x[again].reshape(-1, 1), y[again]).tree_.model
    for name in ("threshold", "feature", "value", "impurity"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))


class Normal(Criterion):
    def score(self, left, right):
        return 1e4 + sum(-w * math.log(variance + 1) for w, _, variance in (left, right))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_scores_below_zero_are_no_gains(kind):
    class Below(Criterion):
        def score(self, left, right):
            return -1.0 / (left.sum() + right.sum())

    tree = kind(criterion=Below(), max_depth=3).fit(np.arange(20.0)[:, None], np.arange(20) % 3)
    assert tree.get_depth() == 3
    assert tree.feature_importances_.tolist() == [0.0]


def test_pictures_and_pickles_of_numbers():
    X, y = numbers()
    model = DecisionTreeRegressor(criterion=Normal(), max_depth=2).fit(X, y)
    assert f"squared_error = {np.var(y):.3f}" in export_graphviz(model)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert type(again.criterion) is Normal


def test_folds_of_numbers_and_monotonic_columns():
    X, y = numbers()
    X, how = X[list("abc")].to_numpy(), {"max_depth": 3, "monotonic_cst": [1, 0, 0]}
    own, of_python = (
        cross_validate(DecisionTreeRegressor(criterion=criterion, **how), X, y, cv=3)
        for criterion in ("squared_error", SquaredErrors())
    )
    assert np.allclose(own["test_score"], of_python["test_score"])
    model = DecisionTreeRegressor(criterion=SquaredErrors(), **how).fit(X, y)
    rising = np.c_[np.linspace(-3, 3, 50), np.zeros((50, 2))]
    assert (np.diff(model.predict(rising)) >= 0).all()


def test_partitions_are_refused():
    X, y = numbers()
    with pytest.raises(ValueError, match="a criterion of your own need all rows in one place"):
        RandomForestRegressor(2, criterion=Normal(), regime="partitioned").fit(X, y)


# ---------------------------------------------------------------------------------------------
# compiled functions

SOURCE = """
double plain(double *left, double *right, int n)
{
    double d = 0;
    for (int k = 1; k < n; k += 2)
        d += (left[k] - right[k]) * (left[k] - right[k]);
    return left[0] * right[0] / (left[0] + right[0]) * d / (n / 2);
}

double scaled(double *left, double *right, int n, void *user_data)
{
    return plain(left, right, n) * *(double *)user_data;
}

double nothing(double *left, double *right, int n) { return 0.0 / (n - n); }
"""
DOUBLES = ctypes.POINTER(ctypes.c_double)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.c").write_text(SOURCE, encoding="ascii")
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", folder / "own.c", "-o", folder / "own.so"], check=True
    )
    found = ctypes.CDLL(str(folder / "own.so"))
    for name, more in (("plain", []), ("scaled", [ctypes.c_void_p]), ("nothing", [])):
        function = getattr(found, name)
        function.argtypes = [DOUBLES, DOUBLES, ctypes.c_int, *more]
        function.restype = ctypes.c_double
    return found


def compiled(library, name="plain"):
    return CompiledCriterion(LowLevelCallable(getattr(library, name)))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_compiled_function_has_the_trees_of_python(library, n_outputs):
    X, y = numbers(n_outputs)
    how = {"random_state": 0, "max_depth": 4}
    of_python, of_c = (
        DecisionTreeRegressor(criterion=criterion, **how).fit(X, y).tree_.model
        for criterion in (SquaredErrors(), compiled(library))
    )
    assert of_c.node_count > 20
    assert shape(of_python) == shape(of_c)
    assert np.allclose(of_python.gain, of_c.gain)


def test_user_data_is_handed_on(library):
    X, y = numbers()
    factor = ctypes.c_double(4.0)
    data = ctypes.cast(ctypes.pointer(factor), ctypes.c_void_p)
    criterion = CompiledCriterion(LowLevelCallable(library.scaled, data))
    model = DecisionTreeRegressor(criterion=criterion, max_depth=3).fit(X, y)
    plain = DecisionTreeRegressor(criterion=compiled(library), max_depth=3).fit(X, y)
    assert np.array_equal(model.tree_.model.gain, 4 * plain.tree_.model.gain)
    sides = np.array([2.0, 1.0, 0.0]), np.array([2.0, 4.0, 0.0])
    assert criterion.score(*sides) == 4 * compiled(library).score(*sides) == 36


def of_cffi(library):
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef("double plain(double *, double *, int);")
    return ffi.dlopen(library._name).plain


def of_capsule(library):
    made = ctypes.pythonapi.PyCapsule_New
    made.restype = ctypes.py_object
    made.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    address, name = ctypes.cast(library.plain, ctypes.c_void_p), b"double (double *, double *, int)"
    return made(address, name, None)


@pytest.mark.parametrize("function", [of_cffi, of_capsule])
def test_other_containers(library, function):
    criterion = CompiledCriterion(LowLevelCallable(function(library)))
    X, y = numbers()
    models = [
        DecisionTreeRegressor(criterion=each, max_depth=3).fit(X, y).tree_.model
        for each in (compiled(library), criterion)
    ]
    assert shape(models[0]) == shape(models[1])


def test_functions_of_ctypes_that_call_python():
    """As those of numba, an address with a signature."""
    kind = ctypes.CFUNCTYPE(ctypes.c_double, DOUBLES, DOUBLES, ctypes.c_int)
    criterion = CompiledCriterion(
        LowLevelCallable(kind(lambda left, right, n: Gini().score(*sides_of(left, right, n))))
    )
    X, y = table(3)
    how = {"random_state": 0, "max_depth": 3}
    models = [
        DecisionTreeClassifier(criterion=own, **how).fit(X, y).tree_.model
        for own in (Gini(), criterion)
    ]
    assert shape(models[0]) == shape(models[1])


def sides_of(*sides_and_n):
    *sides, n = sides_and_n
    return [np.ctypeslib.as_array(side, shape=(n,)) for side in sides]


def test_threads_clones_and_searches(library):
    X, y = numbers()
    forest = RandomForestRegressor(8, criterion=compiled(library), random_state=0, max_depth=4)
    assert clone(forest).criterion is copy.deepcopy(forest.criterion) is forest.criterion
    one = forest.fit(X, y).predict(X)
    assert np.array_equal(clone(forest).set_params(n_jobs=2).fit(X, y).predict(X), one)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: clone(forest).fit(X, y).predict(X), range(2)))
    assert all(np.array_equal(each, one) for each in found)
    cross_validate(forest, X, y, cv=2)


def test_checkpoints_are_refused(library, tmp_path):
    forest = RandomForestRegressor(2, criterion=compiled(library))
    with pytest.raises(ValueError, match="one compiled criterion from another"):
        forest.fit(*numbers(), checkpoint=tmp_path)


def test_a_function_that_knows_no_answer_forbids(library):
    X, y = numbers()
    model = DecisionTreeRegressor(criterion=compiled(library, "nothing")).fit(X, y)
    assert model.get_n_leaves() == 1


def test_sides_of_different_lengths_are_not_read(library):
    criterion = compiled(library)
    with pytest.raises(ValueError, match="inhomogeneous"):
        criterion.score([1.0, 2.0, 3.0], [1.0])


def test_what_is_no_function_of_the_signature_is_refused(library):
    with pytest.raises(TypeError, match=r"scipy\.LowLevelCallable, got _FuncPtr"):
        CompiledCriterion(library.plain)
    other = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x)
    with pytest.raises(ValueError, match=r"got 'double \(double\)'"):
        CompiledCriterion(LowLevelCallable(other))
    with pytest.raises(TypeError, match="neither pickled nor sent"):
        pickle.dumps(compiled(library))
    model = DecisionTreeRegressor(criterion=LowLevelCallable(library.plain))
    with pytest.raises(InvalidParameterError, match=r"dtrees\.criteria\.Criterion"):
        model.fit(*numbers())
