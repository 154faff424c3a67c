"""Cross-validation has scikit-learn's results, from one growth."""

import logging

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, make_scorer

import dtrees
from dtrees.model_selection import cross_val_predict, cross_val_score, cross_validate

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
TREE = dtrees.DecisionTreeClassifier(random_state=0)
FOREST = dtrees.RandomForestClassifier(5, bootstrap=False, max_bins=None, random_state=0)


def size_and_score(estimator, X, y):
    """A scorer that looks at the model and at the table."""
    return {"columns": estimator.max_features_, "score": estimator.score(X, y), "rows": len(X)}


SCORING = {
    "none": None,
    "a name": "roc_auc",
    "names": ["accuracy", "neg_log_loss", "neg_brier_score"],
    "scorers": {"f1": make_scorer(f1_score), "auc": "roc_auc"},
    "a callable": lambda estimator, X, y: estimator.score(X, y) + len(X),
    "callables": {"mine": lambda estimator, X, y: estimator.n_features_in_, "f1": "f1"},
    "many results": size_and_score,
}
SPLITTERS = {
    "folds": theirs.KFold(4, shuffle=True, random_state=0),
    "stratified": theirs.StratifiedKFold(5),
    "repeated": theirs.RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "shuffled": theirs.ShuffleSplit(4, test_size=0.2, random_state=0),
    "time series": theirs.TimeSeriesSplit(4),
    "groups": theirs.GroupKFold(3),
    "a group left out": theirs.LeaveOneGroupOut(),
    "a list": [(np.arange(0, 100), np.arange(100, 150)), (np.arange(50, 300), np.arange(0, 60))],
}


def same(ours, expected):
    """Everything but the times."""
    assert ours.keys() == expected.keys()
    for name, values in expected.items():
        if name not in ("fit_time", "score_time", "estimator", "indices"):
            np.testing.assert_allclose(ours[name], values, 1e-12, 1e-15, err_msg=name)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("scoring", SCORING)
@pytest.mark.parametrize("estimator", [TREE, FOREST], ids=["tree", "forest"])
def test_scorers(estimator, scoring):
    how = {"cv": 4, "scoring": SCORING[scoring], "return_train_score": True}
    same(
        cross_validate(estimator, *CANCER, **how), theirs.cross_validate(estimator, *CANCER, **how)
    )


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_splitters(splitter):
    X, y = CANCER
    groups = np.arange(len(y)) % 7
    how = {"cv": SPLITTERS[splitter], "groups": groups if "group" in splitter else None}
    how |= {"return_indices": True, "scoring": "accuracy"}
    ours, expected = (f(TREE, X, y, **how) for f in (cross_validate, theirs.cross_validate))
    same(ours, expected)
    for side in ("train", "test"):
        for a, b in zip(ours["indices"][side], expected["indices"][side], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("most", "max_bins"), [(1, 20), (3, None)])
def test_models_are_fits_with_weights(most, max_bins):
    # Columns are cut by the weights of all rows; a fit does not know those that it leaves out.
    X, y = DIABETES
    weight = np.random.default_rng(0).integers(0, most + 1, len(y)).astype(float)
    forest = dtrees.RandomForestRegressor(3, random_state=0, max_bins=max_bins)
    cv = theirs.KFold(3)
    found = cross_validate(
        forest, X, y, cv=cv, params={"sample_weight": weight}, return_estimator=True
    )
    models = [*found["estimator"], found["final_estimator"]]
    for model, (train, _) in zip(models, [*cv.split(X), (slice(None), [])], strict=True):
        own = np.zeros(len(y))
        own[train] = weight[train]
        alone = clone(forest).fit(X, y, sample_weight=own)
        for a, b in zip(alone.forest_.trees, model.forest_.trees, strict=True):
            assert a.equals(b)
        assert type(model) is dtrees.RandomForestRegressor
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert found["fit_time"].shape == (3,)


@pytest.mark.parametrize("limit", ["min_samples_leaf", "min_samples_split"])
@pytest.mark.parametrize("data", [CANCER, DIABETES], ids=["classes", "numbers"])
def test_shares_are_of_the_training_side(data, limit):
    """As scikit-learn's fits have them, which see no other rows."""
    estimator = dtrees.DecisionTreeClassifier if data is CANCER else dtrees.DecisionTreeRegressor
    tree = estimator(random_state=0, **{limit: 0.075})
    how = {"cv": theirs.ShuffleSplit(5, train_size=0.4, random_state=0), "return_estimator": True}
    ours, expected = (f(tree, *data, **how) for f in (cross_validate, theirs.cross_validate))
    same(ours, expected)
    for one, other in zip(ours["estimator"], expected["estimator"], strict=True):
        np.testing.assert_array_equal(one.tree_.feature, other.tree_.feature)
        np.testing.assert_array_equal(one.tree_.threshold, other.tree_.threshold)
        np.testing.assert_array_equal(one.tree_.n_node_samples, other.tree_.n_node_samples)


def test_frames_with_categories():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(list("xyz"), 200)})
    y = np.where((X["a"] > 0) ^ (X["b"] == "x"), "yes", "no")
    how = {"cv": 5, "scoring": ["accuracy", "roc_auc"]}
    same(cross_validate(TREE, X, y, **how), theirs.cross_validate(TREE, X, y, **how))
    found = cross_validate(TREE, X, y, return_estimator=True)
    assert found["final_estimator"].feature_names_in_.tolist() == ["a", "b"]
    assert found["estimator"][0].score(X, y) > 0.8


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("data", [CANCER, IRIS], ids=["two classes", "three classes"])
def test_predictions(data, method):
    X, y = data
    y = np.array(["no", "so", "yes"])[y]
    estimator = dtrees.DecisionTreeClassifier(max_depth=4, random_state=0)
    how = {"cv": theirs.KFold(5, shuffle=True, random_state=1), "method": method}
    ours = cross_val_predict(estimator, X, y, **how)
    expected = theirs.cross_val_predict(estimator, X, y, **how)
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours, expected)


def test_predictions_of_numbers():
    tree = dtrees.DecisionTreeRegressor(max_depth=3)
    ours = cross_val_predict(tree, *DIABETES, cv=10)
    np.testing.assert_allclose(ours, theirs.cross_val_predict(tree, *DIABETES, cv=10), rtol=1e-12)
    with pytest.raises(ValueError, match="only works for partitions"):
        cross_val_predict(tree, *DIABETES, cv=theirs.ShuffleSplit(2))


def test_scores():
    ours = cross_val_score(FOREST, *CANCER, cv=3, scoring="f1")
    np.testing.assert_allclose(ours, theirs.cross_val_score(FOREST, *CANCER, cv=3, scoring="f1"))


class TestFailures:
    def test_of_every_fit(self):
        wrong = dtrees.DecisionTreeClassifier(max_depth=-1)
        with pytest.raises(ValueError, match="max_depth"):
            cross_validate(wrong, *IRIS, error_score="raise")
        with pytest.raises(ValueError, match="All the 5 fits failed"):
            cross_validate(wrong, *IRIS)

    def test_of_one_fit(self):
        weight = np.ones(150)
        weight[:100] = 0.0
        splits = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]
        with pytest.warns(FitFailedWarning, match="sample_weight is zero for every row"):
            found = cross_validate(
                TREE, *IRIS, cv=splits, params={"sample_weight": weight}, return_estimator=True
            )
        assert np.isnan(found["test_score"]).tolist() == [True, False]
        assert not hasattr(found["estimator"][0], "tree_")
        assert hasattr(found["estimator"][1], "tree_")
        assert found["final_estimator"].tree_.node_count == 1

    def test_of_a_scorer(self):
        def fails(estimator, X, y):
            raise RuntimeError("no score today")

        with pytest.warns(UserWarning, match="no score today"):
            found = cross_validate(TREE, *IRIS, cv=3, scoring=fails, error_score=-1.0)
        assert found["test_score"].tolist() == [-1.0] * 3
        with pytest.raises(RuntimeError, match="no score today"):
            cross_validate(TREE, *IRIS, cv=3, scoring=fails, error_score="raise")

    @pytest.mark.parametrize(
        ("cv", "message"),
        [
            (1, "must be an int in the range"),
            (1000, "n_splits=1000"),
            ([(np.array([0, 1000]), np.array([1]))], "out of bounds"),
            (theirs.GroupKFold(3), "'groups' parameter should not be None"),
        ],
    )
    def test_of_splits(self, cv, message):
        with pytest.raises((ValueError, IndexError), match=message):
            cross_validate(TREE, *IRIS, cv=cv)


class TestWhatIsNotOurs:
    def test_other_estimators(self, caplog):
        with caplog.at_level(logging.INFO, "dtrees.model_selection.fit_together"):
            found = cross_validate(Ridge(), *DIABETES, cv=3)
            assert cross_val_predict(Ridge(), *DIABETES, cv=3).shape == (442,)
        assert caplog.text.count("Ridge is not an estimator of dtrees") == 2
        expected = theirs.cross_validate(Ridge(), *DIABETES, cv=3)
        np.testing.assert_array_equal(found["test_score"], expected["test_score"])
        np.testing.assert_allclose(found["final_estimator"].coef_, Ridge().fit(*DIABETES).coef_)

    def test_other_parameters_of_fit(self, caplog):
        forest = dtrees.RandomForestRegressor(3, random_state=0)
        groups = np.arange(442) // 3
        with caplog.at_level(logging.INFO, "dtrees.model_selection.fit_together"):
            found = cross_validate(forest, *DIABETES, params={"bootstrap_groups": groups})
        assert "bootstrap_groups" in caplog.text
        alone = clone(forest).fit(*DIABETES, bootstrap_groups=groups)
        np.testing.assert_array_equal(
            found["final_estimator"].predict(DIABETES[0]), alone.predict(DIABETES[0])
        )

    def test_rows_that_are_listed_twice(self, caplog):
        rng = np.random.default_rng(0)
        splits = [(rng.integers(0, 442, 300), np.arange(20 * i, 20 * i + 20)) for i in range(3)]
        tree = dtrees.DecisionTreeRegressor(random_state=0)
        with caplog.at_level(logging.INFO, "dtrees.model_selection.fit_together"):
            ours = cross_validate(tree, *DIABETES, cv=iter(splits))
        assert "lists rows twice" in caplog.text
        same(ours, theirs.cross_validate(tree, *DIABETES, cv=splits))

    def test_derived_classes(self):
        class Contrary(dtrees.DecisionTreeClassifier):
            def predict(self, X):
                return 1 - super().predict(X)

        same(cross_validate(Contrary(), *CANCER), theirs.cross_validate(Contrary(), *CANCER))

    def test_routed_metadata(self):
        weight = np.ones(150)
        with sklearn.config_context(enable_metadata_routing=True):
            tree = (
                clone(TREE)
                .set_fit_request(sample_weight=True)
                .set_score_request(sample_weight=True)
            )
            found = cross_validate(tree, *IRIS, params={"sample_weight": weight})
        assert found["test_score"].shape == (5,)
        assert found["final_estimator"].tree_.node_count > 1


class TestVerbose:
    def shown(self, capfd, estimator, f=cross_validate, **how):
        """What is drawn on the standard error stream, and printed."""
        pytest.importorskip("rich")
        capfd.readouterr()
        f(estimator, *IRIS, cv=3, **how)
        return capfd.readouterr()

    @pytest.mark.parametrize("f", [cross_validate, cross_val_score, cross_val_predict])
    def test_trees_of_forests_are_counted_by_model(self, f, capfd, monkeypatch):
        monkeypatch.setenv("COLUMNS", "120")
        shown = self.shown(capfd, FOREST, f, verbose=1)
        assert "growing trees" in shown.err
        assert "15/15" in shown.err  # 5 trees of each of 3 models
        assert self.shown(capfd, FOREST, f).err == ""

    @pytest.mark.parametrize("parameters", [{"oob_score": True}, {"oob_tol": 0.5}])
    def test_one_bar_for_all_fits(self, parameters, capfd, monkeypatch):
        monkeypatch.setenv("COLUMNS", "120")
        forest = dtrees.RandomForestClassifier(30, random_state=0, verbose=1, **parameters)
        shown = self.shown(capfd, forest, verbose=1).err
        assert "90/90" in shown  # those that `oob_tol` spares are not waited for
        assert shown.count("growing trees") == 1
        assert "growing trees" not in self.shown(capfd, forest).err

    def test_lines_are_those_of_scikit_learn(self, capfd):
        assert "[CV] END" in self.shown(capfd, FOREST, verbose=2).out
        shown = self.shown(capfd, TREE, verbose=2)
        assert shown.out.count("[CV] END") == 3
        assert "growing trees" not in shown.err

    def test_no_bar_of_a_fit_that_fails_at_once(self, capfd):
        wrong = dtrees.RandomForestClassifier(max_depth=-1)
        with pytest.raises(ValueError, match="All the 3 fits failed"):
            self.shown(capfd, wrong, verbose=1)
        assert "growing trees" not in capfd.readouterr().err
