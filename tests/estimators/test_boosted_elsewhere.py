"""Where a boosted model of rows that are in parts begins: there where it does with all in one."""

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.coding.target import GivenRows, TargetUnits
from dtrees.core.losses.losses import quantiles
from dtrees.estimators.boosted_elsewhere import Reading, begin_elsewhere, quantile_of_parts
from dtrees.estimators.boosted_start import CodedTable, sides_of, start_of
from dtrees.estimators.fit_plan import FitPlan, RowsElsewhere
from dtrees.parallel import FitStatistics
from dtrees.parallel.partitions import admitted
from dtrees.typing import serial

SEED = 5
N = 90
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)).round(1)
Y = np.exp(X[:, 0])
WEIGHTS = {"none": None, "whole": RNG.integers(0, 3, N), "fractions": RNG.random(N)}
CUTS = {"even": 30, "uneven": (1, 0, 59, 30), "one": N}
HELD = {"early_stopping": True, "validation_fraction": 0.2}
MODELS = {
    "classes": (GradientBoostingClassifier, HELD),
    "balanced": (GradientBoostingClassifier, {"class_weight": "balanced"}),
    "squares": (GradientBoostingRegressor, {}),
    "held out": (GradientBoostingRegressor, HELD),
    "medians": (GradientBoostingRegressor, {"loss": "absolute_error", **HELD}),
    "quantiles": (GradientBoostingRegressor, {"loss": "quantile", "quantile": 0.3}),
    "widths": (GradientBoostingRegressor, {"loss": "huber"}),
}
OF_CLASSES = ("classes", "balanced")


def target_of(name):
    return (X[:, 0] > 0) * 2 + (X[:, 1] > 0) if name in OF_CLASSES else Y


def model_of(name):
    kind, parameters = MODELS[name]
    return kind(**parameters)


def begin_in_one_place(model, y, weight, init_score):
    plan = FitPlan(model)
    table, values = plan.read(X, y)
    book, coded = plan.code(table, SEED, serial)
    target = model._encode_target(values, weight)
    own = CodedTable(X, values, book, coded, SEED, init_score)
    sides = sides_of(model, values, target, SEED)
    return sides, start_of(model, own, target, sides)


def columns_in_parts(model, y, weight, init_score, cut):
    def lazy(values):
        chunks = CUTS[cut], *np.shape(values)[1:]
        return None if values is None else da.from_array(values, chunks=chunks)

    stats = FitStatistics()
    (table,) = admitted(da.from_array(X, chunks=((40, 50), 2)), {}, stats)
    columns = {"y": lazy(y), "sample_weight": lazy(weight), "init_score": lazy(init_score)}
    return RowsElsewhere.of(model, table, columns, stats)


def assert_same_beginning(model, y, weight, init_score, cut):
    sides, wanted = begin_in_one_place(model, y, weight, init_score)
    rows = columns_in_parts(model, y, weight, init_score, cut)
    found_sides, found = begin_elsewhere(model, rows, SEED, False, FitStatistics())
    np.testing.assert_array_equal(found.initial, wanted.begun.initial)
    assert vars(found.loss) == vars(wanted.begun.loss)
    assert found.has_offset == wanted.begun.has_offset
    assert found.digests == wanted.facts
    assert (found_sides.held is None) == (sides.held is None)
    blocks = [each.compute(scheduler="synchronous") for each in found.elsewhere()]
    np.testing.assert_array_equal(np.concatenate([each["y"] for each in blocks]), sides.y)
    if sides.held is not None:
        held = np.concatenate([each["held"] for each in blocks])
        assert np.flatnonzero(held).tolist() == sides.held.tolist()
    if init_score is not None:
        raw = np.concatenate([each["raw"] for each in blocks])
        np.testing.assert_array_equal(raw, init_score)


@pytest.mark.one_of(9)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_begins_as_in_one_place(name, weight, cut):
    assert_same_beginning(model_of(name), target_of(name), WEIGHTS[weight], None, cut)


@pytest.mark.parametrize("name", ["squares", "medians", "widths"])
def test_rows_that_begin_with_raw_predictions(name):
    assert_same_beginning(model_of(name), Y, WEIGHTS["whole"], Y.round()[:, np.newaxis], "uneven")


def test_a_width_of_rows_that_are_beyond_the_start():
    """Where nearly all rows are at the median, so nine tenths are no distance from it."""
    y = np.where(np.arange(N) % 15 < 14, 1.0, Y)
    assert_same_beginning(model_of("widths"), y, None, None, "uneven")


def test_an_infinite_loss_is_refused():
    model = GradientBoostingRegressor("poisson")
    rows = columns_in_parts(model, Y, None, np.full(N, 1e6), "even")
    with pytest.raises(ValueError, match="begin with an infinite loss 'poisson'"):
        begin_elsewhere(model, rows, SEED, False, FitStatistics())


def parts_of(y, weight, ends):
    """Parts of numbers that are all grown from."""

    def read(y, sample_weight, first_row):
        return GivenRows.of(y, sample_weight, False, first_row)

    whole = [read(y, weight, 0)]
    units = TargetUnits.of_numbers(lambda call, *own: [call(part, *own) for part in whole])
    loss = GradientBoostingRegressor()._loss()
    reading = Reading(read, units, loss, SEED, None, None, True)
    return [
        reading(y[a:b], None if weight is None else weight[a:b], None, a, np.zeros(1, np.int64))
        for a, b in pairwise(ends)
    ]


NUMBERS = st.lists(st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=30)


@given(NUMBERS, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.data())
def test_quantiles_are_those_of_one_place(values, level, data):
    y, n = np.array(values), len(values)
    weights = st.lists(st.integers(1, 4), min_size=n, max_size=n)
    given_weights = data.draw(st.none() | weights)
    weight = None if given_weights is None else np.array(given_weights)
    inside = data.draw(st.sets(st.integers(1, n), max_size=3))
    parts = parts_of(y, weight, sorted({0, n} | inside))

    def ask(call, *arguments):
        return [call(part, *arguments) for part in parts]

    assert quantile_of_parts(ask, level, None, False) == quantiles([y], [weight], level)[0]


def test_a_part_says_the_range_of_rows_that_count():
    y = np.array([-9.0, 1.0, 4.0, 9.0])
    first, last = parts_of(y, np.array([0, 1, 2, 0]), [0, 3, 4])
    assert first.range_of_counted() == (1.0, 4.0)
    assert last.range_of_counted() == (np.inf, -np.inf)
