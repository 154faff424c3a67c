"""Several targets as integers: each as if it were the only one, and one weight of each row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from dtrees.coding.outputs import Outputs, columns_of_outputs
from dtrees.coding.target import Target

rng = np.random.default_rng(5)
NUMBERS = rng.normal(size=(60, 3)) * [1e6, 1.0, 1e-9] + [0.0, 5.0, 0.0]
CLASSES = rng.integers(0, [2, 3, 5], (60, 3))


@pytest.mark.parametrize("weight", [None, rng.integers(1, 9, 60), rng.random(60)])
def test_an_output_has_the_integers_of_a_target(weight):
    numbers = Outputs.of(list(NUMBERS.T), weight, of_classes=False)
    classes = Outputs.of(list(CLASSES.T), weight, of_classes=True)
    for k in range(3):
        alone = Target.regression(NUMBERS[:, k], weight)
        own = numbers.of_outputs[k]
        np.testing.assert_array_equal(numbers.y[:, k], alone.y)
        np.testing.assert_array_equal(numbers.wy[:, k], alone.wy)
        assert (own.y_exponent, own.offset) == (alone.y_exponent, alone.offset)
        assert own.wy_exponent == alone.wy_exponent
        np.testing.assert_array_equal(classes.y[:, k], CLASSES[:, k])
    if weight is not None:
        np.testing.assert_array_equal(numbers.w, Target.regression(NUMBERS[:, 0], weight).w)
    assert (classes.n_classes, classes.n_statistics, numbers.n_statistics) == (10, 10, 4)
    np.testing.assert_array_equal(classes.fields, CLASSES + np.array([0, 2, 5]))
    assert classes.facts_of_trees() == {"n_classes": (2, 3, 5)}
    assert (classes.most_classes, numbers.most_classes) == (5, 0)


def test_labels_as_numbers():
    labels = np.c_[CLASSES[:, 0], np.full(60, 7), 1 - CLASSES[:, 0]]
    numbers = Outputs.of(list(labels.T), rng.random(60), True).as_numbers()
    np.testing.assert_array_equal(numbers.y, labels > 0)
    assert numbers.y.dtype == np.int64
    assert {own.y_exponent for own in numbers.of_outputs} == {0}


@pytest.mark.parametrize("weight", [None, rng.integers(1, 9, 60)])
def test_the_order_is_that_of_the_numbers(weight):
    places = rng.permutation(3)
    first = Outputs.of(list(NUMBERS.T), weight, False).order_of_outputs()
    other = Outputs.of(list(NUMBERS[:, places].T), weight, False).order_of_outputs()
    np.testing.assert_array_equal(places[other], first)
    rows = np.repeat(np.arange(60), 1 if weight is None else weight)
    again = Outputs.of(list(NUMBERS[rows].T), None, False)
    by_weight = Outputs.of(list(NUMBERS.T), weight, False)
    if again.of_outputs[0].y_exponent == by_weight.of_outputs[0].y_exponent:
        np.testing.assert_array_equal(again.order_of_outputs(), first)


def test_an_output_of_one_number_has_the_unit_of_the_others():
    y = np.c_[NUMBERS, np.full(60, 3.0)]
    exponents = [own.y_exponent for own in Outputs.of(list(y.T), None, False).of_outputs]
    assert exponents[3] == max(exponents)
    constants = Outputs.of([np.ones(4), np.zeros(4)], None, False).of_outputs
    assert constants[0].y_exponent == constants[1].y_exponent


def test_rows_of_bags():
    times = rng.integers(0, 4, 60)
    for weight in (None, rng.random(60)):
        bag = Outputs.of(list(NUMBERS.T), weight, False, spare_bits=5).bagged(times)
        for k in range(3):
            alone = Target.regression(NUMBERS[:, k], weight, spare_bits=5).bagged(times)
            np.testing.assert_array_equal(bag.w, alone.w)
            assert (bag.wy is None) == (alone.wy is None)
            if bag.wy is not None:
                np.testing.assert_array_equal(bag.wy[:, k], alone.wy)


def test_what_columns_are_given_as():
    frame = pd.DataFrame(CLASSES, columns=list("abc"))
    ways = CLASSES, CLASSES.tolist(), frame, pl.DataFrame(CLASSES), sp.csr_array(CLASSES)
    for y in ways:
        np.testing.assert_array_equal(np.column_stack(columns_of_outputs(y)), CLASSES)
    for y in (None, CLASSES[:, 0], CLASSES[:, :1], [0, 1], ["ab", "cd"], [], [[1], [0]]):
        assert columns_of_outputs(y) is None


@pytest.mark.parametrize("missing", [float("nan"), None])
def test_missing_words_of_a_list(missing):
    with pytest.raises(ValueError, match="output 1 of row 2 is missing"):
        Outputs.of(columns_of_outputs([["a", "x"], ["b", "y"], ["a", missing]]), None, True)


def test_masked_values():
    y = np.ma.array(NUMBERS, mask=NUMBERS > 5)
    with pytest.raises(ValueError, match="some values are masked"):
        columns_of_outputs(y)


def test_class_weights_are_those_of_any_order():
    uneven = [{k: 1 / (k + 3 + output) for k in range(5)} for output in range(3)]
    uneven = [{k: own[k] for k in range(n)} for own, n in zip(uneven, (2, 3, 5), strict=True)]
    weight = rng.random(60)
    first = Outputs.of(list(CLASSES.T), weight, True, uneven)
    for places in ([1, 2, 0], [2, 1, 0]):
        again = [uneven[place] for place in places]
        other = Outputs.of(list(CLASSES[:, places].T), weight, True, again)
        np.testing.assert_array_equal(other.w, first.w)
        assert other.weight_unit == first.weight_unit


def test_too_many_classes():
    y = np.arange(40_000)
    with pytest.raises(ValueError, match=r"2 outputs of 80000 classes.*Fit some outputs at a time"):
        Outputs.of([y, y], None, of_classes=True)
