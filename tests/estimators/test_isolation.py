"""Isolation forests against ways that are counted step by step, and against scikit-learn's."""

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import IsolationForest as TheirForest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import IsolationForest
from dtrees.core.model.tree import LEAF
from dtrees.estimators.isolation import DrawnRows, average_length
from dtrees.export import load, save
from dtrees.inspection import outlier_scores, proximities
from tests.estimators.forest_cases import mixed_table

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4)).round(2)
X[:6] += 5
NEW = RNG.normal(size=(50, 4)).round(2)
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 8.0], 600)
FORESTS = {
    "plain": IsolationForest(n_estimators=12, random_state=0),
    "bootstrap": IsolationForest(n_estimators=7, bootstrap=True, max_samples=50, random_state=1),
    "all rows": IsolationForest(n_estimators=5, max_samples=1.0, random_state=2),
    "columns": IsolationForest(n_estimators=9, max_features=0.5, max_samples=0.2, random_state=3),
    "outliers": IsolationForest(n_estimators=9, contamination=0.02, random_state=4),
}
STAIRS = pd.DataFrame({"a": RNG.integers(0, 3, 200), "b": ["x"] * 200})


def same(one, other, rows=NEW):
    assert len(one.forest_) == len(other.forest_)
    assert all(a.equals(b) for a, b in zip(one.forest_, other.forest_, strict=True))
    assert (one.offset_, one.max_samples_) == (other.offset_, other.max_samples_)
    np.testing.assert_array_equal(one.decision_function(rows), other.decision_function(rows))


def scores_one_by_one(forest, table, rows):
    """Scores by the way of each row down each tree, and the rows that end where it ends."""

    def mean_of_search(n):
        if n <= 2:
            return float(n == 2)
        return 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n

    total = np.zeros(len(rows))
    samples = zip(forest.estimators_, forest.estimators_samples_, strict=True)
    for tree, own in samples:
        n_in = np.bincount(tree.apply(table[own]), minlength=tree.tree_.node_count)
        ways = tree.decision_path(rows).sum(axis=1) - 1
        total += np.asarray(ways).ravel() + [
            mean_of_search(n_in[leaf]) for leaf in tree.apply(rows)
        ]
    return -(2.0 ** -(total / len(forest) / mean_of_search(forest.max_samples_)))


@pytest.mark.parametrize("name", FORESTS)
def test_the_oracle(name):
    forest = clone(FORESTS[name]).fit(X)
    for rows in (X, NEW):
        expected = scores_one_by_one(forest, X, rows)
        np.testing.assert_allclose(forest.score_samples(rows), expected, rtol=1e-12)
        decision = forest.decision_function(rows)
        np.testing.assert_array_equal(decision, forest.score_samples(rows) - forest.offset_)
        np.testing.assert_array_equal(forest.predict(rows), np.where(decision < 0, -1, 1))


@pytest.mark.parametrize("name", FORESTS)
def test_trees_split_what_is_not_alone(name):
    forest = clone(FORESTS[name]).fit(X)
    depth = int(np.ceil(np.log2(forest.max_samples_)))
    sets = zip(forest.forest_, forest.estimators_samples_, forest.estimators_features_, strict=True)
    for number, (tree, own, columns) in enumerate(sets):
        assert len(own) == forest.max_samples_
        assert set(tree.feature[tree.test != LEAF]) <= set(columns.tolist())
        leaves = forest.apply(X[own])[:, number]
        for leaf in np.unique(leaves):
            rows = np.unique(X[own][leaves == leaf][:, columns], axis=0)
            assert len(rows) == 1 or tree.depth[leaf] == depth
        assert tree.depth.max() <= depth
        inside = np.bincount(leaves, minlength=tree.node_count)
        is_leaf = tree.test == LEAF
        np.testing.assert_array_equal(inside[is_leaf], tree.weighted_n_node_samples[is_leaf])


def test_cuts_are_uniform():
    """Of the rows 0, 1 and 10, the root parts the last one nine times out of ten."""
    table = np.array([[0.0], [1.0], [10.0]])
    forest = IsolationForest(n_estimators=1500, random_state=0).fit(table)
    cuts = np.array([tree.threshold[0] for tree in forest.forest_])
    assert abs((cuts > 1).mean() - 0.9) < 0.02
    assert abs((cuts > 5.5).mean() - 0.45) < 0.03
    columns = IsolationForest(n_estimators=1500, random_state=0).fit(RNG.normal(size=(99, 3)))
    first = np.bincount([tree.feature[0] for tree in columns.forest_])
    assert abs(first / 1500 - 1 / 3).max() < 0.03


@pytest.mark.one_of(3)
@pytest.mark.parametrize("own", [{}, {"max_features": 2}, {"max_samples": 0.5}])
def test_scores_are_those_of_scikit_learn_up_to_chance(own):
    ours = IsolationForest(n_estimators=200, random_state=0, **own).fit(X)
    theirs = TheirForest(n_estimators=200, random_state=0, **own).fit(X)
    one, other = (each.score_samples(np.vstack([X, NEW])) for each in (ours, theirs))
    assert np.corrcoef(one, other)[0, 1] > 0.98
    assert abs(one - other).mean() < 0.01
    assert (X[one[:600].argsort()[:6]].mean(axis=1) > 2).all()


def test_the_average_way():
    found = average_length(np.array([0, 1, 2, 3, 5, 999]))
    harmonic = [sum(1 / k for k in range(1, n)) for n in (3, 5, 999)]
    exact = [2 * h - 2 * (n - 1) / n for h, n in zip(harmonic, (3, 5, 999), strict=True)]
    np.testing.assert_array_equal(found[:3], [0, 0, 1])
    np.testing.assert_allclose(found[3:], exact, rtol=0.3)
    assert found[-1] == pytest.approx(exact[-1], rel=1e-3)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("name", FORESTS)
def test_the_same_bits_everywhere(name, weight, tmp_path):
    forest = clone(FORESTS[name]).fit(X, sample_weight=weight)
    save(forest, tmp_path / "model.dtrees")
    others = [
        clone(forest).set_params(n_jobs=2).fit(X, sample_weight=weight),
        clone(forest).fit(da.from_array(X, chunks=(70, 4)), sample_weight=weight),
        clone(forest).fit(X.tolist(), sample_weight=weight),
        pickle.loads(pickle.dumps(forest)),
        load(tmp_path / "model.dtrees"),
    ]
    for other in others:
        same(forest, other)
    assert others[-1].get_params() == forest.get_params()
    sparse = np.where(np.abs(X) < 0.7, 0.0, X)
    forest = clone(forest).fit(sparse, sample_weight=weight)
    for kind in (sp.csr_array, sp.csc_matrix):
        same(forest, clone(forest).fit(kind(sparse), sample_weight=weight))
        np.testing.assert_array_equal(forest.predict(kind(NEW)), forest.predict(NEW))


@pytest.mark.parametrize("table", [X, mixed_table()[0]], ids=["numbers", "mixed"])
@pytest.mark.parametrize("own", [{}, {"bootstrap": True, "max_samples": 40}, {"max_samples": 1.0}])
def test_a_warm_start_is_the_whole_fit(table, own):
    whole = IsolationForest(n_estimators=9, random_state=0, **own).fit(table)
    grown = IsolationForest(n_estimators=2, random_state=0, warm_start=True, **own).fit(table)
    grown.set_params(n_estimators=9).fit(table)
    for one, other in zip(whole.forest_, grown.forest_, strict=True):  # codes are of fewer rows
        for name in ("feature", "threshold", "subset_words", "statistics", "missing_go_to_left"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(whole.score_samples(table), grown.score_samples(table))


def test_words_and_missing_values():
    table, _ = mixed_table()
    forest = IsolationForest(n_estimators=30, random_state=0).fit(table)
    tests = {int(test) for tree in forest.forest_ for test in tree.test}
    assert len(tests) >= 3
    odd = table.iloc[[0, 1]].copy()
    odd.loc[odd.index[0], ["x", "k"]] = [40.0, 90]
    odd.loc[odd.index[1], "letter"] = "never seen"
    scores = forest.score_samples(odd)
    assert scores[0] < np.quantile(forest.score_samples(table), 0.1)
    assert np.isfinite(scores).all()
    with pytest.raises(ValueError, match="never seen"):
        clone(forest).set_params(handle_unknown="error").fit(table).predict(odd)
    only = IsolationForest(categorical_features=[3], random_state=0).fit(X)
    assert only.codebook_.categories.keys() == {3}


def test_ids_are_not_used():
    table = pd.DataFrame({"id": [f"row {i}" for i in range(600)], "x": X[:, 0], "y": X[:, 1]})
    with pytest.warns(UserWarning, match="Is this an id"):
        forest = IsolationForest(n_estimators=20, random_state=0).fit(table)
    assert 0 not in {int(own) for tree in forest.forest_ for own in tree.feature}
    assert {own.tolist() == [1, 2] for own in forest.estimators_features_} == {True}
    with pytest.warns(UserWarning, match="Is this an id"):
        one = IsolationForest(n_estimators=20, max_features=1, random_state=0).fit(table)
    assert {int(own) for each in one.estimators_features_ for own in each} == {1, 2}


def test_constant_columns_are_not_split():
    forest = IsolationForest(n_estimators=20, random_state=0).fit(STAIRS)
    assert {int(own) for tree in forest.forest_ for own in tree.feature} <= {0, -2}
    alone = IsolationForest(random_state=0).fit(np.ones((50, 2)))
    assert all(tree.node_count == 1 for tree in alone.forest_)
    np.testing.assert_allclose(alone.score_samples(np.ones((3, 2))), -0.5)
    np.testing.assert_array_equal(IsolationForest().fit([[1.0]]).score_samples([[2.0]]), [-0.5])


@pytest.mark.one_of(2)
@pytest.mark.parametrize("bootstrap", [False, True])
def test_rows_are_drawn_by_their_weights(bootstrap):
    weights = np.array([0.0, 1.0, 2.0, 4.0])
    draws = DrawnRows(3, 1, 4, bootstrap, weights)
    drawn = [draws.of_tree(number) for number in range(7000)]
    times = np.bincount(np.concatenate([rows for rows, _ in drawn]), minlength=4)
    assert times[0] == 0
    assert abs(times / 1000 - weights).max() < 0.2
    forest = clone(FORESTS["plain"]).fit(X, sample_weight=WEIGHTS)
    assert forest.max_samples_ == 256
    with pytest.raises(AttributeError, match="drawn by their weights"):
        forest.estimators_samples_  # noqa: B018
    live = WEIGHTS > 0
    few = IsolationForest(max_samples=1.0, random_state=0).fit(X, sample_weight=WEIGHTS)
    assert few.max_samples_ == live.sum()


def test_draws_without_replacement_are_distinct():
    for n_rows in (1, 2, 17, 5000):
        for size in {1, (n_rows + 1) // 2, n_rows}:
            rows, times = DrawnRows(0, size, n_rows, False).of_tree(5)
            assert len(np.unique(rows)) == size
            assert set(rows.tolist()) <= set(range(n_rows))
            assert (times == 1).all()
    counts = np.zeros(50)
    for number in range(2000):
        counts[DrawnRows(0, 10, 50, False).of_tree(number)[0]] += 1
    assert abs(counts / 2000 - 0.2).max() < 0.04
    rows, times = DrawnRows(0, 30, 12, True).of_tree(0)
    assert times.sum() == 30


def test_contamination():
    forest = clone(FORESTS["outliers"]).fit(X)
    assert forest.offset_ == np.percentile(forest.score_samples(X), 2)
    assert (forest.predict(X) == -1).mean() == pytest.approx(0.02, abs=0.004)
    assert clone(FORESTS["plain"]).fit(X).offset_ == -0.5
    np.testing.assert_array_equal(forest.predict(X), clone(forest).fit_predict(X))


def test_dask_collections_are_answered_lazily():
    forest = clone(FORESTS["plain"]).fit(pd.DataFrame(X, columns=list("abcd")))
    new = pd.DataFrame(NEW, columns=list("abcd"))
    for method in ("predict", "decision_function", "score_samples"):
        lazy = getattr(forest, method)(dd.from_pandas(new, npartitions=3))
        expected = getattr(forest, method)(new)
        np.testing.assert_array_equal(lazy.compute(scheduler="sync"), expected)
        assert lazy.dtype == expected.dtype
    assert forest.feature_names_in_.tolist() == list("abcd")


@pytest.mark.one_of(6)
@pytest.mark.parametrize("table", [X, mixed_table(600)[0]], ids=["numbers", "mixed"])
@pytest.mark.parametrize("name", FORESTS)
def test_of_a_collection_the_drawn_rows_come(name, table):
    forest = clone(FORESTS[name]).fit(table, sample_weight=WEIGHTS)
    if table is X:
        arrays = [da.from_array(X, chunks=((100, 0, 250, 250), 4))]
        arrays.append(arrays[0].map_blocks(sp.csr_matrix))
        unknown = da.from_array(X, chunks=((100, 250, 250), 4))
        arrays.append(unknown[unknown[:, 0] > -99])
    else:
        arrays = [dd.from_pandas(table, npartitions=4)]
    with dask.config.set(scheduler="sync"):
        for lazy in arrays:
            weights = da.from_array(WEIGHTS, chunks=77)
            other = clone(forest).fit(lazy, sample_weight=weights)
            same(forest, other, table[:50])
            assert other.fit_report_["seconds"].keys() == {"coding", "growth", "reading"}


def test_trees_are_inspected_like_others():
    forest = clone(FORESTS["plain"]).fit(X)
    mean = np.mean([tree.predict(NEW) for tree in forest], axis=0)
    scores = -(2.0 ** -(mean / average_length(np.array([256]))[0]))
    np.testing.assert_allclose(forest.score_samples(NEW), scores, rtol=1e-12)
    parts = forest.predict_contributions(NEW)
    np.testing.assert_allclose(parts.sum(axis=1), mean, rtol=1e-9)
    assert proximities(forest, NEW).shape == (50, 50)
    assert outlier_scores(forest, X)[:6].mean() > outlier_scores(forest, X)[6:].mean()
    pipe = make_pipeline(StandardScaler(), clone(forest)).fit(X)
    assert pipe.score_samples(NEW).shape == (50,)
    assert forest.fit_report_["seconds"].keys() == {"coding", "growth"}
    assert [tree.max_depth for tree in forest] == [8] * 12


def test_values_of_inner_nodes_are_means_of_their_rows():
    forest = IsolationForest(n_estimators=3, max_samples=1.0, random_state=0).fit(X)
    for tree in forest.forest_:
        inner = np.flatnonzero(tree.test != LEAF)
        left, right = tree.children_left[inner], tree.children_right[inner]
        weight = tree.weighted_n_node_samples
        both = weight[left] * tree.value[left, 0] + weight[right] * tree.value[right, 0]
        np.testing.assert_allclose(tree.value[inner, 0], both / weight[inner], rtol=1e-12)
        assert (tree.value[tree.test == LEAF, 0] >= tree.depth[tree.test == LEAF]).all()


def test_errors():
    with pytest.raises(NotFittedError):
        IsolationForest().predict(NEW)
    for wrong in ({"max_samples": 0.0}, {"contamination": 0.6}, {"max_features": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            IsolationForest(**wrong).fit(X)
    with pytest.raises(ValueError, match="max_features must be <= n_features=4"):
        IsolationForest(max_features=5).fit(X)
    with pytest.warns(UserWarning, match="max_samples will be set to n_samples"):
        assert IsolationForest(max_samples=1000).fit(X).max_samples_ == 600
    with pytest.raises(ValueError, match="sample_weight"):
        IsolationForest().fit(X, sample_weight=np.zeros(600))
    forest = clone(FORESTS["plain"]).set_params(warm_start=True).fit(X)
    with pytest.raises(ValueError, match="n_estimators=3 must be larger"):
        forest.set_params(n_estimators=3).fit(X)
    with pytest.raises(ValueError, match="X had 4 columns and has 2"):
        forest.set_params(n_estimators=20).fit(X[:, :2])


@pytest.mark.parametrize(
    "damage",
    [{"offset_": 1.0}, {"max_samples_": 0}, {"_fit_seed": -1}, {"offset_": None}],
    ids=str,
)
def test_damaged_files_are_refused(damage):
    parts = clone(FORESTS["plain"]).fit(X)._parts()
    IsolationForest._check_parts(parts)
    parts.attributes.update(damage)
    with pytest.raises(ValueError, match=next(iter(damage))):
        IsolationForest._check_parts(parts)
