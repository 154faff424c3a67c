"""Every iteration's score of every split: prefixes are models of fewer iterations."""

import pickle
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold

from dtrees import DecisionTreeRegressor, GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.losses import Loss
from dtrees.model_selection import boosting_curve

RNG = np.random.default_rng(0)
N = 90
X = RNG.normal(size=(N, 3))
LABELS = np.digitize(X[:, 0] + RNG.normal(size=N) / 2, [-0.6, 0.6])
NUMBERS = X[:, 1] * X[:, 2] + RNG.normal(size=N) / 4


class Squares(Loss):
    """A loss of one's own."""

    def gradient_and_hessian(self, y, raw):
        return raw - y, np.ones(len(y))

    def of_rows(self, y, raw):
        return (raw - y) ** 2

    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = Loss.__hash__


class WithoutLosses(Squares):
    """The same, of which nobody knows what a row loses."""

    of_rows = Loss.of_rows


DRAWN = {"max_iter": 5, "random_state": 0}
WORK = {
    "two": (GradientBoostingClassifier(max_iter=5), LABELS == 1),
    "three": (GradientBoostingClassifier(max_iter=5, early_stopping=True), LABELS),
    "numbers": (GradientBoostingRegressor(max_iter=5, max_leaf_nodes=4), NUMBERS),
    "counts": (GradientBoostingRegressor("poisson", max_iter=5), LABELS.astype(float)),
    "some rows": (GradientBoostingRegressor("huber", subsample=0.6, **DRAWN), NUMBERS),
    "own": (GradientBoostingRegressor(Squares(), max_features=0.5, **DRAWN), NUMBERS),
    "regularized": (
        GradientBoostingRegressor(
            "tweedie", path_smooth=3.0, l1_regularization=0.2, colsample_bytree=0.7, **DRAWN
        ),
        LABELS.astype(float),
    ),
    "rules": (
        GradientBoostingClassifier(
            monotonic_cst=[1, 0, -1], interaction_cst=[{0, 1}], max_features=0.7, **DRAWN
        ),
        LABELS == 1,
    ),
}
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(X))


def curve_of(kind, **how):
    estimator, y = WORK[kind]
    return boosting_curve(estimator, X, y, cv=SPLITS, **how)


@settings(max_examples=15)
@given(
    kind=st.sampled_from(sorted(WORK)),
    scoring=st.sampled_from(["loss", None, "own"]),
    n_iterations=st.integers(1, 5),
)
def test_a_score_is_that_of_a_fit_of_so_many_iterations(kind, scoring, n_iterations):
    def own(model, rows, y):
        return float(model.predict(rows)[0] == y[0]) + len(model.forest_)

    estimator, y = WORK[kind]
    curve = curve_of(kind, scoring=own if scoring == "own" else scoring)
    for number, (train, test) in enumerate(SPLITS):
        weight = np.zeros(N)
        weight[train] = 1
        model = clone(estimator).set_params(early_stopping=False, max_iter=n_iterations)
        model.fit(X, y, weight)
        if scoring == "loss":
            raw = model._predictor().raw(model._predictor().check(X[test]))
            expected = -model._fit_loss.mean(y[test].astype(float), raw, None)
        else:
            expected = own(model, X[test], y[test]) if scoring else model.score(X[test], y[test])
        assert curve.scores[n_iterations - 1, number] == expected


@pytest.mark.parametrize("kind", sorted(WORK))
def test_a_model_is_a_fit_of_so_many_iterations(kind):
    estimator, y = WORK[kind]
    curve = curve_of(kind)
    for n in (1, 3, 5):
        expected = clone(estimator).set_params(early_stopping=False, max_iter=n).fit(X, y)
        model = curve.model(n)
        assert model.get_params() == expected.get_params()
        assert vars(model).keys() - vars(expected).keys() <= {"_fit_report"}
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match=r"max_iter must be at most 5, .* Got 6"):
        curve.model(6)


def test_a_shrunken_model_makes_smaller_steps():
    whole = curve_of("numbers").model(3)
    half = curve_of("numbers").shrunken(0.5).model(3)
    begins = whole._initial[0]
    np.testing.assert_allclose(half.predict(X) - begins, (whole.predict(X) - begins) / 2)
    for wrong in (0, -1.0, 1e308, np.inf, np.nan):
        with pytest.raises(ValueError, match=r"'shrinkage' parameter of .* \(0.0, 1.0\]"):
            curve_of("numbers").shrunken(wrong)


def test_a_shrunken_curve_scores_the_shrunken_models():
    curve = curve_of("two", scoring="roc_auc").shrunken(0.25)
    assert curve.shrinkage == 0.25
    train, test = SPLITS[0]
    weight = np.zeros(N)
    weight[train] = 1
    estimator, y = WORK["two"]
    model = clone(estimator).set_params(early_stopping=False).fit(X, y, weight)
    raw = model._initial[0] + (model.decision_function(X[test]) - model._initial[0]) / 4
    from sklearn.metrics import roc_auc_score

    assert curve.scores[-1, 0] == pytest.approx(roc_auc_score(y[test], raw))
    assert get_scorer("roc_auc")(curve.model(2), X, y) > 0.5


class TestChoices:
    def curve(self, scores):
        from dataclasses import replace

        scores = np.array(scores, dtype=float)
        return replace(curve_of("numbers"), max_iter=np.arange(1, len(scores) + 1), scores=scores)

    def test_the_best_is_the_first_of_equal_means(self):
        assert self.curve([[1, 1], [3, 3], [3, 3], [2, 2]]).best == 2

    def test_one_standard_error(self):
        curve = self.curve([[0, 0], [2, 3], [3, 5], [2, 2]])
        np.testing.assert_allclose(curve.standard_error, [0, 0.5, 1, 0])
        assert (curve.best, curve.one_standard_error) == (3, 3)
        assert self.curve([[0, 0], [2.5, 3.5], [3, 5], [2, 2]]).one_standard_error == 2

    def test_early_stopping_ends_where_nothing_gets_better(self):
        curve = self.curve([[1], [2], [3], [3], [2], [9]])
        assert curve.stopped(2) == 5
        assert curve.stopped(3) == 6
        assert np.isnan(curve.standard_error).all()
        assert curve.one_standard_error == curve.best == 6

    def test_without_a_mean_there_is_no_best(self):
        curve = self.curve([[np.nan]])
        with pytest.raises(ValueError, match="Every mean of the curve is nan"):
            _ = curve.best
        assert "every mean is nan" in repr(curve)


def test_a_pickle_has_the_final_model_only():
    curve = curve_of("two")
    copy = pickle.loads(pickle.dumps(curve))
    np.testing.assert_array_equal(copy.scores, curve.scores)
    np.testing.assert_array_equal(copy.model(2).predict(X), curve.model(2).predict(X))
    with pytest.raises(RuntimeError, match="left behind"):
        copy.shrunken(0.5)


def test_what_is_refused():
    with pytest.raises(TypeError, match=r"is no boosted model \(validation_surface"):
        boosting_curve(DecisionTreeRegressor(), X, NUMBERS)
    with pytest.raises(ValueError, match="'scoring' parameter of boosting_curve"):
        curve_of("two", scoring=["accuracy"])
    estimator, y = WORK["numbers"]
    with pytest.raises(ValueError, match="Split 0 holds out no row"):
        boosting_curve(estimator, X, y, cv=[(np.arange(N), np.arange(0))])
    with pytest.raises(ValueError, match="not all of it may be zero"):
        boosting_curve(WORK["counts"][0], X, 0 * y, cv=2)


def test_a_score_that_there_is_not_is_refused_before_anything_grows(monkeypatch):
    monkeypatch.setattr(sys.modules[boosting_curve.__module__], "grow_splits", None)
    with pytest.raises(ValueError, match="Got 'of_luck' instead"):
        curve_of("two", scoring="of_luck")
    with pytest.raises(ValueError, match="WithoutLosses has no method of_rows"):
        boosting_curve(GradientBoostingRegressor(WithoutLosses()), X, NUMBERS)


def test_names_of_scores():
    names = [curve_of(kind, scoring=None).scoring for kind in ("two", "numbers")]
    assert names == ["accuracy", "r2"]
    assert curve_of("two").scoring == "loss"
    assert curve_of("two", scoring="roc_auc").scoring == "roc_auc"


def test_the_picture():
    pytest.importorskip("matplotlib").use("Agg")
    curve = curve_of("two")
    ax = curve.plot()
    assert ax.get_xlabel() == "iterations"
    assert ax.get_ylabel() == "mean loss of held-out rows (log_loss)"
    marked = [line for line in ax.lines if "iterations" in str(line.get_label())]
    assert [int(line.get_xdata()[0]) for line in marked] == [curve.best, curve.one_standard_error]
    (best,) = marked[0].get_ydata()
    assert best == -curve.mean.max() > 0
    assert ax.get_ylim()[0] < best < ax.get_ylim()[1]
    assert all(tick == int(tick) for tick in ax.get_xticks())
    assert curve_of("numbers", scoring=None).plot(ax) is ax
    assert ax.get_ylabel() == "r2"
    own = boosting_curve(GradientBoostingRegressor(Squares(), max_iter=2), X, NUMBERS, cv=SPLITS)
    assert own.plot().get_ylabel() == "mean loss of held-out rows (Squares)"
