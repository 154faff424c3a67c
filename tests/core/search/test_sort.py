"""Entries and categories in ascending order, for every number of them that is cut otherwise."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import Example, fit

SORTED = Tuning(counted_rows=1 << 40)
LENGTHS = [
    2,
    3,
    15,
    16,
    17,
    31,
    32,
    33,
    48,
    63,
    100,
    129,
]  # stretches of 16 are inserted, then merged


def best_prefix(keys: np.ndarray, y: np.ndarray) -> float:
    """The largest decrease of squared errors that a prefix of the rows in order of keys gains."""
    order = np.argsort(keys, kind="stable")
    left = np.cumsum(y[order])[:-1]
    n = np.arange(1, len(y))
    between = keys[order][:-1] < keys[order][1:]
    gains = left**2 / n + (y.sum() - left) ** 2 / (len(y) - n) - y.sum() ** 2 / len(y)
    return float(gains[between].max())


@pytest.mark.parametrize("order", ["ascending", "descending", "mixed"])
@pytest.mark.parametrize("n", LENGTHS)
def test_numbers(n, order):
    rng = np.random.default_rng(n)
    values = {
        "ascending": np.arange(n), "descending": np.arange(n)[::-1], "mixed": rng.permutation(n),
    }[order].astype(float)  # fmt: skip
    y = rng.integers(-50, 50, n).astype(float)
    example = Example([values.tolist()], y, None, "squared_error", {"max_depth": 1})
    tree = fit(example, tuning=SORTED)
    assert tree.gain[0] == pytest.approx(best_prefix(values, y), rel=1e-9)
    assert tree.n_node_samples[1] == (values <= tree.threshold[0]).sum()


@pytest.mark.parametrize("n", LENGTHS)
def test_categories_by_their_means(n):
    """Means are all distinct; the best subset is a prefix of the categories in their order."""
    rng = np.random.default_rng(n)
    means = rng.permutation(n).astype(float)
    rows = np.repeat(np.arange(n), 2)
    y = means[rows] + np.tile([-0.25, 0.25], n)
    letters = [f"c{k:03d}" for k in rows]
    limits = {"max_depth": 1, "category_penalty": 0.0}
    tree = fit(Example([letters], y, None, "squared_error", limits))
    assert tree.gain[0] == pytest.approx(best_prefix(means[rows], y), rel=1e-9)
    words = tree.subset_words
    left = [k for k in range(n) if int(words[(k + 1) >> 6]) >> ((k + 1) & 63) & 1]
    assert sorted(means[left]) in ([*range(len(left))], [*range(n - len(left), n)])


def test_categories_of_equal_means_stand_in_their_own_order():
    letters = [f"c{k:02d}" for k in range(40) for _ in range(2)]
    y = np.array([float(k >= 20) for k in range(40) for _ in range(2)])
    limits = {"max_depth": 1, "category_penalty": 0.0}
    tree = fit(Example([letters], y, None, "squared_error", limits))
    left = {k for k in range(40) if int(tree.subset_words[0]) >> (k + 1) & 1}
    assert left == set(range(20))


@pytest.mark.parametrize("spread", ["even", "tails", "equal", "two", "large"])
@pytest.mark.parametrize("n", [95, 96, 500, 3_000])
def test_many_categories_are_dealt_to_buckets(n, spread):
    """However their means are spread, the best subset is a prefix of the categories in order."""
    rng = np.random.default_rng(n)
    means = {
        "even": rng.permutation(n) / 7.0,
        "tails": np.exp(rng.normal(0, 6, n)),
        "equal": np.where(np.arange(n) % 50 == 0, rng.normal(size=n), 1.0),
        "two": rng.integers(0, 2, n).astype(float),
        "large": rng.normal(size=n) * 1e100,
    }[spread]
    letters = [f"c{k:04d}" for k in np.repeat(np.arange(n), 2)]
    y = np.repeat(means, 2)
    limits = {"max_depth": 1, "category_penalty": 0.0}
    tree = fit(Example([letters], y, None, "squared_error", limits))
    parted = np.sort(means)[tree.n_node_samples[1] // 2 - 1]
    assert tree.gain[0] == pytest.approx(best_prefix(y, y), rel=1e-6)
    left = means <= parted
    assert 2 * left.sum() == tree.n_node_samples[1]
