"""Large nodes: all threads work on one, each on its own blocks of columns.

The runs of a large node lie in blocks, and so do its histograms, if it keeps any:

    runs         block 0 | block 1 | block 2 | ...        a task each: part, search
    search       best    | best    | best    | ...        the best of them is the node's split

A node that becomes small gets its runs as one list and is finished by one call (`_finish`).
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from dtrees.core._columns cimport Column
from dtrees.core._groups cimport collect_groups
from dtrees.core._histogram cimport (
    add_rows, count_runs, groups_of_histogram, part_histogram, search_histogram
)
from dtrees.core._nodes cimport free_node
from dtrees.core._plan cimport Plan
from dtrees.core._route cimport part_runs
from dtrees.core._search cimport (
    Search, begin_node, comes_first, free_scratch, free_search, new_search
)
from dtrees.core._splitter cimport search_run
from dtrees.core._structs cimport LEAF, Run
from dtrees.core._workspace cimport Counted, OpenNode, Workspace

cdef enum:
    RUN_COST = 8            # what a run costs beside its entries, in entries


cdef class LargeNode:
    """An open node of the first phase: its runs lie in blocks of columns."""

    def __cinit__(self, int n_blocks):
        self.n_blocks = n_blocks
        self.runs = <Run**>calloc(n_blocks, sizeof(Run*))
        self.n_runs = <int64_t*>calloc(n_blocks, sizeof(int64_t))
        self.histogram = <int64_t**>calloc(n_blocks, sizeof(int64_t*))

    def __dealloc__(self):
        cdef int b
        for b in range(self.n_blocks):
            free(self.runs[b])
            free(self.histogram[b])
        free(self.runs)
        free(self.n_runs)
        free(self.histogram)
        free_node(&self.node)

    cdef void forget(self) noexcept:
        """Give back the histograms."""
        cdef int b
        for b in range(self.n_blocks):
            free(self.histogram[b])
            self.histogram[b] = NULL

    cdef void concatenate(self) noexcept:
        """The runs of all blocks as one list, for `_finish`."""
        cdef int b
        cdef int64_t count = 0
        for b in range(self.n_blocks):
            count += self.n_runs[b]
        self.node.runs = <Run*>malloc((count + 1) * sizeof(Run))
        count = 0
        for b in range(self.n_blocks):
            memcpy(self.node.runs + count, self.runs[b], self.n_runs[b] * sizeof(Run))
            count += self.n_runs[b]
        self.node.n_runs = count


cdef class SearchOfBlock:
    """The search of one node over one block of columns."""

    def __cinit__(self):
        self.q = NULL

    def __dealloc__(self):
        free_search(self.q)


cdef int64_t entries_of(LargeNode node):
    """Cells of the node that do not hold a majority value: what its subtree costs, about."""
    cdef int64_t entries = 0
    cdef int64_t r
    cdef int b
    for b in range(node.n_blocks):
        for r in range(node.n_runs[b]):
            entries += node.runs[b][r].length if node.runs[b][r].length > 0 else node.node.totals.n
    return entries


def work_of(LargeNode node):
    """What searching or parting the node costs, in entries."""
    cdef int b
    cdef int64_t runs = 0
    for b in range(node.n_blocks):
        runs += node.n_runs[b]
    return entries_of(node) + RUN_COST * runs


cdef double expected_entries(LargeNode node, LargeNode child):
    """The share of a node's entries that a child will get, by rows."""
    return <double>entries_of(node) * child.node.totals.n / node.node.totals.n


def rows_of(LargeNode node):
    """Rows of an open node: what its subtree costs, about."""
    return node.node.totals.n


def record_of(LargeNode node):
    """The node's record in the first piece."""
    return node.record


cdef SearchOfBlock better(SearchOfBlock a, SearchOfBlock b):
    """Highest score; of equal ones, the column that `comes_first`."""
    if b.q.split.test == LEAF:
        return a
    if a.q.split.test == LEAF or b.q.split.score > a.q.split.score:
        return b
    if (b.q.split.score == a.q.split.score
            and comes_first(a.q, b.q.split.column, a.q.split.column)):
        return b
    return a


cdef int64_t* fresh_histogram(const Plan* plan, const Workspace* w, const OpenNode* node,
                              const Run* run) noexcept nogil:
    """The histogram of a column whose node keeps none; the caller frees it."""
    cdef const Column* column = plan.columns + run.column
    cdef int64_t* histogram = <int64_t*>calloc((column.n_codes + <int64_t>1) * plan.stride,
                                               sizeof(int64_t))
    add_rows(column, &w.payload, plan.mode, plan.stride, w.row_id, w.rows + node.start,
             node.totals.n, histogram)
    return histogram


cdef void groups_of_run(Search* q, const Plan* plan, const Workspace* w, const OpenNode* node,
                        const int64_t* histogram, const Run* run) noexcept nogil:
    """Groups of one column of a large node: from its entries, or from its histogram."""
    cdef uint32_t n_codes = plan.columns[run.column].n_codes
    cdef int64_t* fresh
    if run.length > 0 and w.narrow:
        collect_groups(q, <const uint32_t*>w.entries, run)
    elif run.length > 0:
        collect_groups(q, <const uint64_t*>w.entries, run)
    elif run.offset >= 0 and histogram != NULL:
        groups_of_histogram(q, histogram + run.offset, n_codes)
    else:
        fresh = fresh_histogram(plan, w, node, run)
        groups_of_histogram(q, fresh, n_codes)
        free(fresh)


cdef bint search_counted(Search* q, const Plan* plan, const Workspace* w, const OpenNode* node,
                         const int64_t* histogram, const Run* run) noexcept nogil:
    """Search one column by its histogram; False when it is constant in the node."""
    cdef uint32_t n_codes = plan.columns[run.column].n_codes
    cdef int64_t* fresh
    cdef bint varies
    if run.offset >= 0 and histogram != NULL:
        return search_histogram(q, histogram + run.offset, n_codes, run.column, run.last_ordered)
    fresh = fresh_histogram(plan, w, node, run)
    varies = search_histogram(q, fresh, n_codes, run.column, run.last_ordered)
    free(fresh)
    return varies


cdef SearchOfBlock search_block(const Plan* plan, Workspace* w, const Counted* counted,
                                LargeNode node, int block):
    """The best split of an open node in one block of columns."""
    cdef SearchOfBlock search = SearchOfBlock()
    cdef const int32_t* drawn = NULL
    cdef int64_t n_drawn = 0
    cdef int32_t[::1] columns
    if node.drawn is not None:
        columns = node.drawn
        drawn = &columns[0]
        n_drawn = len(columns)
    search.q = new_search(&plan.criterion, plan.mode, w.payload, &plan.limits)
    with nogil:
        begin_node(search.q, &node.node.totals, node.node.class_totals, node.node.path)
        if (counted.n_cells > 0 and node.histogram[block] == NULL
                and keeps_histogram(node, counted)):
            node.histogram[block] = <int64_t*>calloc(counted.n_cells, sizeof(int64_t))
            count_runs(w, plan.columns, plan.mode, plan.stride, node.runs[block],
                       node.n_runs[block], node.node.start, node.node.totals.n,
                       node.histogram[block])
        node.n_runs[block] = search_runs(search.q, plan, w, &node.node, node.histogram[block],
                                         node.runs[block], node.n_runs[block], drawn, n_drawn)
        free_scratch(search.q)
    return search


cdef inline bint keeps_histogram(LargeNode node, const Counted* counted) noexcept nogil:
    """Whether the node is worth the memory of the block's histograms."""
    return node.node.totals.n >= counted.least_rows


cdef int64_t search_runs(Search* q, const Plan* plan, const Workspace* w, const OpenNode* node,
                         const int64_t* histogram, Run* runs, int64_t n_runs,
                         const int32_t* drawn, int64_t n_drawn) noexcept nogil:
    """Search a block of columns of a large node; constant ones are dropped. Returns what is left.

    histogram : of the block's counted columns. drawn : sorted columns to search, NULL for all.
    """
    cdef int64_t r
    cdef int64_t kept = 0
    cdef int64_t d = 0
    cdef bint varies
    for r in range(n_runs):
        varies = True
        if drawn != NULL:
            while d < n_drawn and drawn[d] < runs[r].column:
                d += 1
        if drawn == NULL or (d < n_drawn and drawn[d] == runs[r].column):
            if runs[r].length == 0:
                varies = search_counted(q, plan, w, node, histogram, &runs[r])
            elif runs[r].length >= q.too_short:
                if w.narrow:
                    varies = search_run(q, <const uint32_t*>w.entries, &runs[r])
                else:
                    varies = search_run(q, <const uint64_t*>w.entries, &runs[r])
        if varies:
            runs[kept] = runs[r]
            kept += 1
    return kept


cdef void part_block(const Plan* plan, Workspace* w, const Counted* counted, LargeNode node,
                     int block, void* scratch) noexcept nogil:
    """Hand the runs and the histograms of one block down to the children of a split node."""
    cdef int64_t n = node.n_runs[block]
    if not node.left.node.is_leaf:
        node.left.runs[block] = <Run*>malloc((n + 1) * sizeof(Run))
    if not node.right.node.is_leaf:
        node.right.runs[block] = <Run*>malloc((n + 1) * sizeof(Run))
    if w.narrow:
        part_runs(<uint32_t*>w.entries, node.runs[block], n, w.side, <uint32_t*>scratch,
                  node.left.runs[block], &node.left.n_runs[block],
                  node.right.runs[block], &node.right.n_runs[block])
    else:
        part_runs(<uint64_t*>w.entries, node.runs[block], n, w.side, <uint64_t*>scratch,
                  node.left.runs[block], &node.left.n_runs[block],
                  node.right.runs[block], &node.right.n_runs[block])
    if node.histogram[block] != NULL:
        part_histogram(w, plan.columns, plan.mode, plan.stride, node.runs[block], n,
                       counted.n_cells, &node.left.node, &node.right.node,
                       node.left.is_large and keeps_histogram(node.left, counted),
                       node.right.is_large and keeps_histogram(node.right, counted),
                       &node.histogram[block], &node.left.histogram[block],
                       &node.right.histogram[block])
        free(node.histogram[block])
        node.histogram[block] = NULL
