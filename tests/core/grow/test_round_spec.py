"""What trees are grown from in rounds, and the same for one training set."""

from dataclasses import replace

import numpy as np

from dtrees.core.membership.class_weights import ClassWeights
from tests.laws.tables import cut_in_parts, seeded, spec_of

EXAMPLE = seeded("gini", 2, "none")
SPEC = spec_of(cut_in_parts(EXAMPLE, 70), EXAMPLE.rules, None)


def test_one_of_the_sets():
    common = replace(SPEC.common, masks=np.array([0b01, 0b11, 0b10], dtype=np.uint64))
    weights = ClassWeights(np.array([[1, 2], [3, 4]]), np.array([0, 5]))
    spec = replace(SPEC, common=common, n_sets=2, n_rows=np.array([40, 60]), class_weights=weights)
    alone = spec.some([1])
    assert alone.common.masks.tolist() == [0, 1, 1]
    assert (alone.n_sets, alone.n_rows.tolist()) == (1, [60])
    assert alone.class_weights.multiplier.tolist() == [[3, 4]]
    assert alone.class_weights.exponent.tolist() == [5]
    assert alone.may_be_empty  # a bag of all rows may have none of the set


def test_some_of_the_sets():
    masks = np.array([0b001, 0b011, 0b110, 0b101], dtype=np.uint64)
    common = replace(SPEC.common, masks=masks)
    spec = replace(SPEC, common=common, n_sets=3, n_rows=np.array([40, 60, 50]))
    some = spec.some([2, 0])
    assert some.common.masks.tolist() == [0b10, 0b10, 0b01, 0b11]
    assert (some.n_sets, some.n_rows.tolist()) == (2, [50, 40])
    assert some.class_weights is None
