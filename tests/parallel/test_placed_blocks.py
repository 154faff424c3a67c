"""Blocks of rows on workers: who gets which, and how they are moved."""

from hypothesis import given
from hypothesis import strategies as st

from dtrees.parallel.placed_blocks import even_moves, share_out

NAMES = "abcd"
THREADS = st.fixed_dictionaries({name: st.integers(1, 8) for name in NAMES})
BLOCKS = st.lists(st.tuples(st.integers(1, 50), st.sampled_from(NAMES)), max_size=30)


def most(lengths, workers, threads):
    """Rows of the thread that has the most."""
    loads = dict.fromkeys(threads, 0)
    for length, worker in zip(lengths, workers, strict=True):
        loads[worker] += length
    return max(loads[worker] / threads[worker] for worker in threads)


def fair(lengths, threads):
    """What no thread needs to exceed."""
    largest = max(lengths, default=0) / min(threads.values())
    return sum(lengths) / sum(threads.values()) + largest


@given(BLOCKS, THREADS)
def test_moves(blocks, threads):
    lengths, workers = [length for length, _ in blocks], [worker for _, worker in blocks]
    moves = even_moves(lengths, workers, threads)
    after = [moves.get(number, worker) for number, worker in enumerate(workers)]
    assert all(workers[number] != worker for number, worker in moves.items())
    assert most(lengths, after, threads) <= most(lengths, workers, threads)
    assert most(lengths, after, threads) <= fair(lengths, threads)
    assert even_moves(lengths, after, threads) == {}


@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.lists(st.sampled_from("abcdxy"), unique=True)), max_size=30
    ),
    THREADS,
)
def test_shares(blocks, threads):
    lengths, holders = [length for length, _ in blocks], [have_it for _, have_it in blocks]
    workers = share_out(lengths, holders, threads)
    for worker, have_it in zip(workers, holders, strict=True):
        assert worker in threads
        assert worker in have_it or not set(have_it) & set(threads)
    assert share_out(lengths, [[worker] for worker in workers], threads) == workers


@given(st.lists(st.integers(1, 50), max_size=30), THREADS)
def test_shares_of_what_everyone_has(lengths, threads):
    for holders in (list(NAMES), []):
        workers = share_out(lengths, [holders] * len(lengths), threads)
        assert most(lengths, workers, threads) <= fair(lengths, threads)
