"""Means over trees: what is added, divided by how often, whatever the size of the targets."""

import numpy as np

from dtrees.core.predict.means import add_up, mean_of_sums


def test_sums_are_divided_by_their_number():
    total = np.zeros((2, 3))
    for values in ([[1.0, 2, 3], [0, 0, 3]], [[3.0, 2, 1], [1, 1, 1]]):
        add_up(total, np.array(values))
    np.testing.assert_array_equal(mean_of_sums(total, 2, [0.0, 0.0]), total / 2)


def test_rows_without_a_vote():
    mean = mean_of_sums(np.array([[2.0], [0.0]]), np.array([[2], [0]]), [1.0])
    np.testing.assert_array_equal(mean, [[1.0], [np.nan]])


def test_sums_that_overflow_are_the_mean_of_the_offsets():
    huge = 1.5e308
    for offsets, expected in (([huge] * 4, huge), ([huge, -huge, huge, huge], huge / 2)):
        total = np.zeros((1, 1))
        for _ in offsets:
            add_up(total, np.array([[huge]]))
        assert np.isinf(total).all()
        np.testing.assert_array_equal(mean_of_sums(total, 4, offsets), [[expected]])
