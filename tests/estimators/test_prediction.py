"""What a fitted estimator predicts with: answers of a kind that is known before there are any."""

from __future__ import annotations

import pickle
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold

from dtrees import (
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.membership.resampling import Bags
from dtrees.core.predict.intervals import floor_of, ranks
from dtrees.estimators.prediction import scaled_errors
from dtrees.export import load, save
from dtrees.inspection import shap_values
from dtrees.model_selection import cross_validate
from tests.core.predict.test_intervals import listed
from tests.estimators.forest_cases import FORESTS, mixed_table

X, Y = mixed_table(150)
LABELS = np.array(["none", "one", "two"])[Y]
KINDS = [DecisionTreeClassifier, DecisionTreeRegressor, *FORESTS]
all_kinds = pytest.mark.parametrize("kind", KINDS)


def fitted(kind):
    """A small model; of labels, where it knows any."""
    model = kind(max_depth=3, random_state=0)
    if kind in FORESTS:
        model.set_params(n_estimators=3)
    return model.fit(X, LABELS if hasattr(model, "predict_proba") else Y)


@all_kinds
def test_the_kind_of_an_answer_is_known_before(kind):
    model = fitted(kind)
    predictor = model._predictor()
    methods = ["apply", "decision_path", "predict", "predict_proba", "predict_log_proba"]
    for method in [name for name in methods if hasattr(model, name)]:
        promised, found = predictor.answer(method), getattr(predictor, method)(X)
        assert promised.empty.dtype == found.dtype
        assert promised.empty.shape[1:] == found.shape[1:]
        assert issparse(promised.empty) == issparse(found)
        if promised.columns is not None:
            assert len(promised.columns) == found.shape[1]


@all_kinds
def test_answers_follow_from_leaves(kind):
    """Means of the values of the leaves, and the first of the most likely labels."""
    model = fitted(kind)
    predictor = model._predictor()
    leaves = np.atleast_2d(predictor.apply(X).T)
    values = np.mean(
        [tree.value_of(leaf) for tree, leaf in zip(predictor._trees, leaves, strict=True)], axis=0
    )
    if predictor.classes is None:
        np.testing.assert_allclose(predictor.predict(X), values[:, 0], rtol=1e-12)
        return
    np.testing.assert_allclose(predictor.predict_proba(X), values, rtol=1e-12)
    shares = predictor.predict_proba(X)
    assert predictor.predict(X).tolist() == [model.classes_[row.argmax()] for row in shares]
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(predictor.predict_log_proba(X), np.log(shares))


@pytest.mark.parametrize("kind", KINDS[:2])
def test_labels_of_few_rows_and_of_many(kind):
    """Labels are made by row, or by node where nodes are fewer."""
    model = fitted(kind)
    n_nodes = model.tree_.node_count
    assert 2 < n_nodes < len(X)
    whole = model._predictor().predict(X)
    for start in range(0, len(X), n_nodes - 1):
        part = slice(start, start + n_nodes - 1)
        np.testing.assert_array_equal(model._predictor().predict(X[part]), whole[part])


def test_a_block_of_checked_columns_needs_no_names():
    model = fitted(DecisionTreeClassifier)
    nameless = X.to_numpy(dtype=object)
    np.testing.assert_array_equal(
        model._predictor().of_block("predict", nameless), model.predict(X)
    )


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_collections_are_those_of_scikit_learn(kind, weighted):
    rng = np.random.default_rng(0)
    table, weight = rng.normal(size=(90, 2)), rng.random(90) if weighted else None
    y = (table[:, 0] + rng.normal(size=90) > 0).astype(int)
    model = kind(max_depth=2).fit(table, y)
    metric = r2_score if kind is DecisionTreeRegressor else accuracy_score
    expected = metric(y, model.predict(table), sample_weight=weight)
    lazy = da.from_array(table, chunks=(40, 2))
    assert model.score(table, y, weight) == pytest.approx(expected)
    assert model.score(lazy, y, weight) == pytest.approx(expected)


KINDS_OF_INTERVALS = [RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor]


def table(n_rows=120, seed=0):
    """Numbers with missing ones, and categories."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n_rows)
    letters = rng.choice(list("abcd"), n_rows)
    y = number + (letters == "a") + rng.normal(size=n_rows)
    number[::9] = np.nan
    return pd.DataFrame({"x": number, "z": rng.integers(0, 5, n_rows), "letter": letters}), y


def intervals_fitted(forest, X, y, *more, **named):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some inputs do not have OOB")
        return forest.fit(X, y, *more, **named)


def looped(forest, X, y, new, confidence, weight=None, groups=None):
    """The definition: for each row, the mean of the trees out of whose bags it is."""
    rows = np.arange(len(y), dtype=np.uint64)
    keys = rows if groups is None else np.unique(groups, return_inverse=True)[1].astype(np.uint64)
    means = vars(forest).get("_oob_means")
    bags = Bags(forest._fit_seed, forest.max_samples or 1.0, keys, means)
    counts = np.ones(len(y), dtype=bool) if weight is None else weight > 0
    trees = forest.estimators_
    times = [bags.multiplicity(t, counts) for t in range(len(trees))]
    unseen = np.stack([~np.isin(keys, keys[(n > 0) & counts]) for n in times], axis=1)
    at_fit = np.stack([tree.predict(X) for tree in trees], axis=1)
    at_new = np.stack([tree.predict(new) for tree in trees], axis=1)
    n = counts.sum()
    low, high = ranks(confidence, n, apart=True)
    floor = np.array([floor_of(tree.tree_.model) for tree in trees])
    found = []
    for values in at_new:
        lower, upper = [], []
        for row in np.flatnonzero(counts):
            mine = unseen[row]
            if not mine.any():
                lower.append(-np.inf)
                upper.append(np.inf)
                continue
            scales = [v[mine].std() + floor[mine].mean() for v in (at_fit[row], values)]
            error = (y[row] - at_fit[row, mine].mean()) / scales[0]
            lower.append(values[mine].mean() + error * scales[1])
            upper.append(lower[-1])
        ends = [sorted(lower)[low - 1], sorted(upper)[high - 1]] if high <= n else [-np.inf, np.inf]
        found.append(ends)
    return found


@pytest.mark.one_of(9)
@pytest.mark.parametrize("kind", KINDS_OF_INTERVALS)
@pytest.mark.parametrize(
    "parameters", [{}, {"max_bins": None}, {"max_samples": 0.4, "max_leaf_nodes": 7}]
)
def test_a_loop_over_rows_and_trees(kind, parameters):
    X, y = table()
    new, _ = table(30, seed=1)
    forest = kind(9, bootstrap=True, oob_score=True, random_state=0, **parameters)
    intervals_fitted(forest, X, y)
    for confidence in (0.5, 0.8, 0.95):
        found = forest.prediction_interval(new, confidence)
        assert found.shape == (30, 2)
        assert found.dtype == np.float64
        expected = looped(forest, X, y, new, confidence)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_weights_and_groups():
    X, y = table()
    new, _ = table(20, seed=1)
    rng = np.random.default_rng(0)
    for weight in (rng.integers(0, 3, len(y)), rng.random(len(y)) * (rng.random(len(y)) < 0.7)):
        forest = RandomForestRegressor(25, oob_score=True, random_state=0)
        intervals_fitted(forest, X, y, weight)
        expected = looped(forest, X, y, new, 0.8, weight)
        np.testing.assert_allclose(
            forest.prediction_interval(new, 0.8), expected, rtol=1e-5, atol=1e-5
        )
    groups = np.array(list("abcdefghijkl"))[np.arange(len(y)) // 10]
    intervals_fitted(forest, X, y, bootstrap_groups=groups)
    expected = looped(forest, X, y, new, 0.8, groups=groups)
    np.testing.assert_allclose(forest.prediction_interval(new, 0.8), expected, rtol=1e-5, atol=1e-5)
    again = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(again.prediction_interval(new), forest.prediction_interval(new))


def test_the_same_bits_everywhere(tmp_path):
    X, y = make_friedman1(5000, noise=1.0, random_state=0)
    X, new, y = np.rint(X[:300] * 4), np.rint(X[300:] * 4), y[:300]
    forest = intervals_fitted(RandomForestRegressor(30, oob_score=True, random_state=0), X, y)
    found = forest.prediction_interval(new)
    save(forest, tmp_path / "forest.dtrees")
    others = [
        load(tmp_path / "forest.dtrees"),
        pickle.loads(pickle.dumps(forest)),
        intervals_fitted(clone(forest).set_params(n_jobs=2), sp.csr_array(X), y),
    ]
    for other in others:
        np.testing.assert_array_equal(other.prediction_interval(new), found)
    np.testing.assert_array_equal(forest.prediction_interval(sp.csr_array(new)), found)
    np.testing.assert_array_equal(
        np.concatenate([forest.prediction_interval(new[i : i + 7]) for i in range(0, 70, 7)]),
        found[:70],
    )
    forest.set_params(max_samples=0.1, random_state=5, n_jobs=2)  # what was fitted counts
    np.testing.assert_array_equal(forest.prediction_interval(new), found)


def test_the_trees_that_were_enough():
    X, y = table()
    stopped = intervals_fitted(RandomForestRegressor(200, oob_tol=0.05, random_state=0), X, y)
    enough = RandomForestRegressor(stopped.n_estimators_, oob_score=True, random_state=0)
    assert stopped.n_estimators_ < 200
    np.testing.assert_array_equal(
        stopped.prediction_interval(X), intervals_fitted(enough, X, y).prediction_interval(X)
    )


def test_dask_collections():
    X, y = table()
    new, _ = table(40, seed=1)
    forest = intervals_fitted(RandomForestRegressor(20, oob_score=True, random_state=0), X, y)
    found = forest.prediction_interval(new)
    lazy = forest.prediction_interval(dd.from_pandas(new, npartitions=3))
    assert list(lazy.columns) == ["lower", "upper"]
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), found)
    numbers = X[["x", "z"]].to_numpy()
    forest = intervals_fitted(RandomForestRegressor(20, oob_score=True, random_state=0), numbers, y)
    lazy = forest.prediction_interval(da.from_array(numbers, chunks=(37, 2)), 0.7)
    assert lazy.shape == (120, 2)
    expected = forest.prediction_interval(numbers, 0.7)
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), expected)


def test_models_that_grow_together_learn_what_they_learn_alone():
    X, y = table()
    new, _ = table(20, seed=1)
    forest = RandomForestRegressor(9, oob_score=True, random_state=0)
    weight = np.arange(len(y)) % 4.0
    cv = list(KFold(3).split(X))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some inputs do not have OOB")
        found = cross_validate(
            forest, X, y, cv=cv, params={"sample_weight": weight}, return_estimator=True
        )
    for (train, _), model in zip(cv, found["estimator"], strict=True):
        mine = np.zeros(len(y))
        mine[train] = weight[train]
        alone = intervals_fitted(clone(forest), X, y, mine)
        np.testing.assert_array_equal(model._oob_scaled_errors, alone._oob_scaled_errors)
        np.testing.assert_array_equal(
            model.prediction_interval(new, 0.8), alone.prediction_interval(new, 0.8)
        )


def test_warm_start_adds_trees():
    X, y = table()
    forest = intervals_fitted(
        RandomForestRegressor(5, oob_score=True, warm_start=True, random_state=0), X, y
    )
    intervals_fitted(forest.set_params(n_estimators=12), X, y)
    whole = intervals_fitted(RandomForestRegressor(12, oob_score=True, random_state=0), X, y)
    np.testing.assert_array_equal(forest.prediction_interval(X), whole.prediction_interval(X))
    forest.set_params(oob_score=False, warm_start=False).fit(X, y)
    with pytest.raises(ValueError, match="Fit it with bootstrap=True and oob_score=True"):
        forest.prediction_interval(X)


def test_refusals():
    X, y = table()
    for forest in (RandomForestRegressor(3), ExtraTreesRegressor(3)):
        with pytest.raises(ValueError, match="Fit it with bootstrap=True and oob_score=True"):
            forest.fit(X, y).prediction_interval(X)
    classes = RandomForestClassifier(3, oob_score=True, random_state=0)
    assert not hasattr(classes, "prediction_interval")
    intervals_fitted(classes, X, y > 0)
    assert "_oob_scaled_errors" not in vars(classes)
    forest = intervals_fitted(RandomForestRegressor(20, oob_score=True, random_state=0), X, y)
    for confidence in (0.4, 1.0):
        with pytest.raises(ValueError, match=r"of RandomForestRegressor\.pred.*\[0.5, 1.0\)"):
            forest.prediction_interval(X, confidence)
    with pytest.raises(ValueError, match=r"^The feature names should match"):
        forest.prediction_interval(X[["x", "z"]])
    forest._oob_scaled_errors = forest._oob_scaled_errors[:-1]
    with pytest.raises(ValueError, match="not of the rows"):
        forest.prediction_interval(X)


def test_few_trees_and_few_rows_make_intervals_wider():
    X, y = table()
    forest = intervals_fitted(RandomForestRegressor(1, oob_score=True, random_state=0), X, y)
    assert np.isinf(forest._oob_scaled_errors).mean() > 0.5
    with pytest.warns(UserWarning, match=r"0\.9 needs .* and there are \d+\. .* fit more trees"):
        assert np.isinf(forest.prediction_interval(X)).all()
    forest = intervals_fitted(
        RandomForestRegressor(40, oob_score=True, random_state=0), X[:8], y[:8]
    )
    few = r"confidence=0\.8 needs the errors of 9 rows, and there are 8\.$"
    with pytest.warns(UserWarning, match=few) as heard:
        assert np.isinf(forest.prediction_interval(X, 0.8)).all()  # 0.9 of 9 is more than 8
    assert [each.filename for each in heard] == [__file__]
    assert np.isfinite(forest.prediction_interval(X, 0.7)).all()


def test_errors():
    mean = np.array([1.0, np.nan, 3.0, 1.7e308])
    found = scaled_errors([3, 2, 2.5, -1.7e308], mean, np.ones(4))
    np.testing.assert_array_equal(found, [2.0, np.inf, -0.5, np.inf])
    found = scaled_errors([3, 2, 2.5, 0], mean, np.ones(4), np.array([True, True, False, False]))
    np.testing.assert_array_equal(found, [2.0, np.inf, np.nan, np.nan])


@pytest.mark.parametrize("kind", [RandomForestRegressor, BaggingRegressor])
def test_coverage(kind):
    n_rows, n_new, n_tables, inside, widths = 150, 1000, 8, [], []
    for seed in range(n_tables):
        X, y = make_friedman1(n_rows + n_new, noise=2.0, random_state=seed)
        forest = intervals_fitted(
            kind(30, oob_score=True, random_state=seed), X[:n_rows], y[:n_rows]
        )
        low, high = forest.prediction_interval(X[n_rows:], 0.9).T
        inside.append(np.mean((low <= y[n_rows:]) & (y[n_rows:] <= high)))
        widths.append(np.mean(high - low))
    spread = np.sqrt(0.09 * (1 / n_rows + 1 / n_new) / n_tables)
    assert np.mean(inside) > 0.9 - 4 * spread
    assert np.mean(inside) < 0.97
    assert np.mean(widths) < 2 * 2.5 * np.std(y)


def test_intervals_are_wide_where_targets_are():
    rng = np.random.default_rng(0)
    X = rng.random((2_000, 3))
    y = X[:, 0] + rng.normal(size=2_000) * (0.1 + 2 * X[:, 1] ** 2)
    forest = RandomForestRegressor(60, oob_score=True, random_state=0).fit(X[:800], y[:800])
    lower, upper = forest.prediction_interval(X[800:], 0.9).T
    inside, noisy = (lower <= y[800:]) & (y[800:] <= upper), X[800:, 1] > 0.8
    assert (upper - lower)[noisy].mean() > 2 * (upper - lower)[~noisy].mean()
    assert inside.mean() == pytest.approx(0.91, abs=0.03)
    by_width = np.array_split(np.argsort(upper - lower, kind="stable"), 5)
    assert min(inside[rows].mean() for rows in by_width) > 0.8


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e12])
def test_intervals_move_with_the_targets(offset):
    X, y = make_friedman1(150, random_state=0)
    y = np.rint(8 * y) / 8  # exact, wherever they are
    made = RandomForestRegressor(30, oob_score=True, random_state=0)
    expected = clone(made).fit(X, y).prediction_interval(X[:20]) + offset
    found = made.fit(X, y + offset).prediction_interval(X[:20])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


def test_a_constant_target_has_intervals_of_no_width():
    X, _ = make_friedman1(60, random_state=0)
    forest = RandomForestRegressor(30, oob_score=True, random_state=0).fit(X, np.full(60, 3.5))
    np.testing.assert_array_equal(forest.prediction_interval(X[:3]), np.full((3, 2), 3.5))


def test_models_of_older_versions_have_errors_in_the_unit_of_the_target():
    X, y = table()
    forest = intervals_fitted(RandomForestRegressor(25, oob_score=True, random_state=0), X, y)
    del forest.__dict__["_oob_scaled_errors"]
    forest._oob_errors = np.abs(y - forest.oob_prediction_)
    keys = np.arange(len(y), dtype=np.uint64)
    bags = Bags(forest._fit_seed, 1.0, keys)
    unseen = np.stack([bags.multiplicity(t) == 0 for t in range(25)], axis=1)
    values = np.stack([tree.predict(X) for tree in forest.estimators_], axis=1)
    expected = [listed(row, forest._oob_errors, unseen, 0.9) for row in values[:10].tolist()]
    np.testing.assert_allclose(forest.prediction_interval(X[:10], 0.9), expected, atol=1e-10)


class TestContributions:
    """What columns add, output by output; the values are proved where they are made."""

    @pytest.fixture
    def rows(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.normal(size=(90, 3)), columns=["a", "b", "c"])
        return X, rng.integers(0, 3, 90)

    def test_of_one_output(self, rows):
        X, y = rows
        model = GradientBoostingRegressor(max_iter=3, early_stopping=False).fit(X, y)
        found, expected = model.predict_contributions(X), shap_values(model, X)
        np.testing.assert_array_equal(found[:, :-1], expected.values)
        np.testing.assert_array_equal(found[:, -1], expected.base_values)
        np.testing.assert_array_equal(model.predict_contributions(X[:1]), found[:1])

    def test_of_several_outputs(self, rows):
        X, y = rows
        model = RandomForestClassifier(3, random_state=0).fit(X, y)
        found, expected = model.predict_contributions(X), shap_values(model, X)
        by_output = found.reshape(len(X), 3, 4)
        np.testing.assert_array_equal(by_output[:, :, :-1], expected.values.swapaxes(1, 2))
        np.testing.assert_allclose(by_output.sum(axis=2), model.predict_proba(X), atol=1e-12)

    def test_lazily(self, rows):
        X, y = rows
        model = RandomForestClassifier(3, random_state=0).fit(X, y)
        lazy = dd.from_pandas(X, npartitions=2)
        found = model.predict_contributions(lazy)
        assert found.columns[:4].tolist() == ["0: a", "0: b", "0: c", "0: base value"]
        expected = model.predict_contributions(X)
        np.testing.assert_array_equal(found.compute(scheduler="sync").to_numpy(), expected)
        model.fit(X.to_numpy(), y)
        found = model.predict_contributions(da.from_array(X.to_numpy(), chunks=(40, 3)))
        np.testing.assert_array_equal(found.compute(scheduler="sync"), expected)

    def test_before_a_fit(self):
        with pytest.raises(NotFittedError):
            DecisionTreeRegressor().predict_contributions(np.zeros((1, 1)))
