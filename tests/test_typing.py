"""A runner hands tasks out, and returns their results in their order."""

import pytest

from dtrees.typing import serial


def test_tasks_run_one_after_the_other_in_their_order():
    seen = []

    def task(i):
        def run():
            seen.append(i)
            return -i

        return run

    assert serial([task(i) for i in (3, 1, 2)]) == [-3, -1, -2]
    assert seen == [3, 1, 2]
    assert serial([]) == []


def test_an_error_ends_the_tasks():
    seen = []

    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        serial([fail, lambda: seen.append(1)])
    assert seen == []
