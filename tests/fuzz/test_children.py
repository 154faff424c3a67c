"""How children end."""

import os
import threading

import pytest

from tests.fuzz.children import Ending, in_child, outcomes


def first_and_then(act):
    yield "first"
    act()


def spin():
    while True:
        pass


def fail():
    raise ZeroDivisionError("told so")


def eat():
    bytes(2**31)


def wait():
    threading.Event().wait()


def nothing():
    pass


ENDINGS = {
    spin: "it took more time of the processor than it may",
    eat: "it took more memory than it may",
    os.abort: "it was ended by SIGABRT",
    fail: "ZeroDivisionError: told so",
    nothing: "",
}


@pytest.mark.parametrize("act", ENDINGS)
def test_endings_of_children(act):
    ending = in_child(first_and_then, act, seconds=0.5, megabytes=500)
    assert ending.found == ["first"]
    assert ending.why.splitlines()[-1:] == ENDINGS[act].splitlines()


def test_a_child_that_waits_is_given_up():
    assert in_child(first_and_then, wait, patience=1.0).why == "it was silent for 1 s"


def test_time_is_given_for_each_answer():
    # Limits are whole seconds: the first one is a second, and all of them take longer.
    ending = in_child(spins, 4, 0.35, seconds=0.5)
    assert ending == Ending(list(range(4)), "")


def spins(count, seconds):
    """Answers that take some time of the processor each."""
    for number in range(count):
        until = sum(os.times()[:2]) + seconds
        while sum(os.times()[:2]) < until:
            pass
        yield number


def judge(numbers, bad):
    for number in numbers:
        if number in bad:
            os.abort()
        yield f"good {number}"


def test_a_child_that_dies_costs_one_case():
    numbers, bad = range(10, 70), {10, 34, 35, 69}
    found = list(outcomes(judge, numbers, bad))
    assert found == [(n, "it was ended by SIGABRT" if n in bad else f"good {n}") for n in numbers]
