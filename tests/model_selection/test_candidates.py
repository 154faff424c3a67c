"""Candidates that differ in where trees end stand inside one growth."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import RandomForestClassifier
from dtrees.estimators import training_sets
from dtrees.estimators.fit_plan import FitPlan
from dtrees.model_selection import GridSearchCV
from dtrees.model_selection.candidates import growths_of, key_of
from tests.model_selection.test_search import CANCER, CLASSIFIER, IRIS, LIMITS


def test_one_growth_for_all_limits(monkeypatch):
    fits, codings = [], []
    fit_table, code = training_sets.fit_table, FitPlan.code
    monkeypatch.setattr(
        "dtrees.model_selection.search.fit_table",
        lambda estimator, *args, **how: (
            fits.append(estimator) or fit_table(estimator, *args, **how)
        ),
    )
    monkeypatch.setattr(FitPlan, "code", lambda *args: codings.append(args) or code(*args))
    GridSearchCV(CLASSIFIER, LIMITS).fit(*CANCER)
    assert len(fits) == len(codings) == 1
    grid = LIMITS | {"criterion": ["gini", "entropy"], "min_samples_leaf": [1, 2]}
    GridSearchCV(CLASSIFIER, grid).fit(*CANCER)
    assert len(fits) == 1 + 4 + 1  # and the best one, to all rows
    assert len(codings) == 2


def test_candidates_are_grouped_by_all_but_limits():
    candidates = [
        {"criterion": "gini", "max_depth": 3, "ccp_alpha": 0.1},
        {"criterion": "entropy", "max_depth": 3},
        {"criterion": "gini", "max_depth": 8, "min_samples_split": 9},
        {"criterion": "gini", "max_depth": 0},
    ]
    growths, errors = growths_of(CLASSIFIER, candidates)
    assert [list(growth.places) for growth in growths] == [[0, 2], [1]]
    assert list(errors) == [3]
    assert "'max_depth' parameter" in str(errors[3])
    both, alone = growths
    assert (both.is_whole, alone.is_whole) == (False, True)
    grown = both.estimator.get_params()
    assert (grown["criterion"], grown["max_depth"], grown["min_samples_split"]) == ("gini", 8, 2)
    assert (grown["max_leaf_nodes"], grown["ccp_alpha"]) == (None, 0.0)
    for number, place in enumerate(both.places):
        asked = CLASSIFIER.get_params() | candidates[place]
        assert both.estimator_of(number).get_params() == asked
    assert CLASSIFIER.get_params()["max_depth"] is None  # the given one is as it was


LIMIT = {
    "max_depth": st.sampled_from([1, 2, 3, None]),
    "min_samples_split": st.sampled_from([2, 9, 0.3]),
    "min_impurity_decrease": st.sampled_from([0.0, 0.01]),
    "max_leaf_nodes": st.sampled_from([2, 5, None]),
    "ccp_alpha": st.sampled_from([0.0, 0.02]),
}


@settings(max_examples=max(15, settings.default.max_examples // 20))
@given(st.lists(st.fixed_dictionaries({}, optional=LIMIT), min_size=2, max_size=4))
def test_every_candidate_is_cut_from_the_growth_of_all(candidates):
    X, y = IRIS[0][:, 2:], IRIS[1]
    (growth,), errors = growths_of(CLASSIFIER, candidates)
    assert not errors
    grown = growth.estimator.fit(X, y).tree_.model
    limits = growth.limits(len(y))
    assert growth.has_shares() == any(
        "min_samples_split" in c and c["min_samples_split"] == 0.3 for c in candidates
    )
    for number in range(len(candidates)):
        alone = growth.estimator_of(number).fit(X, y).tree_.model
        assert limits[number].prune(grown).equals(alone)


def test_trees_of_forests_are_decided_later_too():
    forest = RandomForestClassifier(7, random_state=0)
    (growth,), _ = growths_of(forest, [{"n_estimators": 2}, {"max_depth": 3}])
    assert growth.n_trees() == [2, 7]
    assert growth.estimator.n_estimators == 7
    apart, _ = growths_of(forest.set_params(oob_score=True), [{"n_estimators": 2}, {}])
    assert [growth.is_whole for growth in apart] == [True, True]


def test_values_that_have_no_hash_are_compared_as_well():
    weights = [{"class_weight": {0: 1.0}, "max_depth": depth} for depth in (1, 2)]
    growths, _ = growths_of(CLASSIFIER, [*weights, {"class_weight": {0: 2.0}}])
    assert [list(growth.places) for growth in growths] == [[0, 1], [2]]


def test_what_cannot_be_pickled_is_a_value_like_others():
    """A lambda or an object of a local class equals itself; others are told apart by value."""

    class Own:
        pass

    first, other, own = (lambda y, p: 1.0), (lambda y, p: 1.0), Own()
    values = [first, other, first, own, own, {0: 1.0}, {0: 1.0}, 1, 1.0, True]
    keys = [key_of({"name": value}) for value in values]
    numbers = [keys.index(key) for key in keys]
    assert numbers == [0, 1, 0, 3, 3, 5, 5, 7, 8, 9]


@pytest.mark.parametrize("is_pipeline", [False, True], ids=["forest", "pipeline"])
def test_a_search_over_a_function_of_no_name(is_pipeline):
    grid = {"oob_score": [lambda y, predicted: 0.25], "max_depth": [1, 2]}
    forest = RandomForestClassifier(30, random_state=0)
    if is_pipeline:
        grid = {f"forest__{name}": values for name, values in grid.items()}
        forest = Pipeline([("scale", StandardScaler()), ("forest", forest)])
    ours = GridSearchCV(forest, grid, cv=2).fit(*IRIS)
    plain = GridSearchCV(forest, dict([grid.popitem()]), cv=2).fit(*IRIS)
    names = ("mean_test_score", "rank_test_score")
    assert all((ours.cv_results_[name] == plain.cv_results_[name]).all() for name in names)
    best = ours.best_estimator_[-1] if is_pipeline else ours.best_estimator_
    assert best.oob_score_ == 0.25
