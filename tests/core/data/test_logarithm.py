"""The logarithm of arrays."""

import numpy as np

from dtrees.core.data._logarithm import log


def test_the_logarithm_of_an_array_is_that_of_each_number():
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-700, 700, 2000))
    x = np.concatenate([x, rng.uniform(0.5, 2.0, 2000), [1.0, np.sqrt(2), 2.0**0.5 / 2]])
    assert log(x[:, None]).ravel().tolist() == [log(number) for number in x.tolist()]
