r"""What nodes are under narrower limits: subtrees that grow while their entries are at hand.

A search grows trees of ascending `min_samples_leaf`, and each goes down the one before
(`_known_tree`). Where its limits do not allow a test, the subtree has to grow; but then the rows of
the node have to be found and sorted again. So the first growth that searches a node grows it for
all later limits::

    leaves of 1             leaves of 5             leaves of 20
      a                       a                       a
     / \                     / \                     / \
    b   c  (30 | 3)         b   c' (28 | 5)         b   c'' (a leaf)

    c is copied, with its entries, before its rows are parted. When c' has grown from the copy, the
    record of c names it, as that of a node in c' may name a variant of its own.

Trees of leaves of 5 are put together of what stands and of variants; no row of these is looked at.
Variants of one limit stand one behind the other, as those that begin while one grows are of
narrower limits. What is not allowed in nodes that several sets share is searched when it is asked
for.
"""
from itertools import count

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from dtrees.core.data._memory cimport resize
from dtrees.core.grow._node_buffer cimport (
    Record, copy_words, free_node_buffer, note_variant, reserve_records
)

_numbers = count()


cdef class VariantTrees:
    """Variants that a thread grows.

    Parameters
    ----------
    least_rows : int
        Of their leaves.

    Attributes
    ----------
    number : int
        No others of this process have it. A record names a variant by it and by the variant's own:
        ``number << NUMBER_BITS | own``.
    """

    def __cinit__(self, int64_t least_rows):
        self.least_rows = least_rows
        self.variants.number = next(_numbers)

    def __dealloc__(self):
        free_node_buffer(&self.variants.records)
        free(self.variants.first)
        free(self.variants.first_word)

    @property
    def number(self):
        return self.variants.number

    def __len__(self):
        return self.variants.n


cdef int64_t begin_variant(Variants* variants) noexcept nogil:
    """Begin one, behind the others; returns what a record calls it, -1 without memory."""
    cdef int64_t i = variants.n
    cdef int64_t capacity = 2 * i + 64
    if i == variants.capacity:
        if not (resize(<void**>&variants.first, capacity * sizeof(int64_t))
                and resize(<void**>&variants.first_word, capacity * sizeof(int64_t))):
            variants.records.out_of_memory = True
            return -1
        variants.capacity = capacity
    variants.first[i] = variants.records.count
    variants.first_word[i] = variants.records.n_words
    variants.n += 1
    return variants.number << NUMBER_BITS | i


cdef int64_t copy_variant(NodeBuffer* out, const Variants* variants, int64_t variant,
                          int n_statistics) noexcept nogil:
    """Append a variant, whose first record gets no parent; returns how many nodes it has, 0 without
    memory. O(nodes).

    variant : as a record names it.
    """
    cdef const NodeBuffer* known = &variants.records
    cdef int64_t number = variant & ((<int64_t>1 << NUMBER_BITS) - 1)
    cdef bint is_last = number + 1 == variants.n
    cdef int64_t first = variants.first[number]
    cdef int64_t end = known.count if is_last else variants.first[number + 1]
    cdef int64_t word = variants.first_word[number]
    cdef int64_t n_words = (known.n_words if is_last else variants.first_word[number + 1]) - word
    cdef int64_t at = out.count
    cdef int64_t words, i
    cdef Record* record
    if not reserve_records(out, end - first, n_statistics):
        return 0
    words = 0 if n_words == 0 else copy_words(out, known.words + word, n_words)
    if words < 0:
        return 0
    memcpy(out.nodes + at, known.nodes + first, (end - first) * sizeof(Record))
    memcpy(out.statistics + at * n_statistics, known.statistics + first * n_statistics,
           (end - first) * n_statistics * sizeof(int64_t))
    out.count += end - first
    for i in range(at, out.count):
        record = out.nodes + i
        if record.left >= 0:
            record.left += at - first
            record.right += at - first
        if record.subset >= 0:
            record.subset += words - word
    for i in range(first, min(end, known.n_noted)):
        note_variant(out, at + i - first, known.variant[i])
    return end - first
