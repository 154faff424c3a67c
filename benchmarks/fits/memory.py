"""Peak memory of a fit above its table."""

from functools import partial

from benchmarks.cases import Case, Fit, Scale

ROWS, COLUMNS = 1_000_000, 30
BOOSTED_MB = 58.0  # a byte a cell, 24 bytes a row, histograms of 31 leaves


def _fit(max_bins: int | None, limit_mb: float, scale: Scale) -> Fit:
    return Fit(scale.rows(ROWS), COLUMNS, max_bins, limit_mb)


def _boosted(scale: Scale) -> Fit:
    return Fit(scale.rows(ROWS), COLUMNS, 255, BOOSTED_MB, "GradientBoostingClassifier")


CASES = [
    Case(
        "memory-255",
        "memory",
        "peak memory, 1,000,000 × 30 float32, 255 codes, fully grown",
        partial(_fit, 255, 200.0),
    ),
    Case(
        "memory-exact",
        "memory",
        "peak memory, 1,000,000 × 30 float32, exact, fully grown",
        partial(_fit, None, 600.0),
    ),
    Case(
        "memory-boost",
        "memory",
        "peak memory, 1,000,000 × 30 float32, 255 codes, boosted",
        _boosted,
    ),
]
