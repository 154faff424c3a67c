r"""A tree that has grown under wider limits, and how much of it stands under narrower ones.

A node takes the best of the splits that its limits allow, by an order that knows no limits: score,
then column, then boundary. Narrower limits allow fewer splits. So where the best of more splits is
allowed, it is the best of fewer, too, and nothing has to be searched::

    leaves of 1 row                 leaves of 5 rows
          a                               a           allowed: known
        /   \                           /   \
       b     c   (900 | 3)             b     ?        not allowed: searched, and all below it
      / \   / \                       / \
                                       b and all below it are allowed: copied, no row is looked at

A node that no split of more could part is parted by none of fewer. The same holds where columns are
drawn until one splits, as draws depend on the node only, and for splits that are drawn.

Two things stand in between. A leaf that was cut off (`max_depth`, `min_samples_split`) may have
splits. So may one whose best split gained too little, where categories pay: the order has the
penalty, the gain has not. Such leaves are searched.
"""
import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from dtrees.core.data._bits cimport prefetch
from dtrees.core.data._columns cimport last_ordered
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport ALL_ORDERED, LEAF, KnownTest
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, Record, append_record, copy_words, make_leaf, note_variant, words_of_subset
)
from dtrees.core.grow._variants cimport copy_variant
from dtrees.core.search._parameters cimport Limits, TrainParameters, gains_enough

cdef class KnownTree:
    """A tree in preorder, and where it ends.

    Parameters
    ----------
    piece : PartialTree
        In preorder; held as long as this is.
    rules : GrowthRules
        That it has grown with.
    """

    def __cinit__(self, piece, rules):
        self.n_nodes = len(piece.nodes)
        self.nodes = np.ascontiguousarray(piece.nodes).view(np.uint8)
        self.statistics = np.ascontiguousarray(piece.statistics)
        self.words = piece.words if len(piece.words) > 0 else np.zeros(1, dtype=np.uint64)
        self.variant = piece.variants
        self.max_depth = INT64_MAX if rules.max_depth is None else rules.max_depth
        self.min_samples_split = rules.min_samples_split
        self.min_decrease = rules.min_impurity_decrease
        self.tree.nodes = <const Record*>&self.nodes[0]
        self.tree.statistics = &self.statistics[0, 0]
        self.tree.words = &self.words[0]
        self.tree.n_statistics = self.statistics.shape[1]
        self.tree.n_noted = len(piece.variants)
        self.tree.variant = &self.variant[0] if self.tree.n_noted > 0 else NULL
        if not (claim(<void**>&self.tree.fate, self.n_nodes)
                and claim(<void**>&self.tree.depth, self.n_nodes * sizeof(int32_t))
                and claim(<void**>&self.tree.place, self.n_nodes * sizeof(int32_t))):
            raise MemoryError

    def __dealloc__(self):
        free(self.tree.fate)
        free(self.tree.depth)
        free(self.tree.place)

    cdef judge(self, const TrainParameters* params, int64_t depth):
        """Find the fate of nodes under limits that allow no split more, from the root as far down
        as tests stand. O(nodes that are looked at).

        depth : of the root.
        """
        cdef Known* tree = &self.tree
        cdef bint pays = False
        cdef bint was_cut
        cdef int64_t last = self.n_nodes - 1
        cdef int64_t waiting = 1
        cdef int64_t n = 0
        cdef int64_t i, k
        cdef int32_t left, right
        tree.columns = params.columns
        tree.by_class = params.criterion.n_classes > 0
        for i in range(params.limits.n_columns if params.criterion.category_penalty > 0 else 0):
            pays |= last_ordered(&params.columns[i]) != ALL_ORDERED
        pays |= params.limits.min_decrease < self.min_decrease
        with nogil:
            # Nodes that were looked at stand at the front, those that wait at the end.
            tree.place[last] = 0
            tree.depth[0] = <int32_t>depth
            while waiting > 0:
                waiting -= 1
                i = tree.place[last - waiting]
                tree.place[n] = <int32_t>i
                n += 1
                was_cut = (tree.nodes[i].n < self.min_samples_split
                           or tree.depth[i] >= self.max_depth or (pays and self.min_decrease > 0))
                tree.fate[i] = fate_of(tree, i, &params.limits, OPEN if was_cut else ENDS)
                if tree.fate[i] == STANDS:
                    left, right = tree.nodes[i].left, tree.nodes[i].right
                    prefetch(tree.nodes + right)
                    tree.depth[left] = tree.depth[right] = tree.depth[i] + 1
                    tree.place[last - waiting] = right
                    tree.place[last - waiting - 1] = left
                    waiting += 2
            for k in range(n - 1, -1, -1):
                i = tree.place[k]
                if tree.fate[i] == STANDS and (tree.fate[tree.nodes[i].left] > STANDS
                                               or tree.fate[tree.nodes[i].right] > STANDS):
                    tree.fate[i] = TORN


cdef inline int64_t end_of(const Known* tree, int64_t node) noexcept nogil:
    """The node behind a subtree."""
    while tree.nodes[node].left >= 0:
        node = tree.nodes[node].right
    return node + 1


cdef inline Fate fate_of(const Known* tree, int64_t node, const Limits* limits,
                         Fate of_leaf) noexcept nogil:
    """The fate of a node whose depth is known, if all that is below it is known."""
    if is_cut(tree, node, limits):
        return ENDS
    if tree.nodes[node].test == LEAF:
        return of_leaf
    if not is_allowed(tree, node, limits):
        return OPEN if variants_with(tree, variant_of(tree, node)) == NULL else MOVED
    return STANDS if gains_enough(limits, tree.nodes[node].gain) else ENDS


cdef inline int64_t weight_of(const Known* tree, int64_t node) noexcept nogil:
    cdef const int64_t* sums = tree.statistics + node * tree.n_statistics
    cdef int64_t weight = sums[0]
    cdef int64_t k
    for k in range(1, tree.n_statistics if tree.by_class else 1):
        weight += sums[k]
    return weight


cdef bint is_cut(const Known* tree, int64_t node, const Limits* limits) noexcept nogil:
    """Whether limits make a leaf of a node, whose depth is known."""
    cdef int64_t n = tree.nodes[node].n
    return (tree.depth[node] >= limits.max_depth or n < limits.min_samples_split
            or n < 2 * limits.min_rows
            or limits.min_weight > 0 and weight_of(tree, node) < 2 * limits.min_weight)


cdef bint is_allowed(const Known* tree, int64_t node, const Limits* limits) noexcept nogil:
    """Whether both children of a node have the least rows and weight."""
    cdef int64_t left = tree.nodes[node].left
    cdef int64_t right = tree.nodes[node].right
    cdef int64_t n_left = tree.nodes[left].n    # which stands beside the node
    if n_left < limits.min_rows or tree.nodes[node].n - n_left < limits.min_rows:
        return False
    return limits.min_weight <= 0 or (weight_of(tree, left) >= limits.min_weight
                                      and weight_of(tree, right) >= limits.min_weight)


cdef void test_of(const Known* tree, int64_t node, KnownTest* test) noexcept nogil:
    """The test of a node that has one."""
    cdef const Record* record = tree.nodes + node
    test.column = record.column
    test.test = record.test
    test.missing_left = record.missing_left
    test.boundary = record.boundary
    test.beyond = record.beyond
    test.gain = record.gain
    test.left = record.left
    test.right = record.right
    test.variant = variant_of(tree, node)
    test.words = NULL
    test.n_words = 0
    if record.subset >= 0:
        test.words = tree.words + record.subset
        test.n_words = words_of_subset(tree.columns + record.column)


cdef int64_t copy_node(NodeBuffer* out, const Known* tree, int64_t node) noexcept nogil:
    """Append a node, with the test of it where it stands, and without links; returns the number of
    its record, -1 without memory."""
    cdef int64_t S = tree.n_statistics
    cdef int64_t i = append_record(out, S)
    cdef Record* record
    if i < 0:
        return -1
    record = out.nodes + i
    record[0] = tree.nodes[node]
    record.left = record.right = -1
    memcpy(out.statistics + i * S, tree.statistics + node * S, S * sizeof(int64_t))
    if tree.fate[node] == ENDS:
        make_leaf(record)
        return i
    note_variant(out, i, variant_of(tree, node))
    if record.subset >= 0:
        record.subset = copy_words(out, tree.words + record.subset,
                                   words_of_subset(tree.columns + record.column))
    return i


cdef int64_t copy_subtree(NodeBuffer* out, const Known* tree, int64_t top, int64_t parent,
                          bint is_left) noexcept nogil:
    """Append what stands of a subtree of which all is known; returns how many nodes these are.

    parent, is_left : of `top`. Where memory ends, `out` notes it. O(nodes).
    """
    cdef int64_t first = out.count
    cdef int64_t end = end_of(tree, top)
    cdef int64_t node = top
    cdef bint behind_parent = False     # the node before is the parent, else it is a right child
    cdef int64_t i, variant
    while node < end:
        if tree.fate[node] == MOVED:
            i = out.count
            variant = variant_of(tree, node)
            if copy_variant(out, variants_with(tree, variant), variant,
                            tree.n_statistics) == 0:
                return 0
        else:
            i = copy_node(out, tree, node)
        if i < 0:
            return 0
        if node == top:
            link(out, i, parent, is_left)
        elif not behind_parent:
            out.nodes[tree.place[node]].right = i
        behind_parent = tree.fate[node] == STANDS
        if behind_parent:
            out.nodes[i].left = i + 1
            tree.place[tree.nodes[node].right] = <int32_t>i
            node += 1
        else:
            node = end_of(tree, node)
    return out.count - first
