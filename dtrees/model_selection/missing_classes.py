"""Test sides that lack a class, where a score is not defined without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from dtrees._warnings import warn
from dtrees.coding.labels import is_missing
from dtrees.model_selection.splits import Split, rows_of_side

SHOWN = 5  # splits or classes of a message


def undefined(
    scores: Mapping[str, np.ndarray], splits: Sequence[Split], y: Any, *, folds: bool = False
) -> str | None:
    """Which scores are nan as test sides lack classes, and which side lacks which class.

    `scores`, float64 (..., n_splits), are those of test sides by the names of their scorers. Splits
    are counted from 0, as in ``cv_results_``, and `folds` from 1. A scorer that is nan of a side
    with all classes fails for another reason, and is not named.
    """
    failed = {
        name: np.isnan(found).reshape(-1, len(splits)).any(axis=0)
        for name, found in scores.items()
        if found.dtype.kind == "f" and np.isnan(found).any()
    }
    if not failed:
        return None
    labels = np.asarray(y).ravel()
    classes = [label for label in dict.fromkeys(labels.tolist()) if not is_missing(label)]
    lacking, complete = {}, np.zeros(len(splits), dtype=bool)
    for number in np.flatnonzero(np.any(list(failed.values()), axis=0)).tolist():
        present = set(labels[rows_of_side(splits, number, "test")].tolist())
        absent = [label for label in classes if label not in present]
        if present and absent:
            side = f"fold {number + 1}" if folds else f"split {number}"
            lacking[number] = f"{side} has no row of {_listed(absent)}"
        elif present:
            complete[number] = True
    failed = {name: sides for name, sides in failed.items() if not sides[complete].any()}
    said = [words for number, words in lacking.items() if any(s[number] for s in failed.values())]
    if not said:
        return None
    of = "" if list(failed) == ["score"] else f" of {', '.join(failed)}"
    return (
        f"Scores{of} are nan where test sides lack classes: {_listed(said, '; ')}. Take fewer "
        "or stratified folds, a score such as neg_log_loss, or join rare classes."
    )


def _listed(values: Sequence[Any], between: str = ", ") -> str:
    more = f"{between}and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return between.join(map(str, values[:SHOWN])) + more


def warn_of_undefined(scores: Mapping[str, np.ndarray], splits: Sequence[Split], y: Any) -> None:
    """Warn (UndefinedMetricWarning) of what `undefined` finds."""
    found = undefined(scores, splits, y)
    if found is not None:
        warn(found, UndefinedMetricWarning)
