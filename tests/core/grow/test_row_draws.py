"""Rows are drawn by their numbers, and by nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.grow._row_draws import RowDraws


def drawn(n_rows, share, chosen=None, seed=3, iteration=0):
    draws = RowDraws(n_rows, chosen)
    draws.draw(seed, iteration, share)
    return draws


@given(st.integers(1, 300), st.sampled_from([1e-9, 0.1, 0.5, 0.999, 1.0]), st.integers(0, 9))
def test_both_sides_ascend_and_are_all_rows(n_rows, share, iteration):
    draws = drawn(n_rows, share, iteration=iteration)
    assert draws.n_drawn == len(draws.drawn) >= 1
    assert sorted([*draws.drawn, *draws.others]) == list(range(n_rows))
    for rows in (draws.drawn, draws.others):
        assert (np.diff(rows.astype(int)) > 0).all()


@given(st.sets(st.integers(0, 400), min_size=5))
def test_a_row_is_drawn_by_its_number(numbers):
    whole = set(drawn(401, 0.4).drawn.tolist())
    some = np.array(sorted(numbers), dtype=np.uint32)
    draws = drawn(len(some), 0.4, some)
    wanted = whole & numbers
    assert set(draws.drawn.tolist()) == wanted or (not wanted and draws.n_drawn == 1)


def test_a_larger_share_draws_more_of_the_same_rows():
    few, many = drawn(2_000, 0.3), drawn(2_000, 0.6)
    assert set(few.drawn.tolist()) < set(many.drawn.tolist())
    assert few.n_drawn == pytest.approx(600, abs=80)


def test_where_none_is_drawn_the_nearest_is():
    (row,) = drawn(50, 1e-12).drawn
    nearest = next(
        draws.drawn.tolist()
        for share in np.arange(1, 100) / 1000
        if (draws := drawn(50, share)).n_drawn > 0
    )
    assert row == nearest[0]


def test_iterations_and_seeds_differ():
    found = [drawn(200, 0.5, seed=s, iteration=i).drawn.tolist() for s in (0, 1) for i in (0, 1)]
    assert len({tuple(rows) for rows in found}) == 4
