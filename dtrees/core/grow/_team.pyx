"""A team of threads, which share the work of one fit.

A runner lends the threads (`dtrees.parallel.threads`). Each of them calls `Team.help`, and does
what is there until the team is closed. Any of them may lead a job, whose chunks are claimed by a
counter, by the leader as well::

    leader    post a job of 4 chunks | chunk 0 | chunk 2 | chunk 3 | wait for 1 |  go on
    helper    ......................... chunk 1 ............................... | next job

So a leader never waits for a helper that has not come, or does something else. It waits for claimed
chunks only, which are being worked on. A thread without work spins for some microseconds, then
gives way, then sleeps until it is woken.

Chunks are of two kinds. Those of `lead` are kernels, which take microseconds: a job of the columns
of a node comes thousands of times a second. Those of `Team.share` are calls of Python, which take
milliseconds or more, and lead jobs of kernels. A leader whose calls others do helps with kernels
meanwhile.

Tasks are work that nobody waits for, such as subtrees: `Team.put` leaves them to whoever comes
first.

Chunks of a job write to different places, and the leader sees what they wrote when its call
returns. Who worked on a chunk changes nothing. A team has no threads of its own and lives as long
as one growth, so a forked process inherits none that it would wait for.
"""
from collections import deque

import numpy as np

from libc.stdint cimport int64_t


cdef class Team:
    """Work that threads share, and its members: threads join by `help`, until it is closed."""

    def __cinit__(self):
        begin_jobs(&self.jobs)
        self.tasks = deque()

    def __dealloc__(self):
        end_jobs(&self.jobs)

    def help(self):
        """Work on chunks and tasks until the team is closed and no task is left.

        Raises
        ------
        BaseException
            That of a task that this thread did. What waits is dropped, and the team closed.
        """
        cdef bint has_task = True
        while has_task:
            with nogil:
                has_task = help_with_jobs(&self.jobs)
            if has_task:
                self.do_next()

    def lead(self, task):
        """Do a task, close the team, and do what the task has left; returns what the task does.

        An error of a task that this thread did is raised. What waits is dropped then.
        """
        try:
            found = task()
        except BaseException:
            self.dismiss()
            raise
        self.close()
        self.help()
        return found

    def put(self, task):
        """Leave a task, a callable without arguments, to whoever helps first."""
        if not self.is_dismissed:
            self.tasks.append(task)
            count_tasks(&self.jobs, 1)

    def do_tasks(self):
        """Do the tasks that wait."""
        while self.tasks:
            self.do_next()

    def do_next(self):
        """Do the next task, if there is one."""
        try:
            task = self.tasks.popleft()
        except IndexError:
            return  # another thread was faster
        count_tasks(&self.jobs, -1)
        try:
            task()
        except BaseException:
            self.dismiss()
            raise

    @property
    def n_waiting(self):
        """Tasks that nobody has begun."""
        return len(self.tasks)

    def close(self):
        """Let all helpers go when no task is left; those who come later leave at once."""
        close_jobs(&self.jobs)

    def open(self):
        """Let threads join again, once all have left."""
        self.is_dismissed = False
        open_jobs(&self.jobs)

    def dismiss(self):
        """Close the team, and drop the tasks that wait and that come."""
        self.is_dismissed = True
        while self.tasks:
            try:
                self.tasks.popleft()
            except IndexError:
                break
            count_tasks(&self.jobs, -1)
        self.close()

    def share(self, work, int64_t n_chunks):
        """Lead a job whose chunks are calls of Python; returns what these have returned.

        `work` is called once for each of at most 2**20 - 1 chunks, on any thread of the team, in
        the order of their numbers. Raises what the first chunk of those that failed has raised; the
        others are done.
        """
        cdef list found = [None] * n_chunks
        cdef list errors = []
        cdef tuple job = (work, found, errors)
        cdef void* shared = <void*>job
        with nogil:
            lead(&self.jobs, call_chunk, shared, n_chunks, True)
        if errors:
            raise min(errors, key=number_of)[1]
        return found


cdef void call_chunk(void* job, int64_t number) noexcept with gil:
    work, found, errors = <tuple>job
    try:
        found[number] = work(number)
    except BaseException as error:
        errors.append((number, error))


def number_of(numbered):
    """Of a chunk that failed."""
    return numbered[0]


cdef void count_chunk(void* job, int64_t number) noexcept nogil:
    (<int64_t*>job)[number] += 1


def times_done(Team team not None, int64_t n_chunks, int64_t n_jobs):
    """How often each chunk was done, over some jobs of a team; int64 (n_chunks,). For tests."""
    found = np.zeros(n_chunks, dtype=np.int64)
    cdef int64_t[::1] counts = found
    cdef int64_t _job
    with nogil:
        for _job in range(n_jobs):
            lead(&team.jobs, count_chunk, &counts[0], n_chunks, False)
    return found
