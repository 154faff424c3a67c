"""Members of a shared node whose trees are known (`_known_tree`): which of them are searched.

    members         0 1 2 3 4 5         of a node, leaves left out
    copied          0     3             all below is known
    known               2   4           the test is: no column is counted for them
    searched          1       5         the others, together

Those that are known and those that were searched then go on together where their tests look at one
column, as if all had been searched.
"""
from libc.stdint cimport int64_t, uint64_t

from dtrees.core.data._bits cimport count_bits
from dtrees.core.grow._known_tree cimport OPEN, STANDS, copy_subtree, test_of


cdef uint64_t copy_known(NodeBuffer* out, const Known* trees, SharedNode* node, uint64_t active,
                         int64_t* n_known) noexcept nogil:
    """Copy the subtrees of which all is known; returns a bit for each member that is done with.

    Members whose test is not allowed know nothing from here on. trees : by set; without nodes where
    none is known. out : records, by set.
    """
    cdef uint64_t done = 0
    cdef int64_t at
    cdef int m, s
    for m in range(node.n_members):
        at = node.known[m]
        if at < 0 or not active >> m & 1:
            continue
        s = node.set_of[m]
        if trees[s].fate[at] <= STANDS:
            n_known[0] += copy_subtree(&out[s], &trees[s], at, node.open[m].parent,
                                       node.open[m].is_left)
            done |= <uint64_t>1 << m
        elif trees[s].fate[at] == OPEN:
            node.known[m] = -1
    return done


cdef int leave_out_known(SharedNode* node) noexcept nogil:
    """Leave active members only that are searched; returns how many others there are."""
    cdef int m
    node.given = 0
    for m in range(node.n_members):
        if node.active >> m & 1 and node.known[m] >= 0:
            node.given |= <uint64_t>1 << m
    node.active &= ~node.given
    return count_bits(node.given)


cdef void give_tests(SharedStore* s, const Known* trees, const SharedNode* node) noexcept nogil:
    """Give the members of the node at hand whose test is known this test."""
    cdef int m
    for m in range(node.n_members if node.given != 0 else 0):
        if node.given >> m & 1:
            test_of(&trees[node.set_of[m]], node.known[m], &s.tests[m])
            s.members[m].known = &s.tests[m]
