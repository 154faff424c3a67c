"""Codes by row, and the columns that a thread counts together.

A block has at most eight bytes of a row, which are one word: the codes of a column each, or those
of a bundle of columns (below). Their histograms fit the first cache, 4 KB a byte, and a row's
derivatives are read once for all of them. Blocks are as large as that, or as the threads of a tree
leave them: where rows have the same code in turn, additions wait for each other, and those of other
columns fill the time (seven columns a block instead of four: .80 of a fit of adult).

    row 17    3 0 255 12 7 1 0 44 | 9 2 0 0 1 . . .        block 0 | block 1
                  v
    cells of block 0    column 0, code 3    += rows << shift | hessian, gradient
                        column 1, code 0    += the same, by one addition of 128 bits
                        ...

The rows of a leaf are partitioned by one column, which is read where it lies close together: in the
codes by column. A fit that needs these no more lets the blocks have their memory::

    before   | column 0 | column 1 | column 2 | ...    a byte a cell
    after    | block 0                        | ...    the same bytes; partitions read every 3rd one

Columns of more codes than a byte holds are blocks of their own, and read by column. Sparse columns
stand in blocks of many, and their stored cells row by row::

    row 17     column 3, code 2 | column 40, code 1 | column 977, code 6        its stored cells

A node sums up the stored cells of its own rows by column, not those of all rows. What it reads it
adds to the cells of columns that store at least `min_rows` of its rows. Others have no split,
neither in the node nor below it. They are *out*, and nobody looks at their cells.

The fill cell of a column is what the node has beyond its stored cells. It is computed when the
column is searched. A larger child is its parent without the rows of the smaller one, whose stored
cells are taken off one by one: most columns of a text are in few rows, and stay as they are.

A bundle is of columns of which, in a row, at most one has another code than nearly all rows.
Columns of indicators are such, and others of which most rows have the same code. A row adds to one
cell for all columns of a bundle, where it would add to one for each::

    row             0   1   2   3
    soil 1          0   1   0   0       cells  0        : no column has another code
    soil 2          0   0   0   1              1 .. 3   : codes 0, 1, 2 of soil 1
    rain            0   0   7   0              4 .. 6   : codes 0, 1, 2 of soil 2
    byte            0   3  14   6              7 .. 20  : codes of rain

Each column keeps all of its cells. That of its common code is what the node has beyond the others,
and is computed when the column is searched, as the fill cell of a sparse column is. Sums are
integers, so they are those that counting gives. LightGBM (Ke and others 2017, section 4) bundles
columns that exclude each other, too, and lets some rows be wrong; here none is.
"""
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from dtrees.coding.mapped import is_mapped
from dtrees.core.data._columns cimport STORED_SPARSE, STORED_U16, STORED_U8, columns_of
from dtrees.core.data._memory cimport let_go_of_pages
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport NO_RANK, Totals

cdef extern from "stores/boosted/count_rows.h" nogil:
    void count_rows(int width, const uint32_t* rows, int64_t n, const uint8_t* codes,
                    const uint64_t* derivatives, uint64_t one, int64_t** cells)

cdef enum:
    LEAST_WIDTH = 4         # bytes of a block, on average, where several threads want one each
    SPARSE_BLOCKS = 16      # at most
    STORED_TOGETHER = 1 << 15   # stored cells of a sparse block, at least, but for the last
    MOST_COLUMNS = 0xFFFF       # of a sparse block
    MOST_CELLS = 256        # of a bundle, numbered by a byte
    MOST_OPEN = 32          # bundles that a column is tried with
    MAPPED_ROWS = 1 << 17   # of a block in a file, that are mapped at a time


cdef class ColumnBlocks:
    """The columns of a coded matrix in blocks.

    Parameters
    ----------
    coded : CodedMatrix
        Held as long as this lives.
    min_rows : int, default=1
        Of each side of a split. Sparse columns that store fewer cells are left out: they have no
        split.
    n_threads : int, default=1
        Which search a node together, so that each has a block.
    takes_codes : bool, default=False
        Whether the codes of 8 bits may become blocks where they are; `coded` has them no more then.
    is_part : bool, default=False
        Whether other members have other rows of the table. Then histograms have the same cells
        whatever the rows are: no column is left out, or bundled with others.
    empty : callable, default=numpy.empty
        Makes the array for blocks that are copied, and those of who grows from them. It may be a
        `numpy.memmap`, and so may columns: of these few pages are mapped at a time.

    Attributes
    ----------
    n_rows, n_blocks : int
    n_cells : int
        Of a histogram of all columns: ``n_codes + 1`` for each, and one for each bundle.
    n_laid_out : int
        Columns that are not left out.
    n_bundled : int
        Columns that are bundled with others.
    empty : callable

    Notes
    -----
    A byte for each cell of the columns of 8 bits, if they are copied, or else 8 for each row while
    the blocks are made; and 6 for each stored cell of sparse columns. O(cells).
    """

    def __cinit__(self, coded, int64_t min_rows=1, int64_t n_threads=1, bint takes_codes=False,
                  bint is_part=False, empty=np.empty):
        cdef int64_t b
        self.bound = columns_of(coded)
        self.columns = self.bound.columns
        self.n_rows = coded.n_rows
        self.cell_of_column = <int64_t*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(int64_t))
        self.blocks = <ColumnBlock*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(ColumnBlock))
        self.order = <int32_t*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(int32_t))
        self.cell_in_order = <int64_t*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(int64_t))
        self.bytes = <Byte*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(Byte))
        self.is_bundled = <uint8_t*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(uint8_t))
        self.places = <StridedCodes*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(StridedCodes))
        if (self.cell_of_column == NULL or self.blocks == NULL or self.order == NULL
                or self.cell_in_order == NULL or self.bytes == NULL or self.is_bundled == NULL
                or self.places == NULL):
            raise MemoryError
        self.kept = []
        self.empty = empty
        self._lay_out(coded, 0 if is_part else min_rows, n_threads, is_part)
        taken = coded.give_up_narrow() if takes_codes and self.n_bytes > 0 else None
        dense = [own for own in (coded.u8, coded.u16, coded.u32) if own.size > 0]
        if dense and all(map(is_mapped, dense)):
            self.mapped_rows = self.n_rows
        for b in range(self.n_blocks):
            if not self.blocks[b].is_sparse:
                self.blocks[b].mapped_rows = self.mapped_rows
        if taken is None:
            room = empty(self.n_rows * self.n_bytes + 1, dtype=np.uint8)
            self._copy_codes(room, is_mapped(room))
        else:
            self._take_codes(taken)

    def __dealloc__(self):
        PyMem_RawFree(self.blocks)
        PyMem_RawFree(self.cell_of_column)
        PyMem_RawFree(self.order)
        PyMem_RawFree(self.cell_in_order)
        PyMem_RawFree(self.bytes)
        PyMem_RawFree(self.is_bundled)
        PyMem_RawFree(self.places)

    cdef _lay_out(self, coded, int64_t min_rows, int64_t n_threads, bint is_part):
        """Choose the block of each column, and where its cells and bytes are."""
        cdef ColumnBlock* block = NULL
        cdef int64_t b, i, j, n_bytes, n_narrow
        storage = np.asarray(coded.storage)
        narrow, sparse = storage == STORED_U8, storage == STORED_SPARSE
        bundles = [[j] for j in np.flatnonzero(narrow).tolist()]
        if not is_part:
            bundles = bundles_of(self.columns, np.flatnonzero(narrow).tolist(), self.n_rows)
        n_bytes = len(bundles)
        n_narrow = blocks_of_bytes(n_bytes, n_threads)
        for b in range(n_narrow):
            block = self._begin_block()
            block.is_narrow = True
            block.bytes = self.bytes + self.n_bytes
            for i in range(b * n_bytes // n_narrow, (b + 1) * n_bytes // n_narrow):
                self._append_byte(block, bundles[i])
        for j in np.flatnonzero(~narrow & ~sparse).tolist():
            self._append(self._begin_block(), j)
        self._lay_out_sparse(
            [j for j in np.flatnonzero(sparse).tolist() if self.columns[j].stored >= min_rows]
        )

    cdef ColumnBlock* _begin_block(self):
        cdef ColumnBlock* block = self.blocks + self.n_blocks
        self.n_blocks += 1
        block.first_cell = self.n_cells
        block.column = self.order + self.n_laid_out
        block.cell = self.cell_in_order + self.n_laid_out
        return block

    cdef void _append_byte(self, ColumnBlock* block, list columns):
        """The next byte of a row: a column, or a bundle, whose first cell is no column's."""
        cdef Byte* byte = self.bytes + self.n_bytes
        cdef bint is_bundle = len(columns) > 1
        cdef int64_t j
        byte.first_cell = self.n_cells
        byte.n_columns = len(columns)
        byte.column = self.order + self.n_laid_out
        self.n_cells += is_bundle
        block.n_cells += is_bundle
        for j in columns:
            self._append(block, j)
            self.is_bundled[j] = is_bundle
            self.n_bundled += is_bundle
        self.n_bytes += 1
        block.n_bytes += 1

    cdef void _append(self, ColumnBlock* block, int64_t j) noexcept:
        self.order[self.n_laid_out] = <int32_t>j
        self.cell_in_order[self.n_laid_out] = self.n_cells
        self.cell_of_column[j] = self.n_cells
        self.n_laid_out += 1
        block.n_columns += 1
        block.n_cells += self.columns[j].n_codes + 1
        self.n_cells += self.columns[j].n_codes + 1

    cdef _lay_out_sparse(self, columns):
        """Sparse columns, in blocks that store about as much as each other."""
        cdef ColumnBlock* block = NULL
        cdef int64_t stored = 0
        cdef int64_t j, most
        for j in columns:
            stored += self.columns[j].stored
        most = max(stored // SPARSE_BLOCKS + 1, <int64_t>STORED_TOGETHER)
        stored = most
        for j in columns:
            if stored >= most or block.n_columns == MOST_COLUMNS:
                if block != NULL:
                    self.kept += stored_by_row(self.columns, block.column, block.n_columns,
                                               block.cell, self.n_rows, &block.stored)
                block = self._begin_block()
                block.is_sparse = True
                stored = 0
            self._append(block, j)
            stored += self.columns[j].stored
        if block != NULL:
            self.kept += stored_by_row(self.columns, block.column, block.n_columns, block.cell,
                                       self.n_rows, &block.stored)

    cdef _copy_codes(self, uint8_t[::1] room, bint in_file):
        """Make the blocks; the columns stay, and are what rows are partitioned by."""
        cdef int64_t b, j, n
        cdef uint8_t* codes = &room[0]
        self.kept.append(room)
        for b in range(self.n_blocks):
            if self.blocks[b].is_narrow:
                self.blocks[b].codes = codes
                self.blocks[b].mapped_rows = self.n_rows if in_file else 0
                n = self.n_rows * self.blocks[b].n_bytes
                with nogil:
                    copy_block(self.blocks + b, self.columns, self.cell_of_column, self.n_rows,
                               codes)
                    if in_file:
                        let_go_of_pages(codes, n)
                    for j in range(self.blocks[b].n_columns if self.mapped_rows > 0 else 0):
                        let_go_of_column(self.columns + self.blocks[b].column[j], self.n_rows)
                codes += n
        for j in range(self.bound.n_columns):
            if self.columns[j].storage == STORED_U8:
                self.places[j] = StridedCodes(<const uint8_t*>self.columns[j].codes, 1, 0)

    cdef _take_codes(self, uint8_t[::1] taken):
        """Make the blocks where the columns are, column after column, in their order.

        A block takes the place of as many columns as it has bytes. They are in it, or in a bundle
        before it.
        """
        cdef uint8_t* codes = &taken[0]
        cdef uint8_t* room
        cdef ColumnBlock* block
        cdef int64_t b
        self.kept.append(taken)
        room = <uint8_t*>PyMem_RawMalloc(self.n_rows * WIDTH)
        if room == NULL:
            raise MemoryError
        for b in range(self.n_blocks):
            block = self.blocks + b
            if block.is_narrow:
                block.codes = codes
                with nogil:
                    copy_block(block, self.columns, self.cell_of_column, self.n_rows, room)
                    memcpy(codes, room, self.n_rows * block.n_bytes)
                self._place_columns(block)
                codes += self.n_rows * block.n_bytes
        PyMem_RawFree(room)

    cdef void _place_columns(self, const ColumnBlock* block) noexcept:
        """The columns of a block are read from it."""
        cdef const Byte* byte
        cdef int64_t k
        cdef int32_t column
        cdef int j
        for j in range(block.n_bytes):
            byte = block.bytes + j
            for k in range(byte.n_columns):
                column = byte.column[k]
                self.places[column] = StridedCodes(
                    block.codes + j, block.n_bytes, self.cell_of_column[column] - byte.first_cell
                )


cdef int64_t blocks_of_bytes(int64_t n_bytes, int64_t n_threads) noexcept:
    """Blocks of the bytes of a row: as few as hold them, and as many for each thread."""
    cdef int64_t least = (n_bytes + WIDTH - 1) // WIDTH
    cdef int64_t shared = (least + n_threads - 1) // n_threads * n_threads
    return max(least, min(shared, n_bytes // LEAST_WIDTH))


cdef void copy_block(const ColumnBlock* block, const Column* columns,
                     const int64_t* cell_of_column, int64_t n_rows, uint8_t* out) noexcept nogil:
    """Write the bytes of all rows, row by row, from the codes of columns."""
    cdef const uint8_t* of_byte[WIDTH]
    cdef const Byte* byte
    cdef int64_t width = block.n_bytes
    cdef int64_t i
    cdef int32_t column
    cdef int j, k
    for j in range(width):
        of_byte[j] = <const uint8_t*>columns[block.bytes[j].column[0]].codes
    for i in range(n_rows):
        for j in range(width):
            out[i * width + j] = of_byte[j][i]
    for j in range(width):
        byte = block.bytes + j
        if byte.n_columns == 1:
            continue
        for i in range(n_rows):
            out[i * width + j] = 0
        for k in range(byte.n_columns):
            column = byte.column[k]
            add_codes(columns + column, cell_of_column[column] - byte.first_cell, n_rows, out + j,
                      width)


# ---------------------------------------------------------------------------------------------
# sparse columns

cdef list stored_by_row(const Column* columns, const int32_t* column, int64_t n_columns,
                        const int64_t* first_cell, int64_t n_rows, SparseCells* out):
    """Sort the stored cells of some columns by their rows; returns the arrays to be kept.

    Stored cells of the fill code are left out. O(stored cells + rows).
    """
    cdef int64_t[::1] start = np.zeros(n_rows + 2, dtype=np.int64)
    cdef uint32_t[::1] cell
    cdef uint16_t[::1] place
    cdef const Column* own
    cdef const uint32_t* codes
    cdef int64_t c, i, at
    for c in range(n_columns):
        own = columns + column[c]
        codes = <const uint32_t*>own.codes
        for i in range(own.stored):
            start[own.rows[i] + 2] += codes[i] != own.fill
    for i in range(1, n_rows + 2):
        start[i] += start[i - 1]
    cell = np.empty(start[n_rows + 1] + 1, dtype=np.uint32)
    place = np.empty(start[n_rows + 1] + 1, dtype=np.uint16)
    for c in range(n_columns):
        own = columns + column[c]
        codes = <const uint32_t*>own.codes
        for i in range(own.stored):
            if codes[i] != own.fill:
                at = start[own.rows[i] + 1]
                cell[at] = <uint32_t>(first_cell[c] + codes[i])
                place[at] = <uint16_t>c
                start[own.rows[i] + 1] = at + 1
    out.n_columns = n_columns
    out.column = column
    out.first_cell = first_cell
    out.start = &start[0]
    out.cell = &cell[0]
    out.place = &place[0]
    return [start, cell, place]


# ---------------------------------------------------------------------------------------------
# bundles

cdef void mark_others(const Column* column, int64_t n_rows, uint64_t* bits) noexcept nogil:
    """A bit for each row that has another code than the common one, OUT."""
    cdef const uint8_t* codes = <const uint8_t*>column.codes
    cdef int64_t i
    memset(bits, 0, (n_rows // 64 + 1) * sizeof(uint64_t))
    for i in range(n_rows):
        bits[i >> 6] |= <uint64_t>(codes[i] != column.common) << (i & 63)


cdef bint are_apart(const uint64_t* bits, const uint64_t* others, int64_t n_words) noexcept nogil:
    cdef int64_t i
    for i in range(n_words):
        if bits[i] & others[i]:
            return False
    return True


cdef list bundles_of(const Column* columns, list narrow, int64_t n_rows):
    """Columns of 8 bits in bundles, in the order of their first columns; most are alone.

    A column joins the first bundle that it fits, of the last `MOST_OPEN`. O(rows x columns with a
    common code); columns that do not exclude each other are told apart by their first such row.
    """
    cdef int64_t n_words = n_rows // 64 + 1
    cdef list found = []
    cdef list open_ones = []        # (columns, cells, rows that are taken)
    cdef uint64_t[::1] own = np.empty(n_words, dtype=np.uint64)
    cdef uint64_t[::1] taken
    cdef int64_t n_cells, j, i, k
    for j in narrow:
        if columns[j].common == NO_RANK or not PATH_IS_ON("bundles"):
            found.append([j])
            continue
        n_cells = columns[j].n_codes + 1
        mark_others(columns + j, n_rows, &own[0])
        for k in range(len(open_ones)):
            taken = open_ones[k][2]
            if (open_ones[k][1] + n_cells <= MOST_CELLS
                    and are_apart(&own[0], &taken[0], n_words)):
                open_ones[k][0].append(j)
                open_ones[k][1] += n_cells
                for i in range(n_words):
                    taken[i] |= own[i]
                break
        else:
            columns_of_it = [j]
            found.append(columns_of_it)
            open_ones.append([columns_of_it, 1 + n_cells, np.array(own)])
            if len(open_ones) > MOST_OPEN:
                del open_ones[0]
    return found


cdef void add_codes(const Column* column, int64_t first, int64_t n_rows, uint8_t* codes,
                    int64_t stride) noexcept nogil:
    """Let rows have the cells of a column, where it has another code.

    first : cell of its code 0, in the bundle. codes : of row 0, `stride` bytes a row.
    """
    cdef const uint8_t* own = <const uint8_t*>column.codes
    cdef int64_t i
    for i in range(n_rows):
        if own[i] != column.common:
            codes[i * stride] = <uint8_t>(first + own[i])


cdef bint complete_bundled(const Column* column, const Totals* totals, int shift, int64_t min_rows,
                           int64_t* cells) noexcept nogil:
    """Compute the cell of the common code; whether the column may have a split in the node.

    It has none where fewer than `min_rows` rows have other codes. O(codes).
    """
    cdef int64_t* common = cells + CELL * <int64_t>column.common
    cdef uint64_t first = 0
    cdef uint64_t second = 0
    cdef int64_t code
    common[0] = 0
    common[1] = 0
    for code in range(<int64_t>column.n_codes + 1):
        first += <uint64_t>cells[CELL * code]
        second += <uint64_t>cells[CELL * code + 1]
    if <int64_t>(first >> shift) < min_rows:
        return False
    write_rest(totals, shift, first, second, common)
    return True


# ---------------------------------------------------------------------------------------------
# counts

cdef inline void add_words(int64_t* cell, uint64_t first, uint64_t second) noexcept nogil:
    """Rows beside hessians fill a word to its last bit, so words wrap around: no signs here."""
    cell[0] = <int64_t>(<uint64_t>cell[0] + first)
    cell[1] = <int64_t>(<uint64_t>cell[1] + second)


cdef inline uint64_t first_of(uint64_t derivatives, int shift) noexcept nogil:
    """A row and its hessian."""
    return (<uint64_t>1 << shift) + (derivatives & <uint64_t>0xFFFFFFFF)


cdef inline uint64_t second_of(uint64_t derivatives) noexcept nogil:
    """The gradient of a row."""
    return <uint64_t>(<int64_t>derivatives >> 32)


cdef inline void write_rest(const Totals* totals, int shift, uint64_t first, uint64_t second,
                            int64_t* cell) noexcept nogil:
    """Write what a node has beyond some sums to a cell."""
    cell[0] = <int64_t>((<uint64_t>totals.n << shift) + <uint64_t>totals.weight - first)
    cell[1] = <int64_t>(<uint64_t>totals.target - second)


cdef inline void add_to_sums(StoredSums* sums, uint64_t derivatives, int shift) noexcept nogil:
    cdef int64_t gradient = <int64_t>derivatives >> 32
    sums.first += first_of(derivatives, shift)
    sums.second += <uint64_t>gradient
    sums.size += <uint64_t>(-gradient if gradient < 0 else gradient)


cdef void count_by_column(const SparseCells* stored, const Column* columns, const RowsOfNode* node,
                          StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Sum and count all rows of the table, which needs no look at what stands by row.

    O(stored cells + cells).
    """
    cdef const Column* column
    cdef const uint32_t* codes
    cdef StoredSums own
    cdef int64_t* cell
    cdef uint64_t derivatives
    cdef int64_t c, i
    for c in range(stored.n_columns):
        column = columns + stored.column[c]
        codes = <const uint32_t*>column.codes
        cell = histogram + CELL * stored.first_cell[c]
        memset(cell, 0, CELL * (<int64_t>column.n_codes + 1) * sizeof(int64_t))
        memset(&own, 0, sizeof(StoredSums))
        for i in range(column.stored):
            if codes[i] != column.fill:
                derivatives = node.derivatives[column.rows[i]]
                add_to_sums(&own, derivatives, node.shift)
                add_words(cell + CELL * <int64_t>codes[i], first_of(derivatives, node.shift),
                          second_of(derivatives))
        sums[c] = own


cdef void sum_by_row(const SparseCells* stored, const RowsOfNode* node,
                     StoredSums* sums) noexcept nogil:
    """Sums of the rows of a node in each column; O(stored cells of the rows + columns)."""
    cdef uint64_t derivatives
    cdef int64_t i, k, row
    memset(sums, 0, stored.n_columns * sizeof(StoredSums))
    for i in range(node.n):
        row = node.rows[i]
        derivatives = node.derivatives[row]
        for k in range(stored.start[row], stored.start[row + 1]):
            add_to_sums(sums + stored.place[k], derivatives, node.shift)


cdef inline void add_by_row(const SparseCells* stored, const RowsOfNode* node,
                            const StoredSums* sums, uint64_t sign,
                            int64_t* histogram) noexcept nogil:
    """Add rows to a histogram, or take them off, in columns that are not out; sign : 1 or -1."""
    cdef uint64_t first, second
    cdef int64_t i, k, row
    for i in range(node.n):
        row = node.rows[i]
        first = sign * first_of(node.derivatives[row], node.shift)
        second = sign * second_of(node.derivatives[row])
        for k in range(stored.start[row], stored.start[row + 1]):
            if not is_out(sums + stored.place[k]):
                add_words(histogram + CELL * <int64_t>stored.cell[k], first, second)


cdef void count_by_row(const SparseCells* stored, const Column* columns, const RowsOfNode* node,
                       const StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Count the rows of a node in the columns that are not out.

    histogram : of all columns; cells of these may hold anything.
    O(stored cells of the rows + cells of the columns that are counted).
    """
    cdef int64_t c
    for c in range(stored.n_columns):
        if not is_out(sums + c):
            memset(histogram + CELL * stored.first_cell[c], 0,
                   CELL * (<int64_t>columns[stored.column[c]].n_codes + 1) * sizeof(int64_t))
    add_by_row(stored, node, sums, 1, histogram)


cdef void take_off_stored(const SparseCells* stored, const RowsOfNode* node,
                          const StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Take rows off a histogram that they are in. O(stored cells of the rows)."""
    add_by_row(stored, node, sums, <uint64_t>-1, histogram)


cdef void complete_column(const Column* column, const StoredSums* sums, const Totals* totals,
                          int shift, int64_t* cells) noexcept nogil:
    """Compute the fill cell of a column: what the node has beyond its stored cells."""
    write_rest(totals, shift, sums.first, sums.second, cells + CELL * <int64_t>column.fill)


cdef void count_wide(const Column* column, const uint32_t* rows, int64_t n,
                     const uint64_t* derivatives, int shift, int64_t* cells) noexcept nogil:
    """Rows of one column of more codes."""
    cdef int64_t i
    cdef uint32_t row, code
    for i in range(n):
        row = <uint32_t>i if rows == NULL else rows[i]
        if column.storage == STORED_U16:
            code = (<const uint16_t*>column.codes)[row]
        else:
            code = (<const uint32_t*>column.codes)[row]
        add_words(cells + CELL * <int64_t>code, first_of(derivatives[row], shift),
                  second_of(derivatives[row]))


cdef void let_go_of_column(const Column* column, int64_t n_rows) noexcept nogil:
    """Let go of the pages of a dense column of a mapped file."""
    let_go_of_pages(column.codes, n_rows << column.storage)


cdef int64_t first_from(const uint32_t* rows, int64_t begin, int64_t end,
                        int64_t row) noexcept nogil:
    """Place of the first of some rows, which ascend, that is this one or comes behind it."""
    cdef int64_t middle
    if rows == NULL:
        return min(row, end)
    while begin < end:
        middle = (begin + end) // 2
        if rows[middle] < row:
            begin = middle + 1
        else:
            end = middle
    return begin


cdef void count_mapped(const ColumnBlock* block, const uint32_t* rows, int64_t n,
                       const uint64_t* derivatives, uint64_t one, int64_t** cells) noexcept nogil:
    """Count a block of bytes in a file, some rows after the others."""
    cdef int64_t width = block.n_bytes
    cdef int64_t begin = 0
    cdef int64_t end, row
    while begin < n:
        row = (begin if rows == NULL else <int64_t>rows[begin]) // MAPPED_ROWS * MAPPED_ROWS
        end = first_from(rows, begin, n, row + MAPPED_ROWS)
        if rows == NULL:
            count_rows(width, NULL, end - begin, block.codes + begin * width, derivatives + begin,
                       one, cells)
        else:
            count_rows(width, rows + begin, end - begin, block.codes, derivatives, one, cells)
        let_go_of_pages(block.codes + row * width,
                        (min(row + MAPPED_ROWS, block.mapped_rows) - row) * width)
        begin = end


cdef void count_block(const ColumnBlock* block, const Column* columns, const uint32_t* rows,
                      int64_t n, const uint64_t* derivatives, int shift,
                      int64_t* histogram) noexcept nogil:
    """Add rows of a node to the cells of a block, which is not sparse; bundles are not completed.

    rows : ascending, (n,); NULL: the first n rows of the table
    derivatives : by row: gradient << 32 | hessian
    histogram : of all columns
    """
    cdef int64_t* cells[WIDTH]
    cdef int j
    if n == 0:
        return
    for j in range(block.n_bytes):
        cells[j] = histogram + CELL * block.bytes[j].first_cell
    if block.is_narrow and block.mapped_rows > 0:
        count_mapped(block, rows, n, derivatives, <uint64_t>1 << shift, cells)
    elif block.is_narrow:
        count_rows(block.n_bytes, rows, n, block.codes, derivatives, <uint64_t>1 << shift, cells)
    else:
        count_wide(columns + block.column[0], rows, n, derivatives, shift,
                   histogram + CELL * block.first_cell)
        if block.mapped_rows > 0:
            let_go_of_column(columns + block.column[0], block.mapped_rows)
