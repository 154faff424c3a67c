"""One model: the hash of all arrays of all trees, wherever it grows and however its rows lie.

Over threads, schedulers, workers and regimes; matrices of any storage and partitions of any size.
Layouts and places that are many are in `tests.parallel.test_chaos`.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context

import dask
import pytest
from distributed import Client, worker_client

from dtrees.core.stores.blocks.block import Resolution
from dtrees.parallel import memory
from tests.pairs import parametrize_in_turn
from tests.parallel.clusters import connect
from tests.parallel.faults import ROUNDS, assert_nothing_is_left
from tests.parallel.test_collections import (
    CASES,
    FRAME,
    N_ROWS,
    SPARSE,
    Folds,
    fit,
    hash_of,
    in_memory,
    on,
)

WITHOUT_BOUNDS = ("absolute", "several", "cuts", "pruned", "bags", "sparse", "boosted")
REPLICATED = {"dtrees.regime": "replicated"}
PLACES = {  # a client, and what is asked for
    "synchronous": (None, {"scheduler": "synchronous"}),
    "threads": (None, {"scheduler": "threads"}),
    "rounds": (None, {**ROUNDS, "dtrees.histogram-budget": 200_000}),
    "intervals": (None, ROUNDS),
    "a worker": ("worker", REPLICATED),
    "rounds of a worker": ("worker", ROUNDS),
    "two workers": ("processes", REPLICATED),
    "rounds of two workers": ("processes", ROUNDS),
    "anywhere": ("processes", {}),
}


@pytest.fixture(scope="module")
def worker():
    """A client of one worker in this process, with two threads."""
    with connect(1, 2, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def layout_of(case, number):
    """One of the ways in which the table of a case may lie."""
    table = CASES[case][1]
    if table is SPARSE:
        layouts = [None, "64", "csc", "2", "dense", "7"]
    else:
        layouts = [None, "2", "7", "64"] if table is FRAME else [None, "1", "2", "7", "64"]
    return layouts[number % len(layouts)]


def test_models_differ():
    assert len({in_memory(case) for case in CASES}) == len(CASES)


@pytest.mark.one_of(20)
@parametrize_in_turn(3, ("case", CASES), ("place", PLACES))
def test_one_model(case, place, request, monkeypatch):
    name, config = PLACES[place]
    client = name and request.getfixturevalue(name)
    if place == "intervals":  # columns of a few codes are counted by a few of them
        monkeypatch.setattr(memory, "RESOLUTION", Resolution(8, 20, 5))
    layout = layout_of(case, [*CASES].index(case) + [*PLACES].index(place))
    with on(client) if client else nullcontext(), dask.config.set(config):
        model = fit(case, layout, n_jobs=2)
    assert hash_of(model) == in_memory(case), layout
    assert_report(model, case, place)
    if client:
        assert_nothing_is_left(client)


@pytest.mark.one_of(8)
@pytest.mark.parametrize("layout", [None, "7"])
@pytest.mark.parametrize("case", ["forest", "folds of tree", "folds of forest", "mixed"])
def test_in_a_task(case, layout, here):
    """The worker has one thread: work that waited for it would wait for ever."""

    def grow(has_client, regime=None):
        config = ROUNDS | {"dtrees.regime": regime}
        with worker_client() if has_client else nullcontext(), dask.config.set(config):
            model = fit(case, layout)
            return model.fit_report_["regime"], hash_of(model)

    for has_client in (False, True):
        for regime in (None, "replicated", "partitioned"):
            found = here.submit(grow, has_client, regime, pure=False).result(60)
            is_large = has_client and case != "folds of tree"
            expected = regime or ("replicated" if is_large else "local")
            assert found == (expected, in_memory(case)), (has_client, regime)
    several = [here.submit(grow, False, pure=False) for _ in range(3)]
    assert set(here.gather(several)) == {("local", in_memory(case))}
    del several
    assert_nothing_is_left(here)


def assert_report(model, case, place):
    """Codes of intervals are asked for where there are bounds; sets share rows of one weight."""
    report, (_, _, _, weight) = model.fit_report_, CASES[case]
    if place == "rounds":
        assert "code_rounds" not in report
    if place == "intervals" and not any(word in case for word in WITHOUT_BOUNDS):
        assert report["code_requests"] > report["code_rounds"] > 1
    if "rounds" in place and isinstance(model, Folds) and "boosted" not in case:
        weighs = weight is not None or getattr(model.model, "class_weight", None) is not None
        is_drawn_by_weight = weighs and getattr(model.model, "bootstrap", False)
        assert (report["shared_rows"] > 3 * N_ROWS / 20) == (not is_drawn_by_weight)


@pytest.mark.long
@pytest.mark.parametrize("regime", ["local", "partitioned"])
def test_the_scheduler_of_processes(regime):
    """It would start new ones for every graph."""
    config = {**ROUNDS, "dtrees.regime": regime, "scheduler": "processes"}
    with ProcessPoolExecutor(2, get_context("spawn")) as pool, dask.config.set(config, pool=pool):
        assert hash_of(fit("mixed", "7")) == in_memory("mixed")
