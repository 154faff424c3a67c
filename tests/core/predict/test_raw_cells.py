"""Cells of a raw table: blocks of numbers as they are, and labels that are read once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dtrees import ExtraTreesClassifier
from dtrees.coding import CodeBook
from dtrees.core.predict.raw_cells import NOWHERE, RawCells, slots_of, used_columns
from dtrees.exceptions import UnseenCategoryError

TABLE = pd.DataFrame(
    {
        "a": [1.0, np.nan, 3.0, 4.0],
        "name": pd.Categorical(["x", "y", None, "x"]),
        "b": [0.5, 0.25, 0.0, 1.0],
        "both": np.array([1.5, "word", None, "word"], dtype=object),
    }
)


def cells_of(table, **how):
    book, _ = CodeBook.fit_encode(TABLE, **how)
    return RawCells(book, book.check(table))


def test_numbers_of_wanted_columns():
    found = {}
    for values, inside, columns in cells_of(TABLE).numbers(slots_of(np.array([2]), 4)):
        found |= {c: values[:, k] for k, c in zip(inside, columns, strict=True)}
    assert list(found) == [2]
    np.testing.assert_array_equal(found[2], TABLE["b"])


def test_labels_have_codes_and_numbers():
    cells = cells_of(TABLE)
    name, both = cells.labels(slots_of(np.array([1, 3]), 4))
    assert (name.column, both.column) == (1, 3)
    assert name.codes[name.rows].tolist() == [1, 2, 0, 1]
    assert np.isnan(name.numbers).all()
    assert both.codes[both.rows].tolist() == [1, 2, 0, 2]
    np.testing.assert_array_equal(both.numbers[both.rows], [1.5, np.nan, np.nan, np.nan])


def test_labels_are_read_once_and_when_they_are_asked_for():
    other = TABLE.assign(name=pd.Categorical(["x", "new", "y", "y"]))
    cells = cells_of(other, handle_unknown="error")
    assert list(cells.labels(np.full(4, NOWHERE))) == []
    (both,) = cells.labels(slots_of(np.array([3]), 4))
    assert next(cells.labels(slots_of(np.array([3]), 4))) is both
    with pytest.raises(UnseenCategoryError):
        next(cells.labels(slots_of(np.array([1]), 4)))


def test_used_columns_are_those_of_inner_nodes():
    X = np.zeros((40, 5))
    X[:, 3] = np.arange(40)
    X[:, 1] = np.arange(40) % 7
    y = (X[:, 3] > 20).astype(int) + (X[:, 1] > 2)
    forest = ExtraTreesClassifier(1, max_features=None, random_state=0)
    used = used_columns(forest.fit(X, y).forest_[0])
    assert used.tolist() == [1, 3]
    assert used.dtype == np.int64
    assert used_columns(forest.fit(X, np.zeros(40)).forest_[0]).tolist() == []


def test_slots():
    places = slots_of(np.array([1, 3, 4]), 6)
    assert places.tolist() == [NOWHERE, 0, NOWHERE, 1, 2, NOWHERE]
    assert places.dtype == np.int32
    assert slots_of(np.empty(0, dtype=np.int64), 2).tolist() == [NOWHERE, NOWHERE]
