"""What a task does on a worker, whatever its work is."""

import gc
import multiprocessing
from concurrent.futures import CancelledError
from types import SimpleNamespace

import dask
import distributed
import pytest

import dtrees
from dtrees.exceptions import ClusterError
from dtrees.parallel.calls import TaskCancelled, TaskRunner, identity, run_call


def test_run_call(here):
    assert run_call(dtrees.__version__, max, 3, 5) == 5
    with pytest.raises(ClusterError, match=r"has dtrees .*, the client has 9\.9"):
        here.submit(run_call, "9.9", max, 3, 5).result()


@pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(), reason="no process can be forked"
)
def test_what_workers_of_tests_are_forked_with_is_never_garbage(processes):
    assert min(processes.run(gc.get_freeze_count).values()) > 100_000
    assert not processes.run(dask.config.get, "distributed.worker.profile.enabled").popitem()[1]


def test_who_is_not_waited_for_gives_the_task_back():
    def give_up():
        raise CancelledError

    with pytest.raises(distributed.Reschedule):
        run_call(dtrees.__version__, give_up)


def test_identity():
    thing = object()
    assert identity(thing) is thing


def test_work_of_a_task(here):
    def work():
        run = TaskRunner()
        return run([lambda: 1, lambda: 2]), run.cancelled.is_set()

    assert here.submit(work).result() == ([1, 2], False)


@pytest.mark.parametrize(("state", "expected"), [("executing", False), ("cancelled", True)])
def test_forgotten(state, expected):
    tasks = {"x": SimpleNamespace(state=state)}
    assert TaskCancelled(SimpleNamespace(tasks=tasks), "x").is_set() is expected
    assert TaskCancelled(SimpleNamespace(tasks=tasks), "y").is_set()
