"""What is changed of Dask's configuration while data are sent, and changed back."""

import threading

import dask
import pytest

from dtrees.parallel.client import sending_data

KEY = "distributed.admin.large-graph-warning-threshold"


@pytest.mark.parametrize("first", [0, 1])
def test_threads_that_send_at_a_time(first):
    """The last one changes it back, whichever has begun first."""
    before, seen = dask.config.get(KEY), []
    are_in = threading.Barrier(2)
    is_out = threading.Event()

    def send(number):
        with sending_data():
            are_in.wait(30)
            if number != first:
                assert is_out.wait(30)
            seen.append(dask.config.get(KEY))
        is_out.set()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 2
    assert before not in seen
    assert dask.config.get(KEY) == before


def test_an_error_changes_it_back():
    before = dask.config.get(KEY)

    def fail():
        with sending_data():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert dask.config.get(KEY) == before
