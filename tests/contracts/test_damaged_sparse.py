"""A damaged sparse matrix is an error of ours wherever it enters, and never ends the process.

The ways in are found by looking: all public functions and methods with an argument ``X``. They are
called in child processes, so that a crash is a failed test.
"""

import re

import pytest

from tests.contracts.damaged import BEGUN, ask, entries
from tests.fuzz.children import in_child

# These ask a table for its shape, and for no cell.
ONLY_COUNTS = ("estimate_cost", "HashKFold.split", "HashKFold.folds", "HashKFold.get_n_splits")
REFUSED = re.compile(
    r"ValueError: \w+ is a sparse \w+ of shape .* that is damaged: .*Build it anew"
)
BEFORE = re.compile(  # X is looked at
    r"TypeError: .* (needs models that grow together|predicts a weighted median of its trees)"
)
OF_ROWS = ("y", "groups", "sample_weight", "bootstrap_groups", "params")


def test_all_are_found():
    found = {name for names in entries().values() for name in names}
    assert len(found) > 70
    for name in ("cross_validate", "validation_surface", "cost_complexity_cv", "tuned_size"):
        assert f"dtrees.model_selection.{name}" in found


@pytest.mark.one_of(10)
@pytest.mark.parametrize("owner", entries())
def test_damaged_matrices_are_refused(owner):
    ending = in_child(ask, entries()[owner])
    assert not ending.why, (ending.why, ending.found[-1])
    of_tables = [each for each in ending.found if each[2] != BEGUN and each[1] not in OF_ROWS]
    assert len(of_tables) > 20
    wrong = [
        (name, damage, outcome)
        for name, damage, outcome in of_tables
        if not any(part in name for part in ONLY_COUNTS)
        and not (REFUSED.match(outcome) or BEFORE.match(outcome))
    ]
    assert wrong == []
