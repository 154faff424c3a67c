"""Faults of tasks: they are counted by task, whatever is told of them and comes of others."""

from __future__ import annotations

import os
from concurrent.futures import CancelledError
from types import SimpleNamespace

import pytest
from distributed import KilledWorker

from dtrees.exceptions import SchedulerLostError, WorkerLostError
from dtrees.parallel.calls import Call, LostResultsError
from dtrees.parallel.faults import ATTEMPTS, RESTARTS, Faults, Missed
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.tasks import Tasks
from tests.parallel.clusters import noted, ours
from tests.parallel.faults import pids
from tests.parallel.test_client import Standing
from tests.parallel.test_collections import allow_failures

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
            faults.hear()
            happen(faults, kind, number)
            happen(faults, kind, -1)
        faults.hear()
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
        assert faults._stats.counts == {"retries": 2, "restarts": 3}

    @pytest.mark.parametrize("kind", ["itself", "lost"])
    def test_other_work_begins(self, kind, faults):
        for _ in range(3):
            faults.begin()
            for _ in range(ATTEMPTS - 1):
                happen(faults, kind)

    def test_what_a_task_raises(self, faults):
        with pytest.raises(ZeroDivisionError):
            faults.of_call(0, CALL, Failed("error", ZeroDivisionError()), None)

    @pytest.mark.parametrize("error", [OSError(), KeyError(), CancelledError()])
    def test_a_fetch_that_may_do_another_time(self, error, faults):
        faults.of_call(0, CALL, Failed("finished"), Missed(error))

    @pytest.mark.parametrize("error", [MemoryError(), TypeError(), ModuleNotFoundError()])
    def test_a_fetch_that_never_will(self, error, faults):
        with pytest.raises(type(error)):
            faults.of_call(0, CALL, Failed("finished"), Missed(error))
        with pytest.raises(type(error)):
            faults.of_part(Failed("finished"), Missed(error))

    def test_a_client_that_is_closed_is_the_reason(self, faults):
        faults._client.status = "closed"
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
            faults.hear()
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
def loop(processes):
    found = Tasks(processes)
    found.begin()
    allowed = processes.run_on_scheduler(allow_failures, 0)
    yield found
    processes.run_on_scheduler(allow_failures, allowed)
    found.end()
    assert ours(processes) == []


@pytest.mark.one_of(3)
@pytest.mark.parametrize("how", ["itself", "what it needs", "in turn"])
def test_a_deadly_task_beside_others(how, loop, processes, tmp_path):
    """As a rule something comes between two deaths: data are not lost without a result.

    Every death is one fault, as a task is blamed for the first worker.
    """
    deadly = Deadly(loop, processes, tmp_path, how)
    come = []
    found = (come.append(number) for number, _ in loop.each(16, deadly.calls, at_once=2))
    with pytest.raises(WorkerLostError, match="died 4 times over in a task"):
        list(found)
    assert len(os.listdir(tmp_path)) == ATTEMPTS
    assert len(set(come)) == len(come)
    assert 0 not in come


def test_work_that_is_done_again_and_again(loop, processes, tmp_path):
    """Results that are thrown away with the others do not make a beginning."""
    deadly = Deadly(loop, processes, tmp_path, "what it needs")

    def work():
        return list(loop.results(deadly.calls(range(3))))

    with pytest.raises(WorkerLostError, match="died 4 times over in a task"):
        loop.run(work)
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


def test_a_result_that_this_process_cannot_read(loop, tmp_path):
    with pytest.raises(MemoryError, match="too large"):
        list(loop.results([Call("grow", Unreadable, (MemoryError("too large"), str(tmp_path)))]))
    assert len(os.listdir(tmp_path)) == ATTEMPTS
