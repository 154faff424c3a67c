"""What holds for both boosted estimators: threads, weights, order of rows, errors, pickles."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.callbacks import Callback
from dtrees.core.data._cpu import use_wide
from dtrees.estimators import boosting_base
from dtrees.estimators.boosting_base import boost_in_place

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 6)).round(1)
X[RNG.random(X.shape) < 0.1] = np.nan
F = np.nan_to_num(X[:, 0] * X[:, 1]) + np.nan_to_num(X[:, 2])
TARGETS = {
    "log_loss": F > 0,
    "classes": np.digitize(F, [-1, 1]),
    "squared_error": F,
    "absolute_error": F,
    "huber": F,
    "poisson": np.exp(F.round(1)),
    "gamma": np.exp(F),
}


def model_of(name, **parameters):
    parameters = {"max_iter": 4, "min_samples_leaf": 3, **parameters}
    if name in ("log_loss", "classes"):
        return GradientBoostingClassifier(**parameters)
    return GradientBoostingRegressor(name, **parameters)


def assert_same(model, other):
    assert len(model.forest_) == len(other.forest_)
    assert all(a.equals(b) for a, b in zip(model.forest_.trees, other.forest_.trees, strict=True))
    np.testing.assert_array_equal(model._initial, other._initial)


@pytest.mark.parametrize("name", TARGETS)
class TestSameBits:
    def test_for_any_number_of_threads_and_any_registers(self, name):
        y = TARGETS[name]
        model = model_of(name).fit(X, y)
        assert_same(model, model_of(name, n_jobs=2).fit(X, y))
        before = use_wide(False)
        try:
            assert_same(model, model_of(name).fit(X, y))
        finally:
            use_wide(before)

    def test_in_any_order_of_the_rows(self, name):
        order = np.random.default_rng(1).permutation(len(X))
        y = TARGETS[name]
        model, other = model_of(name).fit(X, y), model_of(name).fit(X[order], y[order])
        assert_same(model, other)

    @pytest.mark.parametrize("class_weight", [None, "balanced"])
    def test_in_any_order_of_rows_with_fractional_weights(self, name, class_weight):
        rng = np.random.default_rng(1)
        weight, order = rng.random(len(X)), rng.permutation(len(X))
        model, other = model_of(name), model_of(name)
        if hasattr(model, "class_weight"):
            model.class_weight = other.class_weight = class_weight
        y = np.ceil(2.0 * TARGETS[name]) / 2  # rows of one target differ in weight
        model.fit(X, y, weight)
        assert_same(model, other.fit(X[order], y[order], weight[order]))

    @pytest.mark.parametrize("least", [1e-3, 4.0])
    def test_dense_and_sparse(self, name, least):
        table = np.where(np.abs(np.nan_to_num(X)) < 0.7, 0.0, np.nan_to_num(X))
        y = TARGETS[name]
        model, other = (
            model_of(name, min_child_weight=least).fit(each, y)
            for each in (table, sp.csr_array(table))
        )
        assert_same(model, other)
        np.testing.assert_array_equal(model.predict(table), other.predict(sp.csc_array(table)))

    def test_when_a_column_is_stretched(self, name):
        y = TARGETS[name]
        model, other = model_of(name).fit(X, y), model_of(name).fit(8 * X + 1, y)
        np.testing.assert_array_equal(model.predict(X), other.predict(8 * X + 1))

    def test_pickled(self, name):
        model = model_of(name).fit(X, TARGETS[name])
        again = pickle.loads(pickle.dumps(model))
        assert_same(model, again)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_fewer_iterations_are_the_first_ones(self, name):
        y = TARGETS[name]
        whole, few = model_of(name).fit(X, y), model_of(name, max_iter=2).fit(X, y)
        for tree, other in zip(few.forest_.trees, whole.forest_.trees, strict=False):
            assert tree.equals(other)


@given(st.integers(0, 50), st.sampled_from(["log_loss", "classes", "absolute_error"]))
def test_a_row_of_weight_two_is_a_row_given_twice(seed, name):
    """Where least rows of a leaf do not tell both apart."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, 60)
    weight[:3] = 1
    table, y = X[:60], TARGETS[name][:60]
    rows = np.repeat(np.arange(60), weight)
    model = model_of(name, min_samples_leaf=1, max_iter=2).fit(table, y, weight)
    other = model_of(name, min_samples_leaf=1, max_iter=2).fit(table[rows], y[rows])
    if np.array_equal(np.unique(y), np.unique(y[rows])):
        assert model.predict(table).tobytes() == other.predict(table).tobytes()


@pytest.mark.parametrize("weight", [10.0, 2.0**30, 1e9, 1e15])
@pytest.mark.parametrize("name", ["log_loss", "classes", "squared_error", "poisson"])
def test_a_weight_that_all_rows_have_changes_no_more_than_rounding(name, weight):
    y = TARGETS[name]
    models = [
        model_of(name, min_samples_leaf=20, l2_regularization=0).fit(X, y, given)
        for given in (None, np.full(600, weight))
    ]
    raws = [model._predictor().raw(model.codebook_.check(X)) for model in models]
    np.testing.assert_allclose(raws[1], raws[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("exponent", [-30, -64, -100])
def test_weights_next_to_nothing_are_not_split(exponent):
    """Each side needs a hessian of 0.001, as in scikit-learn."""
    model = model_of("squared_error").fit(X, F, np.full(600, 2.0**exponent))
    assert [tree.node_count for tree in model.forest_.trees] == [1] * 4


@pytest.mark.parametrize("name", ["log_loss", "squared_error", "poisson"])
def test_no_leaf_is_lighter_than_the_least_weight(name):
    few = model_of(name, max_leaf_nodes=None).fit(X, TARGETS[name])
    model = model_of(name, max_leaf_nodes=None, min_child_weight=12.5).fit(X, TARGETS[name])
    assert 1 < model.forest_[0].n_leaves < few.forest_[0].n_leaves
    leaf = model.forest_[0].feature < 0
    rows = model.forest_[0].n_node_samples[leaf]
    if name == "squared_error":  # whose hessians are one
        assert rows.min() == 13
    elif name == "log_loss":  # before the first tree, all shares are one
        share = np.mean(TARGETS[name])
        assert rows.min() * share * (1 - share) >= 12.5
    assert model_of(name, min_child_weight=1e300).fit(X, TARGETS[name]).forest_[0].n_leaves == 1


def test_rows_without_weight_are_not_there():
    keep = RNG.random(600) < 0.5
    model = model_of("squared_error", max_bins=None).fit(X, F, keep.astype(float))
    other = model_of("squared_error", max_bins=None).fit(X[keep], F[keep])
    np.testing.assert_allclose(model.predict(X[keep]), other.predict(X[keep]), rtol=1e-6, atol=1e-7)


def test_importances_are_shares_of_what_splits_gain():
    model = model_of("squared_error", max_iter=30).fit(X, F)
    found = model.feature_importances_
    assert found.sum() == pytest.approx(1)
    assert found[:3].sum() > 0.95
    alone = model_of("squared_error").fit(np.ones((50, 2)), np.arange(50.0))
    np.testing.assert_array_equal(alone.feature_importances_, [0, 0])


def test_categories_and_names():
    pd = pytest.importorskip("pandas")
    labels = np.array(["a", "b", "c", "d"])[RNG.integers(0, 4, 600)]
    table = pd.DataFrame({"x": X[:, 0], "label": pd.Categorical(labels)})
    y = np.isin(labels, ["b", "d"]) + 0.1 * RNG.normal(size=600)
    model = GradientBoostingRegressor().fit(table, y)
    assert model.feature_names_in_.tolist() == ["x", "label"]
    assert model.score(table, y) > 0.9
    assert model.feature_importances_[1] > 0.9


def test_dask_collections_are_fitted_and_predicted():
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(200, -1))
    assert_same(model_of("squared_error").fit(lazy, F), model_of("squared_error").fit(X, F))
    model = model_of("classes").fit(X, TARGETS["classes"])
    for name in ("predict", "predict_proba", "decision_function"):
        method = getattr(model, name)
        np.testing.assert_array_equal(method(lazy).compute(scheduler="sync"), method(X))


class TestCodesThatAreTaken:
    """Large tables give the codes of their columns to the codes by row."""

    @given(
        seed=st.integers(0, 1000),
        n=st.sampled_from([60, 300]),
        n_columns=st.integers(0, 20),
        is_classes=st.booleans(),
        is_wide=st.booleans(),
    )
    def test_the_model_is_the_same(self, seed, n, n_columns, is_classes, is_wide):
        rng = np.random.default_rng(seed)
        kinds = {
            "numbers": lambda: rng.integers(0, 9, n).astype(float),
            "gaps": lambda: np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 3, n)),
            "indicators": lambda: (rng.integers(0, 12, n) == 0).astype(float),
            "categories": lambda: pd.Categorical(rng.choice(list("abcdef"), n)),
        }
        X = pd.DataFrame({f"c{j}": kinds[rng.choice(list(kinds))]() for j in range(n_columns)})
        X["many"] = np.arange(n) / 7
        y = rng.integers(0, 3, n) if is_classes else rng.normal(size=n)
        model = (GradientBoostingClassifier if is_classes else GradientBoostingRegressor)(
            max_iter=3,
            min_samples_leaf=2,
            max_bins=None,
            subsample=float(rng.choice([0.5, 1.0])),
            random_state=0,
            early_stopping=False,
            n_jobs=int(rng.integers(1, 3)),
        )
        weight = rng.integers(0, 3, n) if rng.random() < 0.5 else None
        kept = clone(model).fit(X, y, weight)
        before = use_wide(is_wide)
        try:
            assert self.taken(model, X, y, weight) == [True]
        finally:
            use_wide(before)
        assert_same(model, kept)
        np.testing.assert_array_equal(model._saw_missing, kept._saw_missing)

    @pytest.mark.parametrize("fraction", [0.3, None])
    def test_rows_that_are_scored_keep_theirs(self, fraction):
        model = model_of("squared_error", early_stopping=True, validation_fraction=fraction)
        assert self.taken(model, X, F) == [False]

    def test_rows_that_are_given_to_be_scored(self):
        model = model_of("squared_error")
        kept = clone(model).fit(X, F, X_val=X[:50], y_val=F[:50])
        assert self.taken(model, X, F, X_val=X[:50], y_val=F[:50]) == [True]
        np.testing.assert_array_equal(model.validation_score_, kept.validation_score_)

    def test_more_iterations_and_who_hears_of_them(self):
        scores = []

        class Hears(Callback):
            def on_iteration_end(self, fit, number):
                scores.append(fit.training_score())

        whole = model_of("squared_error").fit(X, F, callbacks=[Hears()])
        model = model_of("squared_error", max_iter=2, warm_start=True)
        assert self.taken(model, X, F, callbacks=[Hears()]) == [True]
        assert self.taken(model.set_params(max_iter=4), X, F, callbacks=[Hears()]) == [True]
        assert_same(model, whole)
        assert scores[:4] == scores[4:]

    @staticmethod
    def taken(model, *given, **named):
        """Fit, as if the table were large; whether its codes were taken."""
        found = []

        def boost(work, *others):
            trees = boost_in_place(work, *others)
            found.append(work.rows.coded.u8.shape[1] == 0)
            return trees

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boosting_base, "TAKEN_BYTES", 0)
            patch.setattr(boosting_base, "boost_in_place", boost)
            model.fit(*given, **named)
        return found


class TestErrors:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"max_iter": 0}, "'max_iter' parameter"),
            ({"learning_rate": 0.0}, "'learning_rate' parameter"),
            ({"max_leaf_nodes": 1}, "'max_leaf_nodes' parameter"),
            ({"min_child_weight": -1.0}, "'min_child_weight' parameter"),
            ({"l2_regularization": -1.0}, "'l2_regularization' parameter"),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            model_of("squared_error", **parameters).fit(X, F)

    def test_leave_the_estimator_as_it_was(self):
        model = model_of("poisson").fit(X, TARGETS["poisson"])
        before = dict(vars(model))
        with pytest.raises(ValueError, match="valid range"):
            model.fit(X, -TARGETS["poisson"])
        assert vars(model) == before

    def test_not_fitted(self):
        for ask in ("predict", "staged_predict"):
            with pytest.raises(NotFittedError):
                list(getattr(model_of("squared_error"), ask)(X))
        with pytest.raises(NotFittedError):
            _ = clone(model_of("squared_error")).feature_importances_
