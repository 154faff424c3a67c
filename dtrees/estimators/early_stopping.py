"""When a forest has enough trees: its out-of-bag score is flat.

With s(t) the out-of-bag score of the first t trees and w = 10, scores are smoothed over a window,

    m(t) = (s(t - w + 1) + ... + s(t)) / w

and growth stops after t trees, at least 2 w, as soon as none of the last w means is better than the
one before them by more than the tolerance:

    max(m(t - w + 1), ..., m(t)) <= m(t - w) + oob_tol

It is the rule of scikit-learn's histogram gradient boosting (``n_iter_no_change``, ``tol``) on
smoothed scores: s(t) goes up and down by noise from tree to tree, a mean of ten much less. s(t) is
a function of the first t trees, so the tree at which a forest stops is, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from dtrees.callbacks import Callback, ForestFit

WINDOW = 10

logger = logging.getLogger(__name__)


def is_flat(scores: Sequence[float], tol: float) -> bool:
    """Whether the last of the scores are no better than those before them; see the module.

    Parameters
    ----------
    scores : sequence of float
        Of the first 1, 2, ... trees; nan where there is none, which is never flat.
    tol : float
    """
    if len(scores) < 2 * WINDOW:
        return False
    last = np.array(scores[-2 * WINDOW :])
    means = np.array([last[i : i + WINDOW].mean() for i in range(WINDOW + 1)])
    return bool((means[1:] <= means[0] + tol).all())


class OobStopping(Callback):
    """Scores the forest after every tree and stops it when the score is flat.

    Parameters
    ----------
    tol : float
    score : callable () -> float
        Out-of-bag score of the trees so far; larger is better.
    """

    def __init__(self, tol: float, score: Callable[[], float]) -> None:
        self._tol = tol
        self._score = score

    def see(self, scores: list[float]) -> bool:
        """Add the score of the trees so far; returns whether they are enough."""
        scores.append(self._score())
        return is_flat(scores, self._tol)

    def on_tree_end(self, fit: ForestFit, number: int) -> bool:
        """Stop when the scores are flat."""
        flat = self.see(fit.oob_scores)
        if flat:
            logger.info(
                "stopped after %d of %d trees: the out-of-bag score, %.6g, has not improved by "
                "more than oob_tol=%g for %d trees",
                number + 1,
                fit.numbers.stop,
                fit.oob_scores[-1],
                self._tol,
                WINDOW,
            )
        return flat
