"""Tables on which scikit-learn needs 50 to 100 ms: what a fit costs beside growing counts."""

from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.fits.pairs import same_fit

NAMES = {
    "letter": "letter 20,000 × 16, 26 classes",
    "spambase": "spambase 4,601 × 57",
    "covertype_20k": "covertype_20k 20,000 × 54, 7 classes",
    "california_housing": "california 20,640 × 8, regression",
}


def _fit(name: str, scale: Scale) -> Contest:
    X, y = data.real(name)
    return same_fit(X.to_numpy(np.float64), y)


CASES = [
    Case(name, "fits", f"{work}, fully grown", partial(_fit, name), 4, 8, repeats=11)
    for name, work in NAMES.items()
]
