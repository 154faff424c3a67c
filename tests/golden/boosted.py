"""Boosted models: every loss with every table, and rules, weights and entry points in turn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import dtrees
from tests.golden.tables import made, table, target, weights
from tests.golden.ways import Way

LOSSES = (  # of a number of classes; 0: numbers
    *(("log_loss", 2), ("log_loss", 4), ("squared_error", 0), ("absolute_error", 0)),
    *(("huber", 0), ("quantile", 0), ("poisson", 0), ("gamma", 0)),
    ("tweedie", 0),
)
TABLES = (
    ("numbers", 5_000),
    ("steps", 5_000),
    ("sparse", 3_000),
    ("mixed", 4_000),
    ("wide", 2_000),
)
RULES: tuple[dict[str, Any], ...] = (
    {"max_leaf_nodes": 9},
    {"subsample": 0.5, "max_features": 0.5},
    {"max_depth": 4, "max_leaf_nodes": None, "l2_regularization": 1.0},
    {"monotonic_cst": [1, 0, -1]},
    {"interaction_cst": [[0, 1], [1, 2, 3]], "category_penalty": 0.1},
    {"early_stopping": True, "n_iter_no_change": 1, "validation_fraction": 0.3, "tol": 0.01},
    {"max_bins": 40, "min_samples_leaf": 3, "n_iter_no_change": 2},
)

PENALTIES = {"min_split_gain": 0.1, "l1_regularization": 1.0, "max_delta_step": 1.5}
PENALTIES |= {"path_smooth": 4.0, "colsample_bytree": 0.7}


def boosted(
    loss: str,
    n_classes: int,
    table_kind: str,
    n_rows: int,
    weight: str,
    parameters: dict[str, Any],
    entry: str,
    way: Way,
) -> list[Any]:
    """The models of a case."""
    X, y = table(table_kind, n_rows), target(table_kind, n_rows, n_classes)
    kind = dtrees.GradientBoostingClassifier if n_classes else dtrees.GradientBoostingRegressor
    given = {"max_iter": 6, "learning_rate": 0.3, "early_stopping": False, **parameters}
    if "monotonic_cst" in given:
        given["monotonic_cst"] = [*given["monotonic_cst"], *[0] * (X.shape[1] - 3)]
    if n_classes == 0:
        given["loss"] = loss
    if loss == "quantile":
        given["quantile"] = 0.7
    model = kind(random_state=3, n_jobs=way.n_jobs, regime="local", **given)
    w = weights(weight, n_rows)
    return made(model, X, y, w, way, 4 if entry == "folds" else None)


STEPS = {"l1_regularization": 0.1, "max_delta_step": 1.0}
SEVERAL = (  # loss, table, rows, weight, strategy, rules
    ("squared_error", "numbers", 4_000, "none", "one_output_per_tree", RULES[1]),
    ("huber", "mixed", 3_000, "whole", "one_output_per_tree", RULES[5]),
    ("poisson", "sparse", 2_000, "fractions", "one_output_per_tree", RULES[2]),
    ("log_loss", "steps", 4_000, "whole", "one_output_per_tree", RULES[1]),
    ("squared_error", "numbers", 4_000, "none", "multi_output_tree", RULES[0]),
    ("absolute_error", "steps", 3_000, "whole", "multi_output_tree", RULES[1]),
    ("huber", "wide", 2_000, "fractions", "multi_output_tree", RULES[6]),
    ("squared_error", "mixed", 3_000, "whole", "multi_output_tree", RULES[5]),
    ("squared_error", "sparse", 2_000, "fractions", "multi_output_tree", RULES[4]),
    ("log_loss", "mixed", 3_000, "whole", "multi_output_tree", RULES[1]),
    ("log_loss", "sparse", 2_000, "none", "multi_output_tree", RULES[5]),
    ("poisson", "mixed", 3_000, "fractions", "multi_output_tree", STEPS),
)


def several(
    loss: str,
    table_kind: str,
    n_rows: int,
    weight: str,
    strategy: str,
    parameters: dict[str, Any],
    way: Way,
) -> list[Any]:
    """The model of a case of several targets."""
    X, of_classes = table(table_kind, n_rows), loss == "log_loss"
    if of_classes:
        y = np.column_stack([target(table_kind, n_rows, n) for n in (2, 4)])
        model = dtrees.GradientBoostingClassifier(multi_strategy=strategy)
    else:
        own = target(table_kind, n_rows, 0)
        y = np.column_stack([own, 50 * np.sqrt(own), own[::-1]])
        model = dtrees.GradientBoostingRegressor(loss, multi_strategy=strategy)
    given = {"max_iter": 5, "learning_rate": 0.3, "early_stopping": False, **parameters}
    model.set_params(random_state=3, n_jobs=way.n_jobs, regime="local", **given)
    return made(model, X, y, weights(weight, n_rows), way)


def named(loss: str, n_classes: int) -> str:
    """A loss in the name of a case."""
    return f"{loss} of {n_classes}" if n_classes else loss


def cases() -> Iterator[tuple[str, Any]]:
    """Names and what makes the models."""
    for number, ((loss, n_classes), (kind, n_rows)) in enumerate(product(LOSSES, TABLES)):
        rules = dict(RULES[number % len(RULES)])
        weight = ("none", "whole", "none", "fractions")[(number // 2) % 4]
        entry = ("fit", "folds", "fit")[number % 3]
        text = f"boosted {named(loss, n_classes)} {kind} {n_rows} {weight} {entry} {number + 1}"
        yield text, partial(boosted, loss, n_classes, kind, n_rows, weight, rules, entry)
    for number, (kind, n_rows) in enumerate(TABLES):
        loss, n_classes = LOSSES[number]
        weight, entry = ("none", "whole")[number % 2], ("fit", "folds")[number // 2 % 2]
        text = f"boosted {named(loss, n_classes)} {kind} {n_rows} {weight} {entry} penalties"
        yield text, partial(boosted, loss, n_classes, kind, n_rows, weight, PENALTIES, entry)
    for number, case in enumerate(SEVERAL):
        yield f"boosted several {' '.join(map(str, case[:-1]))} {number}", partial(several, *case)
