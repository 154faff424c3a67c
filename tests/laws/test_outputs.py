"""Laws of several outputs: a tree of them is the slow one, and outputs have no order."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding.outputs import Outputs
from dtrees.coding.target import TargetUnits
from dtrees.core.data.tuning import Tuning
from dtrees.core.model.tree import Tree
from tests.laws.tables import (
    CLASSIFICATION,
    KINDS,
    ORDERED,
    Example,
    coded,
    coded_sparse,
    examples,
    fill_target,
    fit,
    grow_tree,
)
from tests.laws.test_growth import assert_equal
from tests.oracle.greedy import assert_tree_is_greedy

SEEDS = st.integers(0, 2**32 - 1)
CRITERIA = ("gini", "entropy", "squared_error", "absolute_error", "poisson")


@dataclass(frozen=True)
class OutputsExample(Example):
    """An example whose y has several columns."""

    @cached_property
    def target(self) -> Outputs:
        from_zero = partial(TargetUnits.of_numbers, center=False)
        units = from_zero if self.criterion == "poisson" else None
        of_classes = self.criterion in CLASSIFICATION
        return Outputs.of(list(self.y.T), self.weight, of_classes, units=units)


def with_outputs(example: Example, y: np.ndarray) -> OutputsExample:
    limits = dict(example.limits)
    if example.criterion == "poisson":  # a function of several outputs: categories pay nothing
        limits["category_penalty"] = 0.0
    return OutputsExample(example.table, y, example.weight, example.criterion, limits)


@st.composite
def several(draw, **given):
    """An example of two outputs or more, of any numbers of classes and any scale.

    Or of labels: of two classes each, some of which have no row of one.
    """
    example = draw(examples(criteria=CRITERIA, **given))
    rng = random.Random(draw(SEEDS))
    has_labels = example.criterion == "gini" and draw(st.booleans())
    columns = [example.y % 2 if has_labels else example.y]
    for _ in range(draw(st.sampled_from([1, 2, 6, 40]) if has_labels else st.integers(1, 3))):
        table = [rng.choice(example.table)]
        style = rng.choice(["real", "integers"])
        n_classes = min(rng.randint(1, 8), 2) if has_labels else rng.randint(1, 4)
        columns.append(fill_target(example.criterion, n_classes, table, rng, style))
    return with_outputs(example, np.column_stack(columns))


def check(example: Example, tree: Tree) -> None:
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)


@given(several())
def test_fast_is_slow(example):
    check(example, fit(example))


@given(several(kinds=("categories", "hybrid", "many categories"), max_values=13, max_rows=40))
def test_categories(example):
    check(example, fit(example))


@given(several(draws=True, random_splits=True), SEEDS)
def test_dense_is_sparse(example, seed):
    assert_equal(fit(example), grow_tree(example, coded_sparse(example.table, seed)))


@given(several(draws=True, random_splits=True), st.sampled_from([300, 70_000]))
def test_width(example, largest_code):
    assert_equal(fit(example), grow_tree(example, coded(example.table, largest_code)))


@given(several(draws=True, random_splits=True), st.integers(2, 3), st.sampled_from([0, 1 << 19]))
def test_threads(example, n_threads, level_entries):
    tuning = Tuning(level_entries=level_entries, task_entries=0)
    assert_equal(fit(example), fit(example, n_threads=n_threads, tuning=tuning))


@given(several(max_rows=150), st.integers(1, 2), st.sampled_from([0, 2, 5, 9]))
def test_histograms(example, n_threads, counted_rows):
    counted = Tuning(counted_rows=counted_rows, level_entries=0, task_entries=0)
    assert_equal(fit(example), fit(example, n_threads=n_threads, tuning=counted))


@given(several(draws=True, random_splits=True, weights=("integers",)))
def test_weights_are_repeats(example):
    rows = np.repeat(np.arange(example.n_rows), example.weight.astype(int))
    limits = {k: v for k, v in example.limits.items() if not k.startswith("min_samples")}
    example = replace(example, limits=limits)
    repeated = replace(example.take(rows), weight=None)
    assert_equal(fit(example), fit(repeated), apart_from=("n_node_samples",))


@given(several(draws=True, random_splits=True), SEEDS)
def test_outputs_may_be_permuted(example, seed):
    order = np.random.default_rng(seed).permutation(example.y.shape[1])
    tree, other = fit(example), fit(replace(example, y=example.y[:, order]))
    assert_equal(tree, other, apart_from=("statistics",))
    n_values = [1] * len(order) if tree.is_regression else tree.n_classes
    values = np.split(tree.value, np.cumsum(n_values)[:-1], axis=1)
    assert np.array_equal(np.hstack([values[k] for k in order]), other.value)


@given(
    examples(ORDERED, CRITERIA[:3], min_classes=3, weights=("none", "integers"))
    | examples(criteria=("absolute_error",), draws=True, random_splits=True)
)
def test_an_output_twice_is_the_output(example):
    example = replace(example, class_weight=None)
    once, twice = fit(example), fit(with_outputs(example, np.column_stack([example.y] * 2)))
    rounded = ("impurity",) if once.criterion == "gini" and once.n_values == 2 else ()
    assert_equal(once, twice, apart_from=("statistics", *rounded))
    assert np.array_equal(np.hstack([once.value] * 2), twice.value)


@given(several(kinds=tuple({*KINDS} - {"many categories"})), SEEDS)
def test_rows_have_no_order(example, seed):
    order = np.random.default_rng(seed).permutation(example.n_rows)
    assert_equal(fit(example), fit(example.take(order)))
