"""Threads that work on one tree together, many thousand times a second.

A node of a boosted tree is some ten microseconds of work, and a task of the scheduler costs
hundreds. So a fit asks the scheduler once for a task per thread. One of them leads; the others help
as long as the fit lasts::

    leader    post a job of 4 chunks | chunk 0 | chunk 2 | chunk 3 | wait for 1 |  go on
    helper    ......................... chunk 1 ............................... | next job

A job's chunks are claimed by a counter, by the leader as well. So the leader never waits for a
helper that has not come, or does something else; it waits for claimed chunks only, which are being
worked on. A helper without work spins for some microseconds, then gives way, then dozes.

A chunk may call Python (`Helpers.share`): whole trees are, which hold the interpreter for the least
part of their time.

Chunks of a job write to different places, and the leader sees what they wrote when its call
returns. Who worked on a chunk changes nothing.
"""
import numpy as np

from libc.stdint cimport int64_t


cdef class Helpers:
    """A team without members: threads join by `help`, until it is closed."""

    def help(self):
        """Work on chunks of the leader's jobs until the team is closed."""
        with nogil:
            help(&self.team)

    def close(self):
        """Send all helpers away; those who come later leave at once."""
        close_team(&self.team)

    def share(self, work, int64_t n_chunks):
        """Lead a job whose chunks are calls of Python.

        Parameters
        ----------
        work : callable (number) -> None
            Called once for each chunk, on any thread of the team, in the order of their numbers.
        n_chunks : int
            At most 2**20 - 1.

        Raises
        ------
        BaseException
            What the first chunk of those that failed has raised; the others are done.
        """
        cdef list errors = []
        cdef tuple both = (work, errors)
        cdef void* job = <void*>both
        with nogil:
            lead(&self.team, call_chunk, job, n_chunks)
        if errors:
            raise min(errors, key=number_of)[1]


cdef void call_chunk(void* job, int64_t number) noexcept with gil:
    work, errors = <tuple>job
    try:
        work(number)
    except BaseException as error:
        errors.append((number, error))


def number_of(numbered):
    """Of a chunk that failed."""
    return numbered[0]


cdef void count_chunk(void* job, int64_t number) noexcept nogil:
    (<int64_t*>job)[number] += 1


def times_done(Helpers team not None, int64_t n_chunks, int64_t n_jobs):
    """How often each chunk was done, over some jobs of a team; int64 (n_chunks,). For tests."""
    found = np.zeros(n_chunks, dtype=np.int64)
    cdef int64_t[::1] counts = found
    cdef int64_t _job
    with nogil:
        for _job in range(n_jobs):
            lead(&team.team, count_chunk, &counts[0], n_chunks)
    return found
