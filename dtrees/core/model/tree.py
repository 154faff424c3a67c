"""Grown trees: flat, frozen arrays.

A node that grows and a node that has grown are two types. The kernels write records
(`dtrees.core.data._structs`); `Tree` is what is left: one array per property, nodes in preorder (a
left child stands right behind its parent), read only. Every function of a tree (prediction,
pruning, importance, text) reads these arrays and nothing else. What other arrays imply is computed
when it is asked for: a forest of many classes would be several times as large with the shares of
its nodes.

A node's test is one of three, on the value in column ``feature``:

    test 1    value <= threshold     ordered columns; a category never passes
    test 2    value >  threshold     hybrid columns only; a category never passes
    test 3    value in subset        categories, given as a bit per code

Rows that pass go left. Missing values (code 0) go where ``missing_go_to_left`` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dtrees._forks import cached_property
from dtrees.core.data.criteria import CRITERIA, REGRESSION
from dtrees.core.model._pruning import depths

LEAF, AT_MOST, ABOVE, IN_SUBSET = 0, 1, 2, 3
NO_FEATURE = -2
NO_CHILD = -1
SMALL = 1e-280  # of the largest gain of a tree; below, digits are lost

UNITS = ("weight_unit", "unit", "offset")
FACTS = ("n_columns", "criterion", "n_classes", *UNITS)  # of a tree, beside its arrays
LEAF_VALUES: dict[str, Any] = {
    "feature": NO_FEATURE,
    "children_left": NO_CHILD,
    "children_right": NO_CHILD,
    "test": LEAF,
    "code": 0,
    "threshold": np.nan,
    "missing_go_to_left": 0,
    "subset_offset": -1,
    "gain": 0.0,
}


def total_of(statistics: np.ndarray, criterion: str, n_outputs: int = 1) -> np.ndarray:
    """Weight of every node in units of its fixed point; int64 (n_nodes,)."""
    if criterion in REGRESSION:
        return statistics[:, 0]
    total: np.ndarray = statistics.sum(axis=1, dtype=np.int64)
    return total if n_outputs == 1 else total // n_outputs


def are_bounded(offsets: Sequence[Any]) -> bool:
    """Whether no sum of values of trees with these offsets overflows."""
    if offsets and isinstance(offsets[0], tuple):
        return all(map(are_bounded, zip(*offsets, strict=True)))
    return not any(offsets) or math.isfinite(max(map(abs, offsets)) * (2.0 * len(offsets)))


def mean_of_sums(
    total: np.ndarray, n_added: int | np.ndarray, offsets: Sequence[Any]
) -> np.ndarray:
    """Sums of values of leaves, divided by how many were added: means over trees.

    A sum overflows only where means are more than the largest float64 divided by the number of
    trees. Squares of a target's distances from its middle are bounded (`dtrees.coding.target`), so
    means of such a size are all one float64, the tree's offset: the mean over trees is that of
    their offsets, of which there is one at least.

    total : float64 (n_rows, n_values); n_added : int or int64 (n_rows, 1), 0: the mean is nan
    """
    if isinstance(offsets[0], tuple):
        of_outputs = zip(total.T, zip(*offsets, strict=True), strict=True)
        means = [mean_of_sums(sums[:, None], n_added, own) for sums, own in of_outputs]
        return np.hstack(means)
    with np.errstate(over="ignore", invalid="ignore"):
        mean: np.ndarray = total / n_added
    if are_bounded(offsets):
        return mean
    first = offsets[0]
    is_one = all(offset == first for offset in offsets)
    of_offsets = first if is_one else math.fsum(offset / len(offsets) for offset in offsets)
    lost = ~np.isfinite(total) & (np.asarray(n_added) > 0)
    return np.where(lost, of_offsets, mean)


def count_type(roots: np.ndarray) -> np.dtype:
    """The type of the counts of trees, of which their roots have most: int32 where they fit.

    roots : integers (n_trees,) or (n_trees, n_statistics)
    """
    totals = roots if roots.ndim == 1 else roots.sum(axis=1)
    return np.dtype(np.int32 if (totals < 2**31).all() else np.int64)


@dataclass(frozen=True, eq=False)
class Tree:
    """One grown tree; all arrays have a row per node unless said otherwise.

    Attributes
    ----------
    feature : int32 (n_nodes,)
        Column of the test; -2 in leaves.
    children_left, children_right : int32 (n_nodes,)
        -1 in leaves; a left child is its parent's number plus one.
    test : uint8 (n_nodes,)
        0 leaf, 1 ``<=``, 2 ``>``, 3 subset.
    code : uint32 (n_nodes,)
        Test 1: codes 1..code go left. Test 2: ordered codes above it do. 0 otherwise.
    threshold : float64 (n_nodes,)
        The same in the user's units; nan in leaves and for subsets; inf when all numbers pass.
    missing_go_to_left : uint8 (n_nodes,)
    subset_offset : int64 (n_nodes,)
        Where the node's subset starts in ``subset_words``; -1 without one.
    subset_words : uint64 (n_words,)
        ``n_codes // 64 + 1`` words per subset; bit c: code c goes left; bit 0 is missing.
    n_node_samples : int32 or int64 (n_nodes,)
        Rows of positive weight. Integers are int32 where those of the root fit, as are the next.
    statistics : int32 or int64 (n_nodes, n_statistics)
        Classification: weight per class. Regression: weight and weighted target, int64. Fixed
        point. By absolute errors the weight times the median stands for the target.
    impurity, gain : float64 (n_nodes,)
        ``gain`` is the weighted impurity decrease of the node's split, in the user's weight units,
        not divided by the total weight; 0 in leaves.
    n_columns : int
    criterion : str
    weight_unit : float, default=1.0
        What one unit of the weights in ``statistics`` is for the user.
    unit, offset : float, default=1.0, 0.0
        Regression: the mean of a node is its weighted target times ``unit``, divided by its weight
        in the user's units, plus ``offset``. Of several outputs, tuples of a number for each.
    n_classes : tuple of int, default=()
        Classification of several outputs: classes of each, whose weights stand side by side in
        ``statistics``.

    Notes
    -----
    Pickled in a few bytes per node (`dtrees.core.model.packing`).
    """

    feature: np.ndarray
    children_left: np.ndarray
    children_right: np.ndarray
    test: np.ndarray
    code: np.ndarray
    threshold: np.ndarray
    missing_go_to_left: np.ndarray
    subset_offset: np.ndarray
    subset_words: np.ndarray
    n_node_samples: np.ndarray
    statistics: np.ndarray
    impurity: np.ndarray
    gain: np.ndarray
    n_columns: int
    criterion: str
    weight_unit: float = 1.0
    unit: float | tuple[float, ...] = 1.0
    offset: float | tuple[float, ...] = 0.0
    n_classes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        state = vars(self)
        for name in ("n_node_samples",) if self.is_regression else ("n_node_samples", "statistics"):
            state[name] = state[name].astype(count_type(state[name][:1]), copy=False)
        if len(self.subset_words) == 0:  # strides of an empty stretch say where it was cut from
            state["subset_words"] = np.empty(0, dtype=self.subset_words.dtype)
        for array in state.values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        from dtrees.core.model import packing

        packed = packing.pack([self])
        return super().__reduce_ex__(protocol) if packed is None else (_unpacked_tree, packed)

    @property
    def is_regression(self) -> bool:
        """Whether the nodes have means of numbers, not shares of classes."""
        return self.criterion in REGRESSION

    @property
    def n_values(self) -> int:
        """Values of a node: the number of classes, or 1; of all outputs."""
        return self.statistics.shape[1] - self.is_regression

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.n_values if self.is_regression else max(1, len(self.n_classes))

    @property
    def value(self) -> np.ndarray:
        """Class shares or means of all nodes, float64 (n_nodes, n_values). O(nodes x classes)."""
        return self._values(self.statistics)

    def value_of(self, nodes: Any) -> np.ndarray:
        """Class shares or means of some nodes, which may occur many times; (n, n_values)."""
        if len(nodes) < self.node_count:
            return self._values(self.statistics.take(nodes, axis=0))
        return self.value.take(nodes, axis=0)

    def _values(self, statistics: np.ndarray) -> np.ndarray:
        total = total_of(statistics, self.criterion, len(self.n_classes) or 1)
        with np.errstate(all="ignore"):  # a file may say anything
            if not self.is_regression:
                return statistics / total[:, None]
            weight = (total * self.weight_unit)[:, None]
            mean: np.ndarray = (statistics[:, 1:] * self.unit) / weight + self.offset
        return mean

    @property
    def weighted_n_node_samples(self) -> np.ndarray:
        """Weight of every node in the user's units, float64 (n_nodes,). O(nodes x classes)."""
        return total_of(self.statistics, self.criterion, self.n_outputs) * self.weight_unit

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.test == LEAF))

    @property
    def depth(self) -> np.ndarray:
        """Depth of every node, int64 (n_nodes,); the root has 0. O(nodes)."""
        found: np.ndarray = depths(self.children_left, self.children_right)
        return found

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.depth.max())

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name, in the order of the attributes."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in named.items() if isinstance(array, np.ndarray)}

    def of_output(self, output: int) -> Tree:
        """The tree of one of several outputs: its values, and the splits and gains of all."""
        if self.is_regression:
            pair = np.ascontiguousarray(self.statistics[:, [0, 1 + output]])
            unit, offset = (float(np.ravel(each)[output]) for each in (self.unit, self.offset))
            return replace(self, statistics=pair, unit=unit, offset=offset)
        end = sum(self.n_classes[: output + 1])
        own = self.statistics[:, end - self.n_classes[output] : end]
        return replace(self, statistics=np.ascontiguousarray(own), n_classes=())

    def equals(self, other: Tree) -> bool:
        """Whether two trees are the same, bit for bit, in every array."""
        mine, theirs = self.arrays(), other.arrays()
        return all(getattr(self, name) == getattr(other, name) for name in FACTS) and all(
            mine[name].dtype == theirs[name].dtype
            and mine[name].shape == theirs[name].shape
            and mine[name].tobytes() == theirs[name].tobytes()
            for name in mine
        )


def relative_gains(tree: Tree) -> np.ndarray:
    """Gains of all nodes in one unit of the tree's own choice, float64 (n_nodes,); 0 in leaves.

    A gain is in the user's units: weight, times the square of the target (squared error) or the
    target (poisson). Squares of targets of 1e-170 are nothing to a float64, although the tree was
    grown from integers and knows all of it. So nodes are compared by relative gains. Their unit is
    the user's where a float64 holds the gains in it, and where gains are not known from the
    statistics. O(nodes).
    """
    largest = tree.gain.max(initial=0.0)
    is_known = tree.criterion in REGRESSION and CRITERIA[tree.criterion].has_known_gains
    if not is_known or tree.n_outputs > 1 or SMALL <= largest < np.inf:
        return tree.gain
    gains = np.zeros(tree.node_count)
    inner = np.flatnonzero(tree.test != LEAF)
    weight, total = tree.statistics.T.astype(np.float64)
    left, right = tree.children_left[inner], tree.children_right[inner]
    w, v, s, r = weight[left], weight[right], total[left], total[right]
    if tree.criterion == "poisson":
        both = s + r
        raw = _xlog(s, w) + _xlog(r, v) - _xlog(both, w + v)
    else:
        raw = (s / w - r / v) ** 2 * (w * (v / (w + v)))
    gains[inner] = np.maximum(raw, 0.0)
    return gains


def _xlog(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """``total * log(total / weight)``, 0 for 0."""
    ratio = np.divide(total, weight)
    logs: np.ndarray = np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0)
    return total * logs


@dataclass(frozen=True, eq=False)
class Forest:
    """Grown trees: one for each training set of a growth, or for each bag.

    Attributes
    ----------
    trees : tuple of Tree
        In the order of the rows of the resampling's mix.
    """

    trees: tuple[Tree, ...]

    def __reduce_ex__(self, protocol: Any) -> Any:
        from dtrees.core.model import packing

        packed = packing.pack(self.trees)
        return super().__reduce_ex__(protocol) if packed is None else (_unpacked_forest, packed)

    @cached_property
    def offsets(self) -> list[Any]:
        """The offset of every tree; of several outputs, a tuple of each."""
        return [tree.offset for tree in self.trees]

    @cached_property
    def has_bounded_sums(self) -> bool:
        """Whether no sum of the values of leaves overflows."""
        return are_bounded(self.offsets)

    def __len__(self) -> int:
        return len(self.trees)

    def __getitem__(self, i: int) -> Tree:
        return self.trees[i]


def _unpacked_tree(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Tree:
    from dtrees.core.model import packing

    return packing.unpack(arrays, facts)[0]


def _unpacked_forest(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Forest:
    from dtrees.core.model import packing

    return Forest(packing.unpack(arrays, facts))
