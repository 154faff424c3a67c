"""Sizes of bags, and groups that are in a bag together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.ensemble
from sklearn.base import clone

from dtrees import RandomForestClassifier, RandomForestRegressor
from dtrees.export import load, save
from tests.estimators.forest_cases import CANCER, FORESTS, IRIS


@pytest.mark.parametrize("share", [0.1, 0.5, 40])
def test_max_samples(share):
    X, y = CANCER
    forest = RandomForestClassifier(30, random_state=0, max_samples=share).fit(X, y)
    sizes = [tree.weighted_n_node_samples[0] for tree in forest.forest_.trees]
    mean = share if share > 1 else share * len(y)
    assert np.mean(sizes) == pytest.approx(mean, rel=0.1)


def test_max_samples_needs_bootstrap():
    with pytest.raises(ValueError, match="`max_samples` cannot be set if `bootstrap=False`"):
        RandomForestClassifier(3, bootstrap=False, max_samples=0.1).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    "groups",
    [["a", None, "b", "b"], [1.0, np.nan, 2.0, 2.0], pd.array(["a", pd.NA, "b", "b"])],
    ids=["None", "nan", "NA"],
)
def test_groups_that_are_missing(groups):
    X, y = np.arange(4.0)[:, None], [0, 1, 0, 1]
    with pytest.raises(ValueError, match="bootstrap_groups holds missing values"):
        RandomForestClassifier(3).fit(X, y, bootstrap_groups=groups)


@pytest.mark.parametrize("kind", FORESTS)
def test_groups_of_another_length(kind):
    for groups in (IRIS[1][:-1], [], np.zeros((150, 2)), 3):
        forest = kind(2, bootstrap=True)
        with pytest.raises(ValueError, match=r"bootstrap_groups .* shape \(150,\)"):
            forest.fit(*IRIS, bootstrap_groups=groups)
        assert not hasattr(forest, "forest_")


def test_groups():
    with pytest.raises(ValueError, match=r"bootstrap_groups .* expected shape \(150,\)"):
        RandomForestClassifier(3).fit(*IRIS, bootstrap_groups=[1, 2])
    with pytest.raises(ValueError, match="needs bootstrap=True"):
        RandomForestClassifier(3, bootstrap=False).fit(*IRIS, bootstrap_groups=IRIS[1])


def rare(n_rows=1_500):
    """A class of one row in four, which is seldom sure."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, 3))
    y = (X[:, 0] > 0.7) & (X[:, 1] > 0.7)
    y[rng.integers(0, n_rows, n_rows // 5)] = True
    return X, y


@pytest.mark.parametrize("weight", ["balanced", {False: 1, True: 10_000}])
def test_class_weights_move_what_is_predicted_as_in_scikit_learn(weight):
    """Also of fully grown trees, whose leaves are of one class, whatever the classes weigh."""
    X, y = rare()
    found, expected = (
        kind(60, class_weight=weight, random_state=0).fit(X[:900], y[:900]).predict(X[900:]).mean()
        for kind in (RandomForestClassifier, sklearn.ensemble.RandomForestClassifier)
    )
    plain = RandomForestClassifier(60, random_state=0).fit(X[:900], y[:900]).predict(X[900:]).mean()
    assert found > 1.25 * plain
    assert found == pytest.approx(expected, rel=0.1)


def test_the_recall_of_incomes_moves_as_in_scikit_learn():
    people = pd.read_csv("examples/adult.csv.gz", nrows=6_000)
    X, y = people.select_dtypes("number"), people["target"] == people["target"].unique()[1]
    recalls = {}
    for kind in (RandomForestClassifier, sklearn.ensemble.RandomForestClassifier):
        for weight in (None, "balanced"):
            forest = kind(40, class_weight=weight, random_state=0).fit(X[:3_000], y[:3_000])
            recalls[kind, weight] = forest.predict(X[3_000:])[y[3_000:]].mean()
    mine, theirs = (
        recalls[kind, "balanced"] - recalls[kind, None]
        for kind in (RandomForestClassifier, sklearn.ensemble.RandomForestClassifier)
    )
    assert mine == pytest.approx(theirs, abs=0.04)
    assert mine > 0.04


@pytest.mark.parametrize("kind", FORESTS)
def test_weights_are_drawn_once(kind):
    """They add up to bags of as many rows, in which nothing else weighs."""
    X, y = CANCER
    weight = np.random.default_rng(0).exponential(size=len(y))
    plain = kind(20, bootstrap=True, random_state=0)
    same = clone(plain).fit(X, y, np.full(len(y), 0.3))
    assert all(a.equals(b) for a, b in zip(same.forest_, plain.fit(X, y).forest_, strict=True))
    forest = clone(plain).fit(X, y, weight)
    sizes = np.array([tree.weighted_n_node_samples[0] for tree in forest.forest_])
    assert (sizes == np.rint(sizes)).all()
    assert sizes.mean() == pytest.approx(len(y), rel=0.05)
    scaled = clone(plain).fit(X, y, weight * 1024)
    assert all(a.equals(b) for a, b in zip(scaled.forest_, forest.forest_, strict=True))


def test_heavy_rows_predict_as_repeated_rows_do():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (400, 2)).astype(float)
    y = X[:, 0] + rng.normal(size=400)
    weight = rng.integers(0, 4, 400)
    found = RandomForestRegressor(300, random_state=0).fit(X, y, weight)
    X_repeated, y_repeated = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    repeated = RandomForestRegressor(300, random_state=0).fit(X_repeated, y_repeated)
    np.testing.assert_allclose(found.predict(X), repeated.predict(X), atol=0.08)


def test_rows_of_every_weight_are_out_of_some_bags():
    y = np.arange(2_000) < 4
    X = np.random.default_rng(0).normal(size=(2_000, 2))
    forest = RandomForestClassifier(200, class_weight="balanced", oob_score=True, random_state=0)
    assert not np.isnan(forest.fit(X, y).oob_decision_function_).any()


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample"])
def test_weighted_bags_do_not_depend_on_the_layout(class_weight, tmp_path):
    X, y = rare(600)
    X = np.where(X < 0.3, 0.0, X)
    weight = np.random.default_rng(1).integers(0, 3, 600) * 0.7
    groups = np.arange(600) // 3
    how = {"sample_weight": weight, "bootstrap_groups": groups}
    forest = RandomForestClassifier(8, class_weight=class_weight, oob_score=True, random_state=0)
    expected = clone(forest).fit(X, y, **how)
    others = [
        clone(forest).set_params(n_jobs=2).fit(sp.csr_array(X), y, **how),
        clone(forest).set_params(regime="partitioned").fit(X, y, **how),
        clone(forest).set_params(n_estimators=3, warm_start=True).fit(X, y, **how),
    ]
    others[-1].set_params(n_estimators=8).fit(X, y, **how)
    clone(forest).set_params(n_estimators=4).fit(X, y, **how, checkpoint=str(tmp_path))
    others.append(clone(forest).fit(X, y, **how, checkpoint=str(tmp_path)))
    for other in others:
        assert all(a.equals(b) for a, b in zip(other.forest_, expected.forest_, strict=True))
        np.testing.assert_array_equal(other.oob_decision_function_, expected.oob_decision_function_)
    with pytest.raises(ValueError, match="trees whose bags were drawn otherwise"):
        others[2].set_params(n_estimators=9).fit(X, y, weight + 1.0, bootstrap_groups=groups)


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("unit", [1.0, 0.37])
def test_weighted_bags_that_are_empty_have_a_row_in_rounds_too(kind, unit):
    X, y = rare(80)
    weight = np.random.default_rng(1).integers(0, 4, 80) * unit
    forest = kind(40, max_samples=1, random_state=0)
    for groups in (None, np.arange(80) // 3):
        how = {"sample_weight": weight, "bootstrap_groups": groups}
        here = clone(forest).fit(X, y, **how)
        rounds = clone(forest).set_params(regime="partitioned").fit(X, y, **how)
        assert all(a.equals(b) for a, b in zip(here.forest_, rounds.forest_, strict=True))


def test_intervals_of_weighted_bags_are_in_the_file(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.random((150, 2)), rng.random(150)
    forest = RandomForestRegressor(30, oob_score=True, random_state=0).fit(X, y, rng.random(150))
    save(forest, tmp_path / "forest.json")
    again = load(tmp_path / "forest.json")
    np.testing.assert_array_equal(again.prediction_interval(X), forest.prediction_interval(X))
