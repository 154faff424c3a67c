"""A fitted model as other programs read it: trees, and their nodes in the user's units.

Every exporter, printer and picture reads a model through this view, and nothing else of it::

    estimator, ``tree_`` or Tree ──▶ ModelNodes    columns, classes, what the trees add up to
                                       └ TreeNodes   of each tree: an array for each property
                                           └ Node      of each node: labels and numbers

A test has one of three forms, and rows that pass it go left:

    "<="    numbers up to the threshold; no category passes
    ">"     numbers above the threshold, in columns of numbers and categories; no category passes
    "in"    one of a set of categories; no number passes

Missing values have a side of their own. A category that was not there at fit is missing, or takes
the side of more weight, as `handle_unknown` says.

What a model predicts follows from the values of the leaves that a row comes to::

    trees and forests    the mean of the values, over the trees: shares of classes, or a number
    boosted models       start[k] + the sum of the values of the trees of output k, and then
                         the identity, the exponential, the logistic function or softmax
    AdaBoost             of classes: as boosted models, with votes as steps; of numbers: a median,
                         which nothing else knows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.times import DATETIME, TIMEDELTA
from dtrees.constraints import ESTIMATOR
from dtrees.core.model.tree import ABOVE, AT_MOST, IN_SUBSET, LEAF, Tree

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

TESTS = {LEAF: None, AT_MOST: "<=", ABOVE: ">", IN_SUBSET: "in"}
WORD_BITS = 64
CELLS = 2**24  # categories of nodes that are looked at together


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of a fitted model.

    Attributes
    ----------
    tree, node : int
        Number of the tree, and of the node in it, in preorder: a root is 0.
    parent : int or None
        None of a root.
    depth : int
        A root has 0.
    output : int or None
        Of a boosted model: which raw prediction the tree adds to. None: the value has all outputs.
    column, name : int and str, or None
        What is tested; None in leaves, as are all of the following up to `right`.
    test : {"<=", ">", "in"} or None
    threshold : float, datetime64, timedelta64 or None
        None of sets. inf: all numbers pass.
    categories : tuple or None
        Labels that pass; None of comparisons.
    missing_left, unseen_left : bool or None
        Whether missing values pass, and categories that were not there at fit; None of the latter
        in columns of numbers.
    left, right : int or None
        Children.
    value : float64 (n_values,)
        Shares of the classes, a mean, or the step of a boosted model. Of several targets those of
        each, one behind the other.
    weight : float
        Of the training rows, in the user's units.
    n_samples : int
        Training rows of positive weight.
    impurity : float
        nan where the model has none.
    gain : float
        Weighted decrease of the impurity by the split; 0 in leaves.
    """

    tree: int
    node: int
    parent: int | None
    depth: int
    output: int | None
    column: int | None = None
    name: str | None = None
    test: str | None = None
    threshold: Any = None
    categories: tuple | None = None
    missing_left: bool | None = None
    unseen_left: bool | None = None
    left: int | None = None
    right: int | None = None
    value: np.ndarray
    weight: float
    n_samples: int
    impurity: float
    gain: float

    @property
    def is_leaf(self) -> bool:
        """Whether the node is a leaf."""
        return self.test is None


def _of_tree(name: str) -> Any:
    """A property of nodes that is an attribute of their tree on codes."""
    return property(attrgetter(f"coded_tree.{name}"))


@dataclass(frozen=True, eq=False)
class TreeNodes:
    """The nodes of one tree: for each property an array, which has the name of `Node`'s attribute.

    Columns and children of leaves are negative; thresholds of leaves and sets are nan; dates and
    time spans are nanoseconds.

    Attributes
    ----------
    coded_tree : Tree
        The tree on codes, for functions of the core.
    book : CodeBook or None
        None: categories are codes.
    saw_missing : bool (n_columns,) or None
        Columns that had missing values at fit; None: not known.
    is_step : bool, default=False
        Whether the tree is one of a boosted model, whose nodes have no impurity.
    """

    coded_tree: Tree
    book: CodeBook | None = None
    saw_missing: np.ndarray | None = None
    is_step: bool = False

    column = _of_tree("feature")  # int32 (n_nodes,), as are children
    test = _of_tree("test")  # uint8: key of `TESTS`
    threshold = _of_tree("threshold")  # float64, as are values, weights, impurities and gains
    left = _of_tree("children_left")
    right = _of_tree("children_right")
    value = _of_tree("value")  # (n_nodes, n_values), computed anew, as are weights and depths
    weight = _of_tree("weighted_n_node_samples")
    n_samples = _of_tree("n_node_samples")  # int32 or int64
    impurity = _of_tree("impurity")
    gain = _of_tree("gain")
    depth = _of_tree("depth")  # int64

    n_nodes = _of_tree("node_count")
    n_columns = _of_tree("n_columns")
    n_values = _of_tree("n_values")
    is_regression = _of_tree("is_regression")  # values are means or steps, not shares
    criterion = _of_tree("criterion")
    value_of = _of_tree("value_of")  # of nodes, which may occur many times

    is_leaf = cached_property(lambda tree: tree.test == LEAF)  # bool (n_nodes,), as are these:
    is_above = cached_property(lambda tree: tree.test == ABOVE)  # numbers above it pass
    is_set = cached_property(lambda tree: tree.test == IN_SUBSET)  # categories pass
    missing_left = cached_property(lambda tree: tree.coded_tree.missing_go_to_left > 0)

    @cached_property
    def has_impurity(self) -> bool:
        """Whether nodes have an impurity; trees of boosted models have none."""
        return not self.is_step and bool(self.is_leaf[0] or self.impurity[0] > 0)

    @cached_property
    def parent(self) -> np.ndarray:
        """Parent of every node, int32 (n_nodes,); -1 of the root."""
        parent = np.full(self.n_nodes, -1, dtype=np.int32)
        inner = np.flatnonzero(~self.is_leaf)
        parent[self.left[inner]] = parent[self.right[inner]] = inner
        return parent

    @cached_property
    def unseen_left(self) -> np.ndarray:
        """Whether unseen categories pass the test of a node, bool (n_nodes,)."""
        if self.book is None or self.book.handle_unknown != "majority":
            return self.missing_left
        weight, inner = self.weight, np.flatnonzero(~self.is_leaf)
        unseen_left = np.zeros(self.n_nodes, dtype=bool)
        unseen_left[inner] = weight[self.left[inner]] > weight[self.right[inner]]
        return unseen_left

    def class_weights(self, node: int) -> np.ndarray:
        """Weight of every class at a node, in the user's units; float64 (n_classes,)."""
        weights: np.ndarray = self.coded_tree.statistics[node] * self.coded_tree.weight_unit
        return weights

    @cached_property
    def _subset_ends(self) -> np.ndarray:
        """Where subsets begin and the last one ends, ascending."""
        return np.append(
            np.unique(self.coded_tree.subset_offset), len(self.coded_tree.subset_words)
        )

    def codes_left(self, node: int) -> np.ndarray:
        """Tell which codes pass the test of a set: bool, a multiple of 64 of them."""
        begin, ends = self.coded_tree.subset_offset[node], self._subset_ends
        end = ends[np.searchsorted(ends, begin, side="right")]
        return _bits(self.coded_tree.subset_words[begin:end])

    def sets(self, inner: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Iterate over sets that hold no missing values, for formats that want them so.

        Where missing values go left, the set is that of the right side: `sides` has its children.
        Such sets are small: categories that no row of a node has go where missing values go.

        Yields
        ------
        column : int
            Ascending.
        nodes : int64 (n_nodes,)
            Some of those among `inner` that test sets of the column.
        members : bool (n_nodes, n_categories)
        """
        book, tree = self.book, self.coded_tree
        assert book is not None
        set_nodes = inner[self.is_set[inner]]
        column = self.column[set_nodes]
        for j in np.unique(column).tolist():
            here = set_nodes[column == j]
            codes, words = _codes_of(book, j), np.arange(book.n_codes[j] // WORD_BITS + 1)
            step = max(1, CELLS // int(book.n_codes[j]))
            for begin in range(0, len(here), step):
                nodes = here[begin : begin + step]
                members = _bits(tree.subset_words[tree.subset_offset[nodes, np.newaxis] + words])
                yield j, nodes, members[:, codes] != self.missing_left[nodes, np.newaxis]

    def sides(self, inner: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Children of inner nodes: of rows that pass, or are in `sets`; and of the others.

        The third array tells where they have changed places, bool (n_inner,).
        """
        left, right = self.left[inner], self.right[inner]
        swaps = (self.is_set & self.missing_left)[inner]
        return np.where(swaps, right, left), np.where(swaps, left, right), swaps


@dataclass(frozen=True, eq=False)
class ModelNodes:
    """A fitted model: its trees, and what they add up to.

    Attributes
    ----------
    trees : tuple of TreeNodes
    book : CodeBook or None
        Names, units and categories of the columns; None of a tree on codes.
    classes : array (n_classes,), list or None
        Labels; None of numbers, and of a tree without an estimator. Of several targets a list.
    start : float64 (n_outputs,) or None
        Of boosted models: raw predictions before the first tree, of all targets. Tree t adds to
        output ``t % n_outputs``, or a tree of all targets to all. Of one class it is the share, 1.
        None: what is predicted is the mean of the values.
    link : {"identity", "log", "logit", "softmax", "several"}
        Of what is predicted; raw predictions are links. "several": those of targets differ.
    names_of_targets : object (n_targets,) or None
        None: they have none, or there is one target.
    """

    trees: tuple[TreeNodes, ...]
    book: CodeBook | None
    classes: Any = None
    start: np.ndarray | None = None
    link: str = "identity"
    names_of_targets: Any = None

    @classmethod
    def of(cls, model: Any, name: str = "model") -> ModelNodes:
        """The view of an estimator, of a ``tree_`` or of a tree on codes.

        Raises
        ------
        TypeError
            It is none of these.
        sklearn.exceptions.NotFittedError
        """
        if isinstance(model, Tree):
            return cls((TreeNodes(model),), None)
        if hasattr(model, "codebook"):
            return cls((TreeNodes(model.model, model.codebook, model.saw_missing),), model.codebook)
        if not ESTIMATOR[0].accepts(model):
            raise _not_a_model(model, name)
        check_is_fitted(model)
        named: dict[str, Any] = {"classes": getattr(model, "classes_", None)}
        named["names_of_targets"] = getattr(model, "target_names_in_", None)
        tree = getattr(model, "tree_", None)
        if hasattr(tree, "codebook"):
            return replace(cls.of(tree), **named)
        if not hasattr(model, "forest_"):
            raise _not_a_model(model, name)
        book, missing = model.codebook_, model._saw_missing
        of_model, *adds_up = model._summed()
        trees = tuple(TreeNodes(tree, book, missing, len(adds_up) > 0) for tree in of_model)
        return replace(cls(trees, book, None, *adds_up), **named)

    @classmethod
    def with_book(cls, model: Any) -> tuple[ModelNodes, CodeBook]:
        """The view of a model and its book, which a tree on codes has not: TypeError."""
        view = cls.of(model)
        if view.book is None:
            raise TypeError("A tree on codes does not know what they mean: give the estimator.")
        return view, view.book

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return self.trees[0].n_columns if self.book is None else self.book.n_columns

    @property
    def saw_missing(self) -> np.ndarray:
        """Columns that are known to have had missing values at fit, bool (n_columns,)."""
        known = self.trees[0].saw_missing
        return np.zeros(self.n_columns, dtype=bool) if known is None else known

    @cached_property
    def kinds(self) -> np.ndarray:
        """What columns hold: "number", "time", "category" or "hybrid"; str (n_columns,)."""
        book = self.book
        if book is None:
            return np.full(self.n_columns, "number", dtype="<U8")
        is_time = np.isin(book.units, (DATETIME, TIMEDELTA))
        return np.select(
            [is_time, self.has_categories & (book.n_ordered > 0), self.has_categories],
            ["time", "hybrid", "category"],
            "number",
        )

    @cached_property
    def tested(self) -> np.ndarray:
        """Columns that a tree tests, ascending."""
        found: np.ndarray = np.unique(
            np.concatenate([tree.column[~tree.is_leaf] for tree in self.trees])
        )
        return found

    def of_one_target(self, tool: str) -> ModelNodes:
        """The view with a tree for each raw prediction; ValueError: there are several targets."""
        if self.n_targets > 1:
            raise ValueError(
                f"{tool} takes a model of one target, and this one has {self.n_targets}. Give the "
                "model of one of them: model.of_target(0)."
            )
        if self.start is None or self.trees[0].n_values == 1:
            return self
        of_all = ((tree, k) for tree in self.trees for k in range(self.n_outputs))
        trees = [replace(tree, coded_tree=tree.coded_tree.of_output(k)) for tree, k in of_all]
        return replace(self, trees=tuple(trees))

    def refuse(self, tool: str, columns: Any, why: str) -> None:
        """Raise ValueError that names those of the columns that a tree tests, if there are any."""
        names = [repr(self.column_names[j]) for j in np.intersect1d(columns, self.tested)]
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            raise ValueError(f"{tool} cannot write {', '.join(names[:5])}{more}: {why}")

    @cached_property
    def has_categories(self) -> np.ndarray:
        """Columns that hold categories, bool (n_columns,); of a tree on codes, all may."""
        book = self.book
        return (
            np.ones(self.n_columns, dtype=bool) if book is None else book.n_codes > book.n_ordered
        )

    @cached_property
    def column_names(self) -> list[str]:
        """Names at fit, or "feature_0", "feature_1", ..."""
        names = None if self.book is None else self.book.feature_names
        if names is None:
            return [f"feature_{i}" for i in range(self.n_columns)]
        return [str(name) for name in names]

    @property
    def labels(self) -> list:
        """Labels of the classes; of a tree without an estimator, their numbers.

        Of several targets "target: label", all behind one another; of numbers those of the targets.
        """
        if isinstance(self.classes, list):
            targets = zip(self.targets, self.classes, strict=True)
            return [f"{name}: {label}" for name, own in targets for label in own]
        return list(range(self.trees[0].n_values) if self.classes is None else self.classes)

    @property
    def value_labels(self) -> list:
        """A label for each of `n_outputs`: of two classes with one log odds, the second."""
        if self.classes is None:
            return list(range(self.n_outputs) if self.names_of_targets is None else self.targets)
        return [self.labels[place] for place in self.shown]

    @property
    def shown(self) -> list[int]:
        """Places of `value_labels` among `labels`."""
        found: list[int] = []
        last = 0
        for own in self.classes if isinstance(self.classes, list) else [self.classes]:
            last += len(own)
            is_odds = self.start is not None and len(own) == 2
            found += range(last - 1 if is_odds else last - len(own), last)
        return found

    @property
    def targets(self) -> list:
        """Names of the targets, or their numbers."""
        names = self.names_of_targets
        return list(range(self.n_targets) if names is None else names)

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        if isinstance(self.classes, list):
            return len(self.classes)
        if self.start is not None:
            return self.n_outputs if self.classes is None else 1
        return self.trees[0].coded_tree.n_outputs

    def outputs_of(self, number: int) -> slice:
        """The outputs that a tree adds to."""
        n, at = self.n_outputs, number % self.n_outputs
        return slice(0, n) if self.trees[number].n_values == n else slice(at, at + 1)

    @property
    def n_outputs(self) -> int:
        """Number of raw predictions of a boosted model; otherwise, values of a leaf."""
        return self.trees[0].n_values if self.start is None else len(self.start)

    def tree(self, number: int) -> TreeNodes:
        """One of the trees; ValueError when there are not so many."""
        if number < len(self.trees):
            return self.trees[number]
        has = "one tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        raise ValueError(
            f"tree must be below {len(self.trees)}: the model has {has}. Got {number}."
        )

    def __iter__(self) -> Iterator[Node]:
        for number in range(len(self.trees)):
            yield from self.of_tree(number)

    def of_tree(self, number: int) -> Iterator[Node]:
        """The nodes of a tree, in preorder."""
        tree = self.trees[number]
        value, weight, depth = tree.value, tree.weight, tree.depth
        names, unseen = self.column_names, tree.unseen_left
        own = self.outputs_of(number)
        output = None if self.start is None or own.stop - own.start > 1 else own.start
        for node in range(tree.n_nodes):
            parent = int(tree.parent[node])
            of_test: dict[str, Any] = {}
            if not tree.is_leaf[node]:
                column, test = int(tree.column[node]), TESTS[int(tree.test[node])]
                of_test = {
                    "column": column,
                    "name": names[column],
                    "test": test,
                    "threshold": None if test == "in" else self.in_units(node, tree),
                    "categories": self.labels_left(node, tree) if test == "in" else None,
                    "missing_left": bool(tree.missing_left[node]),
                    "unseen_left": bool(unseen[node]) if self.has_categories[column] else None,
                    "left": int(tree.left[node]),
                    "right": int(tree.right[node]),
                }
            yield Node(
                tree=number,
                node=node,
                parent=None if parent < 0 else parent,
                depth=int(depth[node]),
                output=output,
                value=value[node],
                weight=float(weight[node]),
                n_samples=int(tree.n_samples[node]),
                impurity=float(tree.impurity[node]) if tree.has_impurity else np.nan,
                gain=float(tree.gain[node]),
                **of_test,
            )

    def in_units(self, node: int, tree: TreeNodes) -> Any:
        """The threshold of a node: a number, a date or a time span."""
        threshold, column = float(tree.threshold[node]), tree.column[node]
        unit = None if self.book is None else self.book.units[column]
        if unit not in (DATETIME, TIMEDELTA) or not np.isfinite(threshold):
            return threshold
        kind = np.datetime64 if unit == DATETIME else np.timedelta64
        return kind(int(np.floor(threshold)), "ns")

    def labels_left(self, node: int, tree: TreeNodes) -> tuple:
        """The categories that pass the test of a set."""
        passes = tree.codes_left(node)
        if self.book is None:
            return tuple(np.flatnonzero(passes).tolist())
        column = int(tree.column[node])
        passing = self.book.categories[column][passes[_codes_of(self.book, column)]]
        return tuple(passing.tolist())


def nodes(model: Any) -> Iterator[Node]:
    """Iterate over the nodes of a fitted model, in the user's units.

    Parameters
    ----------
    model : tree, forest or boosted model of dtrees, TreeView or Tree
        Fitted. A tree on codes has codes for categories.

    Yields
    ------
    Node
        Tree by tree, and within a tree in preorder: a left child stands right behind its parent.
        Some microseconds each, and O(categories) for each test of a set.

    Raises
    ------
    TypeError
        It is none of these.
    sklearn.exceptions.NotFittedError
        The model has not been fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.export import nodes
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> for node in nodes(tree):
    ...     if not node.is_leaf:
    ...         print(node.node, node.name, node.test, round(node.threshold, 2))
    0 petal length (cm) <= 2.45
    2 petal width (cm) <= 1.75
    """
    return iter(ModelNodes.of(model))


def _bits(words: np.ndarray) -> np.ndarray:
    """The bits of words, the lowest first: bool, of the last axis."""
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=-1, bitorder="little")
    return bits.astype(bool)


def _codes_of(book: CodeBook, column: int) -> slice:
    """The codes of the categories of a column."""
    return slice(int(book.n_ordered[column]) + 1, int(book.n_codes[column]) + 1)


def _not_a_model(model: Any, name: str) -> TypeError:
    hint = ""
    if hasattr(model, "steps"):
        hint = " Give its last step, and rows as the steps before make them."
    elif hasattr(model, "best_estimator_"):
        hint = " Give its best_estimator_."
    elif hasattr(model, "calibrated_classifiers_"):
        hint = " Give the estimator of one of its calibrated_classifiers_."
    return TypeError(
        f"{name} must be a fitted tree, forest or boosted model of dtrees. Got {model!r} instead."
        + hint
    )
