"""Models are what they were, bit for bit. `make golden` compares all of them, in every way."""

import pytest

from tests.golden.models import CASES, digests_of, expected
from tests.golden.ways import WAYS


@pytest.mark.one_of(20)
@pytest.mark.parametrize("way", WAYS, ids=["wide", "plain, two threads", "in rounds"])
@pytest.mark.parametrize("name", CASES)
def test_models_are_what_they_were(name, way):
    assert digests_of(name, way) == expected()[name]


def test_every_case_has_a_digest():
    assert list(expected()) == list(CASES)
    assert len({tuple(found) for found in expected().values()}) > 0.95 * len(CASES)
