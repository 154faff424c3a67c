"""Cells of a growth: which of them are the same trees, and how often they are scored."""

import numpy as np
import pytest
import sklearn.model_selection as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import ParameterGrid

import dtrees
from dtrees.core.resampling import of_sets
from dtrees.estimators.sets import TrainingTable, fit_table, trees_of
from dtrees.model_selection import GridSearchCV
from dtrees.model_selection.candidates import growths_of
from dtrees.model_selection.cells import Cells

CANCER = load_breast_cancer(return_X_y=True)
TREE = dtrees.DecisionTreeClassifier(random_state=0)


@settings(max_examples=max(10, settings.default.max_examples // 40))
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


GRID = {"max_depth": [1, 2, 10, 20, 30, None], "ccp_alpha": [0.0, 1e-9, 1e-8, 0.05]}


def test_a_model_is_scored_once():
    calls = []

    def area(y_true, y_score):
        calls.append(len(y_true))
        return roc_auc_score(y_true, y_score)

    scorer = make_scorer(area, response_method="predict_proba")
    ours = GridSearchCV(
        TREE, GRID, cv=3, scoring={"area": scorer, "loss": "neg_log_loss"}, refit=False
    )
    ours.fit(*CANCER)
    expected = theirs.GridSearchCV(TREE, GRID, cv=3, scoring="roc_auc", refit=False).fit(*CANCER)
    for number in range(3):
        found = ours.cv_results_[f"split{number}_test_area"]
        np.testing.assert_array_equal(found, expected.cv_results_[f"split{number}_test_score"])
    distinct = np.unique(np.stack([
        ours.cv_results_[f"split{number}_test_loss"] for number in range(3)
    ]), axis=1)  # fmt: skip
    assert 3 * distinct.shape[1] <= len(calls) <= 3 * 8 < 3 * 24


@pytest.mark.parametrize("name", ["ccp_alpha", "max_depth"])
def test_a_scorer_may_look_at_parameters(name):
    def score(model, X, y):
        return float(model.get_params()[name] or 100)

    search = GridSearchCV(TREE, GRID, cv=2, scoring=score).fit(*CANCER)
    asked = [params[name] or 100 for params in search.cv_results_["params"]]
    assert search.cv_results_["split1_test_score"].tolist() == asked
