"""Random fitted models of every kind of column, and what their nodes say that they predict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import dtrees
from dtrees.export.model_nodes import ModelNodes

NUMBERS = ("number", "float32", "whole", "missing", "bool")
CATEGORIES = ("category", "categories of numbers", "many categories")
OTHERS = ("hybrid", "date", "span")
COLUMNS = (*NUMBERS, *CATEGORIES, *OTHERS)
KINDS = ("DecisionTree", "RandomForest", "ExtraTrees", "Bagging", "GradientBoosting")
LETTERS = [f"c{i}" for i in range(90)]


@dataclass(frozen=True)
class Example:
    """A fitted model, the table of its fit, and rows that it has not seen."""

    model: Any
    X: pd.DataFrame
    y: np.ndarray
    rows: pd.DataFrame


def column(kind: str, n: int, rng: np.random.Generator, new: bool = False) -> Any:
    """Cells of a column; new ones may hold values that were not there at fit."""
    if kind == "number":
        return rng.normal(size=n)
    if kind == "float32":
        return (rng.integers(0, 30, n) / 7).astype(np.float32)
    if kind == "whole":
        return rng.integers(0, 6, n)
    if kind == "bool":
        return rng.random(n) < 0.4
    if kind == "missing":
        return np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n).round(1))
    if kind == "date":
        days = np.datetime64("2020-01-01") + rng.integers(0, 400, n).astype("m8[D]")
        return days.astype("M8[ns]")
    if kind == "span":
        return rng.integers(0, 90, n).astype("m8[s]")
    if kind == "categories of numbers":
        return pd.Categorical(rng.choice([3, 7, 11, 20], n))
    unseen = ["unheard of"] * new
    if kind == "hybrid":
        words = [None, "a", "b", 0.5, 1.5, 2.5, 4.0, *unseen]
        return pd.Series([words[k] for k in rng.integers(0, len(words), n)], dtype=object)
    known = [*(LETTERS if kind == "many categories" else LETTERS[:5]), *unseen, None]
    return pd.Series([known[k] for k in rng.integers(0, len(known), n)], dtype=object)


def table(kinds: Any, n: int, rng: np.random.Generator, new: bool = False) -> pd.DataFrame:
    """A data frame of columns of some kinds."""
    return pd.DataFrame({f"{k} {i}": column(k, n, rng, new) for i, k in enumerate(kinds)})


def fitted(
    kind: str,
    kinds: Any,
    *,
    n_classes: int = 0,
    seed: int = 0,
    n_rows: int = 120,
    weighted: bool = False,
    **parameters: Any,
) -> Example:
    """A fitted model; of no classes it is a regressor."""
    rng = np.random.default_rng(seed)
    X, rows = table(kinds, n_rows, rng), table(kinds, 60, rng, new=True)
    # missing values and every kind of column say something of the target
    signal = sum(pd.factorize(X[name], use_na_sentinel=False)[0] % 5 for name in X) / len(kinds)
    y = signal + 0.3 * rng.normal(size=n_rows)
    if n_classes:
        y = np.array(["no", "yes", "well"])[pd.qcut(y, n_classes, labels=False)]
    name = kind + ("Classifier" if n_classes else "Regressor")
    if kind == "GradientBoosting":
        parameters = {"max_iter": 4, "min_samples_leaf": 5, "early_stopping": False, **parameters}
    elif kind != "DecisionTree":
        parameters = {"n_estimators": 4, **parameters}
    model = getattr(dtrees, name)(random_state=seed, **parameters)
    weight = rng.integers(1, 4, n_rows) if weighted else None
    return Example(model.fit(X, y, sample_weight=weight), X, y, rows)


@st.composite
def examples(draw: Any, columns: Any = COLUMNS, kinds: Any = KINDS, **parameters: Any) -> Example:
    """Models of all estimators on columns of some kinds."""
    return fitted(
        draw(st.sampled_from(kinds)),
        draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4)),
        n_classes=draw(st.sampled_from([0, 1, 2, 3])),
        seed=draw(st.integers(0, 2**16)),
        weighted=draw(st.booleans()),
        handle_unknown=draw(st.sampled_from(["missing", "majority"])),
        max_leaf_nodes=draw(st.sampled_from([2, 8, None])),
        **parameters,
    )


def leaf_of(nodes: list, cells: list, known: dict) -> Any:
    """The leaf of a row in a tree, by the words of its nodes."""
    node = nodes[0]
    while not node.is_leaf:
        is_left = passes(node, cells[node.column], known.get(node.column, ()))
        node = nodes[node.left if is_left else node.right]
    return node


def passes(node: Any, cell: Any, known: Any) -> bool:
    """Whether a cell passes the test of a node; `known` are the categories of the column."""
    if cell is None or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)):
        return node.missing_left
    if isinstance(cell, str) and cell not in known:
        return node.unseen_left
    if node.test == "in":
        return cell in node.categories
    if isinstance(cell, str):
        return False
    return cell > node.threshold if node.test == ">" else cell <= node.threshold


def raw_by_nodes(model: Any, rows: pd.DataFrame) -> np.ndarray:
    """Means of values, or sums of steps, of all rows; float64 (n_rows, n_outputs)."""
    view = ModelNodes.of(model)
    trees = [list(view.of_tree(t)) for t in range(len(view.trees))]
    known = {j: set(labels.tolist()) for j, labels in view.book.categories.items()}
    found = []
    for row in rows.itertuples(index=False):
        leaves = [leaf_of(nodes, row, known) for nodes in trees]
        if view.start is None:
            found.append(sum(leaf.value for leaf in leaves) / len(leaves))
            continue
        raw = view.start.copy()
        for leaf in leaves:
            raw[leaf.output] += leaf.value[0]
        found.append(raw)
    return np.array(found)


def predicted_by_nodes(model: Any, rows: pd.DataFrame) -> np.ndarray:
    """Shares of the classes, or numbers, float64 (n_rows, n_classes or 1)."""
    raw, link = raw_by_nodes(model, rows), ModelNodes.of(model).link
    if link == "logit":
        share = 1 / (1 + np.exp(-raw))
        return np.hstack([1 - share, share])
    if link == "softmax":
        exponents = np.exp(raw - raw.max(axis=1, keepdims=True))
        return exponents / exponents.sum(axis=1, keepdims=True)
    return np.exp(raw) if link == "log" else raw


def predicted(model: Any, rows: Any) -> np.ndarray:
    """What the model says, in the same form."""
    if hasattr(model, "classes_"):
        return model.predict_proba(rows)
    return model.predict(rows)[:, None]
