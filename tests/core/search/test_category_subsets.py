"""The subset of categories that is chosen, against all subsets there are."""

import numpy as np
import pytest

from tests.laws.tables import Example, fit

N_ROWS = 400


def example(criterion: str, n_classes: int, n_categories: int, missing: bool) -> Example:
    """One column of categories, some of which are missing values."""
    rng = np.random.default_rng(n_categories)
    codes = rng.integers(0, n_categories, N_ROWS)
    if n_classes > 0:
        y = np.where(rng.random(N_ROWS) < 0.4, codes * 7 % n_classes, rng.integers(0, n_classes))
        y[:n_classes] = range(n_classes)
    else:
        y = codes * 7 % 5 + rng.gamma(2.0, size=N_ROWS)
    column = [None if missing and k == 0 else f"c{k:02d}" for k in codes]
    return Example([column], y, None, criterion, {"max_depth": 1, "category_penalty": 0.0})


def impurity(sums: np.ndarray, criterion: str) -> np.ndarray:
    """Weight times impurity of nodes: sums per class, or (rows, y, y * y)."""
    n = np.maximum(sums.sum(axis=-1) if criterion != "squared_error" else sums[..., 0], 1e-300)
    if criterion == "squared_error":
        return sums[..., 2] - sums[..., 1] ** 2 / n
    share = sums / n[..., None]
    if criterion == "gini":
        return n * (1 - (share**2).sum(axis=-1))
    return -n * (share * np.log2(np.maximum(share, 1e-300))).sum(axis=-1)


def gains_of(given: Example, masks: np.ndarray) -> np.ndarray:
    """What each set of categories gains; a missing value is a category, too."""
    names = [*sorted({*given.table[0]} - {None}), None]
    place = np.array([names.index(v) for v in given.table[0]])
    if given.criterion == "squared_error":
        parts = np.column_stack([np.ones(N_ROWS), given.y, given.y**2])
    else:
        parts = np.eye(given.y.max() + 1)[given.y]
    sums = np.array([parts[place == k].sum(axis=0) for k in range(len(names))])
    is_left = (masks[:, None] >> np.arange(len(names))) & 1
    left, whole = is_left @ sums, sums.sum(axis=0)
    return sum(
        sign * impurity(each, given.criterion)
        for sign, each in [(1, whole[None]), (-1, left), (-1, whole - left)]
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("n_categories", "n_classes"), [(13, 2), (9, 4), (2, 3)])
def test_the_best_of_all_subsets(criterion, missing, n_categories, n_classes):
    n_classes = 0 if criterion == "squared_error" else n_classes
    given = example(criterion, n_classes, n_categories, missing)
    best = gains_of(given, np.arange(1 << n_categories)).max()
    assert fit(given).gain[0] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("missing", [False, True])
def test_many_categories_of_many_classes(criterion, missing):
    """Not all subsets are tried: it is at least as good as one category against the rest."""
    given = example(criterion, 5, 13, missing)
    found = fit(given).gain[0]
    assert found >= gains_of(given, 1 << np.arange(13)).max() * (1 - 1e-6)
    assert found <= gains_of(given, np.arange(1 << 14)).max() * (1 + 1e-6)
