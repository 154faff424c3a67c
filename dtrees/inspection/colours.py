"""Colours of the nodes of a tree: the largest class, the stronger the purer; or the mean."""

from __future__ import annotations

import numpy as np

from dtrees.export.model_nodes import TreeNodes

# Colours of classes that people who see few colours tell apart (Okabe and Ito 2008).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")


def colours_of(tree: TreeNodes) -> np.ndarray:
    """Colours of all nodes, red, green and blue in [0, 1]; float64 (n_nodes, 3)."""
    value = tree.value
    if tree.is_regression:
        share = (value[:, 0] - value.min()) / (float(np.ptp(value)) or 1.0)
        first, strength = np.zeros(len(value), dtype=np.intp), 0.05 + 0.55 * share
    else:
        first, chance = value.argmax(axis=1), 1 / value.shape[1]
        strength = 0.08 + 0.4 * (value.max(axis=1) - chance) / (1 - chance or 1.0)
    named = np.array([[int(name[i : i + 2], 16) for i in (1, 3, 5)] for name in COLOURS]) / 255
    return 1 - strength[:, None] * (1 - named[first % len(COLOURS)])


def hexadecimal(colour: np.ndarray) -> str:
    """A colour as "#rrggbb"."""
    return "#" + "".join(f"{part:02x}" for part in np.rint(255 * colour).astype(int).tolist())
