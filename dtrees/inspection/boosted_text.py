"""A boosted model as text: where it begins, and the trees of its first iterations.

    start: [0.51] (log odds of class: 1)

    iteration 1
    |--- worst radius <= 16.80
    |   |--- value: [0.17]
    |--- worst radius >  16.80
    |   |--- value: [-0.20]

    98 iterations more

A leaf shows the step that it adds to the raw prediction of its rows, learning rate included. The
raw prediction is what the first line says: a number, its logarithm, or log odds. Of three classes
or more each has a start, and a tree in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.inspection.formats import number_format
from dtrees.inspection.tree_formatter import TreeFormatter, formatter_of, label_names


def boosted_text(
    model: Any,
    max_iter: int | None,
    names: tuple[Sequence[str] | None, Sequence[str] | None],
    text_of: Callable[[TreeFormatter], str],
    **options: Any,
) -> str:
    """The text of a boosted model.

    Parameters
    ----------
    model : GradientBoostingClassifier or GradientBoostingRegressor
    max_iter : int or None
        Iterations that are written; None: all.
    names : (sequence of str or None, sequence of str or None)
        Of the columns, and of the classes.
    text_of : callable (TreeFormatter) -> str
        The text of a tree.
    **options
        Of `TreeFormatter`.

    Raises
    ------
    sklearn.exceptions.NotFittedError
    ValueError
        Too many or too few names.
    """
    check_is_fitted(model)
    feature_names, class_names = names
    labels = getattr(model, "classes_", None)
    classes = [] if labels is None else label_names(labels, class_names)
    starts = model._initial.tolist()
    form = number_format(np.unique(starts), options.get("decimals", 2))
    of_trees = [f", class: {name}" for name in classes] if len(starts) > 1 else [""]
    lines = [
        f"start: [{form(start)}]{meaning}\n"
        for start, meaning in zip(starts, _meanings(model, classes), strict=True)
    ]
    n_iter = model.n_iter_ if max_iter is None else min(max_iter, model.n_iter_)
    for number, trees in enumerate(model.estimators_[:n_iter], start=1):
        for tree, of_tree in zip(trees, of_trees, strict=True):
            formatter = formatter_of(tree, feature_names, None, **options)
            lines.append(f"\niteration {number}{of_tree}\n{text_of(formatter)}")
    more = model.n_iter_ - n_iter
    if more > 0:
        lines.append(f"\n{more} iteration{'' if more == 1 else 's'} more\n")
    return "".join(lines)


def _meanings(model: Any, classes: list[str]) -> list[str]:
    """Words for the unit of raw predictions, behind each start."""
    if len(model._initial) > 1:
        return [f" (class: {name})" for name in classes]
    if classes:
        return [f" (log odds of class: {classes[-1]})"]
    return [" (logarithm of the prediction)" if model._fit_loss.is_log else ""]
