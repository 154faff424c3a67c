"""Numbers to codes: the kernels against numpy, on every way through them."""

import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dtrees.coding import CodeBook, _encode, ordered
from dtrees.coding.ordered import LARGE_ROOM, CodeStore, CutRules, OrderedValues
from dtrees.coding.tables import Numbers
from dtrees.typing import serial


def expected(values):
    """Distinct values and codes of a column, by numpy: the slow twin."""
    values = np.asarray(values, dtype=np.float64) + 0.0
    present = ~np.isnan(values)
    distinct, inverse = np.unique(values[present], return_inverse=True)
    codes = np.zeros(len(values), dtype=np.int64)
    codes[present] = inverse + 1
    return distinct, codes


def assert_exact(X, book, coded, reference=None):
    for j in range(X.shape[1]):
        distinct, codes = expected(X[:, j] if reference is None else reference[:, j])
        part = slice(book.offsets[j], book.offsets[j + 1])
        assert np.array_equal(book.low[part], distinct)
        assert np.array_equal(coded.column(j), codes)
        assert book.n_codes[j] == book.n_ordered[j] == len(distinct)
    assert book.exact.all()
    assert book.low is book.high


rng = np.random.default_rng(0)
N = 6000
COLUMNS = {
    "normal": rng.normal(size=N),
    "float32": rng.normal(size=N).astype(np.float32).astype(float),
    "uniform": rng.random(N),
    "lognormal": np.exp(20 * rng.normal(size=N)),
    "tiny": rng.normal(size=N) * 1e-310,
    "huge": rng.uniform(-1, 1, N) * 1.7e308,
    "small integers": rng.integers(-8, 8, N),
    "wide integers": rng.integers(-(10**9), 10**9, N),
    "range just below 4 n": rng.integers(0, 4 * N, N),
    "decimals": np.round(rng.normal(size=N) * 5, 1),
    "many decimals": np.round(rng.normal(size=N), 3),
    "equal leading bits": 1e15 + rng.integers(0, 2000, N) / 8,
    "two clusters": np.where(rng.random(N) < 0.5, 1.0, 1e300) * (1 + rng.random(N) * 1e-13),
    "sorted": np.sort(rng.normal(size=N)),
    "reversed": -np.sort(rng.normal(size=N)),
    "constant": np.full(N, 2.5),
    "zeros of both signs": np.where(rng.random(N) < 0.5, -0.0, 0.0),
    "signed zeros and more": rng.choice([-0.0, 0.0, -1.5, 1.5], N),
    "infinite neighbours": rng.choice([np.finfo(float).max, -np.finfo(float).max, 0.0], N),
    "all missing": np.full(N, np.nan),
}


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_shape_of_column_is_coded_exactly(name, missing):
    column = COLUMNS[name].astype(float)
    column[rng.random(N) < missing] = np.nan
    X = column[:, None]
    assert_exact(X, *CodeBook.fit_encode(X))


@pytest.mark.parametrize(
    "dtype",
    [
        "f2",
        "f4",
        "f8",
        "g",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        "?",
        ">f8",
        ">i4",
        ">f4",
    ],
)
@pytest.mark.parametrize("n", [1, 2, 39, 300])
def test_every_dtype(dtype, n):
    X = np.round(rng.normal(size=(n, 3)) * 20)
    X = (np.abs(X) if np.dtype(dtype).kind == "u" else X).astype(dtype)
    book, coded = CodeBook.fit_encode(X)
    assert_exact(X, book, coded)
    narrow = X.dtype.kind == "b" or X.dtype.itemsize <= 2 or X.dtype.name == "float32"
    assert book.low.dtype == (np.float32 if narrow else np.float64)


def test_wide_codes_and_their_order():
    n = 70_000
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 3, n), rng.permutation(n), rng.permutation(n) * 0.37]
    )
    X[:5, 0] = np.nan
    book, coded = CodeBook.fit_encode(X)
    assert_exact(X, book, coded)
    assert coded.storage.tolist() == [2, 0, 2, 2]
    assert coded.slot.tolist() == [0, 0, 1, 2]
    for j in (0, 2, 3):
        order = coded.order32[:, coded.slot[j]]
        assert np.array_equal(order, np.argsort(coded.column(j), kind="stable"))


@pytest.mark.parametrize(("n", "storage"), [(255, 0), (256, 1), (65_535, 1), (65_536, 2)])
def test_width_follows_the_number_of_codes(n, storage):
    X = rng.permutation(n)[:, None] * 0.1
    book, coded = CodeBook.fit_encode(X)
    assert_exact(X, book, coded)
    assert coded.storage[0] == storage


def test_big_integers_that_are_one_float_are_one_code():
    X = np.array([[2**53], [2**53 + 1], [2**53 + 2], [-(2**62)]])
    book, coded = CodeBook.fit_encode(X)
    assert book.n_codes[0] == 3
    assert coded.column(0).tolist() == [2, 2, 3, 1]
    U = np.array([[2**64 - 1], [0], [2**63]], dtype=np.uint64)
    assert CodeBook.fit_encode(U)[1].column(0).tolist() == [3, 1, 2]


LAYOUTS = {
    "C": lambda X: np.ascontiguousarray(X),
    "F": lambda X: np.asfortranarray(X),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "broadcast": lambda X: np.broadcast_to(X[:, :1], X.shape),
    "read only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_memory_layout(layout):
    X = LAYOUTS[layout](rng.normal(size=(500, 5)).astype(np.float32))
    assert_exact(X, *CodeBook.fit_encode(X))


def test_unaligned_and_memory_mapped(tmp_path):
    X = rng.normal(size=(100, 3))
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    raw[1:] = np.frombuffer(X.tobytes(), np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(X.shape)
    assert not unaligned.flags.aligned
    assert_exact(X, *CodeBook.fit_encode(unaligned))
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_exact(X, *CodeBook.fit_encode(mapped))


floats = st.one_of(
    st.floats(allow_infinity=False),
    st.floats(allow_infinity=False, width=32),
    st.integers(-3, 3).map(float),
    st.sampled_from([0.0, -0.0, np.nan, 5e-324, -5e-324, 1.7976931348623157e308]),
)


@settings(max_examples=max(100, settings.default.max_examples))
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 80), st.integers(1, 3)), elements=floats))
def test_any_small_table(X):
    assert_exact(X, *CodeBook.fit_encode(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.5, -2e9, 1.9e9, np.nan])
@pytest.mark.parametrize("place", [0, 63, 64, 127, 128, 199])
def test_whole_numbers_and_one_other_value(dtype, value, place):
    X = rng.integers(-3, 40, (200, 2)).astype(dtype)
    X[place, 0] = value
    assert_exact(X, *CodeBook.fit_encode(X))


@pytest.mark.parametrize("max_bins", [None, 20])
def test_wide_tables_keep_their_values_only(max_bins):
    # room for the values of all columns is large enough to be set aside without huge pages
    X = rng.poisson(0.1, (1100, 1000)).astype(np.float32)
    X[:, -1] = rng.normal(size=len(X))
    book, coded = CodeBook.fit_encode(X, max_bins=max_bins)
    assert 4 * X.size > LARGE_ROOM
    assert len(book.low) == len(book.high) == book.n_codes.sum() < 8_000
    assert book.low.base is None
    assert book.exact[:-1].all()
    assert book.exact[-1] == (max_bins is None)
    if max_bins is None:
        assert_exact(X, book, coded)


@pytest.mark.parametrize("max_bins", [None, 20])
def test_room_for_values_is_given_back_block_by_block(max_bins, monkeypatch):
    blocks = [Numbers(np.array([j]), rng.normal(size=(100, 1))) for j in range(3)]
    rooms, alive = [], []

    def room_for_values(size, dtype):
        room = np.empty(size, dtype=dtype)
        rooms.append(weakref.ref(room))
        return room

    def values_of_block(*fields):
        alive.append(sum(room() is not None for room in rooms))
        return OrderedValues(*fields)

    monkeypatch.setattr(ordered, "room_for_values", room_for_values)
    monkeypatch.setattr(ordered, "OrderedValues", values_of_block)
    store = CodeStore(100, 3, largest=100)
    ordered.code_numbers(blocks, store, CutRules(max_bins=max_bins), serial)
    assert alive == ([2, 1, 0] if max_bins is None else [4, 2, 0])


@given(hnp.arrays(np.int64, st.integers(1, 80)))
def test_any_integers(column):
    X = column[:, None]
    assert_exact(X, *CodeBook.fit_encode(X))


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_cuts", [0, 1, 2, 3, 254, 5000])
def test_cuts_are_a_bisection(dtype, n_cuts):
    for scale in (1.0, 1e-300 if dtype is np.float64 else 1e-30, 1e10):
        values = (rng.normal(size=3000) * scale).astype(dtype)
        cuts = np.unique((rng.normal(size=n_cuts) * scale).astype(dtype))
        values[: len(cuts)] = cuts[: len(values)]
        values[-3:] = [np.nan, np.finfo(dtype).max, np.finfo(dtype).min]
        codes = np.empty(len(values), dtype=np.uint32)
        _encode.cut_column(values + dtype(0), cuts, codes)
        wanted = np.where(np.isnan(values), 0, np.searchsorted(cuts, values) + 1)
        assert np.array_equal(codes, wanted)


@pytest.mark.parametrize("name", COLUMNS)
def test_sorted_values(name):
    column = COLUMNS[name].astype(float) + 0.0
    column[::7] = np.nan
    for dtype in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            values = np.nan_to_num(column.astype(dtype), nan=np.nan, posinf=1, neginf=-1)
        ordered = np.sort(values[~np.isnan(values)])
        assert np.array_equal(_encode.sorted_values(values + dtype(0)), ordered)


def sparse_table(n, k, density, seed, negative=True):
    r = np.random.default_rng(seed)
    dense = np.round(r.normal(size=(n, k)) * 10) / 4
    dense = dense if negative else np.abs(dense)
    dense[r.random((n, k)) > density] = 0.0
    dense[r.random((n, k)) < density / 20] = np.nan
    return dense


@pytest.mark.parametrize("density", [0.0, 0.01, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("options", [{}, {"max_bins": 12}, {"max_bins": 12, "sample_rows": 150}])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_sparse_equals_dense(density, options, form):
    X = sparse_table(60 if form == "dia" else 600, 17, density, seed=3)
    S = sp.csr_array(X).asformat(form)
    book, coded = CodeBook.fit_encode(S, **options)
    dense_book, dense_coded = CodeBook.fit_encode(X, **options)
    for name in ("n_codes", "n_ordered", "offsets", "low", "high", "exact"):
        assert np.array_equal(getattr(book, name), getattr(dense_book, name)), name
    for j in range(X.shape[1]):
        assert np.array_equal(coded.column(j), dense_coded.column(j))
    assert (coded.storage == 3).all()
    again = book.encode(S)
    for j in range(X.shape[1]):
        assert np.array_equal(again.column(j), coded.column(j))


def test_fill_code_is_the_code_of_zero():
    X = np.array([[0, 1, -1, 2], [0, 2, -2, 0], [3, 3, 0, -1]], dtype=float)
    book, coded = CodeBook.fit_encode(sp.csr_matrix(X))
    assert coded.fill_code.tolist() == [1, 0, 3, 2]
    assert book.n_codes.tolist() == [2, 3, 3, 3]
    assert coded.sparse_rows.dtype == np.int32
    assert coded.sparse_indptr.dtype == np.int64


def test_explicit_zeros_duplicates_and_unsorted_indices():
    data = np.array([2.0, 0.0, 1.0, 4.0, -0.0, 3.0])
    rows = np.array([3, 1, 3, 0, 0, 2])
    columns = np.array([0, 0, 0, 0, 1, 1])
    S = sp.csc_matrix((4, 2))
    S.indptr = np.array([0, 4, 6])
    S.indices = rows
    S.data = data
    before = (S.data.copy(), S.indices.copy(), S.indptr.copy())
    book, coded = CodeBook.fit_encode(S)
    assert coded.column(0).tolist() == [3, 1, 1, 2]
    assert coded.column(1).tolist() == [1, 1, 2, 1]
    for array, old in zip((S.data, S.indices, S.indptr), before, strict=True):
        assert np.array_equal(array, old)
    C = sp.coo_array((data, (rows, columns)), shape=(4, 2))
    again, coded_again = CodeBook.fit_encode(C)
    assert np.array_equal(book.low, again.low)
    assert np.array_equal(coded_again.column(0), coded.column(0))


def test_int64_indices_and_integer_data():
    X = sparse_table(50, 6, 0.4, seed=5)
    X = np.nan_to_num(np.round(X)).astype(np.int64)
    S = sp.csr_array(X)
    S.indices = S.indices.astype(np.int64)
    S.indptr = S.indptr.astype(np.int64)
    assert_exact(X, *CodeBook.fit_encode(S))
    assert_exact(X != 0, *CodeBook.fit_encode(sp.csc_array(X != 0)))


def test_column_without_entries_has_the_one_code_of_zero():
    book, coded = CodeBook.fit_encode(sp.csr_array((5, 3)))
    assert book.n_codes.tolist() == [1, 1, 1]
    assert book.low.tolist() == [0.0, 0.0, 0.0]
    assert coded.column(1).tolist() == [1] * 5


def test_column_whose_stored_values_are_all_missing():
    S = sp.csc_array(np.array([[np.nan, np.nan], [np.nan, 0.0]]))
    book, coded = CodeBook.fit_encode(S)
    assert book.n_codes.tolist() == [0, 1]
    assert coded.column(0).tolist() == [0, 0]
    assert coded.column(1).tolist() == [0, 1]


def test_threads_and_tiles_do_not_matter(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    X = rng.normal(size=(4000, 20))
    X[:, ::3] = np.round(X[:, ::3])
    S = sp.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0))
    alone = [CodeBook.fit_encode(T, max_bins=m) for T in (X, S) for m in (None, 50)]
    monkeypatch.setattr(ordered, "SMALL_TABLE", 100)
    monkeypatch.setattr(ordered, "TILE_BYTES", 4 * 8 * len(X))
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
