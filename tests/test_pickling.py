"""Pickles of codes and targets: few buffers, and the same arrays."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dtrees._pickling import LARGE
from dtrees.coding import CodeBook
from dtrees.coding.target import Target
from tests.coding.examples import coded_columns

RNG = np.random.default_rng(0)
N_ROWS = 3 * LARGE


def dense():
    return coded_columns(
        [RNG.integers(0, k + 1, N_ROWS) for k in (3, 300, 70_000)], [3, 300, 70_000], [3, 0, 70_000]
    )


def sparse():
    table = np.where(RNG.random((N_ROWS, 4)) < 0.3, RNG.integers(-2, 3, (N_ROWS, 4)), 0)
    return CodeBook.fit_encode(sp.csr_array(table.astype(float)))[1]


def classes(dtype):
    y = np.array(["no", "yes"], dtype=dtype)[RNG.integers(0, 2, N_ROWS)]
    return Target.classification(y).bagged(RNG.integers(0, 3, N_ROWS))


MADE = {
    "dense": (dense, 3),  # its blocks
    "few rows": (lambda: dense().take(np.array([5, 3, 5])), 0),
    "sparse": (sparse, 2),  # rows and codes
    "no rows": (lambda: dense().take(np.array([], dtype=int)), 0),
    "classes": (lambda: classes(str), 2),  # y and w
    "classes that are objects": (lambda: classes(object), 2),
    "numbers": (lambda: Target.regression(RNG.normal(size=N_ROWS), RNG.random(N_ROWS)), 3),
}


def assert_same(found, made):
    assert vars(found).keys() == vars(made).keys()
    for name, value in vars(made).items():
        other = getattr(found, name)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(other, value, strict=True)
            assert other.flags.c_contiguous == value.flags.c_contiguous
            assert other.flags.f_contiguous == value.flags.f_contiguous
            assert other.flags.aligned
        else:
            assert other == value


@pytest.mark.parametrize("name", MADE)
def test_pickles_and_copies(name):
    make, n_buffers = MADE[name]
    made = make()
    buffers = []
    text = pickle.dumps(made, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == n_buffers
    assert_same(pickle.loads(text, buffers=buffers), made)
    assert_same(pickle.loads(pickle.dumps(made, protocol=2)), made)
    assert_same(copy.copy(made), made)
    assert_same(copy.deepcopy(made), made)
