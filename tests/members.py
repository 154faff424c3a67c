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

    def __init__(self, meeting, rank, name=()):
        self.meeting, self.rank, self.name = meeting, rank, name
        self.n_calls = 0

    def of_tree(self, k):
        return self.__dict__.setdefault(k, Member(self.meeting, self.rank, (*self.name, k)))

    def sum(self, numbers):
        assert numbers.dtype == np.int64
        numbers[:] = np.sum(self._exchange(numbers), axis=0)

    def largest(self, numbers):
        assert numbers.dtype == np.float64
        numbers[:] = np.max(self._exchange(numbers), axis=0)

    def _exchange(self, numbers):
        self.n_calls += 1
        barrier, told = self.meeting.board((self.name, self.n_calls))
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
