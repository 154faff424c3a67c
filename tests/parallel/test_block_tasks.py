"""What workers do in a growth of partitions: counts in stretches."""

from itertools import pairwise

import numpy as np
import pytest

from dtrees.core.stores.blocks.messages import Counts, add_up
from dtrees.parallel.block_tasks import Work, add_counts, cut_counts, joined


def counted(seed):
    rng = np.random.default_rng(seed)
    counts = Counts(rng.integers(0, 9, (3, 10)), rng.integers(0, 9, 20))
    return counts, Work(cache_hits=seed, rebuilds=1)


@pytest.mark.parametrize("ends", [(0, 20), (0, 7, 20), (0, 1, 2, 20)])
def test_stretches_add_up_to_the_whole(ends):
    tasks = [counted(seed) for seed in range(4)]
    stretches = [
        add_counts([cut_counts(each, first, last) for each in tasks])
        for first, last in pairwise(ends)
    ]
    total = joined([counts for counts, _ in stretches])
    whole = add_up([counts for counts, _ in tasks])
    np.testing.assert_array_equal(total.sums, whole.sums)
    np.testing.assert_array_equal(total.histogram, sum(counts.histogram for counts, _ in tasks))
    assert sum(work["cache_hits"] for _, work in stretches) == 0 + 1 + 2 + 3
    assert sum(work["rebuilds"] for _, work in stretches) == 4
