"""When workers are asked whether they are there, and which tasks go to others as well."""

import time

import dask
import pytest

from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel import liveness
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.liveness import Liveness, copies_of
from dtrees.parallel.submission import Call


class Task:
    """What stands for a future."""

    def __init__(self, key):
        self.key = key


def copied(doing, done=(), answering="ab", is_stuck=False, held=()):
    """Workers by place, of the copies of tasks 0, 1, ... that are done on workers of one letter."""
    keys = sorted({*doing, *done})
    call = Call("t", print, (), held=frozenset(held))
    pending = {Task(key): (place, call) for place, key in enumerate(keys)}
    of = [{key: frozenset(at) for key, at in dict(each).items()} for each in (doing, done)]
    found = copies_of(pending, *of, frozenset(answering), is_stuck=is_stuck)
    return {place: "".join(each.workers) for place, each in found}


class TestCopies:
    def test_slow_workers_are_waited_for(self):
        assert copied({"x": "a", "y": "b"}) == {}

    def test_a_worker_without_work_gets_what_others_do(self):
        assert copied({"x": "a"}) == {0: "b"}
        assert copied({"x": "a"}, answering="abc") == {0: "bc"}

    def test_who_had_it_does_not_get_it_again(self):
        assert copied({"x": "a"}, answering="abc", held="b") == {0: "c"}
        assert copied({"x": "a"}, held="b") == {}

    def test_what_waits_for_a_worker_is_not_copied(self):
        assert copied({"x": "a", "y": ""}, answering="ab") == {0: "b"}

    def test_a_worker_that_hangs(self):
        """It is `c`, which is not among those that answer."""
        assert copied({"x": "c", "y": "a"}, is_stuck=True) == {0: "ab", 1: "b"}
        assert copied({"x": "c", "y": ""}, is_stuck=True) == {0: "ab", 1: "ab"}

    def test_results_that_a_worker_has(self):
        assert copied({}, {"x": "a", "y": "c"}, is_stuck=True) == {1: "ab"}

    def test_one_worker_that_is_left_gets_it_again(self):
        assert copied({"x": "a"}, answering="a", is_stuck=True) == {0: "a"}


class TestPatience:
    @pytest.mark.parametrize(
        ("longest", "expected"), [(None, 30.0), (0.1, 5.0), (2.0, 8.0), (60.0, 30.0)]
    )
    def test_follows_from_the_longest_wait(self, longest, expected):
        found = Liveness(None, FitStatistics())
        if longest is not None:
            found.hear(0.01)
            found.hear(longest)
            found.begin()
        assert found.patience == expected

    def test_the_user_says_how_much_at_most(self):
        with dask.config.set({"dtrees.worker-patience": "2s"}):
            assert Liveness(None, FitStatistics()).patience == 2.0

    def test_nobody_answers(self, monkeypatch):
        asked = []

        def nobody(client):
            asked.append(time.monotonic())
            raise NoAnswerError("nobody")

        monkeypatch.setattr(liveness, "check_versions", nobody)
        with dask.config.set({"dtrees.worker-patience": "20ms"}):
            found = Liveness(None, FitStatistics())
            assert not found.is_over
            for _ in range(liveness.SILENT_ROUNDS - 1):
                time.sleep(0.03)
                assert found.is_over
                assert found.ask() is None
            time.sleep(0.03)
            with pytest.raises(WorkerLostError, match=r"for 4 times 0\.02 seconds"):
                found.ask()
        assert len(asked) == liveness.SILENT_ROUNDS
