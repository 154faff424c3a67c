"""When workers are asked whether they are there, and which tasks go to others as well."""

import threading
import time
from types import SimpleNamespace

import dask
import distributed
import pytest
from distributed import Client, wait

from dtrees import RandomForestClassifier
from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel import liveness
from dtrees.parallel.client import Paused, ask_workers
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.liveness import Answers, Liveness, copies_of
from dtrees.parallel.tasks import Call, Tasks
from tests.parallel.clusters import connect, ours, paused
from tests.parallel.test_client import Standing


class Task:
    """What stands for a future."""

    def __init__(self, key):
        self.key = key


def copied(doing, done=(), answering="ab", is_stuck=False, held=(), paused=()):
    """Workers by place, of the copies of tasks 0, 1, ... that are done on workers of one letter."""
    keys = sorted({*doing, *done})
    call = Call("t", print, (), held=frozenset(held))
    pending = {Task(key): (place, call) for place, key in enumerate(keys)}
    of = [{key: frozenset(at) for key, at in dict(each).items()} for each in (doing, done)]
    answers = Answers(frozenset(answering), frozenset(), frozenset(paused))
    found = copies_of(pending, *of, answers, is_stuck=is_stuck)
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

    def test_a_paused_worker_sends_what_it_has(self):
        assert copied({}, {"x": "c"}, is_stuck=True, paused="c") == {}
        assert copied({"x": "c"}, is_stuck=True, paused="c") == {0: "ab"}

    @pytest.mark.parametrize("n", [1, liveness.COPIES - 1, liveness.COPIES])
    def test_not_without_bound(self, n):
        pending = {Task(key): (7, Call("t", print, ())) for key in range(n)}
        answers = Answers(frozenset("ab"), frozenset("c"))
        found = copies_of(pending, {}, {}, answers, is_stuck=True)
        assert [number for number, _ in found] == [7] * (n < liveness.COPIES)


class TestPatience:
    @pytest.mark.parametrize(
        ("longest", "expected"), [(None, 30.0), (0.1, 5.0), (2.0, 8.0), (60.0, 30.0)]
    )
    def test_follows_from_the_longest_wait(self, longest, expected, monkeypatch):
        clock = Clock(monkeypatch, answers=True)
        found = Liveness(None, FitStatistics())
        for seconds in [] if longest is None else [0.01, longest]:
            found.begin()
            clock.now += seconds
            found.hear()
        found.begin()
        assert found.patience == expected

    @pytest.mark.parametrize("hangs", ["nobody", "one of two", "all of them"])
    def test_what_hangs_does_not_make_it_longer(self, hangs, monkeypatch):
        """A worker that hangs is found after 20 s, and its tasks take 2 s elsewhere."""
        clock = Clock(monkeypatch, answers=hangs != "all of them")
        workers = {"a": 1, "b": 1} if hangs == "one of two" else {"a": 1}
        monkeypatch.setattr(liveness, "await_workers", lambda client: workers)
        monkeypatch.setattr(Liveness, "_remove", lambda self, hanging: frozenset())
        found = Liveness(CLIENT, FitStatistics())
        found.begin()
        clock.now += 20.0
        found.ask()
        clock.now += 2.0
        found.hear()
        found.begin()
        assert found.patience == (30.0 if hangs == "nobody" else 8.0)

    def test_the_user_says_how_much_at_most(self):
        with dask.config.set({"dtrees.worker-patience": "2s"}):
            found = Liveness(None, FitStatistics())
            found.begin()
            assert found.patience == 2.0


class Clock:
    """Stands for `time` in the module: seconds go by when somebody asks in vain."""

    def __init__(self, monkeypatch, answers):
        self.now, self.answers, self.asked = 100.0, answers, []
        monkeypatch.setattr(liveness, "time", self)
        monkeypatch.setattr(liveness, "ask_workers", self.ask)
        monkeypatch.setattr(liveness, "await_workers", lambda client: {"a": 1})

    def monotonic(self):
        return self.now

    def ask(self, client):
        self.asked.append(self.now)
        if self.answers:
            return {"a": None}
        self.now += 10.0
        raise NoAnswerError("nobody")


CLIENT = SimpleNamespace(scheduler=SimpleNamespace(address="tcp://there"))
GIVEN_UP = r"at tcp://there has answered for 4 times 30 seconds.*dtrees\.worker-patience"


class TestNobodyAnswers:
    """For four times 30 seconds, and the ten that the last question takes."""

    def test_at_the_start(self, monkeypatch):
        clock = Clock(monkeypatch, answers=False)
        with pytest.raises(WorkerLostError, match=GIVEN_UP):
            Liveness(CLIENT, FitStatistics()).await_answer()
        assert 100.0 + 4 * 30.0 <= clock.now <= 100.0 + 4 * 30.0 + 10.0

    def test_in_the_midst(self, monkeypatch):
        clock = Clock(monkeypatch, answers=False)
        found = Liveness(CLIENT, FitStatistics())
        found.begin()

        def wait():
            while not found.is_over or found.ask() is None:
                clock.now += 0.1

        with pytest.raises(WorkerLostError, match=GIVEN_UP):
            wait()
        first = clock.asked[0]
        assert first == pytest.approx(130.0, abs=0.2)
        assert clock.now == pytest.approx(first + 4 * 30.0 + 10.0, abs=0.5)

    def test_an_answer_between(self, monkeypatch):
        """It is as if nobody had been asked before."""
        clock = Clock(monkeypatch, answers=False)
        found = Liveness(CLIENT, FitStatistics())
        found.begin()
        for _ in range(10):
            clock.answers = False
            for _ in range(3):
                assert found.ask() is None
            clock.answers = True
            assert found.ask().answering == {"a"}
            clock.now += 1000.0

    @pytest.mark.parametrize("seconds", ["1ms", "1s"])
    def test_a_short_patience_asks_as_often(self, seconds, monkeypatch):
        clock = Clock(monkeypatch, answers=False)
        found = Liveness(CLIENT, FitStatistics())
        with dask.config.set({"dtrees.worker-patience": seconds}), pytest.raises(WorkerLostError):
            found.await_answer()
        assert len(clock.asked) == liveness.SILENT_ROUNDS

    def test_somebody_answers_in_the_end(self, monkeypatch):
        clock = Clock(monkeypatch, answers=False)

        def await_workers(client):
            clock.answers = clock.now > 150.0
            return {"a": 1}

        monkeypatch.setattr(liveness, "await_workers", await_workers)
        assert Liveness(CLIENT, FitStatistics()).await_answer() == ["a"]
        assert len(clock.asked) > 3


class Gate:
    """What a task in this process waits at, and where a worker is held up."""

    began: threading.Event
    go_on: threading.Event


def hold_up(_):
    Gate.began.set()
    Gate.go_on.wait(60)
    return "held up"


def hold_up_aside(_):
    distributed.secede()
    hold_up(_)


def where(_):
    return distributed.get_worker().address


@pytest.fixture
def two():
    """A client of two workers in this process, and the address of the one that will be paused.

    Dask would steal some of what that has to do, and not all.
    """
    Gate.began, Gate.go_on = threading.Event(), threading.Event()
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        connect(2, 1, False) as cluster,
        Client(cluster) as client,
    ):
        yield client, min(client.nthreads())
        Gate.go_on.set()


@pytest.fixture
def loop(two):
    found = Tasks(two[0])
    found.begin()
    yield found
    found.end()
    Gate.go_on.set()
    assert ours(two[0]) == []


IMPATIENT = {"dtrees.worker-patience": "200ms"}


class TestPausedWorkers:
    """What they have not begun goes to others; what they have begun comes from them."""

    def test_tasks(self, two, loop):
        """The first one is held up, the others wait for its thread, and nothing else does them."""
        client, address = two
        held = client.submit(hold_up, 0, workers=[address])
        assert Gate.began.wait(30)
        calls = [Call("where", where, (number,), (address,)) for number in range(4)]

        submit = loop.submit

        def submit_and_pause(some):
            submitted, loop.submit = submit(some), submit
            while len(client.processing()[address]) <= len(calls):
                time.sleep(0.01)
            paused(client, [address])
            return submitted

        loop.submit = submit_and_pause
        with dask.config.set(IMPATIENT):
            found = loop.results(calls)
            assert {at for _, at in found} == {max(client.nthreads())}
        assert loop.stats.counts["retries"] == len(calls)
        Gate.go_on.set()
        assert held.result() == "held up"  # it was left alone

    def test_graphs(self, two, loop):
        """They cannot be copied: neither what is waited for, nor what that needs."""
        client, address = two
        held = client.submit(hold_up, 0, workers=[address])
        assert Gate.began.wait(30)
        with dask.annotate(workers=[address], allow_other_workers=True):
            parts = [dask.delayed(where)(number) for number in range(3)]
        with dask.config.set(IMPATIENT, **{"optimization.fuse.active": False}):
            (future,) = client.compute([dask.delayed(list)(parts)])
            while len(client.processing()[address]) <= len(parts):
                time.sleep(0.01)
            paused(client, [address])
            loop.wait([future])
        assert set(future.result()) == {max(client.nthreads())}
        Gate.go_on.set()
        held.result()

    def test_what_is_under_way_is_waited_for(self, two, loop, monkeypatch):
        """All are paused, and nobody else is there, but a task has begun."""
        client, address = two
        rounds, ask = [], Liveness.ask

        def count(*arguments):
            rounds.append(ask(*arguments))
            if len(rounds) > 2 * liveness.SILENT_ROUNDS:
                Gate.go_on.set()
            return rounds[-1]

        monkeypatch.setattr(Liveness, "ask", count)
        with dask.config.set({"dtrees.worker-patience": "10ms"}):
            found = loop.results([Call("hold", hold_up, (0,), (address,))])
            threading.Thread(target=lambda: Gate.began.wait(30) and paused(client)).start()
            assert list(found) == [(0, "held up")]
        assert loop.stats.counts["retries"] == 0

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("regime", ["replicated", "partitioned"])
    @pytest.mark.parametrize("is_known_before", [True, False])
    @pytest.mark.parametrize("others", [None, hold_up, hold_up_aside])
    def test_all_are_paused(self, regime, is_known_before, others, two, monkeypatch):
        """In the end the error says so, and little has been sent.

        What others have begun there, perhaps a task that waits for this fit, is not waited for.
        """
        client, address = two
        if others is not None:
            held = client.submit(others, 0, workers=[address])
            assert Gate.began.wait(30)
        if is_known_before:
            paused(client)
        else:
            begin = Tasks.begin
            monkeypatch.setattr(Tasks, "begin", lambda self: [begin(self), paused(client)])
        sent, send = [], Tasks.send
        monkeypatch.setattr(Tasks, "send", lambda *a: sent.append(a[1]) or send(*a))
        told = r"has begun a task for 4 times 0\.05 seconds: inproc://.* is paused.*memory_limit"
        with (
            dask.config.set({"dtrees.worker-patience": "50ms"}),
            pytest.raises(WorkerLostError, match=told),
        ):
            RandomForestClassifier(3, regime=regime).fit([[0.0], [1.0]] * 20, [0, 1] * 20)
        assert len(sent) == len(set(sent))
        assert sent == [] or not is_known_before
        if others is not None:
            Gate.go_on.set()
            wait(held)
            del held
        assert ours(client) == []

    def test_at_how_much_of_its_memory(self):
        memory = SimpleNamespace(memory_limit=1000)
        worker = SimpleNamespace(
            status=SimpleNamespace(name="paused"),
            memory_manager=memory,
            monitor=SimpleNamespace(get_process_memory=lambda: 830),
            state=SimpleNamespace(executing=set(), long_running={Task("begun")}),
        )
        client = Standing(status="running", run=lambda function, **_: {"tcp://a": function(worker)})
        expected = Paused("paused at 83% of its memory", frozenset({"begun"}))
        assert ask_workers(client) == {"tcp://a": expected}
        memory.memory_limit = None
        assert ask_workers(client)["tcp://a"].why == "paused"
        worker.status.name = "running"
        assert ask_workers(client) == {"tcp://a": None}


async def set_gpu(dask_worker):
    await dask_worker.set_resources(GPU=1)


def see_gpu(address, dask_scheduler):
    """Do what is done for a worker that comes."""
    worker = dask_scheduler.workers[address]
    moved = dask_scheduler.bulk_schedule_unrunnable_after_adding_worker(worker)
    dask_scheduler.transitions(moved, stimulus_id="test")


class TestWhatTasksAskFor:
    """Tasks that no worker may do would wait for ever."""

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("regime", ["replicated", "partitioned"])
    @pytest.mark.parametrize(
        ("asked", "words"),
        [
            ({"resources": {"GPU": 1}}, r"resources \{'GPU': 1\}"),
            ({"workers": ["tcp://127.0.0.1:1"]}, r"workers \['tcp://127.0.0.1:1'\]"),
        ],
    )
    def test_nobody_has_it(self, asked, words, regime, here):
        with (
            dask.annotate(**asked),
            dask.config.set({"dtrees.worker-patience": "50ms"}),
            pytest.raises(WorkerLostError, match=f"has what tasks ask for: {words}"),
        ):
            RandomForestClassifier(3, regime=regime).fit([[0.0], [1.0]] * 20, [0, 1] * 20)
        assert ours(here) == []

    def test_who_has_room_is_lost(self):
        """Without annotations, only workers with room for the table are asked for."""
        found = Liveness(CLIENT, FitStatistics())
        found._check_able({"small": None}, {"workers ['large']": []}, [])
        with pytest.raises(WorkerLostError, match="has lost all workers that have room"):
            found._check_able({"small": None}, {"workers ['large']": []}, [])

    def test_who_has_it_is_started_again(self, two, loop, monkeypatch):
        """It is not there when workers are asked for the first time."""
        client, address = two
        asked, ask = [], Liveness.ask

        def count(*arguments):
            found = ask(*arguments)
            asked.append(found)
            if len(asked) == 1:
                client.run(set_gpu, workers=[address])
                client.run_on_scheduler(see_gpu, address)
            return found

        monkeypatch.setattr(Liveness, "ask", count)
        with dask.annotate(resources={"GPU": 1}), dask.config.set(IMPATIENT):
            assert list(loop.results([Call("where", where, (0,))])) == [(0, address)]

    def test_who_has_it_is_paused(self, two, loop):
        client, address = two
        client.run(set_gpu, workers=[address])
        with dask.annotate(resources={"GPU": 1}), dask.config.set(IMPATIENT):
            assert list(loop.results([Call("where", where, (0,))])) == [(0, address)]
            paused(client, [address])
            with pytest.raises(WorkerLostError, match=f"{address} is paused"):
                list(loop.results([Call("where", where, (0,))]))


def test_nothing_is_sent_before_somebody_answers(here, monkeypatch):
    """Neither the table nor a task: the error leaves nothing."""
    sent = []

    def nobody(client):
        raise NoAnswerError("nobody")

    monkeypatch.setattr(liveness, "ask_workers", nobody)
    monkeypatch.setattr(here, "map", lambda *_, **__: sent.append("tasks"))
    monkeypatch.setattr(Tasks, "send", lambda *_: sent.append("table"))
    for regime in ("replicated", "partitioned"):
        with (
            dask.config.set({"dtrees.worker-patience": "10ms"}),
            pytest.raises(WorkerLostError, match=r"has answered for 4 times 0\.01 seconds"),
        ):
            RandomForestClassifier(3, regime=regime).fit([[0.0], [1.0]] * 20, [0, 1] * 20)
        assert sent == []
        assert ours(here) == []
