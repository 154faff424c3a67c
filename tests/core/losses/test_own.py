"""A loss of the user's own is asked for the right shapes, and what it returns is judged."""

import numpy as np
import pytest

from dtrees.core.losses.losses import shares_of_classes
from dtrees.core.losses.own import OwnLoss
from dtrees.losses import Loss

Y = np.array([0.0, 1.0, 2.0])


class Square(Loss):
    """Writes down what it is asked."""

    def __init__(self, found=None):
        self.found, self.asked = found, []

    def gradient_and_hessian(self, y, raw):
        self.asked.append((y, raw))
        return (raw - (y if raw.ndim == 1 else y[:, None]), np.ones_like(raw))

    def of_rows(self, y, raw):
        return (y - raw) ** 2 / 2


class Answers(Square):
    """Returns what it was made with."""

    def gradient_and_hessian(self, y, raw):
        return self.found

    def initial(self, y, sample_weight):
        return self.found

    def inverse_link(self, raw):
        return self.found


def test_one_value_is_no_column_and_arguments_are_read_only():
    own = Square()
    gradient, hessian = OwnLoss(own).derivatives(Y, np.full((1, 3), 5.0))
    assert (gradient.tolist(), hessian.tolist()) == ([[5, 4, 3]], [[1, 1, 1]])
    for given in own.asked[0]:
        assert given.shape == (3,)
        with pytest.raises(ValueError, match="read-only"):
            given[0] = 1


def test_several_values_are_columns():
    own = Square()
    gradient, _ = OwnLoss(own).derivatives(Y, np.arange(6.0).reshape(2, 3))
    assert own.asked[0][1].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert gradient.tolist() == [[0, 0, 0], [3, 3, 3]]


ONES = np.ones(3)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ONES, "must return two arrays"),
        ((ONES,), "must return two arrays"),
        ((ONES[:2], ONES), r"gradients as numbers of shape \(3,\)"),
        ((ONES, np.ones((3, 1))), r"hessians as numbers of shape \(3,\)"),
        ((ONES, np.array(["a", "b", "c"])), "hessians as numbers"),
        ((np.array([1, np.nan, 1]), ONES), "finite gradients"),
        ((ONES, np.array([1, np.inf, 1])), "finite hessians"),
        ((ONES, np.array([1.0, -1e-9, 1.0])), "not negative"),
    ],
)
def test_derivatives_that_are_none(found, message):
    with pytest.raises(ValueError, match=message):
        OwnLoss(Answers(found)).derivatives(Y, np.zeros((1, 3)))


def test_the_largest_derivatives():
    loss = OwnLoss(Square()).measured(np.array([[1.0, -7.0]]), np.array([[0.5, 2.0]]), 3.0)
    assert (loss.largest_gradient, loss.largest_hessian) == (7, 2)
    with pytest.raises(ValueError, match="times the weights are infinite"):
        loss.measured(np.array([[1e300]]), np.array([[1.0]]), 1e10)


def test_beginnings():
    assert OwnLoss(Square()).initial(Y, None, 2).tolist() == [0, 0]
    assert OwnLoss(Answers(3)).initial(Y, None, 2).tolist() == [3, 3]
    assert OwnLoss(Answers([1, 2])).initial(Y, None, 2).tolist() == [1, 2]
    for found, n_values in ((np.nan, 1), ([1.0, 2.0], 1), ([1.0], 2)):
        with pytest.raises(ValueError, match=r"Answers.initial must return a finite number"):
            OwnLoss(Answers(found)).initial(Y, None, n_values)


def test_links():
    raw = np.array([[0.0], [2.0], [-1.0]])
    assert OwnLoss(Square()).predictions(raw[:, 0]).tolist() == [0, 2, -1]
    np.testing.assert_array_equal(OwnLoss(Square()).shares(raw), shares_of_classes(raw))
    assert OwnLoss(Answers(ONES / 4)).shares(raw).tolist() == [[0.75, 0.25]] * 3
    with pytest.raises(ValueError, match="shares as numbers of shape"):
        OwnLoss(Answers(ONES[:2])).shares(raw)
    with pytest.raises(ValueError, match="predictions as numbers of shape"):
        OwnLoss(Answers(ONES[:2])).predictions(raw[:, 0])


def test_means():
    raw = np.array([[1.0], [1.0], [0.0]])
    assert OwnLoss(Square()).mean(Y, raw, None) == pytest.approx(2.5 / 3)
    assert OwnLoss(Square()).mean(Y, raw, np.array([1.0, 1, 2])) == pytest.approx(4.5 / 4)


def test_two_of_a_class_are_equal():
    assert OwnLoss(Square()) == OwnLoss(Square(3))
    assert OwnLoss(Square()) != OwnLoss(Answers())
