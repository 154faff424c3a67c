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

from dtrees._random cimport below, hash64
from dtrees.core._criterion cimport natural_log, squared_score, xlogx
from dtrees.core._bag cimport Bag, part_items, range_of_items, sum_items
from dtrees.core._drawn cimport (
    codes_to_part, drop_absent, finish_cut, forget_present, free_reader, groups_of_drawn, has_room,
    mark_present, new_reader, place_rows, read_rows, search_cut, search_drawn,
    take_rows
)
from dtrees.core._groups cimport collect_groups
from dtrees.core._histogram cimport (
    count_runs, groups_of_histogram, part_histogram, search_histogram
)
from dtrees.core._route cimport Route, mark_codes, mark_run, part_runs, route_of
from dtrees.core._search cimport Search, begin_node, finish_node, free_search, new_search
from dtrees.core._splitter cimport search_run
from dtrees.core._structs cimport (
    ALL_ORDERED, CLASSES, COUNT, ENTROPY, GINI, IN_SUBSET, LEAF, POISSON, SQUARED, SUM,
    Payload, Run, Split, Totals, int128_t
)
from dtrees.core._workspace cimport (
    Column, OpenNode, Workspace, code_at, free_workspace, last_ordered, relocate
)

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil

cdef enum:
    AHEAD = 8               # columns
    FEW_COLUMNS = 32        # drawn columns that are sorted: a perfect split of the lowest ends it
    COMPACT_ROWS = 1024     # nodes of at most so many rows leave a much larger workspace
    COMPACT_SHARE = 8
    LEAST_COMPACT = 64      # rows: what moves is more than what is saved
    EXACT_WEIGHT = 1 << 17  # scores of perfect splits are exact below


# ---------------------------------------------------------------------------------------------
# records

cdef void free_records(Records* out) noexcept nogil:
    free(out.nodes)
    free(out.statistics)
    free(out.words)
    memset(out, 0, sizeof(Records))


cdef void free_node(OpenNode* node) noexcept nogil:
    free(node.class_totals)
    free(node.runs)
    free(node.histogram)
    node.class_totals = NULL
    node.runs = NULL
    node.histogram = NULL


cdef int64_t write_record(Records* out, const Plan* plan, const OpenNode* node) noexcept nogil:
    """Append a node as a leaf, linked to its parent; returns its number."""
    cdef int64_t i = out.count
    cdef int64_t S = plan.n_statistics
    cdef Record* record
    if i == out.capacity:
        out.capacity = 2 * i + 64
        out.nodes = <Record*>realloc(out.nodes, out.capacity * sizeof(Record))
        out.statistics = <int64_t*>realloc(out.statistics, out.capacity * S * sizeof(int64_t))
    out.count = i + 1
    record = out.nodes + i
    record.n = node.totals.n
    record.subset = -1
    record.impurity = node.impurity
    record.gain = 0
    record.left = -1
    record.right = -1
    record.column = -2
    record.boundary = 0
    record.beyond = 0
    record.test = LEAF
    record.missing_left = 0
    if node.class_totals != NULL:
        memcpy(out.statistics + i * S, node.class_totals, S * sizeof(int64_t))
    else:
        out.statistics[i * S] = node.totals.weight
        out.statistics[i * S + 1] = node.totals.target
    if node.parent >= 0:
        if node.is_left:
            out.nodes[node.parent].left = i
        else:
            out.nodes[node.parent].right = i
    return i


cdef int64_t reserve_words(Records* out, int64_t count) noexcept nogil:
    """Room for a subset of `count` words, all zero; returns its offset."""
    cdef int64_t offset = out.n_words
    if offset + count > out.words_capacity:
        out.words_capacity = 2 * (offset + count)
        out.words = <uint64_t*>realloc(out.words, out.words_capacity * sizeof(uint64_t))
    memset(out.words + offset, 0, count * sizeof(uint64_t))
    out.n_words = offset + count
    return offset


cdef void write_test(Records* out, int64_t index, const Plan* plan, const Workspace* w, Search* q,
                     const Run* run, const Totals* left, const Totals* right) noexcept nogil:
    """Write the chosen split into a record, in codes.

    For a subset the groups of the search must be those of the chosen column. Categories that the
    node lacks go with the missing values, or to the heavier child.
    """
    cdef const Split* split = &q.split
    cdef Record* record = out.nodes + index
    cdef const Column* column = plan.columns + split.column
    cdef bint heavier_left = left.weight > right.weight
    cdef bint absent_left
    cdef int64_t words, g
    cdef uint32_t code
    cdef uint64_t* subset
    record.column = split.column
    record.test = split.test
    record.gain = split.gain
    record.missing_left = split.missing_left if split.saw_missing else heavier_left
    if split.test != IN_SUBSET:
        record.boundary = code_of(column, w, run, split.boundary, split.boundary_row)
        record.beyond = code_of(column, w, run, split.beyond, split.beyond_row)
        return
    absent_left = heavier_left if plan.limits.unseen_by_majority else record.missing_left
    if column.n_ordered > 0:
        absent_left = False
    words = (<int64_t>column.n_codes >> 6) + 1
    record.subset = reserve_words(out, words)
    subset = out.words + record.subset
    if absent_left:
        memset(subset, 0xFF, words * sizeof(uint64_t))
    for g in range(q.groups.count):
        code = code_of(column, w, run, q.groups.rank[g], q.groups.row[g])
        if (q.split_subset[q.groups.rank[g] >> 6] >> (q.groups.rank[g] & 63)) & 1:
            subset[code >> 6] |= <uint64_t>1 << (code & 63)
        else:
            subset[code >> 6] &= ~(<uint64_t>1 << (code & 63))
    if record.missing_left:
        subset[0] |= 1
    else:
        subset[0] &= ~<uint64_t>1
    # codes that do not exist: the same words whatever the column
    code = column.n_codes & 63
    if code < 63:
        subset[words - 1] &= (<uint64_t>1 << (code + 1)) - 1


cdef inline uint32_t code_of(const Column* column, const Workspace* w, const Run* run,
                             uint32_t rank, int64_t row) noexcept nogil:
    """The code behind a rank: itself in codes and large workspaces, else that of a row with it."""
    if rank == 0 or not w.narrow or run.length == 0:
        return rank
    if row < 0:
        return run.fill_code
    return code_at(column, row if w.row_id == NULL else w.row_id[row])


# ---------------------------------------------------------------------------------------------
# nodes

cdef inline int64_t weight_of(const Payload* payload, int64_t row) noexcept nogil:
    if payload.times != NULL:
        return payload.times[row]
    return 1 if payload.weight == NULL else payload.weight[row]


cdef inline void add_value(Totals* t, const Payload* payload, const Plan* plan,
                           int64_t row) noexcept nogil:
    """Regression: sums and the range of y."""
    cdef int64_t y = payload.value[row]
    cdef int64_t w = weight_of(payload, row)
    cdef int64_t wy = w * y if payload.times != NULL else payload.target[row]
    cdef double term
    t.weight += w
    t.target += wy
    if plan.criterion.impurity == POISSON:
        if y > 0:
            term = <double>y * natural_log(<double>y) * plan.criterion.fixed_point
            t.moment += <int128_t>w * <int64_t>(term + 0.5)
    else:
        t.moment += <int128_t>wy * y
    if y < t.lowest:
        t.lowest = y
    if y > t.highest:
        t.highest = y


cdef void sum_rows(const Payload* payload, const Plan* plan, const uint32_t* rows, int64_t n,
                   Totals* totals, int64_t* class_totals) noexcept nogil:
    """Totals of n rows. class_totals, if not NULL: (n_classes,), overwritten."""
    cdef int64_t i, w
    cdef int k
    cdef Totals t
    memset(&t, 0, sizeof(Totals))
    t.n = n
    t.lowest = 0x7FFFFFFFFFFFFFFF
    t.highest = -0x7FFFFFFFFFFFFFFF
    if class_totals != NULL:
        for k in range(plan.criterion.n_classes):
            class_totals[k] = 0
        for i in range(n):
            w = weight_of(payload, rows[i])
            class_totals[payload.label[rows[i]]] += w
            t.weight += w
        t.target = class_totals[1] if plan.criterion.n_classes > 1 else 0
    else:
        for i in range(n):
            add_value(&t, payload, plan, rows[i])
    totals[0] = t


cdef void subtract(const OpenNode* node, const OpenNode* left, OpenNode* right,
                   const Plan* plan) noexcept nogil:
    """Totals of the right child from those of its parent and its sibling, but for its range."""
    cdef int k
    right.totals.n = node.totals.n - left.totals.n
    right.totals.weight = node.totals.weight - left.totals.weight
    right.totals.target = node.totals.target - left.totals.target
    right.totals.moment = node.totals.moment - left.totals.moment
    for k in range(plan.criterion.n_classes):
        right.class_totals[k] = node.class_totals[k] - left.class_totals[k]


cdef double impurity_of(const OpenNode* node, const Plan* plan) noexcept nogil:
    """Impurity in the user's units, from the exact sums."""
    cdef const Totals* t = &node.totals
    cdef double W = <double>t.weight
    cdef double unit
    cdef int128_t squares = 0
    cdef int128_t s2, spread
    cdef int64_t f = 0
    cdef int k
    cdef int shift = 0
    cdef int64_t w = t.weight
    if node.class_totals != NULL:
        if plan.criterion.impurity == ENTROPY:
            for k in range(plan.criterion.n_classes):
                f += xlogx(&plan.criterion, node.class_totals[k])
            f = xlogx(&plan.criterion, w) - f
            if f <= 0:
                return 0.0
            return <double>f / (plan.criterion.fixed_point * 0.6931471805599453) / W
        for k in range(plan.criterion.n_classes):
            squares += <int128_t>node.class_totals[k] * node.class_totals[k]
        return <double>(<int128_t>w * w - squares) / (W * W)
    if t.lowest == t.highest:
        return 0.0
    if plan.criterion.impurity == POISSON:
        # in integer units of weight and y, whose logarithms cancel
        unit = <double>t.target * (plan.criterion.wy_unit / plan.criterion.weight_unit
                                   / plan.criterion.value_unit)
        if unit <= 0:
            return 0.0
        unit = (<double>t.moment / plan.criterion.fixed_point
                - unit * natural_log(unit / W)) / W
        return unit * plan.criterion.value_unit if unit > 0 else 0.0
    W = W * plan.criterion.weight_unit
    if not plan.criterion.one_scale:
        unit = <double>t.target * plan.criterion.wy_unit / W
        unit = (<double>t.moment * plan.criterion.value_unit * plan.criterion.wy_unit / W
                - unit * unit)
        return unit if unit > 0 else 0.0
    # moment - target**2 / weight, in integers: nothing cancels
    unit = plan.criterion.weight_unit
    while unit < 1.0:
        unit = unit * 2.0
        shift += 1
    s2 = <int128_t>t.target * t.target
    squares = s2 / w
    spread = t.moment - (squares << shift)
    if shift > 0:
        spread -= ((s2 - squares * w) << shift) / w
    if spread <= 0:
        return 0.0
    return <double>spread * plan.criterion.value_unit * plan.criterion.value_unit / W


cdef bint is_leaf(const OpenNode* node, const Plan* plan) noexcept nogil:
    """Whether a node stays as it is: limits, or nothing left to part."""
    cdef const Limits* limits = &plan.limits
    cdef const Totals* t = &node.totals
    cdef int k
    if node.depth >= limits.max_depth or t.n < limits.min_samples_split:
        return True
    if t.n < 2 * limits.min_rows or t.weight < 2 * limits.min_weight:
        return True
    if node.class_totals == NULL:
        return t.lowest == t.highest
    for k in range(plan.criterion.n_classes):
        if node.class_totals[k] == t.weight:
            return True
    return False


cdef void describe(OpenNode* node, const Plan* plan) noexcept nogil:
    """Impurity and leafhood, once the totals are known."""
    node.impurity = impurity_of(node, plan)
    node.is_leaf = is_leaf(node, plan)


cdef void open_children(const Plan* plan, Workspace* w, const OpenNode* node, int64_t record,
                        OpenNode* left, OpenNode* right) noexcept nogil:
    """Part the rows of a node by w.side and sum up the children. Their runs are left empty."""
    cdef uint32_t* rows = w.rows + node.start
    cdef uint32_t* scratch = w.row_scratch + node.start  # of this stretch: workspaces are shared
    cdef int64_t n = node.totals.n
    cdef int64_t n_left = 0
    cdef int64_t n_right = 0
    cdef int64_t i
    cdef uint32_t row
    cdef uint8_t is_left
    for i in range(n):
        row = rows[i]
        is_left = w.side[row]
        rows[n_left] = row
        scratch[n_right] = row
        n_left += is_left
        n_right += 1 - is_left
    memcpy(rows + n_left, scratch, n_right * sizeof(uint32_t))
    begin_children(plan, node, record, n_left, left, right)
    if node.class_totals == NULL:
        sum_rows(&w.payload, plan, rows, n_left, &left.totals, NULL)
        sum_rows(&w.payload, plan, rows + n_left, n_right, &right.totals, NULL)
    elif n_left <= n_right:
        sum_rows(&w.payload, plan, rows, n_left, &left.totals, left.class_totals)
        subtract(node, left, right, plan)
    else:
        sum_rows(&w.payload, plan, rows + n_left, n_right, &right.totals, right.class_totals)
        subtract(node, right, left, plan)
    describe(left, plan)
    describe(right, plan)


cdef void open_items(Growth* g, const OpenNode* node, int64_t record, const Route* route,
                     const Column* column, OpenNode* left, OpenNode* right) noexcept nogil:
    """The same for the items of a bag."""
    cdef const Plan* plan = g.plan
    cdef Bag* bag = &g.reader.bag
    cdef const uint32_t* codes = codes_to_part(g.reader, node, column, route.subset != NULL)
    cdef int64_t n_left = part_items(bag, node.start, node.totals.n, route, column, codes)
    cdef OpenNode* lesser = left
    cdef OpenNode* other = right
    begin_children(plan, node, record, n_left, left, right)
    if 2 * n_left > node.totals.n:
        lesser, other = right, left
    sum_items(bag, lesser.start, n_left if lesser == left else node.totals.n - n_left,
              plan.criterion.impurity, plan.criterion.fixed_point, plan.criterion.n_classes,
              &lesser.totals, lesser.class_totals)
    subtract(node, lesser, other, plan)
    place_rows(g.reader, node)
    if bag.value != NULL:
        range_of_items(bag, other.start, other.totals.n, &other.totals)
    describe(left, plan)
    describe(right, plan)


cdef void begin_children(const Plan* plan, const OpenNode* node, int64_t record, int64_t n_left,
                         OpenNode* left, OpenNode* right) noexcept nogil:
    """Two nodes without totals."""
    cdef size_t K = plan.criterion.n_classes * sizeof(int64_t)
    memset(left, 0, sizeof(OpenNode))
    memset(right, 0, sizeof(OpenNode))
    if node.class_totals != NULL:
        left.class_totals = <int64_t*>malloc(K)
        right.class_totals = <int64_t*>malloc(K)
    left.start = node.start
    right.start = node.start + n_left
    left.depth = node.depth + 1
    right.depth = left.depth
    left.parent = record
    right.parent = record
    left.is_left = True
    left.path = hash64(node.path, 1)
    right.path = hash64(node.path, 2)


cdef int64_t draw_columns(const Plan* plan, uint64_t path, int32_t* order, int32_t* swapped,
                          int64_t first, int64_t count) noexcept nogil:
    """Draws first .. first+count of a node's keyed permutation of the columns.

    order : a permutation; draw i is left in order[i], and in swapped[i] where it came from, NULL
    when nobody wants to know. Draw k depends on (seed, tree, path, k) and
    the draws before it only. Returns how many there are.
    """
    cdef int64_t n = plan.limits.n_columns
    cdef int64_t i, j
    cdef int32_t column
    cdef uint64_t key = hash64(hash64(plan.limits.seed, plan.limits.tree), path)
    if first + count > n:
        count = n - first
    for i in range(first, first + count):
        j = i + <int64_t>below(hash64(key, <uint64_t>i), <uint64_t>(n - i))
        column = order[i]
        order[i] = order[j]
        order[j] = column
        if swapped != NULL:
            swapped[i] = <int32_t>j
    return count


# ---------------------------------------------------------------------------------------------
# growth

cdef Growth* new_growth() noexcept nogil:
    """Memory for growths, one after the other; NULL without any. Freed by `free_growth`."""
    return <Growth*>calloc(1, sizeof(Growth))


cdef bint begin_growth(Growth* g, const Plan* plan, Workspace* w, OpenNode* root) noexcept nogil:
    """Begin a subtree, in the memory of the one before; False without memory.

    `root` is taken over, the workspace is not.
    """
    cdef int64_t i
    cdef int64_t n = root.totals.n
    end_growth(g)
    g.plan = plan
    g.search = new_search(&plan.criterion, plan.mode, w.payload, plan.limits.min_rows,
                          plan.limits.min_weight)
    if plan.draws:
        if g.reader == NULL or not has_room(g.reader, plan.mode, n, w.n_rows):
            free_reader(g.reader)
            g.reader = new_reader(&w.payload, w.rows + root.start, n, w.n_rows, plan.mode,
                                  &plan.criterion, &plan.lists, plan.limits.random_cuts)
        else:
            take_rows(g.reader, &w.payload, w.rows + root.start, n, &plan.criterion)
        if g.reader == NULL:
            return False
        root.start = 0
        if g.drawn == NULL:
            g.drawn = <int32_t*>malloc(plan.limits.n_columns * sizeof(int32_t))
            g.swapped = <int32_t*>malloc(plan.limits.n_columns * sizeof(int32_t))
            g.ascending = <int32_t*>malloc(plan.limits.n_columns * sizeof(int32_t))
            for i in range(plan.limits.n_columns):
                g.drawn[i] = <int32_t>i
    push_frame(g, w)
    push(&g.frames[0], root)
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


cdef double perfect_score(const Growth* g, const OpenNode* node) noexcept nogil:
    """A score that no split of the node can beat; 1e300 when none is known.

    Both sides pure, or two rows: the first column that reaches it, which is the lowest, wins.
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


cdef void search_columns(Growth* g, OpenNode* node, const uint32_t* entries) noexcept nogil:
    """The best split over the columns that vary in the node; constant ones lose their runs."""
    cdef Search* q = g.search
    cdef double perfect = perfect_score(g, node)
    cdef int64_t r
    cdef int64_t kept = 0
    for r in range(node.n_runs):
        if ((q.split.test != LEAF and q.split.score >= perfect)
                or search_column(g, node, entries, &node.runs[r])):
            node.runs[kept] = node.runs[r]
            kept += 1
    node.n_runs = kept


cdef void search_draws(Growth* g, const OpenNode* node) noexcept nogil:
    """The best split over drawn columns; on beyond max_features, one by one, while none varies."""
    cdef Search* q = g.search
    cdef int64_t n_columns = g.plan.limits.n_columns
    cdef double perfect = perfect_score(g, node)
    cdef int64_t first = 0
    cdef int64_t count = g.plan.limits.max_features
    cdef int64_t i, kept
    cdef int32_t column
    q.draws = hash64(hash64(hash64(g.plan.limits.seed, g.plan.limits.tree), node.path), CUTS)
    read_rows(g.reader, q, node)
    g.work += 2 * node.totals.n
    mark_present(g.reader, node)
    while first < n_columns and q.split.test == LEAF:
        count = draw_columns(g.plan, node.path, g.drawn, g.swapped, first, count)
        memcpy(g.ascending, g.drawn + first, count * sizeof(int32_t))
        kept = drop_absent(g.reader, g.ascending, count)
        if kept <= FEW_COLUMNS:
            sort_columns(g.ascending, kept)
        g.work += count
        for i in range(kept):
            column = g.ascending[i]
            if q.split.score >= perfect and column > q.split.column:
                continue  # at best as good as one before it
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


cdef void sort_columns(int32_t* columns, int64_t n) noexcept nogil:
    """Ascending column numbers; few, so by insertion."""
    cdef int64_t i, j
    cdef int32_t column
    for i in range(1, n):
        column = columns[i]
        j = i
        while j > 0 and columns[j - 1] > column:
            columns[j] = columns[j - 1]
            j -= 1
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
    begin_node(q, &node.totals, node.class_totals)
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
    begin_node(q, &node.totals, node.class_totals)
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
    open_items(g, node, record, &route, column, &left, &right)
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


def record_offsets():
    """Size of a record and offsets of its fields: {name: offset}, for the numpy twin's test."""
    cdef Record r
    cdef char* start = <char*>&r
    return sizeof(Record), {
        "n": <char*>&r.n - start, "subset": <char*>&r.subset - start,
        "impurity": <char*>&r.impurity - start, "gain": <char*>&r.gain - start,
        "left": <char*>&r.left - start, "right": <char*>&r.right - start,
        "column": <char*>&r.column - start, "boundary": <char*>&r.boundary - start,
        "beyond": <char*>&r.beyond - start, "test": <char*>&r.test - start,
        "missing_left": <char*>&r.missing_left - start,
    }
