"""Tasks that come up while others run: all of them run once, whoever helps."""

import threading

import pytest

from dtrees.core.grow.work_queue import WorkQueue
from dtrees.parallel import LocalRunner
from dtrees.typing import serial

RUNNERS = pytest.mark.parametrize(
    "run", [serial, LocalRunner(2), LocalRunner(3)], ids=["serial", "two", "three"]
)


@RUNNERS
def test_what_is_left_runs_once(run):
    queue, done = WorkQueue(), []

    def first():
        for i in range(50):
            queue.put(lambda i=i: done.append(i))
        queue.close()
        queue.help()
        return "first"

    found = run([first, queue.help, queue.help])
    assert found == ["first", None, None]
    assert sorted(done) == list(range(50))


@RUNNERS
def test_a_block_of_tasks_comes_before_what_waits_and_in_order(run):
    queue, later = WorkQueue(), []

    def first():
        queue.put(lambda: later.append(1))
        found = queue.run([lambda i=i: i * i for i in range(20)])
        queue.close()
        queue.help()
        return found

    assert run([first, queue.help])[0] == [i * i for i in range(20)]
    assert later == [1]
    assert queue.run([]) == []


def test_others_help_while_the_first_one_is_busy():
    queue, has_helped = WorkQueue(), threading.Event()

    def first():
        queue.put(has_helped.set)
        found = has_helped.wait(60)
        queue.close()
        return found

    assert LocalRunner(2)([first, queue.help])[0]


@pytest.mark.parametrize("in_block", [False, True])
def test_a_task_that_fails_ends_all_of_them(in_block):
    queue, is_there = WorkQueue(), threading.Event()

    def fails():
        is_there.set()
        raise KeyError("this one")

    def first():
        queue.put(fails)
        assert is_there.wait(60)
        try:
            if in_block:
                queue.run([threading.Event().is_set] * 3)
        finally:
            queue.close()
            queue.help()

    with pytest.raises(KeyError, match="this one"):
        LocalRunner(2)([first, queue.help])
    assert queue.failed


def test_what_this_thread_runs_raises_here():
    queue = WorkQueue()
    with pytest.raises(ZeroDivisionError):
        queue.run([lambda: 1 // 0])
    assert queue.failed
    queue.put(lambda: pytest.fail("what waits is dropped"))
    queue.help()


def test_tasks_run_as_long_as_enough_of_them_wait():
    queue, done = WorkQueue(), []
    for i in range(5):
        queue.put(lambda i=i: done.append(i))
    queue.help_while(3)
    assert done == [0, 1, 2]
    queue.help_while(1)
    queue.help_while(1)
    assert done == list(range(5))
