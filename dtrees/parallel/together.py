"""Several models that the members of an epoch grow at the same time: one message for all of them.

Each model is grown by a thread of its own, as if it were alone. Where it has to tell the other
members something, it waits. Once all models wait, what they tell goes in one message for each kind,
and all go on::

    model 0    count ── wait ─┐         ┌─ search ── wait ─┐
    model 1    count ── wait ─┼─ counts ┼─ search ── wait ─┼─ splits ...
    model 2    count ── wait ─┘         └─ search ── wait ─┘

The models ask for the same in all members, in the same order, so members agree on what is in a
message. No more models work at a time than there are threads.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtrees.typing import Members, T

Join = Callable[[np.ndarray, np.ndarray], None]
Question = tuple[np.ndarray, Join | Sequence[int]]  # numbers to be joined; or scattered, and ends


class Together:
    """The members of models that grow at the same time, of which `n_threads` work at a time."""

    def __init__(self, members: Members, n_threads: int) -> None:
        self.members = members
        self._slots = threading.Semaphore(n_threads)
        self._changed = threading.Condition()
        self._asked: dict[int, Question] = {}
        self._answers: dict[int, Any] = {}
        self._n_at_work = 0  # models, with those that wait
        self._room = np.empty(0, dtype=np.int64)
        self._error: BaseException | None = None

    def run(self, works: Mapping[int, Callable[[], T]]) -> dict[int, T]:
        """Do the work of some models, by number; raises what the first of them raises."""
        found: dict[int, T] = {}

        def do(number: int, work: Callable[[], T]) -> None:
            try:
                with self._slots:
                    found[number] = work()
            except BaseException as error:
                with self._changed:
                    self._error = self._error or error
            with self._changed:
                self._n_at_work -= 1
                self._answer_all()

        self._n_at_work, self._error = len(works), None
        self._asked.clear()
        threads = [threading.Thread(target=do, args=each, daemon=True) for each in works.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return {number: found[number] for number in works}

    def ask(self, number: int, question: Question) -> Any:
        """Tell the members what a model asks, together with the others; the answer."""
        with self._changed:
            if self._error is not None:
                raise self._error
            self._asked[number] = question
            self._answer_all()
            if number in self._asked:
                self._slots.release()
                try:
                    self._changed.wait_for(lambda: number not in self._asked or self._error)
                finally:
                    self._changed.release()
                    self._slots.acquire()  # which may take long
                    self._changed.acquire()
            if self._error is not None:
                raise self._error
            return self._answers.pop(number)

    def _answer_all(self) -> None:
        """Send what is asked, if all models wait; where one has failed, none waits any more."""
        if self._error is not None:
            self._changed.notify_all()
        if not self._asked or len(self._asked) < self._n_at_work or self._error is not None:
            return
        kinds: dict[Any, list[int]] = defaultdict(list)
        for number in sorted(self._asked):
            _, how = self._asked[number]
            kinds[how if callable(how) else None].append(number)
        try:
            # what was scattered before may be on its way until something is joined
            for join in sorted(kinds, key=lambda join: join is None):
                asked: list[Any] = [self._asked[number] for number in kinds[join]]
                answers = self._scatter(asked) if join is None else self._join(asked, join)
                self._answers.update(zip(kinds[join], answers, strict=True))
        except BaseException as error:
            self._error = error
        self._asked.clear()
        self._changed.notify_all()

    def _join(self, asked: Sequence[tuple[np.ndarray, Join]], join: Join) -> list[None]:
        joined = np.concatenate([own for own, _ in asked])
        self.members.join(joined, join)
        ends = np.cumsum([len(own) for own, _ in asked])
        for (own, _), found in zip(asked, np.split(joined, ends[:-1]), strict=True):
            own[...] = found
        return [None] * len(asked)

    def _scatter(self, asked: Sequence[tuple[np.ndarray, Sequence[int]]]) -> list[np.ndarray]:
        of_parts = [np.split(numbers, ends)[: len(ends)] for numbers, ends in asked]
        parts = [own for of_part in zip(*of_parts, strict=True) for own in of_part]
        ends = np.sum([ends for _, ends in asked], axis=0).tolist()
        if len(self._room) < ends[-1]:
            self._room = np.empty(ends[-1], dtype=np.int64)
        joined = np.concatenate(parts, out=self._room[: ends[-1]])
        found = self.members.scatter(joined, ends)
        rank = min(self.members.rank, len(ends) - 1)
        lengths = [len(of_part[rank]) if len(found) else 0 for of_part in of_parts]
        return np.split(found, np.cumsum(lengths)[:-1])


class OfModel(Members):
    """What a model knows of the members, as `dtrees.typing.Members`; `number` is its own."""

    def __init__(self, together: Together, number: int) -> None:
        self._together, self._number = together, number
        self.rank, self.n_parts = together.members.rank, together.members.n_parts

    def join(self, numbers: np.ndarray, join: Join) -> None:
        """As `Members.join`."""
        self._together.ask(self._number, (numbers, join))

    def scatter(self, numbers: np.ndarray, ends: Sequence[int]) -> np.ndarray:
        """As `Members.scatter`."""
        found: np.ndarray = self._together.ask(self._number, (numbers, ends))
        return found
