"""The codebook: thresholds, coding of other tables, decoding, and its refusals."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import RandomForestClassifier
from dtrees.coding import CodeBook
from dtrees.coding.codebook import PLAIN_CELLS, midpoints
from dtrees.exceptions import UnseenCategoryError
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


def numbers(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def long_way(book: CodeBook, X, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(CodeBook, "_plain_table", lambda *_: None)
        return book.check(X)


def said(work) -> list[str]:
    """The error and the warnings of some work."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            work()
            error = []
        except (ValueError, TypeError) as failed:
            error = [f"{type(failed).__name__}: {failed}"]
    return error + [str(warning.message) for warning in heard]


@given(
    n_rows=st.integers(1, 5),
    n_columns=st.integers(1, 6),
    dtype=st.sampled_from(["f4", "f8", ">f8", "f2", "i8", "?"]),
    order=st.sampled_from("CF"),
    step=st.sampled_from([1, -1, 2]),
)
def test_tables(n_rows, n_columns, dtype, order, step):
    book, _ = CodeBook.fit_encode(numbers(50, n_columns))
    X = np.nan_to_num(numbers(n_rows * abs(step), n_columns, 1)).astype(dtype, order=order)[::step]
    with pytest.MonkeyPatch.context() as patch:
        expected = long_way(book, X, patch)
    found = book.check(X)
    assert (found.n_rows, found.n_columns, found.names) == (n_rows, n_columns, None)
    assert (found.labels, found.sparse) == ((), None)
    assert found.block.dtype == expected.block.dtype
    np.testing.assert_array_equal(found.block, expected.block)
    np.testing.assert_array_equal(found.numbers[0].columns, expected.numbers[0].columns)
    if dtype in ("f4", "f8"):
        np.testing.assert_array_equal(found.units, expected.units)
        assert found.block is X or len(X) != n_rows


WRONG = {
    "columns": numbers(2, 4),
    "one dimension": numbers(2, 3)[0],
    "three": numbers(2, 3)[None],
    "no rows": numbers(2, 3)[:0],
    "infinity": np.array([[0.0, np.inf, 1.0]]),
    "minus infinity": np.array([[0.0, 1.0, -np.inf]], dtype=np.float32),
    "complex": numbers(2, 3) + 1j,
    "strings": np.array([["a", "b", "c"]]),
    "dates": np.array([["2020-01-01"] * 3], dtype="datetime64[D]"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_errors_are_those_of_the_long_way(kind, monkeypatch):
    book, _ = CodeBook.fit_encode(numbers(50, 3))
    expected = said(lambda: long_way(book, WRONG[kind], monkeypatch))
    assert expected
    assert said(lambda: book.check(WRONG[kind])) == expected


def frame_of(kind: str):
    frame = pd.DataFrame(np.nan_to_num(numbers(50, 3)), columns=["a", "b", "c"])
    if kind == "categories":
        frame["b"] = list("xy") * 25
    if kind == "hybrid":
        frame["b"] = ["x", 1.5] * 25
    if kind == "dates":
        frame["b"] = pd.date_range("2020-01-01", periods=50)
    return frame


@pytest.mark.parametrize("kind", ["names", "categories", "hybrid", "dates"])
def test_books_that_know_more_take_the_long_way(kind, monkeypatch):
    book, _ = CodeBook.fit_encode(frame_of(kind))
    X = np.nan_to_num(numbers(3, 3))
    assert book._plain_table(X) is None
    expected = said(lambda: long_way(book, X, monkeypatch))
    assert any("feature names" in line for line in expected)
    assert said(lambda: book.check(X)) == expected


def test_other_arrays_take_the_long_way():
    book, _ = CodeBook.fit_encode(numbers(50, 3))
    X = numbers(3, 3)
    assert book._plain_table(X) is not None
    for other in (np.ma.masked_array(X), X.tolist(), pd.DataFrame(X)):
        assert book._plain_table(other) is None
    assert book._plain_table(np.zeros((PLAIN_CELLS, 3))) is None


def test_it_is_not_pickled():
    book, _ = CodeBook.fit_encode(numbers(50, 3))
    before = pickle.dumps(book)
    book.check(numbers(2, 3))
    assert pickle.dumps(book) == before


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_one_row_is_predicted_as_many_are(n_jobs):
    X = numbers(300, 5)
    forest = RandomForestClassifier(20, random_state=0, n_jobs=n_jobs)
    forest.fit(X, np.nan_to_num(X[:, 0]) > np.nan_to_num(X[:, 1]))
    rows = np.vstack([forest.predict_proba(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(rows, forest.predict_proba(X))


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
