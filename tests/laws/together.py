"""Training sets that stay together however few rows a node has, and what they have shared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from dtrees.core.grow import shared
from dtrees.core.grow._shared_growth import TrainingSets


@contextmanager
def staying_together(**tuning: int) -> Iterator[list[TrainingSets]]:
    """A list of the training sets that grow meanwhile, with such numbers of `Tuning`."""
    found = []

    def remembered(*arguments):
        *others, given, class_weights = arguments
        given = replace(given, **{"shared_rows": 0, **tuning})
        found.append(TrainingSets(*others, given, class_weights))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "TrainingSets", remembered)
        yield found
