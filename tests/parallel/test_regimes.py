"""Where trees are grown, and why there."""

from __future__ import annotations

import asyncio
import logging

import dask
import pytest
from distributed import Client, LocalCluster

from dtrees.exceptions import ClusterError
from dtrees.parallel import regimes
from dtrees.parallel.client import current_client
from dtrees.parallel.regimes import Choice, choose_regime
from tests.parallel.clusters import digest
from tests.parallel.test_replicated import LOCAL, X, Y, forest


class TestChoice:
    def test_without_a_client(self):
        assert choose_regime() == Choice("local", "no client")
        with pytest.raises(ClusterError, match="there is no open client"):
            choose_regime("replicated")

    def test_with_a_client(self, here, caplog):
        with caplog.at_level(logging.INFO, "dtrees"):
            forest().fit(X, Y)
        assert choose_regime().regime == "replicated"
        assert "regime replicated: client of inproc://" in caplog.text
        assert choose_regime("local").regime == "local"
        for name in ("threads", "synchronous", "processes"):
            with dask.config.set(scheduler=name):
                assert choose_regime().regime == "local"
                assert choose_regime("replicated").regime == "replicated"
        with dask.config.set(scheduler=here):
            assert current_client() is here

    def test_with_an_asynchronous_client(self):
        async def fit():
            async with (
                LocalCluster(
                    n_workers=1, processes=False, dashboard_address=":0", asynchronous=True
                ) as cluster,
                Client(cluster, asynchronous=True),
            ):
                assert choose_regime().reason == "the client is asynchronous"
                with pytest.raises(ClusterError, match="needs a synchronous client"):
                    choose_regime("replicated")
                return digest(forest().fit(X, Y).forest_.trees)

        assert asyncio.run(fit()) == LOCAL

    def test_regime_is_checked(self):
        with pytest.raises(
            ValueError, match=r"'regime' .* among {'local', 'replicated', 'partitioned'} or None"
        ):
            forest(regime="everywhere").fit(X, Y)


class TestSizes:
    @pytest.mark.parametrize(("n_bytes", "expected"), [(86, "partitioned"), (50, "local")])
    def test_codes_stay_where_a_process_leaves_no_room(self, n_bytes, expected):
        """86 MiB: 30 % of 381 MiB allow them, but not of what a process leaves of it."""
        assert choose_regime(n_bytes=n_bytes * 2**20, room=400_000_000).regime == expected
        assert choose_regime("local", n_bytes=n_bytes * 2**20, room=400_000_000).regime == "local"
        assert choose_regime(n_bytes=n_bytes * 2**20).regime == "local"

    def test_codes_that_were_kept(self):
        assert choose_regime("local", kept="too many") == Choice("partitioned", "too many")

    def test_a_single_tree_has_to_be_enough_work(self, here):
        n_cells = regimes.LEAST_CELLS // 4
        few = choose_regime(n_trees=1, n_sets=3, n_cells=n_cells)
        assert few == Choice("local", "too little work for a cluster")
        assert choose_regime(n_trees=1, n_sets=4, n_cells=n_cells).regime == "replicated"
        assert choose_regime(n_trees=1, n_sets=1, n_cells=8 * n_cells).regime == "local"
        assert choose_regime(n_trees=2).regime == choose_regime().regime == "replicated"
        assert choose_regime("replicated", n_trees=1).regime == "replicated"


def test_on_a_cluster(here):
    assert Choice("partitioned", "").on_cluster
    assert Choice("replicated", "").on_cluster
    assert not Choice("local", "").on_cluster


def test_on_threads():
    assert not Choice("partitioned", "").on_cluster
