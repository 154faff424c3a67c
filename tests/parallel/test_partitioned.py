"""The partitioned regime: one hash wherever the rows are, and whatever happens to the workers."""

from __future__ import annotations

import _thread
import logging
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dask
import numpy as np
import pytest
from distributed import Client, worker_client

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.core.blocks import Block, BlockOfRows, Common, Counts, Request, Root, Step, add_up
from dtrees.core.rounds import HISTOGRAM_BUDGET
from dtrees.core.rules import GrowthRules
from dtrees.exceptions import ClusterError, SchedulerLostError, WorkerLostError
from dtrees.parallel import client as clients
from dtrees.parallel import partitioned, places
from dtrees.parallel.places import GrowthOfBlocks, PlacesCache, Work, count_blocks
from tests.parallel import test_collections as collections
from tests.parallel.clusters import connect
from tests.parallel.faults import (
    FOREST,
    PHASES,
    ROUNDS,
    Fault,
    assert_nothing_is_left,
    expected,
    fitted,
    pids,
)
from tests.parallel.test_collections import CASES, X, Y, allow_failures, cut, hash_of, on

pytestmark = pytest.mark.timeout(90)  # a hang is a failure
EXPECTED = expected()
IMPATIENT = {"dtrees.worker-patience": "300ms", "dtrees.workers-timeout": "500ms"}


@pytest.fixture(scope="module")
def in_memory():
    """The hashes of all cases, of tables in memory."""
    return {case: collections.fitted(case) for case in CASES}


class TestOneHash:
    """A few of the layouts; `make chaos` has all of them."""

    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("layout", [None, "7", "64"])
    def test_threads(self, case, layout, in_memory):
        with dask.config.set(ROUNDS):
            assert collections.fitted(case, layout) == in_memory[case]

    @pytest.mark.parametrize("case", CASES)
    def test_processes(self, case, in_memory, processes):
        with on(processes), dask.config.set(ROUNDS):
            assert collections.fitted(case, "64") == in_memory[case]
        assert_nothing_is_left(processes)

    @pytest.mark.parametrize("layout", [None, "1", "2", "7", "64"])
    def test_layouts(self, layout, in_memory, here):
        with on(here), dask.config.set(ROUNDS):
            for case in ("mixed", "weights", "sparse"):
                assert collections.fitted(case, layout) == in_memory[case], case
        assert_nothing_is_left(here)

    @pytest.mark.parametrize("gather_rows", [0, 7, 100_000])
    @pytest.mark.parametrize("budget", ["1 B", "256 MiB"])
    @pytest.mark.parametrize("client_bytes", ["0 B", "8 MiB"])
    def test_limits(self, gather_rows, budget, client_bytes, in_memory, here):
        limits = {
            "dtrees.gather-rows": gather_rows,
            "dtrees.histogram-budget": budget,
            "dtrees.client-histograms": client_bytes,
        }
        model = RandomForestClassifier(2, random_state=5, max_depth=3, max_codes=16)
        alone = hash_of(model.fit(X, Y, collections.WEIGHTS))
        with on(here), dask.config.set(ROUNDS | limits):
            assert hash_of(model.fit(cut(X), cut(Y, "2"), cut(collections.WEIGHTS))) == alone
        assert_nothing_is_left(here)


class TestAlignment(collections.TestAlignment):
    """What belongs to a row is told by its number, here as well."""

    @pytest.fixture(autouse=True)
    def in_rounds(self):
        with dask.config.set(ROUNDS):
            yield
