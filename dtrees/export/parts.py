"""What a fitted estimator is made of: how estimators and model files talk to each other.

Estimators give their parts and are made from them (``_parts``, ``_of_parts`` in
`dtrees.estimators.base`); model files know parts, and no estimator. What comes from a file has to
fit together: a check raises a ValueError that names what cannot be. Types and ranges of single
values are checked where they are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.coding.times import DATETIME, DAY_FIRST
from dtrees.core.data.criteria import REGRESSION
from dtrees.core.membership.resampling import LARGEST_RATE
from dtrees.core.model.tree import Tree
from dtrees.export.books import expect, is_names

_BAGS = re.compile(  # seed, rate or "keys/of all", number of rows, checksum of their keys
    r"(?P<seed>[0-9]+) ((?P<rate>0x[01]\.[0-9a-f]{13}p(\+[01]|-[0-9]{1,4}))"
    r"|(?P<size>[1-9][0-9]{0,9})/(?P<keys>[1-9][0-9]{0,9})) [1-9][0-9]{0,9} [0-9a-f]{32}"
)


@dataclass(frozen=True, eq=False)
class Parts:
    """A fitted estimator in pieces.

    Attributes
    ----------
    parameters : dict of str to object
        As ``get_params`` gives them.
    attributes : dict of str to object
        What `fit` learned, without the following.
    trees : tuple of Tree
    book : CodeBook
    saw_missing : bool (n_columns,)
        Whether a tested column had missing values at fit.
    """

    parameters: dict[str, Any]
    attributes: dict[str, Any]
    trees: tuple[Tree, ...]
    book: CodeBook
    saw_missing: np.ndarray


def is_name_of_bags(name: str, seed: int) -> bool:
    """Whether it is what `core.membership.resampling.Bags.digest` says of a fit's bags."""
    found = _BAGS.fullmatch(name)
    if found is None:
        return False
    if found["rate"] is None:
        return found["seed"] == str(seed) and int(found["size"]) <= int(found["keys"])
    rate = float.fromhex(found["rate"])
    return found["seed"] == str(seed) and rate.hex() == found["rate"] and 0 < rate <= LARGEST_RATE


def check_target_names(attributes: Mapping[str, Any], n_outputs: int) -> None:
    """Whether names of targets are those of so many."""
    names = attributes.get("target_names_in_")
    is_right = names is None or (is_names(names, n_outputs) and len(set(names)) == n_outputs > 1)
    expect(is_right, "target_names_in_")


def check_attributes(
    attributes: Mapping[str, Any], kind: Any, trees: tuple[Tree, ...], book: CodeBook
) -> None:
    """Whether attributes fit the trees."""
    expect(attributes["n_features_in_"] == book.n_columns, "n_features_in_")
    names = attributes.get("feature_names_in_")
    expect(names is None or is_names(names, book.n_columns), "feature_names_in_")
    orders = attributes.get("_date_orders")
    if orders is not None:
        expect(len(orders) == book.n_columns and orders.max() <= DAY_FIRST, "_date_orders")
        expect(bool((book.units[orders > 0] == DATETIME).all()), "_date_orders")
    has_classes = "classes_" in kind._learns
    is_regression = trees[0].criterion in REGRESSION
    n_outputs = attributes.get("n_outputs_", 1)
    is_known = kind._adds_steps or trees[0].n_outputs == n_outputs
    expect(is_known, "n_outputs_, or the statistics")
    if not kind._adds_steps:
        check_target_names(attributes, n_outputs)
    expect(is_regression == (kind._adds_steps or not has_classes), "the criterion")
    if not has_classes:
        return
    all_classes, n_classes = attributes["classes_"], attributes["n_classes_"]
    are_several = isinstance(all_classes, list) if kind._adds_steps else n_outputs > 1
    if are_several:
        expect(isinstance(all_classes, list) and isinstance(n_classes, list), "classes_")
        expect(len(all_classes) > 1, "classes_")
    else:
        all_classes, n_classes = [all_classes], [n_classes]
    in_trees = list(trees[0].n_classes) or [trees[0].n_values]
    expect(kind._adds_steps or n_classes == in_trees, "n_classes_")
    expect(len(all_classes) == len(n_classes), "classes_")
    for classes, n in zip(all_classes, n_classes, strict=True):
        expect(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_")
        try:
            distinct = set(classes.tolist())
        except TypeError:  # lists, say
            distinct = set()
        expect(0 < len(classes) == len(distinct), "classes_")
        expect(type(n) is int and n == len(classes), "n_classes_")
