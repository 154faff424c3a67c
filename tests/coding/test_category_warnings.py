"""Columns of which no value is known, and columns of ids; models are in `test_drift`."""

import warnings

import numpy as np
import pandas as pd
import pytest

from dtrees.coding import CodeBook
from dtrees.coding.category_warnings import nearly_ids, warn_of_dates, warn_of_ids
from dtrees.exceptions import UnseenCategoryError

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
        warn_of_ids(book, 20)
    book, _ = CodeBook.fit_encode(np.array([[f"id {i}"] * 2 for i in range(20)], dtype=object))
    with pytest.warns(UserWarning, match=r"at least 20 cat.* each an id\? They are not used\."):
        warn_of_ids(book, 20)


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
        warn_of_dates(book)
    book, _ = CodeBook.fit_encode(pd.DataFrame({f"d{i}": days.astype(str) for i in range(7)}))
    with pytest.warns(UserWarning, match="'d3', 'd4' and 2 more look like dates"):
        warn_of_dates(book)
    book, _ = CodeBook.fit_encode(table[["words", "few"]].assign(day=days))
    warn_of_dates(book)
