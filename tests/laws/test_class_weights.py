"""Laws of shared growth where each set has class weights of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut

from dtrees import (
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from dtrees.coding.target import class_integers
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.shared import grow
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import (
    ClassWeights,
    Resampling,
    of_sets,
    without_class_weights,
)
from dtrees.core.membership.shares import Shares
from dtrees.core.model.tree import Tree
from dtrees.model_selection import cross_val_predict
from dtrees.parallel import LocalRunner
from tests.laws.tables import (
    CLASSIFICATION,
    coded,
    coded_mixed,
    coded_sparse,
    examples,
    grow_tree,
    seeded,
)
from tests.laws.test_growth import assert_equal
from tests.laws.test_shared import SEEDS, SHARES, assume_weights, folds, masks
from tests.registers import wide_registers

TOGETHER = Tuning(shared_rows=0)
KINDS = st.sampled_from(["balanced", "any"])


def tables(**more):
    """Tables of classes; rows have whole weights."""
    whole = ("none", "integers", "zeros")
    given = {"weights": whole, "draws": True, "random_splits": True}
    return examples(criteria=CLASSIFICATION, **given, **more)


def weighing(target, sets: Resampling, kind: str, seed: int) -> Resampling:
    """Sets with balanced weights, as the fit of each makes them, or with any other ones."""
    totals = sets.class_totals(target)
    if kind == "balanced":

        def integers(own):
            return class_integers("balanced", target.classes, own)

        return sets.weighing(ClassWeights.of_totals(totals, integers))
    rng = np.random.default_rng(seed)
    multiplier = rng.integers(1, 9, totals.shape)
    return sets.weighing(ClassWeights(multiplier, rng.integers(0, 5, len(totals))))


def check(example, rows, kind, **more) -> list[Tree]:
    assume_weights(example, rows)
    return check_sets(example, rows, kind, **more)


def check_sets(example, rows, kind, *, matrix=None, shares=None, **source) -> list[Tree]:
    """Every set has the tree that it gets alone, from integers with its own weights."""
    matrix = coded(example.table) if matrix is None else matrix
    target = without_class_weights(example.target)
    sets = weighing(target, of_sets(rows), kind, len(rows))
    own = (shares or Shares()).rules_of_sets(example.rules, sets, target)
    source = {"tuning": TOGETHER, "values": example.values, **source}
    here = DatasetSource(matrix, target, example.rules, **source)
    thresholds = example.thresholds
    trees = grow(here, own, sets, thresholds)
    for number, tree in enumerate(trees):
        mine = sets.target_of(number, target)
        alone = example
        if shares is not None:
            rules = shares.rules(example.rules, mine)
            names = ("min_samples_split", "min_samples_leaf", "min_weight_leaf")
            limits = {name: getattr(rules, name) for name in names}
            alone = replace(example, limits=example.limits | limits)
        assert_equal(grow_tree(alone, matrix, mine), tree)
    return list(trees)


class TestSetsAreFits:
    @given(tables(), st.integers(2, 11), SEEDS, KINDS)
    def test_folds(self, grown_so_far, example, n_folds, seed, kind):
        grown_so_far.clear()
        trees = check(example, folds(example.n_rows, min(n_folds, example.n_rows), seed), kind)
        if sum(tree.node_count > 1 for tree in trees) > 1:
            assert sum(sets.n_shared_nodes for sets in grown_so_far) > 0

    @given(tables(max_rows=120), st.integers(2, 7), SEEDS, KINDS)
    def test_some_go_alone(self, example, n_folds, seed, kind):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, kind, tuning=Tuning(shared_rows=40))

    @given(tables(), st.integers(1, 9), SEEDS, KINDS, st.sampled_from([0, 5000]))
    def test_masks(self, example, n_sets, seed, kind, shared_rows):
        rows = masks(example.n_rows, n_sets, seed)
        check(example, rows, kind, tuning=Tuning(shared_rows=shared_rows))

    @given(tables(), st.integers(2, 5), SEEDS, KINDS, st.sampled_from([300, 70_000]))
    def test_wide_columns(self, example, n_folds, seed, kind, largest_code):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, kind, matrix=coded(example.table, largest_code))

    @given(tables(max_rows=80), st.integers(2, 5), SEEDS, KINDS, st.sampled_from([0, 40]))
    def test_sparse_columns(self, example, n_folds, seed, kind, shared_rows):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        code = coded_sparse if seed % 2 else coded_mixed
        matrix, tuning = code(example.table, seed), Tuning(shared_rows=shared_rows)
        check(example, rows, kind, matrix=matrix, tuning=tuning)

    @given(tables(), st.integers(2, 5), SEEDS, KINDS)
    def test_plain_loops(self, example, n_folds, seed, kind):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        with wide_registers(False):
            check(example, rows, kind)

    @given(tables(), st.integers(2, 5), SEEDS, KINDS, st.sampled_from([0, 30]))
    def test_counted_columns(self, example, n_folds, seed, kind, shared_rows):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, kind, tuning=Tuning(counted_rows=0, shared_rows=shared_rows))

    @given(tables(), st.integers(2, 5), SEEDS, KINDS, SHARES)
    def test_shares(self, example, n_folds, seed, kind, shares):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, kind, shares=shares)

    @given(tables(max_rows=120), st.integers(2, 6), SEEDS, KINDS, st.sampled_from([0, 60]))
    def test_threads(self, example, n_folds, seed, kind, shared_rows):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        tuning = Tuning(task_entries=1, level_entries=1, shared_rows=shared_rows)
        check(example, rows, kind, run=LocalRunner(2), n_threads=2, tuning=tuning)


@pytest.mark.one_of(32)
@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("code", [coded, coded_sparse], ids=["dense", "sparse"])
@pytest.mark.parametrize("draws", [{}, {"max_features": 2}], ids=["all", "drawn"])
@pytest.mark.parametrize("weights", ["none", "integers"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("criterion", CLASSIFICATION)
def test_every_kind_of_sums(criterion, n_classes, weights, draws, code, shared_rows, grown_so_far):
    kinds = ("ties", "distinct", "hybrid", "many categories")
    limits = {"min_samples_leaf": 3, **draws}
    example = seeded(criterion, n_classes, weights, kinds=kinds, n_rows=200, **limits)
    matrix = code(example.table, *([3] if code is coded_sparse else []))
    tuning = Tuning(shared_rows=shared_rows)
    grown_so_far.clear()
    for kind in ("balanced", "any"):
        check_sets(example, folds(200, 4, 0), kind, matrix=matrix, tuning=tuning)
        assert (sum(sets.n_shared_nodes for sets in grown_so_far) > 0) == (shared_rows < 10**6)


def test_searched_by_intervals(grown_so_far):
    """Columns of many codes, of which most are dead."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        example = seeded("gini", n_classes, "none", kinds=("distinct",) * 2, n_rows=400)
        example = replace(example, limits={"max_depth": 3}, y=rng.integers(0, n_classes, 400))
        grown_so_far.clear()
        tuning = Tuning(shared_rows=0, interval_rows=50, interval_codes=100)
        check_sets(example, folds(400, 4, 0), "balanced", tuning=tuning)
        assert sum(sets.n_bounded for sets in grown_so_far) > 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_short_columns_of_heavy_classes(n_classes):
    """A column of ten entries wins, whose rows are few and weigh a lot."""
    number = np.arange(400)
    y = (number < 20) + (n_classes - 2) * (number >= 390)
    longer = np.random.default_rng(0).random(400) < 0.5 + 0.25 * (y == 1)
    table = [column.astype(float).tolist() for column in (longer, number < 10)]
    example = replace(seeded("gini", n_classes, "none", n_rows=400), table=table, y=y)
    matrix = coded_sparse(table, 1)
    trees = check_sets(example, folds(400, 4, 0), "balanced", matrix=matrix)
    assert {int(tree.feature[0]) for tree in trees} == {1}


@pytest.mark.one_of(8)
@pytest.mark.parametrize("sample_weight", [None, 0.5], ids=["counted", "halves"])
@pytest.mark.parametrize("counts", [(12, 12), (8, 8, 8), (5, 9, 7), tuple(range(12, 22))])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(class_weight="balanced"),
        RandomForestClassifier(2, class_weight="balanced", bootstrap=False, random_state=0),
        ExtraTreesClassifier(2, class_weight="balanced", random_state=0),
        GradientBoostingClassifier(max_iter=3, class_weight="balanced"),
    ],
    ids=["tree", "forest", "extra", "boosting"],
)
def test_columns_that_tell_nothing_leave_balanced_classes_to_the_first(
    model, counts, sample_weight
):
    """A row that is held out would show by what the others of its class weigh more."""
    y = np.repeat(np.arange(len(counts)), counts)
    X, split = np.zeros((len(y), 1)), LeaveOneOut()
    weight = None if sample_weight is None else np.full(len(y), sample_weight)
    params = None if weight is None else {"sample_weight": weight}
    assert cross_val_predict(model, X, y, cv=split, params=params).tolist() == [0] * len(y)
    train = np.arange(1, len(y))
    own = clone(model).fit(X[train], y[train], None if weight is None else weight[train])
    assert own.predict(X[:1]).tolist() == [0]
