"""The partitioned regime without a cluster: rounds of blocks on threads give the same models."""

from __future__ import annotations

import pickle
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar

import dask
import numpy as np
import pytest
import scipy.sparse
from sklearn.model_selection import KFold

import dtrees
from dtrees.core.grow.local_blocks import LocalBlocks
from dtrees.core.stores.blocks._node_counts import N
from dtrees.core.stores.blocks.block import Resolution
from dtrees.core.stores.blocks.messages import Counts, HistogramRequest, SplitUpdate
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import cross_validate
from dtrees.parallel import coded_partitions, local_partitioned, memory
from tests.parallel.clusters import digest

N_ROWS = 900


@pytest.fixture
def rounds():
    """Nodes are spread until they are small, and histograms of a round are few."""
    how = {"regime": "partitioned", "gather-rows": 60, "histogram-budget": 200_000}
    with dask.config.set({f"dtrees.{name}": value for name, value in how.items()}):
        yield


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 5] = rng.integers(0, 9, N_ROWS)
    signal = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2])
    return X, np.digitize(signal + rng.normal(size=N_ROWS), [-0.5, 0.8])


MODELS = {
    "tree": dtrees.DecisionTreeClassifier(categorical_features=[5]),
    "leaves": dtrees.DecisionTreeRegressor(max_leaf_nodes=12, ccp_alpha=0.001),
    "entropy": dtrees.RandomForestClassifier(3, criterion="entropy", random_state=1),
    "balanced": dtrees.RandomForestClassifier(3, class_weight="balanced_subsample", random_state=2),
    "shares": dtrees.RandomForestRegressor(
        3, min_samples_leaf=0.01, min_weight_fraction_leaf=0.02, max_features=2, random_state=0
    ),
    "deviance": dtrees.RandomForestRegressor(3, criterion="poisson", random_state=3),
    "cuts": dtrees.ExtraTreesClassifier(3, random_state=4),
    "balanced tree": dtrees.DecisionTreeClassifier(class_weight="balanced", min_samples_leaf=3),
    "dict": dtrees.DecisionTreeClassifier(class_weight={0: 2.0, 2: 0.3}),
    "small bags": dtrees.RandomForestClassifier(9, max_samples=1, random_state=5),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_fits(model, weighted, table, rounds):
    report = fitted_in_rounds(model, weighted, table)
    assert model == "small bags" or report["rounds"] > 1
    assert "code_rounds" not in report


def fitted_in_rounds(model, weighted, table):
    """The report of a fit in rounds, whose model is that of a local one."""
    X, y = table
    weight = np.random.default_rng(1).integers(0, 4, N_ROWS) * 0.3 if weighted else None
    found = MODELS[model].fit(X, y, sample_weight=weight)
    trees, report = digest(trees_of(found)), found.fit_report_
    assert report["regime"] == "partitioned"
    with dask.config.set({"dtrees.regime": "local"}):
        assert digest(trees_of(MODELS[model].fit(X, y, sample_weight=weight))) == trees
    return report


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("model", "n_folds"), [*((model, 3) for model in MODELS), ("tree", 67), ("entropy", 67)]
)
def test_cross_validation(model, n_folds, table, rounds):
    X, y = table
    arguments = {"cv": KFold(n_folds), "return_estimator": True}
    found = cross_validate(MODELS[model], X, y, **arguments)
    with dask.config.set({"dtrees.regime": "local"}):
        expected = cross_validate(MODELS[model], X, y, **arguments)
    np.testing.assert_array_equal(found["test_score"], expected["test_score"])
    for mine, other in zip(found["estimator"], expected["estimator"], strict=True):
        assert digest(trees_of(mine)) == digest(trees_of(other))
    report = found["final_estimator"].fit_report_
    if model not in ("small bags", "balanced"):  # of a row each; drawn for each set
        assert report["shared_rows"] > n_folds * N_ROWS / 20


def test_nodes_that_lack_rows_of_a_block(rounds, monkeypatch):
    """A class that weighs nothing, and rows in order: blocks have no row of many gathered nodes."""
    monkeypatch.setattr(coded_partitions, "PART_BYTES", 600)
    rng, number = np.random.default_rng(0), np.arange(N_ROWS)
    X = np.column_stack([number, rng.normal(size=(N_ROWS, 5))])
    y = np.digitize(np.sin(number / 40) + rng.normal(size=N_ROWS) * 0.3, [-0.5, 0.5])
    model = dtrees.RandomForestClassifier(3, class_weight={0: 0.0, 1: 1.0, 2: 2.5}, random_state=1)
    arguments = {"cv": KFold(3, shuffle=True, random_state=0), "return_estimator": True}
    found = cross_validate(model, X, y, **arguments)
    assert found["final_estimator"].fit_report_["rounds"] > 0
    with dask.config.set({"dtrees.regime": "local"}):
        expected = cross_validate(model, X, y, **arguments)
    for mine, other in zip(found["estimator"], expected["estimator"], strict=True):
        assert digest(trees_of(mine)) == digest(trees_of(other))


@pytest.mark.parametrize("model", ["tree", "leaves", "balanced", "deviance", "small bags"])
def test_tables_of_few_rows(model, table):
    """They are gathered as they are: no round."""
    X, y = table
    with dask.config.set({"dtrees.regime": "partitioned"}):
        found = digest(trees_of(MODELS[model].fit(X, y)))
        report = cross_validate(MODELS[model], X, y, cv=3)["final_estimator"].fit_report_
    assert found == digest(trees_of(MODELS[model].fit(X, y)))
    assert report["regime"] == "partitioned"
    assert report["rounds"] == 0
    assert (report["shared_nodes"] > 0) == (model not in ("small bags", "balanced"))


@pytest.mark.parametrize("kind", ["halves", "tenths"])
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_weights_of_several_units(criterion, kind, table):
    """A weight of 1,000 is in all sets but one. Sets of one unit share rounds, in any case."""
    X, y = table
    weight = np.random.default_rng(2).integers(1, 9, N_ROWS) * {"halves": 0.5, "tenths": 0.1}[kind]
    weight[0] = 1000.0
    is_classifier = criterion == "gini"
    tree = dtrees.DecisionTreeClassifier if is_classifier else dtrees.DecisionTreeRegressor
    how = {"cv": KFold(4), "return_estimator": True, "params": {"sample_weight": weight}}
    with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 0}):
        found = cross_validate(tree(max_depth=4), X, y, **how)
    expected = cross_validate(tree(max_depth=4), X, y, **how)
    for mine, other in zip(found["estimator"], expected["estimator"], strict=True):
        assert digest(trees_of(mine)) == digest(trees_of(other))
    report = found["final_estimator"].fit_report_
    n_growths = 1 if (criterion, kind) == ("gini", "halves") else 2
    assert report["rounds"] <= n_growths * 5
    assert report["shared_nodes"] > 0


def test_the_report_is_not_part_of_the_model(table):
    X, y = table
    tree = dtrees.DecisionTreeClassifier().fit(X, y)
    assert tree.fit_report_["regime"] == "local"
    assert set(tree.fit_report_["seconds"]) == {"coding", "growth"}
    with pytest.raises(AttributeError, match="no fit_report_"):
        pickle.loads(pickle.dumps(tree)).fit_report_  # noqa: B018


def test_columns_of_many_codes_that_are_sparse(rounds):
    """Their stored cells are counted, so a column may have any number of codes."""
    X = np.arange(70_000.0)[:, None]
    y = X[:, 0] % 1000 > 300
    found = dtrees.DecisionTreeClassifier(max_depth=3).fit(scipy.sparse.csr_array(X), y)
    assert found.fit_report_["rounds"] > 1
    with dask.config.set({"dtrees.regime": "local"}):
        alone = dtrees.DecisionTreeClassifier(max_depth=3).fit(scipy.sparse.csr_array(X), y)
    assert digest(trees_of(alone)) == digest(trees_of(found))


@pytest.mark.parametrize("model", ["classes", "numbers"])
def test_columns_of_more_than_65535_codes(model):
    """Second requests happen, of a column or two of a node, and of few of their codes."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(70_000), rng.normal(size=(70_000, 3))])
    X[::50, 1] = np.nan
    signal = X[:, 0] / 20_000 + np.nan_to_num(X[:, 1]) + rng.normal(size=len(X)) / 3
    if model == "classes":
        fit = dtrees.DecisionTreeClassifier(max_depth=3).fit
        y = np.digitize(signal, [1.0, 2.5])
    else:
        fit = dtrees.DecisionTreeRegressor(max_depth=3).fit
        y = signal
    with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 0}):
        found = fit(X, y)
        trees, report = digest(trees_of(found)), found.fit_report_
    assert report["rounds"] == 4
    assert report["code_rounds"] == 3
    assert 7 <= report["code_requests"] <= 14
    with dask.config.set({"dtrees.regime": "local"}):
        assert digest(trees_of(fit(X, y))) == trees


@pytest.fixture
def coarse(monkeypatch):
    """Columns of a few codes are counted by a few intervals, those of categories listed."""
    monkeypatch.setattr(memory, "RESOLUTION", Resolution(8, 20, 5))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_fits_by_intervals(model, weighted, table, rounds, coarse):
    report = fitted_in_rounds(model, weighted, table)
    if model not in ("entropy", "cuts", "small bags"):  # the first two have no bounds
        assert report["code_requests"] > report["code_rounds"] > 1


@pytest.mark.one_of(2)
@pytest.mark.parametrize("model", MODELS)
def test_cross_validation_by_intervals(model, table, rounds, coarse):
    test_cross_validation(model, 3, table, nullcontext())


class Recorded(LocalBlocks):
    """Blocks that write down what they are asked for in a round, and what they answer."""

    rounds: ClassVar[list[Round]] = []
    n_codes: ClassVar[np.ndarray]

    def count(self, update, requests):
        counts = super().count(update, requests)
        type(self).n_codes = self._given[0].coded.n_codes
        ends = np.cumsum([request.members.bit_count() for request in requests])
        n_rows = [int(rows[:, N].sum()) for rows in np.split(counts.sums, ends[:-1])]
        self.rounds.append(Round(update, {r.node: r for r in requests}, n_rows, counts))
        return counts


@dataclass(frozen=True)
class Round:
    """An update, the nodes that are asked for after it, their rows (of all sets), the answer."""

    update: SplitUpdate
    requests: dict[int, HistogramRequest]
    n_rows: list[int]
    counts: Counts

    def rows_of(self, node):
        return self.n_rows[list(self.requests).index(node)]


class TestRequests:
    """What a round asks for, and so what is counted, sent and added up."""

    @pytest.fixture
    def recorded(self, monkeypatch):
        monkeypatch.setattr(local_partitioned, "LocalBlocks", Recorded)
        monkeypatch.setattr(Recorded, "rounds", [])
        with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 20}):
            yield Recorded.rounds

    def forest(self, **parameters):
        return dtrees.RandomForestClassifier(3, max_bins=16, random_state=0, **parameters)

    def assert_nothing_else_is_sent(self, rounds):
        """Cells of the columns that were asked for, and no others: a few numbers for each code."""
        strides = set()
        for each in rounds:
            asked = [
                request.members.bit_count() * (Recorded.n_codes[request.columns] + 1).sum()
                for request in each.requests.values()
            ]
            strides.add(each.counts.histogram.size / sum(asked))
        assert strides == {1 + 3}  # rows, and the weights of three classes

    def test_drawn_columns(self, recorded, table):
        X, y = table
        model = self.forest(max_features=2).fit(X, y)
        self.assert_nothing_else_is_sent(recorded)
        asked = defaultdict(list)
        for each in recorded:
            for node, request in each.requests.items():
                assert len(request.columns) == 2, "not the draw of a node"
                asked[node] += request.columns.tolist()
        splits = [split for each in recorded for split in each.update.splits]
        assert len(splits) > 50
        assert all(split.column in asked[split.node] for split in splits)
        assert set().union(*asked.values()) == set(range(6))  # nodes draw apart from each other
        with dask.config.set({"dtrees.regime": "local"}):
            alone = self.forest(max_features=2).fit(X, y)
        assert digest(model.forest_.trees) == digest(alone.forest_.trees)

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("model", ["tree", "drawn", "regression"])
    def test_stored_cells_of_sparse_columns(self, model, recorded):
        """A few numbers for each cell of the rows of a node, however many columns there are."""
        X = scipy.sparse.random_array((N_ROWS, 3000), density=0.002, rng=4, format="csr")
        y = (X.sum(axis=1) > 2.5).astype(int) + (X[:, [7]].toarray().ravel() > 0)
        how = {"max_bins": 16, "random_state": 0}
        model = {
            "tree": dtrees.DecisionTreeClassifier(**how),
            "drawn": dtrees.RandomForestClassifier(3, **how),
            "regression": dtrees.DecisionTreeRegressor(**how),
        }[model]
        found = model.fit(X, y)
        assert len(recorded) > 5
        per_row = np.diff(X.indptr).max()
        for each in recorded:
            assert each.counts.histogram.size == 0
            assert len(each.counts.stored.places) <= 3 * per_row * sum(each.n_rows)
            assert len(each.counts.stored.places) <= 3 * len(each.requests) * X.nnz
        assert any(len(each.counts.stored.places) > 0 for each in recorded)
        trees = digest(trees_of(found))
        with dask.config.set({"dtrees.regime": "local"}):
            assert digest(trees_of(model.fit(X, y))) == trees

    @pytest.mark.parametrize("folds", [False, True])
    def test_one_of_two_siblings(self, folds, recorded, table):
        X, y = table
        model = self.forest(max_features=None)
        if folds:
            cross_validate(model, X, y, cv=KFold(4, shuffle=True, random_state=0))
        else:
            model.fit(X, y)
        self.assert_nothing_else_is_sent(recorded)
        n_pairs = 0
        for each in recorded:
            children = set()
            for split in each.update.splits:
                pair = [n for n in (split.left, split.right) if n in each.requests]
                children.update(pair)
                asked = {node: each.requests[node].columns for node in pair}
                n_asked = [6 if columns is None else len(columns) for columns in asked.values()]
                if len(pair) == 2:
                    n_pairs += 1
                    assert sorted(n_asked) == [0, 6]
                    small, large = sorted(pair, key=lambda node: asked[node] is not None)
                    assert each.rows_of(small) <= each.rows_of(large)
                else:
                    assert n_asked in ([], [6])  # the other one is gathered
            assert each is recorded[0] or children == set(each.requests)
        assert n_pairs > 20
