"""Criteria that are functions of both sides; see _side_scores.pyx."""
from dtrees.core.search._criterion cimport ScoreOfSides


cdef class SideScore:
    cdef ScoreOfSides function
    cdef void* context      # what it is handed
    cdef object score       # of the user
    cdef object error       # that it has raised
