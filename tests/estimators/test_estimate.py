"""What `estimate_cost` says before a fit, and what the fit says after it."""

import doctest
from contextlib import nullcontext
from dataclasses import replace
from itertools import product

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from sklearn.base import clone

from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    estimate_cost,
)
from dtrees.estimators import estimate
from dtrees.exceptions import ClusterError, TableTooLargeError
from dtrees.model_selection import GridSearchCV, cross_validate
from dtrees.parallel.cost import CostModel
from dtrees.parallel.memory import bytes_of_boosting
from tests.pairs import parametrize_pairs
from tests.parallel.clusters import connect, ours

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 6))
Y = (X[:, 0] + RNG.normal(size=4000) > 0).astype(int)


def never(*_):
    raise AssertionError("a value was computed")


def test_the_example():
    results = doctest.testmod(estimate)
    assert results.attempted > 3
    assert results.failed == 0


def test_codes_are_those_of_the_fit():
    for max_bins, width in [(255, 1), (1000, 2), (None, 2)]:
        cost = estimate_cost(RandomForestClassifier(max_bins=max_bins), X)
        assert cost.code_bytes == X.size * width
        assert (cost.n_rows, cost.n_columns, cost.n_trees) == (4000, 6, 100)
        assert (cost.regime, cost.rounds, cost.bytes_moved) == ("local", 0, 0)


@pytest.mark.parametrize(
    ("table", "n_bytes"),
    [
        (X.tolist(), 4000 * 6 * 2),
        (sp.random(4000, 6, 0.1, "csr", random_state=0), 2400 * 8),
        (pd.DataFrame({"flag": X[:, 0] > 0, "word": ["a", "b"] * 2000, "x": X[:, 0]}), 4000 * 4),
        (pd.DataFrame({"c": pd.Categorical(["a", "b"] * 2000), "i": np.int8(1)}), 4000 * 3),
    ],
)
def test_types_of_columns_bound_the_codes(table, n_bytes):
    assert estimate_cost(DecisionTreeClassifier(), table).code_bytes == n_bytes


@pytest.mark.parametrize(
    ("n_columns", "max_features", "max_bins", "width"),
    [(33, 1.0, 255, 64), (7, 1.0, 255, 0), (33, 2, 255, 0), (33, 1.0, 256, 0)],
)
def test_codes_of_random_splits_by_row(n_columns, max_features, max_bins, width):
    table = np.zeros((1000, n_columns))
    columns = {"max_features": max_features, "max_bins": max_bins}
    drawn = estimate_cost(ExtraTreesRegressor(**columns), table)
    best = estimate_cost(RandomForestRegressor(bootstrap=False, **columns), table)
    assert drawn.bytes_per_worker == best.bytes_per_worker + width * 1000


def test_nothing_is_computed():
    lazy = da.from_array(X, chunks=(1000, 6)).map_blocks(never, dtype=float, meta=X[:0])
    cost = estimate_cost(RandomForestClassifier(), lazy)
    assert (cost.n_rows, cost.regime) == (4000, "local")
    frame = dd.from_pandas(pd.DataFrame(X).rename(columns=str), npartitions=3)
    assert estimate_cost(RandomForestClassifier(), frame).n_rows == 4000  # which nobody knew


def test_more_work_takes_longer():
    def seconds(model, table=X, **more):
        return estimate_cost(model, table, **more).total_seconds

    forest = RandomForestRegressor(n_jobs=1)
    assert seconds(RandomForestRegressor(1000, n_jobs=1)) > 5 * seconds(forest)
    assert seconds(RandomForestRegressor(n_jobs=4)) < seconds(forest) / 2
    assert seconds(RandomForestRegressor(max_depth=3, n_jobs=1)) < seconds(forest)
    assert seconds(forest, n_sets=11) > 5 * seconds(forest)
    assert seconds(forest, np.zeros((40_000, 6))) > 9 * seconds(forest)


def test_on_a_cluster():
    frame = da.from_array(X, chunks=(500, 6))
    forest = RandomForestClassifier(10, max_depth=4, random_state=0)
    with (
        connect(2, 1, False) as cluster,
        Client(cluster, set_as_default=False) as client,
        dask.config.set({"dtrees.gather-rows": 10, "dtrees.members": 2}),
    ):
        sent = estimate_cost(forest, X, client=client)
        assert (sent.regime, sent.n_workers, sent.n_threads) == ("replicated", 2, 2)
        assert sent.bytes_moved == 2 * (X.size + 16 * 4000)
        assert estimate_cost(forest, X).regime == "local"  # the client is not in force
        forest.set_params(regime="partitioned")
        cost = estimate_cost(forest, frame, client=client)
        with client.as_current():
            report = forest.fit(frame, Y).fit_report_
        assert ours(client) == []
    assert (cost.regime, cost.reason) == ("partitioned", "asked for")
    assert cost.regime == report["regime"]
    assert 0 < cost.rounds <= 2 * report["rounds"]
    assert cost.bytes_moved > 0
    assert cost.total_seconds > 0


def test_in_rounds_on_threads_of_this_process():
    """Nothing of what a cluster costs is in it."""
    dear = replace(CostModel(), target=1e3, byte=1e3, round=1e3, task=1e3, start=1e3)
    forest = RandomForestClassifier(10, n_jobs=2)
    local = estimate_cost(forest, X)
    with dask.config.set({"dtrees.regime": "partitioned"}):
        cost = estimate_cost(forest, X)
        assert estimate_cost(forest, X, model=dear) == cost
    assert cost.bytes_moved == 0
    assert "regime partitioned, on 2 threads of this process: asked for" in str(cost)
    assert cost.rounds == 1
    assert local.total_seconds < cost.total_seconds < 2 * local.total_seconds
    with connect(2, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        forest.set_params(regime="partitioned")
        with dask.config.set({"dtrees.members": 2}):
            sent = estimate_cost(forest, X, client=client)
        assert sent.bytes_moved > 0
        assert sent.total_seconds > cost.total_seconds + CostModel().start


def test_codes_that_are_too_many_for_a_worker(monkeypatch):
    frame = da.from_array(X, chunks=(500, 6))
    with connect(1, 1, False) as cluster, Client(cluster):
        monkeypatch.setattr("dtrees.parallel.tasks.Tasks.room", lambda self: 10_000)
        cost = estimate_cost(RandomForestClassifier(), frame)
    assert cost.regime == "partitioned"
    assert "more than" in cost.reason
    assert "regime partitioned, on 1 thread of 1 worker" in str(cost)


def test_in_words():
    lines = str(estimate_cost(RandomForestClassifier(n_jobs=2), X)).splitlines()
    one = str(estimate_cost(RandomForestClassifier(1), X[:, :1])).splitlines()
    assert one[0] == "4,000 rows x 1 column, 1 tree"
    assert one[2:4] == [
        "regime local, on 1 thread of this process: no client",
        "0 rounds, 1 pass, 0 B between processes",
    ]
    assert lines[0] == "4,000 rows x 6 columns, 100 trees"
    assert lines[2] == "regime local, on 2 threads of this process: no client"
    assert len(lines) == 5


def test_trees_in_sequence():
    """Each costs as much as the first one; what is done once is done once."""
    with dask.config.set({"dtrees.gather-rows": 100}):
        for kind in (AdaBoostClassifier, AdaBoostRegressor):
            one, ten = (estimate_cost(kind(n, regime="partitioned"), X) for n in (1, 10))
            assert (ten.n_trees, ten.rounds, ten.passes) == (10, 10 * one.rounds, 10 * one.passes)
            assert ten.bytes_per_worker == one.bytes_per_worker
            assert ten.seconds["coding"] == one.seconds["coding"]
            assert ten.seconds["rounds"] == 10 * one.seconds["rounds"] > 0
    assert estimate_cost(AdaBoostClassifier(), X).regime == "local"


def test_what_it_refuses():
    with pytest.raises(
        TypeError, match=r"'estimator' parameter of estimate_cost must be a tree, .* Got 3"
    ):
        estimate_cost(3, X)
    with pytest.raises(ValueError, match="max_depth"):
        estimate_cost(RandomForestClassifier(max_depth=0), X)
    with pytest.raises(ClusterError, match="needs a Dask cluster"):
        estimate_cost(RandomForestClassifier(regime="replicated"), X)


class TestBoosting:
    def test_grows_in_one_place(self):
        model = GradientBoostingClassifier(n_jobs=2)
        cost = estimate_cost(model, X)
        assert (cost.n_rows, cost.n_columns, cost.n_trees) == (4000, 6, 100)
        assert (cost.regime, cost.rounds, cost.bytes_moved) == ("local", 0, 0)
        assert (cost.n_workers, cost.n_threads) == (1, 2)
        assert cost.code_bytes == X.size
        growth = bytes_of_boosting(model, 1, 4000, 6 * 255)
        assert cost.bytes_per_worker == X.size + 16 * 4000 + growth
        assert growth > 25 * 4000 + 31 * 16 * 6 * 255  # histograms of leaves, too
        assert estimate_cost(model, X, n_classes=3).n_trees == 300
        assert estimate_cost(GradientBoostingRegressor(), X, n_classes=3).n_trees == 100
        assert estimate_cost(model, X, n_sets=11).n_trees == 1100

    def test_more_work_takes_longer(self):
        def seconds(table=X, **parameters):
            model = GradientBoostingRegressor(**{"n_jobs": 1, **parameters})
            return estimate_cost(model, table).total_seconds

        assert seconds(max_iter=1000) > 5 * seconds()
        assert seconds(n_jobs=4) < seconds() / 2
        assert seconds(max_leaf_nodes=4) < seconds()
        assert seconds(max_depth=2, max_leaf_nodes=None) < seconds(max_depth=6, max_leaf_nodes=None)
        assert seconds(max_bins=15) < seconds()
        assert seconds(np.zeros((400_000, 6))) > 10 * seconds()

    def test_on_a_cluster(self):
        frame = da.from_array(X, chunks=(500, 6))
        with connect(2, 2, False) as cluster, Client(cluster, set_as_default=False) as client:
            model = GradientBoostingClassifier(max_iter=2)
            for table in (frame, X):
                cost = estimate_cost(model, table, client=client)
                with client.as_current():
                    report = model.fit(table, Y).fit_report_
                assert (cost.regime, cost.reason) == (report["regime"], report["reason"])
                assert cost.regime == "replicated"
                assert (cost.n_workers, cost.n_threads) == (1, 2)  # of the one that grows it
                # which of the parts Dask codes on the one that grows is by chance
                assert 0 < report["bytes_moved"] < cost.bytes_moved + cost.code_bytes

    def test_refusals_are_those_of_the_fit(self, monkeypatch):
        with pytest.raises(ClusterError, match="needs a Dask cluster"):
            estimate_cost(GradientBoostingClassifier(regime="replicated"), X)
        with pytest.raises(ValueError, match="max_iter"):
            estimate_cost(GradientBoostingClassifier(max_iter=0), X)
        frame = da.from_array(X, chunks=(500, 6))
        model = GradientBoostingClassifier()
        with connect(1, 1, False) as cluster, Client(cluster):
            room = "dtrees.parallel.tasks.Tasks.room"
            monkeypatch.setattr(room, lambda self: 10_000)  # for a worker they are too many
            assert estimate_cost(model, frame).regime == "partitioned"
            assert model.fit(frame, Y).fit_report_["regime"] == "partitioned"
            model.set_params(regime="local")
            assert estimate_cost(model, frame).regime == "local"
            assert model.fit(frame, Y).fit_report_["regime"] == "local"
            summarized = "dtrees.parallel.encoding.Coding.summarize"  # nothing is read in vain
            monkeypatch.setattr(summarized, lambda *_: pytest.fail("read"))
            for call in estimate_cost, lambda model, X: model.fit(X, Y):
                with (
                    dask.config.set({"dtrees.client-memory": X.size}),
                    pytest.raises(TableTooLargeError, match="The codes of X, 4000 x 6 cells, take"),
                ):
                    call(model, frame)


def test_weights_of_many_classes_count():
    """A node keeps one for each class: bytes and seconds are of all nodes."""
    X = np.zeros((30_000, 5))
    costs = [estimate_cost(DecisionTreeClassifier(), X, n_classes=k) for k in (2, 3_000, 6_000)]
    two, some, many = ((cost.total_seconds, cost.bytes_per_worker) for cost in costs)
    assert some[1] > 16 * 30_000 * 3_000 > 100 * two[1]
    np.testing.assert_allclose(np.subtract(many, two), 2 * np.subtract(some, two), rtol=0.01)
    shallow = DecisionTreeClassifier(min_samples_leaf=0.01, max_depth=4)
    assert estimate_cost(shallow, X, n_classes=6_000).bytes_per_worker < many[1] / 100


REPORTS = {  # of what has grown
    "fit": (1, lambda model, X: model.fit(X, Y).fit_report_),
    "validated": (
        4,
        lambda model, X: cross_validate(model, X, Y, cv=3).final_estimator.fit_report_,
    ),
    "searched": (
        4,
        lambda model, X: (
            GridSearchCV(model, {"max_depth": [2]}, cv=3).fit(X, Y).best_estimator_.fit_report_
        ),
    ),
}


GROW = {
    "boosting": GradientBoostingClassifier(max_iter=2),
    "forest": RandomForestClassifier(n_estimators=2, max_depth=2),
    "tree": DecisionTreeClassifier(max_depth=2),
    "adaboost": AdaBoostClassifier(2),
}


@pytest.mark.one_of(6)
@parametrize_pairs(
    has_client=[False, True],
    kind=["array", "frame", "in memory"],
    is_large=[False, True],
    name=GROW,
)
def test_it_tells_where_models_will_grow(has_client, kind, is_large, name, monkeypatch):
    """The regime and the reason of the report, of a fit, a validation and a search."""
    model = GROW[name]
    table = da.from_array(X, chunks=(500, 6)) if kind != "in memory" else X
    if kind == "frame":
        table = dd.from_dask_array(table, columns=list("abcdef"))
    if is_large:  # for a worker
        monkeypatch.setattr("dtrees.parallel.tasks.Tasks.room", lambda self: 10_000)
    place = connect(2, 1, False) if has_client else nullcontext()
    with place as cluster, Client(cluster) if has_client else nullcontext():
        kinds = list(REPORTS.items())[: 1 if isinstance(model, AdaBoostClassifier) else None]
        for (what, (n_sets, report_of)), regime in product(kinds, (None, "local", "partitioned")):
            with dask.config.set({"dtrees.regime": regime}):
                cost = estimate_cost(model, table, n_sets=n_sets)
                report = report_of(clone(model), table)
            told, found = (cost.regime, cost.reason), (report["regime"], report["reason"])
            assert told == found, (what, regime)
