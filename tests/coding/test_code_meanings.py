"""What codes mean: values, text, and what is left of a book for prediction."""

import pickle

import numpy as np
import pandas as pd

from dtrees.coding.code_meanings import midpoints
from tests.coding.examples import fit

rng = np.random.default_rng(4)


def test_midpoint_never_reaches_the_right_value():
    below = np.array([1.0, 0.0, -5e-324, np.nextafter(1, 0), -1e308, 1.7e308])
    above = np.array([np.nextafter(1, 2), 5e-324, 0.0, 1.0, 1.7e308, np.finfo(float).max])
    middle = midpoints(below, above)
    assert (middle < above).all()
    assert (middle >= below).all()
    assert np.isfinite(middle).all()


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
