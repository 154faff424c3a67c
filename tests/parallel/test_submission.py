"""How tasks are submitted, and what they do on a worker."""

import gc
import multiprocessing
from concurrent.futures import CancelledError
from types import SimpleNamespace

import dask
import distributed
import pytest
from distributed import Client

import dtrees
from dtrees.exceptions import ClusterError
from dtrees.parallel.submission import (
    Call,
    LostResultsError,
    Submitter,
    TaskCancelled,
    TaskRunner,
    identity,
    run_call,
)
from tests.parallel.clusters import connect, ours


def where(number, *_):
    return number, distributed.get_worker().address


def test_tasks_of_several_kinds_in_their_order():
    with connect(2, 1, False) as cluster, Client(cluster) as client:
        submitter = Submitter(client)
        submitter.begin()
        a, b = sorted(submitter.workers())
        sent = submitter.send("a-value", [7])
        calls = [
            Call("where", where, (0, [sent]), (b,)),
            Call("max", max, (sent,)),
            Call("where", where, (2, sent), (a,)),
            Call("where", where, (3, sent), (b,)),
        ]
        futures = submitter.submit(calls)
        assert client.gather(futures) == [(0, b), 7, (2, a), (3, b)]
        assert [key[0].split("-")[0] for key in (each.key for each in futures)] == [
            "where",
            "max",
            "where",
            "where",
        ]
        assert [set(at) for at in submitter.holders(futures[:1])] == [{b}]
        submitter.end()
        assert ours(client) == []


def test_what_a_report_always_has(here):
    submitter = Submitter(here)
    submitter.begin()
    assert submitter.stats.counts == {"lost_workers": 0, "retries": 0, "restarts": 0}


def test_values_are_sent_anew(here):
    submitter = Submitter(here)
    value = ["large"]
    sent = submitter.send("a-value", value)
    assert sent.result() == value
    calls = [(3, Call("t", max, (sent, 1, [2]))), (4, Call("t", max, (sent,)))]
    same = submitter.with_values_anew(calls, {}, frozenset())  # it can be had
    assert [call.arguments for _, call in same] == [call.arguments for _, call in calls]
    hanging = frozenset(here.nthreads())
    (found, again) = submitter.with_values_anew(calls, {}, hanging)
    assert (found[0], again[0]) == (3, 4)
    anew, *rest = found[1].arguments
    assert again[1].arguments == (anew,)
    assert rest == [1, [2]]
    assert anew.key != sent.key
    assert anew.result() == value
    submitter.end()
    assert ours(here) == []


def test_arguments_that_are_lost(here, monkeypatch):
    def lost(*_, **__):
        raise CancelledError

    monkeypatch.setattr(here, "map", lost)
    with pytest.raises(LostResultsError, match="lost with their workers"):
        Submitter(here).submit([Call("t", max, (1, 2))])


def test_names():
    assert str(Call("grow", max, ())) == "a task 'grow'"
    assert str(Call("grow", max, (), about="trees 0 to 4")) == "a task 'grow' (trees 0 to 4)"


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
