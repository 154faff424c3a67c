"""Fits and predictions against scikit-learn: one module per kind of table.

Whole calls of ``fit`` and ``predict`` are timed, coding included. Trees are grown to the end
(``max_depth=None``) unless the line says otherwise, with exact codes.
"""

from benchmarks.fits import (
    adaboost,
    boosting,
    categories,
    dense,
    explain,
    memory,
    prediction,
    small,
    sparse,
    targets,
    text,
    weather,
)

CASES = [
    *dense.CASES,
    *text.CASES,
    *sparse.CASES,
    *weather.CASES,
    *small.CASES,
    *categories.CASES,
    *prediction.CASES,
    *memory.CASES,
    *boosting.CASES,
    *adaboost.CASES,
    *explain.CASES,
    *targets.CASES,
]
