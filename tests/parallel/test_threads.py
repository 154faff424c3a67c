import os
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import CancelledError
from contextlib import closing
from functools import partial

import joblib
import pytest

from dtrees.parallel.threads import AHEAD, LocalRunner, threaded
from tests.forked import start_forked

PATIENCE = 60  # seconds that an event is waited for; far more than it takes
A_MOMENT = 0.2  # seconds in which what must not happen would


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 9])
def test_results_come_in_order(n_threads, n_tasks):
    run = LocalRunner(n_threads)
    tasks = [lambda i=i: (time.sleep(0.001 * (n_tasks - i)), i)[1] for i in range(n_tasks)]
    assert run(tasks) == list(range(n_tasks))
    assert not run.cancelled.is_set()


def test_one_thread_or_one_task_stays_in_the_calling_thread():
    here = threading.get_ident()
    assert LocalRunner(1)([threading.get_ident] * 3) == [here] * 3
    assert LocalRunner(4)([threading.get_ident]) == [here]


def test_two_threads_work_at_the_same_time():
    meet = threading.Barrier(2, timeout=PATIENCE)
    assert sorted(LocalRunner(2)([meet.wait, meet.wait])) == [0, 1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_is_passed_on_and_cancels_the_rest(n_threads):
    run = LocalRunner(n_threads)
    begun = []

    def fail():
        raise ZeroDivisionError("told so")

    def wait():
        begun.append(1)
        run.cancelled.wait(PATIENCE)

    with pytest.raises(ZeroDivisionError, match="told so"):
        run([fail] + [wait] * 20)
    assert run.cancelled.is_set()
    assert len(begun) <= 2
    with pytest.raises(CancelledError):
        run([wait])


def test_a_runner_runs_inside_threads_and_tasks():
    def inner():
        return LocalRunner(2)([lambda: 1, lambda: 2])

    assert LocalRunner(2)([inner, inner, inner]) == [[1, 2]] * 3
    assert (
        joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(inner)() for _ in range(3))
        == [[1, 2]] * 3
    )


def test_threads_that_n_jobs_asks_for():
    cores = joblib.cpu_count()
    assert threaded(None).n_threads == 1
    assert threaded(3).n_threads == 3
    assert threaded(-1).n_threads == cores
    assert threaded(-10_000).n_threads == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert threaded(None).n_threads == min(2, cores)
        assert threaded(3).n_threads == 3
    with joblib.parallel_config(n_jobs=2):  # of processes: threads of this one, which share a table
        assert threaded(None).n_threads == min(2, cores)
    with pytest.raises(ValueError, match="n_jobs"):
        threaded(0)
    assert repr(threaded(2)) == "LocalRunner(n_threads=2)"


def test_an_interrupt_while_threads_are_started_ends_those_that_are_there(monkeypatch):
    started = []

    def start(thread, begin=threading.Thread.start):
        if started:
            raise KeyboardInterrupt
        begin(thread)
        started.append(thread)

    run = LocalRunner(2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(KeyboardInterrupt):
            run([partial(run.cancelled.wait, PATIENCE)] * 2)
    started[0].join(PATIENCE)
    assert not started[0].is_alive()


def test_threads_end_with_their_call():
    before = set(threading.enumerate())
    LocalRunner(3)([int] * 3)
    assert not [t for t in members() if t not in before and (t.join(PATIENCE) or t.is_alive())]


def members():
    return [t for t in threading.enumerate() if t.name.startswith("dtrees-")]


def wait_until(is_so):
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class TestStream:
    @pytest.mark.parametrize("n_threads", [1, 2, 4])
    @pytest.mark.parametrize("n_tasks", [0, 1, 2, 3, 40])
    def test_every_result_once_in_order(self, n_threads, n_tasks):
        def work(i):
            time.sleep(0.002 * (i % 3 == 0))
            return i * i

        run = LocalRunner(n_threads)
        found = list(run.stream([partial(work, i) for i in range(n_tasks)]))
        assert found == [i * i for i in range(n_tasks)]
        assert not run.cancelled.is_set()

    def test_early_results_wait(self):
        first, second = threading.Event(), threading.Event()
        results = LocalRunner(2).stream([lambda: first.wait(PATIENCE), second.set])
        opener = threading.Thread(target=lambda: second.wait(PATIENCE) and first.set())
        opener.start()
        assert next(results) is True  # though the other ended before
        assert next(results) is None
        assert list(results) == []
        opener.join()

    @pytest.mark.parametrize("n_threads", [2, 3])
    def test_a_slow_task_is_not_overrun(self, n_threads):
        begun = []
        full, too_full = threading.Event(), threading.Event()
        room = AHEAD * n_threads

        def work(i):
            begun.append(i)
            if len(begun) >= room:
                full.set()
            if len(begun) > room:
                too_full.set()
            if i == 0:
                assert full.wait(PATIENCE)
                return too_full.wait(A_MOMENT)
            return i

        run = LocalRunner(n_threads)
        results = list(run.stream([partial(work, i) for i in range(100)]))
        assert results == [False, *range(1, 100)]
        assert sorted(begun) == list(range(100))

    @pytest.mark.parametrize("n_threads", [2, 3])
    def test_a_slow_reader_is_not_overrun(self, n_threads):
        places = [threading.Event() for _ in range(100)]
        run = LocalRunner(n_threads)
        with closing(run.stream([place.set for place in places])) as results:
            for n_read in range(3):
                next(results)
                room = AHEAD * n_threads + n_read
                assert all(place.wait(PATIENCE) for place in places[:room])
                assert not places[room].wait(A_MOMENT)
            assert len(list(results)) == 97

    @pytest.mark.parametrize("n_threads", [1, 2])
    def test_closing_ends_the_work(self, n_threads):
        run = LocalRunner(n_threads)
        begun = []

        def work():
            begun.append(1)
            run.cancelled.wait(0.01)

        before = threading.active_count()
        with closing(run.stream([work] * 1000)) as results:
            next(results)
        n_begun = len(begun)
        assert n_begun <= (AHEAD * n_threads if n_threads > 1 else 1)
        assert run.cancelled.is_set()
        wait_until(lambda: not members())  # which end with the tasks
        assert len(begun) == n_begun
        assert threading.active_count() <= before + n_threads

    @pytest.mark.parametrize("n_threads", [1, 3])
    @pytest.mark.parametrize("place", [0, 30, 99])
    def test_an_error_is_passed_on(self, n_threads, place):
        def work(i):
            if i == place:
                raise ZeroDivisionError("told so")
            return i

        run = LocalRunner(n_threads)
        with pytest.raises(ZeroDivisionError, match="told so"):
            list(run.stream([partial(work, i) for i in range(100)]))
        assert run.cancelled.is_set()

    def test_an_error_does_not_wait_for_tasks_before_it(self):
        begun, ended = threading.Event(), threading.Event()
        was_told = threading.Event()

        def before():
            begun.set()
            was_told.wait(PATIENCE)
            ended.set()

        def fail():
            assert begun.wait(PATIENCE)
            raise ZeroDivisionError("told so")

        run = LocalRunner(2)
        with pytest.raises(ZeroDivisionError, match="told so"):
            list(run.stream([before, fail]))
        assert run.cancelled.is_set()
        assert not ended.is_set()  # it still runs: nobody has waited for it
        was_told.set()
        assert ended.wait(PATIENCE)

    def test_an_error_comes_before_results_that_wait(self):
        read = threading.Event()

        def fail():
            assert read.wait(PATIENCE)
            raise ZeroDivisionError("told so")

        run = LocalRunner(2)
        results = run.stream([lambda: 0, lambda: 1, fail])
        assert next(results) == 0
        read.set()
        wait_until(lambda: not members())
        with pytest.raises(ZeroDivisionError, match="told so"):
            next(results)

    @pytest.mark.parametrize("n_read", [0, 1])
    def test_who_cancels_from_elsewhere_leaves_nobody_waiting(self, n_read):
        run = LocalRunner(3)
        results = run.stream([lambda: run.cancelled.wait(0.001)] * 100)
        for _ in range(n_read):
            next(results)
        run.cancelled.set()
        with pytest.raises(CancelledError):
            list(results)
        wait_until(lambda: not members())

    def test_on_one_thread_no_task_begins_after_that(self):
        run, begun = LocalRunner(1), []
        results = run.stream([partial(begun.append, i) for i in range(3)])
        next(results)
        run.cancelled.set()
        with pytest.raises(CancelledError):
            next(results)
        assert begun == [0]

    def test_a_runner_of_its_own(self):
        run = LocalRunner(3)
        alone = run.alone()
        assert alone.n_threads == 1
        assert alone([threading.get_ident]) == [threading.get_ident()]
        run.cancelled.set()
        with pytest.raises(CancelledError):
            alone([threading.get_ident])

    @pytest.mark.parametrize("n_threads", [1, 3])
    def test_the_calling_thread_leads(self, n_threads):
        ended, others = threading.Event(), set()

        def help_until_the_end():
            others.add(threading.get_ident())
            assert ended.wait(60)

        def lead():
            while len(others) < n_threads - 1:
                assert not ended.wait(0.001)
            ended.set()
            return threading.get_ident()

        found = LocalRunner(n_threads).led([lead, *[help_until_the_end] * (n_threads - 1)])
        assert found == [threading.get_ident(), *[None] * (n_threads - 1)]
        assert threading.get_ident() not in others
        assert len(others) == n_threads - 1

    def test_nobody_waits_for_those_whose_leader_fails(self):
        ended = threading.Event()
        run = LocalRunner(2)
        with pytest.raises(ZeroDivisionError):
            run.led([lambda: 1 // 0, lambda: ended.wait(60)])
        assert run.cancelled.is_set()
        ended.set()

    def test_what_others_fail_by_comes_out_where_the_leader_is(self):
        run = LocalRunner(2)
        with pytest.raises(ZeroDivisionError):
            run.led([lambda: run.cancelled.wait(PATIENCE), lambda: 1 // 0])
        assert run.cancelled.is_set()

    @pytest.mark.parametrize("n_threads", [1, 2])
    @pytest.mark.parametrize("execute", [LocalRunner.__call__, LocalRunner.stream])
    def test_an_error_inside_a_runner_of_its_own_is_passed_on(self, n_threads, execute):
        def fail():
            raise ZeroDivisionError("told so")

        run = LocalRunner(n_threads)
        alone = run.alone()
        with pytest.raises(ZeroDivisionError, match="told so"):
            list(execute(run, [lambda: alone([fail])] * 3))
        assert run.cancelled.is_set()


def interrupted(program: str) -> list[int]:
    """How many tasks of a program had begun when Ctrl-C was raised, and when all were idle again.

    The program defines ``run``, ``begun``, a list, ``ended``, a semaphore, and ``n_threads``; its
    first task prints "ready", and Ctrl-C is sent.
    """
    program = textwrap.dedent(program) + textwrap.dedent("""
        import signal
        import threading
        from dtrees.parallel import LocalRunner

        signal.signal(signal.SIGINT, signal.default_int_handler)  # of a background job, it is not
        try:
            run()
        except KeyboardInterrupt:
            print(len(begun))
            assert all(ended.acquire(timeout=50) for _ in begun)
            meet = threading.Barrier(n_threads, timeout=50)
            LocalRunner(n_threads)([meet.wait] * n_threads)  # a call has as many threads again
            print(len(begun))
    """)
    ours, theirs = os.pipe()
    with tempfile.TemporaryFile() as errors, open(ours, encoding="utf-8") as lines:
        child = start_forked(theirs, errors.fileno(), "-c", program)
        os.close(theirs)
        try:
            assert lines.readline() == "ready\n"
            child.interrupt()
            output = lines.read()
            ended = child.wait(60)
        finally:
            child.end()
            errors.seek(0)
            print(errors.read().decode())
    assert ended == 0
    return [int(line) for line in output.split()]


@pytest.mark.one_of(2)
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
@pytest.mark.parametrize("call", ["runner(tasks)", "list(runner.stream(tasks))"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_the_work(n_threads, call):
    found = interrupted(f"""
        import threading
        from dtrees.parallel import LocalRunner

        n_threads = {n_threads}
        runner = LocalRunner(n_threads)

        begun, is_first, ended = [], threading.Lock(), threading.Semaphore(0)

        def slices():
            try:
                begun.append(1)
                if is_first.acquire(blocking=False):
                    print("ready", flush=True)
                assert runner.cancelled.wait(50)  # for ever, if nobody cancels
            finally:
                ended.release()

        def run():
            tasks = [slices] * 8
            {call}
    """)
    assert len(found) == 2  # both lines, though no task of the eight ends by itself
    assert max(found) <= n_threads
