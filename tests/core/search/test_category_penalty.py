"""Columns of many categories: what they pay, that zero is the search without a penalty."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from tests.laws.tables import Example, coded, coded_sparse, fit, grow_parts, grow_tree

N_ROWS = 240

# Of trees that grew before there was a penalty.
DIGESTS = {
    "gini-2-False-False": "e4d91426173cdda0",
    "gini-2-False-True": "5bd54adad86dcf29",
    "gini-2-True-False": "a004615d4a3b3c69",
    "gini-2-True-True": "4117b9cec13b5778",
    "gini-4-False-False": "a4733023b6fd1255",
    "gini-4-False-True": "17d3464f39aeca0d",
    "gini-4-True-False": "9b7d316deb338240",
    "gini-4-True-True": "f3b27b679a090f54",
    "entropy-2-False-False": "fb781c87c0b7e01a",
    "entropy-2-False-True": "cec33386a6e4aa8a",
    "entropy-2-True-False": "010ebef79eb21908",
    "entropy-2-True-True": "9c4aeea9f9a8619c",
    "entropy-3-False-False": "b13ad02347e42e77",
    "entropy-3-False-True": "06be3513d2b73a34",
    "entropy-3-True-False": "97b7af805cf7345e",
    "entropy-3-True-True": "4e8201b422364d5f",
    "squared_error-0-False-False": "943841c7179ee05d",
    "squared_error-0-False-True": "85a8ee2dd3d3d62e",
    "squared_error-0-True-False": "b880f5a265d05bc1",
    "squared_error-0-True-True": "499efc50bde3c1e1",
    "poisson-0-False-False": "995f78aaca34d42a",
    "poisson-0-False-True": "4ee9a913ca92c344",
    "poisson-0-True-False": "22b7b1db09042467",
    "poisson-0-True-True": "3caf7365d79bb02b",
}


def table(seed: int, n_categories: int = 40) -> list[list]:
    """Two columns of many categories, one of which has missing values, and two of numbers."""
    rng = np.random.default_rng(seed)
    names = [f"c{k:02d}" for k in range(n_categories)]
    some = [None if rng.random() < 0.1 else names[k] for k in rng.integers(0, 18, N_ROWS)]
    return [
        [names[k] for k in rng.integers(0, n_categories, N_ROWS)],
        some,
        rng.integers(0, 50, N_ROWS).astype(float).tolist(),
        rng.normal(size=N_ROWS).tolist(),
    ]


def example(criterion: str, n_classes: int, weighted: bool, draws: bool) -> Example:
    """Half of the target follows the third column."""
    rng = np.random.default_rng(n_classes)
    columns = table(5)
    steps = np.array(columns[2]) // 10
    noise = rng.integers(0, 5, N_ROWS)
    y = np.where(rng.random(N_ROWS) < 0.5, steps, noise)
    y = y.astype(int) % n_classes if n_classes > 0 else y * 1.25
    weight = rng.choice([0.5, 1.0, 2.0, 3.25], N_ROWS) if weighted else None
    limits = {"max_features": 2, "seed": 3} if draws else {}
    return Example(columns, y, weight, criterion, limits)


def digest(tree) -> str:
    found = hashlib.sha256()
    for array in tree.arrays().values():
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


CASES = [
    (criterion, n_classes, weighted, draws)
    for criterion, n_classes in [
        ("gini", 2), ("gini", 4), ("entropy", 2), ("entropy", 3), ("squared_error", 0),
        ("poisson", 0),
    ]
    for weighted in (False, True)
    for draws in (False, True)
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_no_penalty_is_the_search_as_it_was(case):
    assert digest(fit(example(*case))) == DIGESTS["-".join(map(str, case))]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_storage_blocks_and_threads_pay_alike(case):
    given = with_penalty(example(*case), 4.0)
    matrix, target = coded(given.table), given.target
    tree = digest(grow_tree(given, matrix))
    assert tree != digest(fit(with_penalty(given, 0.0)))
    assert tree == digest(grow_tree(given, coded_sparse(given.table, 1)))
    assert tree == digest(grow_tree(given, coded(given.table, 70_000)))
    assert tree == digest(fit(given, n_threads=2))
    parts = [
        (matrix.take(rows), target.take(rows)) for rows in np.split(np.arange(N_ROWS), [70, 90])
    ]
    for gather_rows in (0, 60):
        assert tree == digest(grow_parts(given, parts, gather_rows=gather_rows))


def noisy(weight: np.ndarray | None = None) -> Example:
    """A target of one number and noise, and 120 categories that say nothing."""
    rng = np.random.default_rng(0)
    names = [f"c{k:03d}" for k in rng.integers(0, 120, N_ROWS)]
    number = rng.normal(size=N_ROWS)
    y = (number > 0) + 1.5 * rng.normal(size=N_ROWS)
    return Example([names, number.tolist()], y, weight, "squared_error", {"max_depth": 1})


def with_penalty(given: Example, penalty: float) -> Example:
    return replace(given, limits={**given.limits, "category_penalty": penalty})


class TestWhatIsChosen:
    def test_many_categories_win_by_chance_without_it(self):
        assert fit(noisy()).feature[0] == 0

    def test_with_it_the_number_wins(self):
        assert fit(with_penalty(noisy(), 1.0)).feature[0] == 1

    def test_categories_that_tell_much_are_chosen_all_the_same(self):
        given = noisy()
        told = np.array([hash_of(name) for name in given.table[0]])
        tree = fit(with_penalty(replace(given, y=given.y + 20.0 * told), 1.0))
        assert tree.feature[0] == 0

    def test_gain_is_that_of_the_split(self):
        """The penalty is for the choice only: importances and pruning see what a split gains."""
        given = noisy()
        told = np.array([hash_of(name) for name in given.table[0]])
        given = replace(given, table=given.table[:1], y=given.y + 20.0 * told)
        free, dear = fit(given), fit(with_penalty(given, 1.0))
        assert free.node_count == 3
        for name, array in free.arrays().items():
            assert array.tobytes() == dear.arrays()[name].tobytes(), name

    @pytest.mark.parametrize("penalty", [1.0, 50.0])
    def test_what_gains_no_more_than_chance_is_not_split(self, penalty):
        given = replace(noisy(), table=noisy().table[:1])
        assert fit(given).node_count == 3
        assert fit(with_penalty(given, penalty)).node_count == 1

    @pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
    @pytest.mark.parametrize("n_rows", [3, 4, 7, 20, 200])
    def test_a_name_of_each_row_is_not_split(self, criterion, n_rows):
        """However small the node is. Two names are one boundary, as two numbers would be."""
        ids = [f"{i:03d}" for i in range(n_rows)]
        y = np.arange(n_rows) % 2 + (criterion == "poisson")
        given = Example([ids], y, None, criterion, {})
        assert fit(given).node_count > 1
        assert fit(with_penalty(given, 1.0)).node_count == 1
        if n_rows > 3:
            half = [["ab"[i % 2] for i in range(n_rows)]]
            assert fit(with_penalty(replace(given, table=half), 1.0)).node_count == 3

    def test_in_a_bag_a_row_drawn_twice_is_one_row(self):
        """Names of rows are not split there either; of repeated rows of a table they may be."""
        times = np.random.default_rng(1).multinomial(N_ROWS, np.full(N_ROWS, 1 / N_ROWS))
        ids = [[f"{i:03d}" for i in range(N_ROWS)]]
        y = np.arange(N_ROWS) * 7 % 5 % 2
        given = Example(ids, y, times.astype(float), "gini", {"category_penalty": 1.0})
        assert fit(given).node_count > 1
        limits = {**given.limits, "in_bags": True}
        assert fit(replace(given, limits=limits)).node_count == 1


class TestUnitOfWeights:
    """Small weights make nothing dear, large ones are so many rows."""

    @pytest.mark.parametrize("power", [-40, -3])
    def test_small(self, power):
        tree = fit(with_penalty(noisy(), 1.0))
        small = fit(with_penalty(noisy(np.full(N_ROWS, 2.0**power)), 1.0))
        assert tree.feature.tolist() == small.feature.tolist()
        assert tree.threshold.tobytes() == small.threshold.tobytes()

    def test_many_rows_of_a_category_make_it_credible(self):
        assert fit(with_penalty(noisy(np.full(N_ROWS, 64.0)), 1.0)).feature[0] == 0


def hash_of(name: str) -> int:
    return int(name[1:]) % 7
