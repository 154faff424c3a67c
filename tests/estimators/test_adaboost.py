"""AdaBoost: the slides, the loop over trees that it replaces, and scikit-learn."""

import doctest
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.ensemble
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError

from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_text,
)
from dtrees.coding.target import Target, fixed_point_weights
from dtrees.core.data._logarithm import log
from dtrees.core.losses._derivatives import exponential
from dtrees.core.membership.resampling import Bags
from dtrees.estimators import adaboost
from dtrees.export import to_lightgbm
from dtrees.inspection import plot_metric, shap_values, split_counts
from dtrees.model_selection import GridSearchCV, cross_val_predict, cross_validate
from tests.estimators.forest_cases import assert_same, mixed_table

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIGITS = load_digits(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)

# [SK], Binary classification: spam prediction
SPAM = pd.DataFrame(
    [
        (True, False, True, "spam"),
        (True, True, False, "spam"),
        (True, True, False, "spam"),
        (False, True, True, "ham"),
        (False, False, False, "ham"),
        (False, False, False, "ham"),
    ],
    columns=["suspicious words", "unknown sender", "contains images", "class"],
)
# [SK], Regression: bike rentals per day
SEASONS, WORKS = np.repeat(["winter", "spring", "summer", "autumn"], 3), [False, False, True] * 4
WORKS[4] = WORKS[7] = True
RENTALS = [800, 826, 900, 2100, 4740, 4900, 3000, 5800, 6200, 2910, 2880, 2820]
BIKES = pd.DataFrame({"season": SEASONS, "work day": WORKS, "rentals": RENTALS})


def slow(X, y, weight=None, n_trees=20, learning_rate=1.0, **tree):
    """SAMME as a loop over whole fits of our trees: trees, votes and errors."""
    classes, y = np.unique(y, return_inverse=True)
    weight = np.ones(len(y)) if weight is None else np.array(weight, dtype=float)
    counts = weight > 0
    units, exponent = fixed_point_weights(weight)
    weight = np.ldexp(units.astype(float), -exponent)  # as the first tree sees them
    trees, votes, errors = [], [], []
    while len(trees) < n_trees:
        fitted = DecisionTreeClassifier(**tree).fit(X, y, weight)
        missed = fitted.predict(X) != y
        units = fixed_point_weights(weight)[0].tolist()
        error = sum(w for w, miss in zip(units, missed, strict=True) if miss) / sum(units)
        if error >= 1 - 1 / len(classes):
            break
        trees.append(fitted.tree_.model)
        errors.append(error)
        if error == 0:
            votes.append(1.0)
            break
        odds = log((1 - error) / error) + log(len(classes) - 1)
        votes.append(learning_rate * odds)
        weight = np.where(missed, weight, weight * exponential(np.array(-votes[-1])))
        weight /= 2.0 ** math.frexp(weight.max())[1]
        weight = np.where(counts, np.maximum(weight, 2.0**-52), 0)
    return trees, votes, errors


def assert_is(model, found):
    trees, votes, errors = found
    assert len(model) == len(trees)
    assert all(a.equals(b) for a, b in zip(model.forest_.trees, trees, strict=True))
    assert model.estimator_weights_.tolist() == votes
    assert model.estimator_errors_.tolist() == errors


class TestSlides:
    """[SK], Boosting: how does it work?, and Algorithm."""

    def test_a_stump_of_the_spam_is_right(self):
        model = AdaBoostClassifier().fit(SPAM.drop(columns="class"), SPAM["class"])
        assert len(model) == 1
        assert model.estimator_errors_.tolist() == [0.0]
        assert model.feature_importances_.tolist() == [1.0, 0.0, 0.0]
        assert (model.predict(SPAM.drop(columns="class")) == SPAM["class"]).all()

    def test_what_is_left_of_the_spam_is_too_much_for_stumps(self):
        X, y = SPAM[["unknown sender", "contains images"]], SPAM["class"]
        # a tree misses two of six mails; then they weigh 1/4 each, and the others 1/8: no stump
        # is better than chance
        model = AdaBoostClassifier().fit(X, y)
        assert len(model) == 1
        assert model.estimator_errors_.tolist() == [pytest.approx(1 / 3)]
        assert model.estimator_weights_.tolist() == [pytest.approx(math.log(2))]
        deeper = AdaBoostClassifier(max_depth=2).fit(X, y)
        assert deeper.estimator_errors_.tolist() == [0.0]

    def test_weights_follow_the_slides(self):
        """Weights as fractions: times 1 / (2 e) where a tree misses, else 1 / (2 (1 - e))."""
        X, y = BIKES[["season", "work day"]], (BIKES["rentals"] > 2850).to_numpy()
        X = X.assign(month=[1, 2, 12, 3, 4, 5, 6, 7, 8, 9, 10, 11])
        model = AdaBoostClassifier(6, category_penalty=0).fit(X, y)
        assert len(model) == 6
        weights = [Fraction(1, 12)] * 12
        for number, tree in enumerate(model.estimators_):
            missed = tree.predict(X) != y
            error = sum(w for w, miss in zip(weights, missed, strict=True) if miss)
            assert model.estimator_errors_[number] == pytest.approx(float(error), rel=1e-12)
            confidence = 0.5 * math.log((1 - error) / error)
            assert model.estimator_weights_[number] == pytest.approx(2 * confidence, rel=1e-12)
            weights = [
                w / (2 * error) if miss else w / (2 * (1 - error))
                for w, miss in zip(weights, missed, strict=True)
            ]
            assert sum(weights) == 1
            # the next tree cannot be this one: it would be no better than chance
            assert sum(w for w, miss in zip(weights, missed, strict=True) if miss) == Fraction(1, 2)
        votes = sum(
            vote * np.where(tree.predict(X), 1, -1)
            for vote, tree in zip(model.estimator_weights_, model.estimators_, strict=True)
        )
        assert_array_equal(model.predict(X), votes > 0)

    def test_bikes(self):
        X, y = BIKES[["season", "work day"]], BIKES["rentals"]
        how = {"max_depth": None, "category_penalty": 0, "random_state": 0}
        model = AdaBoostRegressor(20, **how).fit(X, y)
        of_leaves = y.groupby([X["season"], X["work day"]]).transform("mean")
        assert model.score(X, y) > 0.9
        assert np.abs(model.predict(X) - of_leaves).max() < 0.2 * y.max()


LETTERS = mixed_table(300)
SPARSE = sp.csr_array(sp.random(300, 20, 0.2, random_state=0).toarray().round(1))
TABLES = {
    "iris": IRIS,
    "cancer": CANCER,
    "letters": LETTERS,
    "sparse": (SPARSE, LETTERS[1]),
}


class TestLoop:
    """The trees are those of a loop over fits of trees with other weights, bit for bit."""

    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("weights", [None, "whole", "fractions"])
    @pytest.mark.parametrize("depth", [1, 3])
    @pytest.mark.parametrize("table", TABLES)
    def test_classes(self, table, depth, weights):
        X, y = TABLES[table]
        rng = np.random.default_rng(0)
        weight = {
            None: None,
            "whole": rng.integers(0, 4, len(y)),
            "fractions": rng.random(len(y)) * (rng.random(len(y)) < 0.9),
        }[weights]
        model = AdaBoostClassifier(10, max_depth=depth).fit(X, y, weight)
        assert_is(model, slow(X, y, weight, 10, max_depth=depth))

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("rate", [0.1, 3.0, 1e4])
    def test_learning_rates(self, rate):
        how = {"max_depth": 2, "criterion": "entropy", "min_weight_fraction_leaf": 0.05}
        model = AdaBoostClassifier(20, learning_rate=rate, **how).fit(*DIGITS)
        assert np.isfinite(model.estimator_weights_).all()
        assert_is(model, slow(*DIGITS, None, 20, rate, **how))

    @pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
    def test_numbers(self, loss):
        """Bags as weights of trees, and the weights of [Drucker 1997]."""
        rng = np.random.default_rng(0)
        X, how = rng.normal(size=(400, 4)), {"min_samples_leaf": 20, "max_depth": 3}  # no ties
        y = X[:, 0] ** 2 + rng.normal(size=400)
        weight = rng.integers(0, 3, len(y)).astype(float)
        model = AdaBoostRegressor(8, loss=loss, random_state=3, **how).fit(X, y, weight)
        seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
        counts = weight > 0
        values = []
        for number in range(8):
            means = Target.regression(y, weight, drawn=True).means
            times = Bags(seed, 1.0, len(y), means).multiplicity(number, counts)
            tree = DecisionTreeRegressor(**how).fit(X, y, times * counts)
            values.append(tree.predict(X))
            assert_allclose(model.estimators_[number].predict(X), values[-1], atol=1e-12)
            far = np.abs(values[-1] - y)
            far /= far[counts].max()
            far = {"linear": far, "square": far**2, "exponential": 1 - np.exp(-far)}[loss]
            error = np.average(far, weights=weight)
            assert model.estimator_errors_[number] == pytest.approx(error, rel=1e-9)
            beta = error / (1 - error)
            assert model.estimator_weights_[number] == pytest.approx(-math.log(beta), rel=1e-9)
            weight = weight * np.where(counts, beta ** (1 - far), 0)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("table", [CANCER, DIGITS], ids=["cancer", "digits"])
def test_classes_as_of_scikit_learn(table, depth):
    X, y = table
    model = AdaBoostClassifier(max_depth=depth).fit(X[::2], y[::2])
    tree = sklearn.tree.DecisionTreeClassifier(max_depth=depth)
    other = sklearn.ensemble.AdaBoostClassifier(tree, random_state=0).fit(X[::2], y[::2])
    assert_allclose(model.estimator_errors_[:4], other.estimator_errors_[:4], rtol=1e-9)
    assert_allclose(model.estimator_weights_[:4], other.estimator_weights_[:4], rtol=1e-9)
    assert abs(model.score(X[1::2], y[1::2]) - other.score(X[1::2], y[1::2])) < 0.02
    if depth == 1:  # few splits gain the same
        for method in ("predict_proba", "predict_log_proba", "decision_function"):
            mine, theirs = (getattr(each, method)(X[::2]) for each in (model, other))
            assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        assert_allclose(model.feature_importances_, other.feature_importances_, atol=1e-9)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
def test_numbers_as_of_scikit_learn(loss):
    X, y = DIABETES
    scores = []
    for kind in (AdaBoostRegressor, sklearn.ensemble.AdaBoostRegressor):
        models = [kind(loss=loss, random_state=i).fit(X[::2], y[::2]) for i in range(4)]
        scores.append(np.mean([model.score(X[1::2], y[1::2]) for model in models]))
    assert abs(scores[0] - scores[1]) < 0.05


MODELS = {
    "classes": (AdaBoostClassifier(8, max_depth=3), LETTERS[1]),
    "drawn": (AdaBoostClassifier(8, max_depth=3, max_features=2, random_state=1), LETTERS[1]),
    "numbers": (AdaBoostRegressor(8, random_state=1), LETTERS[1] + LETTERS[0]["k"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_where_it_grows_changes_no_bit(name):
    model, y = MODELS[name]
    weight = np.random.default_rng(2).random(len(y))
    whole = clone(model).fit(LETTERS[0], y, weight)
    for how in ({"n_jobs": 3}, {"regime": "partitioned"}, {"regime": "partitioned", "n_jobs": 2}):
        other = clone(model).set_params(**how).fit(LETTERS[0], y, weight)
        assert_same(whole, other)
        assert_array_equal(other.estimator_weights_, whole.estimator_weights_)
        assert_array_equal(other._saw_missing, whole._saw_missing)
        assert other.fit_report_["regime"] == how.get("regime", "local")


def test_order_and_storage_of_rows_change_no_bit():
    X, y = TABLES["sparse"]
    weight = np.random.default_rng(2).random(len(y))
    model = AdaBoostClassifier(10, max_depth=2).fit(X, y, weight)
    assert_same(model, AdaBoostClassifier(10, max_depth=2).fit(X.toarray(), y, weight))
    order = np.random.default_rng(3).permutation(len(y))
    assert_same(model, AdaBoostClassifier(10, max_depth=2).fit(X[order], y[order], weight[order]))


def test_rows_without_weight_do_not_count():
    X, y = CANCER
    some = np.random.default_rng(4).random(len(y)) < 0.7
    for kind in (AdaBoostClassifier, AdaBoostRegressor):
        model = kind(6, max_depth=2, random_state=0).fit(X, y, some.astype(float))
        flipped = kind(6, max_depth=2, random_state=0).fit(X, np.where(some, y, 1 - y), some)
        assert_array_equal(model.predict(X), flipped.predict(X))
    alone = AdaBoostClassifier(6, max_depth=2, random_state=0).fit(X[some], y[some])
    model = AdaBoostClassifier(6, max_depth=2, random_state=0).fit(X, y, some)
    assert_allclose(model.predict_proba(X), alone.predict_proba(X), rtol=1e-12)


class TestEnds:
    @pytest.mark.parametrize("n_classes", [2, 3, 5, 7])
    def test_exactly_as_good_as_chance(self, n_classes):
        """Not a vote of what is rounded: errors are compared as integers."""
        y = np.arange(10 * n_classes) % n_classes
        with pytest.raises(ValueError, match="no better than chance"):
            AdaBoostClassifier(5).fit(np.zeros((len(y), 1)), y)

    def test_no_better_than_chance(self):
        X, y = np.zeros((4, 1)), [0, 1, 0, 1]
        model = AdaBoostClassifier()
        with pytest.raises(ValueError, match="is wrong about 50% of the rows by weight, which is"):
            model.fit(X, y)
        with pytest.raises(NotFittedError):
            model.predict(X)
        model.fit([[0.0], [1.0]], ["a", "b"])
        with pytest.raises(ValueError, match="no better than chance"):
            model.fit(X, y)
        assert model.predict([[0.0], [1.0]]).tolist() == ["a", "b"]

    def test_a_tree_of_numbers_that_is_the_only_one_stays(self):
        model = AdaBoostRegressor().fit(np.zeros((4, 1)), [1.0, 2.0, 1.0, 2.0])
        assert len(model) == 1
        assert model.estimator_errors_[0] >= 0.5

    def test_right_about_all(self):
        assert len(AdaBoostClassifier(max_depth=None).fit(*IRIS)) == 1
        assert len(AdaBoostRegressor().fit(np.zeros((4, 1)), [3.0] * 4)) == 1

    def test_one_class(self):
        model = AdaBoostClassifier().fit([[0.0], [1.0]], ["a", "a"])
        assert model.predict_proba([[0.0]]).tolist() == [[1.0]]
        assert model.decision_function([[0.0]]).tolist() == [0.0]
        assert next(model.staged_predict([[0.0]])).tolist() == ["a"]
        assert not shap_values(model, np.zeros((1, 1))).values.any()


@pytest.mark.parametrize(
    ("kind", "table"),
    [(AdaBoostClassifier, CANCER), (AdaBoostClassifier, IRIS), (AdaBoostRegressor, DIABETES)],
)
def test_stages_are_models_of_fewer_trees(kind, table):
    X, y = table
    model = kind(7, max_depth=2, random_state=0).fit(X, y)
    scores = list(model.staged_score(X, y))
    assert len(scores) == len(model) == 7
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            for n, found in enumerate(getattr(model, f"staged_{method}")(X), 1):
                fewer = kind(n, max_depth=2, random_state=0).fit(X, y)
                assert_array_equal(found, getattr(fewer, method)(X), strict=True)
                assert scores[n - 1] == fewer.score(X, y)


def test_as_a_sequence_and_pickled():
    model = AdaBoostClassifier(5).fit(*CANCER)
    assert [*model] == model.estimators_
    assert model[1] is model.estimators_[1]
    assert isinstance(model[0], DecisionTreeClassifier)
    assert model[0].get_depth() == 1
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(CANCER[0]), model.predict_proba(CANCER[0]))


@pytest.mark.parametrize("table", [IRIS, CANCER], ids=["iris", "cancer"])
def test_explanations_and_exports_are_of_votes(table):
    X, y = table
    model = AdaBoostClassifier(10, max_depth=2).fit(X, y)
    n_outputs = 1 if model.n_classes_ == 2 else model.n_classes_
    added = model.predict_contributions(X).reshape(len(X), n_outputs, -1).sum(axis=2)
    decision = model.decision_function(X).reshape(len(X), n_outputs)
    assert_allclose(added * max(1, n_outputs - 1), decision, atol=1e-12)
    assert split_counts(model).sum() == n_outputs * sum(tree.n_leaves - 1 for tree in trees(model))
    booster = pytest.importorskip("lightgbm").Booster(model_str=to_lightgbm(model))
    shares = model.predict_proba(X)
    assert_allclose(booster.predict(X), shares[:, 1] if n_outputs == 1 else shares, atol=1e-12)


def trees(model):
    return model.forest_.trees


def test_what_others_cannot_say_is_refused():
    model = AdaBoostRegressor(3, random_state=0).fit(*DIABETES)
    for asks in (model.predict_contributions, lambda _: to_lightgbm(model)):
        with pytest.raises(TypeError, match="predicts a weighted median of its trees, which other"):
            asks(DIABETES[0])
    assert export_text(model[0]).startswith("|---")
    with pytest.raises(TypeError, match="must be a boosted model"):
        plot_metric(AdaBoostClassifier(2).fit(*CANCER))


def test_validations_and_searches_are_those_of_scikit_learn(caplog):
    X, y = CANCER
    with caplog.at_level("INFO", "dtrees"):
        found = cross_validate(AdaBoostClassifier(5), X, y, cv=3, return_estimator=True)
    assert "scikit-learn's: each AdaBoostClassifier has weights of rows of its own" in caplog.text
    assert (found["test_score"] > 0.9).all()
    assert cross_val_predict(AdaBoostClassifier(5), X, y, cv=3).shape == y.shape
    search = GridSearchCV(AdaBoostClassifier(5), {"learning_rate": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"learning_rate": 1.0}


def test_examples():
    results = doctest.testmod(adaboost)
    assert results.attempted > 5
    assert results.failed == 0
