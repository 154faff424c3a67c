"""Damaged sparse tables are refused."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from dtrees.coding import CodeBook


def damaged(make, **attributes):
    """A sparse matrix with other attributes than it was made with."""
    matrix = make(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0], [0, 0, 5]]))
    for name, value in attributes.items():
        setattr(matrix, name, value)
    return matrix


def lil(**attributes):
    matrix = damaged(sp.lil_array)
    for name, value in attributes.items():
        getattr(matrix, name)[0] = value
    return matrix


ints = partial(np.array, dtype=np.int32)

DAMAGED = {
    "csr index too large": damaged(sp.csr_array, indices=ints([0, 2, 1, 0, 3])),
    "csr index negative": damaged(sp.csr_array, indices=ints([0, 2, 1, -1, 2])),
    "csr too few indices": damaged(sp.csr_array, indices=ints([0, 2, 1, 0])),
    "csr indptr falls": damaged(sp.csr_array, indptr=ints([0, 4, 3, 4, 5])),
    "csr indptr too far": damaged(sp.csr_array, indptr=ints([0, 2, 3, 4, 500])),
    "csr indptr not from 0": damaged(sp.csr_array, indptr=ints([-1, 2, 3, 4, 5])),
    "csr indptr too short": damaged(sp.csr_array, indptr=ints([0, 2, 5])),
    "csc index too large": damaged(sp.csc_array, indices=ints([0, 2, 1, 0, 10**9])),
    "csc matrix": damaged(sp.csc_matrix, indices=ints([0, 2, 1, 0, 4])),
    "bsr index too large": damaged(partial(sp.bsr_array, blocksize=(2, 3)), indices=ints([0, 1])),
    "bsr blocks": damaged(partial(sp.bsr_array, blocksize=(2, 3)), data=np.ones((2, 3, 3))),
    "coo": damaged(sp.coo_array, coords=(ints([0, 0, 1, 2, 4]), ints([0, 2, 1, 0, 2]))),
    "coo lengths": damaged(sp.coo_array, coords=(ints([0, 0, 1, 2]), ints([0, 2, 1, 0, 2]))),
    "dia": damaged(sp.dia_array, offsets=ints([0, 1])),
    "lil index": lil(rows=[0, 3]),
    "lil lengths": lil(data=[1.0]),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_sparse_tables_are_refused(name):
    book, _ = CodeBook.fit_encode(np.ones((4, 3)))
    for read in (CodeBook.fit_encode, book.check, book.encode):
        with pytest.raises(ValueError, match=r"that is damaged: .*\. Build it anew"):
            read(DAMAGED[name])
