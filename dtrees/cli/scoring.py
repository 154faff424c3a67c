"""What models are scored by: names of scikit-learn's scorers, and the loss of a quantile.

::

    --scoring NAME --check_scoring--> a scorer --check_scores--> one that fits the target

Whether a scorer fits a target is for the scorer to say. It is asked before the models grow, about a
model that always says the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtrees.cli.errors import RequestError

if TYPE_CHECKING:
    from dtrees.io import Problem

USUAL = (  # scorers that a message lists first
    *("accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "neg_log_loss"),
    *("r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error"),
)
ROWS_OF_A_CLASS = 2  # that a scorer is tried on
ROWS_OF_NUMBERS = 1000


def check_scoring(names: Sequence[str], quantile: float | None = None) -> dict[str, Any]:
    """The scorers that are asked for, by name; empty: the score of the estimator.

    Of a model that predicts a `quantile`, minus its loss. RequestError: there is no such scorer.
    """
    if quantile is None and not names:
        return {}
    from sklearn.metrics import get_scorer_names

    from dtrees.io.problem import near
    from dtrees.model_selection.nested_errors import PINBALL, pinball_scorer

    scorers: dict[str, Any] = {name: name for name in names}
    if quantile is not None:
        own = pinball_scorer(quantile)
        scorers = {name: own if name == PINBALL else name for name in names or (PINBALL,)}
    elif PINBALL in scorers:
        raise RequestError(f"--scoring {PINBALL} is for --loss quantile and --quantile SHARE")

    known = get_scorer_names() if quantile is None else [*get_scorer_names(), PINBALL]
    known.sort(key=lambda name: USUAL.index(name) if name in USUAL else len(USUAL))
    for name in scorers:
        if name not in known:
            likely = near(name.removesuffix("_score"), known)  # of a function of sklearn.metrics
            raise RequestError(f"--scoring: scikit-learn has no scorer {name!r}{likely}")
    return scorers


def check_scores(scorers: Mapping[str, Any], problem: Problem) -> None:
    """Refuse, before the models grow, scorers that do not fit the target; with their own reason."""
    if not scorers:
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
        for name, scorer in scorers.items():
            try:
                get_scorer(scorer)(model, X, y)
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
