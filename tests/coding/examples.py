"""Tables of every kind, and what their codes have to be."""

import numpy as np
import pandas as pd

from dtrees.coding import CodeBook, CodedMatrix
from dtrees.coding.coded import WIDTHS, storage_for


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


def sparse_table(n, k, density, seed, negative=True):
    r = np.random.default_rng(seed)
    dense = np.round(r.normal(size=(n, k)) * 10) / 4
    dense = dense if negative else np.abs(dense)
    dense[r.random((n, k)) > density] = 0.0
    dense[r.random((n, k)) < density / 20] = np.nan
    return dense


def code_column(column, **options):
    """Codes, number of ordered codes, number of codes of a one-column table."""
    book, coded = CodeBook.fit_encode(column, **options)
    return coded.column(0).tolist(), int(book.n_ordered[0]), int(book.n_codes[0])


def frame(values, dtype=None):
    return pd.DataFrame({"a": pd.array(values, dtype=dtype) if dtype else values})


def fit(X, **options):
    return CodeBook.fit_encode(X, **options)


def coded_columns(columns, n_codes, n_ordered, largest=None):
    """A dense coded matrix of a column of codes each; `largest` may be above `n_codes`."""
    n_rows = len(columns[0]) if len(columns) else 0
    storage = storage_for(n_codes if largest is None else largest)
    blocks = []
    for store, width in enumerate(WIDTHS):
        members = np.flatnonzero(storage == store)
        block = np.empty((n_rows, len(members)), dtype=width, order="F")
        for slot, j in enumerate(members.tolist()):
            block[:, slot] = columns[j]
        blocks.append(block)
    return CodedMatrix.dense(n_rows, n_codes, n_ordered, storage, blocks)


def coded_csc(codes, n_codes, n_ordered, fill_code):
    """A sparse coded matrix of the codes in a CSC matrix with sorted indices."""
    stored = codes.indptr, codes.indices, codes.data
    return CodedMatrix.sparse(codes.shape[0], *stored, n_codes, n_ordered, fill_code)
