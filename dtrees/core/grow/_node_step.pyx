"""One node: recorded, searched, and split if that gains enough.

    record ──▶ search ──▶ enough gain? ──▶ which codes go left ──▶ part the rows ──▶ write the test
                  store                          store                  store

The step does not know where rows are; it asks the store (`stores._store`). Children get their keys,
sums and limits where the store opens them (`search._open_node`).
"""
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._search cimport Search, begin_node, finish_node
from dtrees.core.stores._partition cimport Route, route_of
from dtrees.core.stores._store cimport Store
from dtrees.core.grow._node_buffer cimport NodeBuffer, write_record, write_test


cdef bint grow_node(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left,
                    OpenNode* right) noexcept nogil:
    """Record a node and split it; False: it stays a leaf, and there are no children."""
    write_record(out, store.params, node)
    begin_node(store.search, &node.totals, node.class_totals, node.path)
    store.search_node(store, node)
    return split_node(store, out, node, left, right)


cdef bint split_node(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left,
                     OpenNode* right) noexcept nogil:
    """The same for a node that is recorded and searched."""
    cdef Search* q = store.search
    cdef Route route
    finish_node(q)
    if not has_split(q, &store.params.limits):
        return False
    store.choose(store, node)
    route = route_of(&q.split, store.last_ordered, q.split_subset, q.split_subset_words)
    store.partition(store, node, &route, left, right)
    write_test(out, node.record, store.params, q, &store.codes, &left.totals, &right.totals)
    return True
