"""Models of losses of the user's own: those of the same losses by name, and errors."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.core.losses._derivatives import shares_of_two
from dtrees.losses import Loss

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)).round(1)
Y = X[:, 0] * X[:, 1] + RNG.normal(size=400)
WEIGHT = RNG.integers(0, 4, 400).astype(float)


class Square(Loss):
    def gradient_and_hessian(self, y, raw):
        return raw - y, np.ones(len(y))

    def initial(self, y, sample_weight):
        return np.average(y, weights=sample_weight)

    def of_rows(self, y, raw):
        return (y - raw) ** 2 / 2


class Logistic(Loss):
    def gradient_and_hessian(self, y, raw):
        share = shares_of_two(raw[:, None])[:, 1]
        return share - y, share * (1 - share)


class Classes(Loss):
    def gradient_and_hessian(self, y, raw):
        shares = np.exp(raw - raw.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares - (y[:, None] == np.arange(raw.shape[1])), shares * (1 - shares)


class Positive(Square):
    def check_target(self, y):
        if y.min() < 0:
            raise ValueError("no negative targets")

    def inverse_link(self, raw):
        return np.maximum(raw, 0)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
def test_a_square_is_the_squared_error(weight, early):
    how = {"max_iter": 20, "random_state": 0, "early_stopping": early}
    model = GradientBoostingRegressor(Square(), **how).fit(X, Y, weight)
    other = GradientBoostingRegressor(**how).fit(X, Y, weight)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.validation_score_, other.validation_score_, rtol=1e-6)


def test_two_classes_are_log_loss_but_for_the_beginning():
    y = np.arange(400) % 2  # half of each: log odds of zero
    table = X + y[:, None]
    model = GradientBoostingClassifier(Logistic(), max_iter=10).fit(table, np.array(["a", "b"])[y])
    other = GradientBoostingClassifier(max_iter=10).fit(table, y)
    np.testing.assert_allclose(model.predict_proba(table), other.predict_proba(table), rtol=1e-6)
    assert set(model.predict(table)) == {"a", "b"}


def test_three_classes():
    y = np.digitize(Y, [-0.5, 0.5])
    model = GradientBoostingClassifier(Classes(), max_iter=40).fit(X, y)
    assert model.n_trees_per_iteration_ == 3
    assert model.decision_function(X).shape == model.predict_proba(X).shape == (400, 3)
    assert (
        abs(model.score(X, y) - GradientBoostingClassifier(max_iter=40).fit(X, y).score(X, y))
        < 0.02
    )


def test_threads_and_order_change_nothing():
    order = RNG.permutation(400)
    model = GradientBoostingRegressor(Square(), max_iter=5).fit(X, Y)
    loss = Square()
    loss.initial = lambda y, weight: model._initial[0]  # a mean is one in any order, but for a bit
    for n_jobs, rows in ((2, slice(None)), (1, order)):
        again = GradientBoostingRegressor(loss, max_iter=5, n_jobs=n_jobs).fit(X[rows], Y[rows])
        for tree, other in zip(model.forest_.trees, again.forest_.trees, strict=True):
            assert tree.equals(other)


def test_links_and_targets():
    model = GradientBoostingRegressor(Positive(), max_iter=5).fit(X, np.abs(Y))
    assert model.predict(X).min() >= 0
    with pytest.raises(ValueError, match="no negative targets"):
        model.fit(X, Y)


def test_clones_pickles_and_parameters():
    loss = Square()
    model = GradientBoostingRegressor(loss, max_iter=3)
    assert model.get_params()["loss"] is loss
    copy = clone(model)
    assert type(copy.loss) is Square
    model.fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.fit(X, Y).predict(X), model.predict(X))


def test_warm_starts():
    model = GradientBoostingRegressor(Square(), max_iter=2, warm_start=True).fit(X, Y)
    model.set_params(max_iter=5, loss=Square()).fit(X, Y)
    whole = GradientBoostingRegressor(Square(), max_iter=5).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    with pytest.raises(ValueError, match="the loss must be that of the first fit"):
        model.set_params(loss=Positive()).fit(X, np.abs(Y))


def test_scores_need_the_loss_of_rows():
    model = GradientBoostingClassifier(Logistic(), early_stopping=True)
    with pytest.raises(NotImplementedError, match=r"Logistic has no method of_rows.*scoring="):
        model.fit(X, Y > 0)
    model.set_params(scoring="roc_auc", max_iter=3).fit(X, Y > 0)
    assert len(model.validation_score_) == 4


def test_what_is_no_loss():
    with pytest.raises(ValueError, match=r"or an instance of 'dtrees.losses.Loss'. Got <class"):
        GradientBoostingRegressor(Square).fit(X, Y)


def test_a_loss_that_fails_leaves_the_model_as_it_was():
    class Late(Square):
        def gradient_and_hessian(self, y, raw):
            return (raw - y) / (np.ptp(raw) == 0), np.ones(len(y))

    model = GradientBoostingRegressor(Late())
    before = dict(vars(model))
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="finite gradients"):
        model.fit(X, Y)
    assert vars(model) == before
