"""Cells of a growth: which of them are the same trees."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import ParameterGrid

import dtrees
from dtrees.core.membership.resampling import of_sets
from dtrees.estimators.fitted_sets import trees_of
from dtrees.estimators.training_sets import fit_table
from dtrees.estimators.training_table import TrainingTable
from dtrees.model_selection.candidates import growths_of
from dtrees.model_selection.cells import Cells

TREE = dtrees.DecisionTreeClassifier(random_state=0)


@settings(max_examples=max(6, settings.default.max_examples // 40))
@given(seed=st.integers(0, 10**6), n_trees=st.sampled_from([None, 1, 3]))
def test_distinct_models_are_those_of_different_trees(seed, n_trees):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 5, (40, 3)).astype(float), rng.integers(0, 3, 40)
    grid = {
        "max_depth": [1, 3, None],
        "min_samples_split": [2, 5, 0.3],
        "max_leaf_nodes": [None, int(rng.integers(2, 8))],
        "ccp_alpha": [0.0, float(rng.random() / 20)],
        "min_impurity_decrease": [0.0, float(rng.random() / 20)],
    }
    estimator = TREE
    if n_trees is not None:
        estimator = dtrees.RandomForestClassifier(2, random_state=seed)
        grid["n_estimators"] = list(range(1, n_trees + 1))
    (growth,), _ = growths_of(estimator, list(ParameterGrid(grid)))
    sets = of_sets(np.stack([rng.random(40) < 0.7, np.arange(40) < 30]))
    cells = Cells(growth, fit_table(growth.estimator, TrainingTable(X, y, None), sets))
    for number in range(2):
        first, place = cells.distinct(number)
        models = [trees_of(cells.model(candidate, number)) for candidate in range(len(place))]
        for candidate, model in enumerate(models):
            assert first[place[candidate]] <= candidate
            own = models[first[place[candidate]]]
            assert len(own) == len(model)
            assert all(a.equals(b) for a, b in zip(own, model, strict=True))
        of_first = [b"".join(t.test.tobytes() + bytes([255]) for t in models[i]) for i in first]
        assert len(set(of_first)) == len(first) > 1
