"""Cells of every type and memory layout."""

import numpy as np
import pytest

from dtrees.coding import CodeBook
from tests.coding.examples import assert_exact

rng = np.random.default_rng(2)


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
