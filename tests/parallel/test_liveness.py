"""When workers are asked whether they are there, and which tasks go to others as well."""

from types import SimpleNamespace

import dask
import pytest

from dtrees import RandomForestClassifier
from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel import liveness
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.liveness import Liveness, copies_of
from dtrees.parallel.submission import Call, Submitter
from tests.parallel.clusters import ours


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
        clock.now += 20.0
        found.ask()
        clock.now += 2.0
        found.hear()
        found.begin()
        assert found.patience == (30.0 if hangs == "nobody" else 8.0)

    def test_the_user_says_how_much_at_most(self):
        with dask.config.set({"dtrees.worker-patience": "2s"}):
            assert Liveness(None, FitStatistics()).patience == 2.0


class Clock:
    """Stands for `time` in the module: seconds go by when somebody asks in vain."""

    def __init__(self, monkeypatch, answers):
        self.now, self.answers, self.asked = 100.0, answers, []
        monkeypatch.setattr(liveness, "time", self)
        monkeypatch.setattr(liveness, "check_versions", self.ask)
        monkeypatch.setattr(liveness, "await_workers", lambda client: {"a": 1})

    def monotonic(self):
        return self.now

    def ask(self, client):
        self.asked.append(self.now)
        if self.answers:
            return ["a"]
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
        with (
            dask.config.set({"dtrees.worker-patience": seconds}),
            pytest.raises(WorkerLostError),
        ):
            found.await_answer()
        assert len(clock.asked) == liveness.SILENT_ROUNDS

    def test_somebody_answers_in_the_end(self, monkeypatch):
        clock = Clock(monkeypatch, answers=False)
        monkeypatch.setattr(
            liveness, "await_workers", lambda client: setattr(clock, "answers", clock.now > 150.0)
        )
        assert Liveness(CLIENT, FitStatistics()).await_answer() == ["a"]
        assert len(clock.asked) > 3


def test_nothing_is_sent_before_somebody_answers(here, monkeypatch):
    """Neither the table nor a task: the error leaves nothing."""
    sent = []

    def nobody(client):
        raise NoAnswerError("nobody")

    monkeypatch.setattr(liveness, "check_versions", nobody)
    monkeypatch.setattr(here, "map", lambda *_, **__: sent.append("tasks"))
    monkeypatch.setattr(Submitter, "send", lambda *_: sent.append("table"))
    for regime in ("replicated", "partitioned"):
        with (
            dask.config.set({"dtrees.worker-patience": "10ms"}),
            pytest.raises(WorkerLostError, match=r"has answered for 4 times 0\.01 seconds"),
        ):
            RandomForestClassifier(3, regime=regime).fit([[0.0], [1.0]] * 20, [0, 1] * 20)
        assert sent == []
        assert ours(here) == []
