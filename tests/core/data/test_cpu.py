"""Whether loops use registers of 256 bits is chosen, and changed back."""

import pytest

from dtrees.core.data._cpu import use_wide
from tests.laws.tables import SEVEN_WAYS, arrays_of, fit, seeded


@pytest.fixture(autouse=True)
def as_before():
    before = use_wide(True)
    yield
    use_wide(before)


def test_what_was_before_is_told():
    has_wide = use_wide(False)
    assert use_wide(True) is False
    assert use_wide(False) == has_wide  # True only where the processor has them
    assert use_wide(False) is False


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_no_tree_depends_on_it(case):
    example = seeded(*case, max_features=3, seed=2)
    found = []
    for wide in (True, False):
        use_wide(wide)
        found.append(arrays_of(fit(example)))
    assert found[0] == found[1]
