"""Scorers of scikit-learn, and what they need to know of a model: its classes, or its quantile.

A model of classes says which it has, and which one is positive. One that predicts a quantile is
scored by minus the pinball loss, its own loss. A target above the prediction costs its distance
times the quantile, one below times the rest. So the quantile of the targets costs least, as the
mean does by squares::

    quantile 0.9    prediction 10    target 12    loss 0.9 * 2 = 1.8
                                     target  8    loss 0.1 * 2 = 0.2
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np

PINBALL = "neg_mean_pinball_loss"  # as scikit-learn would name the scorer


def with_labels(scoring: Any, classes: np.ndarray | None) -> Any:
    """Scorers of shares that are told the classes of the model; `scoring` as for `cross_validate`.

    Log-loss and Brier score are then defined for rows that lack a class. Without its labels, they
    would have to guess the classes from these rows, and fail. What is no scorer of scikit-learn
    with a parameter ``labels`` stays as it is. So do scorers of predicted classes, where ``labels``
    has another meaning. `classes` are sorted, or a list of those of several targets, of which no
    scorer is told; None: regression.
    """
    if classes is None or scoring is None or isinstance(classes, list):
        return scoring
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    if isinstance(scoring, Mapping):
        return {name: with_labels(one, classes) for name, one in scoring.items()}
    from sklearn.metrics import get_scorer  # here, as it loads rich where that is installed

    try:
        scorer = get_scorer(scoring)
    except ValueError:  # no such name, which scikit-learn says in its place
        return scoring
    if type(scorer).__module__ != get_scorer.__module__ or not hasattr(scorer, "_score_func"):
        return scoring
    response = scorer._response_method
    if response == "predict" or "labels" in scorer._kwargs:
        return scoring
    if "labels" not in signature(scorer._score_func).parameters:
        return scoring
    told = copy.copy(scorer)
    told._kwargs = {**scorer._kwargs, "labels": classes}
    return told


def refuse_unfit(scoring: Any, classes: np.ndarray | None, parameter: str = "scoring") -> None:
    """Refuse (ValueError) a scorer of scikit-learn that is not defined for the classes.

    It takes one class for the positive one, and does not know which, or is for two classes, and
    there are more. `scoring` is one scorer, and was given as `parameter`; `classes` are sorted
    labels, or None: regression.
    """
    if classes is None or len(classes) < 2 or scoring is None:
        return
    from sklearn.metrics import get_scorer, get_scorer_names

    scorer = get_scorer(scoring)
    function: Any = getattr(scorer, "_score_func", None)
    if type(scorer).__module__ != get_scorer.__module__ or not _is_sklearns(function):
        return
    reason = _failure(scorer, classes)
    if "multiclass" in reason or "multi_class" in reason:
        name, known = function.__name__.removesuffix("_score"), get_scorer_names()
        others = [other for other in (f"{name}_macro", f"{name}_ovr") if other in known]
        hint = f" Take {parameter}={others[0]!r}." if others else ""
        raise ValueError(
            f"The scorer is for two classes, and there are {len(classes)}: {reason}.{hint}"
        )
    if "pos_label" in reason:
        call = f"{parameter}={_knowing(scorer, classes)}"
        raise ValueError(f"{reason}. Say which one is: {call}.")


def with_positive_class(scorer: Any, classes: np.ndarray) -> tuple[str, str] | None:
    """Why a scorer knows no positive class among two, and the call that makes one that does."""
    reason = _failure(scorer, classes)
    return (reason, _knowing(scorer, classes)) if "pos_label" in reason else None


def _failure(scorer: Any, classes: np.ndarray) -> str:
    """What a scorer says against the classes, of a model that always says the same; mostly ""."""
    from sklearn.dummy import DummyClassifier

    y = np.repeat(classes, 2)
    X = np.zeros((len(y), 1))
    try:
        with warnings.catch_warnings(action="ignore"):
            scorer(DummyClassifier().fit(X, y), X, y)
    except Exception as error:  # of any kind, which only its words tell
        return str(error).rstrip(".")
    return ""


def _is_sklearns(function: Any) -> bool:
    """Whether a function is one of scikit-learn's metrics, which may be asked for nothing."""
    return getattr(function, "__module__", "").startswith("sklearn.metrics.")


def _knowing(scorer: Any, classes: np.ndarray) -> str:
    """The call that makes a scorer whose positive class is the last one."""
    given = scorer._kwargs | {"pos_label": classes.tolist()[-1]}
    if scorer._response_method != "predict":
        given["response_method"] = scorer._response_method
    if scorer._sign < 0:
        given["greater_is_better"] = False
    words = [scorer._score_func.__name__, *(f"{k}={v!r}" for k, v in given.items())]
    return f"make_scorer({', '.join(words)})"


def pinball_scorer(quantile: float) -> Any:
    """A scorer of scikit-learn: minus the mean pinball loss."""
    from sklearn.metrics import make_scorer, mean_pinball_loss

    return make_scorer(mean_pinball_loss, alpha=quantile, greater_is_better=False)


def pinball_of_rows(quantile: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A score of each row, of the true values and the predictions: minus its pinball loss."""

    def score(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        above = y - predicted
        found: np.ndarray = -np.maximum(quantile * above, (quantile - 1) * above)
        return found

    return score


def is_own_loss(scorer: Any, estimator: Any) -> bool:
    """Whether a scorer is minus the loss by which a boosted model of a quantile grows."""
    from sklearn.metrics import mean_pinball_loss

    return (
        getattr(estimator, "loss", None) == "quantile"
        and getattr(scorer, "_score_func", None) is mean_pinball_loss
        and scorer._sign == -1
        and scorer._kwargs == {"alpha": estimator.quantile}
    )
