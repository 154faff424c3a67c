"""The coded table: what the kernels read.

Every column is small integers. Code 0 is missing; codes 1..n_ordered are ordered (ascending
value), codes n_ordered+1..n_codes are categories. The two counts say what a column is:

    n_ordered == n_codes       ordered
    n_ordered == 0             categorical
    0 < n_ordered < n_codes    hybrid: numbers, and categories beside them
    n_codes == 0               every value is missing

A column lives in one of four stores, the narrowest that holds its codes:

    storage 0   u8   uint8  (n_rows, k8)    up to 255 codes         all Fortran ordered:
    storage 1   u16  uint16 (n_rows, k16)   up to 65,535            a column is contiguous
    storage 2   u32  uint32 (n_rows, k32)   more
    storage 3   sparse: the stored rows and their codes; all other rows hold the column's fill code

        sparse_indptr   0     2           5                     column s: entries
        sparse_rows    [3, 8, 0, 3, 9, ...]                     indptr[s] .. indptr[s + 1] - 1
        sparse_codes   [2, 1, 3, 1, 3, ...]                     rows ascending within a column

``slot[j]`` is the position of column j within its store.

`digest_of_rows` tells the rows of a table and their order, however it is cut and stored::

    row r      mix(r x 0x9E3779B97F4A7C15 + sum over columns j of code x mix(j + 1))
    table      the sum over its rows, modulo 2**64

Parts know the numbers of their rows, so what they add up to is that of the whole. Two tables whose
rows differ, or stand in another order, have the same number by chance only, one in 2**64. The
mixing function is SplitMix64's (Steele, Lea and Flood, 2014), as in `dtrees._random`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse

from dtrees._pickling import SmallArraysInside
from dtrees.coding._cells import take_rows
from dtrees.coding.mapped import is_mapped, let_go

U8, U16, U32, SPARSE = 0, 1, 2, 3
WIDTHS = (np.uint8, np.uint16, np.uint32)
STEP = np.uint64(0x9E3779B97F4A7C15)
ROWS = 16_384  # at a time, so that their sums stay in the cache


def storage_for(largest_code: Any) -> np.ndarray:
    """The narrowest dense store for columns whose codes go up to ``largest_code``: uint8."""
    largest = np.asarray(largest_code)
    return ((largest > 255).astype(np.uint8) + (largest > 65_535)).astype(np.uint8)


class LockedArrays(SmallArraysInside):
    """A dataclass whose arrays are read only."""

    def __post_init__(self) -> None:
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                array = array.view()
                array.flags.writeable = False
                vars(self)[name] = array


@dataclass(frozen=True, eq=False)
class CodedMatrix(LockedArrays):
    """A table as codes; every array is read only.

    Attributes
    ----------
    n_rows, n_columns : int
    n_codes, n_ordered : int64 (n_columns,)
    storage : uint8 (n_columns,)
        0 ``u8``, 1 ``u16``, 2 ``u32``, 3 sparse.
    slot : int64 (n_columns,)
    u8, u16, u32 : uint8, uint16, uint32 (n_rows, k), Fortran
    order32 : uint32 (n_rows, k32), Fortran, or None
        Rows of each ``u32`` column in ascending order of (code, row).
    sparse_indptr : int64 (ks + 1,)
    sparse_rows : int32 (nnz,)
        Ascending within a column.
    sparse_codes : uint32 (nnz,)
        May hold the fill code (zeros that were stored).
    fill_code : uint32 (ks,)
        0 for columns that store every row and have no zero, or that were not coded.
    """

    n_rows: int
    n_columns: int
    n_codes: np.ndarray
    n_ordered: np.ndarray
    storage: np.ndarray
    slot: np.ndarray
    u8: np.ndarray
    u16: np.ndarray
    u32: np.ndarray
    order32: np.ndarray | None
    sparse_indptr: np.ndarray
    sparse_rows: np.ndarray
    sparse_codes: np.ndarray
    fill_code: np.ndarray

    def __post_init__(self) -> None:
        assert len(self.n_codes) == len(self.n_ordered) == self.n_columns
        assert len(self.storage) == len(self.slot) == self.n_columns
        for block in (self.u8, self.u16, self.u32):
            assert block.flags.f_contiguous
            assert block.shape[0] == self.n_rows
        super().__post_init__()

    @classmethod
    def dense(
        cls,
        n_rows: int,
        n_codes: np.ndarray,
        n_ordered: np.ndarray,
        storage: np.ndarray,
        blocks: Sequence[np.ndarray],
        order32: np.ndarray | None = None,
    ) -> CodedMatrix:
        """A matrix of dense blocks whose columns stand in the order of the table.

        ``storage`` may be 3 for columns without codes: they store nothing and read as all missing.
        """
        slot = np.zeros(len(storage), dtype=np.int64)
        for store in range(4):
            members = np.flatnonzero(storage == store)
            slot[members] = np.arange(len(members))
        n_empty = int(np.count_nonzero(storage == SPARSE))
        return cls(
            n_rows=n_rows,
            n_columns=len(storage),
            n_codes=np.asarray(n_codes, dtype=np.int64),
            n_ordered=np.asarray(n_ordered, dtype=np.int64),
            storage=np.asarray(storage, dtype=np.uint8),
            slot=slot,
            u8=blocks[0],
            u16=blocks[1],
            u32=blocks[2],
            order32=order32,
            sparse_indptr=np.zeros(n_empty + 1, dtype=np.int64),
            sparse_rows=np.empty(0, dtype=np.int32),
            sparse_codes=np.empty(0, dtype=np.uint32),
            fill_code=np.zeros(n_empty, dtype=np.uint32),
        )

    @classmethod
    def sparse(
        cls,
        n_rows: int,
        indptr: np.ndarray,
        rows: np.ndarray,
        codes: np.ndarray,
        n_codes: Sequence[int] | np.ndarray,
        n_ordered: Sequence[int] | np.ndarray,
        fill_code: Sequence[int] | np.ndarray,
    ) -> CodedMatrix:
        """A matrix of sparse columns only: ``indptr``, ``rows`` and ``codes`` as in CSC."""
        n_columns = len(indptr) - 1
        return cls(
            n_rows=n_rows,
            n_columns=n_columns,
            n_codes=np.asarray(n_codes, dtype=np.int64),
            n_ordered=np.asarray(n_ordered, dtype=np.int64),
            storage=np.full(n_columns, SPARSE, dtype=np.uint8),
            slot=np.arange(n_columns, dtype=np.int64),
            u8=np.empty((n_rows, 0), dtype=np.uint8, order="F"),
            u16=np.empty((n_rows, 0), dtype=np.uint16, order="F"),
            u32=np.empty((n_rows, 0), dtype=np.uint32, order="F"),
            order32=None,
            sparse_indptr=np.asarray(indptr, dtype=np.int64),
            sparse_rows=np.asarray(rows, dtype=np.int32),
            sparse_codes=np.asarray(codes, dtype=np.uint32),
            fill_code=np.asarray(fill_code, dtype=np.uint32),
        )

    def __sizeof__(self) -> int:
        """As `nbytes`: Dask asks for it, to know what to spill."""
        return object.__sizeof__(self) + self.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (getattr(self, field.name) for field in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    @property
    def is_mapped(self) -> bool:
        """Whether codes of dense columns are in files (`dtrees.coding.mapped`)."""
        return any(map(is_mapped, (self.u8, self.u16, self.u32)))

    def let_go(self) -> None:
        """Let go of the pages of codes that are in files."""
        for block in (self.u8, self.u16, self.u32):
            let_go(block)

    def give_up_narrow(self) -> np.ndarray | None:
        """Give the memory of `u8` away, to be written to; `u8` has no columns then.

        Returns
        -------
        uint8 (n_rows * k8,) or None
            Column after column. None where the memory is another one's: `u8` stays as it is.
        """
        owner = self.u8
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        is_whole = owner.size == self.u8.size and (owner.ndim == 1 or owner.flags.f_contiguous)
        if not (is_whole and owner.flags.owndata and owner.flags.writeable):
            return None
        vars(self)["u8"] = np.empty((self.n_rows, 0), dtype=np.uint8, order="F")
        return owner.reshape(-1, order="F")

    def column(self, j: int) -> np.ndarray:
        """Codes of one column, (n_rows,); a view for dense columns. O(n_rows)."""
        slot = int(self.slot[j])
        store = int(self.storage[j])
        if store != SPARSE:
            return (self.u8, self.u16, self.u32)[store][:, slot]
        codes = np.full(self.n_rows, self.fill_code[slot], dtype=np.uint32)
        stored = slice(int(self.sparse_indptr[slot]), int(self.sparse_indptr[slot + 1]))
        codes[self.sparse_rows[stored]] = self.sparse_codes[stored]
        return codes

    def has_missing(self, j: int) -> bool:
        """Tell whether a column has missing values.

        O(n_rows), or O(stored cells); O(1) where the rows are known in the order of their codes.
        """
        slot, store = int(self.slot[j]), int(self.storage[j])
        if store == SPARSE:
            codes = self.sparse_codes[self.sparse_indptr[slot] : self.sparse_indptr[slot + 1]]
        else:
            codes = (self.u8, self.u16, self.u32)[store][:, slot]
            if codes.dtype == np.uint32 and self.order32 is not None:
                codes = codes[self.order32[:1, slot]]
        return bool(codes.min(initial=1) == 0)

    def missing_columns(self) -> np.ndarray:
        """Columns that have missing values; bool (n_columns,). O(cells that are stored)."""
        found = np.zeros(self.n_columns, dtype=bool)
        is_sparse = self.storage == SPARSE
        zeros = np.flatnonzero(self.sparse_codes == 0)
        of_slot = np.zeros(len(self.fill_code), dtype=bool)
        of_slot[np.searchsorted(self.sparse_indptr, zeros, side="right") - 1] = True
        found[is_sparse] = of_slot[self.slot[is_sparse]]
        for column in np.flatnonzero(~is_sparse).tolist():
            found[column] = self.has_missing(column)
        return found

    def stored_columns(self) -> tuple[np.ndarray, np.ndarray]:
        """The sparse columns that store a cell of a row, row after row. O(stored cells).

        Returns
        -------
        start : int64 (n_rows + 1,)
        column : int32 (stored cells,)
            Those of row i are ``column[start[i]:start[i + 1]]``.
        """
        sparse = np.flatnonzero(self.storage == SPARSE)
        of_slot = sparse[np.argsort(self.slot[sparse])].astype(np.int32)
        cells = np.ones(len(self.sparse_rows), dtype=np.uint8)
        shape = (self.n_rows, len(sparse))
        by_row = scipy.sparse.csc_array(
            (cells, self.sparse_rows, self.sparse_indptr), shape
        ).tocsr()
        return by_row.indptr.astype(np.int64), of_slot[by_row.indices]

    def take(self, rows: np.ndarray) -> CodedMatrix:
        """The columns for other rows (numbers, repeats allowed, or a boolean mask)."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        if not (rows[1:] > rows[:-1]).all():
            return next(self.take_each([rows]))
        return self._taken(rows, None)

    def take_each(self, parts: Iterable[np.ndarray]) -> Iterator[CodedMatrix]:
        """The columns for the rows of each of some parts, one after the other, as `take`."""
        return map(self.taker(), parts)

    def taker(self) -> Callable[[np.ndarray], CodedMatrix]:
        """A function that does as `take`, for many parts: what they need is made once."""
        by_row = None
        if len(self.sparse_rows):
            stored = (self.sparse_codes, self.sparse_rows, self.sparse_indptr)
            shape = (self.n_rows, len(self.sparse_indptr) - 1)
            by_row = scipy.sparse.csc_array(stored, shape=shape).tocsr()
        return lambda rows: self._taken(np.asarray(rows), by_row)

    def _taken(self, rows: np.ndarray, by_row: scipy.sparse.csr_array | None) -> CodedMatrix:
        """Some rows; the codes of sparse columns by row are given, or the rows ascend."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        if len(rows) and not (rows.min() >= 0 and rows.max() < self.n_rows):
            raise IndexError(f"rows of a table of {self.n_rows} are 0 to {self.n_rows - 1}")
        blocks = []
        for block in (self.u8, self.u16, self.u32):
            taken = np.empty((len(rows), block.shape[1]), dtype=block.dtype, order="F")
            if taken.size > 0:
                numbers = rows.astype(np.uint32, copy=False)
                take_rows(np.require(block, requirements=["A"]), numbers, taken)
            blocks.append(taken)
        indptr, stored_rows, codes = self.sparse_indptr, self.sparse_rows, self.sparse_codes
        if by_row is not None:
            stored = by_row[rows].tocsc()
            stored.sort_indices()
            indptr = stored.indptr.astype(np.int64)
            stored_rows = stored.indices.astype(np.int32, copy=False)
            codes = stored.data
        elif len(stored_rows) > 0:
            place = np.full(self.n_rows, -1, dtype=np.int32)
            place[rows] = np.arange(len(rows), dtype=np.int32)
            stored_rows = place[stored_rows]
            kept = stored_rows >= 0
            indptr = np.concatenate([[0], np.cumsum(kept)])[indptr]
            stored_rows, codes = stored_rows[kept], codes[kept]
        return self._with_rows(len(rows), blocks, indptr, stored_rows, codes)

    def _with_rows(
        self,
        n_rows: int,
        blocks: Sequence[np.ndarray],
        indptr: np.ndarray,
        rows: np.ndarray,
        codes: np.ndarray,
    ) -> CodedMatrix:
        """The columns for other rows: `blocks` of each width, and sparse ones."""
        u8, u16, u32 = blocks
        return replace(
            self,
            n_rows=n_rows,
            u8=u8,
            u16=u16,
            u32=u32,
            order32=None,
            sparse_indptr=indptr,
            sparse_rows=rows,
            sparse_codes=codes,
        )

    @staticmethod
    def stack(
        parts: Iterable[CodedMatrix],
        n_rows: int | None = None,
        empty: Callable[..., np.ndarray] = np.empty,
    ) -> CodedMatrix:
        """The rows of several matrices of the same columns, one behind the other.

        Where `n_rows` says how many rows they have, parts are taken one by one, and need not all be
        in memory. `empty` makes the arrays of dense columns.
        """
        if n_rows is None:
            parts = list(parts)
            n_rows = sum(part.n_rows for part in parts)
        blocks: list[np.ndarray] = []
        of_parts, at = [], 0
        for part in parts:
            dense = part.u8, part.u16, part.u32
            blocks = blocks or [
                empty((n_rows, own.shape[1]), dtype=own.dtype, order="F") for own in dense
            ]
            for block, own in zip(blocks, dense, strict=True):
                block[at : at + part.n_rows] = own
                let_go(block)
            of_parts.append((part.sparse_codes, part.sparse_rows, part.sparse_indptr, part.n_rows))
            at += part.n_rows
        indptr, rows, codes = part.sparse_indptr, part.sparse_rows, part.sparse_codes
        if any(len(cells[0]) for cells in of_parts):
            stored = scipy.sparse.vstack(
                [
                    scipy.sparse.csc_array(tuple(cells), shape=(n, len(part.fill_code)))
                    for *cells, n in of_parts
                ],
                format="csc",
            )
            stored.sort_indices()
            indptr = stored.indptr.astype(np.int64)
            rows = stored.indices.astype(np.int32)
            codes = stored.data.astype(np.uint32)
        return part._with_rows(n_rows, blocks, indptr, rows, codes)


def digest_of_rows(coded: CodedMatrix, first_row: int = 0) -> int:
    """Digest of some rows: what they add to that of their table.

    `first_row` is the number of the first of them. An integer of 0 to 2**64 - 1; those of parts add
    up modulo 2**64. About two nanoseconds for each cell that is stored.
    """
    weights = _mixed(np.arange(1, coded.n_columns + 1, dtype=np.uint64))
    sums = _of_sparse_columns(coded, weights) if len(coded.fill_code) else None
    dense = np.flatnonzero(coded.storage != SPARSE)
    blocks = (coded.u8, coded.u16, coded.u32)
    total = 0
    for start in range(0, coded.n_rows, ROWS):
        some = slice(start, min(start + ROWS, coded.n_rows))
        found = np.arange(first_row + some.start, first_row + some.stop, dtype=np.uint64) * STEP
        if sums is not None:
            found += sums[some]
        for column in dense.tolist():
            codes = blocks[coded.storage[column]][some, coded.slot[column]]
            found += codes * weights[column]
        total += int(_mixed(found).sum())
    return total % 2**64


def digest_of_arrays(arrays: Sequence[np.ndarray], first_row: int = 0) -> int:
    """Digest of arrays that have a number for each of some rows, as `digest_of_rows`."""
    weights = _mixed(np.arange(1, len(arrays) + 1, dtype=np.uint64))
    total = 0
    for start in range(0, len(arrays[0]), ROWS):
        some = slice(start, start + ROWS)
        words = [_words(array[some]) for array in arrays]
        found = np.arange(first_row + start, first_row + start + len(words[0]), dtype=np.uint64)
        found *= STEP
        for own, weight in zip(words, weights, strict=True):
            found += own * weight
        total += int(_mixed(found).sum())
    return total % 2**64


def _words(numbers: np.ndarray) -> np.ndarray:
    """Numbers as uint64; of floats, their bits."""
    if numbers.dtype.kind == "f":
        return np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    return numbers.astype(np.uint64)


def _of_sparse_columns(coded: CodedMatrix, weights: np.ndarray) -> np.ndarray:
    """Sums of the sparse columns, uint64 (n_rows,); what is not stored is the fill code."""
    columns = np.flatnonzero(coded.storage == SPARSE)
    of_slot = weights[columns[np.argsort(coded.slot[columns])]]
    fill = coded.fill_code.astype(np.uint64)
    beyond = coded.sparse_codes - np.repeat(fill, np.diff(coded.sparse_indptr))
    stored = scipy.sparse.csc_array(
        (beyond, coded.sparse_rows, coded.sparse_indptr), shape=(coded.n_rows, len(columns))
    )
    sums: np.ndarray = stored @ of_slot + (fill * of_slot).sum()
    return sums


def _mixed(words: np.ndarray) -> np.ndarray:
    """Words whose bits all depend on all bits of those that were given; uint64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
