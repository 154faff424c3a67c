"""Cells of every type and memory layout."""

import numpy as np
import pytest

from dtrees.coding import CodeBook
from dtrees.coding._cells import compact, compact_values, label_codes, labels_present
from tests.coding.examples import assert_exact

rng = np.random.default_rng(2)


DTYPES = "f2 f4 f8 g i1 i2 i4 i8 u1 u2 u4 u8 ? >f8 >i4 >f4"


@pytest.mark.parametrize("dtype", DTYPES.split())
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


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_labels_become_codes(dtype):
    labels = np.array([1, -1, 0, 1], dtype=dtype)
    present = np.zeros(3, dtype=np.uint8)
    labels_present(labels, present)
    assert present.tolist() == [1, 1, 0]
    codes = np.empty(4, dtype=np.uint16)
    label_codes(labels, np.array([0, 300, 7, 9], dtype=np.uint32), codes)
    assert codes.tolist() == [7, 0, 300, 7]


def test_columns_move_to_the_front():
    block = np.arange(12, dtype=np.uint16)
    compact(block, np.array([1, 3]), 3)
    assert block[:6].tolist() == [3, 4, 5, 9, 10, 11]
    values = np.arange(9.0)
    assert compact_values(values, np.array([0, 3, 6]), np.array([1, 3, 2])) == 6
    assert values[:6].tolist() == [0, 3, 4, 5, 6, 7]
