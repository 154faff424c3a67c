"""Scans of several outputs: what is passed over holds no better boundary."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import arrays_of, fit
from tests.laws.test_outputs import OutputsExample
from tests.registers import wide_registers

SORTED = Tuning(counted_rows=1 << 40)
COUNTED = Tuning(counted_rows=0)


def example(n_outputs, weights, ties=False, criterion="squared_error", **limits):
    random = np.random.default_rng(n_outputs)
    n_rows = 400
    X = random.normal(size=(n_rows, 4))
    if ties:  # the same boundaries again and again
        X = np.c_[X[:, :1].round(1), X[:, :1].round(1), X[:, :1].round(1), np.arange(n_rows) % 2]
    y = X @ random.normal(size=(4, n_outputs)) + random.normal(size=(n_rows, n_outputs))
    if criterion == "gini":
        y = (y > random.normal(size=n_outputs)).astype(int)
    elif ties:
        y = np.sign(y)
    weight = {
        "none": None,
        "whole": random.integers(1, 4, n_rows).astype(float),
        "fractions": random.random(n_rows),
    }[weights]
    table = [column.tolist() for column in X.T]
    if criterion == "squared_error":
        y = y * 10.0 ** np.arange(n_outputs)
    return OutputsExample(table, y, weight, criterion, limits)


@pytest.mark.one_of(24)
@pytest.mark.parametrize("n_outputs", [2, 4, 5, 10, 13, 33, 40])
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
@pytest.mark.parametrize("criterion", ["squared_error", "gini"])
@pytest.mark.parametrize(
    "limits",
    [{}, {"min_samples_leaf": 7}, {"min_weight_leaf": 9.5}, {"max_features": 3, "seed": 5}],
    ids=str,
)
def test_registers_find_what_integers_find(n_outputs, weights, criterion, limits):
    one = example(n_outputs, weights, criterion=criterion, **limits)
    found = [arrays_of(fit(one, tuning=tuning)) for tuning in (SORTED, COUNTED)]
    with wide_registers(False):
        found.append(arrays_of(fit(one, tuning=SORTED)))
    assert found == [found[0]] * 3


@pytest.mark.parametrize("weights", ["none", "fractions"])
@pytest.mark.parametrize("random_ties", [False, True])
@pytest.mark.parametrize("criterion", ["squared_error", "gini"])
def test_many_boundaries_that_tie(weights, random_ties, criterion):
    one = example(3, weights, ties=True, criterion=criterion, random_ties=random_ties)
    found = [arrays_of(fit(one, tuning=tuning)) for tuning in (SORTED, COUNTED)]
    with wide_registers(False):
        found.append(arrays_of(fit(one, tuning=SORTED)))
    assert found == [found[0]] * 3


def test_a_column_of_boundaries_that_are_all_the_best():
    # more than are kept: nothing but the two ends of a row of equal targets tells them apart
    n_rows = 200
    y = np.zeros((n_rows, 2))
    y[::2] = [1.0, -1.0]
    table = [np.arange(n_rows, dtype=float).tolist()]
    one = OutputsExample(table, y, None, "squared_error", {"min_samples_leaf": 2})
    with wide_registers(False):
        expected = arrays_of(fit(one, tuning=SORTED))
    assert arrays_of(fit(one, tuning=SORTED)) == expected
