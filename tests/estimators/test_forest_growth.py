"""Sizes of bags, and groups that are in a bag together."""

from __future__ import annotations

import functools
import logging
import math
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.ensemble
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import KFold

from dtrees import (
    BaggingRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.callbacks import Callback
from dtrees.estimators import forest_growth
from dtrees.estimators.forest_growth import is_flat
from dtrees.export import load, save
from dtrees.model_selection import cross_validate
from tests.estimators.forest_cases import CANCER, DIABETES, FORESTS, IRIS, assert_same, mixed_table
from tests.estimators.test_out_of_bag import CLASSIFIERS, REGRESSORS, fitted, reference


@pytest.mark.parametrize("share", [0.1, 0.5, 40])
def test_max_samples(share):
    X, y = CANCER
    forest = RandomForestClassifier(30, random_state=0, max_samples=share).fit(X, y)
    sizes = [tree.weighted_n_node_samples[0] for tree in forest.forest_.trees]
    mean = share if share > 1 else share * len(y)
    assert np.mean(sizes) == pytest.approx(mean, rel=0.1)


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
    with pytest.raises(ValueError, match="needs bootstrap=True, or max_samples"):
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


@pytest.mark.one_of(2)
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


def slowly_flat(scores, tol):
    """The rule in words: means of ten scores, none of the second half better than the first."""
    means = {t: sum(scores[t - 10 : t]) / 10 for t in range(10, len(scores) + 1)}
    for t in range(20, len(scores) + 1):
        best = max(means[k] for k in range(10, t // 2 + 1))
        if all(means[k] <= best + tol for k in range(t // 2 + 1, t + 1)):
            return t
    return None


class TestRule:
    @given(st.lists(st.integers(-3, 8), max_size=45), st.sampled_from([0.0, 0.5, 2.0]))
    def test_as_in_words(self, steps, tol):
        scores = [float(score) for score in np.cumsum(steps)]
        stop = next((t for t in range(len(scores) + 1) if is_flat(scores[:t], tol)), None)
        # sums of small integers divided by ten: equal in any order of adding
        assert stop == slowly_flat(scores, tol)

    def test_a_constant_score_is_flat_at_once(self):
        assert not is_flat([1.0] * 19, 0.0)
        assert is_flat([1.0] * 20, 0.0)

    def test_rising_scores_are_not(self):
        scores = [i * 0.01 for i in range(40)]
        assert not is_flat(scores, 0.19)
        assert is_flat(scores, 0.21)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("total", [0.05, 0.5, 5.0])
    @pytest.mark.parametrize("tol", [0.002, 0.01])
    def test_a_creeping_score_gives_away_a_tolerance(self, total, tol):
        # As scores of forests do: what is still to be won falls with the number of trees.
        scores = [1 - total / t for t in range(1, 6000)]
        n_trees = next(t for t in range(20, 6000) if is_flat(scores[:t], tol))
        assert 1 - scores[n_trees - 1] <= tol
        assert n_trees == 20 or not is_flat(scores[: n_trees - 1], tol)

    def test_a_score_that_falls_is_compared_with_the_best(self):
        scores = [0.9] * 10 + [0.5] * 10 + [0.55, 0.6, 0.65, 0.7, 0.75, 0.8]
        assert is_flat(scores, 0.0)

    def test_nan_is_not(self):
        assert not is_flat([math.nan] + [1.0] * 19, 1.0)
        assert is_flat([math.nan] + [1.0] * 21, 1.0)


class TestEarlyStopping:
    @pytest.mark.one_of(3)
    @pytest.mark.parametrize(
        ("kind", "data", "tol"), [(kind, CANCER, 0.002) for kind in CLASSIFIERS]
        + [(kind, DIABETES, 0.01) for kind in REGRESSORS]
    )  # fmt: skip
    def test_the_forest_is_the_one_of_so_many_trees(self, kind, data, tol, caplog):
        forest = kind(300, bootstrap=True, oob_tol=tol, random_state=0)
        with caplog.at_level(logging.INFO, "dtrees"):
            forest.fit(*data)
        n_trees = forest.n_estimators_
        assert 20 <= n_trees < 300
        assert f"stopped after {n_trees} of 300 trees" in caplog.text
        assert len(forest.oob_scores_) == len(forest.estimators_) == n_trees
        assert forest.oob_scores_[-1] == forest.oob_score_
        assert slowly_flat(forest.oob_scores_.tolist(), tol) == n_trees
        alone = kind(n_trees, bootstrap=True, oob_score=True, random_state=0).fit(*data)
        assert alone.oob_score_ == forest.oob_score_
        for mine, theirs in zip(forest.forest_.trees, alone.forest_.trees, strict=True):
            assert mine.equals(theirs)

    def test_scores_are_those_of_smaller_forests(self):
        X, y = DIABETES
        forest = fitted(RandomForestRegressor(25, oob_tol=0.0, random_state=0), X, y)
        for n_trees in (1, 2, 11, 25):
            mean = reference(forest, X, n_trees=n_trees)[:, 0]
            voted = ~np.isnan(mean)
            expected = r2_score(y[voted], mean[voted])
            assert forest.oob_scores_[n_trees - 1] == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("n_jobs", [2, 3])
    def test_any_number_of_threads(self, n_jobs):
        one = RandomForestClassifier(200, oob_tol=0.001, random_state=1).fit(*CANCER)
        before = threading.active_count()
        many = RandomForestClassifier(200, oob_tol=0.001, random_state=1, n_jobs=n_jobs)
        np.testing.assert_array_equal(many.fit(*CANCER).oob_scores_, one.oob_scores_)
        assert threading.active_count() <= before + n_jobs  # Dask keeps its threads

    def test_a_larger_tolerance_needs_fewer_trees(self):
        sizes = [
            RandomForestRegressor(150, oob_tol=tol, random_state=0).fit(*DIABETES).n_estimators_
            for tol in (0.0, 0.002, 0.02, math.nextafter(math.inf, 0))
        ]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] == 20

    def test_none_grows_all(self):
        forest = RandomForestClassifier(60, random_state=0, oob_score=True).fit(*IRIS)
        assert forest.n_estimators_ == 60
        assert not hasattr(forest, "oob_scores_")

    def test_a_callable(self):
        def minus_error(y, predicted):
            return -mean_absolute_error(y, predicted)

        forest = RandomForestRegressor(300, oob_score=minus_error, oob_tol=0.1, random_state=0).fit(
            *DIABETES
        )
        assert 20 <= forest.n_estimators_ < 300
        assert forest.oob_score_ == forest.oob_scores_[-1] < 0

    def test_a_callable_that_fails(self):
        def score(y, predicted):
            raise ZeroDivisionError("of the score")

        forest = RandomForestClassifier(30, oob_score=score, oob_tol=0.1, n_jobs=2)
        with pytest.raises(ZeroDivisionError, match="of the score"):
            forest.fit(*IRIS)
        assert not hasattr(forest, "forest_")

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("first", [5, 30, 150])
    def test_warm_start_gives_the_forest_that_is_grown_at_once(self, first, caplog):
        whole = RandomForestClassifier(200, oob_tol=0.002, random_state=1).fit(*CANCER)
        forest = RandomForestClassifier(first, oob_tol=0.002, random_state=1, warm_start=True)
        fitted(forest, *CANCER)
        with caplog.at_level(logging.INFO, "dtrees"):
            forest.set_params(n_estimators=200).fit(*CANCER)
        assert ("no tree is added" in caplog.text) == (first > whole.n_estimators_)
        np.testing.assert_array_equal(forest.oob_scores_, whole.oob_scores_)
        assert forest.n_estimators_ == whole.n_estimators_
        forest.set_params(oob_tol=None, n_estimators=210).fit(*CANCER)  # for all that
        assert forest.n_estimators_ == 210

    def test_callbacks_see_the_scores(self):
        seen = []

        class Score(Callback):
            def on_tree_end(self, fit, number):
                assert len(fit.oob_scores) == number + 1
                seen.append(fit.oob_scores[-1])

        forest = RandomForestClassifier(200, oob_tol=0.0, random_state=1)
        forest.fit(*CANCER, callbacks=[Score()])
        np.testing.assert_array_equal(seen, forest.oob_scores_)

    def test_few_rows(self):
        # no row may be out of the first bags
        with pytest.warns(UserWarning, match="do not have OOB"):
            forest = RandomForestRegressor(2, oob_tol=0.1, random_state=0).fit(
                [[0.0]] * 3, [1, 2, 3]
            )
        assert forest.oob_scores_.shape == (2,)
        with pytest.warns(UserWarning, match="do not have OOB"):
            forest = RandomForestClassifier(1, oob_score=True, random_state=3).fit([[0.0]], [1])
        assert math.isnan(forest.oob_score_)

    def test_model_files(self, tmp_path):
        forest = RandomForestClassifier(200, oob_tol=0.01, random_state=1).fit(*CANCER)
        save(forest, tmp_path / "forest.dtrees")
        again = load(tmp_path / "forest.dtrees")
        assert again.get_params() == forest.get_params()
        assert again.n_estimators_ == forest.n_estimators_ < 200
        np.testing.assert_array_equal(again.oob_scores_, forest.oob_scores_)

    def test_needs_bags(self):
        message = r"only available if bootstrap=True, .* got oob_tol=0\.0, bootstrap=False"
        with pytest.raises(ValueError, match=message):
            RandomForestClassifier(oob_tol=0.0, bootstrap=False).fit(*IRIS)


SHALLOW = {"max_depth": 4, "random_state": 0}
CASES = {
    "two classes": (RandomForestClassifier(90, oob_tol=0.004, **SHALLOW), CANCER),
    "balanced": (
        RandomForestClassifier(60, oob_tol=0.004, class_weight="balanced", **SHALLOW),
        CANCER,
    ),
    "numbers": (RandomForestRegressor(70, oob_tol=0.02, **SHALLOW), DIABETES),
    "bagging": (BaggingRegressor(n_estimators=50, oob_tol=0.03, random_state=0), DIABETES),
    "none ends": (RandomForestRegressor(25, oob_tol=0.0, max_depth=2, random_state=0), DIABETES),
}
FACTS = ("oob_scores_", "oob_score_", "oob_decision_function_", "oob_prediction_")


def validated(model, X, y, splits):
    """Models of the splits, and of all rows."""
    found = cross_validate(model, X, y, cv=splits, return_estimator=True)
    return [*found["estimator"], found["final_estimator"]]


def alone(model, X, y, splits):
    """The same, each by a fit with weights of zero."""
    models = [clone(model).fit(X, y, sample_weight=weight_of(train, len(y))) for train, _ in splits]
    return [*models, clone(model).fit(X, y)]


@functools.cache
def alone_of(name):
    """The same of a case, whatever the threads of what is compared."""
    model, (X, y) = CASES[name]
    return alone(model, X, y, list(KFold(4, shuffle=True, random_state=0).split(X)))


def weight_of(rows, n_rows):
    weight = np.zeros(n_rows)
    weight[rows] = 1
    return weight


@pytest.mark.one_of(5)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_each_is_the_forest_of_its_fit(name, n_jobs, grown):
    model, (X, y) = CASES[name]
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    found = validated(clone(model).set_params(n_jobs=n_jobs), X, y, splits)
    shared = sum(sets.n_shared_nodes for sets in grown)
    if getattr(model, "class_weight", None):  # bags are drawn by weight, for each side anew
        assert shared == 0
    else:
        assert shared > 15
        assert sum(sets.n_shared_rows for sets in grown) > 15 * 300
    sizes = []
    for ours, fit in zip(found, alone_of(name), strict=True):
        assert_same(ours, fit)
        sizes.append(ours.n_estimators_)
        for fact in FACTS:
            assert hasattr(ours, fact) == hasattr(fit, fact)
            if hasattr(fit, fact):
                np.testing.assert_array_equal(getattr(ours, fact), getattr(fit, fact))
    assert min(sizes) >= 20
    assert (name == "none ends") == (set(sizes) == {model.n_estimators})


@pytest.mark.one_of(2)
@pytest.mark.parametrize("share", [1, 40])
def test_waves_change_nothing(share, monkeypatch):
    model, (X, y) = CASES["numbers"]
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    usual = validated(model, X, y, splits)
    monkeypatch.setattr(forest_growth, "SHARE", share)
    monkeypatch.setattr(forest_growth, "FIRST", 3 if share == 1 else 21)
    for ours, same in zip(usual, validated(model, X, y, splits), strict=True):
        assert_same(ours, same)


def test_own_scores_and_their_errors():
    """Scorers of the user are asked in this thread, and their errors are those of the fit."""
    threads = set()

    def score(y, found):
        threads.add(threading.get_ident())
        return -np.abs(y - found).mean()

    def fails(y, found):
        raise ValueError("too few rows")

    X, y = DIABETES
    model = RandomForestRegressor(30, oob_tol=0.5, max_depth=4, random_state=0, n_jobs=2)
    splits = list(KFold(3).split(X))
    found = validated(model.set_params(oob_score=score), X, y, splits)
    assert threads == {threading.get_ident()}
    for ours, fit in zip(found, alone(model, X, y, splits), strict=True):
        assert_same(ours, fit)
    with pytest.raises(ValueError, match="too few rows"):
        cross_validate(model.set_params(oob_score=fails), X, y, cv=splits)


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
    ("change", "words"),
    [
        (lambda X, y: (X.drop(columns="k"), y), r"but X had \d columns and has \d"),
        (
            lambda X, y: (X.assign(letter=X["letter"].replace("a", "new")), y),
            "but column 'letter' has other categories",
        ),
        (lambda X, y: (X, y + 10), "but y has other classes"),
    ],
)
def test_warm_start_refuses_other_labels(change, words):
    X, y = mixed_table()
    forest = RandomForestClassifier(2, warm_start=True).fit(X, y)
    before = forest.predict(X)
    with pytest.raises(ValueError, match=f"warm_start=True keeps the trees.*{words}"):
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
    with pytest.raises(ValueError, match=r"the first fit .* but column 'h' has other numbers"):
        model.fit(other, y)
    np.testing.assert_array_equal(model.predict(first), expected)
    assert len(model.fit(first, y).forest_) == 4
