"""The codebook: thresholds, coding of other tables, decoding, and its refusals."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.exceptions import UnseenCategoryError
from tests.coding.examples import fit

rng = np.random.default_rng(4)


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
