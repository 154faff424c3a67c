"""What models are scored by: names of scikit-learn's scorers.

::

    --scoring NAME --check_scoring--> a scorer --check_scores--> one that fits the target

Whether a scorer fits a target is for the scorer to say. It is asked before the models grow, about a
model that always says the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtrees.cli.errors import RequestError

if TYPE_CHECKING:
    from dtrees.io import Problem

USUAL = (  # scorers that a message lists first
    *("accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "neg_log_loss"),
    *("r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error"),
)
ROWS_OF_A_CLASS = 2  # that a scorer is tried on
ROWS_OF_NUMBERS = 1000


def check_scoring(names: Sequence[str]) -> tuple[str, ...]:
    """The scorers that are asked for, each once; RequestError: scikit-learn has no such scorer."""
    if not names:
        return ()
    from sklearn.metrics import get_scorer_names

    from dtrees.io.problem import near

    known = sorted(get_scorer_names(), key=lambda name: USUAL.index(name) if name in USUAL else 99)
    for name in names:
        if name not in known:
            likely = near(name.removesuffix("_score"), known)  # of a function of sklearn.metrics
            raise RequestError(f"--scoring: scikit-learn has no scorer {name!r}{likely}")
    return tuple(dict.fromkeys(names))


def check_scores(names: Sequence[str], problem: Problem) -> None:
    """Refuse, before the models grow, scorers that do not fit the target; with their own reason."""
    if not names:
        return
    import numpy as np
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.metrics import get_scorer, get_scorer_names

    known = get_scorer_names()
    model, y = DummyRegressor(), problem.y[:ROWS_OF_NUMBERS]
    if problem.task == "classification":
        model, y = DummyClassifier(), np.repeat(np.unique(problem.y), ROWS_OF_A_CLASS)
    X = np.zeros((len(y), 1))
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
        for name in names:
            try:
                get_scorer(name)(model, X, y)
            except (AttributeError, TypeError, ValueError) as error:
                reason = reason_of(error, name, problem.task, known)
                raise RequestError(f"--scoring {name} does not fit the target: {reason}") from error


def reason_of(error: Exception, name: str, task: str, known: Sequence[str]) -> str:
    """Why a scorer does not fit a target, and which one does."""
    reason = str(error)
    if isinstance(error, AttributeError) or (task == "regression" and "not supported" in reason):
        return "it is for classes, and the target holds numbers. Try r2"
    others = [other for other in (f"{name}_macro", f"{name}_ovr") if other in known]
    if not others:
        return reason
    if "pos_label" in reason:
        return f"{reason}. For labels other than 0 and 1, try {others[0]}"
    if "multiclass" in reason or "multi_class" in reason:
        return f"it is for two classes, and there are more. Try {others[0]}"
    return reason
