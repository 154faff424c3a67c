"""Lists of codes of dense columns, beside the histograms of the same rows."""

import numpy as np
import pytest

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._code_lists import list_codes
from dtrees.core.stores.blocks._node_counts import count
from dtrees.core.stores.blocks._stored_lists import of_sets
from dtrees.core.stores.blocks.block import EVERYONE, NodeRows
from dtrees.core.stores.blocks.messages import Root

N_ROWS = 30_000
N_CODES = (40, 25_000, 5, 700)
RNG = np.random.default_rng(0)
CODES = [RNG.integers(0, n + 1, N_ROWS) for n in N_CODES]
CODED = CodedMatrix.from_columns(CODES, N_CODES, N_CODES)
ROWS = np.flatnonzero(RNG.random(N_ROWS) < 0.8).astype(np.uint32)
TIMES = RNG.integers(1, 5, len(ROWS)).astype(np.uint16)
MASKS = np.array([0b0111, 0b1011, 0b0001], dtype=np.uint64)
COMBINATION = RNG.integers(0, 3, len(ROWS)).astype(np.uint16)
FIRST = np.cumsum([0, *(n + 1 for n in N_CODES)])
COLUMNS = np.array([0, 1, 3], dtype=np.int32)
TARGETS = {
    "gini": Target.classification(RNG.integers(0, 3, N_ROWS)),
    "two classes": Target.classification(RNG.integers(0, 2, N_ROWS)),
    "squared_error": Target.regression(RNG.integers(-3, 4, N_ROWS).astype(float), center=False),
}


def in_full(lists, n_words):
    """Cells of all columns, one behind the other."""
    full = np.zeros((len(lists), FIRST[-1] * n_words), dtype=int)
    for own, (places, values) in zip(full, lists, strict=True):
        assert (np.diff(places) > 0).all()
        assert (values != 0).all()
        own[places] = values
    return full.reshape(len(lists), -1, n_words)


@pytest.mark.parametrize("members", [0b1111, 0b0110, 0b1000])
@pytest.mark.parametrize("times", [None, TIMES])
@pytest.mark.parametrize("name", TARGETS)
def test_what_histograms_have(name, times, members):
    criterion = "squared_error" if name == "squared_error" else "gini"
    dataset = Dataset(CODED, TARGETS[name], GrowthRules(criterion=criterion))
    for node, asked in (
        (NodeRows(Root(0, 0), ROWS, times, COMBINATION, MASKS), members),
        (NodeRows(Root(0, 0), ROWS, times, None, EVERYONE), 1),
        (NodeRows(Root(0, 0), ROWS[:0], None, None, EVERYONE), 1),
    ):
        _, histogram = count(dataset, node, asked, COLUMNS)
        n_words = histogram.shape[1] // sum(N_CODES[j] + 1 for j in COLUMNS)
        n_sets = asked.bit_count()
        found = of_sets(*list_codes(dataset, node, asked, COLUMNS, FIRST), n_sets)
        full = in_full(found, n_words)
        assert not full[:, FIRST[2] : FIRST[3]].any()
        kept = np.concatenate([np.arange(FIRST[j], FIRST[j + 1]) for j in COLUMNS])
        np.testing.assert_array_equal(full[:, kept].reshape(histogram.shape), histogram)


def test_codes_of_some_intervals():
    """All codes of an interval, or none; those of a column in words of its own."""
    dataset = Dataset(CODED, TARGETS["gini"], GrowthRules(criterion="gini"))
    node = NodeRows(Root(0, 0), ROWS, None, COMBINATION, MASKS)
    ways = np.array([3, 9, 0, 4], dtype=np.uint8)
    alive, is_alive = [], np.zeros(FIRST[-1], dtype=bool)
    for j in COLUMNS:
        interval = (np.arange(N_CODES[j] + 1) + (1 << int(ways[j])) - 1) >> int(ways[j])
        bits = RNG.random(interval[-1] + 1) < 0.3
        is_alive[FIRST[j] : FIRST[j + 1]] = bits[interval]
        words = np.zeros((interval[-1] + 1) // 64 + 1, dtype=np.uint64)
        words.view(np.uint8)[: -(-len(bits) // 8)] = np.packbits(bits, bitorder="little")
        alive.append(words)
    asked = COLUMNS, FIRST, ways, np.concatenate(alive)
    found, whole = (
        in_full(of_sets(*list_codes(dataset, node, 0b1011, *some), 3), 3)
        for some in (asked, (COLUMNS, FIRST))
    )
    np.testing.assert_array_equal(found, whole * is_alive[:, None])
    assert 0 < np.count_nonzero(found) < np.count_nonzero(whole)
