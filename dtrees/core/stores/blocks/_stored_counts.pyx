"""Histograms of sparse columns as lists: the places that are not zero, and what stands there.

    histogram of all columns    0 0 0 4 0 2 0 0 ...  0 0 1 0 ...        never made
    place                       3  5  90,412                            ascending
    value                       4  2  1

A place is a number of the histogram of all columns, dense and sparse ones, as if each had all of
its codes. The cell of the fill code is not counted: it is what the node has beyond the others
([SP] 3), which only who has the sums of all blocks can tell (`_histogram_store`). So a list has at
most a few numbers for each stored cell of the rows of the node, however many columns and codes
there are. Lists add up by merging (`_stored_lists`).

The cells of a block lie by column and code (`_stored_cells`). There are two ways to those of a
node. Either all cells of the columns are looked at, and those are skipped whose row is not in the
node; or the cells of its rows are marked, a bit each, and the marks are read in their order::

    by column    O(cells of the columns in the block)                  large nodes, few columns
    by row       O(cells of the rows of the node + cells / 64)         small nodes, all columns

A cell that is marked costs about four that are looked at (`MARKED`).
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._bits cimport count_bits, trailing_zeros
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.blocks._cell_lists cimport CellLists, Cells, end_cell, take
from dtrees.core.stores.blocks._stored_cells cimport StoredCells, stored_cells_of

cdef enum:
    MARKED = 4              # what a cell costs that is marked, in cells that are looked at


cdef struct Counting:
    # Of a node.
    int64_t n_columns           # as `StoredCells`
    const int64_t* start
    const int32_t* row
    const uint32_t* code
    const int64_t* first
    uint32_t* number            # by row: its number in the node from 1 on; 0: it is not there
    uint64_t* marks             # a bit for each cell; NULL: the columns are looked at
    const int64_t* start_of_row
    const uint32_t* cell_of_row
    Cells* cells                # that are added up


cdef class StoredCounter:
    """Counts the stored cells of nodes of a block, one after the other.

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    coded : CodedMatrix
        Whose rows these are.

    Attributes
    ----------
    by_row, by_column : int
        Nodes whose cells were marked, and of which all cells of the columns were looked at.
    """
    cdef Dataset dataset
    cdef StoredCells cells
    cdef uint32_t[::1] number
    cdef uint64_t[::1] marks        # of the last node whose cells were marked
    cdef readonly int64_t by_row
    cdef readonly int64_t by_column

    def __init__(self, Dataset dataset, coded):
        self.dataset = dataset
        self.cells = stored_cells_of(coded)
        self.number = np.zeros(coded.n_rows, dtype=np.uint32)

    def count(self, node, uint64_t members, columns=None):
        """The histograms of the sparse ones among some columns.

        Parameters
        ----------
        node : NodeRows
        members : int
            A bit for each training set that is asked for.
        columns : int32 (k,) or None, default=None
            In any order; None: all.

        Returns
        -------
        places, values : int64 (n,)
        who : uint64 (n,) or None
            A list (`_stored_lists`).

        Raises
        ------
        MemoryError
        """
        cdef const uint32_t[::1] rows = node.rows
        cdef int32_t[::1] numbers = self.numbers_of(columns)
        cdef CellLists lists
        cdef Counting c
        cdef bint fits
        if len(rows) == 0 or members == 0 or self.cells.n_stored == 0 or (
                numbers is not None and len(numbers) == 0):
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, nothing.view(np.uint64) if count_bits(members) > 1 else None
        lists = CellLists(self.dataset, node, members)
        memset(&c, 0, sizeof(Counting))
        c.cells = &lists.cells
        self.begin(&c, self.is_by_row(rows, numbers))
        with nogil:
            fits = count_rows(&c, rows, numbers)
        if not fits:
            raise MemoryError
        return lists.found()

    cdef begin(self, Counting* c, bint by_row):
        """Tell where the cells are."""
        c.number = &self.number[0]
        c.n_columns = self.cells.n_columns
        c.start = &self.cells.start[0]
        c.row = &self.cells.row[0]
        c.code = &self.cells.code[0]
        c.first = &self.cells.first[0]
        self.by_row += by_row
        self.by_column += not by_row
        if by_row:
            self.cells.make_rows()
            self.marks = np.zeros(self.cells.n_stored // 64 + 1, dtype=np.uint64)
            c.marks = &self.marks[0]
            c.start_of_row = &self.cells.start_of_row[0]
            c.cell_of_row = &self.cells.cell_of_row[0]

    cdef int32_t[::1] numbers_of(self, columns):
        """Numbers of the sparse ones among some columns, ascending; None: all."""
        if columns is None:
            return None
        numbers = np.asarray(self.cells.number)[columns]
        return np.sort(numbers[numbers >= 0])

    cdef bint is_by_row(self, const uint32_t[::1] rows, const int32_t[::1] numbers):
        """Whether marking the cells of some rows costs less than looking at all of the columns."""
        cdef StoredCells cells = self.cells
        cdef int64_t of_columns = cells.n_stored if numbers is None else 0
        cdef double of_rows = <double>cells.n_stored * len(rows) / cells.n_rows  # about
        cdef int64_t i
        if cells.n_stored >= 0xFFFFFFFF:
            return False
        for i in range(0 if numbers is None else len(numbers)):
            of_columns += cells.start[numbers[i] + 1] - cells.start[numbers[i]]
        return MARKED * of_rows + cells.n_stored // 64 < of_columns


cdef bint count_rows(Counting* c, const uint32_t[::1] rows,
                     const int32_t[::1] numbers) noexcept nogil:
    """Count; False without memory."""
    cdef int64_t n = len(rows)
    cdef bint fits
    cdef int64_t i
    for i in range(n):
        c.number[rows[i]] = <uint32_t>(i + 1)
    if c.marks == NULL:
        fits = count_all(c, numbers)
    else:
        fits = count_marked(c, rows, numbers)
    for i in range(n):
        c.number[rows[i]] = 0
    return fits and end_cell(c.cells)


cdef bint count_all(Counting* c, const int32_t[::1] numbers) noexcept nogil:
    """Look at all cells of the columns."""
    cdef int64_t n = c.n_columns if numbers is None else len(numbers)
    cdef int64_t i, k, p
    cdef uint32_t number
    for i in range(n):
        k = i if numbers is None else numbers[i]
        for p in range(c.start[k], c.start[k + 1]):
            number = c.number[c.row[p]]
            if number != 0 and not take(c.cells, c.first[k] + c.code[p],
                                        number - <int64_t>1):
                return False
    return True


cdef bint count_marked(Counting* c, const uint32_t[::1] rows,
                       const int32_t[::1] numbers) noexcept nogil:
    """Mark the cells of the rows, and read the marks; all columns, or some of them."""
    cdef int64_t i, p
    cdef uint32_t cell
    for i in range(len(rows)):
        for p in range(c.start_of_row[rows[i]], c.start_of_row[rows[i] + <int64_t>1]):
            cell = c.cell_of_row[p]
            c.marks[cell >> 6] |= <uint64_t>1 << (cell & 63)
    if numbers is None:
        return read_marks(c, 0, c.start[c.n_columns], 0)
    for i in range(len(numbers)):
        if not read_marks(c, c.start[numbers[i]], c.start[numbers[i] + 1], numbers[i]):
            return False
    return True


cdef bint read_marks(Counting* c, int64_t begin, int64_t end, int64_t k) noexcept nogil:
    """Count the marked cells of begin..end; k : a column at or before the first."""
    cdef int64_t w, p
    cdef uint64_t bits
    if begin >= end:
        return True
    for w in range(begin >> 6, (end - 1 >> 6) + 1):
        bits = c.marks[w]
        if 64 * w < begin:
            bits &= ~<uint64_t>0 << (begin & 63)
        if 64 * (w + 1) > end:
            bits &= ~<uint64_t>0 >> (64 * (w + 1) - end)
        while bits != 0:
            p = 64 * w + trailing_zeros(bits)
            bits &= bits - 1
            if p >= c.start[k + 1]:
                k = stretch_of(c.start, k + 1, c.n_columns, p)
            if not take(c.cells, c.first[k] + c.code[p],
                        c.number[c.row[p]] - <int64_t>1):
                return False
    return True


cdef int64_t stretch_of(const int64_t* start, int64_t k, int64_t n, int64_t p) noexcept nogil:
    """The stretch, k or behind it, of n, whose cells begin at p or before; start[k] <= p."""
    cdef int64_t step = 1
    cdef int64_t high, middle
    while k + step < n and start[k + step] <= p:
        k += step
        step *= 2
    high = min(k + step, n)
    while high - k > 1:
        middle = (k + high) >> 1
        if start[middle] <= p:
            k = middle
        else:
            high = middle
    return k
