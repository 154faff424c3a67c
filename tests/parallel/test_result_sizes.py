"""Results are counted with their arrays, blocks with room for what a task makes of them."""

import pickle
import subprocess
import sys

import numpy as np
from dask.sizeof import sizeof

from dtrees.coding.target import Target
from dtrees.core.stores.blocks.block import GatheredRows
from dtrees.core.stores.blocks.messages import Counts
from dtrees.parallel.block_tasks import make_codes, make_rows
from tests.laws.tables import coded

CODED = coded([[float(i % 9) for i in range(5000)] for _ in range(4)])
TARGET = Target.regression(np.arange(5000.0))
KEYS = np.arange(5000, dtype=np.uint64)
REST = TARGET.y.nbytes + KEYS.nbytes
OWN = CODED.nbytes + REST


def halves():
    return make_codes([CODED]), make_rows([TARGET], 0, [KEYS], [])


def test_sizes():
    counts = Counts(np.zeros((1, 8), dtype=np.int64), np.zeros(1000, dtype=np.int64))
    for found, n_bytes in (
        (GatheredRows(CODED, TARGET, KEYS, KEYS[:1]), OWN),
        (counts, counts.nbytes),
        (halves()[0], 1.6 * CODED.nbytes),
        (halves()[1], 1.6 * REST),
    ):
        assert n_bytes <= sizeof(found) <= 2 * n_bytes


def test_a_worker_that_gets_a_block_knows_its_size(tmp_path):
    """Though it has imported nothing of the package."""
    path = tmp_path / "block"
    path.write_bytes(pickle.dumps(halves()))
    code = (
        "import pickle, sys; from dask.sizeof import sizeof; "
        "print(sum(map(sizeof, pickle.load(open(sys.argv[1], 'rb')))))"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 1.6 * OWN
