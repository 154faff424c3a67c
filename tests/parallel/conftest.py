"""Clients of clusters on this machine."""

import dask
import pytest
from distributed import Client

from tests.parallel.clusters import connect


@pytest.fixture(autouse=True)
def scheduler():
    """The scheduler in force; a client that is closed in the middle of a fit may leave its own."""
    with dask.config.set(scheduler=dask.config.get("scheduler", None)):
        yield


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
