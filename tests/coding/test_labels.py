"""Strings and objects: which are numbers, and which are categories."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dtrees.coding import CodeBook
from tests.coding.examples import code_column, frame

CATEGORICAL = ([2, 0, 1, 2], 0, 2)

ARROW_DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))

STRINGS = {
    "numpy objects": np.array([["b"], [None], ["a"], ["b"]], dtype=object),
    "list": [["b"], [None], ["a"], ["b"]],
    "pandas str": frame(["b", None, "a", "b"]),
    "pandas object": frame(np.array(["b", np.nan, "a", "b"], dtype=object)),
    "pandas string": frame(["b", None, "a", "b"], "string"),
    "pandas Arrow string": frame(["b", None, "a", "b"], pd.ArrowDtype(pa.string())),
    "pandas Arrow dictionary": frame(["b", None, "a", "b"], ARROW_DICTIONARY),
    "pandas category": frame(pd.Categorical(["b", None, "a", "b"], categories=["c", "b", "a"])),
    "polars string": pl.DataFrame({"a": ["b", None, "a", "b"]}),
    "polars categorical": pl.DataFrame(
        {"a": pl.Series(["b", None, "a", "b"]).cast(pl.Categorical)}
    ),
    "polars enum": pl.DataFrame(
        {"a": pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["c", "b", "a"]))}
    ),
    "polars object": pl.DataFrame({"a": pl.Series(["b", None, "a", "b"], dtype=pl.Object)}),
    "arrow": pa.table({"a": ["b", None, "a", "b"]}),
    "arrow large": pa.table({"a": pa.array(["b", None, "a", "b"], pa.large_string())}),
    "arrow view": pa.table({"a": pa.array(["b", None, "a", "b"], pa.string_view())}),
    "arrow dictionary": pa.table({"a": pa.array(["b", None, "a", "b"]).dictionary_encode()}),
    "arrow chunks": pa.table({"a": pa.chunked_array([["b", None], ["a", "b"]])}),
    "arrow dictionary chunks": pa.table(
        {
            "a": pa.chunked_array(
                [
                    pa.array(["b", None]).dictionary_encode(),
                    pa.array(["a", "b"]).dictionary_encode(),
                ]
            )
        }
    ),
}


@pytest.mark.parametrize("name", STRINGS)
def test_strings_are_categories(name):
    assert code_column(STRINGS[name]) == CATEGORICAL
    book, coded = CodeBook.fit_encode(STRINGS[name])
    assert book.decode(0, coded.column(0)).tolist() == ["b", None, "a", "b"]
    assert book.categories[0].tolist() == ["a", "b"]
    assert np.array_equal(book.encode(STRINGS[name]).column(0), coded.column(0))


def test_hybrid_column():
    table = frame(np.array(["2", 10, "B", None, "1e1", "A", "nan", "", True], dtype=object))
    book, coded = CodeBook.fit_encode(table)
    # numbers 1, 2, 10; then '', 'A', 'B', 'nan': no string names a number that is not finite
    assert coded.column(0).tolist() == [2, 3, 6, 0, 3, 5, 7, 4, 1]
    assert (book.n_ordered[0], book.n_codes[0]) == (3, 7)
    assert book.categories[0].tolist() == ["", "A", "B", "nan"]
    assert book.decode(0, coded.column(0)).tolist() == [2, 10, "B", None, 10, "A", "nan", "", 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda cells: np.array(cells)[:, None],
        lambda cells: np.array(cells, dtype=object)[:, None],
        lambda cells: np.array(cells, dtype=np.dtypes.StringDType())[:, None],
        lambda cells: [[cell] for cell in cells],
        lambda cells: frame(cells, "string"),
        lambda cells: frame(cells),
        lambda cells: pl.DataFrame({"a": cells}),
        lambda cells: pa.table({"a": cells}),
    ],
)
def test_what_strings_are_numbers(make):
    assert code_column(make(["1_2", "1_3", "1_2"])) == ([1, 2, 1], 0, 2)
    assert code_column(make(["1_2", "12", "13"])) == ([3, 1, 2], 2, 3)
    assert code_column(make(["007", "7", "+7.0 ", "1e2"])) == ([1, 1, 1, 2], 2, 2)
    assert code_column(make(["007", "7", "x"])) == ([1, 1, 2], 1, 2)
    assert code_column(make(["007", "7"]), categorical_features=[0]) == ([1, 2], 0, 2)
    book, _ = CodeBook.fit_encode(make(["1", "2"]))
    with pytest.raises(ValueError, match="could not convert string to float: '1_2'"):
        book.check(make(["1", "1_2"]))
