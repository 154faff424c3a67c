"""Dense numbers, all distinct: the plain case."""

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.fits.pairs import same_fit

ROWS = 100_000


def _classification(scale: Scale) -> Contest:
    return same_fit(*data.classification(scale.rows(ROWS)))


def _regression(scale: Scale) -> Contest:
    return same_fit(*data.regression(scale.rows(ROWS)))


CASES = [
    Case(
        "dense-classification",
        "fits",
        "100,000 × 30 float32, two classes, fully grown",
        _classification,
        reach=10,
        aim=18,
    ),
    Case(
        "dense-regression",
        "fits",
        "100,000 × 30 float32, regression with noise, fully grown",
        _regression,
        reach=10,
        aim=18,
    ),
]
