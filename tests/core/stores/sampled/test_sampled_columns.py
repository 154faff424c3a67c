"""Columns that are read afresh: by histogram, by sorted entries, and in every way of a large table.

The same tree comes from histograms of all rows in rounds, from sorted entries level by level, and
from the bag of one thread, which picks a way by rows, codes and classes.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import Bags
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.sampled._sampled_columns import drawn_columns
from tests.core.walk import assert_drawn_tree_is_greedy
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    arrays_of,
    coded,
    coded_sparse,
    fit,
    grow_blocks,
    grow_tree,
    seeded,
    tree_of_source,
)
from tests.pairs import parametrize_pairs

N_ROWS = 3000
EAGER = Tuning(level_entries=0, task_entries=0, counted_rows=0)


def dense_table(rng):
    """A column of every kind: few codes, a common code, many codes, missing values, labels."""
    import pandas as pd

    mostly = np.where(rng.random(N_ROWS) < 0.94, 0.0, rng.integers(1, 40, N_ROWS))
    holes = rng.normal(size=N_ROWS)
    holes[rng.random(N_ROWS) < 0.2] = np.nan
    rare = np.where(rng.random(N_ROWS) < 0.97, np.nan, rng.integers(0, 5, N_ROWS))
    return pd.DataFrame(
        {
            "two": rng.integers(0, 2, N_ROWS).astype(float),
            "common": mostly,
            "missing": rare,
            "some": rng.integers(0, 60, N_ROWS).astype(float),
            "holes": holes,
            "many": rng.normal(size=N_ROWS),
            "label": pd.Categorical(rng.choice(list("abcdefghijklmno"), N_ROWS)),
        }
    )


def sparse_table(rng):
    """Common words and rare ones; rows of few cells and of many."""
    share = rng.random(400) ** 6
    counts = rng.poisson(share * 2, (N_ROWS, 400))
    counts[:20] = rng.poisson(0.9, (20, 400))
    return sp.csr_array(counts.astype(float))


TABLES = {"dense": dense_table, "sparse": sparse_table}
TARGETS = {
    "two classes": lambda score: (score > 0).astype(int),
    "three classes": lambda score: np.digitize(score, [-0.5, 0.5]),
    "forty classes": lambda score: (score * 1e6).astype(int) % 40,
    "numbers": lambda score: np.round(score, 3),
}
GINI, MSE = "gini", "squared_error"


def example(table, kind, weighted):
    rng = np.random.default_rng(5)
    X = TABLES[table](rng)
    first = X["some"].to_numpy() / 30 - 1 if table == "dense" else X[:, [0]].toarray()[:, 0] - 1
    y = TARGETS[kind](first + rng.normal(size=N_ROWS))
    weights = rng.integers(0, 4, N_ROWS) / 2 if weighted else None
    make = Target.regression if kind == "numbers" else Target.classification
    return X, make(y, weights, spare_bits=5)


@pytest.mark.one_of(4)
@parametrize_pairs(
    max_bins=[255, None],
    table=TABLES,
    kind=TARGETS,
    weighted=[False, True],
    random_splits=[False, True],
)
def test_every_way_gives_the_same_tree(max_bins, table, kind, weighted, random_splits):
    X, target = example(table, kind, weighted)
    book, coded = CodeBook.fit_encode(X, max_bins=max_bins)
    rules = GrowthRules(
        criterion=MSE if kind == "numbers" else GINI,
        max_features=3 if table == "dense" else 20,
        random_splits=random_splits,
        seed=1,
        min_samples_leaf=1 if kind != "three classes" else 2,
    )
    values = book.code_values()
    bags = Bags(2, 1.0, np.arange(N_ROWS, dtype=np.uint64))
    growth = ForestGrowth(coded, target, rules, bags, book.thresholds, values=values)
    tree = growth.tree(0)
    assert tree.node_count > 100
    bag = target.bagged(bags.multiplicity(0))
    levels = DatasetSource(coded, bag, rules, n_threads=2, tuning=EAGER, values=values)
    assert tree_of_source(levels, book.thresholds).equals(tree)
    halves = [np.arange(0, 1100), np.arange(1100, N_ROWS)]
    parts = [(coded.take(rows), bag.take(rows)) for rows in halves]
    assert grow_blocks(parts, rules, book.thresholds, values, gather_rows=150).equals(tree)
    # in the memory of another tree
    other = growth.tree(1)
    assert growth.tree(0).equals(tree)
    assert not other.equals(tree)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers"])
def test_more_rows_than_fit_a_packed_cell(kind, random_splits):
    """Above 2,097,151 rows two classes are not packed in one number."""
    n_rows = (1 << 21) + 50_000
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (n_rows, 2)).astype(np.float32)
    y = TARGETS[kind](X[:, 0] / 25 - 1 + rng.normal(size=n_rows).astype(np.float32))
    make = Target.regression if kind == "numbers" else Target.classification
    book, coded = CodeBook.fit_encode(X)
    rules = GrowthRules(
        criterion=MSE if kind == "numbers" else GINI,
        max_features=1,
        random_splits=random_splits,
        max_depth=3,
    )
    target = make(y)
    values = book.code_values()
    tree = ForestGrowth(coded, target, rules, None, book.thresholds, values=values).tree(0)
    assert tree.node_count == 15
    halves = np.array_split(np.arange(n_rows), 2)
    parts = [(coded.take(rows), target.take(rows)) for rows in halves]
    assert grow_blocks(parts, rules, book.thresholds, values).equals(tree)


def dataset_of(**limits):
    example = seeded("gini", 3, "none", n_rows=30, **limits)
    return Dataset(coded(example.table), example.target, example.rules)


@given(st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(1, 12), st.booleans())
def test_draws_are_a_permutation_that_may_be_asked_for_in_parts(path, first, count, weighted):
    n = len(seeded("gini", 3, "none").table)
    weights = tuple(int(2.0 ** (3 * j)) for j in range(n)) if weighted else None
    dataset = dataset_of(max_features=2, seed=5, column_weights=weights)
    whole = drawn_columns(dataset, path, 0, n).tolist()
    assert sorted(whole) == list(range(n))
    assert drawn_columns(dataset, path, first, count).tolist() == whole[first : first + count]


@pytest.mark.parametrize("light", [2**35, 2**40 // 5])  # with next to no try, and with some
def test_columns_are_drawn_in_proportion_to_their_weights(light):
    n = len(seeded("gini", 3, "none").table)
    weights = np.array([2**40, 2**39, *[light] * (n - 2)])
    dataset = dataset_of(max_features=2, seed=5, column_weights=tuple(weights.tolist()))
    drawn = np.array([drawn_columns(dataset, path, 0, 2) for path in range(4_000)])
    share = weights / weights.sum()
    second = [sum(share[k] * share[j] / (1 - share[k]) for k in range(n) if k != j) for j in (0, 1)]
    for place, expected in ((0, share[:2]), (1, second)):
        found = np.bincount(drawn[:, place], minlength=n)[:2] / len(drawn)
        np.testing.assert_allclose(found, expected, atol=0.025)


def test_columns_in_their_order_where_none_is_drawn():
    dataset = dataset_of()
    n = len(seeded("gini", 3, "none").table)
    assert drawn_columns(dataset, 7, 0, 99).tolist() == list(range(n))


TWO_DRAWN = {"max_features": 2, "seed": 9}


@pytest.mark.one_of(6)
@pytest.mark.parametrize("kind", ["ties", "counts", "mostly", "mostly a category", "hybrid"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_cells_hold_the_sums_of_their_rows(case, kind):
    example = seeded(
        *case, kinds=(kind, "ties", kind, "categories"), n_rows=60, **TWO_DRAWN, max_depth=3
    )
    assert_drawn_tree_is_greedy(fit(example), example)


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_many_rows_and_few_codes(case):
    example = seeded(*case, kinds=("ties", "counts", "mostly", "hybrid"), n_rows=3000, **TWO_DRAWN)
    limited = Example(
        example.table, example.y, example.weight, example.criterion, {**TWO_DRAWN, "max_depth": 6}
    )
    tree = fit(limited)
    assert arrays_of(tree) == arrays_of(grow_tree(limited, coded(limited.table, 300)))
    assert arrays_of(tree) == arrays_of(fit(limited, n_threads=2))


@pytest.mark.parametrize("common", [0, 3, 6])
def test_a_common_code_has_what_the_others_leave(common):
    """Wherever it stands among the codes, in a node in which it still is the most common one."""
    rng = np.random.default_rng(common)
    column = np.where(rng.random(400) < 0.06, rng.integers(0, 7, 400), common)
    other = rng.integers(0, 3, 400)
    y = (column > 3) + 2 * (other == 1) + (rng.random(400) < 0.05)
    table = [column.astype(float).tolist(), other.astype(float).tolist()]
    for criterion in ("gini", "squared_error"):
        target = y if criterion == "gini" else y * 1.5
        limits = {"max_features": 1, "seed": 0, "max_depth": 4}
        example = Example(table, target, None, criterion, limits)
        tree = fit(example)
        assert_drawn_tree_is_greedy(tree, example)
        assert arrays_of(tree) == arrays_of(fit(example, n_threads=2))


@pytest.mark.parametrize("largest", [None, 300], ids=["8 bits", "16 bits"])
def test_a_node_without_the_common_code(largest):
    """Which stands between two codes of the node, and is no neighbour of its threshold."""
    column = np.full(400, 3)
    column[:20] = [1, 2, 4, 5] * 5
    rare = (np.arange(400) < 20).astype(int)
    y = np.where(rare == 1, 1 + (column > 3), 0)
    table = [column.astype(float).tolist(), rare.astype(float).tolist()]
    for criterion in ("gini", "squared_error"):
        example = Example(table, y, None, criterion, {"max_features": 1, "seed": 1})
        tree = grow_tree(example, coded(table, largest))
        assert tree.feature.tolist() == [1, -2, 0, -2, -2]
        assert tree.threshold[2] == 3.0  # between 2 and 4
        assert arrays_of(tree) == arrays_of(fit(example, n_threads=2))


@pytest.mark.parametrize("largest", [1, 10**4, 10**9])
def test_sums_of_any_size(largest):
    """Cells are as narrow as the sums of a node allow."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 6, (3, 200)).astype(float).tolist()
    y = rng.integers(0, largest + 1, 200).astype(float)
    example = Example(table, y, None, "squared_error", {**TWO_DRAWN, "max_depth": 3})
    assert_drawn_tree_is_greedy(fit(example), example)


KINDS = ("counts", "mostly", "distinct", "categories", "mostly a category", "hybrid", "ties")
THREE_DRAWN = {"max_features": 3, "seed": 7}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("storage", ["sparse", "16 bits", "32 bits"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_storage_does_not_matter(case, storage):
    example = seeded(*case, kinds=KINDS, n_rows=400, **THREE_DRAWN)
    matrix = {
        "sparse": lambda: coded_sparse(example.table, 5),
        "16 bits": lambda: coded(example.table, 300),
        "32 bits": lambda: coded(example.table, 70_000),
    }[storage]()
    expected = fit(example)
    assert expected.node_count > 40
    assert arrays_of(grow_tree(example, matrix)) == arrays_of(expected)


@pytest.mark.parametrize("n_rows", [2, 15, 16, 17, 60])
def test_few_rows_of_sparse_columns(n_rows):
    """Rows are found by their places or by search; columns without any are not looked at."""
    rng = np.random.default_rng(n_rows)
    cells = np.where(rng.random((30, n_rows)) < 0.15, rng.integers(1, 4, (30, n_rows)), 0)
    table = cells.astype(float).tolist()
    y = rng.integers(0, 2, n_rows)
    y[:2] = 0, 1
    example = Example(table, y, None, "gini", {"max_features": 4, "seed": 1})
    tree = grow_tree(example, coded_sparse(table, n_rows))
    assert_drawn_tree_is_greedy(tree, example)
    assert arrays_of(tree) == arrays_of(fit(example))


def test_small_nodes_of_a_large_sparse_table():
    """A column has many more stored rows than the node: these are looked for one by one."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((8, 4000)) < 0.4, rng.integers(1, 6, (8, 4000)), 0).astype(float)
    cells[0] = np.arange(4000) < 20  # few rows part from the others at once
    y = np.where(cells[0] == 1, rng.integers(0, 2, 4000), 2)
    example = Example(cells.tolist(), y, None, "gini", {"max_features": 7, "seed": 2})
    tree = grow_tree(example, coded_sparse(example.table, 3))
    assert arrays_of(tree) == arrays_of(fit(example))
    assert (tree.impurity[tree.test == 0] == 0).all()
