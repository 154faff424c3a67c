"""Trees of an iteration on several threads: each once, helped at the end, with the same bits."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from dtrees.coding import CodeBook
from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow._team import Helpers
from dtrees.core.grow.boosting import BoostedRows, Booster, Growing, boost
from dtrees.core.grow.trees_at_once import grow_at_once
from dtrees.core.losses.losses import CLASSES
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks
from dtrees.parallel import LocalRunner
from dtrees.typing import serial


def led(work, n_helpers):
    """What the leader of a team returns."""
    team = Helpers()
    threads = [threading.Thread(target=team.help) for _ in range(n_helpers)]
    for thread in threads:
        thread.start()
    try:
        return work(team)
    finally:
        team.close()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)


def growers(n, team):
    return [SimpleNamespace(helpers=team) for _ in range(n)]


@pytest.mark.parametrize("n_helpers", [0, 1, 3])
@pytest.mark.parametrize("n_growers", [1, 2, 4])
def test_each_tree_grows_once(n_helpers, n_growers):
    if n_growers < min(n_helpers + 1, 9) and n_growers > 1:
        n_helpers = n_growers - 1
    grown = []

    def work(team):
        own = growers(n_growers, team)
        for _ in range(20):
            grow_at_once(team, own, lambda k, grower: grown.append(k), 9, n_helpers + 1)

    led(work, n_helpers)
    assert sorted(grown) == sorted(list(range(9)) * 20)


def test_two_trees_grow_at_a_time_with_growers_of_their_own():
    both = threading.Barrier(2, timeout=60)
    used = {}

    def grow(k, grower):
        used[k] = grower
        both.wait()  # nobody comes here alone

    led(lambda team: grow_at_once(team, growers(2, team), grow, 2, 2), 1)
    assert used[0] is not used[1]
    assert used[0].helpers is not used[1].helpers


def test_who_finds_no_tree_helps():
    """The last tree goes on when somebody has done a chunk of it."""
    came = threading.Event()

    def grow(k, grower):
        if k == 1:
            grower.helpers.share(lambda number: came.set() if number else came.wait(60), 2)

    led(lambda team: grow_at_once(team, growers(2, team), grow, 2, 2), 1)
    assert came.is_set()


@pytest.mark.parametrize("n_helpers", [0, 1])
def test_an_error_comes_out_when_all_is_over(n_helpers):
    grown = []

    def grow(k, grower):
        if k in (1, 2):
            raise ValueError(f"tree {k}")
        grown.append(k)

    with pytest.raises(ValueError, match="tree 1"):
        led(lambda team: grow_at_once(team, growers(2, team), grow, 4, 2), n_helpers)
    assert sorted(grown) == [0, 3]


class TestModels:
    RNG = np.random.default_rng(0)
    X = RNG.integers(0, 9, (500, 5)).astype(float)
    Y = (X[:, 0] + RNG.integers(0, 3, 500)) % 5

    def work(self, **parameters):
        book, coded = CodeBook.fit_encode(self.X)
        rules = BoostingRules(min_samples_leaf=5, max_leaf_nodes=9)
        how = {"learning_rate": 0.1, "n_iterations": 4, **parameters}
        growing = Growing(CLASSES["log_loss"], np.zeros(5), rules, **how)
        return BoostedRows(coded, self.Y), growing, book

    @pytest.mark.parametrize("subsample", [1.0, 0.6])
    @pytest.mark.parametrize("n_threads", [2, 3, 8])
    def test_threads_change_nothing(self, n_threads, subsample):
        rows, growing, book = self.work(subsample=subsample)
        alone = boost(rows, growing, book.thresholds, serial)
        found = boost(rows, growing, book.thresholds, LocalRunner(n_threads), n_threads)
        assert len(found) == len(alone) == 20
        for one, other in zip(found, alone, strict=True):
            assert one.threshold.tobytes() == other.threshold.tobytes()
            assert one.statistics.tobytes() == other.statistics.tobytes()

    @pytest.mark.parametrize(("n_threads", "n_growers"), [(1, 1), (2, 2), (8, 5)])
    def test_as_many_growers_as_threads_or_trees(self, n_threads, n_growers):
        rows, growing, _ = self.work()
        booster = Booster(rows, growing, Helpers(), ColumnBlocks(rows.coded), n_threads)
        assert booster.n_growers == n_growers
