"""Trees that stay are those of the fit at once, and their labels must stay, too."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dtrees import GradientBoostingClassifier, RandomForestClassifier
from tests.estimators.forest_cases import FORESTS, IRIS, assert_same, mixed_table


@pytest.mark.parametrize("kind", FORESTS)
def test_warm_start_adds_the_trees_that_are_missing(kind):
    X, y = mixed_table()
    at_once = kind(9, random_state=3).fit(X, y)
    forest = kind(4, random_state=3, warm_start=True).fit(X, y)
    first = forest.forest_.trees
    forest.set_params(n_estimators=9).fit(X, y)
    assert_same(forest, at_once)
    assert all(a is b for a, b in zip(first, forest.forest_.trees, strict=False))
    with pytest.warns(UserWarning, match="does not fit new trees"):
        forest.fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=3 must be larger or equal"):
        forest.set_params(n_estimators=3).fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X.drop(columns="k"), y),
        lambda X, y: (X.assign(letter=X["letter"].replace("a", "new")), y),
        lambda X, y: (X, y + 10),
    ],
)
def test_warm_start_refuses_other_labels(change):
    X, y = mixed_table()
    forest = RandomForestClassifier(2, warm_start=True).fit(X, y)
    before = forest.predict(X)
    with pytest.raises(ValueError, match="warm_start=True keeps the trees"):
        forest.set_params(n_estimators=4).fit(*change(X, y))
    np.testing.assert_array_equal(forest.predict(X), before)


def test_trees_that_stay_had_seen_missing_values():
    X, y = IRIS[0].copy(), IRIS[1]
    X[::7, 2] = np.nan
    forest = RandomForestClassifier(3, random_state=0, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=6).fit(*IRIS)
    assert forest.estimators_[0].tree_.saw_missing.tolist() == [False, False, True, False]


def test_warm_start_without_a_seed_goes_on_with_its_own():
    X, y = IRIS
    forest = RandomForestClassifier(3, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=6).fit(X, y)
    assert not any(
        a.equals(b) for a, b in zip(forest.forest_.trees[:3], forest.forest_.trees[3:], strict=True)
    )


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(2, warm_start=True, random_state=0),
        GradientBoostingClassifier(max_iter=2, warm_start=True),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_numbers_in_a_column_with_categories_are_refused(model):
    """Numbers of categories follow those of the numbers, so trees would ask for other ones."""
    words, numbers = np.arange(200) % 5, np.arange(200) // 10
    mixed = [int(n) if w == 0 else "pqrs"[w - 1] for w, n in zip(words, numbers, strict=True)]
    first = pd.DataFrame({"h": pd.Series(mixed, dtype=object)})
    other = first.map(lambda v: v if isinstance(v, str) else v // 2)
    y = words % 2
    limit = "max_iter" if isinstance(model, GradientBoostingClassifier) else "n_estimators"
    model.fit(first, y)
    expected = model.predict(first)
    model.set_params(**{limit: 4})
    with pytest.raises(ValueError, match="the columns and categories of the first fit"):
        model.fit(other, y)
    np.testing.assert_array_equal(model.predict(first), expected)
    assert len(model.fit(first, y).forest_) == 4
