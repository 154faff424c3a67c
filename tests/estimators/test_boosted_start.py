"""What a boosted fit begins with: rows without weight are not there, held-out rows are apart."""

import numpy as np
import pytest

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.estimators import boosted_start
from dtrees.estimators.boosted_start import CodedTable
from dtrees.estimators.fit_plan import FitPlan
from dtrees.typing import serial

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 3)).round(1)
Y = np.exp(X[:, 0])
WEIGHT = RNG.integers(0, 3, N).astype(float)


def start_of(model, y=Y, weight=None, kept=None):
    plan = FitPlan(model)
    table, values = plan.read(X, y)
    book, coded = plan.code(table, 5, serial)
    given = CodedTable(X, values, book, coded, 5)
    target = model._encode_target(values, weight)
    sides = boosted_start.sides_of(model, values, target, 5)
    return boosted_start.start_of(model, given, target, sides, kept)


class TestRows:
    def test_all_of_them_stay_where_they_are(self):
        start = start_of(GradientBoostingRegressor())
        assert start.rows.chosen is None
        assert start.rows.weight is None
        assert start.watch is None

    def test_without_weight_they_are_not_there(self):
        start = start_of(GradientBoostingRegressor("absolute_error"), weight=WEIGHT)
        counted = np.flatnonzero(WEIGHT > 0)
        assert start.rows.chosen.tolist() == counted.tolist()
        given_twice = np.repeat(Y, WEIGHT.astype(int))
        assert start.growing.initial[0] in np.sort(given_twice)[len(given_twice) // 2 - 1 :][:2]

    def test_zeros_and_ones_are_no_weights(self):
        start = start_of(GradientBoostingRegressor(), weight=np.minimum(WEIGHT, 1))
        assert start.rows.chosen.tolist() == np.flatnonzero(WEIGHT > 0).tolist()
        assert start.rows.weight is None

    def test_a_target_is_judged_where_it_counts(self):
        y = np.where(WEIGHT > 0, Y, -1.0)
        start_of(GradientBoostingRegressor("gamma"), y, WEIGHT)
        with pytest.raises(ValueError, match="y must be positive"):
            start_of(GradientBoostingRegressor("gamma"), y)

    @pytest.mark.parametrize("weight", [None, WEIGHT])
    def test_held_out_rows_are_apart(self, weight):
        model = GradientBoostingClassifier(early_stopping=True, validation_fraction=0.25)
        start = start_of(model, Y > 1, weight)
        grown, held = start.rows.chosen.tolist(), start.watch.sets[0].rows.tolist()
        counted = np.arange(N) if weight is None else np.flatnonzero(weight > 0)
        assert sorted([*grown, *held]) == counted.tolist()
        assert start.learned["do_early_stopping_"] is True

    def test_training_rows_may_be_those_that_are_scored(self):
        model = GradientBoostingRegressor(early_stopping=True, validation_fraction=None)
        start = start_of(model, weight=WEIGHT)
        assert start.rows.chosen.tolist() == start.watch.sets[0].rows.tolist()


def test_parameters_become_rules():
    model = GradientBoostingRegressor(
        max_leaf_nodes=7,
        max_depth=3,
        min_samples_leaf=2,
        l2_regularization=0.5,
        category_penalty=0.25,
        handle_unknown="majority",
        monotonic_cst=[1, 0, 0],
        interaction_cst=[{0, 2}],
        max_features=0.5,
    )
    rules = start_of(model).growing.rules
    assert (rules.max_leaf_nodes, rules.max_depth, rules.min_samples_leaf) == (7, 3, 2)
    assert (rules.l2, rules.category_penalty, rules.max_features) == (0.5, 0.25, 0.5)
    assert (rules.handle_unknown, rules.seed) == ("majority", 5)
    assert rules.monotonic == (1, 0, 0)
    assert rules.interactions == ((0, 2), (1,))


def test_a_fit_goes_on_from_what_is_kept():
    raw = RNG.normal(size=(1, N))
    start = start_of(GradientBoostingRegressor(), kept=(np.array([4.0]), raw))
    np.testing.assert_array_equal(start.rows.raw, raw)
    assert start.growing.initial.tolist() == start.learned["_initial"].tolist() == [4.0]
