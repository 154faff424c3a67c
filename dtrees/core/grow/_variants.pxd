"""Subtrees under narrower limits; see _variants.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.grow._node_buffer cimport NodeBuffer

cdef enum:
    NUMBER_BITS = 40        # of a variant among those of a `Variants`

cdef struct Variants:
    # Subtrees of one thread under the same limits, in preorder, one behind the other.
    NodeBuffer records
    int64_t* first          # of each, its first record,
    int64_t* first_word     # and its first word
    int64_t n
    int64_t capacity
    int64_t number          # among all


cdef class VariantTrees:
    cdef Variants variants
    cdef readonly int64_t least_rows    # of their leaves

cdef int64_t begin_variant(Variants* variants) noexcept nogil
cdef int64_t copy_variant(NodeBuffer* out, const Variants* variants, int64_t variant,
                          int n_statistics) noexcept nogil
