"""Threads that work on one tree together; see _team.pyx."""
from libc.stdint cimport int64_t, uint64_t

cdef extern from "grow/team.h" nogil:
    ctypedef void (*Chunk)(void* job, int64_t number) noexcept nogil
    ctypedef struct Team:
        uint64_t ticket
        int64_t done
        int64_t closed
    void lead(Team* team, Chunk work, void* job, int64_t n_chunks) noexcept nogil
    void help "help"(Team* team) noexcept nogil
    void close_team(Team* team) noexcept nogil


cdef class Helpers:
    cdef Team team
