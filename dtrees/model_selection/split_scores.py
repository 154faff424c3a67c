"""What results that hold scores of splits have in common: means, errors, what a pickle keeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class SplitScores:
    """Scores whose last axis are the splits; not meant to be used itself.

    A pickle leaves behind what has grown for the splits (`_grown`).
    """

    scores: np.ndarray

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_grown": None}

    @property
    def mean(self) -> np.ndarray:
        """Mean over the splits, float64 array of the shape of `scores` without its last axis."""
        found: np.ndarray = self.scores.mean(axis=-1)
        return found

    @property
    def standard_error(self) -> np.ndarray:
        """Its standard error, ``s / sqrt(n_splits)``; nan for one split. The same shape."""
        n_splits = self.scores.shape[-1]
        if n_splits < 2:
            return np.full(self.scores.shape[:-1], np.nan)
        found: np.ndarray = self.scores.std(axis=-1, ddof=1) / math.sqrt(n_splits)
        return found

    def _allowed(self, best: int | tuple[int, ...]) -> float:
        """A standard error below one of the means; one split has no error."""
        return float(self.mean[best] - np.nan_to_num(self.standard_error[best]))
