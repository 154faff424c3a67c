"""Room for the codes of columns whose widths are not known yet.

Address space is set aside for every width, column p at ``p * n_rows`` of each; pages that are never
written take no memory. When all columns are done they move together and what is left over is given
back::

    u8    | col 0 |       | col 2 |        ->   | col 0 | col 2 |
    u32   |       | col 1 |       |        ->   | col 1 |
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from dtrees.coding._codes import compact
from dtrees.coding.coded import SPARSE, U8, U16, U32, WIDTHS, CodedMatrix, storage_for

ORDER_BYTES = 64 * 2**20
LARGE_BUFFER = 4 * 2**20  # bytes from which on numpy asks for huge pages
MOST_WASTE = 2**25  # bytes that may be written in huge pages for a few values


class BufferPool:
    """Memory that the tasks of a coding use one after the other, and that is gone with it.

    What a task gives back to the C library stays with that, for every thread as much as it used.
    """

    def __init__(self) -> None:
        self._spare: list[np.ndarray] = []

    @contextmanager
    def borrow(self, n_bytes: int) -> Iterator[np.ndarray]:
        """At least so many bytes, uint8, for the length of a task."""
        try:
            buffer = self._spare.pop()
        except IndexError:
            buffer = np.empty(0, dtype=np.uint8)
        if len(buffer) < n_bytes:
            buffer = mapped_bytes(n_bytes)
        try:
            yield buffer
        finally:
            self._spare.append(buffer)


class CodeStore:
    """Codes of a dense table while it is coded; ``largest`` is the largest code to expect.

    Attributes
    ----------
    n_rows, n_columns : int
    blocks : uint8, uint16, uint32 (n_columns * n_rows,)
        Column p at ``p * n_rows``; empty where no column can need the width.
    order : uint32 (n_columns * n_rows,)
        Rows by (code, row), of columns of more than 65,535 codes; empty for tables for which it
        would take more than ``ORDER_BYTES``: growth then sorts the codes, for a few per cent of
        its time.
    n_codes, n_ordered : int64 (n_columns,)
    status : uint8 (n_columns,)
    is_binned : bool (n_columns,)
        Columns coded by cuts instead of by their distinct values.
    tiles, scratch : BufferPool
        Where tiles are loaded and ranked.
    """

    def __init__(self, n_rows: int, n_columns: int, largest: int, with_order: bool = True) -> None:
        self.n_rows, self.n_columns = n_rows, n_columns
        cells = n_rows * n_columns
        needed = (True, largest > 255, largest > 65_535)
        self.blocks = [
            np.empty(cells if need else 0, dtype=width)
            for need, width in zip(needed, WIDTHS, strict=True)
        ]
        ordered = needed[2] and with_order and 4 * cells <= ORDER_BYTES
        self.order = np.empty(cells if ordered else 0, dtype=np.uint32)
        self.n_codes = np.zeros(n_columns, dtype=np.int64)
        self.n_ordered = np.zeros(n_columns, dtype=np.int64)
        self.status = np.zeros(n_columns, dtype=np.uint8)
        self.is_binned = np.zeros(n_columns, dtype=bool)
        self.tiles, self.scratch = BufferPool(), BufferPool()

    def codes_of(self, column: int, largest: Any) -> np.ndarray:
        """The codes of a column whose codes go up to ``largest``: a view to read or write."""
        at = column * self.n_rows
        return self.blocks[int(storage_for(np.int64(largest)))][at : at + self.n_rows]

    def order_rows(self, column: int, largest: Any) -> None:
        """Sets `order` of a column that was not coded by its rank, if it has one."""
        if largest > 65_535 and len(self.order):
            at = column * self.n_rows
            codes = self.codes_of(column, largest)
            self.order[at : at + self.n_rows] = np.argsort(codes, kind="stable")

    def finish(self, largest: np.ndarray | None = None, coded: np.ndarray | None = None):
        """The coded matrix; the store must not be used any more.

        Parameters
        ----------
        largest : int64 (n_columns,), default=n_codes
            Greatest code that was allowed for when a column was written.
        coded : bool (n_columns,), default=all
            Columns that were written at all; the others take no memory.
        """
        largest = self.n_codes if largest is None else largest
        storage = storage_for(largest)
        if coded is not None:
            storage[~coded] = SPARSE
        shaped = []
        order32 = None
        for store in (U8, U16, U32):
            members = np.flatnonzero(storage == store)
            block = self.blocks[store]
            shaped.append(self._together(block, members))
            if store == U32 and len(members) and len(self.order):
                order32 = self._together(self.order, members)
        self.blocks = []
        return CodedMatrix.dense(
            self.n_rows, self.n_codes, self.n_ordered, storage, shaped, order32
        )

    def _together(self, block: np.ndarray, members: np.ndarray) -> np.ndarray:
        """The columns ``members`` of a block, moved to its front, as (n_rows, k), Fortran."""
        compact(block, members, self.n_rows)
        block.resize(len(members) * self.n_rows, refcheck=False)
        return block.reshape((self.n_rows, len(members)), order="F")


def lazy_array(size: int, dtype: Any) -> np.ndarray:
    """An array most of which may never be written, and then takes no memory.

    numpy asks for huge pages, of which a few values per column would write every one: a table of
    100,000 columns of few values would take as much for its values as for all of its cells. Small
    arrays are written faster in huge pages.
    """
    if size * np.dtype(dtype).itemsize <= MOST_WASTE:
        return np.empty(size, dtype=dtype)
    return mapped_bytes(size * np.dtype(dtype).itemsize).view(dtype)


def mapped_bytes(n_bytes: int) -> np.ndarray:
    """Bytes, uint8 (n_bytes,): many of them in pages of their own, that are gone with the array."""
    if n_bytes < LARGE_BUFFER or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.empty(n_bytes, dtype=np.uint8)
    memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel that knows no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint8)
