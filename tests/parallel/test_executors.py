"""Where graphs of collections are computed, and what becomes of their results."""

import dask
import dask.array as da
import dask.bag
import numpy as np
import pytest
from distributed import Client
from distributed.client import Future

from dtrees.exceptions import ClusterError
from dtrees.parallel.executors import LocalExecutor, computed, run_with_retries
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.tasks import Tasks
from tests.parallel.clusters import ours


def twice(executor):
    """Two rounds of tasks, the second on results of the first; and collections of two kinds."""
    first = executor.hold([dask.delayed(np.arange)(4), da.ones(3, chunks=2)])
    doubled = [dask.delayed(np.multiply)(executor.as_argument(held), 2) for held in first]
    second = executor.hold(doubled)
    return type(executor), [type(held) for held in first], executor.fetch([*second, first[1]])


def check_results(found):
    for array, expected in zip(found, ([0, 2, 4, 6], [2, 2, 2], [1, 1, 1]), strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_here(scheduler):
    with dask.config.set(scheduler=scheduler):
        kind, held, found = run_with_retries([da.ones(1)], twice)
    assert kind is LocalExecutor
    assert held == [np.ndarray, np.ndarray]
    check_results(found)


def test_on_a_cluster_results_stay_until_they_are_fetched(here):
    kind, held, found = run_with_retries([da.ones(1)], twice)
    assert kind is Tasks
    assert held == [Future, Future]
    check_results(found)
    assert ours(here) == []


def test_what_is_wanted_in_memory_comes_by_the_same_loop(here, monkeypatch):
    """So predictions that a score asks for are not waited for without end."""
    held, hold = [], Tasks.hold
    monkeypatch.setattr(Tasks, "hold", lambda *a: held.append(a[1]) or hold(*a))
    found = computed(da.arange(3, chunks=2), "between", dask.delayed(sum)([1, 2]))
    assert [len(tasks) for tasks in held] == [2]
    np.testing.assert_array_equal(found[0], [0, 1, 2])
    assert found[1:] == ["between", 3]
    assert ours(here) == []


def test_kinds_whose_schedulers_differ():
    """A bag is computed by processes, if Dask is asked for it alone."""
    numbers = dask.bag.from_sequence(range(3), npartitions=2)
    assert computed(da.ones(2), numbers)[1] == [0, 1, 2]


def test_the_scheduler_in_force_decides(here):
    with dask.config.set(scheduler="synchronous"):
        assert run_with_retries([da.ones(1)], twice)[0] is LocalExecutor


def test_only_workers_have_room(here):
    def room(executor):
        return executor.room()

    assert run_with_retries([da.ones(1)], room) is None  # a worker without a limit
    with dask.config.set(scheduler="synchronous"):
        assert run_with_retries([da.ones(1)], room) is None


@pytest.mark.parametrize("cluster", [False, True])
def test_what_a_task_raises_comes_through_and_nothing_is_left(cluster, here):
    def fail(executor):
        executor.hold([dask.delayed(divmod)(1, 0)])

    with (
        dask.config.set({} if cluster else {"scheduler": "synchronous"}),
        pytest.raises(ZeroDivisionError),
    ):
        run_with_retries([da.ones(1)], fail, FitStatistics())
    assert ours(here) == []


def test_a_closed_client(here):
    with Client(here.scheduler.address, set_as_default=False) as client:
        pass
    with client.as_current(), pytest.raises(ClusterError, match="client is closed"):
        run_with_retries([da.ones(1)], twice)
