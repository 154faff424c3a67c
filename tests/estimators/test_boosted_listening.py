"""Callbacks of boosted models, their bar, and fits that go on where the last one ended."""

import logging
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.callbacks import BoostingFit, Callback
from tests.core.grow.boosted_cases import random_columns, table_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4)).round(1)
X[RNG.random(X.shape) < 0.1] = np.nan
SIGNAL = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2
NOISY = SIGNAL + RNG.normal(size=len(X))
EARLY = {"early_stopping": True, "min_samples_leaf": 5, "max_leaf_nodes": 6, "n_iter_no_change": 4}


def assert_same(model, other):
    assert len(model.forest_) == len(other.forest_)
    assert all(a.equals(b) for a, b in zip(model.forest_.trees, other.forest_.trees, strict=True))
    assert model.validation_score_.tobytes() == other.validation_score_.tobytes()
    assert model.train_score_.tobytes() == other.train_score_.tobytes()


def of_loss(loss, **parameters):
    if loss == "log_loss":
        return GradientBoostingClassifier(random_state=1, **parameters)
    return GradientBoostingRegressor(loss, random_state=1, **parameters)


class Listener(Callback):
    """Writes down what it hears; stops at an iteration, or raises there."""

    def __init__(self, stop=None, fail=None):
        self.stop, self.fail = stop, fail
        self.heard, self.threads, self.scores = [], set(), []

    def on_fit_begin(self, fit):
        assert isinstance(fit, BoostingFit)
        self.fit, self.was_fitted = fit, hasattr(fit.estimator, "forest_")
        self.scores.append(fit.training_score())

    def on_tree_end(self, fit, number):
        raise AssertionError("a boosted model has iterations")

    def on_iteration_end(self, fit, number):
        assert len(fit.trees) == (number + 1) * fit.n_values
        assert fit.n_grown == number + 1 - fit.numbers.start
        self.heard.append(number)
        self.threads.add(threading.get_ident())
        self.scores.append(fit.training_score())
        if number == self.fail:
            raise ZeroDivisionError
        return number == self.stop

    def on_fit_end(self, fit):
        self.error, self.is_fitted = fit.error, hasattr(fit.estimator, "forest_")


class TestCallbacks:
    @pytest.mark.parametrize("n_jobs", [1, 3])
    @pytest.mark.parametrize("cuts", [[1], [0, 2]])
    def test_iterations_in_order_in_the_calling_thread(self, n_jobs, cuts):
        listener, y = Listener(), np.digitize(NOISY, cuts)
        model = GradientBoostingClassifier(max_iter=5, n_jobs=n_jobs)
        model.fit(X, y, callbacks=[listener])
        assert listener.heard == [0, 1, 2, 3, 4]
        assert listener.threads == {threading.get_ident()}
        assert (listener.was_fitted, listener.is_fitted, listener.error) == (False, True, None)
        assert_same(model, GradientBoostingClassifier(max_iter=5).fit(X, y))

    @pytest.mark.parametrize("weighted", [False, True])
    def test_training_scores_are_those_of_the_stages(self, weighted):
        weight = RNG.integers(1, 4, len(X)).astype(float) if weighted else None
        listener = Listener()
        model = GradientBoostingRegressor(max_iter=4).fit(X, NOISY, weight, callbacks=[listener])
        found = [np.average((NOISY - f) ** 2, weights=weight) / 2 for f in model.staged_predict(X)]
        np.testing.assert_allclose(listener.scores[1:], [-loss for loss in found], rtol=1e-9)
        mean = np.average(NOISY, weights=weight)
        begins = np.average((NOISY - mean) ** 2, weights=weight) / 2
        assert listener.scores[0] == pytest.approx(-begins, rel=1e-6)

    def test_held_out_scores(self):
        found = []

        class Scores(Callback):
            def on_iteration_end(self, fit, number):
                found.append(list(fit.scores))

        model = GradientBoostingRegressor(random_state=0, use_best_model=False, **EARLY)
        model.fit(X, NOISY, callbacks=[Scores()])
        assert [len(scores) for scores in found] == list(range(2, model.n_iter_ + 2))
        assert found[-1] == model.validation_score_.tolist()

    def test_one_of_several_stops_and_all_hear(self):
        first, second = Listener(stop=2), Listener()
        model = GradientBoostingRegressor(max_iter=9).fit(X, NOISY, callbacks=[first, second])
        assert first.heard == second.heard == [0, 1, 2]
        assert_same(model, GradientBoostingRegressor(max_iter=3).fit(X, NOISY))

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_what_fails_leaves_the_model_as_it_was(self, n_jobs):
        model = GradientBoostingRegressor(max_iter=3, n_jobs=n_jobs).fit(X, NOISY)
        before, listener = dict(vars(model)), Listener(fail=1)
        with pytest.raises(ZeroDivisionError):
            model.fit(X, NOISY, callbacks=[listener])
        assert vars(model) == before
        assert isinstance(listener.error, ZeroDivisionError)

    def test_an_end_that_fails(self):
        class Fails(Callback):
            def on_fit_end(self, fit):
                raise ZeroDivisionError

        model = GradientBoostingRegressor(max_iter=3)
        with pytest.raises(ZeroDivisionError):
            model.fit(X, NOISY, callbacks=[Fails()])
        assert not hasattr(model, "forest_")

    def test_what_is_no_callback(self):
        with pytest.raises(TypeError, match="callbacks must be"):
            GradientBoostingRegressor().fit(X, NOISY, callbacks=[Listener])

    def test_a_bar_counts_iterations(self, monkeypatch, caplog):
        monkeypatch.setattr("dtrees.callbacks.find_spec", lambda name: None)
        with caplog.at_level(logging.INFO, "dtrees.callbacks"):
            GradientBoostingRegressor(max_iter=20, verbose=1, random_state=0, **EARLY).fit(X, NOISY)
        assert "2 of 20 trees grown score -" in caplog.text


class TestWarmStart:
    @given(
        seed=st.integers(0, 100),
        loss=st.sampled_from(["log_loss", "squared_error", "absolute_error", "huber", "poisson"]),
        early=st.booleans(),
        apart=st.booleans(),
        weighted=st.booleans(),
        sparse=st.booleans(),
        subsample=st.sampled_from([1.0, 0.6]),
    )
    def test_the_model_is_the_one_of_a_single_fit(
        self, seed, loss, early, apart, weighted, sparse, subsample
    ):
        pytest.importorskip("pandas")
        rng = np.random.default_rng(seed)
        columns = random_columns(rng, 60, 3, ("numbers",) if sparse else ("missing", "categories"))
        table = sp.csr_array(np.array(columns, dtype=float).T) if sparse else table_of(columns)
        y = np.arange(60) % 3 if loss == "log_loss" else rng.integers(0, 9, 60).astype(float)
        weight = rng.integers(0, 3, 60).astype(float) if weighted else None
        how = {
            "early_stopping": early,
            "n_iter_no_change": 2,
            "min_samples_leaf": 3,
            "subsample": subsample,
            "validation_fraction": 0.2 if apart else None,
        }
        model = of_loss(loss, max_iter=2, warm_start=True, **how).fit(table, y, weight)
        few = model.forest_.trees
        model.set_params(max_iter=5).fit(table, y, weight)
        whole = of_loss(loss, max_iter=5, **how).fit(table, y, weight)
        assert_same(model, whole)
        assert all(a is b for a, b in zip(few, model.forest_.trees, strict=False))
        np.testing.assert_array_equal(model.predict(table), whole.predict(table))

    def test_a_fit_that_has_stopped_early_stays(self):
        model = of_loss("squared_error", warm_start=True, **EARLY).fit(X, NOISY)
        before = model.n_iter_
        assert before < 100
        assert_same(model, of_loss("squared_error", **EARLY).fit(X, NOISY))
        trees = model.forest_.trees
        model.set_params(max_iter=200).fit(X, NOISY)
        assert all(a.equals(b) for a, b in zip(model.forest_.trees, trees, strict=True))
        model.set_params(n_iter_no_change=1000).fit(X, NOISY)
        assert len(model.validation_score_) == 201

    def test_early_stopping_that_comes_later_knows_all_scores(self):
        model = of_loss("squared_error", max_iter=3, warm_start=True, early_stopping=False)
        model.fit(X, NOISY)
        assert model.validation_score_.size == 0
        model.set_params(max_iter=6, early_stopping=True).fit(X, NOISY)
        assert len(model.validation_score_) == 7

    def test_callbacks_hear_of_what_is_added(self):
        listener = Listener()
        model = of_loss("squared_error", max_iter=3, warm_start=True).fit(X, NOISY)
        model.set_params(max_iter=5).fit(X, NOISY, callbacks=[listener])
        assert (listener.heard, listener.fit.numbers) == ([3, 4], range(3, 5))
        again = Listener()
        model.fit(X, NOISY, callbacks=[again])
        assert (again.heard, len(again.fit.numbers)) == ([], 0)
        assert again.scores[0] == listener.scores[-1]

    def test_rows_and_learning_rate_may_be_others(self):
        model = of_loss("squared_error", max_iter=3, warm_start=True).fit(X, NOISY)
        trees = model.forest_.trees
        model.set_params(max_iter=5, learning_rate=0.5).fit(X[::2], NOISY[::2])
        assert model.forest_.trees[:3] == trees
        assert model.n_iter_ == 5

    def test_what_cannot_go_on(self):
        y = np.digitize(NOISY, [0])
        model = of_loss("log_loss", max_iter=3, warm_start=True).fit(X, y)
        for table, target, message in (
            (X[:, :3], y, "columns and categories"),
            (X, y + 1, "its classes"),
        ):
            with pytest.raises(ValueError, match=message):
                model.fit(table, target)
        with pytest.raises(ValueError, match=r"max_iter=2 must be larger than or equal to n_iter_"):
            model.set_params(max_iter=2).fit(X, y)
        other = of_loss("squared_error", max_iter=3, warm_start=True).fit(X, NOISY)
        with pytest.raises(ValueError, match="the loss must be that of the first"):
            other.set_params(loss="absolute_error").fit(X, NOISY)
