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

Interactions are the second derivative of the same (Lundberg et al. 2018, section 3)::

    phi_ij = v / 2 * integral of (o_i - z_i) * (o_j - z_j) * product over the others

For a background row there is no need of points: a tree is walked with both rows, which part at the
tests that they answer differently. A leaf that is reached with a columns of the row and b of the
background has weights a!(b - 1)!/(a + b)! and (a - 1)!b!/(a + b)!.
"""
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

from dtrees.core.data._structs cimport ABOVE, IN_SUBSET, LEAF
from dtrees.core.predict._packed_forest cimport Grown, GrownTrees

cdef extern from "predict/shap.h" nogil:
    int LANES
    void multiply(const double*, const int64_t*, const int64_t*, const double*, const double*,
                  double, int64_t, int64_t, double*) noexcept
    void collect(const double*, const int64_t*, const int64_t*, const double*, const double*,
                 int64_t, int64_t, double*, double*) noexcept

BATCH_ROWS = LANES

cdef struct Edge:
    # From a node's parent to the node.
    double share            # z: of the weight, by all tests of the column so far
    double above            # the same without this one; 1: there was none
    int32_t parent          # -1: the node is the root
    int32_t before          # node below the last edge of the column above; -1: none
    int32_t depth           # of the node
    int32_t n_columns       # tested on the way to it
    int32_t place           # of the column among those that the tree tests
    bint is_heavier         # than the other child

cdef struct Rows:
    # Of a block of rows, (slots, stride).
    const double* numbers
    const int64_t* codes    # NULL: there are no categories
    int64_t stride

cdef struct Walk:
    const Grown* tree
    const Edge* edges
    const int32_t* slot     # of columns
    const int64_t* n_codes  # of columns
    const double* value     # (n_nodes, n_outputs)
    int64_t n_outputs
    int64_t n_places
    int64_t n_points
    int64_t n               # rows of the batch
    Rows rows
    const double* points
    const double* weights
    double* products        # (depth, points, LANES)
    double* sums            # (depth, outputs, points, LANES)
    double* slopes          # as products: (o - z) / u; NULL: no interactions are asked for
    double* factors         # (depth, 4, points): down where met, and failed; up where met, failed
    int64_t* passes         # (depth, LANES)
    int64_t* met            # (depth, LANES): o of the last edge
    int32_t* path           # (depth,): nodes
    int32_t* side           # (depth,): of the child that is next, 0 or 1; 2: both are done
    double* phi             # (places, outputs, stride)
    double* pairs           # (places, places, outputs, stride)


cdef class ShapTree:
    """A tree made ready: its paths, and the values of its leaves.

    Parameters
    ----------
    tree : Tree
    n_columns : int
    value : float64 (n_nodes, n_outputs)
        Nodes that are no leaves are not read.
    n_codes : int64 (n_columns,)
        Larger codes were not there at fit: they go where more weight went.

    Attributes
    ----------
    columns : int64 (n_places,)
        That the tree tests, ascending.
    most_columns, max_depth : int
        Columns of a path, and edges of one, at most.
    """

    cdef GrownTrees grown
    cdef Edge* edges
    cdef const double[:, ::1] value
    cdef const int64_t[::1] n_codes
    cdef bint has_subsets
    cdef readonly object columns
    cdef readonly int64_t n_places
    cdef readonly int64_t n_values
    cdef readonly int64_t most_columns
    cdef readonly int64_t max_depth

    def __cinit__(self, tree, int64_t n_columns, value, n_codes):
        cdef const double[::1] weight = tree.weighted_n_node_samples
        cdef const Grown* grown
        cdef int64_t i, broken
        cdef int32_t[::1] place = np.zeros(n_columns, dtype=np.int32)
        self.grown = GrownTrees((tree,), n_columns)
        self.value, self.n_codes = value, n_codes
        grown = self.grown.trees
        if not (self.value.shape[0] == weight.shape[0] == grown.n_nodes
                and self.n_codes.shape[0] == n_columns):
            raise ValueError("The arrays of the tree differ in length.")
        self.has_subsets = self.grown.n_subsets.any()
        self.columns = np.flatnonzero(self.grown.n_compared + self.grown.n_subsets)
        self.n_places, self.n_values = len(self.columns), self.value.shape[1]
        np.asarray(place)[self.columns] = np.arange(self.n_places)
        self.edges = <Edge*>calloc(grown.n_nodes, sizeof(Edge))
        if self.edges == NULL:
            raise MemoryError()
        with nogil:
            broken = follow_paths(grown, weight, place, self.n_codes, self.edges)
        if broken >= 0:
            raise ValueError(f"The tree is broken: node {broken} has no subset, or not one parent.")
        for i in range(grown.n_nodes):
            self.most_columns = max(self.most_columns, <int64_t>self.edges[i].n_columns)
            self.max_depth = max(self.max_depth, <int64_t>self.edges[i].depth)

    def __reduce__(self):
        return ShapTree, (self.tree, len(self.n_codes), self.values, np.asarray(self.n_codes))

    @property
    def tree(self):
        """What was made ready."""
        return self.grown.arrays[0]

    @property
    def values(self):
        """Of its nodes, float64 (n_nodes, n_outputs)."""
        return np.asarray(self.value)

    def __dealloc__(self):
        free(self.edges)


cdef int64_t follow_paths(const Grown* tree, const double[::1] weight, const int32_t[::1] place,
                          const int64_t[::1] n_codes, Edge* edges) noexcept nogil:
    """OUT what is known of each edge before a row comes. O(nodes * depth).

    `place` is of columns. Returns -1, or a node that cannot be. Children come behind their parents.
    """
    cdef int64_t i
    cdef int32_t child, column, node
    cdef Edge* edge
    cdef bint is_right
    edges[0].share = edges[0].above = 1
    edges[0].before = edges[0].parent = -1
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
        while edges[node].parent >= 0 and tree.feature[edges[node].parent] != column:
            node = edges[node].parent
        for is_right in range(2):
            child = tree.right[i] if is_right else tree.left[i]
            edge = &edges[child]
            if edge.depth > 0:
                return child                                # of two parents
            edge.parent, edge.depth = <int32_t>i, edges[i].depth + 1
            edge.place = place[column]
            edge.is_heavier = 2 * weight[child] > weight[i]
            edge.before = node if edges[node].parent >= 0 else -1
            edge.above = 1 if edge.before < 0 else edges[node].share
            edge.share = edge.above
            if weight[i] > 0:
                edge.share *= weight[child] / weight[i]
            edge.n_columns = edges[i].n_columns + (edge.before < 0)
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
    if w.rows.codes == NULL and tree.test[node] != ABOVE and tree.test[node] != IN_SUBSET:
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
    cdef int64_t depth = 0
    begin_node(w, 0, 0)
    while True:
        if w.side[depth] == 2:                              # both children are done
            if depth == 0:
                return
            go_up(w, depth)
            depth -= 1
        elif go_down(w, depth):
            depth += 1
            begin_node(w, w.path[depth], depth)
            continue
        else:
            go_up(w, depth + 1)
        w.side[depth] += 1


cdef void begin_node(Walk* w, int32_t node, int64_t depth) noexcept nogil:
    """Begin with a node on the path, none of whose children is done."""
    cdef int64_t cells = w.n_outputs * w.n_points * LANES
    memset(w.sums + depth * cells, 0, cells * sizeof(double))
    test_rows(w, node, w.passes + depth * LANES)
    w.path[depth] = node
    w.side[depth] = 0


cdef bint go_down(Walk* w, int64_t depth) noexcept nogil:
    """Go to the next child of the last node of the path, and tell whether it has children.

    OUT its products, and of a leaf its sums.
    """
    cdef int64_t cells = w.n_points * LANES
    cdef double* product = w.products + depth * cells
    cdef double* next = product + cells
    cdef double* below = w.sums + (depth + 1) * w.n_outputs * cells
    cdef const int64_t* passes = w.passes + depth * LANES
    cdef int64_t* met = w.met + (depth + 1) * LANES
    cdef int64_t side = w.side[depth]
    cdef int32_t node = w.path[depth]
    cdef int32_t child = w.tree.right[node] if side else w.tree.left[node]
    cdef const Edge* edge = &w.edges[child]
    cdef const int64_t* before = met_before(w, edge)
    cdef const double* factors = w.factors + edge.depth * 4 * w.n_points
    cdef double lost = edge.share / edge.above if edge.above > 0 else 0
    cdef double value
    cdef int64_t k, r, out
    for r in range(w.n):
        met[r] = before[r] & (passes[r] ^ -side)
    if w.slopes != NULL:
        set_slopes(w, edge, met)
    set_factors(w, edge)
    if w.n == LANES:
        multiply(product, before, met, factors, factors + w.n_points, lost, w.n_points, LANES, next)
    else:
        multiply(product, before, met, factors, factors + w.n_points, lost, w.n_points, w.n, next)
    w.path[depth + 1] = child
    if w.tree.test[child] != LEAF:
        return True
    for out in range(w.n_outputs):
        value = w.value[child * w.n_outputs + out]
        for k in range(w.n_points):
            for r in range(w.n):
                below[out * cells + k * LANES + r] = next[k * LANES + r] * value
    if w.slopes != NULL:
        add_pairs(w, depth + 1, below)
    return False


cdef void go_up(Walk* w, int64_t depth) noexcept nogil:
    """Add the sums of the last node of the path to those of its parent, and its edge's values."""
    cdef int64_t cells = w.n_points * LANES
    cdef const double* below = w.sums + depth * w.n_outputs * cells
    cdef double* sums = w.sums + (depth - 1) * w.n_outputs * cells
    cdef const Edge* edge = &w.edges[w.path[depth]]
    cdef const double* factors = w.factors + (4 * depth + 2) * w.n_points
    cdef const double* failed = factors + w.n_points
    cdef const int64_t* before = met_before(w, edge)
    cdef const int64_t* met = w.met + depth * LANES
    cdef double* phi = w.phi + edge.place * w.n_outputs * w.rows.stride
    cdef int64_t _out
    for _out in range(w.n_outputs):
        if w.n == LANES:
            collect(below, before, met, factors, failed, w.n_points, LANES, phi, sums)
        else:
            collect(below, before, met, factors, failed, w.n_points, w.n, phi, sums)
        below += cells
        sums += cells
        phi += w.rows.stride


cdef inline const int64_t* met_before(const Walk* w, const Edge* edge) noexcept nogil:
    """o of the column above an edge."""
    if edge.before < 0:
        return w.met                                        # depth 0: all rows have met nothing
    return w.met + w.edges[edge.before].depth * LANES


cdef void set_slopes(Walk* w, const Edge* edge, const int64_t* met) noexcept nogil:
    """OUT (o - z) / u of an edge, for rows that have met all tests of the column and others."""
    cdef double* slopes = w.slopes + edge.depth * w.n_points * LANES
    cdef double rest, passed, failed
    cdef int64_t k, r
    for k in range(w.n_points):
        rest = 1 - w.points[k]
        passed, failed = (1 - edge.share) / (w.points[k] + rest * edge.share), -1 / rest
        for r in range(w.n):
            slopes[k * LANES + r] = passed if met[r] else failed


cdef void add_pairs(Walk* w, int64_t depth, const double* below) noexcept nogil:
    """Add what a leaf says of all pairs of the columns of its path."""
    cdef int64_t cells = w.n_points * LANES
    cdef int64_t n_places = w.n_places
    cdef int64_t i, j, k, r, out, one, other
    cdef double* scratch = w.slopes                         # depth 0 has no edge
    cdef const double* slopes
    cdef double* both
    for i in range(1, depth + 1):
        if is_tested_again(w, i, depth):
            continue
        one = w.edges[w.path[i]].place
        for out in range(w.n_outputs):
            for k in range(w.n_points):
                for r in range(w.n):
                    scratch[k * LANES + r] = (
                        w.weights[k] * below[out * cells + k * LANES + r]
                        * w.slopes[i * cells + k * LANES + r])
            for j in range(i + 1, depth + 1):
                if is_tested_again(w, j, depth):
                    continue
                other, slopes = w.edges[w.path[j]].place, w.slopes + j * cells
                both = w.pairs + w.rows.stride * (
                    (min(one, other) * n_places + max(one, other)) * w.n_outputs + out)
                for k in range(w.n_points):
                    for r in range(w.n):
                        both[r] += scratch[k * LANES + r] * slopes[k * LANES + r]


cdef inline bint is_tested_again(const Walk* w, int64_t i, int64_t depth) noexcept nogil:
    """Whether the column of the edge at depth i of the path is tested below it."""
    cdef int64_t j
    for j in range(i + 1, depth + 1):
        if w.edges[w.path[j]].before == w.path[i]:
            return True
    return False


def add_path_dependent(ShapTree tree not None, const double[:, ::1] numbers not None, codes,
                       const int32_t[::1] slot not None, const double[::1] points not None,
                       const double[::1] weights not None, double[:, :, ::1] phi not None, pairs):
    """Add the path-dependent values of a block of rows; callable from any thread.

    Parameters
    ----------
    tree : ShapTree
    numbers : float64 (n_slots, n_rows)
        Of the columns that have a slot; nan: none.
    codes : int64 (n_slots, n_rows) or None
        0 of what is missing; None: no column has categories.
    slot : int32 (n_columns,)
        Of columns that the tree tests.
    points, weights : float64 (n_points,)
        Of a rule for integrals over [0, 1] that is exact for the most columns of a path.
    phi : float64 (n_places, n_outputs, n_rows), IN and OUT
        Of the columns that the tree tests.
    pairs : float64 (n_places, n_places, n_outputs, n_rows), IN and OUT, or None
        Twice the interactions, where the first column is less than the second.
    """
    cdef int64_t n_rows = numbers.shape[1]
    cdef int64_t n_places = tree.n_places
    cdef int64_t depth = tree.max_depth + 2
    cdef int64_t left = n_rows                              # rows to do
    cdef int64_t i, n, cells
    cdef double[:, :, :, ::1] both
    cdef Walk w
    cdef double* memory
    if n_places == 0 or n_rows == 0:
        return
    begin_walk(&w, tree, numbers, codes, slot)
    if points.shape[0] != weights.shape[0] or 2 * points.shape[0] < tree.most_columns:
        raise ValueError("There are too few points for the paths of the tree.")
    if not (phi.shape[0] == n_places and phi.shape[1] == w.n_outputs and phi.shape[2] == n_rows):
        raise ValueError("The values do not fit the rows.")
    w.phi, w.pairs = &phi[0, 0, 0], NULL
    if pairs is not None:
        both = pairs
        if not (both.shape[0] == both.shape[1] == n_places and both.shape[2] == w.n_outputs
                and both.shape[3] == n_rows):
            raise ValueError("The interactions do not fit the rows.")
        w.pairs = &both[0, 0, 0, 0]
    w.n_points, w.points, w.weights = points.shape[0], &points[0], &weights[0]
    cells = w.n_points * LANES
    # products, slopes, sums, factors; then tests, whether met, and nodes
    n = depth * (cells * (2 + w.n_outputs) + 4 * w.n_points)
    memory = <double*>calloc(n + 2 * depth * LANES + depth, sizeof(double))
    if memory == NULL:
        raise MemoryError()
    w.products = memory
    w.slopes = NULL if pairs is None else memory + depth * cells
    w.sums = memory + 2 * depth * cells
    w.factors = w.sums + depth * w.n_outputs * cells
    w.passes = <int64_t*>(memory + n)
    w.met = w.passes + depth * LANES
    w.path = <int32_t*>(w.met + depth * LANES)
    w.side = w.path + depth
    with nogil:
        for i in range(LANES):
            w.met[i] = -1
        for i in range(cells):
            w.products[i] = 1
        while left > 0:
            w.n = min(<int64_t>LANES, left)
            walk(&w)
            left -= LANES
            w.rows.numbers += LANES
            w.phi += LANES
            if w.rows.codes != NULL:
                w.rows.codes += LANES
            if w.pairs != NULL:
                w.pairs += LANES
    free(memory)


cdef begin_walk(Walk* w, ShapTree tree, const double[:, ::1] numbers, codes,
                const int32_t[::1] slot):
    """OUT what a walk reads of the tree and the rows."""
    cdef const int64_t[:, ::1] known
    cdef int64_t column
    w.tree, w.edges = tree.grown.trees, tree.edges
    w.value, w.n_outputs = &tree.value[0, 0], tree.value.shape[1]
    w.n_codes, w.slot = &tree.n_codes[0], &slot[0]
    w.n_places = tree.n_places
    w.rows.numbers, w.rows.stride, w.rows.codes = &numbers[0, 0], numbers.shape[1], NULL
    if slot.shape[0] != tree.n_codes.shape[0]:
        raise ValueError("The slots are not those of the columns.")
    for column in tree.columns:
        if not 0 <= slot[column] < numbers.shape[0]:
            raise ValueError(f"Column {column} has no slot.")
    if codes is not None:
        known = codes
        if known.shape[0] != numbers.shape[0] or known.shape[1] != numbers.shape[1]:
            raise ValueError("The codes do not fit the numbers.")
        w.rows.codes = &known[0, 0]
    elif tree.has_subsets:
        raise ValueError("The tree is broken: it has subsets of numbers.")


cdef struct Fork:
    # A test that two rows answer differently.
    int32_t place           # of its column
    int32_t other           # where the background row goes, after where the row goes


cdef struct RowPair:
    # Two rows that go down together.
    Rows background
    int64_t r               # row
    int64_t b               # background row
    int8_t* owner           # by place: whose test counts, ROW or BACKGROUND
    Fork* forks             # that are open
    const double* gain      # (d + 1, d + 1): a!(b - 1)!/(a + b)!, by columns of the row, and others
    int64_t width
    double* sums            # (forks + 1, 2, outputs)


cdef enum Owner:
    NOBODY
    ROW
    BACKGROUND


cdef int64_t next_fork(const Walk* w, RowPair* p, int64_t node, int64_t n) noexcept nogil:
    """Go down to a leaf, or to where the rows part: fork n is OUT. Returns the node of the row."""
    cdef int32_t place
    cdef bint mine, theirs
    while w.tree.test[node] != LEAF:
        place = w.edges[w.tree.left[node]].place
        mine = passes_test(w, node, &w.rows, p.r)
        theirs = passes_test(w, node, &p.background, p.b)
        if p.owner[place] == NOBODY and mine != theirs:
            p.forks[n].place = place
            p.forks[n].other = w.tree.right[node] if mine else w.tree.left[node]
            return w.tree.left[node] if mine else w.tree.right[node]
        if p.owner[place] == BACKGROUND:
            mine = theirs
        node = w.tree.left[node] if mine else w.tree.right[node]
    return node


cdef void walk_pair(Walk* w, RowPair* p) noexcept nogil:
    """Add the values of columns by which two rows part."""
    cdef int64_t node = 0
    cdef int64_t n = 0                                      # open forks
    cdef int64_t a = 0                                      # of which the row's side is open
    cdef int64_t b, out, i
    cdef double* above
    cdef double* below
    cdef double* phi
    cdef bint is_other
    cdef Fork* fork
    while True:
        p.forks[n].place = -1
        node = next_fork(w, p, node, n)
        if p.forks[n].place >= 0:
            memset(p.sums + n * 2 * w.n_outputs, 0, 2 * w.n_outputs * sizeof(double))
            p.owner[p.forks[n].place] = ROW
            n += 1
            a += 1
            continue
        b, below = n - a, p.sums + n * 2 * w.n_outputs
        for out in range(w.n_outputs):
            # what a column of the row adds here, and what one of the background takes away
            below[out] = w.value[node * w.n_outputs + out] * p.gain[b * p.width + a]
            below[w.n_outputs + out] = w.value[node * w.n_outputs + out] * p.gain[a * p.width + b]
        while n > 0:
            fork = &p.forks[n - 1]
            is_other = p.owner[fork.place] == BACKGROUND
            below = p.sums + n * 2 * w.n_outputs
            above = below - 2 * w.n_outputs
            phi = w.phi + fork.place * w.n_outputs
            for out in range(w.n_outputs):
                phi[out] += -below[w.n_outputs + out] if is_other else below[out]
            for i in range(2 * w.n_outputs):
                above[i] += below[i]
            if not is_other:
                break
            p.owner[fork.place] = NOBODY
            n -= 1
        if n == 0:
            return
        p.owner[fork.place] = BACKGROUND
        node = fork.other
        a -= 1


def add_interventional(ShapTree tree not None, const double[:, ::1] numbers not None, codes,
                       const double[:, ::1] others not None, other_codes,
                       const int32_t[::1] slot not None, const double[:, ::1] gain not None,
                       double[:, :, ::1] phi not None):
    """Add the interventional values of a block of rows, over all background rows.

    numbers, codes, slot : as for `add_path_dependent`
    others, other_codes : the same of background rows
    gain : float64 (d + 1, d + 1) with d = ``tree.most_columns``
        ``gain[i, j]`` is i!(j - 1)!/(i + j)!, 0 for j = 0.
    phi : float64 (n_rows, n_places, n_outputs), IN and OUT
        Sums over the background rows.
    """
    cdef Walk w, behind
    cdef RowPair p
    cdef int64_t r, b
    if tree.n_places == 0:
        return
    begin_walk(&behind, tree, others, other_codes, slot)
    begin_walk(&w, tree, numbers, codes, slot)
    if not (phi.shape[0] == numbers.shape[1] and phi.shape[1] == w.n_places
            and phi.shape[2] == w.n_outputs and (codes is None) == (other_codes is None)):
        raise ValueError("The values do not fit the rows.")
    if gain.shape[0] != gain.shape[1] or gain.shape[0] <= tree.most_columns:
        raise ValueError("There are too few weights for the paths of the tree.")
    p.background, p.gain, p.width = behind.rows, &gain[0, 0], gain.shape[0]
    p.owner = <int8_t*>calloc(w.n_places, sizeof(int8_t))
    p.sums = <double*>malloc((tree.most_columns + 2) * 2 * w.n_outputs * sizeof(double))
    p.forks = <Fork*>calloc(tree.most_columns + 2, sizeof(Fork))
    if p.owner == NULL or p.sums == NULL or p.forks == NULL:
        free(p.owner)
        free(p.sums)
        free(p.forks)
        raise MemoryError()
    with nogil:
        for r in range(numbers.shape[1]):
            w.phi = &phi[r, 0, 0]
            for b in range(others.shape[1]):
                p.r, p.b = r, b
                walk_pair(&w, &p)
    free(p.owner)
    free(p.sums)
    free(p.forks)
