"""Losses of several outputs: each is alone, and scores are their mean in any order."""

import math

import numpy as np
import pytest

from dtrees.core.losses.losses import CLASSES, NUMBERS, OwnLoss
from dtrees.core.losses.outputs import OutputLosses, losses_by_output
from tests.core.grow.boosted_cases import Squares

RNG = np.random.default_rng(0)
RAW = RNG.normal(size=(50, 5))
Y = RNG.integers(0, 2, (3, 50)).astype(np.uint8)
LOSS = OutputLosses((CLASSES["log_loss"],) * 3, (1, 3, 1))


def test_each_output_has_its_places():
    assert [at for _, at in LOSS.own] == [slice(0, 1), slice(1, 4), slice(4, 5)]
    own = NUMBERS["poisson"]
    assert losses_by_output(own, 4) == [(own, slice(0, 4))]
    assert losses_by_output(LOSS, 5) == LOSS.own


@pytest.mark.parametrize("weight", [None, RNG.random(50)])
def test_a_mean_is_that_of_all_outputs(weight):
    each = [
        CLASSES["log_loss"].mean(Y[k], np.ascontiguousarray(RAW[:, at]), weight)
        for k, (_, at) in enumerate(LOSS.own)
    ]
    assert LOSS.mean(Y, RAW, weight) == math.fsum(each) / 3
    both = LOSS.means(Y, np.stack([RAW.T, 2 * RAW.T]), weight)
    assert both.tolist() == [LOSS.mean(Y, RAW, weight), LOSS.mean(Y, 2 * RAW, weight)]
    order = [2, 0, 1]
    other = OutputLosses(LOSS.losses, (1, 1, 3))
    assert other.mean(Y[order], RAW[:, [4, 0, 1, 2, 3]], weight) == LOSS.mean(Y, RAW, weight)


def test_an_infinite_loss_of_one_output_is_that_of_all():
    loss = OutputLosses((NUMBERS["poisson"],) * 2, (1, 1))
    assert loss.mean(np.ones((2, 4)), np.array([[0.0, 1e4]] * 4), None) == np.inf


def test_widths_are_those_of_each_output():
    y, begin = RNG.normal(size=(2, 40)) * [[1], [100]], np.zeros(2)
    loss = OutputLosses((NUMBERS["huber"],) * 2, (1, 1)).with_width(y, begin, None)
    for own, of_output in zip(loss.losses, y, strict=True):
        assert own.width == NUMBERS["huber"].with_width(of_output, 0.0, None).width


def test_targets_are_checked_by_output():
    own = OutputLosses((OwnLoss(Squares()), NUMBERS["gamma"]), (1, 1))
    own.check(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"Output 1: .*y must be positive"):
        own.check(np.array([[-1.0], [-1.0]]))
    assert (own.name, own.n_outputs) == ("Squares", 2)
