"""The short way for small arrays of floats: tables, errors and warnings of the long one."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import RandomForestClassifier
from dtrees.coding import CodeBook
from dtrees.coding.plain_tables import MOST_CELLS, PlainTables

pandas = pytest.importorskip("pandas")


def numbers(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def long_way(book: CodeBook, X, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(PlainTables, "table", lambda *_: None)
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


def frame_of(kind: str) -> pandas.DataFrame:
    frame = pandas.DataFrame(np.nan_to_num(numbers(50, 3)), columns=["a", "b", "c"])
    if kind == "categories":
        frame["b"] = list("xy") * 25
    if kind == "hybrid":
        frame["b"] = ["x", 1.5] * 25
    if kind == "dates":
        frame["b"] = pandas.date_range("2020-01-01", periods=50)
    return frame


@pytest.mark.parametrize("kind", ["names", "categories", "hybrid", "dates"])
def test_books_that_know_more_take_the_long_way(kind, monkeypatch):
    book, _ = CodeBook.fit_encode(frame_of(kind))
    X = np.nan_to_num(numbers(3, 3))
    assert PlainTables.of(book) is None
    expected = said(lambda: long_way(book, X, monkeypatch))
    assert any("feature names" in line for line in expected)
    assert said(lambda: book.check(X)) == expected


def test_other_arrays_take_the_long_way():
    book, _ = CodeBook.fit_encode(numbers(50, 3))
    X = numbers(3, 3)
    plain = PlainTables.of(book)
    assert plain.table(X) is not None
    for other in (np.ma.masked_array(X), X.tolist(), pandas.DataFrame(X)):
        assert plain.table(other) is None
    assert plain.table(np.zeros((MOST_CELLS, 3))) is None


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


def test_no_jobs_are_an_error():
    X = numbers(50, 3)
    forest = RandomForestClassifier(3).fit(X, X[:, 0] > 0).set_params(n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs"):
        forest.predict(X[:1])
