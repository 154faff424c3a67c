"""Count the smaller child, subtract, search both; partition the rows of a leaf in place.

A job has a chunk for each block of columns, which no other touches::

    chunk b    clear the cells of block b of the smaller child; count its rows
               cells of the larger child = cells of the node - cells of the smaller child
               search both children in the columns of block b

Of sparse columns, stored cells of the smaller child's rows are taken off those of the node.

The histogram of the node becomes that of its larger child. Histograms of leaves that are not
searched any more are used again.

Most sparse columns are not searched, as a bound says what they can gain at most in the larger child
of a node. With l2 on each side, a boundary between sides of gradients s, t and hessians a, b (l2 in
them) has the score::

    s*s/a + t*t/b  =  (s + t)**2 / (a + b)  +  (s - a*m)**2 * (1/a + 1/b),    m = (s + t) / (a + b)

The first summand is the same for all boundaries of a node. The root of the second one is what a
boundary is worth. Rows that leave the node take x of s and y of a, and m moves. So with a - y for
a, and so on, |s - a*m| grows by no more than ``|x| + y*|m| + (a - y) * |change of m|``.

    a column keeps     most     a bound of what its boundaries are worth
                       least    a bound of a, of the side without the fill cell

    after a search     what its best boundary is worth
    rows leave         the bound grows as above: a little, where few of them are stored
    next search        left out if the bound is below the score of the best column so far

Sides only lose rows, so a boundary that is allowed in a child was allowed in the node. A column
without one is *out*, with all nodes below. Columns with categories, missing values and those of
monotonic models have no bound, and are searched always.

Bounds are rounded upwards, by much more than doubles may err.

Where others have rows too, each member adds up and searches a *part* of the columns, and tells the
others what it has found: a split, the sums of its left side, and of a subset the codes::

    member 0   count all columns ──┬── sums of columns 0 .. 14  ── search ──┬── best of both
    member 1   count all columns ──┴── sums of columns 15 .. 29 ── search ──┴── best of both

The cells of other columns in a histogram are of no use then.

A tree of several outputs has a histogram for each of them, one behind the other. Rows are the same
in all of them, and so are the hessians of some losses. Otherwise a side weighs what their mean is.
A boundary is permitted in all or none, and scores are added up. Sparse columns have no bounds then,
and are out where they have too few rows.
"""
from libc.math cimport INFINITY, fabs, fmax, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport (
    STORED_SPARSE, STORED_U16, STORED_U32, STORED_U8, Column, last_ordered, next_code,
    words_of_subset
)
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport ALL_ORDERED, GRADIENT, IN_SUBSET, NO_RANK, Split, Totals
from dtrees.core.histogram._layout cimport GRADIENTS, decode_gradients, subtract_words, words_of
from dtrees.core.search._bins cimport reserve_bins, search_histogram
from dtrees.core.search._criterion cimport NONE, Criterion, mean_hessian
from dtrees.core.search._gradient_scan cimport scan_gradients, scan_outputs
from dtrees.core.search._open_node cimport OpenNode, open_children
from dtrees.core.search._parameters cimport Limits, TrainParameters, may_use
from dtrees.core.search._search cimport Search, begin_node, enlarge, is_bound
from dtrees.core.stores._dataset cimport bind_constraints
from dtrees.core.stores._partition cimport Route, goes_left, route_of
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.boosted._column_blocks cimport (
    CELL, ColumnBlock, ColumnBlocks, RowsOfNode, StoredSums, StridedCodes, complete_bundled,
    complete_column, count_block, count_by_column, count_by_row, is_out, let_go_of_column,
    sum_by_row, take_off_stored
)

cdef extern from "stores/partition.h" nogil:
    void fill_in_front() noexcept
    int64_t partition_eights_by_code(uint32_t*, int64_t, const uint8_t*, int64_t, const uint8_t*,
                                     uint32_t*) noexcept

cdef double UPWARDS = 1.0 + 1e-9
cdef double OUT = -1.0

fill_in_front()


cdef BoostedStore boosted_store() noexcept nogil:
    """A store without rows."""
    cdef BoostedStore s
    memset(&s, 0, sizeof(BoostedStore))
    s.n_outputs = 1
    s.store.choose = choose
    s.store.partition = partition
    s.store.codes.same = True
    return s


cdef void bind_blocks(BoostedStore* s, ColumnBlocks blocks) noexcept:
    """Let a store have the codes of a table."""
    s.blocks = s.searched = blocks.blocks
    s.n_blocks = blocks.n_blocks
    s.n_rows = blocks.n_rows
    s.n_cells = blocks.n_cells
    s.cell_of_column = blocks.cell_of_column
    s.is_bundled = blocks.is_bundled
    s.places = blocks.places
    s.mapped_rows = blocks.mapped_rows
    s.n_sums = blocks.n_laid_out if blocks.bound.has_sparse else 0
    s.order = blocks.order


cdef list bind_rules(TrainParameters* params, ColumnBlocks blocks, rules, int shift):
    """Describe trees of a boosted model, but for what each has of its own.

    rules : dtrees.core.data.rules.BoostingRules. shift : as for the layout. Returns arrays whose
    memory the parameters point to.
    """
    cdef list alive = []
    params.columns = blocks.columns
    params.n_statistics = 2
    params.criterion.impurity = GRADIENT
    params.criterion.weight_unit = 1.0
    params.layout.kind = GRADIENTS
    params.layout.impurity = GRADIENT
    params.layout.n_words = words_of(GRADIENTS, 0)
    params.layout.shift = shift
    params.limits.max_depth = UNLIMITED if rules.max_depth is None else rules.max_depth
    params.limits.min_samples_split = rules.min_samples_split
    params.limits.min_rows = rules.min_samples_leaf
    params.limits.total_weight = 1.0
    params.limits.unseen_by_majority = rules.handle_unknown == "majority"
    params.limits.n_columns = blocks.bound.n_columns
    params.limits.seed = rules.seed
    bind_constraints(&params.limits, rules, alive)
    if rules.has_regularized_steps:
        params.limits.scores_by_values = True
    return alive


# ---------------------------------------------------------------------------------------------
# histograms

cdef int64_t* take_histogram(BoostedStore* s) noexcept nogil:
    """A histogram whose cells may hold anything; NULL without memory."""
    if s.n_free > 0:
        s.n_free -= 1
        return s.free_histograms[s.n_free]
    return <int64_t*>malloc(s.n_outputs * to_next_output(s) * sizeof(int64_t))


cdef int64_t to_next_output(const BoostedStore* s) noexcept nogil:
    """Words from a histogram to that of the next output: cells are added to by 128 bits."""
    return (size_of_histogram(s) + 1) // 2 * 2


cdef int64_t size_of_histogram(const BoostedStore* s) noexcept nogil:
    """Words of the histogram of an output, with the sums of sparse columns and of the node."""
    return CELL * s.n_cells + WORDS_OF_SUMS * s.n_sums + SUMS_OF_NODE


cdef inline StoredSums* sums_of(BoostedStore* s, const ColumnBlock* block,
                                int64_t* histogram) noexcept nogil:
    """The sums of a sparse block, which stand behind the cells of all columns."""
    return <StoredSums*>(histogram + CELL * s.n_cells) + (block.column - s.order)


cdef void give_back_histogram(BoostedStore* s, OpenNode* node) noexcept nogil:
    """A node needs its histogram no more. There is room: a place for every leaf."""
    if node.histogram != NULL:
        s.free_histograms[s.n_free] = node.histogram
        s.n_free += 1
        node.histogram = NULL


# ---------------------------------------------------------------------------------------------
# parts of histograms

cdef enum:
    WORDS_OF_SUMS = 5       # of `StoredSums`


cdef Part part_of(const BoostedStore* s, ColumnBlocks blocks, int64_t number,
                  int64_t n_parts) noexcept:
    """One of some parts of about as many cells. O(columns)."""
    cdef int64_t[2] place
    cdef int64_t[2] cell
    cdef int64_t k, i
    for k in range(2):
        i = 0
        while i < blocks.n_laid_out and (
                blocks.cell_in_order[i] * n_parts < s.n_cells * (number + k)):
            i += 1
        place[k] = i
        cell[k] = blocks.cell_in_order[i] if i < blocks.n_laid_out else s.n_cells
    return Part(place[0], place[1], cell[0], cell[1] - cell[0])


cdef void bind_part(ColumnBlock* searched, const BoostedStore* s, const Part* part) noexcept:
    """The columns of a part, block by block; searched : (n_blocks,), OUT."""
    cdef const ColumnBlock* block
    cdef ColumnBlock* own
    cdef int64_t b, start, first, end, i
    for b in range(s.n_blocks):
        block = s.blocks + b
        own = searched + b
        own[0] = block[0]
        start = block.column - s.order
        first = min(max(part.first - start, 0), <int64_t>block.n_columns)
        end = min(max(part.end - start, first), <int64_t>block.n_columns)
        own.column = block.column + first
        own.cell = block.cell + first
        own.n_columns = <int>(end - first)
        own.first_cell = block.cell[first] if first < end else 0
        own.n_cells = 0
        for i in range(first, end):
            own.n_cells += s.store.params.columns[block.column[i]].n_codes + 1


cdef int64_t size_of_part(const BoostedStore* s, const Part* part) noexcept nogil:
    """Words of a part of a node's histograms, with the sums of its sparse columns and of the node.
    """
    return s.n_outputs * (CELL * part.n_cells + SUMS_OF_NODE
                          + (WORDS_OF_SUMS * (part.end - part.first) if s.n_sums > 0 else 0))


cdef void copy_part(const BoostedStore* s, const Part* part, int64_t* histogram, int64_t* words,
                    bint back) noexcept nogil:
    """Copy a part of a node's histograms to some words, or back."""
    cdef int64_t[3] start
    cdef int64_t[3] size
    cdef int k, _o
    start[0] = CELL * part.first_cell
    size[0] = CELL * part.n_cells
    start[1] = CELL * s.n_cells + WORDS_OF_SUMS * part.first
    size[1] = WORDS_OF_SUMS * (part.end - part.first) if s.n_sums > 0 else 0
    start[2] = size_of_histogram(s) - SUMS_OF_NODE
    size[2] = SUMS_OF_NODE
    for _o in range(s.n_outputs):
        for k in range(3):
            if back:
                memcpy(histogram + start[k], words, size[k] * sizeof(int64_t))
            else:
                memcpy(words, histogram + start[k], size[k] * sizeof(int64_t))
            words += size[k]
        histogram += to_next_output(s)


# ---------------------------------------------------------------------------------------------
# bounds of sparse columns

cdef Removal removal_of(const Search* q, const Totals* lesser, const Totals* other,
                        int shift) noexcept nogil:
    """The rows that a node loses when it becomes its larger child."""
    cdef Removal found
    cdef double l2 = q.criterion.l2
    cdef double whole = <double>(lesser.weight + other.weight) + 2 * l2
    cdef double rest = <double>other.weight + 2 * l2
    cdef double before = <double>(lesser.target + other.target) / whole
    cdef double after = <double>other.target / rest
    found.shift = shift
    found.min_rows = q.min_rows
    found.l2 = l2
    found.floor = <double>q.min_weight + l2
    found.weight = rest
    found.taken = <double>lesser.weight
    found.step = fabs(before)
    found.moved = fabs(after - before) + 1e-13 * (fabs(after) + fabs(before))
    return found


cdef void begin_bounds_of(StoredSums* sums, int64_t n_columns, int shift,
                          int64_t min_rows) noexcept nogil:
    """Columns of few rows are out, of the others nothing is known."""
    cdef int64_t c
    for c in range(n_columns):
        sums[c].most = OUT if <int64_t>(sums[c].first >> shift) < min_rows else INFINITY
        sums[c].least = 0


cdef inline double weight_of(uint64_t first, int shift) noexcept nogil:
    return <double><int64_t>(first & ((<uint64_t>1 << shift) - 1))


cdef void take_off_sums(const Removal* removal, const StoredSums* taken, int64_t n_columns,
                        StoredSums* sums) noexcept nogil:
    """Take rows off the sums of a node, and raise its bounds. O(columns)."""
    cdef const Removal* r = removal
    cdef StoredSums* own
    cdef double stored, gone, least, rest
    cdef int64_t c
    for c in range(n_columns):
        own = sums + c
        if is_out(own):
            continue
        own.first -= taken[c].first
        own.second -= taken[c].second
        own.size -= taken[c].size
        if <int64_t>(own.first >> r.shift) < r.min_rows:
            own.most = OUT
            continue
        if own.most == INFINITY:
            continue
        stored = weight_of(own.first, r.shift) + r.l2
        gone = weight_of(taken[c].first, r.shift)
        least = own.least - gone
        if least < own.least / 1024:        # what rounding may have left of it
            least = 0
        least = fmax(least, r.floor)
        rest = fmax(r.weight - stored, r.floor)
        own.most = UPWARDS * (
            own.most * sqrt(fmax(1.0 + gone / least, 1.0 + r.taken / rest))
            + (<double>taken[c].size + gone * r.step) * sqrt(1.0 / least + 1.0 / rest)
            + r.moved * sqrt(stored + stored * stored / rest)
        )
        own.least = least


cdef double common_score(const Search* q) noexcept nogil:
    """The least score of all boundaries of a node."""
    return q.S * q.S / (q.W + 2 * q.criterion.l2)


cdef double least_side(const int64_t* cells, int64_t first, int64_t end, int64_t step, int shift,
                       int64_t min_rows) noexcept nogil:
    """The weight of the first codes that have enough rows together; inf: all have too few."""
    cdef uint64_t sums = 0
    while first != end:
        sums += <uint64_t>cells[CELL * first]
        if <int64_t>(sums >> shift) >= min_rows:
            return weight_of(sums, shift)
        first += step
    return INFINITY


cdef void note_searched(const Search* q, const Column* column, const int64_t* cells, int shift,
                        double common, StoredSums* sums) noexcept nogil:
    """Keep what a column is worth that was searched just now."""
    cdef double best = q.best
    if is_bound(q) or last_ordered(column) != ALL_ORDERED or column.fill == 0 or cells[0] != 0:
        return
    if best <= NONE:
        sums.most = OUT
        return
    sums.most = UPWARDS * sqrt(fmax(best * (1.0 + 1e-12) - common * (1.0 - 1e-12), 0.0))
    sums.least = q.criterion.l2 + fmax(<double>q.min_weight, min(
        least_side(cells, column.n_codes, column.fill, -1, shift, q.min_rows),
        least_side(cells, 1, column.fill, 1, shift, q.min_rows),
    ))


cdef int64_t most_promising(const StoredSums* sums, int64_t n_columns) noexcept nogil:
    """The column of the highest bound, of those that have one; -1: there is none."""
    cdef int64_t found = -1
    cdef int64_t c
    for c in range(n_columns):
        if sums[c].most < INFINITY and not is_out(sums + c) and (
            found < 0 or sums[c].most > sums[found].most
        ):
            found = c
    return found


cdef double bound_of(const StoredSums* sums, double common) noexcept nogil:
    """No boundary of the column has a score above it; it may be inf. common : `common_score`."""
    return (common + sums.most * sums.most) * (1.0 + 1e-9)


# ---------------------------------------------------------------------------------------------
# search

cdef bint complete_outputs(BoostedStore* s, const Search* q, int32_t j, const StoredSums* sums,
                           int64_t* cells) noexcept nogil:
    """`complete_column`, of all outputs; without sums `complete_bundled`, which may say no."""
    cdef const Column* column = s.store.params.columns + j
    cdef int shift = s.store.params.layout.shift
    cdef Totals totals = q.totals
    cdef int64_t stride = to_next_output(s)
    cdef int o
    for o in range(s.n_outputs):
        if s.n_outputs > 1:
            totals.target = q.class_totals[o]
        if q.criterion.has_hessians:
            totals.weight = q.class_totals[s.n_outputs + o]
        if sums != NULL:
            complete_column(column, <const StoredSums*>(<const int64_t*>sums + o * stride),
                            &totals, shift, cells + o * stride)
        elif not complete_bundled(column, &totals, shift, s.store.params.limits.min_rows,
                                  cells + o * stride):
            return False
    return True


cdef void search_column(BoostedStore* s, Search* q, int64_t* histogram,
                        int32_t j) noexcept nogil:
    """Search a column; the node's split is that of the column if it is better."""
    cdef const Column* column = s.store.params.columns + j
    cdef int64_t* cells = histogram + CELL * s.cell_of_column[j]
    cdef uint32_t last = last_ordered(column)
    if s.is_bundled[j] and not complete_outputs(s, q, j, NULL, cells):
        return
    if q.criterion.has_hessians or last != ALL_ORDERED or not PATH_IS_ON("gradient_scan"):
        search_histogram(q, &s.store.params.layout, cells, column.n_codes, j, last)
    elif s.n_outputs > 1:
        scan_outputs(q, &s.store.params.layout, cells, column.n_codes, j)
    else:
        scan_gradients(q, &s.store.params.layout, cells, column.n_codes, j)


cdef void search_block(BoostedStore* s, int64_t b, OpenNode* node, const uint8_t* drawn,
                       Split* found) noexcept nogil:
    """The best split of a node in the columns of a block that are drawn; NULL: all are."""
    cdef const ColumnBlock* block = s.searched + b
    cdef const Limits* limits = &s.store.params.limits
    cdef Search* q = s.searches[b]
    cdef int64_t k
    begin_node(q, &node.totals, node.class_totals, node.path, &node.above)
    for k in range(block.n_columns):
        if may_use(limits, q.sets, block.column[k]) and (drawn == NULL or drawn[block.column[k]]):
            search_column(s, q, node.histogram, block.column[k])
    found[0] = q.split


cdef inline const uint32_t* rows_of_lesser(const ChildSearch* search) noexcept nogil:
    return NULL if search.s.is_whole else search.s.rows + search.lesser.start


cdef inline RowsOfNode rows_of_output(const ChildSearch* search, int o) noexcept nogil:
    """The rows of the smaller child, and their derivatives of an output."""
    return RowsOfNode(rows_of_lesser(search), search.n_here,
                      search.s.derivatives + o * search.s.n_rows,
                      search.s.store.params.layout.shift)


cdef void count_and_search_chunk(void* job, int64_t number) noexcept nogil:
    """A block of columns of a `ChildSearch`, all of whose rows are here."""
    cdef ChildSearch* search = <ChildSearch*>job
    if search.s.blocks[number].is_sparse:
        search_sparse(search, number, False)
        return
    count_chunk(job, number)
    search_chunk(job, number)


cdef void count_chunk(void* job, int64_t number) noexcept nogil:
    """Count the rows of the smaller child that are here, in the columns of a block."""
    cdef ChildSearch* search = <ChildSearch*>job
    cdef BoostedStore* s = search.s
    cdef const ColumnBlock* block = s.blocks + number
    cdef OpenNode* lesser = search.lesser
    cdef const uint32_t* rows = rows_of_lesser(search)
    cdef const Column* columns = s.store.params.columns
    cdef int shift = s.store.params.layout.shift
    cdef StoredSums* sums
    cdef RowsOfNode node
    cdef int64_t* histogram
    cdef int o
    for o in range(s.n_outputs):
        histogram = lesser.histogram + o * to_next_output(s)
        if block.is_sparse:
            sums = sums_of(s, block, histogram)
            node = rows_of_output(search, o)
            if s.is_whole:
                count_by_column(&block.stored, columns, &node, sums, histogram)
            else:
                sum_by_row(&block.stored, &node, sums)
                count_by_row(&block.stored, columns, &node, sums, histogram)    # none is out
            continue
        memset(histogram + CELL * block.first_cell, 0, CELL * block.n_cells * sizeof(int64_t))
        count_block(block, columns, rows, search.n_here, s.derivatives + o * s.n_rows, shift,
                    histogram)


cdef void search_chunk(void* job, int64_t number) noexcept nogil:
    """Search both children in the columns of a block; the splits go to `found`."""
    cdef ChildSearch* search = <ChildSearch*>job
    cdef BoostedStore* s = search.s
    cdef const ColumnBlock* block = s.searched + number
    cdef OpenNode* lesser = search.lesser
    cdef int64_t first = CELL * block.first_cell
    cdef int _o
    if block.is_sparse:
        search_sparse(search, number, True)
        return
    if search.search_lesser:
        search_block(s, number, lesser, search.drawn_of_lesser, s.found + 2 * number)
    if search.search_other:
        for _o in range(s.n_outputs):
            subtract_words(search.other.histogram + first, lesser.histogram + first,
                           CELL * block.n_cells)
            first += to_next_output(s)
        search_block(s, number, search.other, search.drawn_of_other, s.found + 2 * number + 1)


cdef void search_stored_column(BoostedStore* s, Search* q, OpenNode* node, int32_t j,
                               double common, StoredSums* sums) noexcept nogil:
    """Search a sparse column, and keep what it is worth."""
    cdef const Column* column = s.store.params.columns + j
    cdef int64_t* cells = node.histogram + CELL * s.cell_of_column[j]
    cdef int shift = s.store.params.layout.shift
    if s.n_outputs > 1:
        complete_outputs(s, q, j, sums, cells)
        search_column(s, q, node.histogram, j)
        return
    complete_column(column, sums, &node.totals, shift, cells)  # its own: 1.02, sparse tables
    search_column(s, q, node.histogram, j)
    note_searched(q, column, cells, shift, common, sums)


cdef void search_stored_block(BoostedStore* s, int64_t b, OpenNode* node, const uint8_t* drawn,
                              Split* found) noexcept nogil:
    """The best split of a node in the sparse columns of a block that may have it.

    The column that promises most is searched first, so that it beats most others.
    """
    cdef const ColumnBlock* block = s.searched + b
    cdef const Limits* limits = &s.store.params.limits
    cdef StoredSums* sums = sums_of(s, block, node.histogram)
    cdef Search* q = s.searches[b]
    cdef int64_t first = most_promising(sums, block.n_columns)
    cdef int64_t k, i
    cdef int32_t j
    cdef double common
    begin_node(q, &node.totals, node.class_totals, node.path, &node.above)
    common = common_score(q)
    for i in range(-1, block.n_columns):
        k = first if i < 0 else i
        if k < 0 or i == first or is_out(sums + k):
            continue
        if bound_of(sums + k, common) < q.split.score and PATH_IS_ON("stored_bounds"):
            continue
        j = block.column[k]
        if may_use(limits, q.sets, j) and (drawn == NULL or drawn[j]):
            search_stored_column(s, q, node, j, common, sums + k)
            s.n_searched[b] += 1
    found[0] = q.split


cdef void search_sparse(ChildSearch* search, int64_t number, bint is_counted) noexcept nogil:
    """Search a block of sparse columns, once it `is_counted`, wherever the rows are.

    Otherwise all rows are here, and what is not searched is not counted.
    """
    cdef BoostedStore* s = search.s
    cdef const ColumnBlock* block = s.searched + number
    cdef const Column* columns = s.store.params.columns
    cdef int shift = s.store.params.layout.shift
    cdef RowsOfNode node
    cdef StoredSums* sums
    cdef Removal removal
    cdef int64_t* histogram
    cdef int64_t first = CELL * block.first_cell
    cdef int64_t next_one
    cdef int o
    for o in range(s.n_outputs):
        next_one = o * to_next_output(s)
        node = rows_of_output(search, o)
        histogram = search.lesser.histogram + next_one
        sums = sums_of(s, block, histogram)
        if s.is_whole and not is_counted:
            count_by_column(&block.stored, columns, &node, sums, histogram)
        elif not is_counted:
            sum_by_row(&block.stored, &node, sums)
        if not search.search_other:
            continue
        removal = removal_of(s.searches[number], &search.lesser.totals, &search.other.totals,
                             shift)
        take_off_sums(&removal, sums, block.n_columns,
                      sums_of(s, block, search.other.histogram + next_one))
        if is_counted:
            subtract_words(search.other.histogram + next_one + first, histogram + first,
                           CELL * block.n_cells)
        else:
            take_off_stored(&block.stored, &node,
                            sums_of(s, block, search.other.histogram + next_one),
                            search.other.histogram + next_one)
    if search.search_other:
        search_stored_block(s, number, search.other, search.drawn_of_other,
                            s.found + 2 * number + 1)
    for o in range(s.n_outputs if search.search_lesser else 0):
        node = rows_of_output(search, o)
        histogram = search.lesser.histogram + o * to_next_output(s)
        sums = sums_of(s, block, histogram)
        begin_bounds_of(sums, block.n_columns, shift, s.store.params.limits.min_rows)
        if not (is_counted or s.is_whole):
            count_by_row(&block.stored, columns, &node, sums, histogram)
    if search.search_lesser:
        search_stored_block(s, number, search.lesser, search.drawn_of_lesser,
                            s.found + 2 * number)


cdef void choose_split(BoostedStore* s, OpenNode* node, const Split* split) noexcept nogil:
    """Make a split that was found the one of the leader's search; of a subset, with its bins."""
    begin_node(s.store.search, &node.totals, node.class_totals, node.path, &node.above)
    if split.test == IN_SUBSET and s.told != NULL:
        take_subset(s, s.store.params.columns + split.column)
    elif split.test == IN_SUBSET:
        search_column(s, s.store.search, node.histogram, split.column)
    else:
        s.store.search.split = split[0]


cdef void tell_split(BoostedStore* s, OpenNode* node, Found* found) noexcept nogil:
    """Complete what is known of a split that was found here."""
    cdef Search* q = s.store.search
    cdef const Column* column = s.store.params.columns + found.split.column
    cdef uint64_t* has = <uint64_t*>(outputs_of(found) + words_of_outputs(s))
    cdef Totals left
    cdef Route route
    cdef uint32_t rank
    cdef int64_t g
    s.told = NULL
    choose_split(s, node, &found.split)
    route = route_of(&q.split, last_ordered(column), q.split_subset, q.split_subset_words)
    sum_left(s, node, found.split.column, &route, &left, outputs_of(found))
    found.n_left, found.weight_left, found.target_left = left.n, left.weight, left.target
    if found.split.test != IN_SUBSET:
        return
    memset(has, 0, 2 * words_of_subset(column) * sizeof(uint64_t))
    for g in range(q.bins.count):
        rank = q.bins.rank[g]
        has[rank >> 6] |= <uint64_t>1 << (rank & 63)
        if goes_left(&route, rank):
            has[words_of_subset(column) + (rank >> 6)] |= <uint64_t>1 << (rank & 63)


cdef inline int64_t* outputs_of(const Found* found) noexcept nogil:
    """The fields of several outputs that the left side has."""
    return <int64_t*>(found + 1)


cdef int64_t words_of_outputs(const BoostedStore* s) noexcept nogil:
    """How many there are."""
    return s.store.params.criterion.n_classes


cdef void take_subset(BoostedStore* s, const Column* column) noexcept nogil:
    """Make a subset that another member has found the one of a search, with its bins."""
    cdef Search* q = s.store.search
    cdef const Found* found = s.told
    cdef int64_t n = words_of_subset(column)
    cdef const uint64_t* has = <const uint64_t*>(outputs_of(found) + words_of_outputs(s))
    cdef uint32_t rank
    if not (reserve_bins(q, <int64_t>column.n_codes + 1)
            and enlarge(q, <void**>&q.split_subset, n * sizeof(uint64_t))):
        return
    q.split = found.split
    q.split_subset_words = n
    memcpy(q.split_subset, has + n, n * sizeof(uint64_t))
    q.bins.count = 0
    for rank in range(column.n_codes + 1):
        if has[rank >> 6] >> (rank & 63) & 1:
            q.bins.rank[q.bins.count] = rank
            q.bins.count += 1


cdef void choose(Store* store, Member* member, uint64_t together) noexcept nogil:
    store.last_ordered = last_ordered(store.params.columns + store.search.split.column)


cdef bint has_lost_splits(const BoostedStore* s) noexcept nogil:
    """Tell if a search of the store was without memory, so that its splits are lost."""
    cdef int64_t b
    for b in range(s.n_blocks + 1):
        if s.searches[b].out_of_memory:
            return True
    return False


# ---------------------------------------------------------------------------------------------
# partition

cdef void sides_of(const Column* column, const StridedCodes* place, const Route* route,
                   uint8_t* side) noexcept nogil:
    """Find the side of the rows of each byte. Other columns of a bundle hold the common code."""
    cdef int64_t code
    memset(side, goes_left(route, column.common) if column.common != NO_RANK else 0, 256)
    for code in range(<int64_t>column.n_codes + 1):
        side[place.first + code] = goes_left(route, <uint32_t>code)


cdef inline int64_t partition_in(const Column* column, const StridedCodes* place,
                                 const uint8_t* side, const Route* route, int how,
                                 uint32_t* rows, int64_t n, uint32_t* scratch) noexcept nogil:
    """Rows that go left stay, in place; the others go behind them by way of the scratch.

    how : the storage of the column, a constant where it is called
    """
    cdef int64_t left = 0
    cdef int64_t right = 0
    cdef int64_t at = 0
    cdef int64_t i
    cdef uint32_t row
    cdef uint8_t is_left
    for i in range(n):
        row = rows[i]
        if how == STORED_U8:
            is_left = side[place.codes[row * place.stride]]
        elif how == STORED_U16:
            is_left = goes_left(route, (<const uint16_t*>column.codes)[row])
        elif how == STORED_U32:
            is_left = goes_left(route, (<const uint32_t*>column.codes)[row])
        else:
            is_left = goes_left(route, next_code(column, row, &at))
        rows[left] = row
        scratch[right] = row
        left += is_left
        right += 1 - is_left
    memcpy(rows + left, scratch, right * sizeof(uint32_t))
    return left


cdef int64_t partition_narrow(const Column* column, const StridedCodes* place, const Route* route,
                              uint32_t* rows, int64_t n, uint32_t* scratch) noexcept nogil:
    """Partition by a column of 8 bits, eight rows at a time where registers are wide."""
    cdef uint8_t[256] side
    cdef int64_t left
    sides_of(column, place, route, side)
    if not is_wide or not PATH_IS_ON("partition_by_eight"):
        return partition_in(column, place, side, route, STORED_U8, rows, n, scratch)
    left = partition_eights_by_code(rows, n, place.codes, place.stride, side, scratch)
    memcpy(rows + left, scratch, (n - left) * sizeof(uint32_t))
    return left


cdef int64_t partition_rows(const BoostedStore* s, int32_t j, const Route* route, uint32_t* rows,
                            int64_t n) noexcept nogil:
    """By a column, stably, in place; returns how many go left. O(n)."""
    cdef const Column* column = s.store.params.columns + j
    cdef int64_t left
    if column.storage == STORED_U8:
        left = partition_narrow(column, s.places + j, route, rows, n, s.scratch)
    elif column.storage == STORED_U16:
        left = partition_in(column, NULL, NULL, route, STORED_U16, rows, n, s.scratch)
    elif column.storage == STORED_U32:
        left = partition_in(column, NULL, NULL, route, STORED_U32, rows, n, s.scratch)
    else:
        return partition_in(column, NULL, NULL, route, STORED_SPARSE, rows, n, s.scratch)
    if s.mapped_rows > 0:
        let_go_of_column(column, s.mapped_rows)
    return left


cdef void sum_left(const BoostedStore* s, const OpenNode* node, int32_t j, const Route* route,
                   Totals* left, int64_t* fields) noexcept nogil:
    """What the left child has, read from the node's histogram, OUT; fields : those of several
    outputs. O(codes)."""
    cdef const Column* column = s.store.params.columns + j
    cdef const int64_t* cells = node.histogram + CELL * s.cell_of_column[j]
    cdef const Criterion* criterion = &s.store.params.criterion
    cdef int64_t code, hessian, gradient
    cdef int o
    for o in range(s.n_outputs):
        memset(left, 0, sizeof(Totals))
        for code in range(<int64_t>column.n_codes + 1):
            if goes_left(route, <uint32_t>code):
                left.n += decode_gradients(cells + CELL * code, s.store.params.layout.shift,
                                           &hessian, &gradient)
                left.weight += hessian
                left.target += gradient
        cells += to_next_output(s)
        if s.n_outputs > 1:
            fields[o] = left.target
        if criterion.has_hessians:
            fields[s.n_outputs + o] = left.weight
    if criterion.has_hessians:
        left.weight = mean_hessian(criterion, fields)


cdef void partition(Store* store, Member* member, uint64_t together) noexcept nogil:
    """Partition the rows of the node; sums of its children are those of all rows."""
    cdef BoostedStore* s = <BoostedStore*>store
    cdef OpenNode* node = member.node
    cdef int32_t j = store.search.split.column
    cdef OpenNode* left = member.left
    cdef OpenNode* right = member.right
    cdef int64_t n_fields = words_of_outputs(s)
    cdef int64_t k
    s.n_left_here = partition_rows(s, j, &member.route, s.rows + node.start, s.n_here)
    if not open_children(node, 0, <int>n_fields, left, right):
        store.search.out_of_memory = True
        return
    if s.told == NULL:
        sum_left(s, node, j, &member.route, &left.totals, left.class_totals)
    else:
        left.totals.n, left.totals.weight = s.told.n_left, s.told.weight_left
        left.totals.target = s.told.target_left
    for k in range(n_fields):
        if s.told != NULL:
            left.class_totals[k] = outputs_of(s.told)[k]
        right.class_totals[k] = node.class_totals[k] - left.class_totals[k]
    right.totals.n -= left.totals.n
    right.start += s.n_left_here
    right.totals.weight = node.totals.weight - left.totals.weight
    right.totals.target = node.totals.target - left.totals.target
