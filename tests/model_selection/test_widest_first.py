"""The order of growths, and that later ones know trees of earlier ones."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import ParameterGrid

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from dtrees.model_selection import GridSearchCV, RandomizedSearchCV
from dtrees.model_selection.candidates import growths_of
from dtrees.model_selection.widest_first import larger_leaves, widest_first, with_known_trees

RNG = np.random.default_rng(0)
N = 600
X = pd.DataFrame(
    {
        "few": RNG.integers(0, 9, N).astype(float),
        "many": RNG.normal(size=N),
        "gaps": np.where(RNG.random(N) < 0.2, np.nan, RNG.integers(0, 40, N)),
        "kind": pd.Categorical(RNG.choice(list("abcdefghijklmn"), N)),
    }
)
CLASSES = ((X["few"] + 3 * X["many"] + 4 * RNG.normal(size=N)) > 4).astype(int).to_numpy()
NUMBERS = X["few"].to_numpy() + RNG.normal(size=N)
TREE = DecisionTreeClassifier(random_state=0)


def order(estimator, grid):
    """Of each growth its candidates' first parameters, and those of the one that it knows."""
    candidates = list(ParameterGrid(grid))
    growths, errors = growths_of(estimator, candidates)
    assert not errors
    return [
        (candidates[growth.places[0]], None if wider is None else candidates[wider.places[0]])
        for growth, wider in widest_first(growths)
    ]


def test_a_list_is_a_chain():
    found = order(TREE, {"min_samples_leaf": [5, 1, 20]})
    assert [mine["min_samples_leaf"] for mine, _ in found] == [1, 5, 20]
    assert [wider and wider["min_samples_leaf"] for _, wider in found] == [None, 1, 5]


def test_criteria_are_chains_of_their_own():
    found = order(TREE, {"min_samples_leaf": [5, 1], "criterion": ["gini", "entropy"]})
    for mine, wider in found:
        if mine["min_samples_leaf"] == 1:
            assert wider is None
        else:
            assert wider == {"min_samples_leaf": 1, "criterion": mine["criterion"]}


def test_both_limits_of_the_wider_one_are_at_most_those_of_the_narrower():
    grid = {"min_samples_leaf": [1, 5], "min_weight_fraction_leaf": [0.0, 0.01]}
    found = [tuple(each and tuple(each.values()) for each in pair) for pair in order(TREE, grid)]
    assert found == [
        ((1, 0.0), None),
        ((1, 0.01), (1, 0.0)),
        ((5, 0.0), (1, 0.0)),
        ((5, 0.01), (5, 0.0)),
    ]


def test_shares_and_numbers_are_not_compared():
    found = order(TREE, {"min_samples_leaf": [1, 0.01, 4, 0.1]})
    wider = {mine["min_samples_leaf"]: each for mine, each in found}
    assert wider[1] is None
    assert wider[0.01] is None
    assert wider[4] == {"min_samples_leaf": 1}
    assert wider[0.1] == {"min_samples_leaf": 0.01}


def foretold(estimator, grid):
    """By the candidate of a growth, leaves of those that follow and differ in nothing else."""
    candidates = list(ParameterGrid(grid))
    growths, _ = growths_of(estimator, candidates)
    found = larger_leaves(widest_first(growths))
    return [
        (tuple(candidates[growth.places[0]].values()), found[id(growth)])
        for growth in growths
        if id(growth) in found
    ]


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ({"min_samples_leaf": [5, 1, 20]}, [((5,), [20]), ((1,), [5, 20])]),
        ({"min_samples_leaf": [0.01, 0.1]}, []),
        ({"min_samples_leaf": [1, 5], "min_impurity_decrease": [0.1]}, []),
        ({"min_weight_fraction_leaf": [0.0, 0.01]}, []),
        (
            {"min_samples_leaf": [1, 5, 9], "min_weight_fraction_leaf": [0.0, 0.01]},
            [((1, 0.0), [5, 9]), ((5, 0.0), [9])],
        ),
    ],
    ids=str,
)
def test_larger_leaves_are_foretold(grid, expected):
    assert foretold(TREE, grid) == expected


def test_limits_that_no_fit_takes_leave_the_order():
    growths, _ = growths_of(
        DecisionTreeClassifier(min_samples_leaf="few"),
        [{"criterion": c} for c in ("gini", "entropy")],
    )
    assert widest_first(growths) == [(growth, None) for growth in growths]


@pytest.mark.usefixtures("frozen")
def test_trees_are_held_while_somebody_asks_for_them():
    growths, _ = growths_of(TREE, [{"min_samples_leaf": k} for k in (1, 2, 3)])
    held = []
    for _, known in with_known_trees(growths):
        gc.collect()
        assert sum(each() is not None for each in held) <= 1
        assert (known.wider is not None) == (len(held) > 0)
        held.append(weakref.ref(known))
    assert len(held) == 3


GRIDS = {
    "rows": {"min_samples_leaf": [1, 3, 8, 0.03, 0.1]},
    "weight": {"min_samples_leaf": [1, 6], "min_weight_fraction_leaf": [0.0, 0.02, 0.2]},
    "criteria": {"min_samples_leaf": [1, 4, 15], "criterion": ["gini", "entropy"]},
    "others": {
        "min_samples_leaf": [2, 7],
        "max_depth": [2, None],
        "ccp_alpha": [0.0, 0.002],
        "min_samples_split": [2, 30],
        "min_impurity_decrease": [0.0, 0.002],
        "max_leaf_nodes": [None, 5],
    },
    "drawn": {"min_samples_leaf": [1, 4, 15], "max_features": [2, None]},
}


def check_scores(search, X, y, **params):
    """Each candidate of a fitted search scores as in a search of its own."""
    n_splits = search.n_splits_
    for place, candidate in enumerate(search.cv_results_["params"]):
        alone = {name: [value] for name, value in candidate.items()}
        own = GridSearchCV(search.estimator, alone, cv=n_splits, refit=False).fit(X, y, **params)
        for name in (f"split{k}_test_score" for k in range(n_splits)):
            assert search.cv_results_[name][place] == pytest.approx(
                own.cv_results_[name][0], rel=1e-14
            )


@pytest.mark.parametrize("weighs", [False, True], ids=["plain", "weights"])
@pytest.mark.parametrize("name", GRIDS)
def test_searches_score_as_separate_fits(name, weighs):
    params = {"sample_weight": RNG.integers(0, 4, N)} if weighs else {}
    tree = DecisionTreeClassifier(random_state=3, class_weight="balanced" if weighs else None)
    search = GridSearchCV(tree, GRIDS[name], cv=2, refit=False).fit(X, CLASSES, **params)
    check_scores(search, X, CLASSES, **params)


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_numbers(criterion):
    y = NUMBERS - NUMBERS.min()
    grid = {"min_samples_leaf": [1, 2, 5, 30], "max_depth": [3, 5, None]}
    tree = DecisionTreeRegressor(criterion=criterion)
    search = RandomizedSearchCV(tree, grid, n_iter=7, random_state=0, cv=3).fit(X, y)
    check_scores(search, X, y)


def test_what_is_known_is_counted(monkeypatch):
    """By each growth of a search; forests know nothing."""
    from dtrees.model_selection import shared_search

    reports = []
    fit_table = shared_search.fit_table

    def remembered(*args, **kwargs):
        fitted = fit_table(*args, **kwargs)
        reports.append(fitted.models[0].fit_report_["known_nodes"])
        return fitted

    monkeypatch.setattr(shared_search, "fit_table", remembered)
    grid = {"min_samples_leaf": [1, 5, 20]}
    GridSearchCV(TREE, grid, cv=4, refit=False).fit(X, CLASSES)
    assert reports[0] == 0
    assert min(reports[1:]) > 0
    reports.clear()
    forest = RandomForestClassifier(2, random_state=0)
    GridSearchCV(forest, grid, cv=4, refit=False).fit(X, CLASSES)
    assert reports == [0, 0, 0]
