"""The size of a coded table before it is coded: never less than it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dtrees.coding import CodeBook
from dtrees.parallel.regimes import TOO_LARGE, Choice
from dtrees.parallel.sizes import (
    Machines,
    bytes_in_words,
    place_of,
    seconds_in_words,
    size_of_table,
)
from tests.parallel.clusters import make_small

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
    assert size.collection is None


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
    here.wait_for_workers(3, timeout=20)
    choice, machines = place_of(size, None, 2)
    assert choice.regime == "replicated"
    assert machines == Machines(2, 2, None, is_cluster=True)  # those that can hold the table


def test_words():
    assert bytes_in_words(3 * 2**20) == "3.00 MiB"
    assert seconds_in_words(90) == "90.00 s"
