"""Whether loops use registers of 256 bits; see _cpu.pyx."""

cdef bint is_wide
cdef bint has_pext
