"""Chunks of jobs: each is done once, by whoever claims it, whether or not helpers come."""

import threading
import time

import pytest

from dtrees.core.grow._team import Helpers, times_done


def with_helpers(n, work):
    team = Helpers()
    threads = [threading.Thread(target=team.help) for _ in range(n)]
    for thread in threads:
        thread.start()
    try:
        return work(team)
    finally:
        team.close()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("n_helpers", [0, 1, 3])
@pytest.mark.parametrize("n_chunks", [1, 2, 7, 1000])
def test_each_chunk_is_done_once_for_each_job(n_helpers, n_chunks):
    done = with_helpers(n_helpers, lambda team: times_done(team, n_chunks, 50))
    assert (done == 50).all()


def test_jobs_of_different_sizes_follow_each_other():
    def work(team):
        return [times_done(team, n, 3).sum() for n in (5, 1, 300, 2)]

    assert with_helpers(2, work) == [15, 3, 900, 6]


def test_helpers_that_dozed_off_come_back():
    def work(team):
        time.sleep(0.05)  # nothing depends on how long they sleep
        return times_done(team, 64, 10).sum()

    assert with_helpers(2, work) == 640


def test_helpers_that_come_late_leave_at_once():
    """And without any of them, the leader does all chunks."""
    team = Helpers()
    team.close()
    late = threading.Thread(target=team.help, daemon=True)
    late.start()
    late.join(60)
    assert not late.is_alive()
    assert (times_done(team, 5, 3) == 3).all()


class TestShare:
    """Chunks that are calls of Python."""

    @pytest.mark.parametrize("n_helpers", [0, 2])
    @pytest.mark.parametrize("n_chunks", [1, 2, 50])
    def test_each_is_called_once(self, n_helpers, n_chunks):
        called = []
        with_helpers(n_helpers, lambda team: team.share(called.append, n_chunks))
        assert sorted(called) == list(range(n_chunks))

    @pytest.mark.parametrize("n_helpers", [0, 2])
    def test_the_first_error_is_raised_when_all_are_done(self, n_helpers):
        called = []

        def work(number):
            called.append(number)
            if number in (3, 5):
                raise KeyError(number)

        with pytest.raises(KeyError, match="3"):
            with_helpers(n_helpers, lambda team: team.share(work, 8))
        assert sorted(called) == list(range(8))
