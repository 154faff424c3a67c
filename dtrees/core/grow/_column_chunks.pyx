"""Large nodes: the threads of a team share the columns of one node after the other.

The features of a node are divided into chunks of about equal numbers of entries::

    features        chunk 0 | chunk 1 | chunk 2 | ...      a thread each: searched
    search          best    | best    | best    | ...      the best of them is the node's split
    features        chunk 0 | chunk 1 | chunk 2 | ...      a thread each: partitioned

Between the two, one thread partitions the rows. Which thread has which chunk changes nothing.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memmove, memset

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport LEAF, PresortedFeature
from dtrees.core.grow._node_buffer cimport NodeBuffer, write_record
from dtrees.core.grow._node_step cimport SPLIT, grow_node
from dtrees.core.grow._team cimport lead
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport CountRule, TrainParameters
from dtrees.core.search._search cimport (
    Search, begin_node, free_scratch, free_search, is_better, new_search
)
from dtrees.core.stores._partition cimport ChildFeatures, partition_features
from dtrees.core.stores.presorted._buffers cimport (
    Buffers, Counted, Relocation, entries_of_features, free_buffers, relocate_features,
    relocate_rows
)
from dtrees.core.stores.presorted._histogram cimport (
    count_features, give_histograms, keeps_histogram, smaller_child
)
from dtrees.core.stores.presorted._presorted_store cimport (
    PresortedStore, give_back, reserve_features, search_columns
)

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
