"""What a guess scores: the largest class, the shares of all classes, the mean, or a quantile."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Ridge

import dtrees
from dtrees.callbacks import Bar
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import trees_of
from dtrees.estimators.training_sets import TrainingTable
from dtrees.model_selection import cost_complexity_cv, cross_validate, tuned_size
from dtrees.model_selection.folds import shuffled_folds
from dtrees.model_selection.prepare import SplitTable
from dtrees.model_selection.tuned_size import tuned_scores
from dtrees.model_selection.validated import Questions, baseline_scores, validate_folds

SPLITS = [(np.arange(0, 6), np.arange(6, 9)), (np.arange(3, 9), np.arange(0, 3))]
LABELS = np.array(["a", "a", "b", "a", "b", "a", "b", "b", "b"])
NUMBERS = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 9])


def test_the_largest_class_of_the_training_rows():
    by_hand = [
        (LABELS[test] == largest).mean() for (_, test), largest in zip(SPLITS, "ab", strict=True)
    ]
    assert baseline_scores(LABELS, "classification", SPLITS) == {"score": np.mean(by_hand)}


def test_the_mean_of_the_training_rows():
    scoring = {name: name for name in ("r2", "neg_mean_squared_error")}
    found = baseline_scores(NUMBERS, "regression", iter(SPLITS), scoring)
    errors, r2 = [], []
    for train, test in SPLITS:
        away = NUMBERS[test] - NUMBERS[train].mean()
        errors.append((away**2).mean())
        r2.append(1 - errors[-1] / NUMBERS[test].var())
    assert found == pytest.approx({"r2": np.mean(r2), "neg_mean_squared_error": -np.mean(errors)})


def test_a_quantile_of_the_training_rows():
    scoring = {"own": lambda guess, X, y: -np.abs(y - guess.predict(X)).mean()}
    found = baseline_scores(NUMBERS, "regression", SPLITS, scoring, quantile=1.0)
    by_hand = [np.abs(NUMBERS[test] - NUMBERS[train].max()).mean() for train, test in SPLITS]
    assert found == pytest.approx({"own": -np.mean(by_hand)})


def test_scores_that_cannot_be_had_are_left_out():
    scoring = {name: name for name in ("accuracy", "roc_auc", "f1_macro")}
    labels = np.array(list("abcabcabc"))
    found = baseline_scores(labels, "classification", SPLITS, scoring)
    assert list(found) == ["accuracy", "f1_macro"]  # there are more than two classes


def test_folds_without_a_class_are_told_of():
    """Before models grow, as their scores will be nan there, too."""
    with pytest.raises(ValueError, match=r"Scores of roc_auc_ovr are nan .* 1 has no row of a"):
        baseline_scores(LABELS, "classification", SPLITS, {"roc_auc_ovr": "roc_auc_ovr"})
    shares = {"neg_log_loss": "neg_log_loss"}
    assert list(baseline_scores(LABELS, "classification", SPLITS, shares)) == ["neg_log_loss"]


def test_many_rows_are_not_guessed(monkeypatch):
    monkeypatch.setattr("dtrees.model_selection.validated.MOST_ROWS", 8)
    assert baseline_scores(NUMBERS, "regression", SPLITS) == {}


CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
MODELS = {
    "classes": (dtrees.DecisionTreeClassifier(random_state=0), CANCER),
    "numbers": (dtrees.DecisionTreeRegressor(random_state=0), DIABETES),
    "few leaves": (dtrees.DecisionTreeRegressor(max_leaf_nodes=7), DIABETES),
    "pruned": (dtrees.DecisionTreeRegressor(ccp_alpha=30.0, max_depth=5), DIABETES),
    "forest": (dtrees.RandomForestRegressor(3, random_state=0), DIABETES),
    "forest of classes": (dtrees.RandomForestClassifier(3, random_state=0), CANCER),
}


@pytest.fixture
def growths(monkeypatch):
    """Calls that grow something."""
    found = []
    for kind in (dtrees.DecisionTreeClassifier, dtrees.RandomForestClassifier):
        base = next(base for base in kind.__mro__ if "_fit_sets" in vars(base))
        grow = base._fit_sets

        def counted(self, encoded, resampling, *args, grow=grow, **how):
            found.append(resampling.n_sets)
            return grow(self, encoded, resampling, *args, **how)

        monkeypatch.setattr(base, "_fit_sets", counted)
    return found


def folds_of(y, k=4):
    return shuffled_folds(y, k, 0, stratified=y.dtype.kind == "i")


def check_same_models(mine, others):
    for a, b in zip(mine, others, strict=True):
        assert a.get_params() == b.get_params()
        assert vars(a).keys() == vars(b).keys()
        for tree, other in zip(trees_of(a), trees_of(b), strict=True):
            assert tree.equals(other)


def check(found, estimator, X, y, splits):
    """Bit for bit what a cross-validation of the estimator says."""
    alone = cross_validate(estimator, X, y, cv=splits, return_estimator=True, error_score="raise")
    assert [fold.score for fold in found.folds] == alone["test_score"].tolist()
    check_same_models(
        [*found.models, found.final_estimator], [*alone["estimator"], alone["final_estimator"]]
    )


@pytest.mark.one_of(3)
@pytest.mark.parametrize("rule", [None, "best", "simplest"])
@pytest.mark.parametrize("name", MODELS)
def test_folds_are_those_of_a_cross_validation(name, rule, growths):
    estimator, (X, y) = MODELS[name]
    if rule is not None:
        estimator = clone(estimator).set_params(ccp_alpha=0.0)
    splits = folds_of(y)
    given = estimator.get_params()
    found = validate_folds(estimator, X, y, splits, Questions(rule))
    assert growths == [5]
    assert estimator.get_params() == given
    assert found.tuned_scores is None
    if rule is not None:
        tuned = tuned_size(estimator, X, y, splits, rule)
        assert found.tuned.chosen.parameters == tuned.chosen.parameters
        np.testing.assert_array_equal(found.tuned.chosen.scores, tuned.chosen.scores)
        estimator = clone(estimator).set_params(**tuned.chosen.parameters)
        assert (found.path is None) == name.startswith("forest")
    check(found, estimator, X, y, splits)


@pytest.mark.parametrize("name", ["classes", "few leaves", "pruned"])
def test_a_path_beside_the_folds(name, growths):
    estimator, (X, y) = MODELS[name]
    splits = folds_of(y)
    found = validate_folds(estimator, X, y, splits, Questions(with_path=True))
    assert growths == [5]
    expected = cost_complexity_cv(estimator, X, y, cv=splits)
    np.testing.assert_array_equal(found.path.errors, expected.errors)
    np.testing.assert_array_equal(found.path.ccp_alphas, expected.ccp_alphas)
    check(found, estimator, X, y, splits)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("rule", ["best", "simplest"])
@pytest.mark.parametrize("name", ["classes", "numbers", "forest"])
def test_choices_without_the_rows_that_score_them(name, rule, monkeypatch):
    estimator, (X, y) = MODELS[name]
    codings, code = [], FitPlan.code
    splits = folds_of(y, 3)

    monkeypatch.setattr(FitPlan, "code", lambda *args: codings.append(args) or code(*args))
    if name == "forest":  # with every value a code, rows and weights are the same
        estimator = clone(estimator).set_params(max_bins=None, bootstrap=False, max_features=None)
    work = SplitTable(TrainingTable(X, y, None), splits)
    ours = tuned_scores(estimator, work, lambda rows: folds_of(y[rows], 3), rule)
    assert len(codings) == 1
    expected = []
    for train, test in splits:
        inner = tuned_size(estimator, X[train], y[train], folds_of(y[train], 3), rule)
        alone = clone(estimator).set_params(**inner.chosen.parameters).fit(X[train], y[train])
        expected.append(alone.score(X[test], y[test]))
    np.testing.assert_allclose(ours, expected, 1e-10)


def test_scores_of_others_come_with_the_folds(growths):
    estimator, (X, y) = MODELS["numbers"]
    splits = folds_of(y, 3)

    def inner(rows):
        return folds_of(y[rows], 2)

    found = validate_folds(estimator, X, y, splits, Questions("best", folds_of=inner))
    assert growths == [4, 3, 3, 3]
    work = SplitTable(TrainingTable(X, y, None), splits)
    expected = tuned_scores(estimator, work, inner)
    np.testing.assert_array_equal(found.tuned_scores, expected)


class Counter(Bar):
    """A bar that draws nothing."""

    expected = grown = 0

    def expect(self, n_trees):
        """Add up."""
        self.expected += n_trees

    def advance(self, n_trees=1, score=""):
        """Add up, never beyond what is expected."""
        self.grown += n_trees
        assert self.grown <= self.expected


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("name", "n_trees"), [("numbers", 1), ("forest", 3)])
@pytest.mark.parametrize("how", [{}, {"rule": "best"}, {"rule": "best", "folds_of": True}], ids=str)
def test_a_bar_counts_the_trees_of_all_models(name, n_trees, how):
    estimator, (X, y) = MODELS[name]
    n_models = 4
    if "folds_of" in how:
        how = how | {"folds_of": lambda rows: folds_of(y[rows], 2)}
        n_models += 3 * 3
    bar = Counter()
    validate_folds(estimator, X, y, folds_of(y, 3), Questions(**how), bar=bar)
    assert bar.grown == bar.expected == n_models * n_trees


def test_errors():
    splits = folds_of(DIABETES[1], 3)
    with pytest.raises(TypeError, match="Ridge is not an estimator of dtrees"):
        validate_folds(Ridge(), *DIABETES, splits)
    with pytest.raises(TypeError, match="not a single tree"):
        validate_folds(MODELS["forest"][0], *DIABETES, splits, Questions(with_path=True))
    with pytest.raises(ValueError, match="max_depth"):
        validate_folds(dtrees.DecisionTreeRegressor(max_depth=0), *DIABETES, splits)
    poisson = dtrees.DecisionTreeRegressor(criterion="poisson")
    with pytest.raises(ValueError, match="negative"):
        validate_folds(poisson, DIABETES[0], -DIABETES[1], splits)


BOOSTED = {
    "boosted numbers": (dtrees.GradientBoostingRegressor(max_iter=5), DIABETES),
    "boosted classes": (
        dtrees.GradientBoostingClassifier(max_iter=5, early_stopping=True, random_state=0),
        CANCER,
    ),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("rule", [None, "best", "simplest"])
@pytest.mark.parametrize("name", BOOSTED)
def test_folds_of_boosted_models(name, rule):
    estimator, (X, y) = BOOSTED[name]
    splits = folds_of(y)
    found = validate_folds(estimator, X, y, splits, Questions(rule))
    if rule is not None:
        tuned = tuned_size(estimator, X, y, splits, rule)
        assert found.tuned.chosen.parameters == tuned.chosen.parameters
        estimator = clone(estimator).set_params(**tuned.chosen.parameters)
    check(found, estimator, X, y, splits)
    assert found.path is None
    with pytest.raises(TypeError, match=r"is a boosted model \(boosting_curve"):
        validate_folds(estimator, X, y, splits, Questions(with_path=True))
