"""Models of cells are scored by leaves where they can be, and those that are the same once."""

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer, roc_auc_score

import dtrees
from dtrees.estimators.training_table import TrainingTable
from dtrees.model_selection import (
    GridSearchCV,
    cell_scores,
    cross_val_score,
    cross_validate,
    validation,
)
from dtrees.model_selection.cell_scores import score_models, scores_by_leaves, scores_by_score
from dtrees.model_selection.fitted_splits import fit_splits
from dtrees.model_selection.prepare import SplitTable

CANCER = load_breast_cancer(return_X_y=True)
TREE = dtrees.DecisionTreeClassifier(random_state=0)
GRID = {"max_depth": [1, 2, 10, 20, 30, None], "ccp_alpha": [0.0, 1e-9, 1e-8, 0.05]}


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "balanced_accuracy"])
def test_threads_do_not_change_scores(scoring, monkeypatch):
    tree, found = clone(TREE).set_params(n_jobs=2), []
    for most in (0, 1 << 40):
        monkeypatch.setattr(cell_scores, "MANY_SUMS", most)
        found.append(cross_validate(tree, *CANCER, scoring=scoring)["test_score"])
    np.testing.assert_array_equal(*found)


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


SPLITS = list(theirs.KFold(3).split(CANCER[0]))


def whole(estimator, y=CANCER[1], splits=SPLITS):
    work = SplitTable(TrainingTable(CANCER[0], y, None), splits)
    return fit_splits(estimator, work).whole(), work.table


@pytest.mark.parametrize("scoring", [None, "accuracy", ["accuracy", "neg_log_loss"], {"a": "f1"}])
def test_both_ways_say_the_same(scoring):
    cells, table = whole(TREE)
    by_leaves = scores_by_leaves(cells, SPLITS, scoring, return_train_score=True)
    by_models = score_models(
        cells, table.X, table.y, SPLITS, scoring, "raise", return_train_score=True
    )
    assert by_leaves.is_single == by_models.is_single
    assert by_leaves.scores.keys() == by_models.scores.keys()
    for key, scores in by_leaves.scores.items():
        assert scores.shape == (1, 3)
        np.testing.assert_allclose(scores, by_models.scores[key], rtol=1e-9, atol=1e-12)


WORDS = np.array(["no", "yes"])[CANCER[1]]
NUMBERS = CANCER[0][:, 0]
MODELS = {
    "forest of classes": (dtrees.RandomForestClassifier(5, random_state=0), WORDS),
    "forest of numbers": (dtrees.ExtraTreesRegressor(5, random_state=0), NUMBERS),
    "boosting of classes": (dtrees.GradientBoostingClassifier(max_iter=5), pd.Series(WORDS)),
    "boosting of numbers": (dtrees.GradientBoostingRegressor(max_iter=5), NUMBERS.tolist()),
}


class TestScoresByScore:
    @pytest.mark.parametrize("name", MODELS)
    def test_they_are_those_of_scikit_learns_loop(self, name, monkeypatch):
        estimator, y = MODELS[name]
        mask = np.arange(len(y)) % 3 == 0
        splits = [*SPLITS, (~mask, mask), (np.arange(400), [-1, 5, 5])]
        how = {"cv": splits, "return_train_score": True}
        expected = cross_validate(estimator, CANCER[0], y, **how)["test_score"]
        monkeypatch.setattr(validation, "_by_sklearn", None)
        found = cross_validate(estimator, CANCER[0], y, cv=splits)
        np.testing.assert_array_equal(found["test_score"], expected)
        np.testing.assert_array_equal(cross_val_score(estimator, CANCER[0], y, cv=splits), expected)
        assert found["score_time"].shape == (5,)
        assert "train_score" not in found

    def test_a_row_alone_has_no_r2(self):
        estimator, y = MODELS["boosting of numbers"]
        with pytest.warns(UndefinedMetricWarning):
            found = cross_validate(estimator, CANCER[0], y, cv=[(np.arange(400), [401])])
        assert np.isnan(found["test_score"]).all()

    def test_a_score_that_fails_is_scikit_learns(self):
        estimator, y = MODELS["boosting of numbers"]
        splits = [(np.arange(400), np.arange(0)), SPLITS[0]]
        cells, _ = whole(estimator, np.array(y), splits)
        assert scores_by_score(cells, y, splits) is None
        with pytest.warns(UserWarning, match="Scoring failed"):
            found = cross_validate(estimator, CANCER[0], y, cv=splits, error_score=-7.0)
        assert found["test_score"][0] == -7.0 != found["test_score"][1]
