"""The two estimators beside scikit-learn's, and what only one of them has."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor as FriedmansRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, mean_pinball_loss, mean_poisson_deviance, mean_squared_error

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.core.losses.losses import NUMBERS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2_000, 5))
X[RNG.random(X.shape) < 0.1] = np.nan
SIGNAL = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.isnan(X[:, 2])
NOISY = SIGNAL + 0.5 * RNG.normal(size=len(X))
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)
COUNTS = RNG.poisson(np.exp(SIGNAL)).astype(float)


@pytest.mark.usefixtures("one_openmp_thread")
class TestBesideScikitLearn:
    """As good, on rows that neither has seen."""

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_classes(self, n_classes):
        y = np.searchsorted(np.quantile(NOISY, np.arange(1, n_classes) / n_classes), NOISY)
        losses = [
            log_loss(y[TEST], model.fit(X[TRAIN], y[TRAIN]).predict_proba(X[TEST]))
            for model in (
                GradientBoostingClassifier(max_iter=20),
                HistGradientBoostingClassifier(max_iter=20, early_stopping=False),
            )
        ]
        assert losses[0] < 1.03 * losses[1]

    @pytest.mark.parametrize(
        ("loss", "y", "measure"),
        [
            ("squared_error", NOISY, mean_squared_error),
            ("absolute_error", NOISY, mean_pinball_loss),
            ("poisson", COUNTS, mean_poisson_deviance),
            ("gamma", np.exp(NOISY), None),
            ("quantile", NOISY, lambda y, found: mean_pinball_loss(y, found, alpha=0.8)),
        ],
    )
    def test_numbers(self, loss, y, measure):
        own = {"quantile": 0.8} if loss == "quantile" else {}
        measure = measure or (lambda y, found: np.mean(np.log(found) + y / found))
        losses = [
            measure(y[TEST], model.fit(X[TRAIN], y[TRAIN]).predict(X[TEST]))
            for model in (
                GradientBoostingRegressor(loss, max_iter=20, **own),
                HistGradientBoostingRegressor(loss, max_iter=20, early_stopping=False, **own),
            )
        ]
        assert losses[0] < 1.03 * losses[1]


class TestClasses:
    def test_two_classes_have_one_tree_an_iteration(self):
        model = GradientBoostingClassifier(max_iter=3).fit(X, np.where(NOISY > 0, "yes", "no"))
        assert model.n_trees_per_iteration_ == 1
        assert len(model.forest_) == model.n_iter_ == 3
        assert model.classes_.tolist() == ["no", "yes"]
        raw = model.decision_function(X)
        assert raw.shape == (2_000,)
        shares = model.predict_proba(X)
        np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-raw)), rtol=1e-14)
        np.testing.assert_array_equal(model.predict(X) == "yes", shares[:, 1] > 0.5)

    def test_more_classes_have_one_each(self):
        model = GradientBoostingClassifier(max_iter=3).fit(X, np.digitize(NOISY, [-1, 1]))
        assert (model.n_trees_per_iteration_, model.n_iter_, len(model.forest_)) == (3, 3, 9)
        raw = model.decision_function(X)
        shares = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(X), shares, rtol=1e-12)

    def test_one_class(self):
        model = GradientBoostingClassifier(max_iter=2).fit(X, np.ones(len(X)))
        assert (model.predict(X) == 1).all()
        np.testing.assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))

    @pytest.mark.parametrize("cuts", [[0], [-1, 1]])
    def test_stages(self, cuts):
        model = GradientBoostingClassifier(max_iter=4).fit(X, np.digitize(NOISY, cuts))
        few = GradientBoostingClassifier(max_iter=2).fit(X, np.digitize(NOISY, cuts))
        for staged, whole in (
            (model.staged_predict, few.predict),
            (model.staged_predict_proba, few.predict_proba),
            (model.staged_decision_function, few.decision_function),
        ):
            stages = list(staged(X))
            assert len(stages) == 4
            np.testing.assert_array_equal(stages[1], whole(X))

    def test_class_weights_are_weights(self):
        few = X.round(1)  # not cut: class weights do not count there
        y = (NOISY > 1).astype(int)
        model = GradientBoostingClassifier(max_iter=3, class_weight={1: 3}).fit(few, y)
        other = GradientBoostingClassifier(max_iter=3).fit(few, y, np.where(y == 1, 3.0, 1.0))
        np.testing.assert_array_equal(model.decision_function(few), other.decision_function(few))


class TestNumbers:
    def test_each_loss_has_its_words(self):
        for loss in NUMBERS:
            assert f'"{loss}"' in GradientBoostingRegressor.__doc__

    def test_a_quantile_is_needed_and_used(self):
        with pytest.raises(ValueError, match="needs the parameter quantile"):
            GradientBoostingRegressor("quantile").fit(X, NOISY)
        model = GradientBoostingRegressor("quantile", quantile=0.9, max_iter=50).fit(X, NOISY)
        assert np.mean(model.predict(X) >= NOISY) == pytest.approx(0.9, abs=0.03)

    @pytest.mark.usefixtures("one_openmp_thread")
    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize("share", [0.1, 0.6])
    def test_a_quantile_that_is_the_largest_or_the_least_target(self, sign, share):
        """scikit-learn's models are constant at the least one."""
        y = np.minimum(NOISY, np.quantile(NOISY, 1 - share))
        plain = {"quantile": 0.95} if share < 0.5 else {"quantile": 0.5}
        turned = {"quantile": 1 - plain["quantile"]} if sign < 0 else plain
        shape = {"max_iter": 50, "l2_regularization": 0}
        model = GradientBoostingRegressor("quantile", **shape, **turned)
        other = HistGradientBoostingRegressor(loss="quantile", max_iter=50, **plain)
        found = sign * model.fit(X[TRAIN], sign * y[TRAIN]).predict(X[TEST])
        expected = other.fit(X[TRAIN], y[TRAIN]).predict(X[TEST])
        assert model._initial[0] == sign * y[TRAIN].max()
        losses = [mean_pinball_loss(y[TEST], each, alpha=plain["quantile"])
                  for each in (found, expected)]  # fmt: skip
        assert losses[0] < 1.03 * losses[1]
        if share > 0.5:
            median = GradientBoostingRegressor("absolute_error", **shape)
            same = sign * median.fit(X[TRAIN], sign * y[TRAIN]).predict(X[TEST])
            assert mean_pinball_loss(y[TEST], same) == pytest.approx(losses[0], rel=0.02)

    def test_huber_where_most_targets_are_equal(self):
        """scikit-learn's model is constant: its width is zero."""
        y = np.maximum(np.nan_to_num(X[:, 0]) - 1.6, 0)
        assert 0.9 < np.mean(y == 0) < 0.97
        assert GradientBoostingRegressor("huber").fit(X, y).score(X, y) > 0.7

    def test_huber_beside_scikit_learns_other_boosting(self):
        y = SIGNAL + 0.2 * RNG.standard_t(1.2, size=len(X))
        X0, shape = np.nan_to_num(X), {"max_leaf_nodes": 8, "min_samples_leaf": 20}
        model = GradientBoostingRegressor("huber", max_iter=30, alpha=0.8, **shape)
        other = FriedmansRegressor(
            loss="huber", alpha=0.8, n_estimators=30, max_depth=None
        ).set_params(**shape)
        errors = [
            np.abs(each.fit(X0[TRAIN], y[TRAIN]).predict(X0[TEST]) - SIGNAL[TEST]).mean()
            for each in (model, other, GradientBoostingRegressor(max_iter=30, **shape))
        ]
        assert errors[0] < 1.05 * errors[1]
        assert errors[0] < errors[2]

    @pytest.mark.parametrize("loss", ["poisson", "gamma"])
    def test_targets_out_of_range(self, loss):
        with pytest.raises(ValueError, match="out of the valid range of the loss"):
            GradientBoostingRegressor(loss).fit(X, -np.exp(NOISY))

    def test_stages(self):
        model = GradientBoostingRegressor("poisson", max_iter=3).fit(X, COUNTS)
        np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
        assert (model.predict(X) > 0).all()
