"""The codebook: thresholds, coding of other tables, decoding, and its refusals."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.coding.codebook import midpoints
from dtrees.exceptions import UnseenCategoryError

rng = np.random.default_rng(4)


def fit(X, **options):
    return CodeBook.fit_encode(X, **options)


# ------------------------------------------------------------------------------------- thresholds


def naive_threshold(book, column, left, right):
    """The threshold and last left code of one pair of codes, in plain Python."""
    low = book.low[book.offsets[column] : book.offsets[column + 1]].astype(float)
    high = book.high[book.offsets[column] : book.offsets[column + 1]].astype(float)
    below, above = high[left - 1], low[right - 1]
    middle = below / 2 + above / 2
    if not middle < above:
        middle = below
    if book.exact[column]:
        return middle, max(c for c in range(left, right) if low[c - 1] <= middle)
    cuts = {c: abs(high[c - 1] - middle) for c in range(left, right)}
    code = min(cuts, key=lambda c: (cuts[c], c))
    return high[code - 1], code


floats = st.floats(allow_infinity=False, allow_nan=False)


@settings(max_examples=max(100, settings.default.max_examples))
@given(
    st.lists(floats, min_size=2, max_size=40, unique=True), st.sampled_from([None, 5]), st.data()
)
def test_thresholds(values, max_bins, data):
    book, coded = fit(np.array(values)[:, None], max_bins=max_bins)
    n = int(book.n_codes[0])
    if n < 2:
        return
    left = data.draw(st.integers(1, n - 1))
    right = data.draw(st.integers(left + 1, n))
    (threshold,), (code,) = book.thresholds([0], [left], [right])
    if book.exact[0]:
        assert (threshold, code) == naive_threshold(book, 0, left, right)
    else:
        # next to huge values distances are rounded: any of the nearest will do
        middle = midpoints(book.high[left - 1], book.low[right - 1])
        distance = np.abs(book.high / 2 - middle / 2)
        assert threshold == book.high[code - 1]
        assert left <= code < right
        assert distance[code - 1] == distance[left - 1 : right - 1].min()
    assert np.isfinite(threshold)
    x, codes = np.array(values), coded.column(0)
    # rows of the node lie on the right sides of it, by value and by code
    assert (x[codes <= left] <= threshold).all()
    assert (x[codes >= right] > threshold).all()
    if book.exact[0]:
        assert np.array_equal(codes <= code, x <= threshold)


def test_thresholds_of_many_columns_at_once():
    X = rng.normal(size=(300, 6)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    for options in ({}, {"max_bins": 16}):
        book, _ = fit(X, **options)
        column = rng.integers(0, 6, 200)
        n = book.n_codes[column]
        left = 1 + (rng.random(200) * (n - 1)).astype(int)
        right = left + 1 + (rng.random(200) * (n - left)).astype(int)
        threshold, code = book.thresholds(column, left, right)
        assert threshold.dtype == np.float64
        assert code.dtype == np.uint32
        pairs = [naive_threshold(book, *t) for t in zip(column, left, right, strict=True)]
        assert list(zip(threshold.tolist(), code.tolist(), strict=True)) == pairs


def test_no_threshold_and_one_above_all():
    book, _ = fit(np.array([[1.0, 5.0], [2.0, 6.0], [4.0, 6.0]]))
    threshold, code = book.thresholds([-2, 0, 1, 0], [0, 3, 2, 1], [0, 0, 0, 3])
    np.testing.assert_array_equal(threshold, [np.nan, np.inf, np.inf, 2.5])
    assert code.tolist() == [0, 3, 2, 2]


def test_midpoint_never_reaches_the_right_value():
    below = np.array([1.0, 0.0, -5e-324, np.nextafter(1, 0), -1e308, 1.7e308])
    above = np.array([np.nextafter(1, 2), 5e-324, 0.0, 1.0, 1.7e308, np.finfo(float).max])
    middle = midpoints(below, above)
    assert (middle < above).all()
    assert (middle >= below).all()
    assert np.isfinite(middle).all()


# ----------------------------------------------------------------------------------------- encode


def test_numbers_not_seen_get_the_nearest_code():
    book, _ = fit(np.array([[0.0], [1.0], [4.0]]))
    x = np.array([[-9.0], [0.5], [0.51], [2.5], [2.6], [99.0], [np.nan]])
    assert book.encode(x).column(0).tolist() == [1, 1, 2, 2, 3, 3, 0]
    assert book.encode(sp.csc_array(x)).column(0).tolist() == [1, 1, 2, 2, 3, 3, 0]


def test_numbers_not_seen_fall_into_bins():
    book, coded = fit(rng.permutation(1000)[:, None], max_bins=4)
    assert book.high.tolist() == [249, 499, 749, 999]
    assert not book.exact[0]
    x = np.array([[-5.0], [249], [249.5], [999], [10**6], [np.nan]])
    assert book.encode(x).column(0).tolist() == [1, 1, 2, 4, 4, 0]
    assert book.encode(sp.csr_array(x)).column(0).tolist() == [1, 1, 2, 4, 4, 0]
    assert np.bincount(coded.column(0)).tolist() == [0, 250, 250, 250, 250]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i8", "?"])
@pytest.mark.parametrize("options", [{}, {"max_bins": 10}])
@pytest.mark.parametrize("other", ["f4", "f8", "object", "csc"])
def test_encoding_the_table_of_the_fit_gives_its_codes(dtype, options, other):
    X = np.round(rng.normal(size=(400, 5)) * 100).astype(dtype)
    book, coded = fit(X, **options)
    again = book.encode(sp.csc_array(X) if other == "csc" else X.astype(other))
    for j in range(5):
        assert np.array_equal(again.column(j), coded.column(j))


def test_midpoints_that_float32_does_not_hold():
    values = np.array([1.0, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    book, _ = fit(values[:, None])
    assert book.encode(values[:, None]).column(0).tolist() == [1, 2]


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_only_some_columns(form):
    X = np.round(rng.normal(size=(50, 6)))
    X = X if form == "dense" else sp.csr_array(X)
    book, coded = fit(X)
    some = book.encode(X, columns=[4, 1])
    assert some.n_columns == 6
    assert (some.n_codes > 0).tolist() == [False, True, False, False, True, False]
    for j in (1, 4):
        assert np.array_equal(some.column(j), coded.column(j))
    assert not some.column(0).any()
    assert some.u8.shape == (50, 2 if form == "dense" else 0)


def test_unseen_is_missing():
    book, _ = fit(pd.DataFrame({"a": ["x", "y"]}))
    assert book.encode(pd.DataFrame({"a": ["z", "y", None]})).column(0).tolist() == [0, 2, 0]


def test_unseen_is_marked_for_the_majority():
    labels = [f"c{i:03}" for i in range(255)]
    book, coded = fit(pd.DataFrame({"a": labels}), handle_unknown="majority")
    assert coded.storage[0] == 0
    other = book.encode(pd.DataFrame({"a": ["new", "c000", None]}))
    assert other.column(0).tolist() == [256, 1, 0]
    assert other.storage[0] == 1
    assert book.decode(0, other.column(0)).tolist() == [None, "c000", None]


def test_unseen_is_an_error():
    book, _ = fit(pd.DataFrame({"a": ["x", "y", "1"]}), handle_unknown="error")
    with pytest.raises(UnseenCategoryError, match=r"unknown category 'z' in column 'a'.*'x', 'y'"):
        book.encode(pd.DataFrame({"a": ["z", "y"]}))
    assert book.encode(pd.DataFrame({"a": ["2", "y"]})).column(0).tolist() == [1, 3]


def test_categories_of_a_type_that_no_row_holds_are_not_unseen():
    book, _ = fit(pd.DataFrame({"a": pd.Categorical(["x", "y"])}), handle_unknown="error")
    other = pd.DataFrame({"a": pd.Categorical(["y"], categories=["x", "y", "never"])})
    assert book.encode(other).column(0).tolist() == [2]


def test_hybrid_column_at_prediction():
    book, _ = fit(np.array([[1], [3], ["u"], ["v"]], dtype=object))
    x = np.array([["1.9"], [2.1], ["v"], ["w"], [None], [True]], dtype=object)
    assert book.encode(x).column(0).tolist() == [1, 2, 4, 0, 0, 1]
    assert book.encode(np.array([[1.0], [9.0]])).column(0).tolist() == [1, 2]


def test_string_categories_across_libraries():
    book, coded = fit(pd.DataFrame({"a": ["x", "y", None]}))
    others = (
        pl.DataFrame({"a": ["x", "y", None]}),
        pd.DataFrame({"a": pd.Categorical(["x", "y", None])}),
        pd.DataFrame({"a": np.array(["x", "y", None], dtype=object)}),
    )
    for other in others:
        assert np.array_equal(book.encode(other).column(0), coded.column(0))


# --------------------------------------------------------------------------- categorical_features


@pytest.mark.parametrize("which", [[1], np.array([False, True]), ["b"], np.array([1])])
def test_named_columns_are_categorical(which):
    table = pd.DataFrame({"a": [1.5, 2.5, 1.5], "b": [3, 1, 3]})
    book, coded = fit(table, categorical_features=which)
    assert book.n_ordered.tolist() == [2, 0]
    assert book.n_codes.tolist() == [2, 2]
    assert book.categories[1].tolist() == [1, 3]
    assert book.categories[1].dtype.kind == "i"
    assert coded.column(1).tolist() == [2, 1, 2]
    assert len(book.low) == 2
    other = pd.DataFrame({"a": [1.5, np.nan], "b": [1, 2]})
    assert book.encode(other).column(1).tolist() == [1, 0]
    assert book.decode(1, [2, 0]).tolist() == [3, None]


def test_named_columns_with_a_cap_keep_all_categories():
    X = np.column_stack([rng.permutation(300), rng.permutation(300), rng.permutation(300)])
    book, coded = fit(X, categorical_features=[1], max_bins=16)
    assert book.n_codes.tolist() == [16, 300, 16]
    assert coded.storage.tolist() == [0, 1, 0]
    assert np.array_equal(coded.column(1), X[:, 1] + 1)
    assert np.array_equal(book.encode(X).column(1), X[:, 1] + 1)


def test_named_string_and_mixed_columns():
    table = pd.DataFrame(
        {"a": np.array(["x", 1, "1", None], dtype=object), "b": ["1", "2", "3", "1"]}
    )
    book, coded = fit(table, categorical_features=["a", "b"])
    assert book.n_ordered.tolist() == [0, 0]
    assert book.categories[0].tolist() == [1, "1", "x"]
    assert coded.column(0).tolist() == [3, 1, 2, 0]
    assert book.categories[1].tolist() == ["1", "2", "3"]


def test_none_reads_categories_of_numbers_as_numbers():
    table = pd.DataFrame({"a": pd.Categorical([10, 2, 10])})
    assert fit(table, categorical_features=None)[0].n_ordered.tolist() == [2]
    assert fit(table)[0].n_ordered.tolist() == [0]


@pytest.mark.parametrize(
    ("message", "which", "X"),
    [
        ("must be 'from_dtype', None.*got 'all'", "all", np.zeros((2, 2))),
        (r"mask of shape \(3,\), but X has 2 columns", [True, False, True], np.zeros((2, 2))),
        ("holds 2, but the columns of X are numbered 0 to 1", [2], np.zeros((2, 2))),
        ("holds -1, but", [-1], np.zeros((2, 2))),
        ("the columns of X have none", ["a"], np.zeros((2, 2))),
        ("holds 'c', which is no column of X", ["a", "c"], pd.DataFrame({"a": [1], "b": [2]})),
        ("got an array of float64", [0.5], np.zeros((2, 2))),
        ("could not convert string to float: 'x' in column 'a'", None, pd.DataFrame({"a": ["x"]})),
        (
            "could not convert string to float: 'x' in column 'a'",
            [1],
            pd.DataFrame({"a": ["x", "1"], "b": [1, 2]}),
        ),
        ("column 1 of a sparse X", [1], sp.csr_array(np.eye(2))),
    ],
)
def test_categorical_features_refused(message, which, X):
    with pytest.raises(ValueError, match=message):
        fit(X, categorical_features=which)


def test_no_categorical_features_in_sparse_tables_is_fine():
    assert fit(sp.csr_array(np.eye(2)), categorical_features=[])[0].n_codes.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("handle_unknown must be one of .*, got 'x'", {"handle_unknown": "x"}),
        ("max_bins must be an integer of at least 2 or None, got 1", {"max_bins": 1}),
        ("max_bins must be .* got 2.5", {"max_bins": 2.5}),
        ("max_bins must be .* got True", {"max_bins": True}),
        ("sample_rows must be a positive integer, got 0", {"sample_rows": 0}),
    ],
)
def test_parameters_refused(message, options):
    with pytest.raises(ValueError, match=message):
        fit(np.zeros((2, 2)), **options)


# ------------------------------------------------------------------------------------------ check


def test_names_are_checked_in_the_words_of_scikit_learn():
    table = pd.DataFrame(np.zeros((3, 3)), columns=["a", "b", "c"])
    book, _ = fit(table)
    assert book.check(table).n_columns == 3
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        book.check(table[["b", "a", "c"]])
    with pytest.raises(ValueError, match="now missing:\n- c\n"):
        book.check(table[["a", "b"]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- d\n.*missing:\n- c\n"):
        book.check(table.rename(columns={"c": "d"}))
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but Tree was fitted"
    ):
        book.check(np.zeros((3, 3)), estimator="Tree")
    other, _ = fit(np.zeros((3, 3)))
    with pytest.warns(UserWarning, match="X has feature names, but CodeBook was fitted without"):
        other.check(table)
    wide = pd.DataFrame(np.zeros((1, 9)), columns=[f"x{i}" for i in range(9)])
    with pytest.raises(ValueError, match=r"- x4\n- \.\.\.\n"):
        book.check(wide)


@pytest.mark.parametrize("X", [np.zeros((2, 3)), sp.csr_array((2, 3))])
def test_number_of_columns(X):
    book, _ = fit(np.zeros((2, 4)))
    message = "X has 3 features, but DecisionTreeClassifier is expecting 4 features as input"
    with pytest.raises(ValueError, match=message):
        book.check(X, estimator="DecisionTreeClassifier")


def test_strings_where_numbers_were_fitted():
    book, _ = fit(np.array([[1.0, 2.0]]))
    with pytest.raises(ValueError, match="could not convert string to float: 'a' in column 1"):
        book.check(np.array([[1, "a"]], dtype=object))
    checked = book.check(np.array([["1", "7"], [None, 3]], dtype=object))
    assert checked.labels == ()


@pytest.mark.parametrize("order", ["C", "F", "strided", "sparse", "f2", "object", "frame"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinities_at_prediction(order, dtype):
    book, _ = fit(rng.normal(size=(40, 3)))
    X = rng.normal(size=(40, 3)).astype(dtype)
    X[4, 0] = np.nan
    make = {
        "C": np.ascontiguousarray,
        "F": np.asfortranarray,
        "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        "sparse": sp.csr_array,
        "f2": lambda X: X.astype(np.float16),
        "object": lambda X: X.astype(object),
        "frame": lambda X: pd.DataFrame(X),
    }[order]
    book.check(make(X))
    for value in (np.inf, -np.inf):
        X[33, 2] = value
        with pytest.raises(ValueError, match=r"Input X contains infinity.*column 2"):
            book.check(make(X))


def test_sparse_table_for_categories():
    book, _ = fit(np.array([[1.0, 2.0]]), categorical_features=[1])
    with pytest.raises(ValueError, match="X is sparse, but column 1 was fitted as categories"):
        book.check(sp.csr_array(np.eye(2)))


def test_all_missing_at_fit_reads_as_missing_at_prediction():
    book, _ = fit(np.array([[np.nan, 1.0]]))
    assert book.encode(np.array([[5.0, 1.0]])).column(0).tolist() == [0]
    assert book.encode(np.array([["x", 1.0]], dtype=object)).column(0).tolist() == [0]
    assert book.encode(sp.csr_array([[5.0, 1.0]])).column(0).tolist() == [0]


# ------------------------------------------------------------------------------------- the object


def test_decode():
    X = pd.DataFrame({"a": [1.5, np.nan, -2.0], "b": ["u", None, "v"]})
    book, coded = fit(X)
    assert np.array_equal(book.decode(0, coded.column(0)), X["a"], equal_nan=True)
    assert book.decode(0, coded.column(0)).dtype == np.float64
    assert book.decode(1, coded.column(1)).tolist() == ["u", None, "v"]
    binned, _ = fit(np.arange(100.0)[:, None], max_bins=2)
    assert binned.decode(0, [1, 2, 0])[:2].tolist() == [24.5, 74.5]


def test_pickle_and_the_book_without_values():
    table = pd.DataFrame(
        {
            "x": rng.normal(size=30),
            "h": np.array([1, 2, "u"] * 10, dtype=object),
            "c": ["p", "q"] * 15,
        }
    )
    book, coded = fit(table)
    book.encode(table)
    small = pickle.loads(pickle.dumps(book.without_values()))
    assert small.offsets.tolist() == [0, 0, 2, 2]
    assert small.n_ordered.tolist() == book.n_ordered.tolist()
    again = small.encode(table, columns=[1, 2])
    for j in (1, 2):
        assert np.array_equal(again.column(j), coded.column(j))


def test_describe_value():
    book, _ = fit(np.array([[0.5], [1.0]]))
    assert book.describe_value(0, 0.75) == "0.75"
    assert book.unit(0) == "number"
    assert book.name(0) == "0"
    assert fit(pd.DataFrame({"a": [1]}))[0].name(0) == "'a'"


def test_seed_matters_only_for_the_sample():
    X = rng.normal(size=(5000, 1))
    a, b = (fit(X, max_bins=16, sample_rows=100, seed=s)[0] for s in (0, 1))
    assert not np.array_equal(a.high, b.high)
    a, b = (fit(X, max_bins=16, seed=s)[0] for s in (0, 1))
    assert np.array_equal(a.high, b.high)


def test_inputs_are_left_alone_and_nothing_warns():
    X = rng.normal(size=(60, 3))
    X[0, 0] = -0.0
    before = X.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        book, _ = fit(X, max_bins=10)
        book.encode(X)
    assert X.tobytes() == before


@given(st.data())
def test_increasing_transforms_do_not_matter(data):
    values = data.draw(st.lists(st.integers(-50, 50), min_size=1, max_size=60))
    X = np.array(values, dtype=float)[:, None]
    _, plain = fit(X, max_bins=data.draw(st.sampled_from([None, 8])))
    _, cubed = fit(X**3 / 7, max_bins=None)
    assert np.array_equal(fit(X)[1].column(0), cubed.column(0))
    assert plain.n_rows == len(values)


def test_kinds_of_units_are_compared():
    spans = np.array([[1], [2]], dtype="m8[D]")
    columns = {
        "dates": spans + np.datetime64("2020-01-01"),
        "time spans": spans,
        "numbers": np.array([[1.5], [2.5]]),
        "booleans": np.array([[True], [False]]),
        "numbers in strings": np.array([["1"], ["2"]]),
        "numbers, sparse": sp.csr_array([[1.0], [2.0]]),
    }
    times = ("dates", "time spans")
    for fitted, X in columns.items():
        book, _ = fit(X)
        for found, other in columns.items():
            if found == fitted or (found not in times and fitted not in times):
                book.check(other)
                continue
            with pytest.raises(ValueError, match=r"Column 0 of X holds .*, but .* were fitted"):
                book.check(other)
            with pytest.raises(ValueError, match=r"were fitted\. Convert it"):
                book.encode(other)


def test_the_message_names_column_and_kinds():
    book, _ = fit(pd.DataFrame({"a": [1.0, 2.0], "b": pd.to_datetime(["2020", "2021"])}))
    table = pd.DataFrame({"a": [1.0, 2.0], "b": pd.to_timedelta([1, 2], unit="D")})
    with pytest.raises(ValueError, match="Column 'b' of X holds time spans, but dates were fitted"):
        book.check(table)
    with pytest.raises(ValueError, match="Column 'b' of X holds strings or objects, but dates"):
        book.check(table.assign(b=["u", "v"]))


@pytest.mark.parametrize("missing", [[np.nan, np.nan], [None, None], pd.array([None] * 2, "Int64")])
def test_missing_columns_are_of_any_kind(missing):
    dates = pd.DataFrame({"a": pd.to_datetime(["2020", "2021"])})
    book, _ = fit(dates)
    assert book.encode(pd.DataFrame({"a": missing})).column(0).tolist() == [0, 0]
    book, _ = fit(pd.DataFrame({"a": missing}))
    assert book.encode(dates).column(0).tolist() == [0, 0]
