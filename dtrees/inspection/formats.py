"""How numbers, dates, durations and categories are printed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

FIXED_DECIMALS = 8
SAFE_DIGITS = 15  # significant: with more of them 0.49 may become 0.48999999999999999
NANOSECONDS = {"D": 86_400_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000}
SHORT = {"D": 10, "m": 16, "s": 19, "ms": 23, "us": 26, "ns": 29}


def category_word(value: Any) -> str:
    """A category in a set: as it is, in quotes where the set would be misread."""
    word = str(value)
    if word != word.strip() or not word or any(mark in word for mark in ",{}\n"):
        return repr(word)
    return word


def number_format(values: np.ndarray, decimals: int) -> Callable[[float], str]:
    """How to print numbers so that the text can be trusted.

    Distinct numbers look different, and rounding changes none of them by more than one in a
    hundred. Where more than eight decimals would be needed, numbers have significant digits, and
    where fifteen of these are not enough, the shortest form that gives them back.
    """
    for more in range(decimals, max(decimals, FIXED_DECIMALS) + 1):
        if _tells_apart([f"{v:.{more}f}" for v in values], values):
            return lambda v: f"{v + 0.0:.{more}f}"
    for digits in range(3, SAFE_DIGITS + 1):
        if _tells_apart([f"{v:.{digits}g}" for v in values], values):
            return lambda v: f"{v + 0.0:.{digits}g}"
    return lambda v: repr(float(v) + 0.0)


def date_format(values: np.ndarray, decimals: int) -> Callable[[float], str]:
    """How to print nanoseconds since 1970 as dates: the coarsest unit that says enough.

    Days, minutes or seconds when that is exact; otherwise as fine as it takes to tell the dates
    apart.
    """
    whole = np.rint(values).astype(np.int64)
    unit = next((u for u, size in NANOSECONDS.items() if not np.any(whole % size)), None)
    if unit is None:
        unit = next(
            u
            for u in ("s", "ms", "us", "ns")
            if u == "ns" or len(np.unique(whole.astype("M8[ns]").astype(f"M8[{u}]"))) == len(whole)
        )

    def text(value: float) -> str:
        date = np.datetime64(round(value), "ns")
        return str(date)[: SHORT[unit]].replace("T", " ")

    return text


def duration_format(values: np.ndarray, decimals: int) -> Callable[[float], str]:
    """How to print nanoseconds as durations, to the microsecond: "1 day, 2:00:00"."""
    return lambda value: str(timedelta(microseconds=value / 1000))


FORMATS = {"datetime64[ns]": date_format, "timedelta64[ns]": duration_format}


def _tells_apart(texts: list[str], values: np.ndarray) -> bool:
    shown = np.array([float(text) for text in texts])
    precise = np.all(np.abs(shown - values) <= 0.01 * np.abs(values))
    return bool(precise) and len(np.unique(shown)) == len(shown)
