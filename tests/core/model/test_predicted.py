"""Formulas of packed trees: a tree's gains and impurities, but for the last digits."""

from __future__ import annotations

import numpy as np
import pytest

from dtrees.core.model.packing import pack
from dtrees.core.model.predicted import log
from dtrees.core.search import _criterion
from tests.core.model.test_packing import grown


def test_the_logarithm_is_that_of_the_kernels():
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-700, 700, 2000))
    x = np.concatenate([x, rng.uniform(0.5, 2.0, 2000), [1.0, np.sqrt(2), 2.0**0.5 / 2]])
    assert log(x).tolist() == [_criterion.log(number) for number in x.tolist()]


@pytest.mark.parametrize("name", ["gini, two classes", "gini, three classes"])
def test_predictions_are_off_by_a_few_last_digits(name):
    arrays, _ = pack(grown(name))
    for off in ("gain", "impurity"):
        assert abs(arrays.get(off, np.zeros(1)).astype(np.int64)).max() < 100
        assert f"{off}.escapes" not in arrays
