"""Open nodes: what their rows add up to, whether they stay leaves, and their children.

The rows of a node are parted, then the smaller child is summed up, and the larger one is the node
less the smaller one: sums are integers, so nothing is lost. Regression also wants the least and the
greatest target of both children, which tell whether a node is pure.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dtrees._random cimport hash64
from dtrees.core._bag cimport Bag, part_items, range_of_items, sum_items
from dtrees.core._columns cimport Column
from dtrees.core._criterion cimport moment_of, natural_log, spread_of, xlogx
from dtrees.core._drawn_entries cimport codes_to_part
from dtrees.core._plan cimport Limits, Plan
from dtrees.core._reader cimport Reader, place_rows
from dtrees.core._route cimport Route
from dtrees.core._structs cimport ENTROPY, POISSON, Payload, Totals, int128_t
from dtrees.core._workspace cimport OpenNode, Workspace


cdef void free_node(OpenNode* node) noexcept nogil:
    free(node.class_totals)
    free(node.runs)
    free(node.histogram)
    node.class_totals = NULL
    node.runs = NULL
    node.histogram = NULL


cdef inline int64_t weight_of(const Payload* payload, int64_t row) noexcept nogil:
    if payload.times != NULL:
        return payload.times[row]
    return 1 if payload.weight == NULL else payload.weight[row]


cdef inline void add_value(Totals* t, const Payload* payload, const Plan* plan,
                           int64_t row) noexcept nogil:
    """Regression: the sums."""
    cdef int64_t y = payload.value[row]
    cdef int64_t w = weight_of(payload, row)
    cdef int64_t wy = w * y if payload.times != NULL else payload.target[row]
    t.weight += w
    t.target += wy
    t.moment += moment_of(plan.criterion.impurity, plan.criterion.fixed_point, w, wy, y)


cdef void sum_rows(const Payload* payload, const Plan* plan, const uint32_t* rows, int64_t n,
                   Totals* totals, int64_t* class_totals) noexcept nogil:
    """Totals of n rows. class_totals, if not NULL: (n_classes,), overwritten."""
    cdef int64_t i, w
    cdef int k
    cdef Totals t
    memset(&t, 0, sizeof(Totals))
    t.n = n
    if class_totals != NULL:
        for k in range(plan.criterion.n_classes):
            class_totals[k] = 0
        for i in range(n):
            w = weight_of(payload, rows[i])
            class_totals[payload.label[rows[i]]] += w
            t.weight += w
        t.target = class_totals[1] if plan.criterion.n_classes > 1 else 0
    else:
        range_of_rows(payload, rows, n, &t)
        for i in range(n):
            add_value(&t, payload, plan, rows[i])
    totals[0] = t


cdef void clear_totals(Totals* totals) noexcept nogil:
    """Sums that `add_to_totals` may add to."""
    memset(totals, 0, sizeof(Totals))
    totals.lowest = 0x7FFFFFFFFFFFFFFF
    totals.highest = -0x7FFFFFFFFFFFFFFF


cdef void add_to_totals(const Payload* payload, const Plan* plan, int64_t row, Totals* totals,
                        int64_t* class_totals) noexcept nogil:
    """Add a row to sums. class_totals : (n_classes,); NULL for regression."""
    cdef int64_t w, y
    totals.n += 1
    if class_totals != NULL:
        w = weight_of(payload, row)
        y = payload.label[row]
        class_totals[y] += w
        totals.weight += w
        totals.target += w if y == 1 else 0
        return
    y = payload.value[row]
    totals.lowest = y if y < totals.lowest else totals.lowest
    totals.highest = y if y > totals.highest else totals.highest
    add_value(totals, payload, plan, row)


cdef void range_of_rows(const Payload* payload, const uint32_t* rows, int64_t n,
                        Totals* totals) noexcept nogil:
    """Least and greatest y of n rows."""
    cdef int64_t lowest = 0x7FFFFFFFFFFFFFFF
    cdef int64_t highest = -0x7FFFFFFFFFFFFFFF
    cdef int64_t i, y
    for i in range(n):
        y = payload.value[rows[i]]
        lowest = y if y < lowest else lowest
        highest = y if y > highest else highest
    totals.lowest = lowest
    totals.highest = highest


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
    cdef int128_t spread
    cdef int64_t f = 0
    cdef int k
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
    spread = spread_of(t, plan.criterion.weight_unit)
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
    cdef OpenNode* lesser
    cdef OpenNode* other
    for i in range(n):
        row = rows[i]
        is_left = w.side[row]
        rows[n_left] = row
        scratch[n_right] = row
        n_left += is_left
        n_right += 1 - is_left
    memcpy(rows + n_left, scratch, n_right * sizeof(uint32_t))
    begin_children(plan, node, record, n_left, left, right)
    lesser, other = (left, right) if n_left <= n_right else (right, left)
    sum_rows(&w.payload, plan, w.rows + lesser.start, lesser.totals.n, &lesser.totals,
             lesser.class_totals)
    subtract(node, lesser, other, plan)
    if w.payload.value != NULL:
        range_of_rows(&w.payload, w.rows + other.start, other.totals.n, &other.totals)
    describe(left, plan)
    describe(right, plan)


cdef void open_items(const Plan* plan, Reader* reader, const OpenNode* node, int64_t record,
                     const Route* route, const Column* column, OpenNode* left,
                     OpenNode* right) noexcept nogil:
    """The same for the items of a reader's bag, which are parted by the test itself."""
    cdef Bag* bag = &reader.bag
    cdef const uint32_t* codes = codes_to_part(reader, node, column, route.subset != NULL)
    cdef int64_t n_left = part_items(bag, node.start, node.totals.n, route, column, codes,
                                     &plan.row_codes)
    cdef OpenNode* lesser
    cdef OpenNode* other
    begin_children(plan, node, record, n_left, left, right)
    lesser, other = (left, right) if 2 * n_left <= node.totals.n else (right, left)
    sum_items(bag, lesser.start, lesser.totals.n, plan.criterion.impurity,
              plan.criterion.fixed_point, plan.criterion.n_classes, &lesser.totals,
              lesser.class_totals)
    subtract(node, lesser, other, plan)
    place_rows(reader, node)
    if bag.value != NULL:
        range_of_items(bag, other.start, other.totals.n, &other.totals)
    describe(left, plan)
    describe(right, plan)


cdef void begin_children(const Plan* plan, const OpenNode* node, int64_t record, int64_t n_left,
                         OpenNode* left, OpenNode* right) noexcept nogil:
    """Two nodes of so many rows, without other totals."""
    cdef size_t K = plan.criterion.n_classes * sizeof(int64_t)
    memset(left, 0, sizeof(OpenNode))
    memset(right, 0, sizeof(OpenNode))
    if node.class_totals != NULL:
        left.class_totals = <int64_t*>malloc(K)
        right.class_totals = <int64_t*>malloc(K)
    left.totals.n = n_left
    right.totals.n = node.totals.n - n_left
    left.start = node.start
    right.start = node.start + n_left
    left.depth = node.depth + 1
    right.depth = left.depth
    left.parent = record
    right.parent = record
    left.is_left = True
    left.path = hash64(node.path, 1)
    right.path = hash64(node.path, 2)
