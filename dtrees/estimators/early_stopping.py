"""When a forest has enough trees: its out-of-bag score is flat.

With s(t) the out-of-bag score of the first t trees and w = 10, scores are smoothed over a window,

    m(t) = (s(t - w + 1) + ... + s(t)) / w

and growth stops after t trees, at least 2 w, when no mean of the second half of the trees beats the
best of the first half by more than the tolerance:

    max(m(h + 1), ..., m(t)) <= max(m(w), ..., m(h)) + oob_tol,     h = t // 2

Why half of the trees: the error of a forest falls about as c / t. Ten trees more then win 10 c /
t**2. All that are still to come win c / t, t / 10 times as much. So a rule that looks back on ten
trees stops a slow score too early. It gives away the more tolerances, the later it stops. The
second half of the trees has won c / t, too, as much as all that are to come. So when it has won
less than the tolerance, about a tolerance is given away.

From tree to tree, s(t) goes up and down by noise; a mean of ten does much less. As s(t) is a
function of the first t trees, so is the tree at which a forest stops.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from dtrees.callbacks import Callback, ForestFit

WINDOW = 10

logger = logging.getLogger(__name__)


def is_flat(scores: Sequence[float], tol: float) -> bool:
    """Whether the scores of the second half are no better than those of the first; see the module.

    Scores are of the first 1, 2, ... trees; nan where there is none. They are not flat while the
    best of the first half is unknown, or one of the second half is.
    """
    if len(scores) < 2 * WINDOW:
        return False
    means = np.lib.stride_tricks.sliding_window_view(np.array(scores), WINDOW).mean(axis=1)
    n_before = len(scores) // 2 - WINDOW + 1
    before, recent = means[:n_before], means[n_before:]
    before = before[~np.isnan(before)]
    return len(before) > 0 and bool((recent <= before.max() + tol).all())


class OobStopping(Callback):
    """Scores the forest after every tree (larger is better) and stops it when the score is flat."""

    def __init__(self, tol: float, score: Callable[[], float]) -> None:
        self._tol = tol
        self._score = score

    def see(self, scores: list[float]) -> bool:
        """Add the score of the trees so far; returns whether they are enough."""
        scores.append(self._score())
        return is_flat(scores, self._tol)

    def ends(self, scores: list[float], n_trees: int) -> bool:
        """Add the score of the trees so far; returns whether these are enough, and logs it.

        n_trees : how many there might be.
        """
        flat = self.see(scores)
        if flat:
            logger.info(
                "stopped after %d of %d trees: the out-of-bag score, %.6g, has not improved by "
                "more than oob_tol=%g in the last %d trees",
                len(scores),
                n_trees,
                scores[-1],
                self._tol,
                len(scores) - len(scores) // 2,
            )
        return flat

    def on_tree_end(self, fit: ForestFit, number: int) -> bool:
        """Stop when the scores are flat."""
        return self.ends(fit.oob_scores, fit.numbers.stop)
