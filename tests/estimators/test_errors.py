"""Bad input gets one clear error, and nothing half-fitted stays behind."""

import math
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from dtrees import (
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)
from tests.parallel.test_threads import interrupted

X = np.random.default_rng(0).normal(size=(40, 3))
NUMBERS = X[:, 0] + X[:, 1]
CLASSES = (NUMBERS > 0).astype(int)
KINDS = [DecisionTreeClassifier, DecisionTreeRegressor]
both = pytest.mark.parametrize("kind", KINDS)


def learned(estimator):
    return {name for name in vars(estimator) if name.endswith("_")}


def refused(estimator, match, *args, error=ValueError, **kwargs):
    """The fit is refused; an unfitted estimator stays unfitted, a fitted one keeps its fit."""
    with pytest.raises(error, match=match):
        estimator.fit(*args, **kwargs)
    assert not learned(estimator)

    fitted = type(estimator)(max_depth=2).fit(X, CLASSES)
    before, parameters = vars(fitted).copy(), fitted.get_params()
    expected = fitted.predict(X)
    fitted.set_params(**estimator.get_params())
    with pytest.raises(error, match=match):
        fitted.fit(*args, **kwargs)
    fitted.set_params(**parameters)
    assert all(vars(fitted)[name] is before[name] for name in learned(fitted))
    assert learned(fitted) == {name for name in before if name.endswith("_")}
    assert_array_equal(fitted.predict(X), expected)


# ------------------------------------------------------------------------------------- parameters


def test_class_weight():
    refused(
        DecisionTreeClassifier(class_weight="even"),
        "The 'class_weight' parameter of DecisionTreeClassifier must be an instance of 'dict', "
        "an instance of 'list', a str among {'balanced'} or None. Got 'even' instead.",
        X,
        CLASSES,
    )
    refused(DecisionTreeClassifier(class_weight={"no": 1}), "class_weight", X, CLASSES)
    refused(DecisionTreeClassifier(class_weight={0: -1}), "class_weight", X, CLASSES)
    refused(DecisionTreeClassifier(class_weight={0: 0, 1: 0}), "class_weight", X, CLASSES)


def test_several_targets_come_later():
    several = np.c_[CLASSES, CLASSES]
    for y in (several, several.tolist(), pd.DataFrame(several)):
        refused(AdaBoostRegressor(), "does not support several targets yet.*MultiOutput", X, y)


@both
def test_zero_jobs(kind):
    refused(kind(n_jobs=0), "n_jobs", X, CLASSES)


# ------------------------------------------------------------------------------------------ table


@both
def test_empty_tables(kind):
    refused(kind(), r"0 sample\(s\)", np.empty((0, 3)), np.empty(0))
    refused(kind(), r"0 feature\(s\)", np.empty((40, 0)), CLASSES)
    refused(kind(), r"0 sample\(s\)", pd.DataFrame({"a": []}), [])
    refused(kind(), r"0 sample\(s\)", scipy.sparse.csr_array((0, 3)), [])


@both
def test_tables_that_are_not_two_dimensional(kind):
    refused(kind(), "Expected 2D array, got 1D array instead", X[:, 0], CLASSES)
    refused(kind(), "dim 3", X[:, :, None], CLASSES)
    tree = kind().fit(X, CLASSES)
    with pytest.raises(ValueError, match="Reshape your data"):
        tree.predict(X[0])


@both
def test_one_row(kind):
    tree = kind().fit(X[:1], [3])
    assert tree.get_n_leaves() == 1
    assert tree.get_depth() == 0
    assert_array_equal(tree.predict(X), np.full(40, 3))
    assert_array_equal(tree.feature_importances_, np.zeros(3))


@both
def test_constant_columns_make_one_leaf(kind):
    for table in (np.ones((40, 3)), scipy.sparse.csc_array((40, 3)), np.full((40, 1), np.nan)):
        tree = kind().fit(table, CLASSES)
        assert tree.get_n_leaves() == 1
        assert len(set(tree.predict(table))) == 1


def test_one_class():
    tree = DecisionTreeClassifier().fit(X, np.full(40, "yes"))
    assert tree.get_n_leaves() == 1
    assert_array_equal(tree.predict_proba(X), np.ones((40, 1)))
    assert_array_equal(tree.predict(X), np.full(40, "yes"))


@both
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities(kind, value):
    bad = X.copy()
    bad[3, 1] = value
    refused(kind(), "Input X contains infinity.*column 1", bad, CLASSES)
    refused(kind(), "infinity.*'b'", pd.DataFrame(bad, columns=list("abc")), CLASSES)
    refused(kind(), "infinity", scipy.sparse.csr_array(bad), CLASSES)


@both
def test_complex_numbers(kind):
    refused(kind(), "Complex data not supported", X.astype(complex), CLASSES)
    refused(kind(), "Complex data not supported", scipy.sparse.csr_array(X * 1j), CLASSES)
    refused(kind(), "[Cc]omplex", X, CLASSES * 1j)


@both
def test_objects_of_mixed_types(kind):
    table = pd.DataFrame({"a": X[:, 0], "what": [b"bytes", (1, 2)] * 20}, dtype=object)
    refused(kind(), "what", table, CLASSES, error=TypeError)


@both
def test_sparse_tables_of_any_form(kind):
    dense = np.where(X > 0, X, 0.0)
    expected = kind().fit(dense, CLASSES).predict(dense)
    csr = scipy.sparse.csr_matrix(dense)
    unsorted = csr.copy()
    for i in range(40):
        part = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1]
        unsorted.data[part] = unsorted.data[part][::-1]
    unsorted.has_sorted_indices = False
    coo = csr.tocoo()
    twice = scipy.sparse.coo_matrix(
        (np.r_[coo.data, coo.data] / 2, (np.r_[coo.row, coo.row], np.r_[coo.col, coo.col])), (40, 3)
    )
    wide = csr.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for table in (csr, unsorted, twice, wide, scipy.sparse.csc_array(csr)):
        before = table.copy()
        assert_array_equal(kind().fit(table, CLASSES).predict(table), expected)
        assert_array_equal(table.data, before.data)  # the user's matrix is left as it is


# ----------------------------------------------------------------------------------- y and weights


@both
def test_targets_that_are_missing_or_infinite(kind):
    y = NUMBERS.copy() if kind is DecisionTreeRegressor else CLASSES.astype(float)
    for value, match in ((np.nan, "Input y contains NaN"), (np.inf, "Input y contains infinity")):
        y[5] = value
        refused(kind(), rf"{match}.* \(row 5\) Drop or repair these rows first", X, y)
    refused(kind(), "requires y to be passed, but the target y is None", X, None)
    masked = np.ma.array(CLASSES, mask=np.arange(len(CLASSES)) == 3)
    refused(kind(), "Input y contains NaN: some values are masked", X, masked)


def test_labels():
    refused(DecisionTreeClassifier(), "Unknown label type: continuous", X, NUMBERS)
    refused(DecisionTreeClassifier(), "y", X, np.array(["a", None] * 20, dtype=object))
    refused(DecisionTreeClassifier(), r"NaN: a missing label \(nan\)", X, ["a", math.nan] * 20)
    refused(
        DecisionTreeClassifier(),
        "y",
        X,
        np.array(["a", 1] * 20, dtype=object),
        error=(TypeError, ValueError),
    )
    refused(DecisionTreeRegressor(), "y", X, np.array(["a", "b"] * 20))


@both
def test_lengths(kind):
    refused(kind(), r"inconsistent numbers of samples.*40.*39", X, CLASSES[:-1])
    refused(kind(), "sample_weight has 39 values for 40", X, CLASSES, np.ones(39))
    refused(kind(), "sample_weight should be a 1d array", X, CLASSES, np.ones((40, 2)))


@both
def test_a_column_of_y_is_taken_with_a_warning(kind):
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        tree = kind().fit(X, CLASSES[:, None])
    assert tree.predict(X).shape == (40,)


@both
def test_weights(kind):
    weight = np.ones(40)
    weight[7] = -0.5
    refused(kind(), "sample_weight must not be negative, got -0.5 in row 7", X, CLASSES, weight)
    refused(kind(), "sample_weight is zero for every row", X, CLASSES, np.zeros(40))
    weight[7] = np.nan
    refused(kind(), "Input sample_weight contains NaN", X, CLASSES, weight)
    refused(kind(), "overflow", X, CLASSES, np.full(40, 1e308))


def test_targets_that_overflow():
    refused(DecisionTreeRegressor(), "overflow", X, np.linspace(-1e200, 1e200, 40))


def test_large_and_small_targets_do_not_overflow():
    for scale in (1e-150, 1e-20, 1e20, 1e150):
        tree = DecisionTreeRegressor().fit(X, NUMBERS * scale)
        np.testing.assert_allclose(tree.predict(X), NUMBERS * scale, rtol=1e-9, atol=1e-13 * scale)


def test_poisson():
    tree = DecisionTreeRegressor(criterion="poisson")
    refused(tree, r"Some value\(s\) of y are negative", X, NUMBERS)
    refused(tree, "Sum of y is not positive", X, np.zeros(40))
    refused(tree, "Sum of y is not positive", X, CLASSES, 1 - CLASSES)


# -------------------------------------------------------------------------------------- prediction


@both
def test_columns_at_prediction(kind):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    tree = kind().fit(frame, CLASSES)
    expected = tree.predict(frame)
    for table, match in (
        (frame.rename(columns={"b": "z"}), "seen at fit time, yet now missing:\n- b"),
        (frame[["c", "b", "a"]], "must be in the same order as they were in fit"),
        (frame[["a", "b"]], "seen at fit time, yet now missing:\n- c"),
        (frame.assign(d=1.0), "unseen at fit time:\n- d"),
    ):
        with pytest.raises(ValueError, match=f"(?s)feature names should match.*{match}"):
            tree.predict(table)
    with pytest.warns(UserWarning, match="X does not have valid feature names") as warned:
        assert_array_equal(tree.predict(X), expected)
    assert len(warned) == 1
    assert f"but {kind.__name__} was fitted with feature names" in str(warned[0].message)
    for table in (X[:, :2], np.c_[X, X], scipy.sparse.csr_array(X[:, :2])):
        with (
            pytest.raises(ValueError, match=r"X has \d features, but .* is expecting 3 features"),
            pytest.warns(UserWarning, match="X does not have valid feature names"),
        ):
            tree.predict(table)
    nameless = kind().fit(X, CLASSES)
    assert not hasattr(nameless, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but"):
        nameless.predict(frame)


@both
def test_names_of_mixed_types(kind):
    frame = pd.DataFrame(X, columns=["a", "b", 3])
    refused(kind(), "Feature names are only supported if all", frame, CLASSES, error=TypeError)
    tree = kind().fit(pd.DataFrame(X), CLASSES)  # numbers are no names
    assert not hasattr(tree, "feature_names_in_")


@both
def test_strings_where_numbers_were_fitted(kind):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    tree = kind().fit(frame, CLASSES)
    with pytest.raises(ValueError, match="'b'"):
        tree.predict(frame.assign(b="high"))


@both
@pytest.mark.parametrize("handle_unknown", ["missing", "majority", "error"])
def test_categories_never_seen(kind, handle_unknown):
    colour = np.array(["red", "green", "blue", "red"] * 10)
    y = (colour == "red").astype(int)
    frame = pd.DataFrame({"x": X[:, 0], "colour": colour})
    tree = kind(handle_unknown=handle_unknown).fit(frame, y)
    assert_array_equal(tree.predict(frame), y)
    fresh = frame.assign(colour="violet")
    if handle_unknown == "error":
        with pytest.raises(ValueError, match=r"^Column 'colour' of X: .* such as 'violet' of type"):
            tree.predict(fresh)
        return
    with pytest.warns(UserWarning, match=r"^Column 'colour' of X: .* such as 'violet' of type"):
        predicted = tree.predict(fresh)
    assert len(set(predicted)) == 1
    if handle_unknown == "missing":
        assert_array_equal(predicted, tree.predict(frame.assign(colour=None)))


# ------------------------------------------------------------------------------------------ Ctrl-C


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
@pytest.mark.parametrize(
    ("n_rows", "n_jobs"),
    [
        (400_000, 2),  # while it is coded
        pytest.param(400_000, 1, marks=pytest.mark.long),
        (20_000, 1),  # while it grows
        pytest.param(20_000, 2, marks=pytest.mark.long),
    ],
)
def test_ctrl_c_ends_a_long_fit(n_rows, n_jobs):
    raised, idle = interrupted(f"""
        import threading
        import numpy as np
        from dtrees import DecisionTreeClassifier

        n_threads = {n_jobs}
        rng = np.random.default_rng(0)
        X = rng.normal(size=({n_rows}, 40)).astype(np.float32)
        y = rng.integers(0, 2, {n_rows})
        tree = DecisionTreeClassifier(n_jobs=n_threads)

        begun = ["a fit"]
        ended = threading.Semaphore(10**6)  # fits run in the thread that Ctrl-C ends

        def run():
            print("ready", flush=True)
            while True:
                tree.fit(X, y)
                begun.append("a fit")
    """)
    assert raised == idle  # no fit has begun since
