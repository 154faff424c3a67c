"""A boosted model is the sum of its trees, and a file of it holds what it knows."""

import pickle
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor as FriedmansRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, mean_pinball_loss, mean_poisson_deviance, mean_squared_error

import dtrees
from dtrees import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    losses,
)
from dtrees.callbacks import Callback
from dtrees.core.grow import boosting as core
from dtrees.core.losses.losses import CLASSES, NUMBERS, Loss
from dtrees.estimators import boosting
from dtrees.estimators.boosting import loss_of, said_of
from dtrees.export import load, save
from tests.registers import wide_registers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).round(1)
F = X[:, 0] + X[:, 1] ** 2
MODELS = {
    "two classes": (GradientBoostingClassifier(max_iter=4), F > 1),
    "three classes": (GradientBoostingClassifier(max_iter=4), np.digitize(F, [0, 1])),
    "one class": (GradientBoostingClassifier(max_iter=2), np.full(200, "a")),
    "numbers": (GradientBoostingRegressor(max_iter=4, early_stopping=True), F),
    "quantile": (GradientBoostingRegressor("quantile", quantile=0.3, max_iter=4), F),
    "gamma": (GradientBoostingRegressor("gamma", max_iter=4), np.exp(F)),
    "tweedie": (GradientBoostingRegressor("tweedie", power=1.2, max_iter=4), np.exp(F)),
}
OUTPUTS = {
    "each": (GradientBoostingRegressor("huber", max_iter=4, early_stopping=True), np.c_[F, -F]),
    "joint": (GradientBoostingRegressor(max_iter=4, multi_strategy="multi_output_tree"), X),
    "classes": (GradientBoostingClassifier(max_iter=4), np.c_[F > 1, np.digitize(F, [0, 1])]),
}


class Half(losses.Loss):
    """A loss of one's own."""

    def gradient_and_hessian(self, y, raw):
        return (raw - y) / 2, np.full(len(y), 0.5)


def fitted(name):
    model, y = (MODELS | OUTPUTS)[name]
    return model.fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_raw_predictions_are_the_sum_of_the_estimators(name):
    model = fitted(name)
    assert model.estimators_.shape == (model.n_iter_, model.n_trees_per_iteration_)
    raw = model._predictor().raw(model.codebook_.check(X))
    total = np.repeat(model._initial[None, :], len(X), axis=0)
    for iteration in model.estimators_:
        for k, tree in enumerate(iteration):
            total[:, k] += tree.predict(X)
    np.testing.assert_array_equal(total, raw)


def test_scikit_learns_names_are_other_names_of_the_same_classes():
    assert dtrees.HistGradientBoostingClassifier is GradientBoostingClassifier
    assert dtrees.HistGradientBoostingRegressor is GradientBoostingRegressor
    model = dtrees.HistGradientBoostingRegressor(max_iter=2).fit(X, F)
    again = pickle.loads(pickle.dumps(clone(model).fit(X, F)))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["numbers", "quantile", "gamma", "tweedie"])
def test_raw_predictions_of_numbers_are_those_of_the_link(name):
    model, begin = fitted(name), np.linspace(-1, 1, len(X))
    raw = model.predict_raw(X)
    np.testing.assert_array_equal(raw, model._predictor().raw(model.codebook_.check(X))[:, 0])
    link = np.log if name in ("gamma", "tweedie") else np.asarray
    np.testing.assert_allclose(raw, link(model.predict(X)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.predict_raw(X, begin), raw + begin, rtol=0, atol=1e-12)


def test_raw_predictions_of_several_numbers_are_side_by_side():
    targets = np.exp(np.column_stack([F, -F]))
    model = GradientBoostingRegressor("poisson", max_iter=3).fit(X, targets)
    each = [GradientBoostingRegressor("poisson", max_iter=3).fit(X, y) for y in targets.T]
    expected = np.column_stack([one.predict_raw(X) for one in each])
    np.testing.assert_array_equal(model.predict_raw(X), expected)
    lazy = model.predict_raw(da.from_array(X, chunks=(70, 3)))
    np.testing.assert_array_equal(lazy.compute(), expected)


def test_the_trees_know_which_columns_had_missing_values():
    table = pd.DataFrame(X, columns=list("abc"))
    assert not GradientBoostingRegressor(max_iter=3).fit(table, F)._saw_missing.any()
    table.loc[::5, "a"] = np.nan
    table["c"] = np.nan
    model = GradientBoostingRegressor(max_iter=3).fit(table, F)
    assert model._saw_missing.tolist() == [True, False, False]  # c is not tested


@pytest.mark.parametrize("name", [*MODELS, *OUTPUTS])
def test_parts_that_do_not_fit_each_other_are_refused(name):
    model = fitted(name)
    parts = model._parts()
    n_values, n_trees = len(model._initial), model.n_trees_per_iteration_

    def refused(match, trees=parts.trees, **attributes):
        changed = replace(parts, trees=trees, attributes={**parts.attributes, **attributes})
        with pytest.raises(ValueError, match=match):
            model._check_parts(changed)

    model._check_parts(parts)
    refused("_initial is not finite", _initial=model._initial * np.nan)
    refused(f"are not {n_values} of each", _initial=np.zeros(n_values + 1))
    refused(f"are not {n_values} of each", n_trees_per_iteration_=n_trees + 1)
    few = np.zeros(model.n_iter_)  # there is one of no iteration, too
    refused("train_score_ has no score for some", train_score_=few)
    refused("validation_score_ has no score for some", validation_score_=few)
    if n_trees > 1:
        refused("not all of its trees", trees=parts.trees[:-1])
    if name in OUTPUTS:
        said = parts.attributes["_fit_loss"]
        for changed in ([], [1], [1, 0], [1.0, 1.0], 2, [n_values, n_values]):
            refused("_fit_loss|of each", _fit_loss=said | {"n_values": changed})
    if name == "joint":
        refused("not all of its trees", trees=tuple(tree.of_output(0) for tree in parts.trees),
                n_trees_per_iteration_=n_values)  # fmt: skip
    poisson = tuple(replace(tree, criterion="poisson") for tree in parts.trees)
    refused("not those of a boosted model", trees=poisson)
    refused("_fit_loss is", _fit_loss={"name": "hinge", "level": None})


@pytest.mark.parametrize("losses", [CLASSES, NUMBERS])
def test_a_loss_is_said_and_found_again(losses):
    for name, loss in losses.items():
        said = said_of(loss, "Model")
        assert loss_of(said, losses) == loss
        for wrong in (
            {**said, "level": 2.0 if name in ("quantile", "huber") else 0.123456},
            {**said, "level": 1},
            {**said, "level": float("nan")},
            {**said, "name": [name]},
            {**said, "more": 1},
            {"name": name},
            {},
        ):
            with pytest.raises(ValueError, match="_fit_loss"):
                loss_of(wrong, losses)
    quantile = replace(NUMBERS["quantile"], level=0.9)
    assert loss_of(said_of(quantile, "Model"), NUMBERS) == quantile
    tweedie = replace(NUMBERS["tweedie"], power=1.9)
    assert loss_of(said_of(tweedie, "Model"), NUMBERS) == tweedie != NUMBERS["tweedie"]
    with pytest.raises(ValueError, match="_fit_loss"):
        loss_of(said_of(quantile, "Model"), CLASSES)
    for name in ("quantile", "huber", "tweedie"):
        with pytest.raises(ValueError, match="_fit_loss has the level None"):
            loss_of({"name": name, "level": None}, NUMBERS)


def test_a_loss_of_ones_own_is_in_no_file():
    class Own(Loss):
        pass

    with pytest.raises(TypeError, match=r"The loss of this Model .* class log_loss, which is code"):
        said_of(Own("log_loss"), "Model")
    with pytest.raises(
        TypeError, match="GradientBoostingRegressor is an object of the class Half,"
    ):
        GradientBoostingRegressor(Half(), max_iter=2).fit(X, F)._parts()


def test_a_fitted_model_does_not_keep_the_values_of_its_table():
    """Trees have their thresholds; a book of all values would be as large as the table."""
    wide = RNG.normal(size=(3000, 20))
    model = GradientBoostingRegressor(max_iter=2, max_bins=None).fit(wide, wide[:, 0])
    assert model.codebook_.low.nbytes == 0
    assert len(pickle.dumps(model)) < 20_000
    assert model.score(wide, wide[:, 0]) > 0.2


RNG = np.random.default_rng(0)
SMALL = RNG.normal(size=(120, 3))
Y = SMALL[:, 0] + RNG.normal(size=120)


def test_stages_check_the_table_before_the_first():
    model = GradientBoostingRegressor(max_iter=2).fit(SMALL, Y)
    with pytest.raises(ValueError, match="3 features"):
        model.staged_predict(SMALL[:, :2])


RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(600, 6)).round(1)
TABLE[RNG.random(TABLE.shape) < 0.1] = np.nan
FORM = np.nan_to_num(TABLE[:, 0] * TABLE[:, 1]) + np.nan_to_num(TABLE[:, 2])
TARGETS = {
    "log_loss": FORM > 0,
    "classes": np.digitize(FORM, [-1, 1]),
    "squared_error": FORM,
    "absolute_error": FORM,
    "huber": FORM,
    "poisson": np.exp(FORM.round(1)),
    "gamma": np.exp(FORM),
    "tweedie": np.exp(FORM.round(1)) * (FORM > -0.5),
    "regularized": FORM,
}
REGULARIZED = {"l1_regularization": 1.0, "max_delta_step": 1.5, "path_smooth": 4.0}
REGULARIZED |= {"min_split_gain": 0.5, "colsample_bytree": 0.7, "random_state": 0}


def model_of(name, **parameters):
    parameters = {"max_iter": 4, "min_samples_leaf": 3, **parameters}
    if name == "regularized":
        return GradientBoostingRegressor(**REGULARIZED | parameters)
    if name in ("log_loss", "classes"):
        return GradientBoostingClassifier(**parameters)
    return GradientBoostingRegressor(name, **parameters)


def assert_same(model, other):
    assert len(model.forest_) == len(other.forest_)
    assert all(a.equals(b) for a, b in zip(model.forest_.trees, other.forest_.trees, strict=True))
    np.testing.assert_array_equal(model._initial, other._initial)


PENALTIES = ("min_split_gain", "l2_regularization", "l1_regularization", "max_delta_step")
PENALTIES = (*PENALTIES, "path_smooth")


@pytest.mark.parametrize("name", TARGETS)
class TestSameBits:
    def test_for_any_number_of_threads_and_any_registers(self, name):
        y = TARGETS[name]
        model = model_of(name).fit(TABLE, y)
        assert_same(model, model_of(name, n_jobs=2).fit(TABLE, y))
        with wide_registers(False):
            assert_same(model, model_of(name).fit(TABLE, y))

    def test_in_any_order_of_the_rows(self, name):
        order = np.random.default_rng(1).permutation(len(TABLE))
        y = TARGETS[name]
        model, other = (model_of(name).fit(TABLE, y), model_of(name).fit(TABLE[order], y[order]))
        assert_same(model, other)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("class_weight", [None, "balanced"])
    def test_in_any_order_of_rows_with_fractional_weights(self, name, class_weight):
        rng = np.random.default_rng(1)
        weight, order = (rng.random(len(TABLE)), rng.permutation(len(TABLE)))
        model, other = model_of(name), model_of(name)
        if "class_weight" in model.get_params():
            model.class_weight = other.class_weight = class_weight
        y = np.ceil(2.0 * TARGETS[name]) / 2  # rows of one target differ in weight
        model.fit(TABLE, y, weight)
        assert_same(model, other.fit(TABLE[order], y[order], weight[order]))

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("least", [1e-3, 4.0])
    def test_dense_and_sparse(self, name, least):
        table = np.where(np.abs(np.nan_to_num(TABLE)) < 0.7, 0.0, np.nan_to_num(TABLE))
        y = TARGETS[name]
        model, other = (
            model_of(name, min_child_weight=least).fit(each, y)
            for each in (table, sp.csr_array(table))
        )
        assert_same(model, other)
        np.testing.assert_array_equal(model.predict(table), other.predict(sp.csc_array(table)))

    def test_when_a_column_is_stretched(self, name):
        y = TARGETS[name]
        model, other = (model_of(name).fit(TABLE, y), model_of(name).fit(8 * TABLE + 1, y))
        np.testing.assert_array_equal(model.predict(TABLE), other.predict(8 * TABLE + 1))

    def test_pickled(self, name):
        model = model_of(name).fit(TABLE, TARGETS[name])
        again = pickle.loads(pickle.dumps(model))
        assert_same(model, again)
        np.testing.assert_array_equal(again.predict(TABLE), model.predict(TABLE))

    def test_fewer_iterations_are_the_first_ones(self, name):
        y = TARGETS[name]
        whole, few = (model_of(name).fit(TABLE, y), model_of(name, max_iter=2).fit(TABLE, y))
        for tree, other in zip(few.forest_.trees, whole.forest_.trees, strict=False):
            assert tree.equals(other)


@given(
    st.integers(0, 50),
    st.sampled_from(["log_loss", "classes", "absolute_error", "tweedie", "regularized"]),
)
def test_a_row_of_weight_two_is_a_row_given_twice(seed, name):
    """Where least rows of a leaf do not tell both apart."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, 60)
    weight[:3] = 1
    table, y = TABLE[:60], TARGETS[name][:60]
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
        model_of(name, min_samples_leaf=20, l2_regularization=0).fit(TABLE, y, given)
        for given in (None, np.full(600, weight))
    ]
    raws = [model._predictor().raw(model.codebook_.check(TABLE)) for model in models]
    np.testing.assert_allclose(raws[1], raws[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("exponent", [-30, -64, -100])
def test_weights_next_to_nothing_are_not_split(exponent):
    """Each side needs a hessian of 0.001, as in scikit-learn."""
    model = model_of("squared_error").fit(TABLE, FORM, np.full(600, 2.0**exponent))
    assert [tree.node_count for tree in model.forest_.trees] == [1] * 4


@pytest.mark.parametrize("name", ["log_loss", "squared_error", "poisson"])
def test_no_leaf_is_lighter_than_the_least_weight(name):
    few = model_of(name, max_leaf_nodes=None).fit(TABLE, TARGETS[name])
    model = model_of(name, max_leaf_nodes=None, min_child_weight=12.5).fit(TABLE, TARGETS[name])
    assert 1 < model.forest_[0].n_leaves < few.forest_[0].n_leaves
    leaf = model.forest_[0].feature < 0
    rows = model.forest_[0].n_node_samples[leaf]
    if name == "squared_error":  # whose hessians are one
        assert rows.min() == 13
    elif name == "log_loss":  # before the first tree, all shares are one
        share = np.mean(TARGETS[name])
        assert rows.min() * share * (1 - share) >= 12.5
    assert model_of(name, min_child_weight=1e300).fit(TABLE, TARGETS[name]).forest_[0].n_leaves == 1


class TestLimitsOfTreesAndSteps:
    """Parameters of LightGBM and XGBoost, by their laws."""

    @pytest.mark.parametrize("name", ["log_loss", "classes", "squared_error", "tweedie"])
    def test_a_limit_that_nothing_passes_leaves_the_root(self, name):
        for limit in ("min_split_gain", "l1_regularization"):
            model = model_of(name, **{limit: 1e9}).fit(TABLE, TARGETS[name])
            assert {tree.node_count for tree in model.forest_.trees} == {1}
        assert not any(tree.value.any() for tree in model.forest_.trees)  # of l1

    @pytest.mark.parametrize("name", ["log_loss", "squared_error", "absolute_error", "gamma"])
    def test_splits_gain_more_than_the_least_gain(self, name):
        sizes = []
        for least in (0.0, 1.0, 8.0, 64.0):
            model = model_of(name, min_split_gain=least, max_iter=1).fit(TABLE, TARGETS[name])
            (tree,) = model.forest_.trees
            assert (tree.gain[tree.feature >= 0] > least).all()
            sizes.append(tree.node_count)
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] < sizes[0]

    @pytest.mark.parametrize("name", TARGETS)
    def test_no_step_is_larger_than_the_largest(self, name):
        model = model_of(name, max_delta_step=0.3).fit(TABLE, TARGETS[name])
        free = model_of(name, max_delta_step=0.0).fit(TABLE, TARGETS[name])
        largest, other = (
            max(np.abs(tree.value[tree.feature < 0]).max() for tree in each.forest_.trees)
            for each in (model, free)
        )
        assert largest <= 0.03 * (1 + 1e-9) < other

    def test_a_limit_beyond_all_steps_changes_nothing(self):
        for name in ("squared_error", "classes", "huber"):
            free, model = (
                model_of(name, max_delta_step=most).fit(TABLE, TARGETS[name]) for most in (0, 1e9)
            )
            np.testing.assert_array_equal(model.predict(TABLE), free.predict(TABLE))

    @pytest.mark.parametrize("name", ["squared_error", "absolute_error"])
    def test_a_smoothed_step_is_a_mean_with_that_of_the_node_above(self, name):
        shape = {"max_leaf_nodes": 2, "max_iter": 1, "l2_regularization": 0.0}
        model = model_of(name, path_smooth=30.0, learning_rate=1.0, **shape).fit(TABLE, FORM)
        centre = np.mean if name == "squared_error" else np.median
        left_over = FORM - model._initial[0]
        above = centre(left_over)
        step = model.predict(TABLE) - model._initial[0]
        assert len(np.unique(step)) == 2
        for each in np.unique(step):
            rows = step == each
            n = rows.sum()
            wanted = (n * centre(left_over[rows]) + 30 * above) / (n + 30)
            assert each == pytest.approx(wanted, abs=1e-6)

    @pytest.mark.parametrize("name", ["squared_error", "log_loss", "quantile"])
    def test_a_node_above_that_counts_for_all_rows_leaves_no_steps(self, name):
        y = FORM if name == "quantile" else TARGETS[name]
        own = {"quantile": 0.7} if name == "quantile" else {}
        model = model_of(name, path_smooth=1e12, **own).fit(TABLE, y)
        assert max(np.abs(tree.value).max() for tree in model.forest_.trees) < 1e-6

    def test_a_tree_tests_its_share_of_the_columns(self):
        used = [
            set(tree.feature[tree.feature >= 0].tolist())
            for tree in model_of("regularized", colsample_bytree=0.4, max_iter=20)
            .fit(TABLE, FORM)
            .forest_.trees
        ]
        assert max(map(len, used)) <= 3  # of six, rounded up
        assert len(set(map(frozenset, used))) > 3
        assert set().union(*used) == set(range(6))

    def test_nodes_draw_from_the_columns_of_their_tree(self):
        model = model_of(
            "squared_error", colsample_bytree=0.5, max_features=0.5, max_leaf_nodes=None
        ).fit(TABLE, FORM)
        for tree in model.forest_.trees:
            assert len(set(tree.feature[tree.feature >= 0].tolist())) <= 3

    @pytest.mark.parametrize(
        ("drawn", "share", "of_tree"),
        [
            *(("sqrt", 0.3, 1.0), ("log2", 0.3, 1.0), (2, 0.3, 1.0), (1, 0.1, 1.0), (5, 0.8, 1.0)),
            *((6, 1.0, 1.0), (99, 1.0, 1.0), (None, 1.0, 1.0), (None, 1.0, 0.5), (2, 0.6, 0.5)),
        ],
    )
    def test_columns_of_a_node_are_drawn_by_number_or_by_share(self, drawn, share, of_tree):
        own = {"colsample_bytree": of_tree, "random_state": 0}
        numbered, shared = (
            model_of("squared_error", max_features=each, **own).fit(TABLE, FORM)
            for each in (drawn, share)
        )
        assert_same(numbered, shared)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("kind", ["forest", "boosting"])
    @pytest.mark.parametrize("draws", [{"max_features": 1}, {"colsample_bytree": 0.1}])
    def test_a_heavy_column_is_drawn_more_often(self, kind, draws):
        model = model_of("squared_error", max_iter=60, random_state=0, **draws)
        if kind == "forest":
            draws = {"max_features": None} | draws
            model = RandomForestRegressor(60, max_depth=3, random_state=0, **draws)

        def tests_of(weights):
            trees = model.set_params(feature_weights=weights).fit(TABLE, FORM).forest_.trees
            tested = np.concatenate([tree.feature[tree.feature >= 0] for tree in trees])
            return np.bincount(tested, minlength=6) / len(tested)

        plain, heavy = tests_of(None), tests_of([0.1, 0.1, 0.1, 0.1, 0.1, 2.0])
        np.testing.assert_array_equal(tests_of([3.0] * 6), plain)
        assert heavy[5] > 0.6 > 0.4 > plain[5]

    def test_all_columns_of_a_tree_are_all_columns(self):
        own = {"max_features": 0.5, "random_state": 0}
        assert_same(
            model_of("squared_error", **own).fit(TABLE, FORM),
            model_of("squared_error", colsample_bytree=1, **own).fit(TABLE, FORM),
        )

    def test_values_rise_where_they_have_to(self):
        rules = {"monotonic_cst": [1, 0, 0, 0, 0, 0], "max_leaf_nodes": None, "max_iter": 30}
        model = model_of("regularized", **rules).fit(TABLE, FORM)
        rows = np.repeat(TABLE[:40], 30, axis=0)
        rows[:, 0] = np.tile(np.linspace(-3, 3, 30), 40)
        assert (np.diff(model.predict(rows).reshape(40, 30), axis=1) >= 0).all()
        assert np.ptp(model.predict(rows)) > 0

    def test_iterations_that_are_added_are_those_of_one_fit(self):
        whole = model_of("regularized", random_state=1).fit(TABLE, FORM)
        model = model_of("regularized", max_iter=2, warm_start=True, random_state=1)
        assert_same(whole, model.fit(TABLE, FORM).set_params(max_iter=4).fit(TABLE, FORM))


class TestAsLightGBM:
    """Both grow the same trees of one column.

    Of several, LightGBM leaves out columns that could not split the node above. With smoothing,
    it takes a greater loss of each node for granted, and so splits fewer.
    """

    @pytest.mark.parametrize(
        ("loss", "own"),
        [
            *((loss, {}) for loss in ("squared_error", "log_loss", "tweedie")),
            *((loss, {"min_split_gain": 6.0}) for loss in ("squared_error", "log_loss")),
            *((loss, {"l1_regularization": 1.5}) for loss in ("squared_error", "log_loss")),
            *((loss, {"max_delta_step": 0.25}) for loss in ("squared_error", "log_loss")),
            ("squared_error", {"path_smooth": 6.0}),
            ("tweedie", {"power": 1.2}),
        ],
    )
    @pytest.mark.parametrize("seed", range(2))
    def test_predictions_are_equal(self, loss, own, seed):
        lightgbm = pytest.importorskip("lightgbm")
        rng = np.random.default_rng(seed)
        rows = rng.integers(-40, 40, (60, 1)).astype(float)
        y = np.rint(64 * rng.normal(rows[:, 0] / 20, 1)) / 64
        y = {"log_loss": y > 0, "tweedie": np.rint(np.exp(y))}.get(loss, y)
        n_iter = 1 if "min_split_gain" in own else 4  # LightGBM ends where it splits nothing
        ours = {"max_iter": n_iter, "max_depth": 2, "learning_rate": 0.5, "l2_regularization": 0.5}
        ours |= {"min_samples_leaf": 1, "min_child_weight": 3.0}  # its counts are estimates
        model = model_of(loss, **ours | own)
        names = {"l1_regularization": "reg_alpha", "power": "tweedie_variance_power"}
        theirs = {"max_depth": 2, "min_data_in_leaf": 1, "learning_rate": 0.5, "reg_lambda": 0.5}
        theirs |= {"min_sum_hessian_in_leaf": 3.0, "min_data_in_bin": 1, "num_threads": 1}
        theirs |= {names.get(name, name): value for name, value in own.items()}
        theirs |= {"objective": {"squared_error": "l2", "log_loss": "binary"}.get(loss, loss)}
        table = lightgbm.Dataset(rows, y.astype(float))
        other = lightgbm.train({"verbosity": -1, **theirs}, table, n_iter)
        model.fit(rows, y)
        found = model.predict_proba(rows)[:, 1] if loss == "log_loss" else model.predict(rows)
        np.testing.assert_allclose(found, other.predict(rows), rtol=1e-5, atol=1e-6)


def test_rows_without_weight_are_not_there():
    keep = RNG.random(600) < 0.5
    model = model_of("squared_error", max_bins=None).fit(TABLE, FORM, keep.astype(float))
    other = model_of("squared_error", max_bins=None).fit(TABLE[keep], FORM[keep])
    np.testing.assert_allclose(
        model.predict(TABLE[keep]), other.predict(TABLE[keep]), rtol=1e-6, atol=1e-7
    )


def test_importances_are_shares_of_what_splits_gain():
    model = model_of("squared_error", max_iter=30).fit(TABLE, FORM)
    found = model.feature_importances_
    assert found.sum() == pytest.approx(1)
    assert found[:3].sum() > 0.95
    alone = model_of("squared_error").fit(np.ones((50, 2)), np.arange(50.0))
    np.testing.assert_array_equal(alone.feature_importances_, [0, 0])


def test_categories_and_names():
    pd = pytest.importorskip("pandas")
    labels = np.array(["a", "b", "c", "d"])[RNG.integers(0, 4, 600)]
    table = pd.DataFrame({"x": TABLE[:, 0], "label": pd.Categorical(labels)})
    y = np.isin(labels, ["b", "d"]) + 0.1 * RNG.normal(size=600)
    model = GradientBoostingRegressor().fit(table, y)
    assert model.feature_names_in_.tolist() == ["x", "label"]
    assert model.score(table, y) > 0.9
    assert model.feature_importances_[1] > 0.9


def test_dask_collections_are_fitted_and_predicted():
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(TABLE, chunks=(200, -1))
    assert_same(
        model_of("squared_error").fit(lazy, FORM), model_of("squared_error").fit(TABLE, FORM)
    )
    model = model_of("classes").fit(TABLE, TARGETS["classes"])
    for name in ("predict", "predict_proba", "decision_function"):
        method = getattr(model, name)
        np.testing.assert_array_equal(method(lazy).compute(scheduler="sync"), method(TABLE))


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
        with wide_registers(is_wide):
            assert self.taken(model, X, y, weight) == [True]
        assert_same(model, kept)
        np.testing.assert_array_equal(model._saw_missing, kept._saw_missing)

    @pytest.mark.parametrize("fraction", [0.3, None])
    def test_rows_that_are_scored_keep_theirs(self, fraction):
        model = model_of("squared_error", early_stopping=True, validation_fraction=fraction)
        assert self.taken(model, TABLE, FORM) == [False]

    def test_rows_that_are_given_to_be_scored(self):
        model = model_of("squared_error")
        kept = clone(model).fit(TABLE, FORM, X_val=TABLE[:50], y_val=FORM[:50])
        assert self.taken(model, TABLE, FORM, X_val=TABLE[:50], y_val=FORM[:50]) == [True]
        np.testing.assert_array_equal(model.validation_score_, kept.validation_score_)

    def test_more_iterations_and_who_hears_of_them(self):
        scores = []

        class Hears(Callback):
            def on_iteration_end(self, fit, number):
                scores.append(fit.training_score())

        whole = model_of("squared_error").fit(TABLE, FORM, callbacks=[Hears()])
        model = model_of("squared_error", max_iter=2, warm_start=True)
        assert self.taken(model, TABLE, FORM, callbacks=[Hears()]) == [True]
        assert self.taken(model.set_params(max_iter=4), TABLE, FORM, callbacks=[Hears()]) == [True]
        assert_same(model, whole)
        assert scores[:4] == scores[4:]

    @staticmethod
    def taken(model, *given, **named):
        """Fit, as if the table were large; whether its codes were taken."""
        found = []

        def boost(rows, *others):
            trees = core.boost(rows, *others)
            found.append(rows.coded.u8.shape[1] == 0)
            return trees

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boosting, "TAKEN_BYTES", 0)
            patch.setattr(boosting, "boost", boost)
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
            *(({name: -1.0}, f"'{name}' parameter") for name in PENALTIES),
            ({"colsample_bytree": 0.0}, "'colsample_bytree' parameter"),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            model_of("squared_error", **parameters).fit(TABLE, FORM)

    def test_leave_the_estimator_as_it_was(self):
        model = model_of("poisson").fit(TABLE, TARGETS["poisson"])
        before = dict(vars(model))
        with pytest.raises(ValueError, match="valid range"):
            model.fit(TABLE, -TARGETS["poisson"])
        assert vars(model) == before


RNG = np.random.default_rng(0)
XS = RNG.normal(size=(2_000, 5))
XS[RNG.random(XS.shape) < 0.1] = np.nan
SIGNAL = np.nan_to_num(XS[:, 0]) * np.nan_to_num(XS[:, 1]) + np.isnan(XS[:, 2])
NOISY = SIGNAL + 0.5 * RNG.normal(size=len(XS))
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)
COUNTS = RNG.poisson(np.exp(SIGNAL)).astype(float)


class TestBesideScikitLearn:
    """As good, on rows that neither has seen."""

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_classes(self, n_classes):
        y = np.searchsorted(np.quantile(NOISY, np.arange(1, n_classes) / n_classes), NOISY)
        losses = [
            log_loss(y[TEST], model.fit(XS[TRAIN], y[TRAIN]).predict_proba(XS[TEST]))
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
            measure(y[TEST], model.fit(XS[TRAIN], y[TRAIN]).predict(XS[TEST]))
            for model in (
                GradientBoostingRegressor(loss, max_iter=20, **own),
                HistGradientBoostingRegressor(loss, max_iter=20, early_stopping=False, **own),
            )
        ]
        assert losses[0] < 1.03 * losses[1]


class TestClasses:
    def test_two_classes_have_one_tree_an_iteration(self):
        model = GradientBoostingClassifier(max_iter=3).fit(XS, np.where(NOISY > 0, "yes", "no"))
        assert model.n_trees_per_iteration_ == 1
        assert len(model.forest_) == model.n_iter_ == 3
        assert model.classes_.tolist() == ["no", "yes"]
        raw = model.decision_function(XS)
        assert raw.shape == (2_000,)
        shares = model.predict_proba(XS)
        np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-raw)), rtol=1e-14)
        np.testing.assert_array_equal(model.predict(XS) == "yes", shares[:, 1] > 0.5)

    def test_more_classes_have_one_each(self):
        model = GradientBoostingClassifier(max_iter=3).fit(XS, np.digitize(NOISY, [-1, 1]))
        assert (model.n_trees_per_iteration_, model.n_iter_, len(model.forest_)) == (3, 3, 9)
        raw = model.decision_function(XS)
        shares = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(XS), shares, rtol=1e-12)

    def test_one_class(self):
        model = GradientBoostingClassifier(max_iter=2).fit(XS, np.ones(len(XS)))
        assert (model.predict(XS) == 1).all()
        np.testing.assert_array_equal(model.predict_proba(XS), np.ones((len(XS), 1)))

    @pytest.mark.parametrize("cuts", [[0], [-1, 1]])
    def test_stages(self, cuts):
        model = GradientBoostingClassifier(max_iter=4).fit(XS, np.digitize(NOISY, cuts))
        few = GradientBoostingClassifier(max_iter=2).fit(XS, np.digitize(NOISY, cuts))
        for staged, whole in (
            (model.staged_predict, few.predict),
            (model.staged_predict_proba, few.predict_proba),
            (model.staged_decision_function, few.decision_function),
        ):
            stages = list(staged(XS))
            assert len(stages) == 4
            np.testing.assert_array_equal(stages[1], whole(XS))

    def test_class_weights_are_weights(self):
        few = XS.round(1)  # not cut: class weights do not count there
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
            GradientBoostingRegressor("quantile").fit(XS, NOISY)
        model = GradientBoostingRegressor("quantile", quantile=0.9, max_iter=50).fit(XS, NOISY)
        assert np.mean(model.predict(XS) >= NOISY) == pytest.approx(0.9, abs=0.03)

    @pytest.mark.one_of(2)
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
        found = sign * model.fit(XS[TRAIN], sign * y[TRAIN]).predict(XS[TEST])
        expected = other.fit(XS[TRAIN], y[TRAIN]).predict(XS[TEST])
        assert model._initial[0] == sign * y[TRAIN].max()
        losses = [mean_pinball_loss(y[TEST], each, alpha=plain["quantile"])
                  for each in (found, expected)]  # fmt: skip
        assert losses[0] < 1.03 * losses[1]
        if share > 0.5:
            median = GradientBoostingRegressor("absolute_error", **shape)
            same = sign * median.fit(XS[TRAIN], sign * y[TRAIN]).predict(XS[TEST])
            assert mean_pinball_loss(y[TEST], same) == pytest.approx(losses[0], rel=0.02)

    def test_huber_where_most_targets_are_equal(self):
        """scikit-learn's model is constant: its width is zero."""
        y = np.maximum(np.nan_to_num(XS[:, 0]) - 1.6, 0)
        assert 0.9 < np.mean(y == 0) < 0.97
        assert GradientBoostingRegressor("huber").fit(XS, y).score(XS, y) > 0.7

    def test_its_alpha_is_no_regularization_of_other_losses(self):
        for loss in ("squared_error", "quantile"):
            with pytest.warns(UserWarning, match="alpha is of .*l1_regularization or quantile"):
                GradientBoostingRegressor(loss, alpha=0.5, quantile=0.5, max_iter=1).fit(XS, SIGNAL)

    def test_huber_beside_scikit_learns_other_boosting(self):
        y = SIGNAL + 0.2 * RNG.standard_t(1.2, size=len(XS))
        X0, shape = np.nan_to_num(XS), {"max_leaf_nodes": 8, "min_samples_leaf": 20}
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
            GradientBoostingRegressor(loss).fit(XS, -np.exp(NOISY))

    def test_stages(self):
        model = GradientBoostingRegressor("poisson", max_iter=3).fit(XS, COUNTS)
        np.testing.assert_array_equal(list(model.staged_predict(XS))[-1], model.predict(XS))
        assert (model.predict(XS) > 0).all()


class TestFirstIterations:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("y", [np.arange(90) % 2, np.arange(90) % 3, np.arange(90.0)])
    @pytest.mark.parametrize("early", [False, True])
    def test_they_are_the_model_of_a_shorter_fit(self, y, early, tmp_path):
        kind = GradientBoostingRegressor if y.dtype == float else GradientBoostingClassifier
        X = np.random.default_rng(0).normal(size=(90, 3)).round(1)
        X[::7, 1] = np.nan
        how = {"min_samples_leaf": 5, "random_state": 0, "use_best_model": False}
        how |= {"early_stopping": early, "n_iter_no_change": 50}
        whole = kind(max_iter=6, **how).fit(X, y)
        stages = list(whole.staged_predict(X))
        for n in (1, 3, 6):
            first, fitted = whole.first_iterations(n), kind(max_iter=n, **how).fit(X, y)
            assert first.get_params() == fitted.get_params()
            assert first.n_iter_ == n
            np.testing.assert_array_equal(first.predict(X), stages[n - 1])
            np.testing.assert_array_equal(first.predict(X), whole[:n].predict(X))
            np.testing.assert_array_equal(first.validation_score_, fitted.validation_score_)
            assert first.best_iteration_ == fitted.best_iteration_
            assert first._saw_missing.tolist() == fitted._saw_missing.tolist()
            save(first, tmp_path / "first.dtrees")
            np.testing.assert_array_equal(load(tmp_path / "first.dtrees").predict(X), stages[n - 1])
            first.set_params(max_iter=6, warm_start=True).fit(X, y)
            np.testing.assert_array_equal(first.predict(X), stages[5])
        assert whole[:].n_iter_ == whole[:99].n_iter_ == 6
        assert whole[:-2].n_iter_ == 4

    def test_what_is_no_beginning_is_refused(self):
        X = np.arange(60.0)[:, None]
        model = GradientBoostingRegressor(max_iter=3)
        with pytest.raises(NotFittedError):
            model.first_iterations(1)
        with pytest.raises(NotFittedError):
            model[:1]
        model.fit(X, X[:, 0])
        with pytest.raises(ValueError, match=r"n must be at most n_iter_=3\. Got 4 instead"):
            model.first_iterations(4)
        with pytest.raises(ValueError, match=r"'n' parameter .* in the range \[1, inf\). Got 0"):
            model[:0]
        for which in (0, slice(1, 3), slice(None, None, 2), "a"):
            with pytest.raises(TypeError, match="slices of its first iterations only"):
                model[which]
        with pytest.raises(TypeError):
            list(model)
        assert np.array([model, model], dtype=object).shape == (2,)
