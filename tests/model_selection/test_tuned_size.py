"""The size that folds choose, beside fits of every size that was to be chosen from."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from dtrees.estimators.scorers import pinball_scorer
from dtrees.model_selection import boosting_curve, cost_complexity_cv, cross_val_score, tuned_size
from dtrees.model_selection.folds import shuffled_folds
from dtrees.model_selection.tuned_size import alpha_of_step


def problem(is_classes):
    X, y = (load_breast_cancer if is_classes else load_diabetes)(return_X_y=True)
    return X[:200], y[:200], shuffled_folds(y[:200], 4, 0, stratified=is_classes)


def scores_of_fits(estimator, X, y, splits):
    """The scores of the folds, by a fit each."""
    scores = []
    for train, test in splits:
        weight = np.zeros(len(y))
        weight[train] = 1
        scores.append(clone(estimator).fit(X, y, sample_weight=weight).score(X[test], y[test]))
    return scores


@pytest.mark.one_of(2)
@pytest.mark.parametrize("is_classes", [True, False])
@pytest.mark.parametrize("rule", ["best", "simplest"])
def test_every_choice_is_what_its_fits_score(is_classes, rule):
    X, y, splits = problem(is_classes)
    kind = DecisionTreeClassifier if is_classes else DecisionTreeRegressor
    tree = kind(min_samples_leaf=2)  # without a seed columns of equal gain are told by their places
    tuned = tuned_size(tree, X, y, splits, rule)
    assert [(choice.way, choice.rule) for choice in tuned.choices] == [
        *(("limits", "best"), ("limits", "simplest")),
        *(("pruning", "best"), ("pruning", "simplest")),
    ]
    for choice in tuned.choices:
        own = clone(tree).set_params(**choice.parameters)
        assert choice.scores.tolist() == pytest.approx(scores_of_fits(own, X, y, splits), abs=1e-12)
        assert own.fit(X, y).get_n_leaves() == choice.n_leaves
    assert tuned.untuned.tolist() == pytest.approx(scores_of_fits(tree, X, y, splits), abs=1e-12)
    best = {choice.way: choice for choice in tuned.choices if choice.rule == "best"}
    means = {way: best[way].scores.mean() for way in best}
    if is_classes:  # a tie: the smaller tree
        assert means["limits"] == pytest.approx(means["pruning"], abs=1e-12)
        way = min(best, key=lambda way: best[way].n_leaves)
    else:
        way = max(means, key=means.get)
    assert (tuned.chosen.way, tuned.chosen.rule) == (way, rule)
    assert tuned.chosen in tuned.choices


@pytest.mark.one_of(2)
@pytest.mark.parametrize("is_classes", [True, False])
@pytest.mark.parametrize("rule", ["best", "simplest"])
def test_iterations_are_what_their_fits_score(is_classes, rule):
    X, y, splits = problem(is_classes)
    kind = GradientBoostingClassifier if is_classes else GradientBoostingRegressor
    model = kind(max_iter=6, early_stopping=True, max_leaf_nodes=4)
    scoring = "neg_log_loss" if is_classes else None
    tuned = tuned_size(model, X, y, splits, rule, scoring=scoring)
    curve = boosting_curve(model, X, y, cv=splits, scoring=scoring)
    np.testing.assert_array_equal(tuned.curve.scores, curve.scores)
    assert (tuned.surface, tuned.path) == (None, None)
    assert [(c.way, c.rule) for c in tuned.choices] == [
        ("iterations", "best"),
        ("iterations", "simplest"),
    ]
    assert tuned.chosen.rule == rule
    for choice, n in zip(tuned.choices, (curve.best, curve.one_standard_error), strict=True):
        assert choice.parameters == {"max_iter": n, "early_stopping": False}
        own = clone(model).set_params(**choice.parameters)
        if scoring is None:
            assert choice.scores.tolist() == scores_of_fits(own, X, y, splits)
        assert sum(tree.n_leaves for tree in own.fit(X, y).forest_.trees) == choice.n_leaves
    assert tuned.untuned.tolist() == curve.scores[-1].tolist()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("loss", ["quantile", "absolute_error", "poisson", "huber"])
def test_iterations_for_another_loss_are_chosen_by_it(loss):
    X, y, splits = problem(is_classes=False)
    y = np.abs(y)
    more = {"quantile": 0.9} if loss == "quantile" else {}
    model = GradientBoostingRegressor(loss=loss, max_iter=9, max_leaf_nodes=4, **more)
    tuned = tuned_size(model, X, y, splits)
    curve = boosting_curve(model, X, y, cv=splits)
    np.testing.assert_array_equal(tuned.curve.scores, curve.scores)
    assert tuned.chosen.parameters["max_iter"] == curve.best
    own = clone(model).set_params(**tuned.chosen.parameters)
    assert tuned.chosen.scores.tolist() == scores_of_fits(own, X, y, splits)
    assert tuned.untuned.tolist() == scores_of_fits(model, X, y, splits)
    by_score = tuned_size(model, X, y, splits, scoring="r2")
    assert by_score.curve.scoring == "r2"


def test_a_scorer_that_is_the_loss_chooses_as_the_loss_does():
    """It is told by the scorer, and chosen without a prediction for each iteration."""
    X, y, splits = problem(is_classes=False)
    model = GradientBoostingRegressor(loss="quantile", quantile=0.8, max_iter=9, max_leaf_nodes=4)
    scorer, plain = pinball_scorer(0.8), tuned_size(model, X, y, splits)
    tuned = tuned_size(model, X, y, splits, scoring=scorer)
    assert tuned.curve.scoring == "loss"
    assert tuned.chosen.parameters == plain.chosen.parameters
    for choice in tuned.choices:
        own = clone(model).set_params(**choice.parameters)
        expected = cross_val_score(own, X, y, cv=splits, scoring=scorer)
        np.testing.assert_array_equal(choice.scores, expected)
        n = choice.parameters["max_iter"]
        np.testing.assert_allclose(choice.scores, tuned.curve.scores[n - 1], rtol=1e-12)
    np.testing.assert_allclose(tuned.untuned, tuned.curve.scores[-1], rtol=1e-12)


def test_splits_are_what_other_functions_call_cv():
    X, y, _ = problem(is_classes=True)
    splitter = StratifiedKFold(3)
    tree = DecisionTreeClassifier(random_state=0)
    found = [tuned_size(tree, X, y, cv) for cv in (3, splitter, list(splitter.split(X, y)))]
    assert found[0].chosen.parameters == found[1].chosen.parameters == found[2].chosen.parameters


def test_limits_are_the_best_of_all():
    X, y, splits = problem(is_classes=False)
    tree = DecisionTreeRegressor(random_state=0, max_depth=3)
    tuned = tuned_size(tree, X, y, splits)
    assert tuned.surface.max_depth.tolist() == [1, 2, 3]
    means = {
        (depth, rows): np.mean(
            scores_of_fits(
                DecisionTreeRegressor(random_state=0, max_depth=depth, min_samples_split=rows),
                *(X, y, splits),
            )
        )
        for depth in (1, 2, 3)
        for rows in tuned.surface.min_samples_split.tolist()
    }
    chosen = tuned.choices[0].parameters
    assert means[chosen["max_depth"], chosen["min_samples_split"]] == pytest.approx(
        max(means.values()), abs=1e-12
    )


def test_the_alpha_of_a_step_gives_its_tree():
    X, y, splits = problem(is_classes=True)
    tree = DecisionTreeClassifier(random_state=0)
    path = cost_complexity_cv(tree, X, y, cv=splits)
    assert len(path.ccp_alphas) > 5
    for step, n_leaves in enumerate(path.n_leaves):
        pruned = clone(tree).set_params(ccp_alpha=alpha_of_step(path, step)).fit(X, y)
        assert pruned.get_n_leaves() == n_leaves


def test_equal_scores_take_the_smaller_tree():
    X, y = np.arange(40.0)[:, None], np.arange(40) >= 20
    splits = shuffled_folds(y, 4, 0, stratified=True)
    tuned = tuned_size(DecisionTreeClassifier(), X, y, splits)
    assert {choice.n_leaves for choice in tuned.choices} == {2}
    assert tuned.chosen.parameters["max_depth"] == 1


def test_a_tree_that_cannot_split():
    X, y = np.zeros((20, 1)), np.arange(20) % 2
    splits = shuffled_folds(y, 2, 0, stratified=True)
    tuned = tuned_size(DecisionTreeClassifier(), X, y, splits)
    assert {choice.n_leaves for choice in tuned.choices} == {1}


@pytest.mark.parametrize(
    ("most", "depths"), [(None, [4, 8, 12, 16, 24, 64]), (3, [3]), (12, [4, 8, 12])]
)
def test_a_forest_has_few_limits(most, depths):
    X, y, splits = problem(is_classes=False)
    forest = RandomForestRegressor(3, random_state=0, max_depth=most)
    tuned = tuned_size(forest, X, y, splits)
    assert tuned.surface.max_depth.tolist() == depths
    assert tuned.path is None
    for choice in tuned.choices:
        own = clone(forest).set_params(**choice.parameters)
        assert choice.scores.tolist() == pytest.approx(scores_of_fits(own, X, y, splits), abs=1e-12)


@pytest.mark.parametrize("scoring", ["neg_brier_score", "f1_macro", "roc_auc"])
def test_every_choice_is_scored_by_the_scorer(scoring):
    X, y, splits = problem(is_classes=True)
    tree = DecisionTreeClassifier(random_state=0, max_depth=6)
    tuned = tuned_size(tree, X, y, splits, scoring=scoring)
    scorer = get_scorer(scoring)
    for choice in tuned.choices:
        own = clone(tree).set_params(**choice.parameters)
        expected = []
        for train, test in splits:
            weight = np.zeros(len(y))
            weight[train] = 1
            expected.append(scorer(clone(own).fit(X, y, sample_weight=weight), X[test], y[test]))
        assert choice.scores.tolist() == pytest.approx(expected, abs=1e-12)
    surface = tuned.surface
    assert surface.scoring == scoring
    if scoring == "roc_auc":  # no sum over leaves
        assert surface.max_depth.tolist() == [4, 6]
        assert surface.min_samples_split.tolist() == [2, 10]
    limits = tuned.choices[0].scores.mean()
    assert limits == pytest.approx(surface.mean.max(), abs=1e-12)
