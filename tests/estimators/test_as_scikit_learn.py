"""What scikit-learn's tests ask of `HistGradientBoosting*` in public, asked of ours.

What differs, and why, stands in docs/user_guide/boosting.md.
"""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss, r2_score
from sklearn.model_selection import cross_val_score

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
LABELS = np.where(Y > 0, "yes", "no")
KINDS = [(GradientBoostingRegressor, Y), (GradientBoostingClassifier, LABELS)]


def test_parameters_are_scikit_learns_and_some_more():
    ours_alone = {
        *("category_penalty", "handle_unknown", "n_jobs", "subsample", "regime", "init"),
        *("min_child_weight", "use_best_model", "min_split_gain", "l1_regularization"),
        *("max_delta_step", "path_smooth", "colsample_bytree", "multi_strategy", "oob_score"),
        *("min_samples_split", "feature_weights"),
    }
    for ours, theirs, more in (
        (GradientBoostingClassifier, HistGradientBoostingClassifier, ours_alone),
        (GradientBoostingRegressor, HistGradientBoostingRegressor, ours_alone | {"alpha", "power"}),
    ):
        own, other = ours().get_params(), theirs().get_params()
        assert own.keys() - other.keys() == more
        assert other.keys() <= own.keys()
        for name in own.keys() & other.keys():
            if name != "l2_regularization":
                assert own[name] == other[name], name


def test_learned_attributes_are_scikit_learns():
    for (kind, y), other in zip(
        KINDS, (HistGradientBoostingRegressor, HistGradientBoostingClassifier), strict=True
    ):
        model, theirs = kind(max_iter=2).fit(X, y), other(max_iter=2).fit(X, y)
        for name in set(dir(theirs)) - theirs.get_params().keys():
            if not name.startswith("_"):
                assert hasattr(model, name), name


@pytest.mark.one_of(8)
@pytest.mark.parametrize(("kind", "y"), KINDS)
@pytest.mark.parametrize("scoring", ["loss", None, "neg_mean_squared_error", "accuracy"])
@pytest.mark.parametrize("fraction", [0.1, None])
@pytest.mark.parametrize("tol", [1e-7, 0.1])
def test_early_stopping(kind, y, scoring, fraction, tol):
    named = "accuracy" if kind is GradientBoostingClassifier else "neg_mean_squared_error"
    if scoring not in ("loss", None, named):
        scoring = "r2" if kind is GradientBoostingRegressor else "f1_macro"
    model = kind(
        max_iter=30,
        min_samples_leaf=5,
        scoring=scoring,
        tol=tol,
        early_stopping=True,
        validation_fraction=fraction,
        n_iter_no_change=3,
        use_best_model=False,
        random_state=0,
    ).fit(X, y)
    scores = model.train_score_ if fraction is None else model.validation_score_
    assert len(scores) == model.n_iter_ + 1
    if tol == 0.1 and scoring in (None, "accuracy", "r2", "f1_macro"):
        assert model.n_iter_ < 30


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.8])
def test_a_quantile_is_the_best_of_its_pinball_loss(quantile):
    y = RNG.exponential(size=400)
    table = np.ones((400, 1))
    model = GradientBoostingRegressor("quantile", quantile=quantile, max_iter=5).fit(table, y)
    found = mean_pinball_loss(y, model.predict(table), alpha=quantile)
    for shift in (-0.05, 0.05):
        assert found <= mean_pinball_loss(y, model.predict(table) + shift, alpha=quantile)


def test_missing_values_alone_tell_the_classes():
    table = np.array([1.0, 2, 3, np.nan, np.nan]).repeat(3).reshape(-1, 1)
    y = np.array([0, 0, 0, 1, 1]).repeat(3)
    model = GradientBoostingClassifier(min_samples_leaf=1).fit(table, y)
    assert model.score(table, y) == 1


@pytest.mark.parametrize("share", [0.1, 0.2])
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_some_missing_values_do_little_harm(kind, y, share):
    table = X.copy()
    table[RNG.random(X.shape) < share] = np.nan
    model = kind(max_iter=50)
    assert model.fit(table, y).score(table, y) > 0.75 * model.fit(X, y).score(X, y)


@pytest.mark.parametrize("rows", [[0.0], [1.0, 0.0], [0.0, 1.0, 2.0]])
def test_shares_of_zero_divide_nothing(rows):
    """As many leaves as rows, and no hessians at the end."""
    table = np.array(rows * 2).reshape(-1, 1)
    y = (table[:, 0] > 0).astype(int)
    model = GradientBoostingClassifier(learning_rate=100, max_iter=10, min_samples_leaf=1)
    shares = model.fit(table, y).predict_proba(table)
    assert np.isfinite(shares).all()


@pytest.mark.parametrize("scoring", [None, "loss"])
def test_targets_of_strings_stop_early(scoring):
    model = GradientBoostingClassifier(early_stopping=True, scoring=scoring, max_iter=5)
    assert set(model.fit(X, LABELS).predict(X)) == {"yes", "no"}


def test_rows_of_weight_zero_have_no_say():
    table = [[1, 0], [1, 0], [1, 0], [0, 1]]
    weight = [0, 0, 1, 1]
    model = GradientBoostingClassifier(min_samples_leaf=1).fit(table, [0, 0, 1, 0], weight)
    assert model.predict([[1, 0]])[0] == 1
    numbers = GradientBoostingRegressor(min_samples_leaf=1).fit(table, [0, 0, 1, 0], weight)
    assert numbers.predict([[1, 0]])[0] > 0.5


def test_limits_of_depth_and_leaves_hold_together():
    y = np.arange(400.0)
    model = GradientBoostingRegressor(max_iter=1, max_depth=2, max_leaf_nodes=3)
    tree = model.fit(y[:, None], y).forest_[0]
    assert np.count_nonzero(tree.feature < 0) == 3
    deeper = GradientBoostingRegressor(max_iter=1, max_depth=2, max_leaf_nodes=None)
    assert np.count_nonzero(deeper.fit(y[:, None], y).forest_[0].feature < 0) == 4


@pytest.mark.parametrize("kind", [GradientBoostingRegressor, GradientBoostingClassifier])
def test_trees_without_splits_predict_the_beginning(kind):
    table = np.ones((50, 2))
    y = np.arange(50) % 2
    model = kind(max_iter=3).fit(table, y)
    assert [tree.node_count for tree in model.forest_.trees] == [1, 1, 1]
    assert len(set(model.predict(table))) == 1


def test_missing_values_that_only_predictions_have():
    for kind, y in KINDS:
        model = kind(max_iter=5).fit(X, y)
        assert (
            np.isfinite(model.predict_proba(np.full((2, 4), np.nan))).all()
            if (kind is GradientBoostingClassifier)
            else np.isfinite(model.predict(np.full((2, 4), np.nan))).all()
        )


def test_categories_beat_codes_of_them():
    """Native categories need fewer leaves than their numbers."""
    codes = RNG.integers(0, 12, 1_000)
    y = np.isin(codes, [1, 4, 6, 11]).astype(float)
    table = codes[:, None].astype(float)
    shape = {"max_iter": 1, "max_leaf_nodes": 2, "learning_rate": 1.0, "l2_regularization": 0}
    native = GradientBoostingRegressor(categorical_features=[0], **shape).fit(table, y)
    plain = GradientBoostingRegressor(categorical_features=None, **shape).fit(table, y)
    assert r2_score(y, native.predict(table)) == pytest.approx(1)
    assert r2_score(y, plain.predict(table)) < 0.9
    assert native.is_categorical_.tolist() == [True]
    assert plain.is_categorical_ is None


@pytest.mark.parametrize("given", [[0, 2], [True, False, True, False], np.array([0, 2])])
def test_ways_to_name_categorical_columns(given):
    table = np.abs(X).round()
    model = GradientBoostingRegressor(max_iter=2, categorical_features=given).fit(table, Y)
    assert model.is_categorical_.tolist() == [True, False, True, False]


def test_order_of_categories_and_their_types_change_nothing():
    pd = pytest.importorskip("pandas")
    labels = np.array(["a", "b", "c"])[RNG.integers(0, 3, 400)]
    y = (labels == "b") + 0.1 * RNG.normal(size=400)
    found = [
        GradientBoostingRegressor(max_iter=5)
        .fit(pd.DataFrame({"x": column}), y)
        .predict(pd.DataFrame({"x": column}))
        for column in (
            pd.Categorical(labels, categories=["a", "b", "c"]),
            pd.Categorical(labels, categories=["c", "a", "b"]),
            labels.astype(object),
        )
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_cross_validation_of_scikit_learn_takes_them():
    for kind, y in KINDS:
        assert cross_val_score(kind(max_iter=20), X, y, cv=3).mean() > 0.5
