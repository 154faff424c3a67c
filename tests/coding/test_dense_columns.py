"""Dense tables to codes: tiles and tasks change nothing, memory is given back."""

import weakref

import numpy as np
import pytest
import scipy.sparse as sp

from dtrees import DecisionTreeRegressor
from dtrees.coding import CodeBook, dense_columns, sparse_columns
from dtrees.coding.dense_columns import LARGE_BUFFER, CodeStore, OrderedValues
from dtrees.coding.sampling import CutRules
from dtrees.coding.tables import Numbers
from dtrees.typing import serial
from tests.coding.examples import assert_exact, fit

rng = np.random.default_rng(5)


@pytest.mark.parametrize("max_bins", [None, 20])
def test_wide_tables_keep_their_values_only(max_bins):
    # room for the values of all columns is large enough to be set aside without huge pages
    X = rng.poisson(0.1, (1100, 1000)).astype(np.float32)
    X[:, -1] = rng.normal(size=len(X))
    book, coded = CodeBook.fit_encode(X, max_bins=max_bins)
    assert 4 * X.size > LARGE_BUFFER
    assert len(book.low) == len(book.high) == book.n_codes.sum() < 8_000
    assert book.low.base is None
    assert book.exact[:-1].all()
    assert book.exact[-1] == (max_bins is None)
    if max_bins is None:
        assert_exact(X, book, coded)


def test_threads_and_tiles_do_not_matter(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    X = rng.normal(size=(4000, 20))
    X[:, ::3] = np.round(X[:, ::3])
    S = sp.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0))
    alone = [CodeBook.fit_encode(T, max_bins=m) for T in (X, S) for m in (None, 50)]
    for module in (dense_columns, sparse_columns):
        monkeypatch.setattr(module, "SMALL_TABLE", 100)
    monkeypatch.setattr(dense_columns, "TILE_BYTES", 4 * 8 * len(X))
    with ThreadPoolExecutor(3) as pool:
        shared = [
            CodeBook.fit_encode(
                T, max_bins=m, run=lambda ts: [*pool.map(lambda t: t(), ts[::-1])][::-1]
            )
            for T in (X, S)
            for m in (None, 50)
        ]
    for (a, coded_a), (b, coded_b) in zip(alone, shared, strict=True):
        assert np.array_equal(a.low, b.low)
        assert np.array_equal(a.high, b.high)
        for j in range(20):
            assert np.array_equal(coded_a.column(j), coded_b.column(j))


@pytest.mark.parametrize("max_bins", [None, 20])
def test_memory_of_values_is_given_back_block_by_block(max_bins, monkeypatch):
    blocks = [Numbers(np.array([j]), rng.normal(size=(100, 1))) for j in range(3)]
    arrays, alive = [], []

    def lazy_array(size, dtype, *of_a_buffer):
        array = np.empty(size, dtype=dtype)
        if not of_a_buffer:
            arrays.append(weakref.ref(array))
        return array

    def values_of_block(*fields):
        alive.append(sum(array() is not None for array in arrays))
        return OrderedValues(*fields)

    monkeypatch.setattr(dense_columns, "lazy_array", lazy_array)
    monkeypatch.setattr(dense_columns, "OrderedValues", values_of_block)
    store = CodeStore(100, 3, largest=100)
    dense_columns.code_numbers(blocks, store, CutRules(max_bins=max_bins), serial)
    assert alive == ([2, 1, 0] if max_bins is None else [4, 2, 0])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64, "csc", "cuts", "sparse cuts"])
def test_infinity_is_refused_and_named(value, kind):
    X = rng.normal(size=(400, 3))
    X[7, 1] = value
    options = {"max_bins": 20} if "cuts" in str(kind) else {}
    X = sp.csc_array(X) if kind in ("csc", "sparse cuts") else X
    X = X.astype(kind) if isinstance(kind, type) else X
    message = r"Input X contains infinity or a value too large for dtype\('float64'\).*column 1"
    with pytest.raises(ValueError, match=message):
        CodeBook.fit_encode(X, **options)


@pytest.mark.parametrize("kind", [np.float64, "missing", "hybrid"])
def test_rows_of_wide_columns_that_are_cut_are_in_order(kind):
    x = rng.permutation(70_000).astype(object if kind == "hybrid" else np.float64)
    x[:100] = {"missing": np.nan, "hybrid": "none"}.get(kind, x[:100])
    _, coded = CodeBook.fit_encode(np.column_stack([x, x]), max_bins=65_600)
    assert coded.order32.shape == (70_000, 2)
    for j in range(2):
        assert np.array_equal(coded.order32[:, j], np.argsort(coded.column(j), kind="stable"))


def test_trees_on_more_cuts_than_65535():
    x = rng.permutation(70_000).astype(float)
    y = np.sin(x / 3000)
    models = [
        DecisionTreeRegressor(max_bins=max_bins, max_depth=8).fit(x[:, None], y)
        for max_bins in (65_600, None)
    ]
    scores = [model.score(x[:, None], y) for model in models]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)


def test_numbers_not_seen_get_the_nearest_code():
    book, _ = fit(np.array([[0.0], [1.0], [4.0]]))
    x = np.array([[-9.0], [0.5], [0.51], [2.5], [2.6], [99.0], [np.nan]])
    assert book.encode(x).column(0).tolist() == [1, 1, 2, 2, 3, 3, 0]
    assert book.encode(sp.csc_array(x)).column(0).tolist() == [1, 1, 2, 2, 3, 3, 0]


def test_numbers_not_seen_fall_into_bins():
    book, coded = fit(rng.permutation(1000)[:, None], max_bins=4)
    assert book.high.tolist() == [249, 499, 749, 999]
    assert not book.exact[0]
    x = np.array([[-5.0], [249], [249.5], [999], [10**6], [np.nan]])
    assert book.encode(x).column(0).tolist() == [1, 1, 2, 4, 4, 0]
    assert book.encode(sp.csr_array(x)).column(0).tolist() == [1, 1, 2, 4, 4, 0]
    assert np.bincount(coded.column(0)).tolist() == [0, 250, 250, 250, 250]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i8", "?"])
@pytest.mark.parametrize("options", [{}, {"max_bins": 10}])
@pytest.mark.parametrize("other", ["f4", "f8", "object", "csc"])
def test_encoding_the_table_of_the_fit_gives_its_codes(dtype, options, other):
    X = np.round(rng.normal(size=(400, 5)) * 100).astype(dtype)
    book, coded = fit(X, **options)
    again = book.encode(sp.csc_array(X) if other == "csc" else X.astype(other))
    for j in range(5):
        assert np.array_equal(again.column(j), coded.column(j))


def test_midpoints_that_float32_does_not_hold():
    values = np.array([1.0, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    book, _ = fit(values[:, None])
    assert book.encode(values[:, None]).column(0).tolist() == [1, 2]


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_only_some_columns(form):
    X = np.round(rng.normal(size=(50, 6)))
    X = X if form == "dense" else sp.csr_array(X)
    book, coded = fit(X)
    some = book.encode(X, columns=[4, 1])
    assert some.n_columns == 6
    assert (some.n_codes > 0).tolist() == [False, True, False, False, True, False]
    for j in (1, 4):
        assert np.array_equal(some.column(j), coded.column(j))
    assert not some.column(0).any()
    assert some.u8.shape == (50, 2 if form == "dense" else 0)
