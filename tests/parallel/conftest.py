"""Clients of clusters on this machine."""

import pytest
from distributed import Client

from tests.parallel.clusters import connect


@pytest.fixture(scope="module")
def processes():
    """A client of two worker processes."""
    with connect(2, 1, True) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def here():
    """A client of one worker in this process, with one thread."""
    with connect(1, 1, False) as cluster, Client(cluster) as client:
        yield client
