"""Clients of clusters on this machine."""

import signal

import dask
import pytest
from distributed import Client

from dtrees.parallel import boosted_members, partitioned
from tests.parallel.clusters import connect


@pytest.fixture(autouse=True)
def scheduler():
    """What is configured; a fit that ends in the middle may leave its scheduler, or its own."""
    ours = dict(dask.config.get("dtrees", {}))
    with dask.config.set(scheduler=dask.config.get("scheduler", None), dtrees=ours):
        yield


@pytest.fixture(autouse=True)
def handler():
    """Python's own; a shell that starts the tests in the background has them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rounds_one_by_one(monkeypatch):
    """The client hears of every round, so a fault may come between any two.

    However long a machine takes for one, and to pack the trees so far.
    """
    monkeypatch.setattr(partitioned, "slice_seconds", lambda n_members: 0)
    monkeypatch.setattr(partitioned, "PACKS_APART", 0)
    monkeypatch.setattr(boosted_members, "slice_seconds", lambda n_members: 0)


@pytest.fixture(scope="module")
def processes():
    """A client of two worker processes.

    A local cluster gives up a worker for good that is not there 15 seconds after it has died, and
    one that has been killed a second time by then is not.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        connect(2, 1, True) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def here():
    """A client of one worker in this process, with one thread."""
    with connect(1, 1, False) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def all_are_members(scheduler):
    """Tables of tests are so small that one member would pay."""
    with dask.config.set({"dtrees.members": 1000}):
        yield
