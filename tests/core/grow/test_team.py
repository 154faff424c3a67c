"""Jobs and tasks of a team: each is done once, by whoever comes first, whether or not any helps."""

import threading
import time
from contextlib import contextmanager
from functools import partial

import pytest

from dtrees.core.grow._team import Team, times_done
from dtrees.parallel import LocalRunner
from dtrees.typing import serial

HELPERS = pytest.mark.parametrize("n_helpers", [0, 1, 3])
RUNNERS = pytest.mark.parametrize(
    "run", [serial, LocalRunner(2), LocalRunner(3)], ids=["serial", "two", "three"]
)


@contextmanager
def helped(n_helpers):
    """A team that this thread leads, and so many threads that help it."""
    team = Team()
    threads = [threading.Thread(target=team.help) for _ in range(n_helpers)]
    for thread in threads:
        thread.start()
    try:
        yield team
    finally:
        team.close()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)


class TestKernels:
    """Chunks that are kernels."""

    @HELPERS
    @pytest.mark.parametrize("n_chunks", [1, 2, 7, 1000])
    def test_each_chunk_is_done_once_for_each_job(self, n_helpers, n_chunks):
        with helped(n_helpers) as team:
            assert (times_done(team, n_chunks, 50) == 50).all()

    def test_jobs_of_different_sizes_follow_each_other(self):
        with helped(2) as team:
            assert [times_done(team, n, 3).sum() for n in (5, 1, 300, 2)] == [15, 3, 900, 6]

    def test_helpers_that_fell_asleep_are_woken(self):
        with helped(2) as team:
            for _ in range(3):
                time.sleep(0.02)  # nothing depends on how long they sleep
                assert times_done(team, 64, 10).sum() == 640

    def test_helpers_that_come_late_leave_at_once(self):
        """And without any of them, the leader does all chunks."""
        team = Team()
        team.close()
        late = threading.Thread(target=team.help, daemon=True)
        late.start()
        late.join(60)
        assert not late.is_alive()
        assert (times_done(team, 5, 3) == 3).all()


class TestShare:
    """Chunks that are calls of Python."""

    @HELPERS
    @pytest.mark.parametrize("n_chunks", [0, 1, 2, 50])
    def test_each_is_called_once_and_what_it_returns_is_in_order(self, n_helpers, n_chunks):
        called = []
        with helped(n_helpers) as team:
            found = team.share(lambda i: called.append(i) or i * i, n_chunks)
        assert sorted(called) == list(range(n_chunks))
        assert found == [i * i for i in range(n_chunks)]

    @HELPERS
    def test_the_first_error_is_raised_when_all_are_done(self, n_helpers):
        called = []

        def work(number):
            called.append(number)
            if number in (3, 5):
                raise KeyError(number)

        with helped(n_helpers) as team, pytest.raises(KeyError, match="3"):
            team.share(work, 8)
        assert sorted(called) == list(range(8))

    @HELPERS
    def test_calls_lead_jobs_themselves(self, n_helpers):
        """As many as there are threads at a time, and more of them within each other than fit."""
        with helped(n_helpers) as team:
            found = team.share(lambda i: times_done(team, 7 + i, 20).sum(), 12)
            assert found == [20 * (7 + i) for i in range(12)]

            def nested(depth, number):
                return 1 if depth == 0 else sum(team.share(partial(nested, depth - 1), 2))

            assert nested(8, 0) == 256

            def deep(depth, number):
                return (
                    0
                    if depth == 0 or number == 1
                    else 1 + team.share(partial(deep, depth - 1), 2)[0]
                )

            assert deep(100, 0) == 100

    def test_who_waits_for_calls_helps_with_kernels(self):
        """The last call goes on when the leader has done a kernel's chunk, or could have."""
        with helped(1) as team:
            begun = threading.Event()

            def work(number):
                if number == 0:
                    assert begun.wait(60)
                    return 0
                begun.set()
                return times_done(team, 2, 20_000).sum()

            assert team.share(work, 2) == [0, 40_000]

    def test_two_calls_at_a_time(self):
        both = threading.Barrier(2, timeout=60)
        with helped(1) as team:
            team.share(lambda number: both.wait(), 2)  # nobody comes here alone


class TestTasks:
    """Tasks that come up while others run."""

    @RUNNERS
    def test_what_is_left_runs_once(self, run):
        team, done = Team(), []

        def first():
            for i in range(50):
                team.put(partial(done.append, i))
            return "first"

        found = run([partial(team.lead, first), team.help, team.help])
        assert found == ["first", None, None]
        assert sorted(done) == list(range(50))
        assert team.n_waiting == 0

    @RUNNERS
    def test_a_job_comes_before_tasks_that_wait(self, run):
        team, later = Team(), []

        def first():
            team.put(partial(later.append, 1))
            return team.share(lambda i: i * i, 20)

        assert run([partial(team.lead, first), team.help])[0] == [i * i for i in range(20)]
        assert later == [1]

    def test_others_help_while_the_first_one_is_busy(self):
        team, has_helped = Team(), threading.Event()

        def first():
            team.put(has_helped.set)
            return has_helped.wait(60)

        assert LocalRunner(2)([partial(team.lead, first), team.help])[0]

    def test_a_task_that_fails_ends_all_of_them(self):
        team, is_there = Team(), threading.Event()

        def fails():
            is_there.set()
            raise KeyError("this one")

        def first():
            team.put(fails)
            assert is_there.wait(60)

        with pytest.raises(KeyError, match="this one"):
            LocalRunner(2)([partial(team.lead, first), team.help])
        team.put(lambda: pytest.fail("what comes after it is dropped"))
        team.help()

    def test_a_leader_that_fails_drops_what_waits(self):
        team = Team()

        def first():
            team.put(lambda: pytest.fail("what waits is dropped"))
            raise KeyError("this one")

        with pytest.raises(KeyError, match="this one"):
            team.lead(first)
        team.help()

    def test_tasks_that_wait_can_be_done_at_once(self):
        team, done = Team(), []
        for i in range(5):
            team.put(partial(done.append, i))
        team.do_tasks()
        team.do_tasks()
        assert done == list(range(5))
