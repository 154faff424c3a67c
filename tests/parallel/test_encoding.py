"""Summaries of wide tables are merged by stretches of columns, for small workers."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.local import get_sync
from numpy.testing import assert_array_equal

from dtrees.coding import CodeBook
from dtrees.coding.sampling import CutRules
from dtrees.parallel import encoding, memory
from dtrees.parallel.encoding import Coding, code_partitions
from dtrees.parallel.executors import LocalExecutor
from dtrees.parallel.partitions import admitted

RULES = CutRules(max_bins=20, sample_rows=64, seed=3)
CODING = Coding(7, None, None, RULES, "missing", takes_infinities=False)


class Small(LocalExecutor):
    """Workers that have room for the samples of two columns."""

    def room(self) -> int:
        free = 2 * memory.SAMPLED_BYTES * RULES.sample_rows / memory.STRETCH_SHARE
        return 8 * int(free)  # an eighth of so little


def table(kind):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(500, 7)), 2)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 3] = rng.integers(0, 9, 500)
    if kind == "frame":
        names = [f"c{j}" for j in range(7)]
        return pd.DataFrame(X, columns=names).assign(c5=rng.choice(["p", "q"], 500))
    return X


def collection(X, kind):
    if kind == "frame":
        dd = pytest.importorskip("dask.dataframe")
        return dd.from_pandas(X, npartitions=9)
    chunks = da.from_array(X, chunks=(50, -1))
    if kind == "sparse":
        return chunks.map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))
    return chunks


@pytest.mark.parametrize("kind", ["dense", "frame", "sparse"])
def test_the_same_book_by_stretches(kind, monkeypatch):
    X = table(kind)
    settled = []
    settle = encoding._settle

    def counted(summaries):
        settled.append(settle(summaries))
        return settled[-1]

    monkeypatch.setattr(encoding, "_settle", counted)
    (partitioned,) = admitted(collection(X, kind), {})
    book, coded = code_partitions(partitioned, CODING, "local", Small(get_sync))
    assert len(settled) == 4
    given = sp.csr_array(X) if kind == "sparse" else X
    expected, codes = CodeBook.fit_encode(given, **vars(RULES))
    for name in ("n_codes", "n_ordered", "offsets", "low", "high", "exact", "units"):
        assert_array_equal(getattr(book, name), getattr(expected, name), strict=True)
    for j in range(7):
        assert_array_equal(coded.column(j), codes.column(j), strict=True)


def test_blocks_of_both_kinds_are_refused():
    X = table("dense")
    mixed = da.concatenate([collection(X, "dense"), collection(X, "sparse")])
    (partitioned,) = admitted(mixed, {})
    with pytest.raises(ValueError, match="Some blocks of X are sparse and others are dense"):
        code_partitions(partitioned, CODING, "local", Small(get_sync))


def test_dask_knows_what_to_spill():
    """Objects are counted with their arrays."""
    from dask.sizeof import sizeof

    from dtrees.coding.summaries import TableSummary
    from dtrees.coding.tables import read_table
    from dtrees.coding.target import Target

    X = table("dense")
    _, coded = CodeBook.fit_encode(X, **vars(RULES))
    target = Target.regression(X[:, 3])
    summary = TableSummary.of(read_table(X), rules=CutRules(max_bins=20, sample_rows=500))
    for found, least in ((coded, coded.nbytes), (target, target.y.nbytes), (summary, 7 * 8 * 300)):
        assert least <= sizeof(found) <= 2 * least + 20_000
