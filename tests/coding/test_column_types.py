"""Columns that the user calls categorical."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dtrees.coding import CodeBook
from dtrees.coding.column_types import columns_by_type
from dtrees.coding.tables import read_table
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
