"""SHAP values of trees: what each column adds to the prediction of a row.

A leaf with value v gives a set S of columns, of which the values of the row are known, the payout::

    f(S) = v * product over columns i of its path of (o_i if i in S else z_i)

    o_i     1 where the row meets all tests of column i on the path, else 0
    z_i     without the column: share of the training weight that these tests let through
            (path-dependent), or 1 where the background row meets them, else 0 (interventional)

A game of such products has Shapley values that are an integral over its multilinear extension
(Owen 1972), where each column is known with probability t::

    phi_i = v * integral over t in [0, 1] of (o_i - z_i) * product over j != i of u_j(t)
    u_j(t) = t * o_j + (1 - t) * z_j

It is a polynomial of degree d - 1 for d columns on the path, so Gauss and Legendre's rule of
ceil(d / 2) points is exact. All factors are between 0 and 1 and all weights are positive: nothing
cancels. One walk of the tree serves all leaves, as in Linear TreeSHAP (Yu et al. 2022)::

    down    P(t_k) = product of the u_j        up    S(t_k) = sum over leaves below of v * P(t_k)

    edge of column i    phi_i += sum over k of w_k * S(t_k) * [(o - z) / u - (o' - z') / u']

where o', z' and u' are those of column i above the edge: a column that is tested again is counted
by its last edge. A row that has failed a test of the column before adds nothing there. Costs
O(nodes * points) for each row; rows go down in batches of `LANES`.

Interactions are the second derivative of the same (Lundberg et al. 2018, section 3), and an edge
adds to those of its column with each other one of its path::

    phi_ij = v / 2 * integral of (o_i - z_i) * (o_j - z_j) * product over the others

For a background row there is no need of points: a tree is walked with both rows, which part at the
tests that they answer differently. A leaf that is reached with a columns of the row and b of the
background has weights (a - 1)!b!/(a + b)! and a!(b - 1)!/(a + b)!.
"""
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import numpy as np

from dtrees.core.data._structs cimport ABOVE, IN_SUBSET, LEAF
from dtrees.core.predict._packed_forest cimport Grown, GrownTrees

cdef extern from "predict/shap.h" nogil:
    int LANES
    void multiply(const double*, const int64_t*, const int64_t*, const double*, const double*,
                  double, int64_t, int64_t, double*) noexcept
    void collect(const double*, const int64_t*, const int64_t*, const double*, const double*,
                 int64_t, int64_t, double*, double*, double*) noexcept
    void add_products(const double*, const double*, int64_t, int64_t, double*, double*) noexcept

BATCH_ROWS = LANES

cdef struct Edge:
    # From a node's parent to the node.
    double share            # z: of the weight, by all tests of the column so far
    double above            # the same without this one; 1: there was none
    int32_t parent
    int32_t next            # node, depth first; 0: none
    int32_t before          # node below the last edge of the column above; 0: none
    int32_t depth           # of the node
    int32_t n_columns       # tested on the way to it
    int32_t place           # of the column among these
    bint is_heavier         # than the other child

cdef struct Rows:
    # Of a block of rows, (slots, stride).
    const double* numbers
    const int64_t* codes    # NULL: there are no categories
    int64_t stride

cdef struct Sums:
    # (columns, outputs, rows); rows stand side by side.
    double* cells
    int64_t column          # steps
    int64_t output

cdef struct Walk:
    const Grown* tree
    const Edge* edges
    const int32_t* slot     # of columns
    const int64_t* n_codes  # of columns
    const double* value     # (n_nodes, n_outputs)
    int64_t n_columns
    int64_t n_outputs
    int64_t n_points
    int64_t n               # rows of the batch
    Rows rows
    const double* points
    const double* weights
    double* products        # (depth, points, LANES)
    double* sums            # (depth, outputs, points, LANES)
    double* factors         # (depth, 4, points): down where met, and failed; up where met, failed
    int64_t* passes         # (depth, LANES)
    int64_t* met            # (depth, LANES): o of the last edge
    Sums phi                # of columns
    Sums pairs              # of a column and another; NULL: they are not asked for
    double* slopes          # (places, points, LANES): (o - z) / u
    int32_t* columns        # (places,)
    double* parts           # (points, LANES): half of what an edge adds to phi


cdef class ShapTree:
    """A tree made ready: its paths, and the values of its leaves.

    Parameters
    ----------
    tree : Tree
    slot : int32 (n_columns,)
        Place of the columns that it tests in rows.
    value : float64 (n_nodes, n_outputs)
        Nodes that are no leaves are not read.
    n_codes : int64 (n_columns,)
        Larger codes were not there at fit: they go where more weight went.

    Attributes
    ----------
    most_columns, max_depth : int
        Columns of a path, and edges of one, at most.
    """

    cdef GrownTrees grown
    cdef Edge* edges
    cdef bint has_subsets
    cdef const int32_t[::1] slots
    cdef const double[:, ::1] value
    cdef const int64_t[::1] n_codes
    cdef tuple arguments
    cdef readonly object tree
    cdef readonly object slot
    cdef readonly object values
    cdef readonly int64_t n_slots
    cdef readonly int64_t most_columns
    cdef readonly int64_t max_depth

    def __cinit__(self, tree, slot, values, n_codes):
        cdef const double[::1] weight = tree.weighted_n_node_samples
        cdef const Grown* grown
        cdef int64_t i, broken
        self.arguments = tree, slot, values, n_codes
        self.tree, self.slot, self.values = tree, slot, values
        self.slots, self.value, self.n_codes = slot, values, n_codes
        self.n_slots = slot.max() + 1
        self.grown = GrownTrees((tree,), len(slot))
        self.has_subsets = self.grown.n_subsets.any()
        grown = self.grown.trees
        if not (self.value.shape[0] == weight.shape[0] == grown.n_nodes
                and len(n_codes) == len(slot)):
            raise ValueError("The arrays of the tree differ in length.")
        if (slot[self.grown.n_compared + self.grown.n_subsets > 0] < 0).any():
            raise ValueError("A column of the tree has no slot.")
        self.edges = <Edge*>calloc(grown.n_nodes, sizeof(Edge))
        if self.edges == NULL:
            raise MemoryError()
        with nogil:
            broken = follow_paths(grown, weight, self.n_codes, self.edges)
        if broken >= 0:
            raise ValueError(f"The tree is broken: node {broken} has no subset, or not one parent.")
        for i in range(grown.n_nodes):
            self.most_columns = max(self.most_columns, <int64_t>self.edges[i].n_columns)
            self.max_depth = max(self.max_depth, <int64_t>self.edges[i].depth)

    def __reduce__(self):
        return ShapTree, self.arguments

    def __dealloc__(self):
        free(self.edges)


cdef int64_t follow_paths(const Grown* tree, const double[::1] weight,
                          const int64_t[::1] n_codes, Edge* edges) noexcept nogil:
    """OUT what is known of each edge before a row comes. O(nodes * depth).

    Returns -1, or a node that cannot be. Children come behind their parents.
    """
    cdef int64_t i
    cdef int32_t child, column, node
    cdef Edge* edge
    cdef bint is_right
    edges[0].share = edges[0].above = 1
    for i in range(tree.n_nodes):
        if i > 0 and edges[i].depth == 0:
            return i                                        # nobody's child
        if tree.test[i] == LEAF:
            continue
        column = tree.feature[i]
        if tree.test[i] == IN_SUBSET and not (
                0 <= tree.subset[i] <= tree.n_words - (n_codes[column] // 64 + 1)):
            return i
        node = <int32_t>i
        while node > 0 and tree.feature[edges[node].parent] != column:
            node = edges[node].parent
        for is_right in (True, False):
            child = tree.right[i] if is_right else tree.left[i]
            edge = &edges[child]
            if edge.depth > 0:
                return child                                # of two parents
            edge.parent, edge.depth, edge.before = <int32_t>i, edges[i].depth + 1, node
            edge.next, edges[i].next = edges[i].next, child
            edge.is_heavier = 2 * weight[child] > weight[i]
            edge.share = edge.above = edges[node].share if node > 0 else 1
            if weight[i] > 0:
                edge.share *= weight[child] / weight[i]
            edge.n_columns = edges[i].n_columns + (node == 0)
            edge.place = edges[node].place if node > 0 else edges[i].n_columns
    return -1


cdef inline bint passes_test(const Walk* w, int64_t node, const Rows* rows,
                             int64_t r) noexcept nogil:
    """Whether a row passes the test of a node."""
    cdef const Grown* tree = w.tree
    cdef int32_t column = tree.feature[node]
    cdef int64_t at = w.slot[column] * rows.stride + r
    cdef double x = rows.numbers[at]
    cdef int64_t code
    cdef const uint64_t* words
    if rows.codes != NULL:
        code = rows.codes[at]
        if code == 0:
            return tree.missing_left[node] != 0
        if code > w.n_codes[column]:
            return w.edges[tree.left[node]].is_heavier
        if tree.test[node] == IN_SUBSET:
            words = tree.words + tree.subset[node]
            return (words[code >> 6] >> (code & 63)) & 1
    elif x != x:
        return tree.missing_left[node] != 0
    return x > tree.threshold[node] if tree.test[node] == ABOVE else x <= tree.threshold[node]


cdef inline void test_rows(const Walk* w, int64_t node, int64_t* passes) noexcept nogil:
    """OUT -1 for rows that pass the test of a node, else 0."""
    cdef const Grown* tree = w.tree
    cdef const double* x = w.rows.numbers + w.slot[tree.feature[node]] * w.rows.stride
    cdef double threshold = tree.threshold[node]
    cdef int64_t missing = tree.missing_left[node] != 0
    cdef int64_t r
    if w.rows.codes == NULL and tree.test[node] != ABOVE:
        for r in range(w.n):
            passes[r] = -<int64_t>((x[r] <= threshold) | ((x[r] != x[r]) & missing))
        return
    for r in range(w.n):
        passes[r] = -<int64_t>passes_test(w, node, &w.rows, r)


cdef void set_factors(const Walk* w, const Edge* edge) noexcept nogil:
    """What the points of an edge are multiplied by on the way down, and up, in `w.factors`."""
    cdef int64_t n_points = w.n_points
    cdef double* factors = w.factors + edge.depth * 4 * n_points
    cdef double above = edge.above
    cdef double share = edge.share
    cdef double t, rest, inverse, slope
    cdef int64_t k
    for k in range(n_points):
        t = w.points[k]
        rest = 1 - t
        inverse = 1 / (t + rest * above)
        factors[k] = (t + rest * share) * inverse
        factors[n_points + k] = rest * share * inverse
        slope = (1 - above) * inverse
        factors[2 * n_points + k] = w.weights[k] * ((1 - share) / (t + rest * share) - slope)
        factors[3 * n_points + k] = w.weights[k] * (-1 / rest - slope)


cdef void walk(Walk* w) noexcept nogil:
    """Add what the edges of a tree say to the values of a batch of rows."""
    cdef int32_t node = w.edges[0].next
    cdef int32_t last = 0
    test_rows(w, 0, w.passes)
    while True:
        while last > 0 and w.edges[last].depth >= w.edges[node].depth:
            go_up(w, last, &w.edges[last])
            last = w.edges[last].parent
        if node == 0:
            return
        go_down(w, node, &w.edges[node])
        last, node = node, w.edges[node].next


cdef void go_down(Walk* w, int32_t node, const Edge* edge) noexcept nogil:
    """Go from the parent of a node to the node. OUT its products, and of a leaf its sums."""
    cdef int64_t cells = w.n_points * LANES
    cdef double* product = w.products + edge.depth * cells
    cdef double* sums = w.sums + edge.depth * w.n_outputs * cells
    cdef const int64_t* passes = w.passes + (edge.depth - 1) * LANES
    cdef int64_t* met = w.met + edge.depth * LANES
    cdef const int64_t* before = met_before(w, edge)
    cdef const double* factors = w.factors + edge.depth * 4 * w.n_points
    cdef double lost = edge.share / edge.above if edge.above > 0 else 0
    cdef int64_t side = w.tree.right[edge.parent] == node
    cdef double value
    cdef int64_t k, out, r
    for r in range(w.n):
        met[r] = before[r] & (passes[r] ^ -side)
    set_factors(w, edge)
    if w.n == LANES:
        multiply(product - cells, before, met, factors, factors + w.n_points, lost, w.n_points,
                 LANES, product)
    else:
        multiply(product - cells, before, met, factors, factors + w.n_points, lost, w.n_points,
                 w.n, product)
    if w.pairs.cells != NULL:
        w.columns[edge.place] = w.tree.feature[edge.parent]
        set_slopes(w, edge, met)
    if w.tree.test[node] != LEAF:
        memset(sums, 0, w.n_outputs * cells * sizeof(double))
        test_rows(w, node, w.passes + edge.depth * LANES)
        return
    for out in range(w.n_outputs):
        value = w.value[node * w.n_outputs + out]
        for k in range(w.n_points):
            for r in range(w.n):
                sums[out * cells + k * LANES + r] = product[k * LANES + r] * value


cdef void go_up(Walk* w, int32_t node, const Edge* edge) noexcept nogil:
    """Add the sums of a node to those of its parent, and what its edge says to the values."""
    cdef int64_t cells = w.n_points * LANES
    cdef const double* below = w.sums + edge.depth * w.n_outputs * cells
    cdef double* sums = w.sums + (edge.depth - 1) * w.n_outputs * cells
    cdef const double* factors = w.factors + (4 * edge.depth + 2) * w.n_points
    cdef const double* failed = factors + w.n_points
    cdef const int64_t* before = met_before(w, edge)
    cdef const int64_t* met = w.met + edge.depth * LANES
    cdef int64_t column = w.tree.feature[edge.parent]
    cdef double* phi = w.phi.cells + column * w.phi.column
    cdef int64_t out
    for out in range(w.n_outputs):
        if w.n == LANES and w.pairs.cells == NULL:
            collect(below, before, met, factors, failed, w.n_points, LANES, phi, sums, NULL)
        else:
            collect(below, before, met, factors, failed, w.n_points, w.n, phi, sums, w.parts)
        if w.pairs.cells != NULL:
            add_pairs(w, edge, column, out)
        below += cells
        sums += cells
        phi += w.phi.output
    if w.pairs.cells != NULL and edge.before > 0:
        set_slopes(w, &w.edges[edge.before], before)


cdef inline const int64_t* met_before(const Walk* w, const Edge* edge) noexcept nogil:
    """o of the column above an edge; at depth 0, all rows have met nothing."""
    return w.met + w.edges[edge.before].depth * LANES


cdef void set_slopes(Walk* w, const Edge* edge, const int64_t* met) noexcept nogil:
    """OUT (o - z) / u of an edge, for rows that have met all tests of the column and others."""
    cdef double* slopes = w.slopes + edge.place * w.n_points * LANES
    cdef double rest, passed, failed
    cdef int64_t k, r
    for k in range(w.n_points):
        rest = 1 - w.points[k]
        passed, failed = (1 - edge.share) / (w.points[k] + rest * edge.share), -1 / rest
        for r in range(w.n):
            slopes[k * LANES + r] = passed if met[r] else failed


cdef void add_pairs(Walk* w, const Edge* edge, int64_t column, int64_t out) noexcept nogil:
    """Add what an edge says of its column and each other one of its path."""
    cdef double* pairs = w.pairs.cells + out * w.pairs.output
    cdef int64_t place, other
    for place in range(edge.n_columns):
        if place != edge.place:
            other = w.columns[place]
            add_products(w.parts, w.slopes + place * w.n_points * LANES, w.n_points, w.n,
                         pairs + (column * w.n_columns + other) * w.pairs.column,
                         pairs + (other * w.n_columns + column) * w.pairs.column)


def add_path_dependent(ShapTree tree not None, const double[:, ::1] numbers not None, codes,
                       const double[::1] points not None, const double[::1] weights not None,
                       double[:, :, :] phi not None, double[:, :, :] pairs=None):
    """Add the path-dependent values of a block of rows; callable from any thread.

    Parameters
    ----------
    tree : ShapTree
    numbers : float64 (n_slots, n_rows)
        Of the columns that have a slot; nan: none.
    codes : int64 (n_slots, n_rows) or None
        0 of what is missing; None: no column has categories.
    points, weights : float64 (n_points,)
        Of a rule for integrals over [0, 1] that is exact for the most columns of a path.
    phi : float64 (n_columns, n_outputs, n_rows), IN and OUT
    pairs : float64 (n_columns * n_columns, n_outputs, n_rows), IN and OUT, or None
        Interactions of different columns.
    """
    cdef int64_t n_points = points.shape[0]
    cdef int64_t depth = tree.max_depth + 1
    cdef int64_t places = 0 if pairs is None else tree.most_columns
    cdef int64_t left = numbers.shape[1]                    # rows to do
    cdef int64_t cells = n_points * LANES
    cdef double[:, ::1] products, sums, factors, slopes
    cdef int64_t[:, :, ::1] answers
    cdef int32_t[::1] columns
    cdef Walk w
    if tree.max_depth == 0 or left == 0:
        return
    begin_walk(&w, tree, numbers, codes)
    w.phi = sums_of(phi, w.n_columns, w.n_outputs, left)
    if n_points != weights.shape[0] or 2 * n_points < tree.most_columns:
        raise ValueError("There are too few points for the paths of the tree.")
    w.pairs.cells = NULL
    if pairs is not None:
        w.pairs = sums_of(pairs, w.n_columns * w.n_columns, w.n_outputs, left)
    products, sums = np.ones((depth, cells)), np.zeros((depth, w.n_outputs * cells))
    factors, slopes = np.empty((depth, 4 * n_points)), np.empty((places + 1, cells))
    answers = np.full((2, depth, LANES), -1)
    columns = np.empty(places + 1, dtype=np.int32)
    w.n_points, w.points, w.weights = n_points, &points[0], &weights[0]
    w.products, w.sums, w.factors = &products[0, 0], &sums[0, 0], &factors[0, 0]
    w.met, w.passes = &answers[0, 0, 0], &answers[1, 0, 0]
    w.slopes, w.parts, w.columns = &slopes[0, 0], &slopes[places, 0], &columns[0]
    with nogil:
        while left > 0:
            w.n = min(<int64_t>LANES, left)
            walk(&w)
            left -= LANES
            w.rows.numbers += LANES
            w.phi.cells += LANES
            if w.rows.codes != NULL:
                w.rows.codes += LANES
            if w.pairs.cells != NULL:
                w.pairs.cells += LANES


cdef begin_walk(Walk* w, ShapTree tree, const double[:, ::1] numbers, codes):
    """OUT what a walk reads of the tree and the rows."""
    cdef const int64_t[:, ::1] known
    w.tree, w.edges, w.slot = tree.grown.trees, tree.edges, &tree.slots[0]
    w.value, w.n_outputs = &tree.value[0, 0], tree.value.shape[1]
    w.n_codes, w.n_columns = &tree.n_codes[0], tree.n_codes.shape[0]
    if numbers.shape[0] != tree.n_slots:
        raise ValueError("The numbers do not fit the slots of the tree.")
    w.rows.numbers, w.rows.stride, w.rows.codes = &numbers[0, 0], numbers.shape[1], NULL
    if codes is not None:
        known = codes
        if known.shape[0] != numbers.shape[0] or known.shape[1] != numbers.shape[1]:
            raise ValueError("The codes do not fit the numbers.")
        w.rows.codes = &known[0, 0]
    elif tree.has_subsets:
        raise ValueError("The tree is broken: it has subsets of numbers.")


cdef Sums sums_of(double[:, :, :] cells, int64_t n_columns, int64_t n_outputs,
                  int64_t n_rows) except *:
    """Where values are added to."""
    cdef Sums found
    if not (cells.shape[0] == n_columns and cells.shape[1] == n_outputs
            and cells.shape[2] == n_rows and cells.strides[2] == sizeof(double)):
        raise ValueError("The values do not fit the rows.")
    found.cells = &cells[0, 0, 0]
    found.column = cells.strides[0] // sizeof(double)
    found.output = cells.strides[1] // sizeof(double)
    return found


cdef enum:
    NOBODY
    ROW
    BACKGROUND


cdef struct Fork:
    # A test that two rows answer differently, the first one of its column.
    double* phi             # of its column
    int32_t column
    int32_t other           # where the background row goes, after where the row goes


cdef void walk_pair(const Walk* w, const Rows* background, int64_t r, int64_t b, Fork* forks,
                    int8_t* owner, const double[:, ::1] weights) noexcept nogil:
    """Add the values of columns by which row r and background row b part.

    owner : int8 (n_columns,)
        Whose test counts; NOBODY before and after.
    """
    cdef const Grown* tree = w.tree
    cdef int32_t node = 0
    cdef int64_t n = 0                                      # open forks
    cdef int64_t a = 0                                      # of which the row's side is open
    cdef int32_t column
    cdef int64_t i, out
    cdef double[3] weight                                   # by owner
    cdef double value
    cdef double* phi
    cdef bint is_left
    while True:
        while tree.test[node] != LEAF:
            column = tree.feature[node]
            if owner[column] == BACKGROUND:
                is_left = passes_test(w, node, background, b)
            else:
                is_left = passes_test(w, node, &w.rows, r)
            if owner[column] == NOBODY and passes_test(w, node, background, b) != is_left:
                forks[n].column = column
                forks[n].phi = w.phi.cells + column * w.phi.column + r
                forks[n].other = tree.right[node] if is_left else tree.left[node]
                owner[column] = ROW
                n += 1
                a += 1
            node = tree.left[node] if is_left else tree.right[node]
        # what a column of the row adds here, and what one of the background takes away
        weight[ROW] = weights[a - 1, n - a] if a > 0 else 0
        weight[BACKGROUND] = -weights[a, n - a - 1] if a < n else 0
        for out in range(w.n_outputs):
            value = w.value[node * w.n_outputs + out]
            for i in range(n):
                phi = forks[i].phi + out * w.phi.output
                phi[0] += value * weight[owner[forks[i].column]]
        while n > 0 and owner[forks[n - 1].column] == BACKGROUND:
            n -= 1
            owner[forks[n].column] = NOBODY
        if n == 0:
            return
        owner[forks[n - 1].column] = BACKGROUND
        node = forks[n - 1].other
        a -= 1


def add_interventional(ShapTree tree not None, const double[:, ::1] numbers not None, codes,
                       const double[:, ::1] others not None, other_codes,
                       const double[:, ::1] weights not None, double[:, :, :] phi not None):
    """Add the interventional values of a block of rows, summed over all background rows.

    numbers, codes, phi : as for `add_path_dependent`
    others, other_codes : numbers and codes of background rows
    weights : float64 (d, d) with d = ``tree.most_columns``
        ``weights[i, j]`` is i!j!/(i + j + 1)!, and may have a factor.
    """
    cdef Walk w, behind
    cdef Fork* forks
    cdef int8_t[::1] owner = np.zeros(tree.n_codes.shape[0], dtype=np.int8)
    cdef int64_t[:, ::1] open_forks = np.empty((tree.most_columns, 2), dtype=np.int64)
    cdef int64_t r, b
    if tree.max_depth == 0 or numbers.shape[1] == 0 or others.shape[1] == 0:
        return
    begin_walk(&behind, tree, others, other_codes)
    begin_walk(&w, tree, numbers, codes)
    w.phi = sums_of(phi, w.n_columns, w.n_outputs, numbers.shape[1])
    if (codes is None) != (other_codes is None):
        raise ValueError("The background does not fit the rows.")
    if weights.shape[0] != weights.shape[1] or weights.shape[0] < tree.most_columns:
        raise ValueError("There are too few weights for the paths of the tree.")
    forks = <Fork*>&open_forks[0, 0]
    with nogil:
        for r in range(numbers.shape[1]):
            for b in range(others.shape[1]):
                walk_pair(&w, &behind.rows, r, b, forks, &owner[0], weights)
