"""Scorers of scikit-learn that know the classes of a model, if the scored rows lack some."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np


def with_labels(scoring: Any, classes: np.ndarray | None) -> Any:
    """Scorers of shares that are told the classes of the model.

    Log-loss and Brier score are then defined for rows that lack a class. Without its labels, they
    would have to guess the classes from these rows, and fail.

    Parameters
    ----------
    scoring : str, callable, list, tuple, set, dict or None
        As for `cross_validate`.
    classes : array (n_classes,) or None
        Sorted labels; None: regression.

    Returns
    -------
    str, callable, dict or None
        What is no scorer of scikit-learn with a parameter ``labels`` stays as it is. So do scorers
        of predicted classes, where ``labels`` has another meaning.
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
