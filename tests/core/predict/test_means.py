"""Means over trees: what is added, divided by how often, whatever the size of the targets."""

import numpy as np

from dtrees.core.predict.means import mean_of_sums


def test_rows_without_a_vote():
    mean = mean_of_sums(np.array([[2.0], [0.0]]), np.array([[2], [0]]), [1.0])
    np.testing.assert_array_equal(mean, [[1.0], [np.nan]])


def test_sums_that_overflow_are_the_mean_of_the_offsets():
    huge = 1.5e308
    for offsets, expected in (([huge] * 4, huge), ([huge, -huge, huge, huge], huge / 2)):
        found = mean_of_sums(np.full((1, 1), np.inf), 4, offsets)
        np.testing.assert_array_equal(found, [[expected]])
