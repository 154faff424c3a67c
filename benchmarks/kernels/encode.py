"""A table to codes."""

from functools import partial

import scipy.sparse

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from dtrees.coding import CodeBook
from dtrees.parallel import threaded


def _fit_encode(max_bins: int | None, n_threads: int, scale: Scale) -> Contest:
    X, _ = data.classification(scale.rows(100_000))
    return Contest(
        lambda: CodeBook.fit_encode(X, max_bins=max_bins, run=threaded(n_threads))[1],
        remark=lambda coded, _: f"{coded.nbytes / 1e6:.0f} MB of codes",
    )


def _encode(scale: Scale) -> Contest:
    X, _ = data.classification(scale.rows(100_000))
    book, _ = CodeBook.fit_encode(X)
    return Contest(lambda: book.encode(X))


def _sparse(scale: Scale) -> Contest:
    shape = (scale.rows(100_000), 1_000)
    X = scipy.sparse.random_array(shape, density=0.02, format="csr", random_state=0)
    return Contest(lambda: CodeBook.fit_encode(X, run=threaded(2)))


CASES = [
    Case(
        f"encode-{name}-{n_threads}",
        "kernels",
        f"fit_encode 100,000 × 30 float32, {words}, {n_threads} threads",
        partial(_fit_encode, max_bins, n_threads),
    )
    for name, words, max_bins in (("exact", "exact", None), ("255", "255 codes", 255))
    for n_threads in (1, 2)
]
CASES += [
    Case("encode-again", "kernels", "encode 100,000 × 30 float32, exact, 1 thread", _encode),
    Case("encode-sparse", "kernels", "fit_encode sparse 100,000 × 1,000, .02, 2 threads", _sparse),
]
