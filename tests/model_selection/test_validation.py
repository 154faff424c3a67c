"""The model of all rows: the same, whether it grows beside those of the splits or when asked."""

import json
import logging
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit

import dtrees
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from dtrees.model_selection import validation as together
from dtrees.model_selection.validation import grows_later

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.digitize(X[:, 0] + RNG.normal(size=300), [-0.5, 0.5])
WEIGHT = RNG.integers(1, 4, 300).astype(float)
TREE = dtrees.DecisionTreeClassifier()
SHALLOW = dtrees.DecisionTreeClassifier(max_depth=4)
ONE = ShuffleSplit(1, test_size=0.1, random_state=0)


@pytest.fixture
def grown(monkeypatch):
    """How many models each growth is of."""
    numbers = []
    fit_splits = together.fit_splits

    def counted(estimator, work):
        found = fit_splits(estimator, work)
        numbers.append(len(found.fitted.models))
        return found

    monkeypatch.setattr(together, "fit_splits", counted)
    return numbers


@pytest.mark.parametrize(
    ("estimator", "is_later"),
    [
        (TREE, True),
        (SHALLOW, False),
        (dtrees.DecisionTreeClassifier(max_leaf_nodes=31), False),
        (dtrees.DecisionTreeClassifier(min_samples_leaf=20), False),
        (dtrees.DecisionTreeClassifier(min_samples_leaf=0.06), True),  # 18 rows
        (dtrees.GradientBoostingRegressor(max_depth=3), True),  # they share no node
        (GridSearchCV(SHALLOW, {"max_depth": [1]}), False),  # what they look at may change
    ],
)
def test_models_that_share_little_grow_later(estimator, is_later):
    assert grows_later(estimator, X, list(KFold(5).split(X)), 300) == is_later


@pytest.mark.parametrize(
    ("cv", "of_shallow", "of_deep"),
    [
        (ONE, False, False),
        (KFold(2), False, False),
        (KFold(3), True, False),
        (TimeSeriesSplit(5), True, False),
        (KFold(5), True, False),
        (KFold(10), True, True),
    ],
)
def test_few_splits_do_without(cv, of_shallow, of_deep, grown):
    splits = list(cv.split(X))
    for estimator, expected in ((SHALLOW, of_shallow), (TREE, of_deep)):
        assert grows_later(estimator, X, splits, len(Y)) != expected
        found = cross_validate(estimator, X, Y, cv=splits)
        assert grown.pop() == len(splits) + expected
        assert "final_estimator" not in found
        repr(found)
        assert grown == []
        assert found["final_estimator"].tree_.n_node_samples[0] == 300
        assert grown == [1] * (not expected)
        grown.clear()


@pytest.mark.parametrize("function", [cross_val_score, cross_val_predict])
def test_who_cannot_see_it_does_not_grow_it(function, grown):
    function(TREE, X, Y, cv=10)
    assert grown == [10]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
@pytest.mark.parametrize("cv", [ONE, KFold(3)], ids=["one", "three"])
@pytest.mark.parametrize(
    "estimator",
    [
        TREE,
        dtrees.DecisionTreeClassifier(class_weight="balanced"),
        dtrees.DecisionTreeClassifier(class_weight={0: 3.0}),
        dtrees.RandomForestClassifier(3, random_state=5),
        dtrees.GradientBoostingClassifier(max_iter=3, random_state=5),
    ],
)
def test_it_is_the_model_of_a_fit(estimator, cv, weight):
    params = {} if weight is None else {"sample_weight": weight}
    table, y, given = X.copy(), Y.copy(), clone(estimator)
    if weight is not None:
        params["sample_weight"] = weight.copy()
    found = cross_validate(given, table, y, cv=cv, params=params)
    table[:], y[:] = 0, 1  # it grows from what there was
    given.set_params(min_samples_leaf=100)
    if weight is not None:
        params["sample_weight"][:] = 7
    late, alone = found["final_estimator"], clone(estimator).fit(X, Y, sample_weight=weight)
    trees = zip(trees_of(late), trees_of(alone), strict=True)
    assert all(mine.equals(other) for mine, other in trees)
    assert found["final_estimator"] is late
    assert vars(late).keys() == vars(alone).keys()


def test_draws_are_those_of_the_other_models():
    """Also where nobody has given a seed: it has the bags of the models of the splits."""
    forest = dtrees.RandomForestClassifier(3, max_features=None)
    every = [(np.arange(300), np.arange(9))]
    found = cross_validate(forest, X, Y, cv=every, return_estimator=True)
    (mine,), late = found["estimator"], found["final_estimator"]
    trees = zip(trees_of(mine), trees_of(late), strict=True)
    assert all(own.equals(other) for own, other in trees)


def test_draws_of_a_state_are_those_of_the_other_models():
    """The state is drawn from once, and not when the model is asked for."""
    forest = dtrees.RandomForestClassifier(3, random_state=np.random.RandomState(4))
    every = [(np.arange(300), np.arange(9))]
    found = cross_validate(forest, X, Y, cv=every, return_estimator=True)
    state = forest.random_state.get_state()[1].copy()
    trees = zip(trees_of(found["estimator"][0]), trees_of(found["final_estimator"]), strict=True)
    assert all(own.equals(other) for own, other in trees)
    assert (forest.random_state.get_state()[1] == state).all()


def test_it_tells_what_the_others_have_shared():
    found = cross_validate(TREE, X, Y, cv=3, return_estimator=True)
    report, own = found["estimator"][0].fit_report_, found["final_estimator"].fit_report_
    assert own["shared_nodes"] == report["shared_nodes"]
    assert own.keys() == report.keys()


def test_searches_grow_it_at_once():
    """Whatever they look at may have changed when it is asked for."""
    search = GridSearchCV(SHALLOW, {"max_depth": [1, 3]}, cv=3)
    found = cross_validate(search, X, Y, cv=3)
    assert found._grow is None
    alone = clone(search).fit(X, Y)
    assert found["final_estimator"].best_params_ == alone.best_params_
    assert found["final_estimator"].best_score_ == alone.best_score_


@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_a_fit_that_fails_is_told_when_it_is_asked_for(error_score, monkeypatch):
    found = cross_validate(TREE, X, Y, cv=2, error_score=error_score)

    def fails(estimator, work):
        raise ValueError("not today")

    monkeypatch.setattr(together, "fit_splits", fails)
    if error_score == "raise":
        with pytest.raises(ValueError, match="not today"):
            found["final_estimator"]
        return
    with pytest.warns(FitFailedWarning, match="all rows failed.*not today"):
        final = found["final_estimator"]
    assert not hasattr(final, "tree_")


def test_no_memory_is_no_failed_fit(monkeypatch):
    found = cross_validate(TREE, X, Y, cv=2)

    def fails(estimator, work):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(together, "fit_splits", fails)
        with pytest.raises(MemoryError):
            found["final_estimator"]
    assert found["final_estimator"].tree_.node_count > 1  # once there is memory


@pytest.mark.parametrize("copied", [deepcopy, lambda found: pickle.loads(pickle.dumps(found))])
def test_pickles_have_it(copied):
    found = cross_validate(TREE, X, Y, cv=2)
    again = copied(found)
    assert again.final_estimator is not found.final_estimator
    assert again["final_estimator"].tree_.node_count == found["final_estimator"].tree_.node_count


def test_get_knows_it():
    found = cross_validate(TREE, X, Y, cv=2)
    assert found.get("final_estimator") is found.final_estimator
    assert found.get("test_score") is found["test_score"]
    assert found.get("estimator") is None
    assert found.get("estimator", 3) == 3


@pytest.mark.parametrize("cv", [2, 10], ids=["late", "at once"])
def test_items_are_those_of_arrays(cv):
    """So frames, means over all items and JSON of lists are what they are of scikit-learn's."""
    found = cross_validate(SHALLOW, X, Y, cv=cv, return_train_score=True)
    names = ["fit_time", "score_time", "test_score", "train_score"]
    assert sorted(found) == sorted(dict(found)) == sorted({**found}) == names
    assert all(np.mean(values) >= 0 for values in found.values())
    assert len(json.loads(json.dumps({k: v.tolist() for k, v in found.items()}))) == 4
    pd = pytest.importorskip("pandas")
    assert pd.DataFrame(found).shape == (cv, 4)
    assert found["final_estimator"] is found.final_estimator
    assert "final_estimator" not in found
    with pytest.raises(KeyError):
        found["final"]


def test_threads_that_ask_at_once_have_the_same(monkeypatch):
    found, calls, entered = cross_validate(TREE, X, Y, cv=2), [], threading.Event()
    fit_splits = together.fit_splits

    def waits(estimator, work):
        calls.append(1)
        entered.wait()
        return fit_splits(estimator, work)

    monkeypatch.setattr(together, "fit_splits", waits)
    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(getattr, found, "final_estimator") for _ in range(3)]
        entered.set()
        assert len({id(each.result()) for each in asking}) == 1
    assert len(calls) == 1


CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
SEEDED = dtrees.DecisionTreeClassifier(random_state=0)
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


@pytest.mark.one_of(8)
@pytest.mark.parametrize("scoring", SCORING)
@pytest.mark.parametrize("estimator", [SEEDED, FOREST], ids=["tree", "forest"])
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
    ours, expected = (f(SEEDED, X, y, **how) for f in (cross_validate, theirs.cross_validate))
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
    same(cross_validate(SEEDED, X, y, **how), theirs.cross_validate(SEEDED, X, y, **how))
    found = cross_validate(SEEDED, X, y, return_estimator=True)
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


class TestFailures:
    def test_of_one_fit(self):
        weight = np.ones(150)
        weight[:100] = 0.0
        splits = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]
        with pytest.warns(FitFailedWarning, match="sample_weight is zero for every row"):
            found = cross_validate(
                SEEDED, *IRIS, cv=splits, params={"sample_weight": weight}, return_estimator=True
            )
        assert np.isnan(found["test_score"]).tolist() == [True, False]
        assert not hasattr(found["estimator"][0], "tree_")
        assert hasattr(found["estimator"][1], "tree_")
        assert found["final_estimator"].tree_.node_count == 1

    def test_of_a_scorer(self):
        def fails(estimator, X, y):
            raise RuntimeError("no score today")

        with pytest.warns(UserWarning, match="no score today"):
            found = cross_validate(SEEDED, *IRIS, cv=3, scoring=fails, error_score=-1.0)
        assert found["test_score"].tolist() == [-1.0] * 3
        with pytest.raises(RuntimeError, match="no score today"):
            cross_validate(SEEDED, *IRIS, cv=3, scoring=fails, error_score="raise")


class TestWhatIsNotOurs:
    def test_other_estimators(self, caplog):
        with caplog.at_level(logging.INFO, "dtrees.model_selection.validation"):
            found = cross_validate(Ridge(), *DIABETES, cv=3)
            assert cross_val_predict(Ridge(), *DIABETES, cv=3).shape == (442,)
        assert caplog.text.count("Ridge is not an estimator of dtrees") == 2
        expected = theirs.cross_validate(Ridge(), *DIABETES, cv=3)
        np.testing.assert_array_equal(found["test_score"], expected["test_score"])
        np.testing.assert_allclose(found["final_estimator"].coef_, Ridge().fit(*DIABETES).coef_)

    def test_other_parameters_of_fit(self, caplog):
        forest = dtrees.RandomForestRegressor(3, random_state=0)
        groups = np.arange(442) // 3
        with caplog.at_level(logging.INFO, "dtrees.model_selection.validation"):
            found = cross_validate(forest, *DIABETES, params={"bootstrap_groups": groups})
        assert "bootstrap_groups" in caplog.text
        alone = clone(forest).fit(*DIABETES, bootstrap_groups=groups)
        np.testing.assert_array_equal(
            found["final_estimator"].predict(DIABETES[0]), alone.predict(DIABETES[0])
        )

    def test_derived_classes(self):
        class Contrary(dtrees.DecisionTreeClassifier):
            def predict(self, X):
                return 1 - super().predict(X)

        same(cross_validate(Contrary(), *CANCER), theirs.cross_validate(Contrary(), *CANCER))


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
        shown = self.shown(capfd, SEEDED, verbose=2)
        assert shown.out.count("[CV] END") == 3
        assert "growing trees" not in shown.err

    def test_no_bar_of_a_fit_that_fails_at_once(self, capfd):
        wrong = dtrees.RandomForestClassifier(max_depth=-1)
        with pytest.raises(ValueError, match="All the 3 fits failed"):
            self.shown(capfd, wrong, verbose=1)
        assert "growing trees" not in capfd.readouterr().err
