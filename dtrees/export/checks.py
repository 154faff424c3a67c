"""Whether what stands in a model file fits together: trees, codebook, attributes.

Each function raises a ValueError that names what cannot be, and returns nothing. Types and ranges
of single values are checked where they are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.coding.text_dates import DAY_FIRST
from dtrees.coding.times import DATETIME
from dtrees.core.data.criteria import REGRESSION
from dtrees.core.model.flat import Shape
from dtrees.core.model.tree import ABOVE, AT_MOST, IN_SUBSET, LEAF, NO_CHILD, NO_FEATURE, Tree
from dtrees.export.books import expect, is_names

_BAGS = re.compile(  # seed, rate, number of rows, checksum of their keys
    r"(?P<seed>[0-9]+) (?P<rate>0x[01]\.[0-9a-f]{13}p(\+0|-[0-9]{1,4})) "
    r"[1-9][0-9]{0,9} [0-9a-f]{32}"
)


def check_flat(all_of: Mapping[str, np.ndarray], shape: Shape, n_words: np.ndarray) -> None:
    """Whether arrays as they are in memory are those of trees."""
    inner, leaves = shape.inner, shape.leaves
    own = shape.start[shape.tree[inner]]
    left, right = all_of["children_left"], all_of["children_right"]
    expect(bool((left[inner] + own == inner + 1).all()), "the left children")
    expect(bool((right[inner] + own == shape.right).all()), "the right children")
    expect(bool((left[leaves] == NO_CHILD).all() and (right[leaves] == NO_CHILD).all()),
           "the children of a leaf")  # fmt: skip
    expect(bool((all_of["feature"][leaves] == NO_FEATURE).all()), "the column of a leaf")
    expect(int(all_of["test"].max()) <= IN_SUBSET, "the test of a node")
    expect(int(all_of["missing_go_to_left"].max()) <= 1, "the way of missing values")
    offset = all_of["subset_offset"]
    expect(bool((offset >= -1).all() and (offset < n_words[shape.tree]).all()),
           "where subsets begin")  # fmt: skip
    expect(bool(((offset >= 0) == (all_of["test"] == IN_SUBSET)).all()), "which nodes have subsets")


def check_trees(trees: tuple[Tree, ...], book: CodeBook) -> None:
    """Whether trees ask what a codebook's columns can answer."""
    for tree in trees:
        inner = np.flatnonzero(tree.test != LEAF)
        test, column, code = tree.test[inner], tree.feature[inner], tree.code[inner]
        expect(tree.n_columns == book.n_columns, "the number of columns")
        expect(bool(((column >= 0) & (column < book.n_columns)).all()), "the column of a node")
        n_ordered, n_codes = book.n_ordered[column], book.n_codes[column]
        compares = (test == AT_MOST) | (test == ABOVE)
        expect(bool((n_ordered[compares] > 0).all()), "the test of a node")
        # trees that a warm start has kept have codes of another table, which nobody looks up
        expect(bool(((code <= n_codes) | (n_codes == n_ordered)).all()), "the code of a node")
        expect(not np.isnan(tree.threshold[inner][compares]).any(), "the threshold of a node")
        expect(bool((n_codes > n_ordered)[~compares].all()), "the test of a node")
        needed = n_codes[~compares] // 64 + 1
        room = len(tree.subset_words) - tree.subset_offset[inner][~compares]
        expect(bool((needed <= room).all()), "the subset of a node")
        expect(tree.statistics.shape[1] == trees[0].statistics.shape[1], "the statistics")


def is_name_of_bags(name: str, seed: int) -> bool:
    """Whether it is what `core.membership.resampling.Bags.digest` says of a fit's bags."""
    found = _BAGS.fullmatch(name)
    if found is None:
        return False
    rate = float.fromhex(found["rate"])
    return found["seed"] == str(seed) and rate.hex() == found["rate"] and 0 < rate <= 1


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
    expect(not is_regression or trees[0].statistics.shape[1] == 2, "the statistics")
    expect(is_regression == (kind._adds_steps or not has_classes), "the criterion")
    if not has_classes:
        return
    classes = attributes["classes_"]
    expect(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_")
    expect(kind._adds_steps or len(classes) == trees[0].n_values, "classes_")
    try:
        distinct = set(classes.tolist())
    except TypeError:  # lists, say
        distinct = set()
    expect(0 < len(classes) == len(distinct), "classes_")
    expect(attributes["n_classes_"] == len(classes), "n_classes_")
