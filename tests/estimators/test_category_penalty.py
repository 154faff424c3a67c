"""The parameter `category_penalty` of trees and forests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

import dtrees
from dtrees import (
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.export import load
from dtrees.model_selection import GridSearchCV, cross_validate


def named_rows(n_rows: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Names that say nothing, places that say a little, and two numbers; three classes."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 30, n_rows)
    X = pd.DataFrame(
        {
            "name": [f"n{k}" for k in rng.integers(0, 200, n_rows)],
            "place": [None if rng.random() < 0.1 else f"p{k}" for k in place],
            "size": rng.normal(size=n_rows),
            "age": rng.normal(size=n_rows),
        }
    )
    y = X["size"] + 0.7 * X["age"] + 0.5 * (place % 3) + rng.normal(size=n_rows)
    return X, np.digitize(y, [0.0, 1.0])


def trees_of(model):
    return model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)


def assert_same_trees(a, b):
    for one, other in zip(trees_of(a), trees_of(b), strict=True):
        for name, array in one.arrays().items():
            assert array.tobytes() == getattr(other, name).tobytes(), name


MODELS = [
    DecisionTreeClassifier(category_penalty=1.5),
    RandomForestClassifier(5, category_penalty=1.5, random_state=0),
    DecisionTreeRegressor(category_penalty=1.5),
    BaggingRegressor(4, category_penalty=1.5, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_sets_of_rows_grown_together_are_fits_of_their_own(model):
    X, y = named_rows()
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    found = cross_validate(model, X, y, cv=folds, return_estimator=True)
    for (train, _), grown in zip(folds, found["estimator"], strict=True):
        weight = np.zeros(len(y))
        weight[train] = 1
        alone = type(model)(**model.get_params()).fit(X, y, sample_weight=weight)
        assert_same_trees(grown, alone)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_names_that_say_nothing_are_used_less(kind):
    X, y = named_rows()
    shares = [
        kind(20, category_penalty=p, random_state=0, max_features=None).fit(X, y)
        .feature_importances_[0]
        for p in (0.0, 2.0)
    ]  # fmt: skip
    assert shares[1] < 0.8 * shares[0]


def test_a_search_over_it_grows_each_value():
    X, y = named_rows()
    values = [0.0, 1.0, 3.0]
    search = GridSearchCV(DecisionTreeClassifier(), {"category_penalty": values}, cv=3).fit(X, y)
    for value, score in zip(values, search.cv_results_["mean_test_score"], strict=True):
        own = cross_validate(DecisionTreeClassifier(category_penalty=value), X, y, cv=3)
        assert own["test_score"].mean() == pytest.approx(score, abs=1e-15)
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_extra_trees_search_no_subsets():
    assert "category_penalty" not in ExtraTreesClassifier().get_params()


def test_old_files_have_none():
    old = load(Path(__file__).parents[1] / "export" / "version_1.dtrees")
    assert old.category_penalty == 0.0
    assert dtrees.DecisionTreeClassifier().category_penalty > 0
