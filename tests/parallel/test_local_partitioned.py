"""The partitioned regime without a cluster: rounds of blocks on threads give the same models."""

from __future__ import annotations

import pickle
from collections import defaultdict
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
from dtrees.core.stores.blocks.messages import Counts, HistogramRequest, SplitUpdate
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import cross_validate
from dtrees.parallel import local_partitioned
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
    "small bags": dtrees.RandomForestClassifier(9, max_samples=1, random_state=5),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_fits(model, weighted, table, rounds):
    X, y = table
    weight = np.random.default_rng(1).integers(0, 4, N_ROWS) * 0.3 if weighted else None
    found = MODELS[model].fit(X, y, sample_weight=weight)
    assert found.fit_report_["regime"] == "partitioned"
    assert model == "small bags" or found.fit_report_["rounds"] > 1
    trees = digest(trees_of(found))
    with dask.config.set({"dtrees.regime": "local"}):
        assert digest(trees_of(MODELS[model].fit(X, y, sample_weight=weight))) == trees


@pytest.mark.one_of(3)
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


def test_too_many_codes_for_histograms(rounds):
    X = np.arange(70_000.0)[:, None]
    y = X[:, 0] > 30_000
    with pytest.raises(ValueError, match=r"Column 0 has 70000 distinct .* Set max_bins=255"):
        dtrees.DecisionTreeClassifier().fit(X, y)
    assert dtrees.DecisionTreeClassifier(max_bins=255).fit(X, y).score(X, y) > 0.99


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
