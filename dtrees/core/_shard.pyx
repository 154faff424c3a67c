"""Rows held in one place, and trees grown from them on several threads.

A `Shard` binds the arrays of a coded matrix and a target to the kernels' structs. `grow` works in
two phases. While nodes are large, all threads work on one level together, each on its own block of
columns: part the runs by the marks of the level above, search the new nodes. As soon as nodes are
small, each is a task of its own and its whole subtree is grown by one call (`_finish`).

    large nodes     level 0   [block 0 | block 1 | block 2 | block 3]     columns in blocks
                    level 1   [block 0 | block 1 | block 2 | block 3]
    small nodes     subtree   subtree   subtree   subtree   subtree        nodes as tasks

Both phases use the same search and the same marks; which of them a node meets, and which thread,
cannot change a split.
"""
from functools import partial

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dtrees._random cimport hash64
from dtrees.core._criterion cimport Criterion
from dtrees.core._finish cimport (
    Growth, Limits, Plan, Records, describe, draw_columns, free_growth, free_node, free_records,
    grow_for, new_growth, open_children, sum_rows, write_record, write_test
)
from dtrees.core._histogram cimport add_rows, groups_of_histogram
from dtrees.core._route cimport Route, goes_left, keep_side, mark_run, route_of, split_run
from dtrees.core._splitter cimport (
    Search, begin_node, collect_groups, finish_node, free_search, new_search, search_groups,
    search_run
)
from dtrees.core._structs cimport (
    CLASSES, COUNT, ENTROPY, GINI, IN_SUBSET, LEAF, NO_RANK, POISSON, SQUARED, SUM,
    WEIGHTED_CLASSES, WEIGHTED_SUM, Mode, Payload, Run, Split, Totals
)
from dtrees.core._workspace cimport (
    MAX_NARROW, STORED_SPARSE, STORED_U16, STORED_U32, STORED_U8, Column, OpenNode, Workspace,
    free_workspace, last_ordered, new_workspace, sorted_entries
)

from dtrees.core._criterion import xlogx_table
from dtrees.core.structs import RECORD

cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    SMALLEST_TASK = 2048    # rows
    MAX_LEVELS = 16         # of the phase of large nodes

cdef int64_t UNLIMITED = 0x7FFFFFFFFFFFFFFF


cdef class LargeNode:
    """An open node of the first phase: its runs lie in blocks of columns."""
    cdef OpenNode node
    cdef Run** runs         # (n_blocks,)
    cdef int64_t* n_runs
    cdef int n_blocks
    cdef LargeNode left
    cdef LargeNode right
    cdef object drawn       # sorted drawn columns, or None
    cdef int64_t record

    def __cinit__(self, int n_blocks):
        self.n_blocks = n_blocks
        self.runs = <Run**>calloc(n_blocks, sizeof(Run*))
        self.n_runs = <int64_t*>calloc(n_blocks, sizeof(int64_t))

    def __dealloc__(self):
        cdef int b
        for b in range(self.n_blocks):
            free(self.runs[b])
        free(self.runs)
        free(self.n_runs)
        free_node(&self.node)

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
    cdef Search* q

    def __cinit__(self):
        self.q = NULL

    def __dealloc__(self):
        free_search(self.q)


cdef class Subtree:
    """Records of a grown subtree as arrays; `nodes["left"]` counts from its first node."""
    cdef readonly object nodes
    cdef readonly object statistics
    cdef readonly object words


cdef Subtree subtree_of(Records* out, int n_statistics):
    cdef Subtree subtree = Subtree()
    cdef int64_t n = out.count
    nodes = np.zeros(n, dtype=RECORD)
    statistics = np.zeros((n, n_statistics), dtype=np.int64)
    words = np.zeros(out.n_words, dtype=np.uint64)
    cdef uint8_t[::1] to_nodes = nodes.view(np.uint8)
    cdef int64_t[:, ::1] to_statistics = statistics
    cdef uint64_t[::1] to_words = words
    memcpy(&to_nodes[0], out.nodes, n * sizeof(out.nodes[0]))
    memcpy(&to_statistics[0, 0], out.statistics, n * n_statistics * sizeof(int64_t))
    if out.n_words > 0:
        memcpy(&to_words[0], out.words, out.n_words * sizeof(uint64_t))
    subtree.nodes = nodes
    subtree.statistics = statistics
    subtree.words = words
    return subtree


cdef class Shard:
    """Rows in one place.

    Parameters
    ----------
    coded : CodedMatrix
    target : Target
    rules : GrowthRules
    """
    cdef object coded
    cdef object target
    cdef list alive         # arrays whose memory the structs point to
    cdef Plan plan
    cdef Column* columns
    cdef Workspace* workspace
    cdef int64_t n_rows
    cdef int64_t n_live
    cdef uint8_t[::1] live
    cdef int64_t[::1] offsets

    def __cinit__(self):
        self.columns = NULL
        self.workspace = NULL

    def __dealloc__(self):
        free(self.columns)
        free_workspace(self.workspace)

    def __init__(self, coded, target, rules):
        self.coded = coded
        self.target = target
        self.alive = []
        self.n_rows = coded.n_rows
        self.bind_columns(coded)
        self.bind_target(target, rules)

    cdef const void* pointer(self, array, dtype):
        """Memory of a contiguous, aligned array, which is kept alive; NULL when it is empty."""
        cdef const uint8_t[::1] flat
        array = np.require(array, dtype=dtype, requirements=["A"])
        if array.size == 0:
            return NULL
        array = array.reshape(-1, order="F").view(np.uint8)
        self.alive.append(array)
        flat = array
        return &flat[0]

    cdef bind_columns(self, coded):
        cdef int64_t j, n_columns = coded.n_columns
        cdef const int64_t[::1] n_codes = np.ascontiguousarray(coded.n_codes, dtype=np.int64)
        cdef const int64_t[::1] n_ordered = np.ascontiguousarray(coded.n_ordered, dtype=np.int64)
        cdef const uint8_t[::1] storage = np.ascontiguousarray(coded.storage, dtype=np.uint8)
        cdef const int64_t[::1] slot = np.ascontiguousarray(coded.slot, dtype=np.int64)
        cdef const int64_t[::1] indptr = np.ascontiguousarray(coded.sparse_indptr, dtype=np.int64)
        cdef const uint32_t[::1] fill = np.ascontiguousarray(coded.fill_code, dtype=np.uint32)
        cdef const uint8_t* u8 = <const uint8_t*>self.pointer(coded.u8, np.uint8)
        cdef const uint16_t* u16 = <const uint16_t*>self.pointer(coded.u16, np.uint16)
        cdef const uint32_t* u32 = <const uint32_t*>self.pointer(coded.u32, np.uint32)
        cdef const uint32_t* order = NULL
        cdef const int32_t* rows = <const int32_t*>self.pointer(coded.sparse_rows, np.int32)
        cdef const uint32_t* codes = <const uint32_t*>self.pointer(coded.sparse_codes, np.uint32)
        cdef Column* column
        if coded.order32 is not None:
            order = <const uint32_t*>self.pointer(coded.order32, np.uint32)
        self.columns = <Column*>calloc(n_columns + 1, sizeof(Column))
        for j in range(n_columns):
            column = self.columns + j
            column.storage = storage[j]
            column.n_codes = <uint32_t>n_codes[j]
            column.n_ordered = <uint32_t>n_ordered[j]
            column.fill = NO_RANK
            if storage[j] == STORED_U8:
                column.codes = u8 + slot[j] * self.n_rows
            elif storage[j] == STORED_U16:
                column.codes = u16 + slot[j] * self.n_rows
            elif storage[j] == STORED_U32:
                column.codes = u32 + slot[j] * self.n_rows
                if order != NULL:
                    column.order = order + slot[j] * self.n_rows
            else:
                column.stored = indptr[slot[j] + 1] - indptr[slot[j]]
                column.codes = codes + indptr[slot[j]] if column.stored > 0 else NULL
                column.rows = rows + indptr[slot[j]] if column.stored > 0 else NULL
                column.fill = fill[slot[j]]
        self.plan.columns = self.columns
        self.plan.limits.n_columns = n_columns

    cdef bind_target(self, target, rules):
        cdef Criterion* criterion = &self.plan.criterion
        cdef Limits* limits = &self.plan.limits
        classification = target.kind == "classification"
        weight = None if target.w is None else np.asarray(target.w, dtype=np.int64)
        live = np.ones(self.n_rows, dtype=np.uint8)
        if weight is not None:
            live = (weight > 0).astype(np.uint8)
        if classification:
            if target.class_multiplier is not None:
                of_row = np.asarray(target.class_multiplier, dtype=np.int64)[target.y]
                weight = of_row if weight is None else weight * of_row
                live &= weight > 0
        self.live = live
        self.n_live = int(np.count_nonzero(live))
        memset(criterion, 0, sizeof(Criterion))
        criterion.n_classes = target.n_classes if classification else 0
        criterion.weight_unit = target.weight_unit
        criterion.value_unit = 1.0 if classification else target.value_unit
        criterion.fixed_point = 1.0
        self.plan.n_statistics = target.n_statistics
        self.workspace_payload(target, rules, weight, classification)
        total = float(self.n_live if weight is None
                      else np.sum(weight[live.astype(bool)], dtype=np.int64))
        user_total = total * target.weight_unit
        if rules.criterion == "entropy":
            self.bind_entropy(user_total, weight is None)
        elif rules.criterion == "poisson":
            self.bind_poisson(target)
        limits.max_depth = UNLIMITED if rules.max_depth is None else rules.max_depth
        limits.min_samples_split = rules.min_samples_split
        limits.min_rows = rules.min_samples_leaf
        limits.min_weight = int(np.ceil(rules.min_weight_leaf / target.weight_unit))
        limits.min_gain = (rules.min_impurity_decrease - np.finfo(float).eps) * user_total
        limits.max_features = (limits.n_columns if rules.max_features is None
                               else rules.max_features)
        limits.seed = rules.seed
        limits.tree = rules.tree
        limits.unseen_by_majority = rules.unseen == "majority"

    cdef workspace_payload(self, target, rules, weight, bint classification):
        """Point the payload to the arrays of the target; choose mode and formula."""
        cdef Criterion* criterion = &self.plan.criterion
        cdef Payload payload
        memset(&payload, 0, sizeof(Payload))
        unit = target.weight_unit
        if weight is not None:
            payload.weight = <int64_t*>self.pointer(weight, np.int64)
        if classification:
            assert target.n_classes <= 65535, target.n_classes
            payload.label = <uint16_t*>self.pointer(target.y, np.uint16)
            criterion.gain_unit = unit
            if rules.criterion == "entropy":
                criterion.impurity = ENTROPY
            elif target.n_classes <= 2:
                criterion.impurity = SQUARED
                criterion.gain_unit = 2 * unit
            else:
                criterion.impurity = GINI
            if criterion.impurity != SQUARED:
                self.plan.mode = CLASSES if weight is None else WEIGHTED_CLASSES
            elif weight is None:
                self.plan.mode = COUNT
            else:
                self.plan.mode = WEIGHTED_SUM
                payload.target = <int64_t*>self.pointer(weight * target.y, np.int64)
        else:
            payload.value = <int64_t*>self.pointer(target.y, np.int64)
            payload.target = payload.value
            if target.wy is not target.y and weight is not None:
                payload.target = <int64_t*>self.pointer(target.wy, np.int64)
            self.plan.mode = SUM if weight is None else WEIGHTED_SUM
            criterion.wy_shift = target.wy_exponent - target.y_exponent if weight is not None else 0
            if rules.criterion == "poisson":
                criterion.impurity = POISSON
                criterion.gain_unit = target.wy_unit
            else:
                criterion.impurity = SQUARED
                criterion.gain_unit = target.wy_unit * (target.wy_unit / unit)
        self.workspace = new_workspace(self.n_rows, 0, False)
        self.workspace.payload = payload

    cdef bind_entropy(self, double total, bint unweighted):
        """The scale of x log x: the largest power of two that cannot overflow."""
        cdef Criterion* criterion = &self.plan.criterion
        bound = (total + 1) * (np.log2(total + 2) + 1) * 2
        exponent = min(45, 61 - int(np.ceil(np.log2(bound))))
        criterion.fixed_point = 2.0 ** exponent
        criterion.gain_unit = 1.0 / (criterion.fixed_point * np.log(2.0))
        if unweighted:
            table = xlogx_table(self.n_live + 1, criterion.weight_unit, criterion.fixed_point)
            criterion.xlogx = <const int64_t*>self.pointer(table, np.int64)
            criterion.xlogx_size = self.n_live + 1

    cdef bind_poisson(self, target):
        cdef Criterion* criterion = &self.plan.criterion
        y = float(np.max(target.y, initial=1)) * target.value_unit
        bound = y * abs(np.log(y)) + 1
        criterion.fixed_point = 2.0 ** min(45, 58 - int(np.ceil(np.log2(bound))))

    # -----------------------------------------------------------------------------------------
    # the root

    def _sort_block(self, int64_t first, int64_t last):
        """Entries of wide and sparse columns first..last; runs of the root."""
        cdef int64_t j
        cdef Column* column
        cdef uint64_t* scratch
        cdef uint64_t* entries = <uint64_t*>self.workspace.entries
        cdef const uint8_t* live = &self.live[0]
        cdef int64_t[::1] lengths = np.zeros(last - first, dtype=np.int64)
        cdef const int64_t* offsets = &self.offsets[0]
        with nogil:
            scratch = <uint64_t*>malloc((self.n_rows + 1) * sizeof(uint64_t))
            for j in range(first, last):
                column = self.columns + j
                if column.storage >= STORED_U32:
                    lengths[j - first] = sorted_entries(column, live, entries + offsets[j],
                                                        scratch, self.n_rows)
            free(scratch)
        return np.asarray(lengths)

    cdef list column_blocks(self, int n_blocks):
        """Stretches of columns with about equal numbers of entries: [(first, last), ...]."""
        cdef int64_t j
        cost = np.empty(self.plan.limits.n_columns, dtype=np.float64)
        for j in range(self.plan.limits.n_columns):
            cost[j] = 16.0 + (self.columns[j].stored if self.columns[j].storage == STORED_SPARSE
                              else self.n_live)
        total = np.cumsum(cost)
        edges = np.searchsorted(total, cost.sum() * np.arange(1, n_blocks) / n_blocks)
        edges = [0, *np.unique(edges[edges > 0]).tolist(), len(cost)]
        return list(zip(edges, edges[1:]))

    cdef LargeNode open_root(self, run, list blocks, int64_t depth, uint64_t path):
        cdef Workspace* w = self.workspace
        cdef LargeNode root = LargeNode(len(blocks))
        cdef int64_t i, m, j
        cdef int b
        cdef int64_t[::1] lengths
        cdef const int64_t[::1] offsets
        cdef Run* run_of
        sizes = np.zeros(self.plan.limits.n_columns + 1, dtype=np.int64)
        for j in range(self.plan.limits.n_columns):
            if self.columns[j].storage == STORED_U32:
                sizes[j + 1] = self.n_rows
            elif self.columns[j].storage == STORED_SPARSE:
                sizes[j + 1] = self.columns[j].stored
        offsets = self.offsets = np.cumsum(sizes)
        free(w.entries)
        w.entries = malloc((offsets[self.plan.limits.n_columns] + 1) * sizeof(uint64_t))
        if w.entries == NULL:
            raise MemoryError
        all_lengths = run([partial(self._sort_block, first, last) for first, last in blocks])
        m = 0
        for i in range(self.n_rows):
            w.rows[m] = <uint32_t>i
            m += self.live[i]
        for b, (first, last) in enumerate(blocks):
            lengths = all_lengths[b]
            root.runs[b] = <Run*>malloc((last - first + 1) * sizeof(Run))
            for j in range(first, last):
                run_of = root.runs[b] + root.n_runs[b]
                run_of.column = <int32_t>j
                run_of.fill = self.columns[j].fill
                run_of.last_ordered = last_ordered(&self.columns[j])
                run_of.offset = offsets[j]
                run_of.length = <uint32_t>lengths[j - first]
                if self.columns[j].n_codes > 0 and (self.columns[j].storage < STORED_U32
                                                    or run_of.length > 0):
                    root.n_runs[b] += 1
        root.node.start = 0
        root.node.depth = depth
        root.node.parent = -1
        root.node.path = path
        if self.plan.criterion.n_classes > 0:
            root.node.class_totals = <int64_t*>calloc(self.plan.criterion.n_classes,
                                                      sizeof(int64_t))
        sum_rows(&w.payload, &self.plan, w.rows, m, &root.node.totals, root.node.class_totals)
        describe(&root.node, &self.plan)
        return root

    # -----------------------------------------------------------------------------------------
    # large nodes, blocks of columns

    def _advance_block(self, list parted, list open_nodes, int block):
        """Part the runs of the nodes that were split, search the nodes that are open.

        Returns the best split of each open node in this block of columns.
        """
        cdef Workspace* w = self.workspace
        cdef uint64_t* scratch
        cdef LargeNode node
        cdef list found = []
        with nogil:
            scratch = <uint64_t*>malloc((w.n_rows + 1) * sizeof(uint64_t))
        for node in parted:
            with nogil:
                part_block(w, node, node.left, node.right, block, scratch)
        free(scratch)
        for node in open_nodes:
            found.append(self.search_block(node, block))
        return found

    cdef SearchOfBlock search_block(self, LargeNode node, int block):
        cdef Workspace* w = self.workspace
        cdef SearchOfBlock search = SearchOfBlock()
        cdef const int32_t* drawn = NULL
        cdef int64_t n_drawn = 0
        cdef int32_t[::1] columns
        if node.drawn is not None:
            columns = node.drawn
            drawn = &columns[0]
            n_drawn = len(columns)
        search.q = new_search(&self.plan.criterion, self.plan.mode, w.payload,
                              self.plan.limits.min_rows, self.plan.limits.min_weight)
        with nogil:
            begin_node(search.q, &node.node.totals, node.node.class_totals)
            node.n_runs[block] = search_runs(search.q, &self.plan, w, &node.node,
                                             node.runs[block], node.n_runs[block], drawn, n_drawn)
        return search

    cdef object draw(self, LargeNode node, int64_t first, int64_t count):
        """Sorted draws first..first+count of a node."""
        cdef int32_t[::1] order
        if self.plan.limits.max_features >= self.plan.limits.n_columns:
            return None
        order = np.arange(self.plan.limits.n_columns, dtype=np.int32)
        draw_columns(&self.plan, node.node.path, &order[0], 0, first + count)
        return np.sort(np.asarray(order)[first:first + count])

    cdef SearchOfBlock best_of(self, LargeNode node, list searches):
        """The best split over the blocks; draws on, one by one, while no drawn column varies."""
        cdef SearchOfBlock best = searches[0]
        cdef SearchOfBlock other
        cdef int64_t first
        for other in searches[1:]:
            best = better(best, other)
        first = self.plan.limits.max_features
        while best.q.split.test == LEAF and first < self.plan.limits.n_columns:
            node.drawn = self.draw(node, first, 1)
            for block in range(node.n_blocks):
                best = better(best, self.search_block(node, block))
            first += 1
        finish_node(best.q)
        return best

    cdef bint split_node(self, LargeNode node, SearchOfBlock best, Records* out):
        """Mark and part the rows of a large node; open its children."""
        cdef Workspace* w = self.workspace
        cdef Search* q = best.q
        cdef const Column* column
        cdef Run* run = NULL
        cdef Route route
        cdef int b
        cdef int64_t r
        if q.split.test == LEAF or q.split.gain < self.plan.limits.min_gain:
            return False
        for b in range(node.n_blocks):
            for r in range(node.n_runs[b]):
                if node.runs[b][r].column == q.split.column:
                    run = &node.runs[b][r]
        column = self.columns + q.split.column
        node.left = LargeNode(node.n_blocks)
        node.right = LargeNode(node.n_blocks)
        with nogil:
            route = route_of(&q.split, last_ordered(column), q.split_subset,
                             q.split_subset_words)
            if q.split.test == IN_SUBSET:
                groups_of_run(q, &self.plan, w, &node.node, run)
            if run.length > 0:
                mark_run(&route, <uint64_t*>w.entries, run, w.rows + node.node.start,
                         node.node.totals.n, w.side)
            else:
                mark_codes(&route, column, w.rows + node.node.start, node.node.totals.n, w.side)
            open_children(&self.plan, w, &node.node, node.record, &node.left.node,
                          &node.right.node)
            write_test(out, node.record, &self.plan, w, q, &node.left.node.totals,
                       &node.right.node.totals)
        return True

    # -----------------------------------------------------------------------------------------
    # the whole tree

    def _grow_subtree(self, LargeNode node, cancelled):
        """Grow the subtree of a small node, in slices."""
        cdef Growth* growth
        cdef Workspace view = self.workspace[0]
        cdef bint more = True
        view.number = NULL
        with nogil:
            growth = new_growth(&self.plan, &view, &node.node)
        # taken over by the growth
        node.node.runs = NULL
        node.node.class_totals = NULL
        try:
            while more:
                if cancelled():
                    return None
                with nogil:
                    more = grow_for(growth, SLICE)
            return subtree_of(&growth.out, self.plan.n_statistics)
        finally:
            with nogil:
                free_growth(growth)
            free(view.number)

    def grow(self, run, int n_threads, cancelled, int64_t depth=0, uint64_t path=0):
        """Grow the tree of all rows.

        Parameters
        ----------
        run : Runner
        n_threads : int
            Decides only how the work is cut.
        cancelled : callable () -> bool
            Asked between slices of work; True ends the growth.
        depth, path : int
            Of the root, when it is a node of a larger tree.

        Returns
        -------
        list of (Subtree, int)
            Pieces in preorder of their roots and, for each, the place in the first piece: piece 0
            holds the large nodes; a record of it whose column is -3 stands for a later piece.
        """
        cdef Records out
        cdef LargeNode root, node, child
        cdef list blocks = self.column_blocks(
            min(self.plan.limits.n_columns, 1 if n_threads == 1 else 2 * n_threads))
        cdef list level, parted, searches, small = []
        cdef int64_t small_rows = MAX_NARROW
        cdef int64_t levels = 0
        memset(&out, 0, sizeof(Records))
        if n_threads > 1:
            small_rows = min(small_rows, max(SMALLEST_TASK, self.n_live // (4 * n_threads)))
        root = self.open_root(run, blocks, depth, path)
        try:
            root.record = write_record(&out, &self.plan, &root.node)
            level = [] if root.node.is_leaf else [root]
            if level and root.node.totals.n <= small_rows:
                small, level = level, []
            parted = []
            while level or parted:
                for node in level:
                    node.drawn = self.draw(node, 0, self.plan.limits.max_features)
                found = run([partial(self._advance_block, parted, level, block)
                             for block in range(len(blocks))])
                if cancelled():
                    return []
                parted = []
                next_level = []
                for i, node in enumerate(level):
                    if not self.split_node(node, self.best_of(node, [f[i] for f in found]), &out):
                        continue
                    for child in (node.left, node.right):
                        child.record = write_record(&out, &self.plan, &child.node)
                        if child.node.is_leaf:
                            continue
                        if (child.node.totals.n <= small_rows
                                or (levels >= MAX_LEVELS and child.node.totals.n <= MAX_NARROW)):
                            small.append(child)
                        else:
                            next_level.append(child)
                    parted.append(node)
                level = next_level
                levels += 1
            pieces = [subtree_of(&out, self.plan.n_statistics)]
        finally:
            free_records(&out)
        small.sort(key=rows_of, reverse=True)
        for node in small:
            node.concatenate()
            node.node.parent = -1
        grown = run([partial(self._grow_subtree, node, cancelled) for node in small])
        if cancelled():
            return []
        for node, subtree in zip(small, grown):
            pieces[0].nodes["column"][record_of(node)] = -3
            pieces[0].nodes["left"][record_of(node)] = len(pieces)
            pieces.append(subtree)
        return pieces


def rows_of(LargeNode node):
    """Rows of an open node: what its subtree costs, about."""
    return node.node.totals.n


def record_of(LargeNode node):
    """The node's record in the first piece."""
    return node.record


cdef SearchOfBlock better(SearchOfBlock a, SearchOfBlock b):
    """Highest score, then the lowest column."""
    if b.q.split.test == LEAF:
        return a
    if a.q.split.test == LEAF or b.q.split.score > a.q.split.score:
        return b
    if b.q.split.score == a.q.split.score and b.q.split.column < a.q.split.column:
        return b
    return a


cdef void groups_of_run(Search* q, const Plan* plan, const Workspace* w, const OpenNode* node,
                        const Run* run) noexcept nogil:
    """Groups of one column of a large node: from its entries, or by a histogram."""
    cdef const Column* column = plan.columns + run.column
    cdef const uint32_t* rows = w.rows + node.start
    cdef int64_t stride = 2 + q.n_columns_of_target
    cdef int64_t* histogram
    if run.length > 0:
        collect_groups(q, <const uint64_t*>w.entries, run)
        return
    histogram = <int64_t*>calloc((<int64_t>column.n_codes + 1) * stride, sizeof(int64_t))
    if column.storage == STORED_U8:
        add_rows(<const uint8_t*>column.codes, rows, node.totals.n, &w.payload, q.mode, stride,
                 histogram)
    else:
        add_rows(<const uint16_t*>column.codes, rows, node.totals.n, &w.payload, q.mode, stride,
                 histogram)
    groups_of_histogram(q, histogram, column.n_codes)
    free(histogram)


cdef int64_t search_runs(Search* q, const Plan* plan, const Workspace* w, const OpenNode* node,
                         Run* runs, int64_t n_runs, const int32_t* drawn,
                         int64_t n_drawn) noexcept nogil:
    """Search a block of columns of a large node; constant ones are dropped. Returns what is left.

    drawn : sorted columns to search, NULL for all.
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
            if runs[r].length > 0:
                varies = search_run(q, <const uint64_t*>w.entries, &runs[r])
            else:
                groups_of_run(q, plan, w, node, &runs[r])
                varies = q.groups.count > 1
                if varies:
                    search_groups(q, runs[r].column, runs[r].last_ordered)
        if varies:
            runs[kept] = runs[r]
            kept += 1
    return kept


cdef void mark_codes(const Route* route, const Column* column, const uint32_t* rows, int64_t n,
                     uint8_t* side) noexcept nogil:
    """side[row] from the codes of a dense column."""
    cdef int64_t i
    if column.storage == STORED_U8:
        for i in range(n):
            side[rows[i]] = goes_left(route, (<const uint8_t*>column.codes)[rows[i]])
    elif column.storage == STORED_U16:
        for i in range(n):
            side[rows[i]] = goes_left(route, (<const uint16_t*>column.codes)[rows[i]])


cdef void part_block(Workspace* w, LargeNode node, LargeNode left, LargeNode right, int block,
                     uint64_t* scratch) noexcept nogil:
    """Hand the runs of one block down to the children of a node that was split."""
    cdef uint64_t* entries = <uint64_t*>w.entries
    cdef int64_t n = node.n_runs[block]
    cdef int64_t r, k
    cdef Run* run
    if not left.node.is_leaf:
        left.runs[block] = <Run*>malloc((n + 1) * sizeof(Run))
    if not right.node.is_leaf:
        right.runs[block] = <Run*>malloc((n + 1) * sizeof(Run))
    if left.node.is_leaf and right.node.is_leaf:
        return
    for r in range(n):
        run = &node.runs[block][r]
        if run.length == 0:
            k = 0
        elif left.node.is_leaf:
            k = keep_side(entries, run, w.side, 0)
            hand(right, block, run, run.offset, k)
            continue
        elif right.node.is_leaf:
            k = keep_side(entries, run, w.side, 1)
            hand(left, block, run, run.offset, k)
            continue
        else:
            k = split_run(entries, run, w.side, scratch)
            hand(left, block, run, run.offset, k)
            hand(right, block, run, run.offset + k, run.length - k)
            continue
        if not left.node.is_leaf:
            hand(left, block, run, 0, -1)
        if not right.node.is_leaf:
            hand(right, block, run, 0, -1)


cdef void hand(LargeNode child, int block, const Run* run, int64_t offset,
               int64_t length) noexcept nogil:
    """Append a run to a child; length -1: the column is read from its codes."""
    cdef Run* new
    if length == 0:
        return
    new = child.runs[block] + child.n_runs[block]
    new[0] = run[0]
    new.offset = offset
    new.length = <uint32_t>length if length > 0 else 0
    child.n_runs[block] += 1
