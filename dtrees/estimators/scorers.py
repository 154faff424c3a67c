"""Scorers of scikit-learn and the classes of a model: which it has, and which one is positive."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np


def with_labels(scoring: Any, classes: np.ndarray | None) -> Any:
    """Scorers of shares that are told the classes of the model; `scoring` as for `cross_validate`.

    Log-loss and Brier score are then defined for rows that lack a class. Without its labels, they
    would have to guess the classes from these rows, and fail. What is no scorer of scikit-learn
    with a parameter ``labels`` stays as it is. So do scorers of predicted classes, where ``labels``
    has another meaning. `classes` are sorted; None: regression.
    """
    if classes is None or scoring is None:
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


def refuse_unfit(scoring: Any, classes: np.ndarray | None) -> None:
    """Refuse (ValueError) a scorer of scikit-learn that is not defined for the classes.

    It takes one class for the positive one, and does not know which, or is for two classes, and
    there are more. `scoring` is one scorer; `classes` are sorted labels, or None: regression.
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
        hint = f" Take scoring={others[0]!r}." if others else ""
        raise ValueError(
            f"The scorer is for two classes, and there are {len(classes)}: {reason}.{hint}"
        )
    if "pos_label" in reason:
        raise ValueError(f"{reason}. Say which one is: scoring={_knowing(scorer, classes)}.")


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
