"""Columns of data frames, of many categories for the most part."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dtrees.coding import CodeBook, frame_columns
from dtrees.coding.row_digest import digest_of_rows
from dtrees.coding.tables import read_table

rng = np.random.default_rng(3)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("form", ["numpy", "object", "pandas", "category", "polars"])
def test_a_hundred_thousand_categories(form):
    n = 120_000
    labels = np.char.add(
        "c", np.concatenate([np.arange(100_000), rng.integers(0, 100_000, n - 100_000)]).astype(str)
    )
    X = {
        "numpy": lambda: labels[:, None],
        "object": lambda: labels.astype(object)[:, None],
        "pandas": lambda: pd.DataFrame({"a": labels}),
        "category": lambda: pd.DataFrame({"a": pd.Categorical(labels)}),
        "polars": lambda: pl.DataFrame({"a": labels}),
    }[form]()
    book, coded = CodeBook.fit_encode(X)
    categories, inverse = np.unique(labels, return_inverse=True)
    assert book.n_codes.tolist() == [100_000]
    assert np.array_equal(coded.column(0), inverse + 1)
    assert book.categories[0].tolist() == categories.tolist()
    assert coded.storage[0] == 2
    assert np.array_equal(coded.order32[:, 0], np.argsort(inverse, kind="stable"))
    assert np.array_equal(book.encode(X).column(0), coded.column(0))


MANY = [f"c{number:05d}" for number in range(3000)]

NUMBERED = [2999 - number for number in range(3000)]


def of_many(labels, rows):
    """The same rows of a column of these categories, in every form that lists them in its type."""
    column = pd.Categorical.from_codes(rows, labels)
    arrow = pa.DictionaryArray.from_arrays(
        pa.array([None if row < 0 else row for row in rows], pa.int32()), pa.array(labels)
    )
    half = len(rows) // 2
    return {
        "pandas": pd.DataFrame({"a": column}),
        "pandas, ordered": pd.DataFrame({"a": column.as_ordered()}),
        "pandas, Arrow": pd.DataFrame({"a": pd.Series(arrow, dtype=pd.ArrowDtype(arrow.type))}),
        "arrow": pa.table({"a": arrow}),
        "arrow chunks": pa.table({"a": pa.chunked_array([arrow[:half], arrow[half:]])}),
    }


FORMS_OF_MANY = of_many(MANY, [0])

ROWS_OF_MANY = [2998, 5, -1, 2998, 0, 17]


@pytest.mark.parametrize("labels", [MANY, NUMBERED], ids=["strings", "numbers"])
@pytest.mark.parametrize("form", FORMS_OF_MANY)
def test_a_row_costs_the_labels_that_it_holds(form, labels, monkeypatch):
    book, whole = CodeBook.fit_encode(of_many(labels, [*range(3000), -1])[form])
    read = []
    read_labels = CodeBook.read_labels
    monkeypatch.setattr(
        CodeBook,
        "read_labels",
        lambda book, column, name: (
            read.append(len(column.labels)) or read_labels(book, column, name)
        ),
    )
    as_list = pd.Index.tolist
    monkeypatch.setattr(pd.Index, "tolist", lambda index: read.append(len(index)) or as_list(index))
    for row in (0, 1234, 2999, -1):
        few = of_many(labels, [row])[form]
        read.clear()
        assert book.encode(few).column(0).tolist() == [whole.column(0)[row]]
        assert max(read) <= 1
    few = of_many(labels, ROWS_OF_MANY)[form]
    assert book.encode(few).column(0).tolist() == whole.column(0)[ROWS_OF_MANY].tolist()
    assert max(read) <= 4


@pytest.mark.parametrize("labels", [MANY, NUMBERED], ids=["strings", "numbers"])
@pytest.mark.parametrize("form", FORMS_OF_MANY)
@pytest.mark.parametrize("options", [{}, {"categorical_features": [0]}])
@pytest.mark.parametrize("limit", [0, 3000])
def test_categories_in_no_row_mean_nothing(form, labels, options, limit, monkeypatch):
    """Of a type that lists more of them than there are rows, or only those there are."""
    monkeypatch.setattr(frame_columns, "FEW_LABELS", limit)
    book, coded = CodeBook.fit_encode(of_many(labels, ROWS_OF_MANY)[form], **options)
    here = sorted({row for row in ROWS_OF_MANY if row >= 0})
    few = [-1 if row < 0 else here.index(row) for row in ROWS_OF_MANY]
    plain, expected = CodeBook.fit_encode(
        of_many([labels[row] for row in here], few)[form], **options
    )
    assert coded.column(0).tolist() == expected.column(0).tolist()
    assert digest_of_rows(coded) == digest_of_rows(expected)
    assert repr(book.categories[0].tolist()) == repr(plain.categories[0].tolist())
    assert book.categories[0].dtype == plain.categories[0].dtype
    assert book.n_codes.tolist() == plain.n_codes.tolist() == [4]


@pytest.mark.parametrize("form", FORMS_OF_MANY)
def test_few_categories_are_not_looked_up(form, monkeypatch):
    """To find out which of them are in some row would cost more."""
    monkeypatch.setattr(np, "unique", None)
    table = read_table(of_many(MANY[:20], [3, -1])[form])
    assert len(table.labels[0].labels) == 20


@pytest.mark.parametrize("fill", [np.nan, None, 0, 1])
def test_sparse_frames_that_leave_out_any_value(fill):
    values = np.array([[0.0, 1], [2, np.nan], [1, 0]])
    frame = pd.DataFrame(values, columns=["a", "b"])
    kind = pd.SparseDtype(float, fill)
    for columns in (["a"], ["a", "b"]):
        table = read_table(frame[columns].astype(kind))
        assert table.names.tolist() == columns
        assert (table.sparse is not None) == (fill == 0)
        numbers = [part.values for part in table.numbers]
        whole = table.sparse.toarray() if fill == 0 else np.hstack(numbers)
        assert np.array_equal(whole, values[:, : len(columns)], equal_nan=True)
