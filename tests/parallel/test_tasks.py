"""Tasks of a client: how they are submitted, what comes, in which order, what is done again."""

import threading
import time
from concurrent.futures import CancelledError

import dask
import distributed
import pytest
from distributed import Client, KilledWorker

from dtrees.exceptions import WorkerLostError
from dtrees.parallel import faults, tasks
from dtrees.parallel.calls import Call, LostResultsError
from dtrees.parallel.faults import Missed
from dtrees.parallel.tasks import ENDED, Tasks
from tests.parallel.clusters import connect, ours


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
    @pytest.mark.parametrize("at_once", [None, 1, 3, 100])
    @pytest.mark.parametrize("together", [False, True])
    def test_each_once(self, at_once, together, loop):
        calls = (Call("square", square, (i,)) for i in range(20))
        found = list(loop.results(calls, at_once, together=together))
        assert sorted(found) == [(i, i * i) for i in range(20)]

    def test_no_more_than_so_many_are_under_way(self, loop):
        taken, done = [], 0
        calls = (taken.append(i) or Call("square", square, (i,)) for i in range(12))
        for _ in loop.results(calls, 2):
            assert len(taken) <= done + 2
            done += 1
        assert done == 12

    def test_what_is_sent_then_goes_behind_the_tasks(self, loop, here, monkeypatch):
        order, submit = [], here.map
        monkeypatch.setattr(here, "map", lambda *a, **o: order.append("tasks") or submit(*a, **o))
        calls = [Call("square", square, (i,)) for i in range(3)]
        list(loop.results(calls, together=True, then=lambda: order.append("then")))
        assert order == ["tasks", "then"]

    def test_the_first_of_two_copies_counts(self, loop):
        State.seen, State.began, State.go_on = [], threading.Event(), threading.Event()
        await_ = loop._await

        def copying(pending, submit):
            if len(pending) == 1:
                assert State.began.wait(30)
                submit([next(iter(pending.values()))])
                threading.Timer(0.2, State.go_on.set).start()
            return await_(pending, submit)

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
        rounds = []

        def calls(left):
            rounds.append(list(left))
            for number in left:
                if number == 2 and len(rounds) == 1:
                    raise LostResultsError("lost")
                yield Call("square", square, (number,))

        remade = []
        found = dict(loop.each(4, calls, lambda: remade.append(1), at_once=1))
        assert found == {i: i * i for i in range(4)}
        assert rounds == [[0, 1, 2, 3], [2, 3]]
        assert remade == [1]
        assert loop.stats.counts["restarts"] == 1

    def test_a_result_between_begins_to_count_anew(self, loop):
        def calls(left):
            yield Call("square", square, (left[0],))
            raise LostResultsError("lost")

        n = 3 * faults.RESTARTS
        assert len(dict(loop.each(n, calls, at_once=1))) == n
        assert loop.stats.counts["restarts"] >= n - 1

    def test_never_a_result(self, loop):
        remade = []

        def work():
            raise LostResultsError("for good")

        with pytest.raises(WorkerLostError, match=r"lost its data 5 times, .* for good"):
            loop.run(work, lambda: remade.append(1))
        assert len(remade) == faults.RESTARTS

    def test_a_result_that_cannot_be_fetched_at_first(self, loop, here, monkeypatch):
        gather, n_asked = tasks.results_of, []

        def fail(*arguments, **options):
            n_asked.append(1)
            if len(n_asked) < faults.ATTEMPTS:
                raise OSError("no way there")
            return gather(*arguments, **options)

        monkeypatch.setattr(tasks, "results_of", fail)
        assert list(loop.results([Call("square", square, (3,))])) == [(0, 9)]
        assert len(n_asked) == faults.ATTEMPTS

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
        assert loop.stats.counts["retries"] == faults.ATTEMPTS - 1

    def test_one_that_has_ended_before_it_is_missed(self, loop, monkeypatch):
        """Results are waited for together: it is not waited for any more, and done again."""
        await_, told = loop._await, [ENDED, Missed(OSError("no way there"))]

        def scripted(pending, submit):
            return [(next(iter(pending)), told.pop(0))] if told else await_(pending, submit)

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
            futures = loop.compute([dask.delayed(square)(2)])
            loop.wait(futures)
            return loop.gather(futures)

        assert loop.run(work) == [4]
        assert cancelled_once

    def test_a_task_may_return_none(self, loop):
        assert list(loop.results([Call("print", print, ("",))])) == [(0, None)]


class TestFuturesOfGraphs:
    def test_results_that_cannot_be_fetched(self, loop, here, monkeypatch):
        def fail(*_, **__):
            raise OSError("no way there")

        def work():
            futures = loop.compute([dask.delayed(square)(2)])
            loop.wait(futures)
            return loop.gather(futures)

        monkeypatch.setattr(tasks, "results_of", fail)
        told = r"5 times, .* Results cannot be fetched: OSError\('no way there'\)"
        with pytest.raises(WorkerLostError, match=told):
            loop.run(work)
        assert loop.stats.counts["restarts"] == faults.RESTARTS

    def test_in_their_order(self, loop, here):
        futures = here.map(square, range(5))
        loop.wait(futures)
        assert all(future.status == "finished" for future in futures)
        assert loop.gather([*futures, futures[0]]) == [0, 1, 4, 9, 16, 0]
        assert loop.gather([]) == []

    def test_an_error(self, loop):
        with pytest.raises(ZeroDivisionError):
            loop.wait(loop.compute([dask.delayed(divmod)(1, 0)]))

    def test_one_that_somebody_cancels(self, loop, here):
        future = here.submit(time.sleep, 5)
        threading.Timer(0.2, lambda: here.cancel([future], force=True)).start()
        with pytest.raises(LostResultsError):
            loop.wait([future])


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


def test_names():
    assert str(Call("grow", max, ())) == "a task 'grow'"
    assert str(Call("grow", max, (), about="trees 0 to 4")) == "a task 'grow' (trees 0 to 4)"
