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
cimport cython

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._memory cimport resize
from dtrees.core.grow._column_chunks cimport Sharing, grow_in_chunks
from dtrees.core.grow._node_buffer cimport free_node_buffer, stand_for, write_record
from dtrees.core.grow._node_step cimport RECORD, grow_node
from dtrees.core.search._open_node cimport OpenNode, free_node
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport begin_search, free_search, new_search
from dtrees.core.stores.presorted._buffers cimport MAX_NARROW, Buffers, free_buffers, relocate
from dtrees.core.stores.presorted._few_rows cimport few_rows_store, may_pack, pack
from dtrees.core.stores.presorted._presorted_store cimport presorted_store
from dtrees.core.stores.sampled._sampled_store cimport begin_rows, free_sampled, sampled_store

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


cdef allow(OpenNode* node, above):
    """Let a root that is a node of a larger tree have what its ancestors allow it."""
    cdef const uint8_t[::1] words
    lower, upper, sets = above
    node.above.has_lower, node.above.has_upper = lower is not None, upper is not None
    node.above.lower = 0.0 if lower is None else lower
    node.above.upper = 0.0 if upper is None else upper
    if sets is not None:
        words = sets
        node.above.sets = <uint64_t*>malloc(len(sets))
        if node.above.sets == NULL:
            raise MemoryError
        memcpy(node.above.sets, &words[0], len(sets))


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
    if g.has_left:
        free_node(&g.left)
    g.sharing, g.has_left, g.n_left = NULL, False, 0
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
    """Grow until about `work` entries were looked at, or a subtree is left; False when nothing else
    remains.

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
        elif g.sharing != NULL and g.n_frames == 1 and is_left(g, w, &node):
            leave(g, &node)
            return True
        elif g.params.draws:
            grow_open(g, frame, &node)
        elif moves(g, w, &node):
            move_node(g, w, &node)
        else:
            g.presorted.w = w
            grow_presorted(g, frame, &node)
    return False


cdef inline void grow_presorted(Growth* g, Frame* frame, OpenNode* node) noexcept nogil:
    """Grow a node from its entries, or, where it has few rows, without."""
    cdef Buffers* w = frame.buffers
    if (w.narrow and node.few_columns == NULL and may_pack(g.store, w, node)
            and not pack(&g.few, g.store, w, node)):
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


cdef inline bint moves(const Growth* g, const Buffers* w, const OpenNode* node) noexcept nogil:
    """Whether a node is better off in buffers of its own.

    A node that threads share stays: its subtrees are left from here.
    """
    cdef int64_t n = node.totals.n
    if w.narrow and not w.shared:
        return (node.few_columns == NULL and g.n_frames < MAX_FRAMES and outgrown(w, n)
                and not is_large(g, node))
    return n <= MAX_NARROW and not is_large(g, node)


cdef void move_node(Growth* g, Buffers* w, OpenNode* node) noexcept nogil:
    """Open a frame for a node in buffers of its own."""
    cdef Buffers* new
    if w.narrow:
        new = relocate(w, <uint32_t*>w.entries, node, g.params.columns, &g.params.count_rule)
    else:
        new = relocate(w, <uint64_t*>w.entries, node, g.params.columns, &g.params.count_rule)
    if new == NULL:
        free_node(node)
        g.out.out_of_memory = True
        return
    push_frame(g, new)
    open_node(g, &g.frames[g.n_frames - 1], node)


cdef inline void open_node(Growth* g, Frame* frame, OpenNode* node) noexcept nogil:
    if not push(frame, node):
        free_node(node)
        g.out.out_of_memory = True


cdef void grow_open(Growth* g, Frame* frame, OpenNode* node) noexcept nogil:
    """Grow a node; its children are open nodes of the frame, or recorded leaves."""
    cdef OpenNode left
    cdef OpenNode right
    cdef bint is_split
    if is_shared(g, node):
        is_split = grow_in_chunks(g.sharing, &g.presorted, &g.out, node, &left, &right)
    else:
        is_split = grow_node(g.store, &g.out, node, &left, &right, RECORD)
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


# ---------------------------------------------------------------------------------------------
# threads

cdef void share_growth(Growth* g, const Sharing* sharing, int64_t least_shared, int64_t least_left,
                       int64_t most_left) noexcept nogil:
    """Let a growth that has begun lead a team.

    least_shared, least_left, most_left : entries, as in `Growth`.
    """
    g.sharing = sharing
    g.least_shared, g.least_left, g.most_left = least_shared, least_left, most_left


cdef inline bint is_large(const Growth* g, const OpenNode* node) noexcept nogil:
    """Whether a node is too large to be left to one thread."""
    return (g.sharing != NULL and g.n_frames == 1
            and entries_of(g.params, node) > g.most_left)


cdef inline bint is_left(const Growth* g, const Buffers* w, const OpenNode* node) noexcept nogil:
    """Whether the subtree of a node is left to any thread."""
    cdef int64_t entries = entries_of(g.params, node)
    return (g.least_left < entries <= g.most_left and node.few_columns == NULL
            and (g.params.draws or node.totals.n <= MAX_NARROW))


cdef void leave(Growth* g, OpenNode* node) noexcept nogil:
    """Leave a node; a record stands for its subtree."""
    write_record(&g.out, g.params, node)
    if node.record < 0:
        free_node(node)
        return
    g.n_left += 1
    stand_for(&g.out, node.record, g.n_left)
    g.left = node[0]
    g.left.parent = -1
    g.has_left = True


cdef inline bint is_shared(const Growth* g, const OpenNode* node) noexcept nogil:
    """Whether threads share the columns of a node."""
    return (g.sharing != NULL and g.store == &g.presorted.store
            and node.totals.n * node.n_features >= g.least_shared
            and entries_of(g.params, node) >= g.least_shared)


# ---------------------------------------------------------------------------------------------
# memory, which serves one tree after the other

cdef class GrowthMemory:
    """What a thread needs to grow subtrees, one after the other."""

    def __cinit__(self):
        self.growth = new_growth()
        if self.growth == NULL:
            raise MemoryError

    def __dealloc__(self):
        free_growth(self.growth)


cdef class RecordMemory:
    """Records of a tree."""

    def __dealloc__(self):
        free_node_buffer(&self.records)


cdef class Arena:
    """Memory of trees that were grown, for the next trees.

    Without it every tree of a forest would have its memory mapped, and filled with zeros, anew. It
    holds as much as threads grow trees at the same time. Copies and pickles of it are empty.

    Parameters
    ----------
    lends_records : bool, default=True
        False: records of training sets that grow together are freed as soon as their trees are
        made. No other trees come that would use them, and so many at once take a lot.
    """

    def __init__(self, bint lends_records=True):
        self.unused = []
        self.unused_records = []
        self.lends_records = lends_records

    def __reduce__(self):
        return Arena, (self.lends_records,)

    cdef GrowthMemory take(self):
        try:
            return self.unused.pop()
        except IndexError:
            return GrowthMemory()

    cdef give_back(self, memory):
        """Keep a `GrowthMemory`, or a `RecordMemory` if it is lent again, for the next tree."""
        if isinstance(memory, GrowthMemory):
            self.unused.append(memory)
        elif self.lends_records:
            self.unused_records.append(memory)

    cdef NodeBuffer take_records(self):
        """Room for the records of a tree, which may be empty."""
        cdef NodeBuffer found
        cdef RecordMemory memory
        memset(&found, 0, sizeof(NodeBuffer))
        if self.unused_records:
            memory = self.unused_records.pop()
            found = memory.records
            found.count = found.n_words = 0
            found.out_of_memory = False
            memset(&memory.records, 0, sizeof(NodeBuffer))
        return found

    cdef ArenaLease lease_records(self, NodeBuffer* records):
        """A lease of the records of a tree, which are not the caller's any longer."""
        cdef RecordMemory memory = RecordMemory()
        memory.records = records[0]
        memset(records, 0, sizeof(NodeBuffer))
        return ArenaLease(self, memory)


@cython.final
@cython.no_gc_clear
cdef class ArenaLease:
    """What a tree has grown into, for those who read it where it is.

    While somebody does, the memory serves no other tree; then it goes back to its arena.
    """

    def __cinit__(self, Arena arena, memory):
        self.arena = arena
        self.memory = memory

    def __dealloc__(self):
        self.arena.give_back(self.memory)
