"""Types of columns: those that the user calls categorical, and those of the fit."""

import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dtrees.coding import CodeBook
from dtrees.coding.column_types import (
    columns_by_type,
    nearly_ids,
    warn_of_categories,
    with_finite_ends,
)
from dtrees.coding.tables import read_table
from dtrees.exceptions import UnseenCategoryError
from dtrees.parallel import admitted, encode_partitions
from tests.coding.examples import code_column, fit, frame

rng = np.random.default_rng(4)


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


CODES = np.array([-1, 3, 0, -2, 3, -1])
CODE_FORMS = {
    "floats": lambda codes: codes[:, np.newaxis].astype(np.float32),
    "integers": lambda codes: pd.DataFrame({"a": codes}),
    "objects": lambda codes: pd.DataFrame({"a": codes.astype(object)}),
    "nullable": lambda codes: pd.DataFrame({"a": pd.Series(codes, dtype="Int8")}),
    "beyond floats": lambda codes: pd.DataFrame({"a": np.where(codes > 0, 2**60 + codes, codes)}),
}


@pytest.mark.parametrize("form", CODE_FORMS)
def test_the_code_of_a_missing_category_is_missing_in_named_columns(form):
    table = CODE_FORMS[form](CODES)
    book, coded = CodeBook.fit_encode(table, categorical_features=[0], handle_unknown="error")
    assert coded.column(0).tolist() == [0, 3, 2, 1, 3, 0]
    assert book.encode(table).column(0).tolist() == [0, 3, 2, 1, 3, 0]
    with dask.config.set({"dataframe.convert-string": False}):
        is_array = isinstance(table, np.ndarray)
        rows = da.from_array(table, (2, 1)) if is_array else dd.from_pandas(table, chunksize=2)
        (lazy,) = admitted(rows, {})
    parts, codes = encode_partitions(lazy, categorical_features=[0])
    assert parts.categories[0].tolist() == book.categories[0].tolist()
    assert parts.categories[0].dtype == book.categories[0].dtype
    assert codes.column(0).tolist() == [0, 3, 2, 1, 3, 0]


def test_a_category_by_its_type_and_a_word_are_no_codes():
    table = pd.DataFrame({"a": pd.Categorical(CODES)})
    for which in ("from_dtype", ["a"]):
        book, coded = fit(table, categorical_features=which)
        assert book.categories[0].tolist() == [-2, -1, 0, 3]
        assert coded.column(0).tolist() == [2, 4, 3, 1, 4, 2]
        assert book.encode(pd.DataFrame({"a": CODES})).column(0).tolist() == [2, 4, 3, 1, 4, 2]
    words = pd.DataFrame({"a": ["x", "-1", "y"]})
    book, _ = CodeBook.fit_encode(words, categorical_features=["a"], handle_unknown="error")
    assert book.categories[0].tolist() == ["-1", "x", "y"]
    with pytest.raises(UnseenCategoryError):
        book.encode(pd.DataFrame({"a": [-1.0]}))


def test_a_column_of_missing_codes_has_no_category():
    for form in CODE_FORMS:
        book, coded = fit(CODE_FORMS[form](CODES * 0 - 1), categorical_features=[0])
        assert book.n_codes.tolist() == [0]
        assert coded.column(0).tolist() == [0] * 6


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


def test_categories_that_are_all_missing_have_no_codes():
    table = frame(pd.Categorical([None, None, None], categories=["a", "b"]))
    table["b"] = pd.Categorical([None] * 3)
    table["c"] = ["u", "v", "u"]
    for mask in (None, np.ones(3, dtype=bool)):
        columns = columns_by_type(read_table(table), mask)
        assert [block.columns.tolist() for block in columns.ordered] == [[0], [1]]  # all get codes
    for options in ({}, {"categorical_features": ["a", "b", "c"]}):
        book, coded = CodeBook.fit_encode(table, **options)
        assert [coded.column(j).tolist() for j in range(3)] == [[0, 0, 0], [0, 0, 0], [1, 2, 1]]
        assert book.n_codes.tolist() == [0, 0, 2]
        assert book.encode(table).column(0).tolist() == [0, 0, 0]


def test_category_of_numbers_stays_categorical():
    for values in ([10, 2, None, 10], ["10", "2", None, "10"]):
        codes, n_ordered, n_codes = code_column(frame(pd.Categorical(values)))
        assert (n_ordered, n_codes) == (0, 2)
        assert codes[2] == 0
        assert codes[0] == codes[3]


def test_equal_names_are_a_warning_at_fit():
    X = pd.DataFrame(np.eye(6, 4), columns=list("abac"))
    with pytest.warns(UserWarning, match="several columns of the name 'a'. All of them") as caught:
        book, coded = CodeBook.fit_encode(X)
    assert len(caught) == 1
    assert coded.n_columns == 4
    book.check(X)  # which says nothing more
    CodeBook.fit_encode(X.to_numpy())


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


@pytest.mark.parametrize("missing", [[np.nan, np.nan], [None, None], pd.array([None] * 2, "Int64")])
def test_missing_columns_are_of_any_kind(missing):
    dates = pd.DataFrame({"a": pd.to_datetime(["2020", "2021"])})
    book, _ = fit(dates)
    assert book.encode(pd.DataFrame({"a": missing})).column(0).tolist() == [0, 0]
    book, _ = fit(pd.DataFrame({"a": missing}))
    assert book.encode(dates).column(0).tolist() == [0, 0]


BOOK, _ = CodeBook.fit_encode(pd.DataFrame({"a": ["x", "y", "7"]}))


def column(values):
    return pd.DataFrame({"a": np.array(values, dtype=object)})


def test_ten_rows_without_a_known_value():
    with pytest.warns(UserWarning, match="Column 'a' of X: none of its values.*count as missing"):
        BOOK.check(column(["z"] * 10))


@pytest.mark.parametrize(
    "values", [["z"] * 9, ["z"] * 9 + [None], ["z"] * 9 + ["x"], ["z"] * 9 + [8]]
)
def test_fewer_rows_or_a_known_value_or_a_number(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BOOK.check(column(values))


def test_one_row_is_an_error_where_unknown_values_are():
    book, _ = CodeBook.fit_encode(column(["x", "y"]), handle_unknown="error")
    with pytest.raises(UnseenCategoryError, match="'z' of type str"):
        book.check(column(["z"]))


def test_ids():
    book, _ = CodeBook.fit_encode(column([f"id {i}" for i in range(18)] + ["id 0"] * 2))
    assert nearly_ids(book, 20) == {0: 18}
    assert nearly_ids(book, 21) == {}
    assert nearly_ids(book, 19) == {}  # too few rows to tell


def test_ids_are_not_used():
    book, _ = CodeBook.fit_encode(column([f"id {i}" for i in range(20)]))
    with pytest.warns(UserWarning, match=r"'a' of X: 20 categories in 20 .* It is not used."):
        warn_of_categories(book, 20)
    book, _ = CodeBook.fit_encode(np.array([[f"id {i}"] * 2 for i in range(20)], dtype=object))
    with pytest.warns(UserWarning, match=r"at least 20 cat.* each an id\? They are not used\."):
        warn_of_categories(book, 20)


def test_categories_that_look_like_dates():
    days = pd.date_range("2024-01-01", periods=20)
    table = pd.DataFrame(
        {
            "iso": days.strftime("%Y-%m-%dT%H:%M"),
            "words": [f"id {i}" for i in range(20)],
            "most": [*days.strftime("%d.%m.%Y")[:15], *"abcde"],
            "few": [*days.strftime("%d.%m.%Y")[:9], *"abcdefghijk"],
        }
    )
    book, _ = CodeBook.fit_encode(table)
    with pytest.warns(UserWarning, match="Values of columns 'iso', 'most' look like dates, and"):
        warn_of_categories(book, 19)
    book, _ = CodeBook.fit_encode(pd.DataFrame({f"d{i}": days.astype(str) for i in range(7)}))
    with pytest.warns(UserWarning, match="'d3', 'd4' and 2 more look like dates"):
        warn_of_categories(book, 19)
    book, _ = CodeBook.fit_encode(table[["words", "few"]].assign(day=days))
    warn_of_categories(book, 19)


def test_infinite_numbers_as_the_largest_finite_ones():
    most = np.finfo(np.float64).max
    frame = pd.DataFrame({"a": [1.0, np.inf, np.nan], "b": [-np.inf, 2, 3], "c": [4, 5, 6]}).assign(
        d=np.array(["w", -np.inf, None], dtype=object), e=pd.Categorical([1.0, np.inf, 2.0])
    )
    before = frame.copy()
    table = read_table(frame)
    found = with_finite_ends(table)
    values = {
        int(column): block.values[:, place].tolist()
        for block in found.numbers
        for place, column in enumerate(block.columns)
    }
    assert values[0][:2] == [1.0, most]
    assert np.isnan(values[0][2])
    assert (values[1], values[2]) == ([-most, 2.0, 3.0], [4, 5, 6])
    assert [set(column.labels) for column in found.labels] == [{"w", -most}, {1.0, np.inf, 2.0}]
    pd.testing.assert_frame_equal(frame, before)
    half = with_finite_ends(read_table(np.array([[np.inf], [1]], dtype=np.float32)))
    assert half.numbers[0].values.tolist() == [[np.finfo(np.float32).max], [1.0]]
    sparse = sp.csr_array([[0, -np.inf], [2, 0]])
    found = with_finite_ends(read_table(sparse))
    assert found.sparse.toarray().tolist() == [[0, -most], [2, 0]]
    assert np.isinf(sparse.data).any()
    finite = read_table(np.zeros((2, 2)))
    assert with_finite_ends(finite).numbers[0] is finite.numbers[0]
