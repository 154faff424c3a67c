"""A number is listed once for all sets that have it."""

import numpy as np
import pytest

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._code_lists import list_codes
from dtrees.core.stores.blocks.block import NodeRows
from dtrees.core.stores.blocks.messages import Root

CODES = np.array([2, 1, 2, 5, 1, 2])
COMBINATION = np.array([0, 1, 1, 2, 0, 3], dtype=np.uint16)
MASKS = np.array([0b0011, 0b0111, 0b1000, 0b0010], dtype=np.uint64)
COLUMN = np.zeros(1, dtype=np.int32)


def listed(members, masks=MASKS, y=(0, 1, 1, 0, 0, 0)):
    coded = CodedMatrix.from_columns([CODES], [5], [5])
    dataset = Dataset(coded, Target.classification(y), GrowthRules(criterion="gini"))
    rows = np.arange(len(CODES), dtype=np.uint32)
    node = NodeRows(Root(0, 0), rows, None, COMBINATION, masks)
    places, values, who = list_codes(dataset, node, members, COLUMN, np.array([0, 6]))
    return places.tolist(), [divmod(v, 2**32) for v in values.tolist()], who


def test_numbers_of_several_combinations():
    """Rows, and those of class 1; places ascend, and sets as numbers at a place."""
    places, values, who = listed(0b1111)
    assert places == [1, 1, 2, 2, 2, 5]
    assert who.tolist() == [0b0011, 0b0111, 0b0010, 0b0011, 0b0111, 0b1000]
    assert values == [(1, 0), (1, 1), (1, 0), (1, 0), (1, 1), (1, 0)]


def test_combinations_that_are_the_same_for_those_who_ask():
    """Sets are numbered as they are asked for; rows of nobody are left out."""
    places, values, who = listed(0b0011)
    assert (places, who.tolist()) == ([1, 2, 2], [0b11, 0b10, 0b11])
    assert values == [(2, 1), (1, 0), (2, 1)]
    places, values, who = listed(0b0100)
    assert (places, values, who) == ([1, 2], [(1, 1), (1, 1)], None)


@pytest.mark.parametrize("members", [0b1, 0b11])
def test_nobody_has_a_row(members):
    places, values, who = listed(members, MASKS & np.uint64(0b1000))
    assert places == values == []
    assert (who is None) == (members == 1)


def test_many_combinations_in_a_cell():
    """As many as sets of rows, each listed once."""
    masks = np.arange(1, 200, dtype=np.uint64)
    coded = CodedMatrix.from_columns([np.ones(398, dtype=int)], [5], [5])
    target = Target.classification(np.arange(398) % 3)
    dataset = Dataset(coded, target, GrowthRules(criterion="gini"))
    combination = np.random.default_rng(0).permutation(398).astype(np.uint16) % 199
    rows = np.arange(398, dtype=np.uint32)
    node = NodeRows(Root(0, 0), rows, None, combination, masks)
    places, values, who = list_codes(dataset, node, 0xFF, COLUMN, np.array([0, 6]))
    assert values.sum() == 398
    pairs = list(zip(places.tolist(), who.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert {who for _, who in pairs} == set(range(1, 200))
