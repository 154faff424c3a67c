"""Arrays of every type, and lists."""

import numpy as np
import pytest

from dtrees.coding import CodeBook
from tests.coding.examples import code_column, frame


def test_fixed_width_strings():
    assert code_column(np.array([["b"], ["a"], ["b"]])) == ([2, 1, 2], 0, 2)
    assert code_column(np.array([["10"], ["9"], ["9.0"]])) == ([2, 1, 1], 2, 2)
    text = np.array([["b"], ["a"]], dtype=np.dtypes.StringDType())
    assert code_column(text) == ([2, 1], 0, 2)


@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "i8", "u1", "bool", "M8[D]", "m8[s]", "O", "U3", "T"]
)
def test_masked_cells_are_missing(dtype):
    cells = np.array([1, 0, 1, 0]).astype("i8" if dtype == "M8[D]" else dtype).astype(dtype)
    X = np.ma.array(cells, mask=[False, True, False, False])[:, None]
    assert code_column(X) == ([2, 0, 2, 1], 2, 2)
    assert code_column(np.ma.array(cells)[:, None]) == ([2, 1, 2, 1], 2, 2)
    assert np.array_equal(X.mask[:, 0], [False, True, False, False])


def test_array_likes():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0], [2.0]])

    class Sub(np.ndarray):
        pass

    assert code_column(Wrapped()) == ([1, 2], 2, 2)
    assert code_column(np.array([[1.0], [2.0]]).view(Sub)) == ([1, 2], 2, 2)


def test_units_of_booleans():
    for table in (np.array([[True], [False]]), frame([True, False], "boolean")):
        book, _ = CodeBook.fit_encode(table)
        assert book.unit(0) == "bool"
        assert book.describe_value(0, 1.0) == "True"
