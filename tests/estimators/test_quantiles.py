"""Quantiles of trees and forests against weights that are counted row by row."""

import pickle
from fractions import Fraction

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dtrees import (
    AdaBoostRegressor,
    BaggingRegressor,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.export import load, save
from dtrees.model_selection import GridSearchCV, cross_validate
from tests.estimators.forest_cases import mixed_table

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)).round(1)
Y = (X[:, 0] * 4 + RNG.normal(size=300)).round(1)
NEW = RNG.normal(size=(40, 4)).round(1)
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.25], 300)
TIMES = RNG.integers(0, 4, 300)
Q = [0.9, 0.0, 0.25, 0.5, 1.0]
FORESTS = {
    "forest": RandomForestRegressor(7, min_samples_leaf=3, keep_rows=True, random_state=0),
    "extra trees": ExtraTreesRegressor(7, max_depth=3, keep_rows=True, random_state=0),
    "pasted": BaggingRegressor(5, bootstrap=False, max_samples=0.5, keep_rows=True, random_state=1),
    "one leaf": RandomForestRegressor(3, max_depth=1, keep_rows=True, random_state=2),
    "pruned": RandomForestRegressor(4, max_leaf_nodes=9, keep_rows=True, random_state=3),
}
TREE = DecisionTreeRegressor(min_samples_leaf=8, keep_rows=True)
ALL = {**FORESTS, "tree": TREE}


def weights_of_rows(model, rows, X, y, sample_weight=None, groups=None):
    """Weights of the rows of a fit for new rows, as fractions: a list of lists."""
    leaves, theirs = (np.reshape(model.apply(own), (len(own), -1)) for own in (X, rows))
    ones = np.ones(len(y), dtype=np.int64)
    in_trees = [ones] * leaves.shape[1]
    if isinstance(model, DecisionTreeRegressor) or not (model.bootstrap or model.max_samples):
        if sample_weight is not None:
            in_trees = [sample_weight] * leaves.shape[1]
    else:
        in_trees = [own for _, own in model._rows_by_bag(y, sample_weight, groups)[1]]
    found = [[Fraction(0)] * len(y) for _ in range(len(rows))]
    for i in range(len(rows)):
        for t, own in enumerate(in_trees):
            inside = np.flatnonzero((leaves[:, t] == theirs[i, t]) & (own > 0))
            total = sum(Fraction(float(own[j])) for j in inside)
            for j in inside:
                found[i][j] += Fraction(float(own[j])) / total / len(in_trees)
    return found


def quantiles(weights, y, shares):
    """The least targets up to which rows weigh so much."""
    order = np.argsort(y, kind="stable")
    found = np.empty((len(weights), len(shares)))
    for i, own in enumerate(weights):
        for k, share in enumerate(shares):
            upto = Fraction(0)
            for j in order:
                upto += own[j]
                if upto > 0 and upto >= Fraction(str(share)):
                    found[i, k] = y[j]
                    break
    return found


def same_quantiles(one, other, rows=NEW):
    np.testing.assert_array_equal(one.predict_quantiles(rows, Q), other.predict_quantiles(rows, Q))
    values = [-1.0, 0.0, 2.5]
    np.testing.assert_array_equal(one.predict_cdf(rows, values), other.predict_cdf(rows, values))


@pytest.mark.one_of(6)
@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("name", ALL)
def test_the_oracle(name, weight):
    model = clone(ALL[name]).fit(X, Y, weight)
    weights = weights_of_rows(model, NEW, X, Y, weight)
    np.testing.assert_array_equal(model.predict_quantiles(NEW, Q), quantiles(weights, Y, Q))
    np.testing.assert_array_equal(model.predict_quantiles(NEW), quantiles(weights, Y, [0.5])[:, 0])
    values = np.array([3.0, -2.0, 0.05, np.inf, -np.inf])
    shares = np.array(weights, dtype=float) @ (Y[:, None] <= values)
    np.testing.assert_allclose(model.predict_cdf(NEW, values), shares, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(model.predict_cdf(NEW, 3.0), model.predict_cdf(NEW, values)[:, 0])


@pytest.mark.parametrize("name", ALL)
def test_what_is_predicted_is_the_mean_of_the_distribution(name):
    model = clone(ALL[name]).fit(X, Y)
    targets = np.unique(Y)
    shares = np.diff(model.predict_cdf(NEW, targets), prepend=0)
    np.testing.assert_allclose(shares @ targets, model.predict(NEW), rtol=1e-12, atol=1e-12)
    assert (model.predict_cdf(NEW, targets[-1]) == 1).all()


def test_groups_are_in_bags_together():
    groups = np.arange(300) // 7
    forest = clone(FORESTS["forest"]).fit(X, Y, bootstrap_groups=groups)
    expected = quantiles(weights_of_rows(forest, NEW, X, Y, None, groups), Y, Q)
    np.testing.assert_array_equal(forest.predict_quantiles(NEW, Q), expected)


@pytest.mark.parametrize("targets", ["many", "two", "long tail", "one"])
def test_leaves_of_many_rows(targets):
    rng = np.random.default_rng(1)
    X, noise = rng.normal(size=(4000, 3)), rng.normal(size=4000)
    y = {"many": noise, "two": np.sign(noise), "long tail": np.exp(5 * noise), "one": 0 * noise}
    y = y[targets] + 0.0
    shares = np.linspace(0, 1, 41)
    forest = ExtraTreesRegressor(5, max_depth=2, keep_rows=True, random_state=0).fit(X, y)
    targets, found = np.unique(y), forest.predict_quantiles(X[:9], shares)
    cdf = forest.predict_cdf(X[:9], targets)
    expected = [[targets[np.argmax(own >= max(q - 1e-13, 1e-300))] for q in shares] for own in cdf]
    np.testing.assert_array_equal(found, expected)
    assert (np.diff(found, axis=1) >= 0).all()


@pytest.mark.parametrize("name", ["extra trees", "tree"])
def test_weights_are_repeats(name):
    model = clone(ALL[name]).set_params(max_bins=None)
    if name == "tree":
        model.set_params(min_samples_leaf=1, max_depth=4)
    repeated = np.repeat(np.arange(300), TIMES)
    weighed = clone(model).fit(X, Y, TIMES)
    same_quantiles(weighed, model.fit(X[repeated], Y[repeated]))
    same_quantiles(weighed, clone(model).fit(X, Y, 3.0 * TIMES))


def test_the_order_of_rows_is_no_matter():
    mixed = RNG.permutation(300)
    same_quantiles(
        clone(TREE).fit(X, Y, WEIGHTS), clone(TREE).fit(X[mixed], Y[mixed], WEIGHTS[mixed])
    )


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ALL)
def test_the_same_bits_everywhere(name, tmp_path):
    model = clone(ALL[name]).fit(X, Y, WEIGHTS)
    others = [clone(model).fit(sp.csr_array(X), Y, WEIGHTS), pickle.loads(pickle.dumps(model))]
    others.append(clone(model).set_params(n_jobs=2).fit(X, Y, WEIGHTS))
    lazy = da.from_array(X, chunks=(70, 4))
    others.append(clone(model).fit(lazy, da.from_array(Y, chunks=41), WEIGHTS))
    save(model, tmp_path / "model.dtrees")
    others.append(load(tmp_path / "model.dtrees"))
    many = np.tile(NEW, (250, 1))
    for other in others:
        same_quantiles(model, other)
        same_quantiles(model, other, many)
    same_quantiles(model, model, sp.csr_array(NEW))
    found = model.predict_quantiles(NEW, Q)
    each = [model.predict_quantiles(NEW[i : i + 1], Q) for i in range(len(NEW))]
    np.testing.assert_array_equal(np.concatenate(each), found)


@pytest.mark.parametrize("name", ["forest", "extra trees", "tree"])
def test_the_same_bits_of_rounds(name):
    model = clone(ALL[name]).fit(X, Y, WEIGHTS)
    rounds = {"dtrees.regime": "partitioned", "dtrees.gather-rows": 60, "scheduler": "threads"}
    lazy = da.from_array(X, chunks=(70, 4)), da.from_array(Y, chunks=41)
    with dask.config.set(rounds):
        same_quantiles(model, clone(model).fit(X, Y, WEIGHTS))
        other = clone(model).fit(*lazy, da.from_array(WEIGHTS, chunks=99))
    assert other.fit_report_["regime"] == "partitioned"
    same_quantiles(model, other)


@pytest.mark.parametrize("name", ALL)
def test_models_of_folds_keep_their_own_rows(name):
    cv, model = KFold(3), ALL[name]
    found = cross_validate(model, X, Y, cv=cv, return_estimator=True)["estimator"]
    for (train, _), own in zip(cv.split(X), found, strict=True):
        inside = np.zeros(300)
        inside[train] = 1
        same_quantiles(own, clone(model).fit(X, Y, inside))
    search = GridSearchCV(model, {"max_depth": [2, 3]}, cv=cv).fit(X, Y)
    best = clone(search.best_estimator_).fit(X, Y)
    same_quantiles(search.best_estimator_, best)


def test_a_forest_that_stops_keeps_the_rows_of_its_trees():
    forest = clone(FORESTS["forest"]).set_params(n_estimators=60, oob_tol=0.05).fit(X, Y)
    enough = clone(FORESTS["forest"]).set_params(n_estimators=forest.n_estimators_).fit(X, Y)
    assert forest.n_estimators_ < 60
    same_quantiles(forest, enough)


@pytest.mark.parametrize("name", ["forest", "extra trees", "pasted"])
def test_a_warm_start_is_the_whole_fit(name):
    whole = clone(FORESTS[name]).fit(X, Y)
    grown = clone(FORESTS[name]).set_params(n_estimators=2, warm_start=True).fit(X, Y)
    same_quantiles(grown.set_params(n_estimators=whole.n_estimators).fit(X, Y), whole)
    grown = clone(FORESTS[name]).set_params(n_estimators=2, warm_start=True, keep_rows=False)
    grown.fit(X, Y).set_params(n_estimators=whole.n_estimators, keep_rows=True)
    same_quantiles(grown.fit(X, Y), whole)


def test_a_warm_start_with_other_rows_is_refused():
    forest = clone(FORESTS["extra trees"]).set_params(warm_start=True).fit(X, Y)
    before = forest.predict_quantiles(NEW, Q)
    with pytest.raises(ValueError, match="needs the rows that all trees were grown from"):
        forest.set_params(n_estimators=9).fit(X[:200], Y[:200])
    np.testing.assert_array_equal(forest.predict_quantiles(NEW, Q), before)
    forest = clone(FORESTS["forest"]).set_params(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="bags were drawn otherwise"):
        forest.set_params(n_estimators=9).fit(X[:200], Y[:200])


def test_a_checkpoint_has_no_rows_and_needs_none(tmp_path):
    forest = clone(FORESTS["forest"]).set_params(n_estimators=3).fit(X, Y, checkpoint=tmp_path)
    whole = clone(FORESTS["forest"]).fit(X, Y)
    same_quantiles(forest.set_params(n_estimators=7).fit(X, Y, checkpoint=tmp_path), whole)


def test_words_and_missing_values():
    table, _ = mixed_table()
    y = np.nan_to_num(table["x"].to_numpy()) + (table["letter"] == "a")
    forest = clone(FORESTS["forest"]).fit(table, y)
    weights = weights_of_rows(forest, table[:15], table, y.to_numpy())
    np.testing.assert_array_equal(
        forest.predict_quantiles(table[:15], Q), quantiles(weights, y.to_numpy(), Q)
    )
    pipe = make_pipeline(FunctionTransformer(), clone(forest)).fit(table, y)
    same_quantiles(pipe[-1], forest, table)


def test_dask_collections_are_answered_lazily():
    forest = clone(FORESTS["forest"]).fit(pd.DataFrame(X, columns=list("abcd")), Y)
    new = pd.DataFrame(NEW, columns=list("abcd"))
    lazy = forest.predict_quantiles(dd.from_pandas(new, npartitions=3), [0.1, 0.5])
    assert list(lazy.columns) == [0.1, 0.5]
    expected = forest.predict_quantiles(new, [0.1, 0.5])
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), expected)
    one = forest.predict_cdf(dd.from_pandas(new, npartitions=3), 1.0).compute(scheduler="sync")
    np.testing.assert_array_equal(one, forest.predict_cdf(new, 1.0))
    tree = clone(TREE).fit(X, Y)
    lazy = tree.predict_quantiles(da.from_array(NEW, chunks=(13, 4)), Q)
    assert lazy.shape == (40, 5)
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), tree.predict_quantiles(NEW, Q))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("name", ["forest", "tree"])
def test_several_targets(name, weight, tmp_path):
    """Each has the rows of the same leaves, also on partitions, of folds and from a file."""
    both, values = np.c_[Y, np.round(X[:, 1])], [-1.0, 0.5]
    model = clone(ALL[name]).fit(X, both, weight)
    weights = weights_of_rows(model, NEW, X, Y, weight)
    found, shares = model.predict_quantiles(NEW, Q), model.predict_cdf(NEW, values)
    assert model.predict_quantiles(NEW, 0.25).tolist() == found[:, :, 2].tolist()
    for k, own in enumerate(both.T):
        np.testing.assert_array_equal(found[:, k], quantiles(weights, own, Q))
        np.testing.assert_array_equal(model.of_target(k).predict_quantiles(NEW, Q), found[:, k])
        np.testing.assert_array_equal(model.of_target(k).predict_cdf(NEW, values), shares[:, k])
    save(model, tmp_path / "model.dtrees")
    others = [load(tmp_path / "model.dtrees"), clone(model).set_params(n_jobs=2)]
    others[1].fit(sp.csr_array(X), both, weight)
    with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 60}):
        others.append(clone(model).fit(X, both, weight))
    for other in others:
        same_quantiles(model, other)
    for lazy in (da.from_array(NEW, chunks=(13, 4)), dd.from_pandas(pd.DataFrame(NEW), 3)):
        names = None if isinstance(lazy, da.Array) else list(lazy.columns)
        own = model if names is None else clone(model).fit(pd.DataFrame(X), both, weight)
        answer = own.predict_quantiles(lazy, Q).compute(scheduler="sync")
        np.testing.assert_array_equal(answer, found)
    parts = model._parts()
    parts.attributes["_row_starts"] = np.array([0, 10**9])
    with pytest.raises(ValueError, match="rows that are kept"):
        type(model)._check_parts(parts)


def test_models_of_folds_keep_the_rows_of_each_target():
    both, cv = np.c_[Y, Y**2], KFold(3)
    found = cross_validate(TREE, X, both, cv=cv, return_estimator=True)["estimator"]
    for (train, _), own in zip(cv.split(X), found, strict=True):
        same_quantiles(own, clone(TREE).fit(X, both, np.isin(np.arange(300), train) * 1.0))


def test_rows_take_few_bytes():
    forest = clone(FORESTS["forest"]).fit(X, Y)
    rows = sum(tree.n_node_samples[0] for tree in forest.forest_)
    assert forest._row_ranks.nbytes + forest._row_weights.nbytes == 6 * rows
    forest = clone(FORESTS["extra trees"]).fit(X, Y)
    assert forest._row_ranks.nbytes == 4 * 7 * 300
    assert not hasattr(forest, "_row_weights")
    assert not hasattr(forest.set_params(keep_rows=False).fit(X, Y), "_row_ranks")


@pytest.mark.parametrize("name", ALL)
def test_errors(name):
    model = clone(ALL[name])
    with pytest.raises(NotFittedError):
        model.predict_quantiles(NEW)
    model.set_params(keep_rows=False).fit(X, Y)
    for ask in (model.predict_quantiles, model.predict_cdf):
        with pytest.raises(ValueError, match="has kept no rows of its fit"):
            ask(NEW, 0.5)
    model.set_params(keep_rows=True).fit(X, Y)
    if hasattr(model, "forest_"):
        with pytest.raises(ValueError, match="of a forest, ask the forest"):
            model[0].predict_quantiles(NEW, 0.5)
    for q in (1.5, [-0.1, 0.5], [[0.5]], [np.nan], "much"):
        with pytest.raises(ValueError, match="q"):
            model.predict_quantiles(NEW, q)
    with pytest.raises(ValueError, match="values must be a number"):
        model.predict_cdf(NEW, [[0.0]])
    assert model.predict_quantiles(NEW, []).shape == (40, 0)
    assert model.predict_cdf(NEW, []).shape == (40, 0)
    with pytest.raises(ValueError, match="keep_rows"):
        model.set_params(keep_rows=3).fit(X, Y)


def test_only_numbers_have_quantiles():
    for kind in (RandomForestClassifier, AdaBoostRegressor):
        assert not hasattr(kind(), "predict_quantiles")
        assert "keep_rows" not in kind().get_params()


@pytest.mark.parametrize("name", ["forest", "extra trees", "tree"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda parts: parts.pop("_row_targets"),
        lambda parts: parts.update(_row_ranks=parts["_row_ranks"][:-1]),
        lambda parts: parts.update(_row_ranks=parts["_row_ranks"] + np.uint32(200)),
        lambda parts: parts.update(_row_weights=np.zeros(len(parts["_row_ranks"]), np.uint16)),
        lambda parts: parts.update(_row_weights=np.ones(3, np.uint16)),
    ],
)
def test_damaged_files_are_refused(name, damage):
    model = clone(ALL[name]).fit(X, Y)
    parts = model._parts()
    type(model)._check_parts(parts)
    damage(parts.attributes)
    with pytest.raises(ValueError, match=r"rows that are kept|no attribute"):
        type(model)._check_parts(parts)
