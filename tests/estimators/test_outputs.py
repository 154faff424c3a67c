"""Several targets: what estimators learn, answer and refuse."""

from __future__ import annotations

import pickle
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn import ensemble, tree
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import explained_variance_score, f1_score, r2_score
from sklearn.model_selection import KFold, cross_val_score

import dtrees
from dtrees import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.estimators.fitted_sets import trees_of
from dtrees.export import to_lightgbm, to_sklearn, trees_to_dataframe
from dtrees.inspection import (
    held_out_importances,
    oob_importances,
    partial_dependence,
    plot_tree,
    shap_values,
)
from dtrees.model_selection import (
    GridSearchCV,
    cost_complexity_cv,
    cross_val_predict,
    cross_validate,
    tuned_size,
    validation_surface,
)

CLASSIFIERS = (DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier)
REGRESSORS = (DecisionTreeRegressor, RandomForestRegressor, ExtraTreesRegressor)
FOREST = {"n_estimators": 5, "random_state": 0}


def made(kind, **parameters):
    own = {} if "Tree" in kind.__name__ and "Decision" in kind.__name__ else FOREST
    return kind(**own, **parameters)


@pytest.fixture(scope="module")
def table():
    """X of distinct numbers, and columns of classes and of numbers."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(160, 4)).astype(np.float32)
    noise = rng.normal(size=(160, 3))
    numbers = np.c_[X[:, 0] + X[:, 1] ** 2, 1e4 * np.sin(2 * X[:, 2]), 1e-3 * X[:, 3]]
    numbers += 0.2 * noise * numbers.std(axis=0)
    classes = np.c_[numbers[:, 0] > 0.5, np.digitize(numbers[:, 1], [-5e3, 0, 5e3])].astype(int)
    return X, classes, numbers


LIMITS = [{"max_depth": 3}, {"min_samples_leaf": 12}, {"max_leaf_nodes": 6}, {"ccp_alpha": 0.02}]


def assert_same_tree(ours, theirs, is_best_first=False):
    assert ours.node_count == theirs.node_count
    np.testing.assert_array_equal(ours.n_classes, theirs.n_classes)
    assert (ours.n_outputs, ours.max_n_classes) == (theirs.n_outputs, theirs.max_n_classes)
    if is_best_first:  # their nodes are numbered in the order of the gains
        return
    np.testing.assert_array_equal(ours.feature, theirs.feature)
    np.testing.assert_allclose(ours.threshold, theirs.threshold, rtol=1e-6)
    np.testing.assert_allclose(ours.impurity, theirs.impurity, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-9)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_trees_of_classes_are_those_of_scikit_learn(table, criterion, limits):
    X, y, _ = table
    weight = np.random.default_rng(0).integers(1, 5, len(y))
    how = {"criterion": criterion, **limits}
    is_best_first = "max_leaf_nodes" in limits
    ours = DecisionTreeClassifier(**how).fit(X, y, weight)
    theirs = tree.DecisionTreeClassifier(random_state=0, **how).fit(X, y, weight)
    assert_same_tree(ours.tree_, theirs.tree_, is_best_first)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for mine, other in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
        np.testing.assert_allclose(mine, other)
    for mine, other in zip(ours.predict_log_proba(X), ours.predict_proba(X), strict=True):
        np.testing.assert_allclose(np.exp(mine), other)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_)
    if not is_best_first:
        np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
        assert (ours.decision_path(X) != theirs.decision_path(X)).nnz == 0
    assert ours.n_outputs_ == theirs.n_outputs_ == 2
    assert ours.n_classes_ == list(theirs.n_classes_)
    for mine, other in zip(ours.classes_, theirs.classes_, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_trees_of_labels_are_those_of_scikit_learn(table, class_weight, limits):
    # grown as numbers 0 and 1, and seen as classes; the last label has no row of one class
    X, classes, numbers = table
    y = np.c_[classes[:, 0], numbers > np.median(numbers, axis=0), np.ones(len(X), dtype=int)]
    weight = None if class_weight else np.random.default_rng(0).integers(1, 5, len(y))
    how = {"class_weight": class_weight, "min_impurity_decrease": 0.01, **limits}
    ours = DecisionTreeClassifier(**how).fit(X, y, weight)
    theirs = tree.DecisionTreeClassifier(random_state=0, **how).fit(X, y, weight)
    assert ours.n_classes_ == list(theirs.n_classes_) == [2, 2, 2, 2, 1]
    assert_same_tree(ours.tree_, theirs.tree_, "max_leaf_nodes" in limits)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_)
    for mine, other in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)


@pytest.mark.parametrize("limits", LIMITS)
def test_trees_of_numbers_are_those_of_scikit_learn(table, limits):
    X, _, y = table
    y = y / y.std(axis=0)
    weight = np.random.default_rng(0).integers(1, 5, len(y))
    ours = DecisionTreeRegressor(**limits).fit(X, y, weight)
    theirs = tree.DecisionTreeRegressor(random_state=0, **limits).fit(X, y, weight)
    assert_same_tree(ours.tree_, theirs.tree_, "max_leaf_nodes" in limits)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))
    np.testing.assert_allclose(ours.tree_.predict(X)[:, :, 0], ours.predict(X))


@pytest.mark.parametrize(
    "class_weight", ["balanced", [{0: 1, 1: 3}, {0: 2, 1: 1, 2: 1, 3: 5}], [None, "balanced"]]
)
def test_class_weights_are_those_of_scikit_learn(table, class_weight):
    X, y, _ = table
    how = {"class_weight": class_weight, "max_depth": 3}
    ours = DecisionTreeClassifier(**how).fit(X, y)
    if None in list(class_weight):
        how["class_weight"] = [{0: 1, 1: 1}, {
            k: len(y) / (4 * n) for k, n in enumerate(np.bincount(y[:, 1]))
        }]  # fmt: skip
    theirs = tree.DecisionTreeClassifier(random_state=0, **how).fit(X, y)
    assert_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [({0: 1}, "list of dicts"), ([{0: 1}], "should match number of outputs: there are 1 and 2")],
)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_class_weights_that_are_none(table, kind, class_weight, message):
    X, y, _ = table
    with pytest.raises(ValueError, match=message):
        made(kind, class_weight=class_weight).fit(X, y)


def test_a_list_of_class_weights_is_of_several_targets(table):
    X, y, _ = table
    with pytest.raises(ValueError, match="class_weight"):
        DecisionTreeClassifier(class_weight=[{0: 1, 1: 2}]).fit(X, y[:, 0])


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_forest_is_the_mean_of_its_trees(table, kind, n_jobs):
    X, classes, numbers = table
    y = classes if kind in CLASSIFIERS else numbers
    model = made(kind, n_jobs=n_jobs).fit(X, y)
    assert model.predict(X).shape == y.shape
    trees = getattr(model, "estimators_", [model])
    assert all(each.n_outputs_ == y.shape[1] for each in trees)
    if kind in REGRESSORS:
        mean = np.mean([each.predict(X) for each in trees], axis=0)
        np.testing.assert_allclose(model.predict(X), mean, rtol=1e-12)
        assert model.score(X, y) > 0.6
        return
    mean = [
        np.mean(some, axis=0) for some in zip(*(t.predict_proba(X) for t in trees), strict=True)
    ]
    for mine, other in zip(model.predict_proba(X), mean, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)
    assert (model.predict(X) == y).mean() > 0.9


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_storage_and_threads_do_not_matter(table, kind):
    X, classes, numbers = table
    y = classes if kind in CLASSIFIERS else numbers
    X = X * (np.abs(X) > 0.5)
    X[::7, 1] = np.nan
    frame = pd.DataFrame(X, columns=list("pqrs")).astype({"p": "float64"})
    frame["letters"] = pd.Categorical(np.array(list("abcde"))[np.arange(len(X)) % 5])
    limits = {"max_bins": 20, "random_state": 1}
    if kind not in (DecisionTreeClassifier, DecisionTreeRegressor):
        limits["n_estimators"] = 4
    one = kind(n_jobs=1, **limits).fit(X, y)
    for other in (kind(n_jobs=3, **limits).fit(X, y), kind(**limits).fit(sp.csr_array(X), y)):
        np.testing.assert_array_equal(other.predict(X), one.predict(X), strict=True)
        np.testing.assert_array_equal(other.feature_importances_, one.feature_importances_)
    frames = [kind(n_jobs=n, **limits).fit(frame, y).predict(frame) for n in (1, 3)]
    np.testing.assert_array_equal(*frames)


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_weights_are_repeats(table, kind):
    X, classes, numbers = table
    y = classes if kind in CLASSIFIERS else numbers
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    how = {} if kind in (DecisionTreeClassifier, DecisionTreeRegressor) else {"bootstrap": False}
    once = made(kind, **how).fit(X, y, weight)
    rows = np.repeat(np.arange(len(y)), weight)
    again = made(kind, **how).fit(X[rows], y[rows])
    np.testing.assert_array_equal(once.predict(X), again.predict(X))


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_labels_of_several_types(table, kind):
    X, y, _ = table
    words = np.array(["no", "yes"])[y[:, 0]]
    both = pd.DataFrame({"word": words, "number": y[:, 1]})
    model = made(kind).fit(X, both)
    assert [each.dtype.kind for each in model.classes_] == ["O", "i"]
    predicted = model.predict(X)
    assert predicted.dtype == object
    np.testing.assert_array_equal(
        predicted[:, 1].astype(int), made(kind).fit(X, y).predict(X)[:, 1]
    )
    one_type = np.c_[words, np.array(["a", "b", "c", "d"])[y[:, 1]]]
    assert made(kind).fit(X, one_type).predict(X).dtype.kind == "U"


def test_dates_beside_other_labels(table):
    X, classes, _ = table
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[ns]")[classes[:, 0]]
    y = pd.DataFrame({"day": days, "class": classes[:, 1]})
    predicted = DecisionTreeClassifier().fit(X, y).predict(X)
    np.testing.assert_array_equal(predicted[:, 0].astype(days.dtype), days)
    assert isinstance(predicted[0, 0], np.datetime64)  # an integer of NumPy's otherwise


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_indicators_of_labels(kind):
    X, y = make_multilabel_classification(120, random_state=0)
    model = made(kind).fit(X, y)
    predicted = model.predict(X)
    assert predicted.dtype == y.dtype
    assert model.score(X, y) == (predicted == y).all(axis=1).mean() > 0.5
    sparse = made(kind).fit(X, sp.csr_matrix(y))
    np.testing.assert_array_equal(sparse.predict(X), predicted)


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_a_missing_target_is_an_error_that_names_the_row(table, kind):
    X, classes, numbers = table
    y = (classes if kind in CLASSIFIERS else numbers).astype(float)
    y[17, 1] = np.nan
    with pytest.raises(ValueError, match=r"Input y contains NaN.*row 17"):
        made(kind).fit(X, y)
    if kind in CLASSIFIERS:
        labels = classes.astype(str).astype(object)
        labels[17, 1] = None
        with pytest.raises(ValueError, match=r"Input y contains NaN: output 1 of row 17"):
            made(kind).fit(X, labels)


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_lengths_that_differ(table, kind):
    X, classes, _ = table
    with pytest.raises(ValueError, match="X has 160 rows, y has 159"):
        made(kind).fit(X, classes[1:])


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_copies_answer_alike(table, kind):
    X, classes, numbers = table
    y = classes if kind in CLASSIFIERS else numbers
    model = made(kind).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X), strict=True)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), model.predict(X))
    lazy = model.predict(da.from_array(X, chunks=(50, -1)))
    np.testing.assert_array_equal(lazy.compute(), model.predict(X), strict=True)


def mean_out_of_bag(model, X):
    """Means over the trees that have not seen a row, by output; nan where there is none."""
    sums, votes = None, np.zeros((len(X), 1))
    for one, seen in zip(model.estimators_, model.estimators_samples_, strict=True):
        out = ~np.isin(np.arange(len(X)), seen)
        answers = one.predict_proba(X) if hasattr(one, "predict_proba") else [one.predict(X)]
        own = [answer * out[:, None] for answer in answers]
        sums = own if sums is None else [a + b for a, b in zip(sums, own, strict=True)]
        votes += out[:, None]
    with np.errstate(invalid="ignore"):
        return [each / votes for each in sums]


@pytest.mark.parametrize(
    ("kind", "criterion"),
    [
        (RandomForestRegressor, "squared_error"),
        (ExtraTreesRegressor, "squared_error"),
        (RandomForestRegressor, "absolute_error"),
    ],
)
def test_numbers_out_of_bag(table, kind, criterion):
    X, _, y = table
    how = {"bootstrap": True, "oob_score": True, "n_estimators": 20, "random_state": 2}
    how["criterion"] = criterion
    model = kind(**how).fit(X, y)
    (mean,) = mean_out_of_bag(model, X)
    np.testing.assert_allclose(model.oob_prediction_, mean, rtol=1e-12)
    voted = ~np.isnan(mean[:, 0])
    assert model.oob_score_ == pytest.approx(r2_score(y[voted], mean[voted]))
    own = kind(**how | {"oob_score": explained_variance_score}).fit(X, pd.DataFrame(y))
    assert own.oob_score_ == pytest.approx(explained_variance_score(y[voted], mean[voted]))
    again = kind(**how | {"n_estimators": 15, "warm_start": True}).fit(X, y)
    again.set_params(n_estimators=20).fit(X, y)
    np.testing.assert_array_equal(again.oob_prediction_, model.oob_prediction_)
    turned = kind(**how).fit(X, y[:, ::-1])
    np.testing.assert_array_equal(turned.oob_prediction_, model.oob_prediction_[:, ::-1])
    one = kind(**how).fit(X, y[:, 0])
    twice = kind(**how).fit(X, np.c_[y[:, 0], y[:, 0]])
    for column in twice.oob_prediction_.T:
        np.testing.assert_array_equal(column, one.oob_prediction_)
    both = (np.c_[each, each][voted] for each in (y[:, 0], one.oob_prediction_))
    assert twice.oob_score_ == r2_score(*both)
    flat = kind(**how | {"oob_score": False, "oob_tol": 1.0, "n_estimators": 40}).fit(X, y)
    assert flat.n_estimators_ == 20 == len(flat.oob_scores_)
    assert flat.oob_scores_[-1] == model.oob_score_


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, pd.DataFrame])
def test_indicators_out_of_bag(kind, form):
    X, y = make_multilabel_classification(120, n_classes=3, random_state=0)
    how = {"bootstrap": True, "oob_score": True, "n_estimators": 20, "random_state": 2}
    model = kind(**how).fit(X, form(y))
    mean = mean_out_of_bag(model, X)
    assert model.oob_decision_function_.shape == (120, 2, 3)
    np.testing.assert_allclose(model.oob_decision_function_, np.stack(mean, axis=2), rtol=1e-12)
    voted = ~np.isnan(mean[0][:, 0])
    labels = np.stack([each.argmax(axis=1) for each in mean], axis=1)
    assert model.oob_score_ == pytest.approx((labels == y)[voted].all(axis=1).mean())
    scorer = partial(f1_score, average="micro")
    own = kind(**how | {"oob_score": scorer}).fit(X, form(y))
    assert own.oob_score_ == pytest.approx(scorer(y[voted], labels[voted]))
    constant = kind(**how).fit(X, np.c_[y[:, 0], np.ones(len(y), dtype=int)])
    assert constant.oob_decision_function_.shape == (120, 2, 2)
    np.testing.assert_array_equal(
        constant.oob_decision_function_[voted][:, :, 1], [[1, 0]] * voted.sum()
    )


@pytest.mark.parametrize("asked", [{"oob_score": True}, {"oob_tol": 0.1}])
def test_classes_without_a_score_out_of_bag(table, asked):
    X, y, _ = table
    words = pd.DataFrame({"a": y[:, 0], "b": np.array(list("abcd"))[y[:, 1]]})
    for given in (y, words):
        with pytest.raises(ValueError, match="type of target cannot be used to compute OOB"):
            RandomForestClassifier(3, **asked).fit(X, given)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesRegressor])
def test_a_warm_start_goes_on(table, kind):
    X, classes, numbers = table
    y = classes if kind in CLASSIFIERS else numbers
    whole = kind(6, random_state=0).fit(X, y)
    grown = kind(3, random_state=0, warm_start=True).fit(X, y).set_params(n_estimators=6).fit(X, y)
    np.testing.assert_array_equal(grown.predict(X), whole.predict(X))
    with pytest.raises(ValueError, match=r"targets and has|other classes"):
        grown.set_params(n_estimators=7).fit(X, np.c_[y, y[:, 0]])


def test_scales_of_outputs_do_not_matter():
    # each has its own unit: the small one is told to its last digits
    rng = np.random.default_rng(0)
    X, small = rng.normal(size=(200, 3)), rng.normal(size=200)
    y = np.c_[1e9 * rng.normal(size=200), 1e-9 * small, np.full(200, 7.0)]
    model = DecisionTreeRegressor().fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_poisson_is_that_of_scikit_learn(weighted):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(np.c_[X[:, 0], X[:, 1] - 1, X[:, 0] * 0.5])).astype(float)
    w = rng.random(300) + 0.1 if weighted else None
    how = {"criterion": "poisson", "max_depth": 4, "min_samples_leaf": 5}
    ours = DecisionTreeRegressor(**how).fit(X, y, w)
    theirs = tree.DecisionTreeRegressor(random_state=0, **how).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10)
    np.testing.assert_allclose(np.sort(ours.tree_.impurity), np.sort(theirs.tree_.impurity))
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_)
    again = pickle.loads(pickle.dumps(ours)).tree_
    np.testing.assert_array_equal(again.impurity, ours.tree_.impurity)
    np.testing.assert_array_equal(again.model.gain, ours.tree_.model.gain)


@pytest.mark.parametrize("name", ["RandomForest", "ExtraTrees", "Bagging"])
@pytest.mark.parametrize("criterion", ["poisson", "absolute_error"])
def test_forests_of_counts(name, criterion):
    kind = getattr(dtrees, f"{name}Regressor")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(np.c_[X[:, 0], X[:, 1] - 1])).astype(float)
    models = [
        kind(5, criterion=criterion, random_state=0, n_jobs=n_jobs).fit(table, y)
        for n_jobs, table in [(1, X), (2, sp.csr_array(X))]
    ]
    with dask.config.set({"scheduler": "threads", "dtrees.gather-rows": 20}):
        models.append(clone(models[0]).set_params(regime="partitioned").fit(X, y))
    found = [model.predict(X) for model in models]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert (found[0] >= 0).all()
    assert models[0].score(X, y) > 0.5


def test_poisson_wants_counts_of_each_target():
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(16.0).reshape(8, 2)
    for wrong, said in ((y - 1, "are negative"), (y * [1, 0], "Sum of y is not positive")):
        with pytest.raises(ValueError, match=f"{said}.*Poisson"):
            DecisionTreeRegressor(criterion="poisson").fit(X, wrong)


REFUSED = {
    "monotonic": (DecisionTreeRegressor(monotonic_cst=[1, 0, 0, 0]), "monotonic_cst"),
    "adaboost": (AdaBoostClassifier(), "AdaBoostClassifier"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_take_them_says_what_to_do(table, name):
    X, classes, numbers = table
    model, what = REFUSED[name]
    y = classes if hasattr(model, "predict_proba") else np.abs(numbers)
    with pytest.raises(ValueError, match=f"{what}.* does not support several targets") as error:
        model.fit(X, y)
    assert "a model per column of y" in str(error.value)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("layout", ["compact", "flat"])
@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_files_answer_alike(table, kind, layout, tmp_path):
    X, classes, numbers = table
    y = numbers
    if kind in CLASSIFIERS:
        y = pd.DataFrame({"word": np.array(["no", "yes"])[classes[:, 0]], "number": classes[:, 1]})
    model = made(kind).fit(X, y, np.random.default_rng(0).uniform(0.5, 2, len(X)))
    dtrees.save(model, tmp_path / "model", layout=layout)
    again = dtrees.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X), strict=True)
    for trees in zip(getattr(model, "forest_", ()), getattr(again, "forest_", ()), strict=True):
        assert trees[0].equals(trees[1])
    learned = model._learned_attributes()
    assert learned.keys() == again._learned_attributes().keys()
    assert learned["n_outputs_"] == again.n_outputs_ == 2 + (kind in REGRESSORS)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_files_hold_scores_out_of_bag(table, kind, tmp_path):
    X, classes, numbers = table
    y = classes > 1 if kind is RandomForestClassifier else numbers
    model = kind(20, random_state=0, oob_score=True).fit(X, y)
    dtrees.save(model, tmp_path / "model")
    again = dtrees.load(tmp_path / "model")
    for name in ("oob_decision_function_", "oob_prediction_"):
        assert hasattr(model, name) == hasattr(again, name)
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name), strict=True)
    name = "oob_prediction_" if kind is RandomForestRegressor else "oob_decision_function_"
    setattr(model, name, getattr(model, name)[:, :1])
    with pytest.raises(ValueError, match=f"{name} has not a column for every class and target"):
        dtrees.save(model, tmp_path / "model")


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_checkpoints_go_on(table, kind, tmp_path):
    X, classes, numbers = table
    y = classes if kind in CLASSIFIERS else numbers
    whole = made(kind).fit(X, y)
    if hasattr(whole, "forest_"):
        kind(2, random_state=0).fit(X, y, checkpoint=tmp_path)
    for _ in range(2):  # of the whole fit, and of one that is there
        model = made(kind).fit(X, y, checkpoint=tmp_path)
        np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    for other in (y[:, ::-1], y[:, :1], np.c_[y, y[:, 0]], np.where(y == y[0], y[1], y)):
        with pytest.raises(ValueError, match="holds trees of another fit"):
            made(kind).fit(X, other.squeeze(), checkpoint=tmp_path)


def frame_of(values):
    frame = pd.DataFrame(values, index=np.arange(len(values)) * 3)
    return dd.from_pandas(frame, npartitions=3, sort=False)


def array_of(values):
    return da.from_array(values, chunks=(50, values.shape[1]))


@pytest.mark.one_of(6)
@pytest.mark.parametrize("make", [array_of, frame_of])
@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_collections_are_tables(table, kind, make):
    X, classes, numbers = table
    y = classes if kind in CLASSIFIERS else numbers
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    here = made(kind).fit(pd.DataFrame(X) if make is frame_of else X, y, weight)
    answers = here.predict(X if make is array_of else pd.DataFrame(X))
    for given in (y, array_of(y), frame_of(y)):
        model = made(kind).fit(make(X), given, da.from_array(weight, chunks=60))
        lazy = model.predict(make(X))
        np.testing.assert_array_equal(np.asarray(lazy.compute()), answers)
    if kind in REGRESSORS:
        assert model.score(make(X), array_of(y)) == here.score(X, y)
        return
    for method in ("predict_proba", "predict_log_proba"):
        lazy, shares = getattr(model, method)(make(X)), getattr(here, method)(X)
        assert type(lazy) is list
        for own, known in zip(lazy, shares, strict=True):
            np.testing.assert_array_equal(np.asarray(own.compute()), known)


def test_lengths_of_collections_that_differ(table):
    X, _, numbers = table
    with pytest.raises(ValueError, match=r"160|inconsistent"):
        RandomForestRegressor(2).fit(array_of(X), array_of(numbers[1:]))


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_the_model_of_one_target(table, kind, tmp_path):
    X, classes, numbers = table
    y = numbers
    if kind in CLASSIFIERS:
        y = pd.DataFrame({"word": np.array(["no", "yes"])[classes[:, 0]], "number": classes[:, 1]})
    model = made(kind).fit(X, y)
    for k in range(y.shape[1]):
        one = model.of_target(k)
        assert (type(one), one.n_outputs_) == (kind, 1)
        np.testing.assert_array_equal(one.predict(X), model.predict(X)[:, k])
        np.testing.assert_array_equal(one.apply(X), model.apply(X))
        np.testing.assert_array_equal(one.feature_importances_, model.feature_importances_)
        if kind in CLASSIFIERS:
            np.testing.assert_array_equal(one.predict_proba(X), model.predict_proba(X)[k])
            np.testing.assert_array_equal(one.classes_, model.classes_[k])
        dtrees.save(one, tmp_path / "one")
        np.testing.assert_array_equal(dtrees.load(tmp_path / "one").predict(X), one.predict(X))
        assert one.of_target(0) is one
    with pytest.raises(ValueError, match=f"number must be below {y.shape[1]}"):
        model.of_target(y.shape[1])
    with pytest.raises(ValueError, match="number"):
        model.of_target(-1)
    with pytest.raises(NotFittedError):
        kind().of_target(0)


NAMED = [DecisionTreeClassifier, RandomForestRegressor, GradientBoostingRegressor]


@pytest.mark.parametrize("kind", NAMED)
def test_targets_have_the_names_of_a_data_frame(table, kind, tmp_path):
    X, classes, numbers = table
    y = numbers if "Regressor" in kind.__name__ else classes
    frame = pd.DataFrame(y, columns=list("uvw")[: y.shape[1]])
    model = made(kind) if kind is not GradientBoostingRegressor else kind(max_iter=2)
    model.fit(X, frame)
    assert model.target_names_in_.tolist() == list(frame)
    one = model.of_target("v")
    np.testing.assert_array_equal(one.predict(X), model.predict(X)[:, 1])
    assert not hasattr(one, "target_names_in_")
    with pytest.raises(ValueError, match=r"no target 'x'\. Targets are 'u', 'v'"):
        model.of_target("x")
    lazy = dd.from_pandas(frame, npartitions=2)
    for given in (pl.from_pandas(frame), pa.Table.from_pandas(frame), lazy):
        assert clone(model).fit(X, given).target_names_in_.tolist() == list(frame)
    blocks = da.from_array(X, chunks=(90, 4))
    with dask.config.set({"dtrees.regime": "partitioned"}):
        found = clone(model).fit(blocks, lazy)
    assert found.target_names_in_.tolist() == list(frame)
    validated = cross_validate(model, X, frame, cv=3, return_estimator=True, scoring=lambda *_: 0.0)
    for each in (*validated["estimator"], validated["final_estimator"]):
        assert each.target_names_in_.tolist() == list(frame)
    labels = shap_values(model, X[:1]).output_names
    assert list(dict.fromkeys(label.partition(":")[0] for label in labels)) == list(frame)
    X_lazy = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    assert list(model.predict(X_lazy).compute()) == list(frame)
    dtrees.save(model, tmp_path / "model.dtrees")
    assert dtrees.load(tmp_path / "model.dtrees").target_names_in_.tolist() == list(frame)
    for nameless in (y, pd.DataFrame(y), pd.DataFrame(y, columns=["u"] * y.shape[1])):
        model.fit(X, nameless)
        assert not hasattr(model, "target_names_in_")
    with pytest.raises(ValueError, match=r"no target 'u'\. They have no names"):
        model.of_target("u")


def test_targets_in_another_order_are_refused_where_trees_are_kept(table):
    X, _, y = table
    frame = pd.DataFrame(y, columns=["u", "v", "w"])
    turned = frame[["v", "u", "w"]]
    forest = RandomForestRegressor(2, warm_start=True, random_state=0).fit(X, frame)
    boosted = GradientBoostingRegressor(max_iter=2, warm_start=True).fit(X, frame)
    assert [tree.target_names_in_.tolist() for tree in forest] == [["u", "v", "w"]] * 2
    for grow in (
        forest.set_params(n_estimators=3).fit,
        boosted.set_params(max_iter=3).fit,
        RandomForestRegressor(2, random_state=0).partial_fit(X, frame).partial_fit,
    ):
        with pytest.raises(ValueError, match="y had the targets u, v, w, and has v, u, w"):
            grow(X, turned)
        grow(X, frame)


def test_parameters_of_the_model_of_one_target(table):
    X, classes, _ = table
    weights = [{0: 1, 1: 3}, "balanced"]
    model = DecisionTreeClassifier(max_depth=3, class_weight=weights).fit(X, classes)
    assert [model.of_target(k).class_weight for k in range(2)] == weights


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_intervals_are_those_of_each_target(table, kind):
    X, _, y = table
    how = {"n_estimators": 20, "bootstrap": True, "oob_score": True, "random_state": 0}
    model = kind(**how).fit(X, y)
    found = model.prediction_interval(X, 0.8)
    assert found.shape == (*y.shape, 2)
    for k in range(y.shape[1]):
        np.testing.assert_array_equal(
            model.of_target(k).prediction_interval(X, 0.8), found[:, k], strict=True
        )
    turned = kind(**how).fit(X, y[:, ::-1]).prediction_interval(X, 0.8)
    np.testing.assert_array_equal(turned, found[:, ::-1])
    alone = kind(**how).fit(X, y[:, 1]).prediction_interval(X, 0.8)
    twice = kind(**how).fit(X, y[:, [1, 1]]).prediction_interval(X, 0.8)
    np.testing.assert_array_equal(twice, np.stack([alone, alone], axis=1))
    for lazy in (da.from_array(X, chunks=(50, 4)), dd.from_pandas(pd.DataFrame(X), npartitions=3)):
        ends = model.prediction_interval(lazy, 0.8)
        assert dask.is_dask_collection(ends)
        np.testing.assert_array_equal(ends, found)


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_contributions_are_those_of_each_target(table, kind):
    X, classes, numbers = table
    y = classes if kind in CLASSIFIERS else numbers
    model = made(kind).fit(X, y)
    explained = shap_values(model, X, interactions=True)
    each = [shap_values(model.of_target(k), X, interactions=True) for k in range(y.shape[1])]
    for name in ("values", "base_values", "interactions"):
        own = [getattr(one, name) for one in each]
        own = [part[..., None] if kind in REGRESSORS else part for part in own]
        if kind in CLASSIFIERS:  # of two classes one stands for both
            assert own[0].shape[-1] == 2
        np.testing.assert_allclose(
            getattr(explained, name), np.concatenate(own, axis=-1), rtol=1e-9, atol=1e-12
        )
    answers = np.hstack(model.predict_proba(X)) if kind in CLASSIFIERS else model.predict(X)
    np.testing.assert_allclose(
        explained.values.sum(axis=1) + explained.base_values, answers, rtol=1e-9, atol=1e-9
    )
    names = ("0: 0", "0: 1", "1: 0", "1: 1", "1: 2", "1: 3")
    assert explained.output_names == (names if kind in CLASSIFIERS else ("0", "1", "2"))
    flat = model.predict_contributions(X)
    np.testing.assert_array_equal(
        flat.reshape(len(X), -1, 5)[:, :, :4].swapaxes(1, 2), explained.values
    )
    lazy = model.predict_contributions(da.from_array(X, chunks=(50, -1)))
    np.testing.assert_array_equal(lazy.compute(), flat)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_partial_dependence_is_that_of_each_target(table, kind):
    X, classes, numbers = table
    y = classes if kind is RandomForestClassifier else numbers
    model = made(kind).fit(X, y)
    found = partial_dependence(model, 0, resolution=5).average
    each = [partial_dependence(model.of_target(k), 0, resolution=5).average for k in range(2)]
    np.testing.assert_allclose(found[: len(np.vstack(each))], np.vstack(each), rtol=1e-9)


def test_texts_and_pictures(table):
    X, classes, numbers = table
    words = pd.DataFrame({"a": np.array(["no", "yes"])[classes[:, 0]], "b": classes[:, 1]})
    tree = DecisionTreeClassifier(max_depth=1).fit(X[:, :1], words)
    first = X[tree.apply(X[:, :1]) == 1, :1][:1]  # node 1 is a leaf
    word, number = tree.predict(first)[0]
    answer = f"a: {word}, b: {number}"
    assert dtrees.export_text(tree).splitlines()[1] == f"|   |--- class: {answer}"
    assert f"class = {answer}" in dtrees.inspection.export_graphviz(tree)
    names = {"a: no": "never", "a: yes": "ever", "b: 0": "w", "b: 1": "x", "b: 2": "y", "b: 3": "z"}
    answer_by_names = ", ".join(names[each] for each in answer.split(", "))
    assert answer_by_names in dtrees.export_text(tree, class_names=list(names.values()))
    values = DecisionTreeRegressor(max_depth=1).fit(X, numbers).tree_.model.value[1]
    text = dtrees.export_text(DecisionTreeRegressor(max_depth=1).fit(X, numbers))
    assert f"value: [{', '.join(f'{value:.2f}' for value in values)}]" in text
    pytest.importorskip("matplotlib").use("agg")
    for model in (tree, DecisionTreeRegressor(max_depth=2).fit(X, numbers)):
        shown = " ".join(text.get_text() for text in plot_tree(model).texts)
        assert (answer if model is tree else "mean ") in shown


def test_frames_of_trees_have_a_column_for_each_value(table):
    X, classes, numbers = table
    for kind, y, names in (
        (RandomForestRegressor, numbers, ["value_0", "value_1", "value_2"]),
        (DecisionTreeClassifier, classes[:, :1] > [0, 2], ["value_0: False", "value_0: True",
                                                          "value_1: False"]),
    ):  # fmt: skip
        frame = trees_to_dataframe(made(kind).fit(X, y))
        assert [name for name in frame if name.startswith("value")] == names


@pytest.mark.parametrize("ask", [to_lightgbm, to_sklearn])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestRegressor])
def test_other_formats_take_the_model_of_one_target(table, kind, ask):
    X, classes, numbers = table
    model = made(kind).fit(X, classes if kind in CLASSIFIERS else numbers)
    with pytest.raises(ValueError, match=r"takes a model of one target.*model.of_target\(0\)"):
        ask(model)
    if ask is to_sklearn:
        one = model.of_target(1)
        np.testing.assert_allclose(ask(one).predict(X), one.predict(X))
    else:
        assert ask(model.of_target(1)).startswith("tree")


def test_importances_of_rows_take_the_model_of_one_target(table):
    X, _, y = table
    model = RandomForestRegressor(20, random_state=0).fit(X, y)
    for ask in (oob_importances, held_out_importances):
        with pytest.raises(ValueError, match="takes a model of one target"):
            ask(model, X, y)
        assert ask(model.of_target(1), X, y[:, 1]).argmax() == 2


def off_by(model, X, y):
    """A score of any targets: how far off a model is, on average."""
    return -np.abs(model.predict(X) - y).mean()


FOLDED = {
    "numbers": (DecisionTreeRegressor(random_state=0), {}),
    "weights": (DecisionTreeRegressor(random_state=0), {"sample_weight": True}),
    "poisson": (DecisionTreeRegressor(criterion="poisson", random_state=0), {}),
    "medians": (
        DecisionTreeRegressor(criterion="absolute_error", random_state=0),
        {"sample_weight": True},
    ),
    "labels": (DecisionTreeClassifier(random_state=0), {}),
    "heavy labels": (DecisionTreeClassifier(random_state=0), {"sample_weight": True}),
    "classes": (DecisionTreeClassifier(criterion="entropy", random_state=0), {}),
    "balanced": (DecisionTreeClassifier(class_weight="balanced", random_state=0), {}),
    "by class": (DecisionTreeClassifier(class_weight=[{1: 3.0}, None], random_state=0), {}),
    "forest": (RandomForestRegressor(**FOREST), {}),
    "bags by weight": (RandomForestClassifier(**FOREST), {"sample_weight": True}),
    "extra trees": (ExtraTreesClassifier(**FOREST), {}),
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", FOLDED)
def test_models_of_folds_are_fits(table, name):
    X, classes, numbers = table
    X, (model, given) = X.round(1), FOLDED[name]
    y = np.abs(numbers) if name == "poisson" else numbers
    if is_classifier(model):
        y = classes % 2 if "labels" in name else classes
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    params = {"sample_weight": weight} if given else None
    cv = KFold(4, shuffle=True, random_state=0)
    found = cross_validate(model, X, y, cv=cv, params=params, scoring=off_by, return_estimator=True)
    for (train, test), own, score in zip(
        cv.split(X), found["estimator"], found["test_score"], strict=True
    ):
        mine = np.isin(np.arange(len(X)), train) * (weight if given else 1.0)
        alone = clone(model).fit(X, y, sample_weight=mine)
        for one, other in zip(trees_of(own), trees_of(alone), strict=True):
            for field, array in one.arrays().items():
                np.testing.assert_array_equal(array, other.arrays()[field], field)
        assert score == off_by(alone, X[test], y[test])
    said = cross_val_predict(model, X, y, cv=cv, params=params)
    np.testing.assert_array_equal(said[test], own.predict(X[test]))
    if is_classifier(model):
        shares = cross_val_predict(model, X, y, cv=cv, params=params, method="predict_proba")
        for one, other in zip(shares, own.predict_proba(X[test]), strict=True):
            np.testing.assert_array_equal(one[test], other)


@pytest.mark.parametrize("scale", np.geomspace(1, 4, 9))
def test_folds_of_other_units_do_not_share(table, scale):
    """Integers of a fold are in the units of each of its own outputs."""
    X, _, numbers = table
    X, y = X.round(1), numbers * np.r_[scale, np.ones(numbers.shape[1] - 1)]
    weight = np.arange(1.0, len(X) + 1)
    cv, model = KFold(4), DecisionTreeRegressor(max_depth=2, random_state=0)
    how = {"params": {"sample_weight": weight}, "scoring": off_by, "return_estimator": True}
    found = cross_validate(model, X, y, cv=cv, **how)["estimator"]
    for (train, _), own in zip(cv.split(X), found, strict=True):
        mean = np.average(y[train], axis=0, weights=weight[train])
        np.testing.assert_allclose(own.tree_.value[0].ravel(), mean, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("made_y", [np.asarray, np.ndarray.tolist, pd.DataFrame])
def test_targets_of_folds_have_any_form(table, made_y):
    X, classes, _ = table
    labels, model = classes % 2, DecisionTreeClassifier(max_depth=3, random_state=0)
    scores = cross_validate(model, X, made_y(labels), cv=3)["test_score"]
    np.testing.assert_array_equal(scores, cross_val_score(model, X, labels, cv=3))
    for form in (made_y, sp.csr_array):  # scikit-learn's `cross_validate` refuses sparse ones
        said = cross_val_predict(model, X, form(labels), cv=3)
        np.testing.assert_array_equal(said, cross_val_predict(model, X, labels, cv=3))
        search = GridSearchCV(model, {"max_depth": [3]}, cv=3).fit(X, form(labels))
        np.testing.assert_allclose(search.best_score_, scores.mean())


def test_targets_of_several_types_are_not_validated(table):
    X, classes, _ = table
    y = pd.DataFrame({"word": np.where(classes[:, 0] > 0, "yes", "no"), "number": classes[:, 1]})
    assert DecisionTreeClassifier().fit(X, y).predict(X).tolist() == y.to_numpy().tolist()
    for ask in (cross_validate, cross_val_predict):
        with pytest.raises(TypeError, match="targets of several types"):
            ask(DecisionTreeClassifier(), X, y, cv=3)


def test_searches_and_surfaces_are_loops(table):
    X, _, y = table
    model, depths = DecisionTreeRegressor(random_state=0), [1, 3, 5]
    search = GridSearchCV(model, {"max_depth": depths}, cv=4).fit(X, y)
    theirs = sklearn.model_selection.GridSearchCV(model, {"max_depth": depths}, cv=4).fit(X, y)
    mean = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(mean, theirs.cv_results_["mean_test_score"])
    assert_same_tree(search.best_estimator_.tree_, theirs.best_estimator_.tree_)
    surface = validation_surface(model, X, y, max_depth=depths, min_samples_split=[2, 30], cv=4)
    np.testing.assert_allclose(surface.scores[:, 0].mean(axis=1), mean)
    assert tuned_size(model, X, y, list(KFold(4).split(X))).chosen.scores.shape == (4,)
    forest = RandomForestRegressor(4, random_state=0)
    sizes = validation_surface(forest, X, y, max_depth=[2], min_samples_split=[2], cv=4)
    expected = cross_validate(clone(forest).set_params(max_depth=2), X, y, cv=4)
    np.testing.assert_allclose(sizes.scores[0, 0], expected["test_score"])


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", [DecisionTreeRegressor, DecisionTreeClassifier])
def test_scores_of_leaves_are_those_of_scikit_learn(table, kind):
    X, classes, numbers = table
    y, scoring = numbers, ["neg_mean_squared_error", "neg_root_mean_squared_error", "r2"]
    if kind is DecisionTreeClassifier:
        y, scoring = classes % 2, ["accuracy", "f1_macro"]  # the last one is asked by predictions
    given = {"max_depth": [1, 4], "min_samples_split": [2, 40]}
    asked = {"scoring": scoring, "refit": False, "cv": 3, "return_train_score": True}
    ours = GridSearchCV(kind(random_state=0), given, **asked).fit(X, y).cv_results_
    theirs = sklearn.model_selection.GridSearchCV(kind(random_state=0), given, **asked)
    for name, found in theirs.fit(X, y).cv_results_.items():
        if name.startswith("split"):
            np.testing.assert_allclose(ours[name], found, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("kind", [DecisionTreeRegressor, DecisionTreeClassifier])
def test_pruning_is_a_loop(table, kind):
    X, classes, numbers = table
    y = classes if kind is DecisionTreeClassifier else numbers / numbers.std(axis=0)
    how = {"min_samples_leaf": 5, "random_state": 0}
    path = cost_complexity_cv(kind(**how), X, y, cv=KFold(3))
    errors = np.empty((len(path.ccp_alphas), len(X)))
    for step, alpha in enumerate(path.fold_alphas.tolist()):
        for train, test in KFold(3).split(X):
            mine = np.isin(np.arange(len(X)), train).astype(float)
            model = kind(**how, ccp_alpha=min(alpha, 1e9)).fit(X, y, mine)
            off = model.predict(X[test]) - y[test]
            off = off != 0 if kind is DecisionTreeClassifier else off**2
            errors[step, test] = off.mean(axis=1)
    np.testing.assert_allclose(path.errors, errors.mean(axis=1))
    np.testing.assert_allclose(path.standard_errors, errors.std(axis=1) / len(X) ** 0.5, rtol=1e-6)
    assert path.model(path.best_alpha).get_n_leaves() == path.n_leaves[path.best_index]


def test_scikit_learn_takes_them(table):
    X, classes, _ = table
    ours = RandomForestClassifier(20, random_state=0).fit(X, classes)
    theirs = ensemble.RandomForestClassifier(20, random_state=0).fit(X, classes)
    assert ours.__sklearn_tags__().target_tags.multi_output
    assert [p.shape for p in ours.predict_proba(X)] == [p.shape for p in theirs.predict_proba(X)]


@pytest.mark.parametrize("kind", REGRESSORS)
def test_intervals_of_a_validation(table, kind):
    """Targets in another order have those in this order; one target twice has it twice."""
    X, _, y = table

    def ends(y):
        found = cross_validate(made(kind), X, y, cv=3, return_estimator=True)
        return found.prediction_interval(X, 0.8)

    found, alone = ends(y), ends(y[:, 1])
    np.testing.assert_array_equal(ends(y[:, ::-1]), found[:, ::-1])
    np.testing.assert_array_equal(ends(y[:, [1, 1]]), np.stack([alone, alone], axis=1))
