"""Ctrl-C waits until the end of a block that must not be left in the middle."""

import signal
import threading

import pytest
from distributed import Client, Future

from dtrees import RandomForestClassifier
from dtrees.parallel.interrupts import (
    interrupts_deferred,
    interrupts_deferred_inside,
    raise_deferred_interrupt,
)
from tests.parallel.clusters import ours
from tests.parallel.test_collections import X, Y, cut


def interrupt():
    signal.raise_signal(signal.SIGINT)


def interrupted(work):
    """What was seen by the time that SIGINT came through; None: it did not."""
    seen = []
    try:
        work(seen)
    except KeyboardInterrupt:
        return seen
    return None


class TestHeldBack:
    def test_it_comes_at_the_end_of_the_block(self, handler):
        def work(seen):
            with interrupts_deferred():
                interrupt()
                seen.append("the end of the block")
            seen.append("behind it")

        assert interrupted(work) == ["the end of the block"]
        assert signal.getsignal(signal.SIGINT) is handler

    def test_it_comes_where_it_is_let_through(self, handler):
        def work(seen):
            with interrupts_deferred():
                raise_deferred_interrupt()
                interrupt()
                seen.append("before")
                raise_deferred_interrupt()
                seen.append("behind")

        assert interrupted(work) == ["before"]
        assert signal.getsignal(signal.SIGINT) is handler

    def test_the_second_comes_at_once(self):
        def work(seen):
            with interrupts_deferred():
                interrupt()
                seen.append("one")
                interrupt()
                seen.append("two")

        assert interrupted(work) == ["one"]

    def test_blocks_in_blocks(self):
        def work(seen):
            with interrupts_deferred():
                with interrupts_deferred():
                    interrupt()
                seen.append("behind the inner one")

        assert interrupted(work) == ["behind the inner one"]

    def test_an_error_is_its_context(self, handler):
        def work():
            with interrupts_deferred():
                interrupt()
                raise ZeroDivisionError("told so")

        with pytest.raises(KeyboardInterrupt) as caught:
            work()
        assert isinstance(caught.value.__context__, ZeroDivisionError)
        assert signal.getsignal(signal.SIGINT) is handler

    def test_a_handler_of_somebody_else(self):
        came = []
        signal.signal(signal.SIGINT, lambda *call: came.append(call))
        with interrupts_deferred():
            interrupt()
            assert came == []
            raise_deferred_interrupt()
            assert len(came) == 1
        assert len(came) == 1

    def test_a_signal_that_is_ignored(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interrupts_deferred():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            interrupt()

    def test_in_another_thread(self, handler):
        seen = []

        def work():
            with interrupts_deferred():
                raise_deferred_interrupt()
                seen.append(signal.getsignal(signal.SIGINT))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert seen == [handler]

    def test_a_handler_that_the_block_has_put_there_stays(self):
        came = []

        def mine(*call):
            came.append(call)

        with interrupts_deferred():
            signal.signal(signal.SIGINT, mine)
        assert signal.getsignal(signal.SIGINT) is mine


class TestGenerator:
    @staticmethod
    @interrupts_deferred_inside
    def generate(seen, interrupts):
        try:
            for i in range(4):
                if i in interrupts:
                    interrupt()
                seen.append(i)
                yield i
        finally:
            seen.append("end")

    def test_it_comes_before_what_is_yielded(self):
        assert interrupted(lambda seen: list(self.generate(seen, (2,)))) == [0, 1, 2, "end"]

    def test_not_held_back_outside(self):
        def work(seen):
            for i in self.generate(seen, ()):
                if i == 1:
                    interrupt()
                seen.append("outside")

        assert interrupted(work)[:4] == [0, "outside", 1, "end"]

    def test_closing(self):
        seen = []
        generator = self.generate(seen, ())
        next(generator)
        generator.close()
        assert seen == [0, "end"]


class AtCall:
    """Interrupts in the midst of a method, the first time that it is called by the main thread."""

    def __init__(self, owner, name, monkeypatch, *, before):
        self.has_come = False
        method = getattr(owner, name)

        def call(*arguments, **options):
            is_here = threading.current_thread() is threading.main_thread()
            is_time = is_here and not self.has_come
            self.has_come |= is_time
            if is_time and before:
                interrupt()
            result = method(*arguments, **options)
            if is_time and not before:
                interrupt()
            return result

        monkeypatch.setattr(owner, name, call)


MOMENTS = {
    "the table": (Client, "submit"),
    "a graph": (Client, "compute"),
    "batches": (Client, "map"),
    "a message": (Client, "_send_to_scheduler"),
    "a future": (Future, "__init__"),
    "a release": (Future, "release"),
}


@pytest.mark.one_of(12)
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("regime", ["replicated", "partitioned"])
def test_nothing_stays_on_the_cluster(regime, moment, before, here, monkeypatch):
    """Not even while the traceback is there, which holds everything that the fit has held."""
    forest = RandomForestClassifier(4, max_depth=4, random_state=5, max_bins=32, regime=regime)
    table = (X, Y) if regime == "replicated" else (cut(X, "7"), cut(Y, "2"))
    with monkeypatch.context() as patch:
        at = AtCall(*MOMENTS[moment], patch, before=before)
        try:
            forest.fit(*table)
        except KeyboardInterrupt as error:
            traceback = error.__traceback__
        else:
            traceback = None
    assert (traceback is None) is not at.has_come
    assert at.has_come or (regime, moment) in {
        ("replicated", "a graph"),
        ("partitioned", "batches"),
    }
    assert not hasattr(forest, "forest_") or traceback is None
    left = ours(here)
    del traceback
    assert left == []
    assert forest.fit(*table).score(X, Y) > 0.5
