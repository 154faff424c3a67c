"""Messages of members: in each round twice the logarithm of their number, and no more bytes."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from dtrees import GradientBoostingClassifier
from dtrees.parallel.exchange import LONG
from tests.parallel.clusters import connect, digest
from tests.parallel.test_exchange import epoch_of, results

MEMBERS = [2, 3, 4, 5, 7, 8, 11, 15, 16]


@pytest.fixture(scope="module")
def sixteen():
    """A client of 16 workers in this process."""
    with connect(16, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def most_messages(n_members):
    """Of a member in a round: to halve, to give back, and to one beyond a power of two."""
    return 2 * (n_members.bit_length() - 1) + 1


def added(members, length):
    members.sum(np.ones(length, dtype=np.int64))
    return members.work


def scattered(members, length):
    ends = [length * (part + 1) // members.n_parts for part in range(members.n_parts)]
    members.scatter(np.ones(length, dtype=np.int64), ends)
    members.sum(np.ones(1, dtype=np.int64))
    return members.work


@pytest.mark.one_of(16)
@pytest.mark.parametrize("n_members", MEMBERS)
@pytest.mark.parametrize("length", [1, 1000, LONG])
@pytest.mark.parametrize("call", [added, scattered])
def test_of_a_call(call, length, n_members, sixteen):
    with epoch_of(sixteen, n_members) as epoch:
        found = results(sixteen, epoch, call, length)
    n_bytes = 8 * length
    halvings = n_members.bit_length() - 1
    for work in found:
        assert work["messages"] <= work["rounds"] * most_messages(n_members)
        short = halvings + 1 if call is added else 2  # that is sent whole, or each part once
        assert work["bytes_moved"] <= n_bytes * (3 if n_bytes >= LONG else short) + 80


def test_of_a_boosted_model():
    """The same rounds and trees for any number of members, and about the same bytes of each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_600, 6))
    y = (X[:, 0] * X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
    of_rounds, trees, of_bytes = set(), set(), {}
    for n_members in (2, 3, 16):
        with connect(n_members, 1, False) as cluster, Client(cluster):
            model = GradientBoostingClassifier(
                max_iter=2, max_leaf_nodes=12, regime="partitioned", random_state=0
            )
            model.fit(da.from_array(X, chunks=(100, -1)), y)
        report = model.fit_report_
        assert report["epochs"] == 1
        assert report["messages"] <= n_members * report["rounds"] * most_messages(n_members)
        of_rounds.add(report["rounds"])
        trees.add(digest(model.forest_.trees))
        of_bytes[n_members] = report["bytes_moved"] / n_members
    assert len(of_rounds) == len(trees) == 1
    assert of_bytes[16] < 4 * of_bytes[2]
