"""How much goes together in the partitioned regime."""

import dask
import numpy as np
import pytest
from hypothesis import given as any_of
from hypothesis import strategies as st

import dtrees
from dtrees.parallel import limits
from dtrees.parallel.memory import check_room
from dtrees.parallel.position_cache import room_of_positions


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("dtrees.gather-rows", -5, "a number of rows, 0 or more"),
        ("dtrees.gather-rows", "abc", "a number of rows, 0 or more"),
        ("dtrees.gather-rows", 1.5, "a number of rows, 0 or more"),
        ("dtrees.histogram-budget", -5, "0 bytes or more"),
        ("dtrees.histogram-budget", "abc", "Could not interpret 'abc'"),
    ],
)
def test_settings_that_say_nothing(key, given, words):
    X = np.arange(60.0).reshape(30, 2)
    forest = dtrees.RandomForestClassifier(2, regime="partitioned")
    with (
        dask.config.set({key: given, "scheduler": "synchronous"}),
        pytest.raises(ValueError, match=rf"'{key}' = .*{words}"),
    ):
        forest.fit(X, X[:, 0] > 9)


@pytest.mark.parametrize(
    ("key", "ask"),
    [
        ("dtrees.client-histograms", limits.client_bytes),
        ("dtrees.client-memory", lambda: check_room(1, (1, 1))),
        ("dtrees.position-cache", lambda: room_of_positions(2**30, 1)),
    ],
)
@pytest.mark.parametrize(
    ("given", "words"), [("-1 MB", "0 bytes or more"), ("much", "Could not interpret 'much'")]
)
def test_numbers_of_bytes_that_are_none(key, ask, given, words):
    with dask.config.set({key: given}), pytest.raises(ValueError, match=rf"'{key}' = .*{words}"):
        ask()


@pytest.mark.parametrize("given", [0, 7, "7", np.int64(7)])
def test_rows_that_are_gathered(given):
    with dask.config.set({"dtrees.gather-rows": given}):
        assert limits.gather_rows_of(10**9) == int(given)
    assert limits.gather_rows_of(10**9) == 10**9 // limits.SPREAD_NODES


def test_batches():
    """As many as even out, as large as memory allows."""
    assert limits.bytes_of_batch(320, 2, []) == 10
    assert limits.bytes_of_batch(10**12, 2, []) == limits.BATCH_BYTES
    assert limits.bytes_of_batch(10**12, 2, [2**40, 48 * 2**30]) == 2 * 2**30
    assert limits.bytes_of_batch(1, 256, [2**30]) == 1


@any_of(
    st.floats(0, 1e9), st.integers(1, 500), st.floats(0, 1e12), st.integers(1, 8),
    st.integers(1, 64),
)  # fmt: skip
def test_trees_of_a_wave_fit_and_are_not_too_much_work(n_rows, n_drawn, room, row_bytes, n_threads):
    n_trees = limits.trees_at_once(n_rows, n_drawn, room, row_bytes, n_threads)
    assert n_trees >= 1
    if n_trees > 1:
        assert n_trees * n_rows * row_bytes <= room
        assert n_trees * n_rows * n_drawn <= limits.WAVE_CELLS * n_threads
    elif n_rows >= 1:  # one more would be too many
        assert 2 * n_rows * row_bytes > room or 2 * n_rows * n_drawn > limits.WAVE_CELLS * n_threads


def test_bytes_of_a_row_in_an_open_node():
    found = [limits.bytes_of_open_row(bags, sets) for bags in (0, 1) for sets in (0, 1)]
    assert found == [4, 6, 6, 8]


@pytest.mark.parametrize(
    ("n_bytes", "n_workers", "expected"),
    [(0, 4, 1), (1, 4, 1), (2**25, 4, 1), (2**25 + 1, 4, 2), (2**40, 4, 4)],
)
def test_stretches_are_as_few_as_will_do(n_bytes, n_workers, expected):
    assert limits.n_stretches(n_bytes, n_workers) == expected


def test_sizes_in_words_and_in_numbers():
    with dask.config.set({"dtrees.histogram-budget": "3 MiB", "dtrees.client-histograms": 17}):
        assert limits.histogram_budget() == 3 * 2**20
        assert limits.client_bytes() == 17
    assert limits.client_bytes() == 8 * 2**20
