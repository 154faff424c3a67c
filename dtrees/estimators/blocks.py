"""Forests of blocks of rows (``partial_fit``): each block has trees of its own.

A block is fitted as a table alone is, and its trees are then said in the words of the model::

    block   y        colour             classes           categories
    1       a, b     red, blue          a, b, c: said     blue, red
    2       b, c     red, green         at the first      blue, green, red     codes shift: bits of
                                        call              subsets are moved, shares get a zero

A category that a tree has not seen goes where it would go in a prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from dtrees.coding.codebook import CodeBook
from dtrees.coding.column_types import category_array
from dtrees.coding.labels import sort_labels
from dtrees.coding.target import class_codes, class_weights, one_dimensional
from dtrees.core.model.tree import IN_SUBSET, Forest, Tree, total_of
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.forest_growth import check_same_targets

if TYPE_CHECKING:
    from dtrees.estimators.forests import BaseForest


def add_block(forest: BaseForest, X: Any, y: Any, weight: Any, classes: Any = None) -> None:
    """Add trees of a block of rows to a forest, which may have none yet."""
    forest._check_parameters()
    for name in ("oob_score", "oob_tol", "keep_rows"):
        if getattr(forest, name) is not None and getattr(forest, name) is not False:
            raise ValueError(f"partial_fit has no rows but those of a block: unset {name}.")
    block, there = forest._unfitted(), forest.__dict__
    own = there.get("forest_", Forest(()))
    labels = _labels(forest, classes) if is_classifier(forest) else None
    if isinstance(forest.class_weight, dict) and labels is not None and len(labels) == 1:
        weights = class_weights(forest.class_weight, labels[0], [1] * len(labels[0]))
        block.class_weight = dict(zip(labels[0].tolist(), weights.tolist(), strict=True))
    if isinstance(forest.random_state, Integral):
        block.random_state = (int(forest.random_state) + len(own)) % 2**32
    else:
        block.random_state = forest.random_state  # no copy of a state, which draws for each block
    columns = {"y": y, "sample_weight": weight, "bootstrap_groups": None}
    block._fit(X, columns, None, None, (), FitPlan(block).seed(), can_resume=False)
    learned = {name: own for name, own in vars(block).items() if name not in block._constraints}
    trees, book = block.forest_.trees, block.codebook_
    if labels is not None:
        trees = _with_classes(trees, learned, labels)
    if own.trees:
        forest.codebook_.check_columns(book.feature_names, book.n_columns, type(forest).__name__)
        if forest.n_outputs_ != learned["n_outputs_"]:
            raise ValueError(f"y had {forest.n_outputs_} targets, and has {learned['n_outputs_']}.")
        joined = joined_book(forest.codebook_, book)
        by_majority = forest.handle_unknown == "majority"
        trees = (
            *in_words_of(own.trees, forest.codebook_, joined, by_majority),
            *in_words_of(trees, book, joined, by_majority),
        )
        check_same_targets(forest, learned)
        kept = {"feature_names_in_", "target_names_in_", "_fit_seed"} & there.keys()
        learned |= {name: there[name] for name in kept}
        learned |= {"codebook_": joined, "_saw_missing": forest._saw_missing | block._saw_missing}
        learned["_fit_bags"] = None  # of several tables
        del learned["_fit_rows"]
    learned["forest_"] = Forest(tuple(trees))
    forest._forget_at_times()
    there.update(learned)


def _labels(forest: Any, classes: Any) -> list[np.ndarray]:
    """The classes of each target, sorted: those of the first call."""
    known = forest.__dict__.get("classes_")
    old = known if known is None or isinstance(known, list) else [known]
    if classes is None:
        if old is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return old
    several = isinstance(classes, list | tuple) and len(classes) > 0 and np.ndim(classes[0]) > 0
    given = classes if several else [classes]
    labels = [class_codes(one_dimensional(each, "classes"))[0] for each in given]
    if old is not None and not (len(old) == len(labels) and all(map(np.array_equal, old, labels))):
        raise ValueError(
            f"classes={classes!r} is not the same as on last call to partial_fit, was: {known!r}"
        )
    return labels


def _with_classes(
    trees: Sequence[Tree], learned: dict[str, Any], labels: list[np.ndarray]
) -> tuple[Tree, ...]:
    """Trees with a share for each class; what is learned of classes is that of all of them."""
    seen = learned["classes_"] if isinstance(learned["classes_"], list) else [learned["classes_"]]
    if len(seen) != len(labels):
        raise ValueError(f"y has {len(seen)} targets, and classes are those of {len(labels)}.")
    n_classes = tuple(map(len, labels))
    columns = []
    for own, of_all, first in zip(seen, labels, np.cumsum((0, *n_classes[:-1])), strict=True):
        number = {label: i for i, label in enumerate(of_all.tolist())}
        new = [label for label in own.tolist() if label not in number]
        if new:
            raise ValueError(f"y has labels that are not in classes: {str(new)[1:-1]}.")
        columns += [first + number[label] for label in own.tolist()]
    learned["classes_"] = labels if isinstance(learned["classes_"], list) else labels[0]
    learned["n_classes_"] = list(n_classes) if len(labels) > 1 else n_classes[0]
    if len(columns) == sum(n_classes):
        return tuple(trees)
    found = []
    for tree in trees:
        statistics = np.zeros((tree.node_count, sum(n_classes)), dtype=tree.statistics.dtype)
        statistics[:, columns] = tree.statistics
        of_outputs = n_classes if tree.n_classes else ()
        found.append(replace(tree, statistics=statistics, n_classes=of_outputs))
    return tuple(found)


def joined_book(old: CodeBook, new: CodeBook) -> CodeBook:
    """The categories of two books for prediction, of the same columns; ValueError: of other types.

    A column that was all missing in one book is that of the other one.
    """
    is_old, is_new = old.n_codes > 0, new.n_codes > 0

    def kinds(book: CodeBook) -> np.ndarray:
        return np.stack([book.n_ordered > 0, book.n_codes > book.n_ordered, book.units])

    other = is_old & is_new & (kinds(old) != kinds(new)).any(axis=0)
    if other.any():
        raise ValueError(
            f"Column {old.name(int(np.argmax(other)))} of X has values of another type than in "
            "earlier blocks. Convert it to one type, or name it in categorical_features."
        )
    categories, low, high, counts = {}, [], [], np.zeros(old.n_columns, dtype=np.int64)
    n_ordered = np.where(is_old, old.n_ordered, new.n_ordered)
    n_codes = n_ordered.copy()
    for j in sorted(old.categories.keys() | new.categories.keys()):
        both = [book.categories[j] for book in (old, new) if j in book.categories]
        known = dict.fromkeys(label for own in both for label in own.tolist())
        dtype = both[0].dtype
        if dtype != both[-1].dtype:
            same = dtype.kind == both[-1].dtype.kind
            dtype = np.result_type(*both) if same else np.dtype(object)
        categories[j] = category_array(sort_labels(known), None if dtype.kind == "O" else dtype)
        n_codes[j] += len(categories[j])
        values = old if is_old[j] else new
        part = slice(values.offsets[j], values.offsets[j + 1])
        low.append(values.low[part])
        high.append(values.high[part])
        counts[j] = len(low[-1])
    return replace(
        old,
        n_codes=n_codes,
        n_ordered=n_ordered,
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        low=np.concatenate([old.low[:0], *low]),
        high=np.concatenate([old.high[:0], *high]),
        exact=np.where(is_old, old.exact, new.exact),
        units=np.where(is_old, old.units, new.units),
        categories=categories,
    )


def in_words_of(
    trees: Sequence[Tree], own: CodeBook, book: CodeBook, by_majority: bool
) -> list[Tree]:
    """Trees whose subsets are by the codes of another book, which has all categories of their own.

    O(nodes + codes of all subsets).
    """
    codes = {}  # of their own book by those of the other one, of columns where they differ; -1: new
    for j, labels in book.categories.items():
        n_ordered = int(book.n_ordered[j])
        if n_ordered != own.n_ordered[j] or not np.array_equal(own.categories.get(j, ()), labels):
            number = own.numbers_of_categories(j)
            of_labels = [number.get(label, -1) for label in labels.tolist()]
            codes[j] = np.array([0, *[1] * n_ordered, *of_labels])  # of any number
    return [_recoded(tree, codes, own, book, by_majority) for tree in trees] if codes else [*trees]


def _recoded(
    tree: Tree, codes: dict[int, np.ndarray], own: CodeBook, book: CodeBook, by_majority: bool
) -> Tree:
    """A tree with other codes in some columns."""
    goes_left = tree.missing_go_to_left > 0
    if by_majority:
        weight = total_of(tree.statistics, tree.criterion, tree.n_outputs)
        goes_left = weight[tree.children_left] > weight[tree.children_right]  # of inner nodes
    offset, words, n_words = tree.subset_offset.copy(), [tree.subset_words[:0]], 0
    for node in np.flatnonzero(tree.test == IN_SUBSET).tolist():
        j, first = int(tree.feature[node]), int(tree.subset_offset[node])
        mine = tree.subset_words[first : first + int(own.n_codes[j]) // 64 + 1]
        if j in codes:
            bits = np.unpackbits(mine.astype("<u8").view(np.uint8), bitorder="little")
            other = goes_left[node] and book.n_ordered[j] == 0  # beside numbers: right
            room = np.zeros(64 * (int(book.n_codes[j]) // 64 + 1), dtype=np.uint8)
            room[: len(codes[j])] = np.append(bits, other)[codes[j]]
            mine = np.packbits(room, bitorder="little").view("<u8").astype(np.uint64)
        words.append(mine)
        offset[node], n_words = n_words, n_words + len(mine)
    code = np.zeros_like(tree.code)  # which nobody looks up
    return replace(tree, subset_offset=offset, subset_words=np.concatenate(words), code=code)
