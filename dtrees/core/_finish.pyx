"""A whole subtree, grown in one call without the interpreter.

The rows of an open node are a stretch of its workspace and of every column's entries, so a subtree
is grown depth first, in place: search every column that still varies, mark the side of each row,
part the rows and the runs, go on with the left child. Nodes come out in preorder.

    frame 0   workspace of the caller         open nodes:  [ A | B | C ]
    frame 1     relocated: rows of C          open nodes:  [ D | E ]
    frame 2       relocated: rows of E        open nodes:  [ F ]           <- grows next

A node of few rows is relocated (see _workspace.pyx) and grown in a frame of its own, which ends
with its subtree. Nothing is recursive, so growth can stop after any node: `grow_for` returns after
a given amount of work, and signals and cancellation are looked at between the calls.

Below a node: columns that were constant in it are not searched again; the runs of leaves are not
parted; a search ends at a split that no other can beat (both sides pure). Cost: O(entries) per
level and column.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dtrees.core._columns cimport Column, last_ordered
from dtrees.core._criterion cimport squared_score
from dtrees.core._cuts cimport finish_cut, search_cut
from dtrees.core._drawn cimport draw_columns, groups_of_drawn, search_drawn
from dtrees.core._drawn_entries cimport drop_absent, forget_present, mark_present
from dtrees.core._groups cimport collect_groups
from dtrees.core._histogram cimport (
    count_runs, groups_of_histogram, part_histogram, search_histogram
)
from dtrees.core._lanes cimport search_lanes
from dtrees.core._nodes cimport free_node, open_children, open_items
from dtrees.core._plan cimport Plan, gains_enough
from dtrees.core._reader cimport free_reader, new_reader, read_rows, serves, take_rows
from dtrees.core._records cimport free_records, write_record, write_test
from dtrees.core._route cimport Route, mark_codes, mark_run, part_runs, route_of
from dtrees.core._search cimport (
    Search, begin_node, comes_first, finish_node, free_search, key_of_tie, new_search
)
from dtrees.core._splitter cimport search_run
from dtrees.core._structs cimport (
    ALL_ORDERED, CLASSES, COUNT, GINI, IN_SUBSET, LEAF, SQUARED, SUM, Payload, Run, Totals
)
from dtrees.core._workspace cimport OpenNode, Workspace, free_workspace, relocate

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil

cdef enum:
    AHEAD = 8               # columns
    FEW_COLUMNS = 32        # drawn columns that are sorted: a perfect split of the first ends it
    MOST_ORDERED = 256      # columns of a node that are searched in the order of their keys, about
    BUCKETS = 64
    COMPACT_ROWS = 1024     # nodes of at most so many rows leave a much larger workspace
    COMPACT_SHARE = 8
    LEAST_COMPACT = 64      # rows: what moves is more than what is saved
    EXACT_WEIGHT = 1 << 17  # scores of perfect splits are exact below


# ---------------------------------------------------------------------------------------------
# life of a growth

cdef Growth* new_growth() noexcept nogil:
    """Memory for growths, one after the other; NULL without any. Freed by `free_growth`."""
    return <Growth*>calloc(1, sizeof(Growth))


cdef bint ready_reader(Growth* g, const Plan* plan, const Payload* payload, int64_t n,
                       int64_t n_places) noexcept nogil:
    """Have a reader for n rows of a table of n_places; False without memory."""
    if g.reader == NULL or not serves(g.reader, payload, n, n_places, plan.mode, &plan.criterion,
                                      &plan.lists, plan.limits.random_cuts):
        free_reader(g.reader)
        g.reader = new_reader(payload, n, n_places, plan.mode, &plan.criterion, &plan.lists,
                              plan.limits.random_cuts)
    return g.reader != NULL


cdef bint begin_growth(Growth* g, const Plan* plan, Workspace* w, OpenNode* root) noexcept nogil:
    """Begin a subtree, in the memory of the one before; False without memory.

    `root` is taken over, the workspace is not.
    """
    cdef int64_t n = root.totals.n
    end_growth(g)
    g.plan = plan
    g.search = new_search(&plan.criterion, plan.mode, w.payload, &plan.limits)
    if plan.draws:
        if not ready_reader(g, plan, &w.payload, n, w.n_rows):
            return False
        take_rows(g.reader, &w.payload, w.rows + root.start, n, &plan.criterion, &plan.lists)
        root.start = 0
        if g.n_columns != plan.limits.n_columns and not number_columns(g, plan.limits.n_columns):
            return False
    push_frame(g, w)
    push(&g.frames[0], root)
    return True


cdef bint number_columns(Growth* g, int64_t n_columns) noexcept nogil:
    """The permutation that columns are drawn from; False without memory."""
    cdef size_t n_bytes = n_columns * sizeof(int32_t)
    cdef int64_t i
    free(g.drawn)
    free(g.swapped)
    free(g.ascending)
    g.drawn = <int32_t*>malloc(n_bytes)
    g.swapped = <int32_t*>malloc(n_bytes)
    g.ascending = <int32_t*>malloc(n_bytes)
    g.n_columns = 0
    if g.drawn == NULL or g.swapped == NULL or g.ascending == NULL:
        return False
    for i in range(n_columns):
        g.drawn[i] = <int32_t>i
    g.n_columns = n_columns
    return True


cdef void end_growth(Growth* g) noexcept nogil:
    """Forget a growth, complete or not, but for its memory."""
    cdef int i
    cdef int64_t j
    for i in range(g.n_frames):
        for j in range(g.frames[i].n_open):
            free_node(&g.frames[i].open[j])
        free(g.frames[i].open)
        if i > 0:
            free_workspace(g.frames[i].workspace)
    g.n_frames = 0
    free_search(g.search)
    g.search = NULL
    g.out.count = 0
    g.out.n_words = 0
    g.work = 0


cdef void free_growth(Growth* g) noexcept nogil:
    if g == NULL:
        return
    end_growth(g)
    free_records(&g.out)
    free(g.drawn)
    free(g.swapped)
    free(g.ascending)
    free_reader(g.reader)
    free(g)


cdef void push_frame(Growth* g, Workspace* w) noexcept nogil:
    cdef Frame* frame = &g.frames[g.n_frames]
    memset(frame, 0, sizeof(Frame))
    frame.workspace = w
    g.n_frames += 1
    g.search.payload = w.payload


cdef void pop_frame(Growth* g) noexcept nogil:
    cdef Frame* frame
    g.n_frames -= 1
    frame = &g.frames[g.n_frames]
    free(frame.open)
    if g.n_frames > 0:
        free_workspace(frame.workspace)
        g.search.payload = g.frames[g.n_frames - 1].workspace.payload


cdef inline void push(Frame* frame, const OpenNode* node) noexcept nogil:
    if frame.n_open == frame.capacity:
        frame.capacity = 2 * frame.capacity + 64
        frame.open = <OpenNode*>realloc(frame.open, frame.capacity * sizeof(OpenNode))
    frame.open[frame.n_open] = node[0]
    frame.n_open += 1


cdef inline bint outgrown(const Workspace* w, int64_t n) noexcept nogil:
    """Whether a node of n rows is better off in a workspace of its own."""
    if w.counted.least_rows > 0:
        return n < w.counted.least_rows
    return LEAST_COMPACT <= n <= COMPACT_ROWS and n * COMPACT_SHARE < w.n_rows


# ---------------------------------------------------------------------------------------------
# one node after the other

cdef bint grow_for(Growth* g, int64_t work) noexcept nogil:
    """Grow until about `work` entries were looked at; False when the subtree is complete."""
    cdef Frame* frame
    cdef OpenNode node
    cdef Workspace* w
    cdef Workspace* new
    cdef int64_t stop = g.work + work
    while g.n_frames > 0:
        frame = &g.frames[g.n_frames - 1]
        if frame.n_open == 0:
            pop_frame(g)
            continue
        if g.work > stop:
            return True
        frame.n_open -= 1
        node = frame.open[frame.n_open]
        w = frame.workspace
        if node.is_leaf:
            write_record(&g.out, g.plan, &node)
            free_node(&node)
        elif g.plan.draws:
            grow_drawn(g, frame, &node)
        elif not w.narrow:
            new = relocate(w, <uint64_t*>w.entries, &node, g.plan.columns,
                           &g.plan.count_rule)
            push_frame(g, new)
            push(&g.frames[g.n_frames - 1], &node)
        elif w.shared or (g.n_frames < MAX_FRAMES and outgrown(w, node.totals.n)):
            new = relocate(w, <uint32_t*>w.entries, &node, g.plan.columns, &g.plan.count_rule)
            push_frame(g, new)
            push(&g.frames[g.n_frames - 1], &node)
        else:
            grow_node(g, frame, &node, <uint32_t*>w.entries)
    return False


# ---------------------------------------------------------------------------------------------
# the search of a node

cdef double perfect_score(const Growth* g, const OpenNode* node) noexcept nogil:
    """A score that no split of the node can beat; 1e300 when none is known.

    Both sides pure, or two rows: columns that do not come before one that reaches it are passed
    over.
    """
    cdef const Totals* t = &node.totals
    if g.plan.mode == COUNT and t.weight < EXACT_WEIGHT:
        return squared_score(<double>t.weight, <double>t.target, <double>t.target,
                             <double>(t.weight - t.target), <double>t.target)
    if g.plan.mode == CLASSES and g.plan.criterion.impurity == GINI and t.weight < EXACT_WEIGHT:
        return <double>t.weight
    if g.plan.mode == SUM and g.plan.criterion.impurity == SQUARED and t.n == 2:
        return -1.0
    return 1e300


cdef inline bint cannot_win(const Search* q, double perfect, int32_t column) noexcept nogil:
    """Whether a column that was not searched yet is at best as good as the split that there is, and
    comes after it."""
    return (q.split.test != LEAF and q.split.score >= perfect
            and not comes_first(q, column, q.split.column))


cdef void search_columns(Growth* g, OpenNode* node, const uint32_t* entries) noexcept nogil:
    """The best split over the columns that vary in the node; constant ones lose their runs."""
    cdef Search* q = g.search
    cdef double perfect = perfect_score(g, node)
    cdef int64_t n = node.n_runs
    cdef int64_t i, r
    cdef int64_t kept = 0
    cdef bint ordered = q.random_ties and perfect < 1e300 and n <= MOST_ORDERED
    cdef uint8_t[MOST_ORDERED] order
    cdef uint8_t[MOST_ORDERED] varies
    if not ordered:
        for r in range(n):
            if (cannot_win(q, perfect, node.runs[r].column)
                    or search_column(g, node, entries, &node.runs[r])):
                node.runs[kept] = node.runs[r]
                kept += 1
        node.n_runs = kept
        return
    order_by_key(q, node, order)
    for i in range(n):
        r = order[i]
        varies[r] = (cannot_win(q, perfect, node.runs[r].column)
                     or search_column(g, node, entries, &node.runs[r]))
    for r in range(n):
        node.runs[kept] = node.runs[r]
        kept += varies[r]
    node.n_runs = kept


cdef void order_by_key(const Search* q, const OpenNode* node, uint8_t* order) noexcept nogil:
    """The runs of a node, those first whose columns win ties, about: by the head of the key.

    A perfect split of an early one is the end of the search.
    """
    cdef int64_t n = node.n_runs
    cdef uint8_t[MOST_ORDERED] bucket
    cdef int32_t[BUCKETS] place
    cdef int32_t before = 0
    cdef int32_t count
    cdef int64_t i
    memset(place, 0, sizeof(place))
    for i in range(n):
        bucket[i] = <uint8_t>(BUCKETS - 1 - (key_of_tie(q, node.runs[i].column) >> 58))
        place[bucket[i]] += 1
    for i in range(BUCKETS):
        count = place[i]
        place[i] = before
        before += count
    for i in range(n):
        order[place[bucket[i]]] = <uint8_t>i
        place[bucket[i]] += 1


cdef void search_draws(Growth* g, const OpenNode* node) noexcept nogil:
    """The best split over drawn columns; on beyond max_features, one by one, while none varies."""
    cdef Search* q = g.search
    cdef int64_t n_columns = g.plan.limits.n_columns
    cdef double perfect = perfect_score(g, node)
    cdef int64_t first = 0
    cdef int64_t count = g.plan.limits.max_features
    cdef int64_t i, kept
    cdef int32_t column
    read_rows(g.reader, q, node)
    g.work += 2 * node.totals.n
    mark_present(g.reader, node)
    while first < n_columns and q.split.test == LEAF:
        count = draw_columns(g.plan, node.path, g.drawn, g.swapped, first, count)
        memcpy(g.ascending, g.drawn + first, count * sizeof(int32_t))
        kept = drop_absent(g.reader, g.ascending, count)
        g.work += count
        if g.reader.is_small and g.plan.row_codes.codes != NULL:
            g.work += 2 * node.totals.n
            kept = search_lanes(g.reader, q, node, g.plan, g.ascending, kept)
        if kept <= FEW_COLUMNS:
            sort_columns(q, g.ascending, kept)
        for i in range(kept):
            column = g.ascending[i]
            if cannot_win(q, perfect, column):
                continue
            if g.reader.place != NULL:
                fetch_ahead(g.plan.columns, g.ascending, i, kept)
            if g.plan.limits.random_cuts:
                search_cut(g.reader, q, node, g.plan.columns + column, column,
                           g.plan.values + g.plan.first_value[column])
            elif search_drawn(g.reader, q, node, g.plan.columns + column, column):
                if g.plan.columns[column].n_ordered < g.plan.columns[column].n_codes:
                    g.work += work_of_groups(q)
            g.work += node.totals.n + 8
        first += count
        count = 1
    forget_present(g.reader, node)
    # the permutation as it was: the swaps once more, the last one first
    for i in range(first - 1, -1, -1):
        column = g.drawn[i]
        g.drawn[i] = g.drawn[g.swapped[i]]
        g.drawn[g.swapped[i]] = column


cdef inline void fetch_ahead(const Column* columns, const int32_t* drawn, int64_t i,
                             int64_t n) noexcept nogil:
    """Sparse columns lie far apart: ask for what the next ones are read from."""
    cdef const Column* column
    if i + 2 * AHEAD < n:
        prefetch(columns + drawn[i + 2 * AHEAD])
    if i + AHEAD < n:
        column = columns + drawn[i + AHEAD]
        prefetch(column.rows)
        prefetch(column.rows + 16)


cdef void sort_columns(const Search* q, int32_t* columns, int64_t n) noexcept nogil:
    """Columns in the order in which they win ties; few, so by insertion."""
    cdef uint64_t[FEW_COLUMNS] keys
    cdef int64_t i, j
    cdef uint64_t key
    cdef int32_t column
    for i in range(n):
        column = columns[i]
        key = key_of_tie(q, column) if q.random_ties else ~<uint64_t>column
        j = i
        while j > 0 and keys[j - 1] < key:
            keys[j] = keys[j - 1]
            columns[j] = columns[j - 1]
            j -= 1
        keys[j] = key
        columns[j] = column


cdef bint search_column(Growth* g, const OpenNode* node, const uint32_t* entries,
                        const Run* run) noexcept nogil:
    """Search one column of the node, however it is read; False when it is constant."""
    cdef Search* q = g.search
    cdef const Column* column = g.plan.columns + run.column
    cdef bint varies
    if run.length == 0:
        g.work += column.n_codes * g.plan.stride
        varies = search_histogram(q, node.histogram + run.offset, column.n_codes, run.column,
                                  run.last_ordered)
    elif run.length < q.too_short:
        return True
    else:
        g.work += run.length + 8
        varies = search_run(q, entries, run)
    if varies and run.last_ordered != ALL_ORDERED:
        g.work += work_of_groups(q)
    return varies


cdef int64_t work_of_groups(const Search* q) noexcept nogil:
    """What the search of a column with categories costs, in entries, about."""
    cdef int64_t K = q.criterion.n_classes if q.criterion.n_classes > 2 else 1
    cdef int64_t work = q.groups.count * K
    if K == 1:
        return work + 64
    if q.groups.count <= 11:
        return work * (1024 // 11)
    return work * 4 + 64 * (K + (work if work < q.totals.n else q.totals.n))


# ---------------------------------------------------------------------------------------------
# the split of a node

cdef void grow_node(Growth* g, Frame* frame, OpenNode* node, uint32_t* entries) noexcept nogil:
    """Split one node: a record, and up to two open nodes on the frame. The node is freed."""
    cdef Workspace* w = frame.workspace
    cdef Search* q = g.search
    cdef const Plan* plan = g.plan
    cdef int64_t record = write_record(&g.out, plan, node)
    cdef int64_t r
    cdef OpenNode left
    cdef OpenNode right
    cdef Route route
    cdef Run* run
    cdef const Column* column
    begin_node(q, &node.totals, node.class_totals, node.path)
    if w.counted.n_cells > 0 and node.histogram == NULL:
        node.histogram = <int64_t*>calloc(w.counted.n_cells, sizeof(int64_t))
        count_runs(w, plan.columns, plan.mode, plan.stride, node.runs, node.n_runs, node.start,
                   node.totals.n, node.histogram)
        g.work += node.n_runs * node.totals.n
    search_columns(g, node, entries)
    finish_node(q)
    if q.split.test == LEAF or not gains_enough(&plan.limits, q.split.gain):
        free_node(node)
        return
    column = plan.columns + q.split.column
    r = 0
    while node.runs[r].column != q.split.column:
        r += 1
    run = &node.runs[r]
    route = route_of(&q.split, run.last_ordered, q.split_subset, q.split_subset_words)
    if run.length > 0:
        if q.split.test == IN_SUBSET:
            collect_groups(q, entries, run)
        mark_run(&route, entries, run, w.rows + node.start, node.totals.n, w.side)
    else:
        if q.split.test == IN_SUBSET:
            groups_of_histogram(q, node.histogram + run.offset, column.n_codes)
        mark_codes(&route, column, w.row_id, w.rows + node.start, node.totals.n, w.side)
    open_children(plan, w, node, record, &left, &right)
    write_test(&g.out, record, plan, w, q, run, &left.totals, &right.totals)
    if not left.is_leaf:
        left.runs = <Run*>malloc((node.n_runs + 1) * sizeof(Run))
    if not right.is_leaf:
        right.runs = <Run*>malloc((node.n_runs + 1) * sizeof(Run))
    g.work += part_runs(entries, node.runs, node.n_runs, w.side, <uint32_t*>w.scratch, left.runs,
                        &left.n_runs, right.runs, &right.n_runs)
    if node.histogram != NULL:
        part_histogram(w, plan.columns, plan.mode, plan.stride, node.runs, node.n_runs,
                       w.counted.n_cells, &left, &right,
                       not left.is_leaf and left.totals.n >= w.counted.least_rows,
                       not right.is_leaf and right.totals.n >= w.counted.least_rows,
                       &node.histogram, &left.histogram, &right.histogram)
        g.work += node.totals.n * node.n_runs // 2
    free_node(node)
    push(frame, &right)
    push(frame, &left)


cdef void grow_drawn(Growth* g, Frame* frame, OpenNode* node) noexcept nogil:
    """The same where columns are drawn: the items of the bag are parted, nothing else."""
    cdef Search* q = g.search
    cdef const Plan* plan = g.plan
    cdef int64_t record = write_record(&g.out, plan, node)
    cdef const Column* column
    cdef OpenNode left
    cdef OpenNode right
    cdef Route route
    begin_node(q, &node.totals, node.class_totals, node.path)
    search_draws(g, node)
    finish_node(q)
    if q.split.test == LEAF or not gains_enough(&plan.limits, q.split.gain):
        free_node(node)
        return
    column = plan.columns + q.split.column
    if plan.limits.random_cuts:
        finish_cut(g.reader, q, node, column)
    route = route_of(&q.split, last_ordered(column), q.split_subset, q.split_subset_words)
    if q.split.test == IN_SUBSET:
        groups_of_drawn(g.reader, q, node, column, q.split.column)
    open_items(plan, g.reader, node, record, &route, column, &left, &right)
    write_test(&g.out, record, plan, frame.workspace, q, &g.no_run, &left.totals, &right.totals)
    free_node(node)
    if not left.is_leaf:
        push(frame, &right)
        push(frame, &left)
        return
    write_record(&g.out, plan, &left)
    free_node(&left)
    if right.is_leaf:
        write_record(&g.out, plan, &right)
        free_node(&right)
    else:
        push(frame, &right)
