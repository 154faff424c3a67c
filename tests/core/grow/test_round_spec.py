"""What trees are grown from in rounds, and the same for one training set."""

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.membership.class_weights import ClassWeights
from dtrees.core.stores.blocks.block import Draws
from tests.laws.tables import cut_in_parts, seeded, spec_of

EXAMPLE = seeded("gini", 2, "none")
SPEC = spec_of(cut_in_parts(EXAMPLE, 70), EXAMPLE.rules, None)


def test_one_of_the_sets():
    common = replace(SPEC.common, masks=np.array([0b01, 0b11, 0b10], dtype=np.uint64))
    weights = ClassWeights(np.array([[1, 2], [3, 4]]), np.array([0, 5]))
    spec = replace(SPEC, common=common, n_sets=2, n_rows=np.array([40, 60]), class_weights=weights)
    alone = spec.only(1)
    assert alone.common.masks.tolist() == [0, 1, 1]
    assert (alone.n_sets, alone.n_rows.tolist()) == (1, [60])
    assert alone.class_weights.multiplier.tolist() == [[3, 4]]
    assert alone.class_weights.exponent.tolist() == [5]
    assert alone.may_be_empty  # a bag of all rows may have none of the set


@pytest.mark.parametrize(
    ("criterion", "draws", "is_apart"),
    [
        ("gini", None, False),
        ("gini", Draws(0, 1.0), False),
        ("gini", Draws(0, 1.0, balanced=True), False),  # weights of classes multiply sums of rows
        ("poisson", None, True),  # the scale of logarithms is
    ],
)
def test_what_rows_add_depends_on_their_set(criterion, draws, is_apart):
    common = replace(
        SPEC.common, draws=draws, rules=replace(SPEC.common.rules, criterion=criterion)
    )
    assert replace(SPEC, common=common).is_apart == is_apart
