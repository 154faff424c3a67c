"""Tasks of a client: how they are submitted, what comes, in which order, what is done again."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from concurrent.futures import CancelledError
from contextlib import closing
from itertools import islice
from types import SimpleNamespace

import dask
import distributed
import pytest
from distributed import Client, KilledWorker

import dtrees
from dtrees.exceptions import ClusterError, SchedulerLostError, WorkerLostError
from dtrees.parallel import tasks
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.tasks import (
    ATTEMPTS,
    ENDED,
    RESTARTS,
    Call,
    Faults,
    LostResultsError,
    Missed,
    TaskCancelled,
    TaskRunner,
    Tasks,
    run_call,
)
from tests.parallel.clusters import connect, noted, ours
from tests.parallel.faults import pids
from tests.parallel.test_client import Standing
from tests.parallel.test_collections import allow_failures


@pytest.fixture
def loop(here):
    found = Tasks(here)
    found.begin()
    yield found
    found.end()
    assert ours(here) == []


class State:
    """What tasks in this process see."""

    seen: list
    began: threading.Event
    go_on: threading.Event


def slow(_):
    """The first one waits."""
    State.seen.append(1)
    if len(State.seen) == 1:
        State.began.set()
        State.go_on.wait(30)
    return len(State.seen)


def square(number):
    return number * number


class TestResults:
    @pytest.mark.parametrize("together", [False, True])
    def test_each_once(self, together, loop):
        calls = (Call("square", square, (i,)) for i in range(20))
        found = list(loop.results(calls, together=together))
        assert sorted(found) == [(i, i * i) for i in range(20)]

    def test_the_first_of_two_copies_counts(self, loop):
        State.seen, State.began, State.go_on = [], threading.Event(), threading.Event()
        await_ = loop._await

        def copying(pending, submit, heed):
            if len(pending) == 1:
                assert State.began.wait(30)
                submit([next(iter(pending.values()))])
                threading.Timer(0.2, State.go_on.set).start()
            return await_(pending, submit, heed)

        loop._await = copying
        assert [place for place, _ in loop.results([Call("slow", slow, (0,))])] == [0]

    def test_an_error(self, loop):
        with pytest.raises(ZeroDivisionError):
            list(loop.results([Call("divide", divmod, (1, 0))]))


def blamed(number):
    """Blamed for deaths, `number` times."""
    State.seen.append(number)
    if len(State.seen) <= number:
        raise KilledWorker(distributed.get_worker().get_current_task(), Dead(), 3)
    return len(State.seen)


class Dead:
    """A worker, as far as messages go."""

    address = name = "dead"


def losing_all_but(loop, n):
    """Let results be lost, but for some that come first."""
    results = loop.results

    def some(calls, numbers):
        with closing(results(calls, numbers=numbers)) as found:
            yield from islice(found, n)
        if len(numbers) > n:
            raise LostResultsError("lost")

    loop.results = some


class TestDoneAgain:
    def test_a_task_that_is_blamed(self, loop):
        State.seen = []
        calls = [Call("blamed", blamed, (3,))]
        assert list(loop.results(calls)) == [(0, 4)]
        assert loop.stats.counts["retries"] == 3

    def test_too_often(self, loop):
        State.seen = []
        calls = [Call("blamed", blamed, (9,), about="it")]
        with pytest.raises(WorkerLostError, match=r"died 4 times over in a task 'blamed' \(it\)"):
            list(loop.results(calls))

    def test_those_that_are_left(self, loop):
        """What has come is not done again."""
        rounds, come = [], []

        def calls(left):
            rounds.append(set(left))
            return [Call("square", square, (number,)) for number in left]

        remade = []
        losing_all_but(loop, 2)
        for number, found in loop.each(4, calls, lambda: remade.append(1)):
            assert found == number * number
            come.append(number)
        assert rounds == [{0, 1, 2, 3}, {0, 1, 2, 3} - set(come[:2])]
        assert sorted(come) == [0, 1, 2, 3]
        assert remade == [1]
        assert loop.stats.counts["restarts"] == 1

    def test_a_result_between_begins_to_count_anew(self, loop):
        def calls(left):
            return [Call("square", square, (number,)) for number in left]

        n = 3 * RESTARTS
        losing_all_but(loop, 1)
        assert len(dict(loop.each(n, calls))) == n
        assert loop.stats.counts["restarts"] >= n - 1

    def test_never_a_result(self, loop):
        remade = []

        def work():
            raise LostResultsError("for good")

        with pytest.raises(WorkerLostError, match=r"lost its data 5 times, .* for good"):
            loop.run(work, lambda: remade.append(1))
        assert len(remade) == RESTARTS

    def test_a_result_that_cannot_be_fetched_at_first(self, loop, here, monkeypatch):
        gather, n_asked = tasks.results_of, []

        def fail(*arguments, **options):
            n_asked.append(1)
            if len(n_asked) < ATTEMPTS:
                raise OSError("no way there")
            return gather(*arguments, **options)

        monkeypatch.setattr(tasks, "results_of", fail)
        assert list(loop.results([Call("square", square, (3,))])) == [(0, 9)]
        assert len(n_asked) == ATTEMPTS

    @pytest.mark.parametrize("together", [False, True])
    def test_one_of_several_that_cannot_be_fetched(self, together, loop, here, monkeypatch):
        """What comes of the others is thrown away each time, and does not count."""
        gather = tasks.results_of

        def without_16(*arguments, **options):
            found = gather(*arguments, **options)
            return {place: value for place, value in found.items() if value != 16}

        monkeypatch.setattr(tasks, "results_of", without_16)
        calls = [Call("square", square, (i,), about=f"of {i}") for i in range(6)]
        told = r"The result of a task 'square' \(of 4\) could not be fetched 4 times over"
        with pytest.raises(WorkerLostError, match=told):
            loop.run(lambda: list(loop.results(calls, together=together)))
        assert loop.stats.counts["retries"] == ATTEMPTS - 1

    def test_one_that_has_ended_before_it_is_missed(self, loop, monkeypatch):
        """Results are waited for together: it is not waited for any more, and done again."""
        await_, told = loop._await, [ENDED, Missed(OSError("no way there"))]

        def scripted(pending, submit, heed):
            return [(next(iter(pending)), told.pop(0))] if told else await_(pending, submit, heed)

        monkeypatch.setattr(loop, "_await", scripted)
        calls = [Call("square", square, (i,)) for i in range(2)]
        assert dict(loop.results(calls, together=True)) == {0: 0, 1: 1}
        assert loop.stats.counts["retries"] == 1


def knows_any(dask_scheduler, keys):
    return any(key in dask_scheduler.tasks for key in keys)


@pytest.fixture
def cancelled_once(here, monkeypatch):
    """Results that are fetched for the first time are cancelled while they are on their way."""
    gather, cancelled = tasks.results_of, []

    def cancel_first(client, futures):
        if not cancelled:
            cancelled.extend(futures)
            here.cancel(cancelled, force=True)
            while here.run_on_scheduler(knows_any, keys=[future.key for future in futures]):
                time.sleep(0.01)
        return gather(client, futures)

    monkeypatch.setattr(tasks, "results_of", cancel_first)
    return cancelled


class TestCancelledOnTheWay:
    """`results_of` has None for them, which is no result."""

    @pytest.mark.parametrize("together", [False, True])
    def test_tasks(self, together, loop, cancelled_once):
        calls = [Call("square", square, (i,)) for i in range(6)]
        found = loop.run(lambda: dict(loop.results(calls, together=together)))
        assert found == {i: i * i for i in range(6)}
        assert cancelled_once
        assert loop.stats.counts["restarts"] == 1

    def test_parts_of_graphs(self, loop, cancelled_once):
        def work():
            return loop.fetch(loop.hold([dask.delayed(square)(2)]))

        assert loop.run(work) == [4]
        assert cancelled_once

    def test_a_task_may_return_none(self, loop):
        assert list(loop.results([Call("print", print, ("",))])) == [(0, None)]


class TestFuturesOfGraphs:
    def test_results_that_cannot_be_fetched(self, loop, here, monkeypatch):
        def fail(*_, **__):
            raise OSError("no way there")

        def work():
            return loop.fetch(loop.hold([dask.delayed(square)(2)]))

        monkeypatch.setattr(tasks, "results_of", fail)
        told = r"5 times, .* Results cannot be fetched: OSError\('no way there'\)"
        with pytest.raises(WorkerLostError, match=told):
            loop.run(work)
        assert loop.stats.counts["restarts"] == RESTARTS

    def test_in_their_order(self, loop, here):
        futures = here.map(square, range(5))
        loop.wait(futures)
        assert all(future.status == "finished" for future in futures)
        assert loop.fetch([*futures, futures[0]]) == [0, 1, 4, 9, 16, 0]
        assert loop.fetch([]) == []

    def test_an_error(self, loop):
        with pytest.raises(ZeroDivisionError):
            loop.hold([dask.delayed(divmod)(1, 0)])

    def test_one_that_somebody_cancels(self, loop, here, tmp_path):
        def wait(gate):
            while os.path.exists(gate):
                time.sleep(0.01)

        gate = tmp_path / "gate"
        gate.touch()
        future = here.submit(wait, gate)
        threading.Timer(0.2, lambda: here.cancel([future], force=True)).start()
        with pytest.raises(LostResultsError):
            loop.wait([future])
        gate.unlink()

    def test_one_that_is_lost_and_computed_again(self, loop, here):
        """The client is told that a worker had it, is gone, and that another one has it."""
        future = here.submit(square, 3)
        distributed.wait([future])
        future._state.lose()
        threading.Timer(0.3, future._state.finish).start()
        loop.wait([future])
        assert future.status == "finished"


@pytest.mark.parametrize("n", [1, 20])
def test_results_that_are_lost_with_the_last_worker(n):
    """Nothing computes them again, and that does not keep the loop from counting workers."""
    with (
        dask.config.set({"dtrees.workers-timeout": "300 ms"}),
        connect(1, 1, False) as cluster,
        Client(cluster) as client,
    ):
        loop = Tasks(client)
        loop.begin()
        futures = client.map(square, range(n))
        distributed.wait(futures)
        cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.01)
        for future in futures:
            future._state.lose()
        with pytest.raises((LostResultsError, WorkerLostError)):
            loop.wait(futures)


def where(number, *_):
    return number, distributed.get_worker().address


def test_tasks_of_several_kinds_in_their_order():
    with connect(2, 1, False) as cluster, Client(cluster) as client:
        submitter = Tasks(client)
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


def test_queued_tasks_that_the_scheduler_has_forgotten(here, loop, monkeypatch):
    """As after a worker is taken out; they are given to those that are there."""
    scheduler = here.cluster.scheduler
    plain, told = scheduler.stimulus_queue_slots_maybe_opened, []

    def forgetful(*, stimulus_id):
        told.append(stimulus_id)
        return plain(stimulus_id=stimulus_id) if stimulus_id == "dtrees-queued" else None

    monkeypatch.setattr(scheduler, "stimulus_queue_slots_maybe_opened", forgetful)
    with dask.config.set({"dtrees.worker-patience": "1s"}):
        futures = loop.submit([Call("square", square, (i,)) for i in range(6)])
        loop.wait(futures)
    assert loop.fetch(futures) == [i * i for i in range(6)]
    assert "dtrees-queued" in told


def test_what_a_report_always_has(here):
    submitter = Tasks(here)
    submitter.begin()
    assert submitter.stats.counts == {"lost_workers": 0, "retries": 0, "restarts": 0}


def test_values_are_sent_anew(here):
    submitter = Tasks(here)
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
        Tasks(here).submit([Call("t", max, (1, 2))])


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


CALL = Call("grow", max, (1, 2), about="tree 3", workers=("tcp://there",))


class Failed:
    """What stands for a future without a result."""

    def __init__(self, status, error=None):
        self.key, self.status, self.error = "it", status, error

    def exception(self):
        return self.error


def killed(key):
    return Failed("error", KilledWorker(key, SimpleNamespace(address="tcp://dead"), 3))


KINDS = {
    "itself": (killed("it"), None),
    "what it needs": (killed("another"), None),
    "a fetch": (Failed("finished"), Missed(OSError("no way there"))),
    "a fetch of nothing": (Failed("finished"), Missed(None)),
    "lost": (Failed("cancelled"), None),
}
TOLD = {
    "itself": r"died 4 times over in a task 'grow' \(tree 3\)\. .* memory",
    "what it needs": r"died 4 times over in a task another, which a task 'grow' \(tree 3\) needs",
    "a fetch": r"'grow' \(tree 3\) could not be fetched 4 times over: OSError\('no way there'\)",
    "a fetch of nothing": r"could not be fetched 4 times over: .*no worker has sent it",
    "lost": r"a task 'grow' \(tree 3\), or what it needs, was lost 5 times over",
}


@pytest.fixture
def faults():
    return Faults(Standing(status="running"), FitStatistics())


def happen(faults, kind, number=3):
    """A fault of a kind, and what follows: it is submitted again, or all of the work is."""
    future, missed = KINDS[kind]
    try:
        again = faults.of_call(number, CALL, future, missed)
    except LostResultsError as error:
        assert kind in ("what it needs", "lost")
        faults.restart(error)
    else:
        assert again.workers == ()


class TestFaults:
    @pytest.mark.parametrize("kind", KINDS)
    def test_so_many_of_a_task(self, kind, faults):
        """Others have none that count, and their results do not let it be forgotten."""
        for number in range((RESTARTS + 1 if kind == "lost" else ATTEMPTS) - 1):
            faults.n_restarts = 0
            happen(faults, kind, number)
            happen(faults, kind, -1)
        faults.n_restarts = 0
        with pytest.raises(WorkerLostError, match=TOLD[kind]):
            happen(faults, kind, -1)

    def test_of_all_kinds_together(self, faults):
        """But for losses, which are nobody's fault."""
        happen(faults, "what it needs")
        happen(faults, "lost")
        happen(faults, "lost")
        happen(faults, "a fetch")
        happen(faults, "itself")
        told = r"The result of .* could not be fetched 2 times over: .* It has failed 4 times\."
        with pytest.raises(WorkerLostError, match=told):
            happen(faults, "a fetch")
        assert faults.stats.counts == {"retries": 2, "restarts": 3}

    def test_what_a_task_raises(self, faults):
        with pytest.raises(ZeroDivisionError):
            faults.of_call(0, CALL, Failed("error", ZeroDivisionError()), None)

    @pytest.mark.parametrize("error", [OSError(), KeyError(), CancelledError()])
    def test_a_fetch_that_may_do_another_time(self, error, faults):
        faults.of_call(0, CALL, Failed("finished"), Missed(error))
        assert faults.stats.counts["restarts"] == 0

    @pytest.mark.parametrize("error", [MemoryError(), TypeError(), ModuleNotFoundError()])
    def test_a_fetch_that_never_will(self, error, faults):
        with pytest.raises(type(error)):
            faults.of_call(0, CALL, Failed("finished"), Missed(error))
        with pytest.raises(type(error)):
            faults.of_part(Failed("finished"), Missed(error))

    def test_a_client_that_is_closed_is_the_reason(self, faults):
        faults.client.status = "closed"
        for future, missed in KINDS.values():
            with pytest.raises(SchedulerLostError):
                faults.of_call(0, CALL, future, missed)

    def test_parts_of_graphs(self, faults):
        assert "while they coded" in str(faults.of_part(killed("it")))
        assert "were lost with their workers" in str(faults.of_part(Failed("lost")))
        lost = faults.of_part(*KINDS["a fetch"])
        assert str(lost) == "Results cannot be fetched: OSError('no way there')."
        assert isinstance(lost.__cause__, OSError)

    def test_restarts_without_a_result(self, faults):
        for _ in range(3):
            for _ in range(RESTARTS):
                faults.restart(LostResultsError("why"))
            faults.n_restarts = 0
        for _ in range(RESTARTS):
            faults.restart(LostResultsError("why"))
        with pytest.raises(WorkerLostError, match=r"lost its data 5 times.* why"):
            faults.restart(LostResultsError("why"))


# -------------------------------------------------------------------------------------------------
# on a cluster whose workers die


def die(path):
    noted(path)
    os._exit(1)


def one(_):
    return 1


class Deadly:
    """Tasks, of which the first one kills its workers: itself, by what it needs, or in turn."""

    def __init__(self, tasks, client, path, how):
        self.tasks, self.client, self.path, self.how = tasks, client, path, how
        self.n_rounds = 0

    def calls(self, left):
        pids(self.client, 2)  # so that others can be done
        self.n_rounds += 1
        kill = Call("die", die, (str(self.path),))
        for number in left:
            if number > 0:
                yield Call("grow", one, (number,))
            elif self.how == "itself" or (self.how == "in turn" and self.n_rounds % 2 == 0):
                yield Call("grow", *(kill.function, kill.arguments))
            else:
                yield Call("grow", one, (self.tasks.submit([kill])[0],))


@pytest.fixture
def loop_of_processes(processes):
    found = Tasks(processes)
    found.begin()
    allowed = processes.run_on_scheduler(allow_failures, 0)
    yield found
    processes.run_on_scheduler(allow_failures, allowed)
    found.end()
    assert ours(processes) == []


@pytest.mark.one_of(3)
@pytest.mark.parametrize("how", ["itself", "what it needs", "in turn"])
def test_a_deadly_task_beside_others(how, loop_of_processes, processes, tmp_path):
    """As a rule something comes between two deaths: data are not lost without a result.

    Every death is one fault, as a task is blamed for the first worker.
    """
    deadly = Deadly(loop_of_processes, processes, tmp_path, how)
    come = []
    found = (come.append(number) for number, _ in loop_of_processes.each(16, deadly.calls))
    with pytest.raises(WorkerLostError, match="died 4 times over in a task"):
        list(found)
    assert len(os.listdir(tmp_path)) == ATTEMPTS
    assert len(set(come)) == len(come)
    assert 0 not in come


def test_work_that_is_done_again_and_again(loop_of_processes, processes, tmp_path):
    """Results that are thrown away with the others do not make a beginning."""
    deadly = Deadly(loop_of_processes, processes, tmp_path, "what it needs")

    def work():
        return list(loop_of_processes.results(deadly.calls(range(3))))

    with pytest.raises(WorkerLostError, match="died 4 times over in a task"):
        loop_of_processes.run(work)
    assert len(os.listdir(tmp_path)) == ATTEMPTS


class Unreadable:
    """A result that can be read wherever it was made, and not in another process."""

    def __init__(self, error, folder):
        self.error, self.folder = error, folder

    def __reduce__(self):
        return read, (self.error, self.folder, os.getpid())


def read(error, folder, pid):
    if os.getpid() != pid:
        noted(folder)
        raise error
    return Unreadable(error, folder)


def test_a_result_that_this_process_cannot_read(loop_of_processes, tmp_path):
    with pytest.raises(MemoryError, match="too large"):
        list(
            loop_of_processes.results(
                [Call("grow", Unreadable, (MemoryError("too large"), str(tmp_path)))]
            )
        )
    assert len(os.listdir(tmp_path)) == ATTEMPTS
