"""Codes in parts that can be sent."""

import os
import signal
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise

import dask
import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.model_selection import KFold

from dtrees import AdaBoostClassifier, DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.model_selection import GridSearchCV, cross_validate
from dtrees.parallel import coded_partitions
from dtrees.parallel.coded_partitions import (
    CodedPartitions,
    PartFacts,
    blocks_at_hand,
    kept_table,
    learn_rows,
    tables_kept,
)
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.tasks import Tasks
from tests.coding.examples import coded_columns, coded_csc
from tests.parallel.clusters import noted, ours
from tests.parallel.faults import Fault, assert_nothing_is_left, pids
from tests.parallel.test_collections import X, Y, cut, hash_of, on


def table(n_rows=50):
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 5, n_rows).astype(np.uint8), np.ones(n_rows, dtype=np.uint8)]
    return coded_columns(codes, np.full(2, 4), np.full(2, 4))


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.setattr(coded_partitions, "PART_BYTES", 7 * (table().nbytes // 50))
    monkeypatch.setattr(coded_partitions, "WHOLE_BYTES", 0)
    return CodedPartitions.cut(table(), "asked for")


def test_cut(parts):
    assert parts.lengths == (7,) * 7 + (1,)
    assert (parts.n_rows, parts.n_columns, parts.reason) == (50, 2, "asked for")
    found = np.concatenate([part.column(0) for part in parts.each()])
    np.testing.assert_array_equal(found, table().column(0))
    assert parts.sample.n_rows == 1


def test_a_table_of_few_rows_is_not_cut(monkeypatch):
    codes = table()
    monkeypatch.setattr(coded_partitions, "PART_BYTES", 1)
    with dask.config.set({"dtrees.gather-rows": 49}):
        assert len(CodedPartitions.cut(codes, "asked for").lengths) == 50
    whole = CodedPartitions.cut(codes, "asked for")
    assert whole.lengths == (50,)
    assert whole.each()[0] is codes


def test_the_sample_tells_which_columns_are_sparse_once_they_are_known():
    stored = scipy.sparse.csc_array(np.array([[3, 0], [0, 0], [2, 1]], dtype=np.uint32))
    matrix = coded_csc(stored, [3, 2], [3, 2], [1, 2])
    parts = CodedPartitions.cut(matrix, "asked for")
    assert parts.sample.storage.tolist() == [0, 0]
    learn_rows(parts)
    assert parts.facts.n_stored == 3
    assert parts.sample.storage.tolist() == [3, 3]
    assert parts.sample.fill_code.tolist() == [1, 2]
    learned = CodedPartitions.cut(table(), "asked for")
    learn_rows(learned)
    assert learned.sample.storage.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("n_rows", "longest", "expected"),
    [
        (1, None, [7] * 7 + [1]),
        (14, None, [14, 14, 14, 8]),
        (3, 7, [7] * 7 + [1]),
        (3, 6, [2, 2, 3] * 7 + [1]),
    ],
)
def test_groups_lie_one_behind_the_other(n_rows, longest, expected, parts):
    """Partitions that are longer than a worker's share are split."""
    groups = parts.groups(n_rows, longest)
    assert [length for _, length in groups] == expected
    assert [sum(part.n_rows for part in some) for some, _ in groups] == expected
    found = np.concatenate([part.column(0) for some, _ in groups for part in some])
    np.testing.assert_array_equal(found, table().column(0))


def test_partitions_elsewhere_are_split_and_joined(parts):
    """The first rows of one may go with the partition before it."""
    ends = [0, 1, 8, 9, 50]
    rows = [np.arange(*each) for each in pairwise(ends)]
    tasks = [dask.delayed(part) for part in table().take_each(rows)]
    spread = replace(parts, each=lambda: tasks, lengths=tuple(map(len, rows)))
    some, lengths = zip(*spread.groups(4, 6), strict=True)
    assert max(map(len, some)) > 1
    (found,) = dask.compute(some, scheduler="synchronous")
    assert [sum(part.n_rows for part in each) for each in found] == list(lengths)
    codes = np.concatenate([part.column(0) for each in found for part in each])
    np.testing.assert_array_equal(codes, table().column(0))


def test_what_is_learned_does_not_depend_on_the_parts(parts):
    stats = FitStatistics()
    assert parts.facts is None
    learn_rows(parts, stats)
    whole = PartFacts.of(table(), 0)
    assert parts.facts.digest == whole.digest
    assert parts.facts.has_missing.tolist() == whole.has_missing.tolist() == [True, False]
    learn_rows(parts, stats)
    assert stats.counts["passes"] == 1


TREE = DecisionTreeClassifier(random_state=0, max_bins=32)
GRID = {"criterion": ["gini", "entropy"], "min_samples_leaf": [1, 5]}  # four growths, and the best
REGIMES = ("replicated", "partitioned")


def regime(name):
    return dask.config.set({"dtrees.regime": name, "dtrees.gather-rows": 100})


@pytest.fixture
def brought(monkeypatch):
    """Tasks that bring codes to a cluster, by name."""
    names = Counter()
    send, hold = Tasks.send, Tasks.hold

    def note_send(self, name, value):
        names[name] += 1
        return send(self, name, value)

    def note_hold(self, tasks):
        names["blocks made"] += 1
        return hold(self, tasks)

    monkeypatch.setattr(Tasks, "send", note_send)
    monkeypatch.setattr(Tasks, "hold", note_hold)
    return names


@pytest.fixture(scope="module")
def expected():
    with regime("local"):
        return searched(X, Y)


def searched(table, y):
    search = GridSearchCV(TREE, GRID, cv=3).fit(table, y)
    return search.cv_results_["mean_test_score"].tolist(), hash_of(search.best_estimator_)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", REGIMES)
def test_a_search(name, brought, here, expected):
    with on(here), regime(name):
        assert searched(X, Y) == expected
    assert brought["coded-table"] == (name == "replicated")
    assert brought["blocks made"] == (name == "partitioned")
    assert brought["growth"] == (5 if name == "replicated" else 0)
    assert ours(here) == []


def test_partitions_are_coded_once(here, expected, tmp_path):
    """They are read to learn the codes, and to grow; held-out rows walk where they have grown."""
    lazy = cut(X, "7").map_blocks(
        lambda block: (noted(tmp_path), block)[1], dtype=X.dtype, meta=X[:0]
    )
    with on(here), regime("partitioned"):
        assert searched(lazy, Y) == expected
    assert len(os.listdir(tmp_path)) == 2 * 7
    assert_nothing_is_left(here)


@pytest.mark.parametrize("client", [True, False])
def test_weights_that_change_code_nothing_anew(client, here, tmp_path):
    lazy = cut(X, "7").map_blocks(
        lambda block: (noted(tmp_path), block)[1], dtype=X.dtype, meta=X[:0]
    )
    with on(here) if client else nullcontext(), regime("partitioned"):
        model = AdaBoostClassifier(4, max_depth=3).fit(lazy, Y)
    assert len(model) == 4
    assert hash_of(model) == hash_of(AdaBoostClassifier(4, max_depth=3).fit(X, Y))
    assert len(os.listdir(tmp_path)) == 2 * 7


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
    kill = Fault(lambda: os.kill(before[0], signal.SIGKILL), "growth", turn=2)
    with kill.set(), on(processes), regime(name):
        assert searched(X, Y) == expected
    assert kill.has_happened
    assert brought["coded-table"] + brought["blocks made"] >= 1
    assert_nothing_is_left(processes)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", REGIMES)
def test_a_restarted_cluster_gets_it_again(name, brought, processes, expected):
    """The codes are lost in a later growth."""
    restart = Fault(processes.restart, "growth", turn=2)
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
        assert blocks_at_hand(codes, object()) == []  # of another client
        table.lengths = [5]
        assert blocks_at_hand(codes, None) == [(1, 5)]
    assert table.blocks == []
    assert blocks_at_hand(codes, None) == []


class Fake:
    """A future, and the client that is asked to release it."""

    def __init__(self, status):
        self.status, self.is_released = status, False

    def release(self):
        self.is_released = True


@pytest.mark.parametrize(("status", "is_kept"), [("finished", True), ("lost", False)])
def test_what_is_lost_is_not_kept(status, is_kept):
    client, codes, future = Fake("running"), object(), Fake(status)
    with tables_kept():
        with kept_table(codes, client) as table:
            table.whole = future
        with kept_table(codes, client) as again:
            assert (again.whole is future) == is_kept
        assert future.is_released == (not is_kept)
    assert future.is_released
