"""One tree from the rows of a dataset, on any number of threads.

Where columns are drawn, nothing but the rows of a node is kept. Else every column is sorted once.
Columns of few codes have no entries and are counted. Small tables get 32-bit entries at once.

One thread leads a team: the others share the columns of large nodes, and grow subtrees that are
left to them::

    leader    node | node | node | leaves a subtree | node ...          upper nodes, in preorder
    helpers   columns of these   | grow the subtree | columns ...

Large nodes. The features of a node are divided into chunks of about equal numbers of entries::

    features        chunk 0 | chunk 1 | chunk 2 | ...      a thread each: searched
    search          best    | best    | best    | ...      the best of them is the node's split
    features        chunk 0 | chunk 1 | chunk 2 | ...      a thread each: partitioned

Between the two, one thread partitions the rows. Which thread has which chunk changes nothing.

Subtrees. The rows of an open node are a stretch of its buffers and of every column's entries, so a
subtree is grown depth first, in place: search every column that still varies, mark the side of each
row, partition the rows and the features, go on with the left child. Nodes come out in preorder.

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
from functools import partial


from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove, memset

from dtrees.core.data._columns cimport STORED_SPARSE, STORED_U32, Column, without_entries
from dtrees.core.data._memory cimport claim, claim_zeros, resize
from dtrees.core.data._structs cimport LEAF, PresortedFeature
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, free_node_buffer, partial_tree_of, stand_for, write_record
)
from dtrees.core.grow._node_step cimport RECORD, SPLIT, grow_node
from dtrees.core.grow._team cimport Team, lead
from dtrees.core.histogram._totals cimport sum_rows
from dtrees.core.search._open_node cimport OpenNode, describe, free_node
from dtrees.core.search._parameters cimport CountRule, TrainParameters
from dtrees.core.search._search cimport (
    Search, begin_node, begin_search, free_scratch, free_search, is_better, new_search
)
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores._partition cimport ChildFeatures, partition_features
from dtrees.core.stores.presorted._buffers cimport (
    MAX_NARROW, Buffers, Counted, Relocation, entries_of_features, free_buffers, new_buffers,
    relocate, relocate_features, relocate_rows, sorted_entries
)
from dtrees.core.stores.presorted._few_rows cimport few_rows_store, may_pack, pack
from dtrees.core.stores.presorted._presorted_store cimport (
    PresortedStore, count_features, give_back, give_histograms, keeps_histogram, presorted_store,
    reserve_features, search_columns, smaller_child
)
from dtrees.core.stores.sampled._column_loader cimport list_rows
from dtrees.core.stores.sampled._sampled_store cimport (
    begin_rows, free_sampled, ready_loader, sampled_store
)

from dtrees.core.grow.assembly import join

# ---------------------------------------------------------------------------------------------
# large nodes, whose columns threads share

cdef struct Chunk:
    # Features first .. last of a node.
    int64_t first
    int64_t last

cdef struct Found:
    # What a thread has found of a chunk.
    Search* search          # with the best split
    int64_t n_kept          # features that stay: they vary, or were relocated
    int64_t n_left          # features that the children get
    int64_t n_right
    int64_t work
    int64_t at              # where entries go as the node is relocated,
    Counted counted         # and what is counted there
    bint out_of_memory

cdef struct Job:
    # Of one node.
    Chunk* chunks
    Found* found
    PresortedStore* store
    OpenNode* node
    OpenNode* left
    OpenNode* right
    int64_t* fresh          # the histogram that chunks add to; NULL: none
    Relocation move


cdef void divide(Chunk* chunks, int64_t n_chunks, const OpenNode* node) noexcept nogil:
    """Divide the features of a node into chunks of about equal numbers of entries."""
    cdef int64_t n = node.n_features
    cdef double total = entries_of_features(node.features, n, node.totals.n) + n
    cdef double entries = 0
    cdef int64_t r = 0
    cdef int64_t k
    for k in range(n_chunks):
        chunks[k].first = r
        while r < n and entries * n_chunks < total * (k + 1):
            entries += entries_of_features(node.features + r, 1, node.totals.n) + 1
            r += 1
        chunks[k].last = r
    chunks[n_chunks - 1].last = n


cdef Job new_job(const Sharing* sharing, OpenNode* node) noexcept nogil:
    """A job of the features of a node; without memory it has no chunks. Freed by `free_job`."""
    cdef Job job
    memset(&job, 0, sizeof(Job))
    job.node = node
    job.chunks = <Chunk*>calloc(sharing.n_chunks, sizeof(Chunk))
    job.found = <Found*>calloc(sharing.n_chunks, sizeof(Found))
    if job.chunks == NULL or job.found == NULL:
        free_job(&job, 0)
    else:
        divide(job.chunks, sharing.n_chunks, node)
    return job


cdef void free_job(Job* job, int64_t n_chunks) noexcept nogil:
    cdef int64_t k
    for k in range(n_chunks):
        free_search(job.found[k].search)
    free(job.chunks)
    free(job.found)
    job.chunks = NULL


cdef OpenNode of_chunk(const Job* job, int64_t k) noexcept nogil:
    """The node with the features of a chunk alone."""
    cdef OpenNode node = job.node[0]
    node.features += job.chunks[k].first
    node.n_features = job.chunks[k].last - job.chunks[k].first
    return node


cdef bint keep_features(Job* job, int64_t n_chunks) noexcept nogil:
    """Let the node have the features that chunks keep; False where one had no memory."""
    cdef OpenNode* node = job.node
    cdef bint has_memory = True
    cdef int64_t k
    node.n_features = 0
    for k in range(n_chunks):
        append_features(node.features, &node.n_features, job.chunks[k].first, job.found[k].n_kept)
        has_memory &= not job.found[k].out_of_memory
    return has_memory


cdef inline void append_features(PresortedFeature* features, int64_t* n, int64_t first,
                                 int64_t count) noexcept nogil:
    """Move features of a chunk, which begins at `first`, behind those of the chunks before it."""
    if features != NULL:
        memmove(features + n[0], features + first, count * sizeof(PresortedFeature))
        n[0] += count


cdef bint grow_in_chunks(const Sharing* sharing, PresortedStore* s, NodeBuffer* out,
                         OpenNode* node, OpenNode* left, OpenNode* right) noexcept nogil:
    """The step of a node (`_node_step`); where memory ends, the search of the store notes it."""
    cdef Job job = new_job(sharing, node)
    cdef Search* own = s.store.search
    cdef bint is_split = False
    cdef int64_t k
    if job.chunks == NULL:
        own.out_of_memory = True
        return False
    write_record(out, s.store.params, node)
    job.store = s
    s.store.search = search_in_chunks(sharing, &job)
    if s.store.search != NULL:
        is_split = split_in_chunks(sharing, &job, out, left, right)
    own.out_of_memory |= s.store.search == NULL or s.store.search.out_of_memory
    s.store.search = own
    for k in range(sharing.n_chunks):
        s.store.work += job.found[k].work
    free_job(&job, sharing.n_chunks)
    return is_split


# ---------------------------------------------------------------------------------------------
# search

cdef Search* search_in_chunks(const Sharing* sharing, Job* job) noexcept nogil:
    """Search a node; returns the search that has its best split, NULL without memory."""
    cdef const Buffers* w = job.store.w
    cdef Search* best
    cdef int64_t k
    if keeps_histogram(w, job.node) and job.node.histogram == NULL:
        job.node.histogram = job.fresh = <int64_t*>calloc(w.counted.n_words, sizeof(int64_t))
        if job.fresh == NULL:
            return NULL
    lead(sharing.jobs, search_chunk, job, sharing.n_chunks, False)
    if not keep_features(job, sharing.n_chunks):
        return NULL
    best = job.found[0].search
    for k in range(1, sharing.n_chunks):
        if is_better(best, &job.found[k].search.split):
            best = job.found[k].search
    return best


cdef void search_chunk(void* shared, int64_t k) noexcept nogil:
    """Search the columns of a chunk; constant ones lose their features."""
    cdef const Job* job = <Job*>shared
    cdef Found* found = job.found + k
    cdef PresortedStore s = job.store[0]
    cdef const TrainParameters* params = s.store.params
    cdef OpenNode node = of_chunk(job, k)
    cdef Search* q = new_search(&params.criterion, params.layout.kind, s.w.of_row, &params.limits)
    if q == NULL:
        found.out_of_memory = True
        return
    found.search = q
    begin_node(q, &node.totals, node.class_totals, node.path, &node.above)
    if job.fresh != NULL:
        count_features(s.w, params, node.features, node.n_features, &node, job.fresh)
    s.store.search = q
    s.store.work = 0
    s.histogram = node.histogram
    search_columns(&s, &node)
    free_scratch(q)
    found.n_kept = node.n_features
    found.work = s.store.work
    found.out_of_memory = q.out_of_memory


# ---------------------------------------------------------------------------------------------
# the split

cdef bint split_in_chunks(const Sharing* sharing, Job* job, NodeBuffer* out, OpenNode* left,
                          OpenNode* right) noexcept nogil:
    """Split a node that is searched; the store has the search with its best split."""
    cdef PresortedStore* s = job.store
    cdef Search* q = s.store.search
    cdef OpenNode* node = job.node
    cdef PresortedFeature* features = node.features
    cdef bint is_split
    cdef int64_t k
    s.histogram = node.histogram
    s.chosen = features
    while q.split.test != LEAF and s.chosen.column != q.split.column:
        s.chosen += 1
    node.features = NULL        # they are partitioned in chunks
    is_split = grow_node(&s.store, out, node, left, right, SPLIT)
    node.features = features
    if not is_split or q.out_of_memory:
        return is_split
    job.left, job.right, job.fresh = left, right, NULL
    if keeps_histogram(s.w, left) or keeps_histogram(s.w, right):
        job.fresh = <int64_t*>calloc(s.w.counted.n_words, sizeof(int64_t))
        q.out_of_memory |= job.fresh == NULL
    if not reserve_features(node, left, right) or q.out_of_memory:
        q.out_of_memory = True
        free(job.fresh)
        return True
    divide(job.chunks, sharing.n_chunks, node)
    lead(sharing.jobs, partition_chunk, job, sharing.n_chunks, False)
    for k in range(sharing.n_chunks):
        append_features(left.features, &left.n_features, job.chunks[k].first, job.found[k].n_left)
        append_features(right.features, &right.n_features, job.chunks[k].first,
                        job.found[k].n_right)
        q.out_of_memory |= job.found[k].out_of_memory
    give_back(left, node.n_features)
    give_back(right, node.n_features)
    if job.fresh != NULL:
        give_histograms(s.w, node, job.fresh, left, right)
    return True


cdef inline PresortedFeature* features_from(const OpenNode* node, int64_t first) noexcept nogil:
    """The features of a node from one of them on; NULL: it has no room for any."""
    if node.features == NULL:
        return NULL
    return node.features + first


cdef void partition_chunk(void* shared, int64_t k) noexcept nogil:
    """The children of a node get the features of a chunk; the smaller child is counted."""
    cdef const Job* job = <Job*>shared
    cdef Found* found = job.found + k
    cdef Buffers* w = job.store.w
    cdef const TrainParameters* params = job.store.store.params
    cdef OpenNode node = of_chunk(job, k)
    cdef int64_t first = job.chunks[k].first
    cdef void* scratch = malloc((node.totals.n + 1) * sizeof(uint64_t))
    cdef ChildFeatures children = ChildFeatures(
        features_from(job.left, first), &found.n_left, features_from(job.right, first),
        &found.n_right, params.limits.min_rows)
    if scratch == NULL:
        found.out_of_memory = True
    elif w.narrow:
        found.work += partition_features(<uint32_t*>w.entries, node.features, node.n_features,
                                         w.side, <uint32_t*>scratch, &children)
    else:
        found.work += partition_features(<uint64_t*>w.entries, node.features, node.n_features,
                                         w.side, <uint64_t*>scratch, &children)
    free(scratch)
    if job.fresh != NULL:
        count_features(w, params, node.features, node.n_features,
                       smaller_child(job.left, job.right), job.fresh)


# ---------------------------------------------------------------------------------------------
# other buffers

cdef Buffers* relocate_in_chunks(const Sharing* sharing, Buffers* old, OpenNode* node,
                                 const Column* columns, const CountRule* rule) noexcept nogil:
    """Move a node of wide buffers to narrow ones, as `relocate`; NULL without memory."""
    cdef Job job = new_job(sharing, node)
    cdef Buffers* new = NULL
    cdef bint has_memory = False
    cdef int64_t at = 0
    cdef int64_t r, k
    if job.chunks != NULL:
        for k in range(sharing.n_chunks):
            job.found[k].at = at
            at += entries_of_features(node.features + job.chunks[k].first,
                                      job.chunks[k].last - job.chunks[k].first, node.totals.n)
        new = relocate_rows(old, node, at)
    if new != NULL:
        job.move = Relocation(old, new, columns, rule, NULL, NULL)
        lead(sharing.jobs, relocate_chunk, &job, sharing.n_chunks, False)
        for k in range(sharing.n_chunks):
            for r in range(job.chunks[k].first, job.chunks[k].first + job.found[k].n_kept):
                if node.features[r].length == 0 and node.features[r].offset >= 0:
                    node.features[r].offset += new.counted.n_words
            new.counted.n_words += job.found[k].counted.n_words
            new.counted.least_rows = max(new.counted.least_rows, job.found[k].counted.least_rows)
        has_memory = keep_features(&job, sharing.n_chunks)
        node.start = 0
    free_job(&job, 0)
    if not has_memory:
        free_buffers(new)
        return NULL
    return new


cdef void relocate_chunk(void* shared, int64_t k) noexcept nogil:
    """Move the features of a chunk."""
    cdef const Job* job = <Job*>shared
    cdef Found* found = job.found + k
    cdef OpenNode node = of_chunk(job, k)
    cdef Relocation move = job.move
    move.scratch = <uint32_t*>malloc((node.totals.n + 1) * sizeof(uint32_t))
    move.counted = &found.counted
    if move.scratch != NULL:
        node.n_features = relocate_features(&move, <uint64_t*>move.old.entries, node.features,
                                            node.n_features, found.at)
    found.out_of_memory = move.scratch == NULL or node.n_features < 0
    found.n_kept = 0 if found.out_of_memory else node.n_features
    free(move.scratch)


# ---------------------------------------------------------------------------------------------
# subtrees, depth first

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


cdef class Arena:
    """Memory of trees that were grown, for the next trees.

    Without it every tree of a forest would have its memory mapped, and filled with zeros, anew. It
    holds as much as threads grow trees at the same time. Copies and pickles of it are empty.
    """

    def __init__(self):
        self.unused = []

    def __reduce__(self):
        return Arena, ()

    cdef GrowthMemory take(self):
        try:
            return self.unused.pop()
        except IndexError:
            return GrowthMemory()

    cdef take_back(self, GrowthMemory memory):
        self.unused.append(memory)


# ---------------------------------------------------------------------------------------------
# a tree

cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    CHUNKS = 6              # of columns for each thread
    SUBTREES = 4            # that are left for each thread, about
    SMALLEST = 8            # parts of a usual subtree, below which nobody is asked to grow one
    MOST_WORDS = 4          # of a histogram, for each row of the table
    KEPT_SHARE = 8          # rows per cell of a histogram that is kept with its node


def grow_piece(Dataset dataset, tuning, Arena arena, run, int n_threads, cancelled,
               int64_t depth=0, uint64_t path=0, above=(None, None, None)):
    """Grow the tree of all rows.

    The arena has the memory of trees before this one. The number of threads decides only how the
    work is divided. `cancelled` is asked between slices of work; True ends the growth, which
    returns None then. `depth` and `path` are those of the root, where it is a node of a larger
    tree, and `above` is what its ancestors allow it, as `dtrees.core.grow.source` has it. Returns a
    `PartialTree` in preorder.
    """
    cdef SingleTree tree = SingleTree(dataset, tuning, arena, n_threads, cancelled)
    grow = partial(tree.grow, depth, path, above)
    if n_threads == 1:
        return grow()
    try:
        upper = run([partial(tree.team.lead, grow), *[tree.team.help] * (n_threads - 1)])[0]
    finally:
        tree.team.dismiss()     # where nobody has come to lead
    if upper is None or cancelled():
        return None
    return join([upper, *[tree.pieces[i + 1] for i in range(len(tree.pieces))]])


cdef class LeftSubtree:
    """A node whose subtree is left to the team, and a view of its rows."""
    cdef OpenNode root
    cdef Buffers buffers
    cdef int64_t number         # the record of the root stands for this piece

    def __dealloc__(self):
        free_node(&self.root)
        free(self.buffers.number)
        if self.buffers.owns_rows:
            free(self.buffers.rows)


cdef struct Sorting:
    # Columns that chunks sort; a chunk that found no memory begins at -1.
    const Column* columns
    const uint8_t* live
    Buffers* w
    PresortedFeature* features
    Chunk* chunks


cdef class SingleTree:
    """What the threads of a growth share."""
    cdef Dataset dataset
    cdef Arena arena
    cdef Team team
    cdef Sharing sharing
    cdef int n_threads
    cdef GrowthMemory memory    # of the upper nodes
    cdef Buffers rows           # where columns are drawn; they are in that memory
    cdef Buffers* presorted     # else
    cdef TrainParameters params
    cdef object tuning, cancelled
    cdef dict pieces            # subtrees that were left, by their numbers

    def __cinit__(self, Dataset dataset, tuning, Arena arena, int n_threads, cancelled):
        self.dataset, self.arena, self.tuning, self.cancelled = dataset, arena, tuning, cancelled
        self.team, self.memory, self.pieces = Team(), arena.take(), {}
        self.n_threads = n_threads
        self.sharing = Sharing(&self.team.jobs, 1 if n_threads == 1 else CHUNKS * n_threads)
        self.params = dataset.params
        self.params.count_rule.least_rows = tuning.counted_rows
        self.params.draws = dataset.rows_only

    def __dealloc__(self):
        free_buffers(self.presorted)

    # -----------------------------------------------------------------------------------------
    # growth

    def grow(self, int64_t depth, uint64_t path, above):
        """Grow the tree, but for subtrees that are left to the team; None: it was cancelled."""
        cdef Growth* growth = self.memory.growth
        cdef Buffers* w
        cdef OpenNode root
        cdef int64_t entries
        cdef bint begun
        memset(&root, 0, sizeof(OpenNode))
        root.depth, root.path, root.parent = depth, path, -1
        try:
            allow(&root, above)
            w = self.open_root(&root)
            entries = entries_of(&self.params, &root)
            with nogil:
                begun = begin_growth(growth, &self.params, w, &root)
            if not begun:
                raise MemoryError
            memset(&root, 0, sizeof(OpenNode))  # which is the growth's now
        finally:
            free_node(&root)
        if self.n_threads > 1:
            share_growth(growth, &self.sharing, self.tuning.level_entries,
                         self.tuning.task_entries // SMALLEST,
                         max(self.tuning.task_entries, entries // (SUBTREES * self.n_threads)))
        return self.finish(self.memory)

    def grow_left(self, LeftSubtree subtree):
        """Grow a subtree that was left."""
        cdef GrowthMemory memory = self.arena.take()
        cdef bint begun
        with nogil:
            begun = begin_growth(memory.growth, &self.params, &subtree.buffers, &subtree.root)
        if not begun:
            raise MemoryError
        memset(&subtree.root, 0, sizeof(OpenNode))  # which is the growth's now
        self.pieces[subtree.number] = self.finish(memory)

    cdef finish(self, GrowthMemory memory):
        """Go on with a growth that has begun to its end; None: it was cancelled."""
        cdef Growth* growth = memory.growth
        cdef bint more = True
        try:
            while more:
                if self.cancelled():
                    return None
                with nogil:
                    more = grow_for(growth, SLICE)
                if growth.has_left:
                    self.team.put(partial(self.grow_left, self.take_left(growth)))
            found = partial_tree_of(&growth.out, self.params.n_statistics)
        finally:
            with nogil:
                end_growth(growth)
        if self.params.draws:
            self.arena.take_back(memory)
        return found

    cdef LeftSubtree take_left(self, Growth* growth):
        """A node that a growth has left, and its rows."""
        cdef LeftSubtree subtree = LeftSubtree()
        subtree.root = growth.left
        growth.has_left = False
        subtree.number = growth.n_left
        if self.params.draws:
            subtree.buffers = self.rows
            subtree.buffers.rows = list_rows(growth.sampled.loader, &subtree.root)
            if subtree.buffers.rows == NULL:
                raise MemoryError
            subtree.buffers.owns_rows = True
            subtree.root.start = 0
        else:
            subtree.buffers = self.presorted[0]
            subtree.buffers.owns_rows = False
            subtree.buffers.shared = True
            subtree.buffers.number = NULL
        return subtree

    # -----------------------------------------------------------------------------------------
    # the root

    cdef Buffers* open_root(self, OpenNode* root) except NULL:
        """List the rows and sum them up, and sort the columns; returns where the rows are."""
        cdef Dataset dataset = self.dataset
        cdef Buffers* w = &self.rows
        cdef Buffers* moved
        cdef const uint32_t[::1] order = None
        cdef int64_t n = 0
        cdef int64_t i
        cdef uint32_t row
        if self.params.draws:
            if not ready_loader(&self.memory.growth.sampled, &self.params, &dataset.of_row,
                                dataset.n_live, dataset.n_rows):
                raise MemoryError
            w.rows = self.memory.growth.sampled.loader.codes
        else:
            w = self.presorted = new_buffers(dataset.n_rows)
            if w == NULL:
                raise MemoryError
        w.n_rows = dataset.n_rows
        w.of_row = dataset.of_row
        if dataset.order is not None:
            order = dataset.order
        with nogil:
            for i in range(dataset.n_rows):
                row = <uint32_t>i if order is None else order[i]
                w.rows[n] = row
                n += dataset.live[row]
        if self.params.criterion.n_classes > 0 and not claim_zeros(
                <void**>&root.class_totals, self.params.criterion.n_classes * sizeof(int64_t)):
            raise MemoryError
        if dataset.orders is not None:
            order = dataset.orders
            if not claim(<void**>&root.orders, order.nbytes):
                raise MemoryError
            memcpy(root.orders, &order[0], order.nbytes)
        with nogil:
            sum_rows(&w.of_row, &self.params.layout, w.rows, root.orders, n, &root.totals,
                     root.class_totals)
        describe(root, &self.params)
        if self.params.draws or root.is_leaf:
            return w
        self.sort_columns(root)
        if n <= MAX_NARROW:
            with nogil:  # others join, and other Python threads go on
                moved = relocate_in_chunks(&self.sharing, w, root, dataset.columns,
                                           &self.params.count_rule)
            self.presorted = moved
            free_buffers(w)
            if self.presorted == NULL:
                raise MemoryError
        return self.presorted

    cdef sort_columns(self, OpenNode* root):
        """The features of the root: entries in order, or none where a column is counted."""
        cdef Buffers* w = self.presorted
        cdef Sorting sorting
        cdef const Column* column
        cdef PresortedFeature* feature
        cdef int64_t at = 0
        cdef int64_t k, n, r
        cdef bint found
        if not claim(<void**>&root.features,
                     (self.params.limits.n_columns + 1) * sizeof(PresortedFeature)):
            raise MemoryError
        for r in range(self.params.limits.n_columns):
            column = self.dataset.columns + r
            if column.n_codes == 0:
                continue
            feature = root.features + root.n_features
            root.n_features += 1
            feature[0] = without_entries(column, r)
            feature.offset = -1
            if column.storage == STORED_SPARSE or self.is_sorted(column):
                feature.offset = at
                feature.length = <uint32_t>(column.stored if column.storage == STORED_SPARSE
                                            else root.totals.n)
                at += feature.length + 1    # what follows the last one is written to
        found = claim(&w.entries, (at + 1) * sizeof(uint64_t))
        sorting = Sorting(self.dataset.columns, &self.dataset.live[0], w, root.features,
                          <Chunk*>calloc(self.sharing.n_chunks, sizeof(Chunk)))
        found &= sorting.chunks != NULL
        if found:
            divide(sorting.chunks, self.sharing.n_chunks, root)
            with nogil:
                lead(self.sharing.jobs, sort_chunk, &sorting, self.sharing.n_chunks, False)
            for k in range(self.sharing.n_chunks):
                found &= sorting.chunks[k].first >= 0
        free(sorting.chunks)
        if not found:
            raise MemoryError
        n = 0
        for r in range(root.n_features):
            feature = root.features + r
            if feature.offset < 0:
                feature.offset = self.reserve_histogram(feature.column, root.totals.n)
            elif feature.length == 0:
                continue    # it is constant
            root.features[n] = feature[0]
            n += 1
        root.n_features = n

    cdef bint is_sorted(self, const Column* column) noexcept:
        """Whether a dense column has entries from the start: it is wide, or of so many cells that a
        histogram of them is out of proportion to the rows."""
        cdef int64_t cells = (column.n_codes + <int64_t>1) * self.params.layout.n_words
        return column.storage >= STORED_U32 or (self.dataset.n_live > MAX_NARROW and (
            cells > MOST_WORDS * self.dataset.n_live or self.params.count_rule.n_words == 0))

    cdef int64_t reserve_histogram(self, int32_t column, int64_t n) noexcept:
        """Where the histogram of a column stands in those of a node; -1: it is not kept."""
        cdef Counted* counted = &self.presorted.counted
        cdef int64_t cells = ((self.dataset.columns[column].n_codes + <int64_t>1)
                              * self.params.count_rule.n_words)
        cdef int64_t offset = counted.n_words
        if cells == 0 or cells > n // KEPT_SHARE:
            return -1
        counted.n_words += cells
        # smaller nodes move to other buffers
        counted.least_rows = max(counted.least_rows, max(cells, MAX_NARROW + <int64_t>1))
        return offset


cdef void sort_chunk(void* shared, int64_t k) noexcept nogil:
    """Sort the columns of a chunk that have entries."""
    cdef const Sorting* job = <Sorting*>shared
    cdef Chunk* chunk = job.chunks + k
    cdef uint64_t* entries = <uint64_t*>job.w.entries
    cdef uint64_t* scratch = <uint64_t*>malloc((job.w.n_rows + 1) * sizeof(uint64_t))
    cdef PresortedFeature* feature
    cdef int64_t r
    for r in range(chunk.first, chunk.last if scratch != NULL else chunk.first):
        feature = job.features + r
        if feature.offset >= 0:
            feature.length = <uint32_t>sorted_entries(
                job.columns + feature.column, job.live, entries + feature.offset, scratch,
                job.w.n_rows)
    if scratch == NULL:
        chunk.first = -1
    free(scratch)
