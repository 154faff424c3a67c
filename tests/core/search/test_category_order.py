"""An order for categories of several classes: their first principal component."""

import numpy as np
import pytest

from tests.laws.tables import Example, fit
from tests.oracle.greedy import assert_tree_is_greedy


def example(columns, y, weight=None, **limits):
    weight = None if weight is None else np.array(weight, dtype=float)
    return Example(columns, np.asarray(y), weight, "gini", limits)


def test_many_categories_and_classes():
    # Beyond all subsets: the first principal component finds two kinds of categories.
    rng = np.random.default_rng(0)
    letters = np.repeat([f"c{k:02d}" for k in range(40)], 30)
    kind = np.repeat(rng.integers(0, 2, 40), 30)
    y = np.where(kind, rng.integers(0, 2, 1200), rng.integers(2, 4, 1200))
    case = example([letters.tolist()], y, max_depth=1)
    tree = fit(case)
    assert tree.value[1:].max(axis=1).max() < 0.6
    assert ((tree.value[1:] > 0).sum(axis=1) == 2).all()
    assert_tree_is_greedy(tree, case.table, case.target, case.rules)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_classes", [4, 60])
@pytest.mark.parametrize("weighted", [False, True])
def test_principal_component(seed, n_classes, weighted):
    # As good as the best prefix along numpy's component, and as each category alone.
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 15, 400)
    y = (codes % 3 + rng.integers(0, 3, 400)) % 4
    noise = rng.random(400) < (0.0 if n_classes == 4 else 0.5)
    y = np.where(noise, rng.integers(0, n_classes, 400), y)
    weight = rng.integers(1, 4, 400) if weighted else np.ones(400)
    counts = np.zeros((15, n_classes))
    np.add.at(counts, (codes, y), weight)
    shares = counts / counts.sum(axis=1, keepdims=True)
    around = shares - counts.sum(axis=0) / counts.sum()
    _, axes = np.linalg.eigh((around * counts.sum(axis=1, keepdims=True)).T @ around)
    order = np.argsort(around @ axes[:, -1])
    lefts = [counts[order[:k]].sum(axis=0) for k in range(1, 15)] + list(counts)
    total = counts.sum(axis=0)

    def share(c):
        return (c**2).sum() / c.sum()

    best = max(share(left) + share(total - left) for left in lefts) - share(total)
    tree = fit(example([[f"c{c:02d}" for c in codes]], y, weight=weight, max_depth=1))
    assert tree.gain[0] >= best * (1 - 1e-12)


def test_as_many_classes_as_rows():
    # Nothing of 30,000 x 30,000 numbers is allocated. Any two halves gain the same.
    letters = np.repeat([f"c{k:02d}" for k in range(12)], 2_500)
    tree = fit(example([letters.tolist()], np.arange(30_000), max_depth=1))
    assert tree.node_count == 3
    assert tree.gain[0] == pytest.approx(1.0)
