"""Whether loops use registers of 256 bits; see _wide.pyx."""

cdef bint is_wide
