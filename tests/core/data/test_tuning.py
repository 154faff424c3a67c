"""Thresholds between ways to the same tree: no number of them is seen in a tree."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, arrays_of, coded, fit, seeded
from tests.laws.test_shared import folds, grow_sets

NUMBERS = st.sampled_from([0, 1, 17, 50, 1 << 40])
TUNINGS = st.builds(
    Tuning,
    level_entries=NUMBERS, task_entries=NUMBERS, counted_rows=NUMBERS, shared_rows=NUMBERS,
)  # fmt: skip
EXAMPLES = [seeded(*case, n_rows=60) for case in SEVEN_WAYS]
EXPECTED = [arrays_of(fit(example)) for example in EXAMPLES]
few = settings(max_examples=max(25, settings.default.max_examples // 4))


@few
@given(st.integers(0, len(EXAMPLES) - 1), TUNINGS, st.integers(1, 3))
def test_of_a_tree(number, tuning, n_threads):
    found = fit(EXAMPLES[number], tuning=tuning, n_threads=n_threads)
    assert arrays_of(found) == EXPECTED[number]


@few
@given(st.integers(0, len(EXAMPLES) - 1), TUNINGS)
def test_of_trees_that_grow_together(number, tuning):
    example = EXAMPLES[number]
    rows = folds(example.n_rows, 3, 0)
    trees = grow_sets(example, coded(example.table), rows, tuning=tuning).trees
    assert arrays_of(trees[-1]) == EXPECTED[number]  # the set of all rows
