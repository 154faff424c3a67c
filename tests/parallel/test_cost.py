"""What is known of a fit before it begins: its size, its place and its cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import dask
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import dtrees
from dtrees.coding import CodeBook
from dtrees.core.data.rules import BoostingRules
from dtrees.parallel.cost import (
    ROOM,
    SLOWER,
    CostModel,
    GrowthSize,
    Machines,
    members_that_pay,
    place_of,
    size_of_table,
)
from dtrees.parallel.memory import room_of_member
from dtrees.parallel.regimes import TOO_LARGE, Choice
from tests.parallel.clusters import make_small


def cost(n_rows=10**6, n_columns=30, *, model=None, **how):
    how = {"n_trees": 10, "depth": 8, "n_workers": 2, "columns_drawn": 5, **how}
    size = GrowthSize(n_rows=n_rows, n_columns=n_columns, **how)
    return (model or CostModel()).of(size)


class TestRounds:
    @pytest.mark.parametrize(("depth", "gather"), [(0, 100), (1, 100), (3, 100), (6, 20)])
    def test_even_splits(self, depth, gather):
        """Rounds of a fit whose every split sends half of the rows to each side."""
        n = 4096
        X = np.random.default_rng(0).permutation(n)[:, None].astype(float)
        y = X[:, 0]
        forest = dtrees.RandomForestRegressor(
            3,
            max_depth=depth or None,
            max_leaf_nodes=None,
            bootstrap=False,
            regime="partitioned",
            min_samples_split=2 if depth else n + 1,
        )
        with dask.config.set({"dtrees.gather-rows": gather}):
            report = forest.fit(X, y).fit_report_
            found = cost(
                n,
                1,
                model=replace(CostModel(), smaller_share=0.5),
                n_trees=3,
                depth=depth,
                columns_drawn=1,
                n_classes=0,
                bootstrap=False,
            )
        assert found.rounds == report["rounds"]

    def test_nothing_is_gathered_where_all_levels_are_counted(self):
        found = cost(10**7, depth=3)
        assert found.rounds == 4
        assert found.passes == 5
        whole = cost(10**7, depth=3, has_sums=False)  # of medians, nothing is counted
        assert whole.rounds == whole.tree_batches
        assert whole.bytes_per_worker > found.bytes_per_worker + 10**7 * 30

    def test_histograms_beyond_the_budget_take_more_rounds(self):
        with dask.config.set({"dtrees.histogram-budget": 2**40}):
            few = cost(10**7, depth=10)
        with dask.config.set({"dtrees.histogram-budget": 2**18}):
            assert cost(10**7, depth=10).rounds > few.rounds

    def test_waves_by_memory(self):
        assert cost(10**7, memory_limit=None).tree_batches == 1
        assert cost(10**7, memory_limit=2**29).tree_batches > 1

    def test_waves_by_work(self):
        assert cost(10**9).tree_batches > cost(10**9, n_workers=10).tree_batches > 1

    @pytest.mark.parametrize("depth", [8, 16])
    def test_more_workers_are_faster(self, depth):
        """Up to 64 of them, on a large table."""
        forest = {"n_trees": 50, "depth": depth, "memory_limit": 2**35}
        spent = [cost(10**9, n_workers=4**k, **forest).total_seconds for k in (1, 2, 3)]
        assert spent == sorted(spent, reverse=True)
        assert spent[-1] < spent[0] / 5


class TestCost:
    @given(
        st.integers(1, 10**9),
        st.integers(1, 1000),
        st.integers(1, 500),
        st.one_of(st.none(), st.integers(0, 40)),
        st.integers(1, 256),
        st.integers(0, 50),
        st.sampled_from([0, 1, 65_536]),
    )
    def test_of_anything(self, n_rows, n_columns, n_trees, depth, n_workers, n_classes, gather):
        if gather < 65_536 and (depth is None or depth > 12):
            n_rows = min(n_rows, 10**6)
        with dask.config.set({"dtrees.gather-rows": gather}):
            found = cost(
                n_rows,
                n_columns,
                n_trees=n_trees,
                depth=depth,
                n_workers=n_workers,
                n_classes=n_classes,
                memory_limit=2**30,
            )
        assert found.rounds >= found.tree_batches >= 1
        assert found.bytes_moved >= 0
        assert found.bytes_per_worker >= 0
        assert all(math.isfinite(spent) and spent >= 0 for spent in found.seconds.values())
        assert found.total_seconds == sum(found.seconds.values())

    def test_a_free_cluster_halves_what_threads_do(self):
        nothing = dict.fromkeys(["byte", "task", "round", "exchange", "request", "search"], 0)
        free = replace(CostModel(), **nothing, cell=0, start=0)
        one, two = (cost(model=free, n_workers=n).total_seconds for n in (1, 2))
        assert two == pytest.approx(one / 2)

    def test_levels_of_large_and_of_small_nodes(self):
        """Even splits of 2^14 rows: 14 levels, of which small nodes are those below 1,000 rows."""
        model = replace(CostModel(), smaller_share=0.5, count=1.0, finish=100.0)
        large = math.log2(2**14 / 1000)
        whole = large + 100 * (14 - large)
        assert model.in_one_place(2**14, math.inf) == pytest.approx(whole)
        assert model.in_one_place(2**14, 3) == pytest.approx(3)
        assert model.in_one_place(500, 2) == pytest.approx(200)

    def test_bytes_of_rows_that_are_brought(self):
        """Half of a small table moves once for each tree, from worker to worker."""
        found = cost(1000, 30, n_trees=10, depth=None, bootstrap=False)
        assert found.rounds == 1
        rows = 10 * 1000 * (30 + 16) / 2
        assert rows < found.bytes_moved < 1.1 * rows + 2 * 8 * 10 * (5 * 256 * 2 + 10)


def a_forest(n_rows, **how):
    how = {"n_trees": 50, "depth": 16, "columns_drawn": 5, **how}
    return GrowthSize(n_rows=n_rows, n_columns=30, **how)


def a_boosted_model(n_rows, **how):
    how = {"boosting": BoostingRules(), "n_trees": 100, **how}
    return GrowthSize(n_rows=n_rows, n_columns=30, **how)


def a_sequence(n_rows, **how):
    how = {"n_trees": 1, "n_sequence": 100, "depth": 3, "bootstrap": False, **how}
    return GrowthSize(n_rows=n_rows, n_columns=30, **how)


def cost_of(size, n_workers, n_coding):
    return CostModel().of(replace(size, n_workers=n_workers, n_coding=n_coding))


ROWS = st.integers(1, 10**9)
WORKERS = st.integers(1, 300)


@pytest.mark.parametrize("of", [a_forest, a_boosted_model, a_sequence])
class TestMembers:
    @pytest.fixture(autouse=True)
    def as_pay(self, all_are_members):
        """As many as pay, and not all."""
        with dask.config.set({"dtrees.members": 0}):
            yield

    @pytest.mark.parametrize("n_workers", [1, 2, 3, 16, 256])
    def test_of_a_tiny_table_and_of_a_huge_one(self, of, n_workers):
        assert members_that_pay(of(1_000), n_workers) == 1
        assert members_that_pay(of(10**9), n_workers) == n_workers

    @given(ROWS, ROWS, WORKERS)
    def test_more_rows_have_no_fewer(self, of, one, other, n_workers):
        few, many = (members_that_pay(of(n), n_workers) for n in sorted((one, other)))
        assert 1 <= few <= many <= n_workers

    @given(ROWS, WORKERS)
    def test_no_more_are_much_faster(self, of, n_rows, n_workers):
        n = members_that_pay(of(n_rows), n_workers)
        numbers = {n, n_workers, *(2**k for k in range(n_workers.bit_length()))}
        spent = {k: cost_of(of(n_rows), k, n_workers).total_seconds for k in numbers}
        assert spent[n] <= SLOWER * min(spent.values())
        assert all(spent[k] > SLOWER * min(spent.values()) for k in numbers if k < n)

    @given(st.integers(1, 10**8), WORKERS, st.integers(300 * 2**20, 2**36))
    def test_members_have_room_for_their_rows(self, of, n_rows, n_workers, room):
        size = of(n_rows, memory_limit=room)
        n = members_that_pay(size, n_workers)
        held = cost_of(size, n, n_workers).bytes_per_worker
        assert held <= ROOM * room_of_member(room) or n == n_workers

    @pytest.mark.parametrize(("given_number", "n"), [(1, 1), (3, 3), (16, 7), ("5", 5)])
    def test_somebody_says_how_many(self, of, given_number, n):
        with dask.config.set({"dtrees.members": given_number}):
            assert members_that_pay(of(10**9), 7) == n

    def test_less_memory_has_more(self, of):
        rooms = [None, *(n * 2**20 for n in (2_000, 400, 350, 320, 305, 286))]
        found = [members_that_pay(of(10**5, memory_limit=room), 64) for room in rooms]
        assert found == sorted(found)
        assert found[0] < found[-1] == 64


@pytest.mark.parametrize("of", [a_forest, a_boosted_model])
def test_models_in_lockstep_have_more_members(of):
    """They share rounds, so that there is more work for each."""
    with dask.config.set({"dtrees.members": 0}):
        found = [members_that_pay(of(3 * 10**5, n_sets=n), 64) for n in (1, 3, 11)]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_few_codes_have_a_message_less():
    few, many = (
        cost_of(a_boosted_model(10**5, n_codes=n), 8, 8).seconds["rounds"] for n in (68, 69)
    )
    assert few < 0.6 * many


def test_a_sequence_codes_once():
    """And grows as often as there are trees; a slice may have several of them."""
    model = replace(CostModel(), task=0, exchange=0)
    one, two, many = (model.of(a_sequence(10**6, n_workers=4, n_sequence=n)) for n in (1, 2, 101))
    assert many.rounds == 101 * one.rounds
    assert many.passes == 101 * one.passes
    assert many.bytes_moved == pytest.approx(101 * one.bytes_moved)
    assert many.bytes_per_worker == one.bytes_per_worker
    assert many.total_seconds - one.total_seconds == pytest.approx(
        100 * (two.total_seconds - one.total_seconds)
    )
    assert two.seconds["coding"] == one.seconds["coding"]
    assert two.seconds["target"] - one.seconds["target"] == pytest.approx(10**6 * model.weigh / 4)
    assert many.tasks < one.tasks + 100 * 4


class TestColumnsOfManyCodes:
    HOW: ClassVar = {"n_trees": 1, "depth": 3, "columns_drawn": None, "n_columns": 4}

    def test_rounds_and_second_rounds(self):
        """As many as a fit takes of each."""
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.permutation(70_000), rng.normal(size=(70_000, 3))])
        y = (X[:, 0] / 30_000 + X[:, 1] + rng.normal(size=len(X)) / 3 > 1).astype(int)
        model = dtrees.DecisionTreeClassifier(max_depth=3)
        with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 0}):
            report = model.fit(X, y).fit_report_
            found = cost(len(X), bootstrap=False, n_codes=70_000, **self.HOW)
            told = dtrees.estimate_cost(model, X)
        assert found.rounds == told.rounds == report["rounds"] == 4
        assert found.passes - found.rounds - 1 == report["code_rounds"] == 3
        assert told.passes == found.passes

    def test_intervals_are_fewer_bytes_than_codes(self):
        few = cost(n_codes=255, **self.HOW)
        many, unbounded = (cost(n_codes=10**6, has_bounds=has, **self.HOW) for has in (1, 0))
        assert few.bytes_moved < many.bytes_moved < unbounded.bytes_moved / 100
        assert few.rounds == many.rounds
        assert few.passes < many.passes
        assert unbounded.passes == unbounded.rounds + 1 + (few.passes - few.rounds - 1)


N_ROWS = 700
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "number": RNG.normal(size=N_ROWS),
        "bytes": RNG.integers(0, 9, N_ROWS).astype(np.int8),
        "flag": RNG.random(N_ROWS) < 0.5,
        "letter": pd.Categorical(RNG.choice(list("abc"), N_ROWS)),
        "word": RNG.choice(["x", "y"], N_ROWS),
    }
)
TABLES = {
    "floats": FRAME[["number"]].to_numpy(),
    "frame": FRAME,
    "sparse": sp.random_array((N_ROWS, 6), density=0.1, rng=RNG, format="csr"),
}


@pytest.mark.parametrize("max_bins", [None, 20, 255])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_not_larger_than_was_said(name, max_bins):
    X = TABLES[name]
    size = size_of_table(X, max_bins)
    _, coded = CodeBook.fit_encode(X, max_bins=max_bins)
    assert (size.n_rows, size.n_columns) == (coded.n_rows, coded.n_columns)
    assert (size.n_codes >= coded.n_codes).all()
    assert size.table is None


def test_types_tell_how_many_codes_there_are():
    assert size_of_table(FRAME, None).n_codes.tolist() == [700, 256, 2, 3, 255]
    assert size_of_table(FRAME, 20).n_codes.tolist() == [20, 20, 2, 3, 255]


def test_without_a_cluster_trees_grow_here():
    choice, machines = place_of(size_of_table(FRAME, None), None, 2)
    assert choice.regime == "local"
    assert machines == Machines(1, 2, None)


def test_codes_that_a_worker_cannot_hold(here, monkeypatch):
    """As in the fit, trees grow here, unless they are to grow there."""
    size = size_of_table(FRAME, 255)
    assert place_of(size, None, 2)[0].regime == "replicated"
    small = set(here.nthreads())
    make_small(monkeypatch, small)
    assert place_of(size, None, 2) == (Choice("local", TOO_LARGE), Machines(1, 2, None))
    assert place_of(size, "replicated", 2)[0].regime == "replicated"
    here.cluster.scale(3)
    here.wait_for_workers(3, timeout=60)
    choice, machines = place_of(size, None, 2)
    assert choice.regime == "replicated"
    assert machines == Machines(2, 2, None, is_cluster=True)  # those that can hold the table
