"""Members of a growth on threads of this process, which meet at barriers."""

import threading

import numpy as np


class Meeting:
    """Where `n` members meet; each of their `Members` is one of theirs."""

    def __init__(self, n):
        self.n = n
        self.lock = threading.Lock()
        self.boards = {}

    def board(self, name):
        """What members have told each other under a name, and the barrier for it."""
        with self.lock:
            return self.boards.setdefault(name, (threading.Barrier(self.n, timeout=60), {}))

    def end(self):
        """Let nobody wait any more."""
        with self.lock:
            for barrier, _ in self.boards.values():
                barrier.abort()

    def members(self):
        """The side of each member."""
        return [Member(self, rank) for rank in range(self.n)]


class Member:
    """One side of a meeting, as `dtrees.typing.Members`."""

    def __init__(self, meeting, rank):
        self.meeting, self.rank = meeting, rank
        self.n_parts = max(1, meeting.n - 1)
        self.n_calls = 0

    def sum(self, numbers):
        assert numbers.dtype == np.int64
        numbers[:] = np.sum(self._exchange(numbers), axis=0)

    def largest(self, numbers):
        assert numbers.dtype == np.float64
        numbers[:] = np.max(self._exchange(numbers), axis=0)

    def join(self, numbers, join):
        for rank, other in enumerate(self._exchange(numbers)):
            if rank != self.rank:
                join(numbers, other)

    def scatter(self, numbers, ends):
        assert len(ends) == self.n_parts
        assert ends[-1] == len(numbers)
        first, last = [0, *ends, *[ends[-1]] * self.meeting.n][self.rank :][:2]
        found = np.sum(self._exchange(numbers), axis=0)[first:last]
        numbers[:] = -1
        return found

    def _exchange(self, numbers):
        self.n_calls += 1
        barrier, told = self.meeting.board(self.n_calls)
        told[self.rank] = numbers.copy()
        barrier.wait()
        return [told[rank] for rank in range(self.meeting.n)]


def together(works):
    """What some functions return that are called at the same time, each with its `Member`."""
    meeting = Meeting(len(works))
    found, errors = [None] * len(works), []

    def do(rank, member):
        try:
            found[rank] = works[rank](member)
        except BaseException as error:
            errors.append(error)
            meeting.end()

    threads = [
        threading.Thread(target=do, args=(rank, member), daemon=True)
        for rank, member in enumerate(meeting.members())
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found
