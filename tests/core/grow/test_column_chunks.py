"""Threads share the columns of large nodes: which thread has which does not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import Example, fit

IN_CHUNKS = {"n_threads": 2, "tuning": Tuning(level_entries=0, task_entries=0)}


def table_with(column, places, n_columns=40):
    """One column at some places among constant ones."""
    return [column if j in places else [7.0] * len(column) for j in range(n_columns)]


@pytest.mark.parametrize("places", [[0, 39], [13, 14], [5, 20, 33]])
@pytest.mark.parametrize("counted_rows", [0, 1 << 40], ids=["counted", "sorted"])
def test_equal_columns_of_several_chunks(places, counted_rows):
    """The lowest wins, whichever chunk is done first."""
    column = [float(i // 9) for i in range(300)]
    y = (np.arange(300) > 130).astype(int)
    example = Example(table_with(column, places), y, None, "gini")
    tuning = replace(IN_CHUNKS["tuning"], counted_rows=counted_rows)
    tree = fit(example, n_threads=3, tuning=tuning)
    assert set(tree.feature[tree.test > 0].tolist()) == {places[0]}
    assert tree.equals(fit(example))


def test_ties_are_drawn_among_all_chunks():
    column = [float(i // 9) for i in range(100)]
    y = (np.arange(100) > 50).astype(int)
    found = set()
    for seed in range(40):
        limits = {"random_ties": True, "seed": seed, "max_depth": 1}
        example = Example(table_with(column, [2, 17, 38]), y, None, "gini", limits)
        tree = fit(example, **IN_CHUNKS)
        assert tree.equals(fit(example))
        found.add(int(tree.feature[0]))
    assert found == {2, 17, 38}


@pytest.mark.parametrize("seed", range(5))
def test_draws_go_on_until_a_column_varies(seed):
    column = [float(i) for i in range(60)]
    limits = {"max_features": 2, "seed": seed}
    example = Example(table_with(column, [23]), np.arange(60) % 2, None, "gini", limits)
    tree = fit(example, **IN_CHUNKS)
    assert set(tree.feature[tree.test > 0].tolist()) == {23}
    assert tree.n_leaves == 60
    assert tree.equals(fit(example))
