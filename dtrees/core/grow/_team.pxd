"""Threads that share work; see _team.pyx."""
from libc.stdint cimport int64_t

cdef extern from "grow/team.h" nogil:
    ctypedef void (*Chunk)(void* job, int64_t number) noexcept nogil
    ctypedef struct Jobs:
        pass
    void begin_jobs(Jobs* jobs) noexcept nogil
    void end_jobs(Jobs* jobs) noexcept nogil
    void lead(Jobs* jobs, Chunk work, void* job, int64_t n_chunks, bint is_long) noexcept nogil
    bint help_with_jobs(Jobs* jobs) noexcept nogil
    void count_tasks(Jobs* jobs, int64_t more) noexcept nogil
    void close_jobs(Jobs* jobs) noexcept nogil
    void open_jobs(Jobs* jobs) noexcept nogil


cdef class Team:
    cdef Jobs jobs
    cdef object tasks       # a deque of callables without arguments
    cdef bint is_dismissed
