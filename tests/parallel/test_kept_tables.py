"""A table is brought to a cluster once for all growths of a scope, and leaves it with the scope."""

import os
import signal
import sys
from collections import Counter

import dask
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import KFold

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.model_selection import GridSearchCV, cross_validate
from dtrees.parallel.kept_tables import KeptTables, kept_table, tables_kept
from dtrees.parallel.tasks import Tasks
from tests.parallel.clusters import noted, ours
from tests.parallel.faults import Fault, assert_nothing_is_left, pids
from tests.parallel.test_collections import X, Y, cut, hash_of, on

TREE = DecisionTreeClassifier(random_state=0, max_bins=32)
GRID = {"criterion": ["gini", "entropy"], "min_samples_leaf": [1, 5]}  # four growths, and the best
REGIMES = ("replicated", "partitioned")


def regime(name):
    return dask.config.set({"dtrees.regime": name, "dtrees.gather-rows": 100})


@pytest.fixture
def brought(monkeypatch):
    """Tasks that bring codes to a cluster, by name."""
    names = Counter()
    send, compute = Tasks.send, Tasks.compute

    def note_send(self, name, value):
        names[name] += 1
        return send(self, name, value)

    def note_compute(self, collections):
        names["blocks made"] += 1
        return compute(self, collections)

    monkeypatch.setattr(Tasks, "send", note_send)
    monkeypatch.setattr(Tasks, "compute", note_compute)
    return names


@pytest.fixture(scope="module")
def expected():
    with regime("local"):
        return searched(X, Y)


def searched(table, y):
    search = GridSearchCV(TREE, GRID, cv=3).fit(table, y)
    return search.cv_results_["mean_test_score"].tolist(), hash_of(search.best_estimator_)


@pytest.mark.parametrize("name", REGIMES)
def test_a_search(name, brought, here, expected):
    with on(here), regime(name):
        assert searched(X, Y) == expected
    assert brought["coded-table"] == (name == "replicated")
    assert brought["blocks made"] == (name == "partitioned")
    assert brought["growth"] == (5 if name == "replicated" else 0)
    assert ours(here) == []


def test_partitions_are_coded_once(here, expected, tmp_path):
    """They are read to learn the codes, to grow, and for held-out rows of each growth."""
    lazy = cut(X, "7").map_blocks(
        lambda block: (noted(tmp_path), block)[1], dtype=X.dtype, meta=X[:0]
    )
    with on(here), regime("partitioned"):
        assert searched(lazy, Y) == expected
    assert len(os.listdir(tmp_path)) == (2 + 4) * 7
    assert_nothing_is_left(here)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", REGIMES)
def test_nested_searches(name, brought, here):
    search = GridSearchCV(TREE, {"criterion": ["gini", "entropy"], "max_depth": [2, 4]}, cv=2)
    expected = cross_validate(search, X, Y, cv=2)["test_score"]
    with on(here), regime(name):
        assert_array_equal(cross_validate(search, X, Y, cv=2)["test_score"], expected)
    assert brought["coded-table"] + brought["blocks made"] == 1
    assert ours(here) == []


@pytest.mark.parametrize("name", REGIMES)
def test_weights_in_several_units(name, brought, here):
    """A growth for each unit."""
    weight = np.random.default_rng(0).integers(1, 9, len(Y)) * 0.1
    weight[0] = 1000.0
    how = {"cv": KFold(4), "params": {"sample_weight": weight}, "return_estimator": True}
    model = DecisionTreeRegressor(max_depth=4)
    expected = cross_validate(model, X, 1.0 * Y, **how)
    with on(here), regime(name):
        found = cross_validate(model, X, 1.0 * Y, **how)
    assert [*map(hash_of, found["estimator"])] == [*map(hash_of, expected["estimator"])]
    assert brought["coded-table"] + brought["blocks made"] == 1
    assert ours(here) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", REGIMES)
def test_a_worker_dies_in_a_later_growth(name, brought, processes, expected):
    before = pids(processes, 2)
    began = Fault(lambda: None, "growth", number=0)
    kill = Fault(lambda: os.kill(before[0], signal.SIGKILL), "growth", number=8, after=began)
    with began.set(), kill.set(), on(processes), regime(name):
        assert searched(X, Y) == expected
    assert kill.has_happened
    assert brought["coded-table"] + brought["blocks made"] >= 1
    assert_nothing_is_left(processes)


@pytest.mark.parametrize("name", REGIMES)
def test_a_restarted_cluster_gets_it_again(name, brought, processes, expected):
    """The codes are lost in a later growth."""
    restart = Fault(processes.restart, "growth", number=8)
    with restart.set(), on(processes), regime(name):
        assert searched(X, Y) == expected
    assert restart.has_happened
    assert brought["coded-table"] + brought["blocks made"] == 2
    assert_nothing_is_left(processes)


def test_scopes():
    codes = object()
    with kept_table(codes) as table:
        table.blocks = [1]
    assert table.blocks == []  # a growth of its own
    with tables_kept():
        with kept_table(codes) as table:
            table.blocks = [1]
        with tables_kept(), kept_table(codes) as again:
            assert again is table
            assert again.blocks == [1]
        with kept_table(object()) as other:
            assert other is not table
        assert table.blocks == [1]
    assert table.blocks == []


class Fake:
    """A future, and the client that is asked to release it."""

    def __init__(self, status):
        self.status, self.is_released = status, False

    def release(self):
        self.is_released = True


@pytest.mark.parametrize(("status", "is_kept"), [("finished", True), ("lost", False)])
def test_what_is_lost_is_not_kept(status, is_kept):
    kept, client, codes = KeptTables(), Fake("running"), object()
    future = kept.of(codes, client).whole = Fake(status)
    assert (kept.of(codes, client).whole is future) == is_kept
    assert future.is_released == (not is_kept)
    kept.end()
    assert future.is_released
