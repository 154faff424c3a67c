"""A set that goes on alone, down the tree that is known of it (`_known_tree`).

Its rows are a stretch of a list. A test that stands parts the stretch, by one column; a subtree of
which all is known is copied, and its rows stay where they are. At a node that has to be searched a
growth of its own begins, from the rows that are left::

    rows    | 3 9 12 17 20 31 44 52 60 77 |          the test of the root stands
            | 3 12 20 31 60 | 9 17 44 52 77 |        left: all is known; right: is searched
              copied          grown

So entries and histograms are made where something is searched, and nowhere above.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport Column, last_ordered, without_entries
from dtrees.core.data._memory cimport claim, resize
from dtrees.core.data._structs cimport KnownTest, PresortedFeature
from dtrees.core.grow._depth_first cimport begin_growth
from dtrees.core.grow._known_tree cimport OPEN, TORN, copy_node, copy_subtree, link, test_of
from dtrees.core.grow._single_member cimport list_rows
from dtrees.core.histogram._totals cimport sum_rows, weigh_totals
from dtrees.core.search._open_node cimport OpenNode, describe, free_node, key_of_child
from dtrees.core.stores._partition cimport (
    Route, mark_codes, partition_row_list, route_of_known
)


cdef void free_replay(Replay* r) noexcept nogil:
    free(r.open)
    free(r.side)
    free(r.scratch)
    free(r.constant)


cdef bint begin_replay(Replay* r, Buffers* view, const SharedStore* s, const Known* tree,
                       const SharedNode* node, int member) noexcept nogil:
    """Begin with the rows of a member, whose node is known; False without memory.

    node : without entries of sparse columns. view : gets the rows.
    """
    cdef const OpenNode* open = &node.open[member]
    cdef int64_t n = open.totals.n
    r.set = node.set_of[member]
    r.tree = tree
    r.params = &s.params_of[r.set]
    r.n_open = 0
    if not (claim(<void**>&view.rows, (n + 1) * sizeof(uint32_t))
            and claim(<void**>&r.scratch, (n + 1) * sizeof(uint32_t))
            and claim(<void**>&r.constant, s.n_dense + 1)):
        return False
    if r.side == NULL and not claim(<void**>&r.side, s.n_rows + 1):
        return False
    list_rows(view, s, node, member)
    memcpy(r.constant, node.constant, s.n_dense)
    return push(r, Branch(node.known[member], 0, open.parent, open.depth,
                          node.smallest[member], open.path, open.is_left))


cdef inline bint push(Replay* r, Branch branch) noexcept nogil:
    """Make a branch the next one; False without memory."""
    cdef int64_t capacity = 2 * r.capacity + 64
    if r.n_open == r.capacity:
        if not resize(<void**>&r.open, capacity * sizeof(Branch)):
            return False
        r.capacity = capacity
    r.open[r.n_open] = branch
    r.n_open += 1
    return True


cdef bint replay_branches(Replay* r, Buffers* view, const SharedStore* s, NodeBuffer* out,
                          Growth* growth) noexcept nogil:
    """Go on until a node has to be searched, of which `growth` has begun then, or to the end.

    False without memory. out : records of the set.
    """
    cdef Branch branch
    cdef int64_t n
    while r.n_open > 0:
        r.n_open -= 1
        branch = r.open[r.n_open]
        if r.tree.fate[branch.node] == OPEN:
            return begin_branch(r, view, s, &branch, growth)
        if r.tree.fate[branch.node] == TORN:
            if not part(r, view, out, &branch):
                return False
            continue
        n = copy_subtree(out, r.tree, branch.node, branch.parent, branch.is_left)
        r.n_known += n
        r.work += n
        if n == 0:
            return False
    return True


cdef bint part(Replay* r, Buffers* view, NodeBuffer* out, const Branch* branch) noexcept nogil:
    """Record a node whose test stands, and part its rows; False without memory."""
    cdef int64_t record = copy_node(out, r.tree, branch.node)
    cdef uint32_t* rows = view.rows + branch.start
    cdef int64_t n = r.tree.nodes[branch.node].n
    cdef int64_t n_left
    cdef KnownTest test
    cdef Route route
    cdef const Column* column
    cdef Branch left = branch[0]
    cdef Branch right = branch[0]
    if record < 0:
        return False
    link(out, record, branch.parent, branch.is_left)
    test_of(r.tree, branch.node, &test)
    column = r.params.columns + test.column
    route = route_of_known(&test, last_ordered(column))
    mark_codes(&route, column, NULL, rows, n, r.side)
    n_left = partition_row_list(rows, n, r.side, r.scratch)
    r.n_known += 1
    r.work += n
    left.node, right.node = test.left, test.right
    left.parent = right.parent = record
    left.is_left, right.is_left = True, False
    left.depth = right.depth = branch.depth + 1
    left.smallest = right.smallest = min(branch.smallest, min(n_left, n - n_left))
    left.path = key_of_child(branch.path, True)
    right.path = key_of_child(branch.path, False)
    right.start = branch.start + n_left
    return push(r, right) and push(r, left)


cdef bint begin_branch(Replay* r, Buffers* view, const SharedStore* s, const Branch* branch,
                       Growth* growth) noexcept nogil:
    """Begin the growth of a node that has to be searched; False without memory."""
    cdef const TrainParameters* params = r.params
    cdef OpenNode root
    cdef int64_t n = r.tree.nodes[branch.node].n
    cdef int64_t i
    cdef int32_t j
    memset(&root, 0, sizeof(OpenNode))
    root.start = branch.start
    root.depth = branch.depth
    root.path = branch.path
    root.parent = branch.parent
    root.is_left = branch.is_left
    root.record = -1
    if params.criterion.n_classes > 0 and not claim(
            <void**>&root.class_totals, params.criterion.n_classes * sizeof(int64_t)):
        return False
    if not params.draws and not claim(<void**>&root.features,
                                      (s.n_dense + 1) * sizeof(PresortedFeature)):
        free_node(&root)
        return False
    sum_rows(&view.of_row, &params.layout, view.rows + branch.start, n, &root.totals,
             root.class_totals)
    if view.classes.of_class != NULL:
        weigh_totals(&root.totals, root.class_totals, view.classes.of_class,
                     params.criterion.n_classes)
    describe(&root, params)
    for i in range(0 if params.draws else s.n_dense):
        j = s.dense[i]
        if params.columns[j].n_codes > 0 and not r.constant[i]:
            root.features[root.n_features] = without_entries(&params.columns[j], j)
            root.n_features += 1
    if not begin_growth(growth, params, view, &root):
        free_node(&root)
        return False
    r.smallest = branch.smallest
    return True
