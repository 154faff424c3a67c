"""Scores that are not defined: a test side lacks a class, or no label is the positive one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer

from dtrees._warnings import warn
from dtrees.coding.labels import is_missing
from dtrees.estimators.scorers import refuse_unfit, with_positive_class
from dtrees.model_selection.folds import Split, rows_of_side
from dtrees.model_selection.prefitted_proxy import asks_for_predictions
from dtrees.model_selection.prepare import SplitTable

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
    labels, classes = np.asarray(y).ravel(), _classes_of(y)
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


def _classes_of(y: Any) -> list[Any]:
    """Labels, in the order in which they come."""
    labels = dict.fromkeys(np.asarray(y).ravel().tolist())
    return [label for label in labels if not is_missing(label)]


def _listed(values: Sequence[Any], between: str = ", ") -> str:
    more = f"{between}and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return between.join(map(str, values[:SHOWN])) + more


def without_positive_class(scores: Mapping[str, np.ndarray], scoring: Any, y: Any) -> str | None:
    """Which scores are nan as no label is their positive class, and what says which one is.

    Scorers of scikit-learn, of two classes; `scoring` is as for `cross_validate`.
    """
    failed = [name for name, own in scores.items() if own.dtype.kind == "f" and np.isnan(own).all()]
    classes = _classes_of(y) if failed else []
    if len(classes) != 2:
        return None
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    said = {}
    for name in failed:
        scorer = scoring.get(name) if isinstance(scoring, Mapping) else scoring
        if scorer is not None and asks_for_predictions(scorer):
            found = with_positive_class(get_scorer(scorer), np.unique(classes))
            if found is not None:
                said[name] = found
    if not said:
        return None
    reason = next(iter(said.values()))[0]
    if list(said) == ["score"]:
        return (
            f"Scores are nan of all splits: {reason}. Say which one is: scoring={said['score'][1]}."
        )
    calls = ", ".join(f"{name!r}: {call}" for name, (_, call) in said.items())
    return (
        f"Scores of {', '.join(said)} are nan of all splits: {reason}. Say which one is: {calls}."
    )


def refuse_unfit_scorer(scoring: Any, estimator: Any, work: SplitTable) -> None:
    """Refuse (ValueError), before anything grows, one scorer that is not defined for the classes.

    Where scikit-learn's functions go on, and every score is nan.
    """
    if is_classifier(estimator):
        refuse_unfit(scoring, np.unique(_classes_of(work.table.y)))


def warn_of_undefined(
    scores: Mapping[str, np.ndarray], splits: Sequence[Split], y: Any, scoring: Any
) -> None:
    """Warn (UndefinedMetricWarning) of what `undefined` and `without_positive_class` find."""
    for found in (undefined(scores, splits, y), without_positive_class(scores, scoring, y)):
        if found is not None:
            warn(found, UndefinedMetricWarning)
