"""Damaged sparse matrices: positions outside of the matrix.

SciPy's conversions do not check ``indptr``, ``indices`` and coordinates: a matrix whose arrays were
written to ends the process. So each sparse matrix is checked before SciPy, or scikit-learn
(``indexable``), converts it::

    csr, csc, bsr        indptr rises from 0 to at most len(indices); indices are in the matrix
    coo, dok, lil, dia   coordinates are in the matrix; made by SciPy in Python, which is safe

O(stored cells), no copies of the first three.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse


def in_scipy(X: Any) -> Any:
    """An array of the package ``sparse``, such as COO or GCXS, as CSC; other tables as they are.

    Raises ValueError where cells that are not stored are not 0.
    """
    kind = getattr(sys.modules.get("sparse"), "SparseArray", None)
    if kind is None or not isinstance(X, kind):
        return X
    if X.fill_value != 0:
        raise ValueError(
            f"X is sparse with a fill value of {X.fill_value}; it must be 0. Give X.todense()."
        )
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse array of shape {X.shape} instead.")
    X = X if hasattr(X, "to_scipy_sparse") else X.to_coo()  # of DOK
    return scipy.sparse.csc_array(X.to_scipy_sparse())


def check_sparse(**arguments: Any) -> None:
    """Refuse damaged sparse matrices, named as in the call; other arguments are not checked."""
    for name, value in arguments.items():
        if scipy.sparse.issparse(value):
            checked_sparse(value, name)


def checked_sparse(X: Any, name: str = "X") -> Any:
    """A sparse matrix or array that SciPy can convert: itself, or as COO."""
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X, name)
        return X
    return _coordinates(X, name)


def usual_values(X: Any) -> Any:
    """A sparse table whose arrays have no gaps, of values in a type that SciPy computes with.

    SciPy refuses half precision and other byte orders in most conversions, and leaves values where
    they are in some. Extended precision becomes float64, as in dense tables.
    """
    wanted = X.dtype.newbyteorder("=")
    if wanted.kind == "f" and wanted.itemsize not in (4, 8):
        wanted = np.dtype(np.float32 if wanted.itemsize == 2 else np.float64)
    usual = np.require(X.data, dtype=wanted, requirements=["C", "A"])
    if X.format in ("coo", "dia"):
        if usual is X.data:
            return X
        return type(X)((usual, X.coords if X.format == "coo" else X.offsets), shape=X.shape)
    positions = [np.ascontiguousarray(X.indices), np.ascontiguousarray(X.indptr)]
    if usual is X.data and positions[0] is X.indices and positions[1] is X.indptr:
        return X
    return type(X)((usual, *positions), shape=X.shape)


def _check_compressed(X: Any, name: str) -> None:
    shape = X.shape if X.ndim == 2 else (1, *X.shape)
    shape = shape[::-1] if X.format == "csc" else shape
    block = X.data.shape[1:] if X.format == "bsr" else (1, 1)
    if len(block) != 2 or 0 in block or shape[0] % block[0] or shape[1] % block[1]:
        raise _damaged(X, name, f"blocks of shape {block} do not tile its shape {X.shape}")
    indptr, indices = X.indptr, X.indices
    for what, positions in (("indptr", indptr), ("indices", indices)):
        if positions.ndim != 1 or positions.dtype.kind not in "iu":
            raise _damaged(X, name, f"{what} is an array of {positions.dtype}, {positions.ndim}-d")
    if X.format != "bsr" and X.data.ndim != 1:
        raise _damaged(X, name, f"its values are {X.data.ndim}-d")
    n_outer, n_inner = shape[0] // block[0], shape[1] // block[1]
    if len(indptr) != n_outer + 1:
        raise _damaged(X, name, f"indptr has {len(indptr)} entries, not {n_outer + 1}")
    if len(indices) != len(X.data):
        raise _damaged(X, name, f"{len(indices)} indices stand beside {len(X.data)} values")
    if indptr[0] != 0 or indptr[-1] > len(indices) or np.any(indptr[1:] < indptr[:-1]):
        raise _damaged(
            X, name, f"indptr does not rise from 0 to at most {len(indices)}, the number of indices"
        )
    _check_positions(X, name, indices[: indptr[-1]], n_inner)


def _coordinates(X: Any, name: str) -> Any:
    """A sparse table of another format as a checked COO."""
    if X.format == "lil" and any(len(r) != len(d) for r, d in zip(X.rows, X.data, strict=True)):
        raise _damaged(X, name, "some row has another number of columns than of values")
    if X.format == "dia" and len(X.offsets) != len(X.data):
        raise _damaged(X, name, f"{len(X.offsets)} offsets stand beside {len(X.data)} diagonals")
    try:
        X = (usual_values(X) if X.format in ("coo", "dia") else X).tocoo()
    except ValueError as error:
        raise _damaged(X, name, f"{error}") from error
    for positions, length in zip(X.coords, X.shape, strict=True):
        if len(positions) != len(X.data):
            raise _damaged(X, name, f"{len(positions)} coordinates for {len(X.data)} values")
        _check_positions(X, name, positions, length)
    return X


def _check_positions(X: Any, name: str, positions: np.ndarray, length: int) -> None:
    """Refuse positions outside 0 .. length - 1."""
    if positions.size:
        low, high = int(positions.min()), int(positions.max())
        if low < 0 or high >= length:
            bad = low if low < 0 else high
            raise _damaged(X, name, f"it holds the index {bad}, which is not in 0 .. {length - 1}")


def _damaged(X: Any, name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} is a sparse {X.format} of shape {X.shape} that is damaged: {what}. Build it anew, "
        "for example from (values, (rows, columns)), or see what its check_format() says."
    )
