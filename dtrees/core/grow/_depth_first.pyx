"""A whole subtree, grown in one call without the interpreter.

The rows of an open node are a stretch of its buffers and of every column's entries, so a subtree
is grown depth first, in place: search every column that still varies, mark the side of each row,
partition the rows and the features, go on with the left child. Nodes come out in preorder.

    frame 0   buffers of the caller         open nodes:  [ A | B | C ]
    frame 1     relocated: rows of C          open nodes:  [ D | E ]
    frame 2       relocated: rows of E        open nodes:  [ F ]           <- grows next

A node of few rows is relocated (see _buffers.pyx) and grown in a frame of its own, which ends
with its subtree. Nothing is recursive, so growth can stop after any node: `grow_for` returns after
a given amount of work, and signals and cancellation are looked at between the calls.

Below a node: columns that were constant in it are not searched again; the features of leaves are
not partitioned; a search ends at a split that no other can beat (both sides pure). Cost: O(entries)
per level and column.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from dtrees.core.data._memory cimport resize
from dtrees.core.search._open_node cimport OpenNode, free_node
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport begin_search, free_search, new_search
from dtrees.core.stores.presorted._buffers cimport Buffers, free_buffers, relocate
from dtrees.core.stores.presorted._few_rows cimport few_rows_store, may_pack, pack
from dtrees.core.stores.presorted._presorted_store cimport presorted_store
from dtrees.core.stores.sampled._sampled_store cimport begin_rows, free_sampled, sampled_store
from dtrees.core.grow._node_buffer cimport free_node_buffer, write_record
from dtrees.core.grow._node_step cimport RECORD, grow_node

cdef enum:
    COMPACT_ROWS = 1024     # nodes of at most so many rows move out of much larger buffers
    COMPACT_SHARE = 8
    LEAST_COMPACT = 64      # rows: what moves is more than what is saved


# ---------------------------------------------------------------------------------------------
# life of a growth

cdef Growth* new_growth() noexcept nogil:
    """Memory for growths, one after the other; NULL without any. Freed by `free_growth`."""
    cdef Growth* g = <Growth*>calloc(1, sizeof(Growth))
    if g != NULL:
        g.presorted = presorted_store()
        g.few = few_rows_store()
        g.sampled = sampled_store()
        g.store = &g.presorted.store
    return g


cdef bint begin_growth(Growth* g, const TrainParameters* params, Buffers* w,
                       OpenNode* root) noexcept nogil:
    """Begin a subtree, in the memory of the one before; False without memory.

    `root` is taken over where there is memory, the buffers are not.
    """
    end_growth(g)
    g.params = params
    if g.search == NULL:
        g.search = new_search(&params.criterion, params.layout.kind, w.of_row, &params.limits)
        if g.search == NULL:
            return False
    elif not begin_search(g.search, &params.criterion, params.layout.kind, w.of_row,
                          &params.limits):
        return False
    g.store = &g.sampled.store if params.draws else &g.presorted.store
    g.store.params = params
    g.store.search = g.search
    if params.draws and not begin_rows(&g.sampled, params, w, root):
        return False
    push_frame(g, w)
    g.frames[0].has_own = False
    if push(&g.frames[0], root):
        return True
    pop_frame(g)
    return False


cdef void end_growth(Growth* g) noexcept nogil:
    """Forget a growth, complete or not, but for its memory."""
    cdef int i
    cdef int64_t j
    for i in range(g.n_frames):
        for j in range(g.frames[i].n_open):
            free_node(&g.frames[i].open[j])
        if g.frames[i].has_own:
            free_buffers(g.frames[i].buffers)
    g.n_frames = 0
    g.out.count = g.out.n_words = 0
    g.out.out_of_memory = False
    g.store.work = 0


cdef void free_growth(Growth* g) noexcept nogil:
    cdef int i
    if g == NULL:
        return
    end_growth(g)
    free_search(g.search)
    for i in range(MAX_FRAMES):
        free(g.frames[i].open)
    free_node_buffer(&g.out)
    free_sampled(&g.sampled)
    free(g)


cdef void push_frame(Growth* g, Buffers* w) noexcept nogil:
    cdef Frame* frame = &g.frames[g.n_frames]
    frame.n_open = 0
    frame.buffers = w
    frame.has_own = True
    g.n_frames += 1
    g.search.of_row = w.of_row


cdef void pop_frame(Growth* g) noexcept nogil:
    cdef Frame* frame
    g.n_frames -= 1
    frame = &g.frames[g.n_frames]
    if frame.has_own:
        free_buffers(frame.buffers)
    if g.n_frames > 0:
        g.search.of_row = g.frames[g.n_frames - 1].buffers.of_row


cdef inline bint push(Frame* frame, const OpenNode* node) noexcept nogil:
    """Make a node the next one; False without memory, and then it is still the caller's."""
    cdef int64_t capacity = 2 * frame.capacity + 64
    if frame.n_open == frame.capacity:
        if not resize(<void**>&frame.open, capacity * sizeof(OpenNode)):
            return False
        frame.capacity = capacity
    frame.open[frame.n_open] = node[0]
    frame.n_open += 1
    return True


cdef inline bint outgrown(const Buffers* w, int64_t n) noexcept nogil:
    """Whether a node of n rows is better off in buffers of its own."""
    if w.counted.least_rows > 0:
        return n < w.counted.least_rows
    return LEAST_COMPACT <= n <= COMPACT_ROWS and n * COMPACT_SHARE < w.n_rows


# ---------------------------------------------------------------------------------------------
# one node after the other

cdef bint grow_for(Growth* g, int64_t work) noexcept nogil:
    """Grow until about `work` entries were looked at; False when the subtree is complete.

    Without memory it ends, too, and `partial_tree_of` raises.
    """
    cdef Frame* frame
    cdef OpenNode node
    cdef Buffers* w
    cdef int64_t stop = g.store.work + work
    while g.n_frames > 0 and not g.out.out_of_memory:
        frame = &g.frames[g.n_frames - 1]
        if frame.n_open == 0:
            pop_frame(g)
            continue
        if g.store.work > stop:
            return True
        frame.n_open -= 1
        node = frame.open[frame.n_open]
        w = frame.buffers
        if node.is_leaf:
            write_record(&g.out, g.params, &node)
            free_node(&node)
        elif g.params.draws:
            grow_open(g, frame, &node)
        elif not w.narrow:
            push_relocated(g, &node, relocate(w, <uint64_t*>w.entries, &node, g.params.columns,
                                              &g.params.count_rule))
        elif node.few_columns == NULL and (
                w.shared or (g.n_frames < MAX_FRAMES and outgrown(w, node.totals.n))):
            push_relocated(g, &node, relocate(w, <uint32_t*>w.entries, &node, g.params.columns,
                                              &g.params.count_rule))
        else:
            g.presorted.w = w
            grow_narrow(g, frame, &node)
    return False


cdef inline void grow_narrow(Growth* g, Frame* frame, OpenNode* node) noexcept nogil:
    """Grow a node of narrow buffers: from its entries, or, where it has few rows, without."""
    if (node.few_columns == NULL and may_pack(g.store, frame.buffers, node)
            and not pack(&g.few, g.store, frame.buffers, node)):
        g.out.out_of_memory = True
        free_node(node)
    elif node.few_columns == NULL:
        grow_open(g, frame, node)
    else:
        g.store = &g.few.store
        g.few.store.work = g.presorted.store.work
        grow_open(g, frame, node)
        g.presorted.store.work = g.few.store.work
        g.store = &g.presorted.store


cdef void push_relocated(Growth* g, OpenNode* node, Buffers* w) noexcept nogil:
    """A frame for a node that has got buffers of its own; NULL: there was no memory for them."""
    if w != NULL:
        push_frame(g, w)
        open_node(g, &g.frames[g.n_frames - 1], node)
    else:
        free_node(node)
        g.out.out_of_memory = True


cdef inline void open_node(Growth* g, Frame* frame, OpenNode* node) noexcept nogil:
    if not push(frame, node):
        free_node(node)
        g.out.out_of_memory = True


cdef void grow_open(Growth* g, Frame* frame, OpenNode* node) noexcept nogil:
    """Grow a node; its children are open nodes of the frame, or recorded leaves."""
    cdef OpenNode left
    cdef OpenNode right
    cdef bint is_split = grow_node(g.store, &g.out, node, &left, &right, RECORD)
    free_node(node)
    if g.search.out_of_memory:
        g.out.out_of_memory = True
        if is_split:
            free_node(&left)
            free_node(&right)
    elif is_split and not left.is_leaf:
        open_node(g, frame, &right)
        open_node(g, frame, &left)
    elif is_split:
        write_record(&g.out, g.params, &left)
        free_node(&left)
        if right.is_leaf:
            write_record(&g.out, g.params, &right)
            free_node(&right)
        else:
            open_node(g, frame, &right)
