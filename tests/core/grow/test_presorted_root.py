"""Entries of the root are sorted once, whatever their width; columns of few codes have none."""

from __future__ import annotations

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.core.grow.test_level_wise_node import Threads, large
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    arrays_of,
    coded,
    coded_sparse,
    fit,
    grow_parts,
    seeded,
)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("criterion", "n_classes", "weights"),
    [
        ("gini", 2, False),
        pytest.param("gini", 3, False, marks=pytest.mark.long),
        pytest.param("gini", 2, True, marks=pytest.mark.long),
        pytest.param("entropy", 3, True, marks=pytest.mark.long),
        pytest.param("squared_error", 0, False, marks=pytest.mark.long),
        ("poisson", 0, True),
    ],
)
def test_more_rows_than_16_bits_count(criterion, n_classes, weights):
    # Above 65,535 rows entries have 64 bits, below they have 32.
    example = large(criterion, 70_000, n_classes, weights=weights, max_depth=7)
    alone = fit(example)
    assert weights or alone.n_node_samples[0] == 70_000
    assert alone.equals(fit(example, run=Threads(2), n_threads=2))
    sparse = [(coded_sparse(example.table, 1), example.target)]
    assert alone.equals(grow_parts(example, sparse))
    matrix, target = coded(example.table), example.target
    halves = [slice(0, 35_000), slice(35_000, None)]
    rows = [np.arange(70_000)[half] for half in halves]
    parts = [(matrix.take(r), target.take(r)) for r in rows]
    assert alone.equals(grow_parts(example, parts, gather_rows=20_000))


def test_more_cells_than_rows():
    # Codes times classes are many more than rows: the column is sorted, not counted.
    rng = np.random.default_rng(0)
    column = rng.integers(0, 3_000, 70_000).astype(float).tolist()
    y = rng.integers(0, 200, 70_000)
    example = Example([column, [v % 7 for v in column]], y, None, "gini", {"max_depth": 3})
    alone = fit(example)
    assert alone.equals(fit(example, run=Threads(2), n_threads=2))
    assert alone.equals(grow_parts(example, [(coded_sparse(example.table, 1), example.target)]))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("n_rows", [1, 2, 127, 128, 129, 700])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_columns_are_counted_or_sorted(case, n_rows):
    """The root counts a column where its cells are few for its rows; else it sorts entries."""
    example = seeded(*case, n_rows=n_rows)
    matrix, target = coded(example.table), example.target
    expected = arrays_of(fit(example, tuning=Tuning(counted_rows=1 << 40)))
    for n_threads in (1, 3):
        found = grow_parts(example, [(matrix, target)], n_threads=n_threads)
        assert arrays_of(found) == expected
    narrow = grow_parts(example, [(matrix, target)], tuning=Tuning(counted_rows=n_rows))
    assert arrays_of(narrow) == expected
