"""Warnings that point to the line of the user, through whatever is called in between."""

from __future__ import annotations

import sys
import warnings

# Packages and modules that call dtrees as often as it calls them.
BETWEEN = (
    "contextlib",
    "dask",
    "distributed",
    "dtrees",
    "functools",
    "joblib",
    "pandas",
    "sklearn",
)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn where the first caller outside of dtrees, and of `BETWEEN`, stands.

    In a thread, that is the line of Python's own that runs it.
    """
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        if frame.f_back is None:  # a thread
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
