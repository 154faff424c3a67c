"""Grown trees in a few bytes per node, for pickles and files.

Most of a tree's arrays say again what others say. Packed, a tree is what cannot be computed from
the rest; `unpack` gives back every array, bit for bit:

    array                     how it is packed
    test, children_*          a bit per node: inner or leaf. In preorder that is the whole shape
    feature, code, test,      inner nodes only. A test that many nodes have (there are few
      threshold                 thresholds when columns have few codes) is stored once, and the
                                nodes say which one it is; without ``test``, all are ``<=``
    missing_go_to_left        a bit per inner node
    subset_offset             the lengths of the subsets, which stand in the order of the nodes
    subset_words              as they are
    statistics,               leaves only: an inner node's are the sums of its leaves. But for
      n_node_samples            medians (`Criterion.has_sums`), which are stored of all nodes
    gain, impurity            *predicted* from the statistics and from the children; what is stored
                                is by how many units in the last place the prediction is off: as
                                a rule nothing at all, or a byte. ``has_impurity`` is False
                                where all impurities are 0 and the gains are not

Trees that were made by hand may break the rules that make this possible (a leaf with a gain, shared
subsets, ...); `pack` then returns None.

Integers are stored in the narrowest type in which few of them do not fit. Those that do not are
*escapes*: the largest value of an unsigned type, the least of a signed one, stands in their place,
and they follow in an array of their own (``name.escapes``). Integers are divided by their greatest
common divisor first, where that is said (``name.divisor``).

Predictions use additions, multiplications, divisions and conversions of IEEE doubles, each
rounded once, so they have the same bits on every machine. They are part of the format of model
files: a change of a formula below is a new version of it.

    W, S, w, s    weight and weighted target (two classes: weight of class 1) of a node and of its
                  left child, in integer units; u, v the units of weight and weighted target
    gain          two classes         (W s - w S)^2 / (w (W - w)) / W * 2 u
                  squared error       (W s - w S)^2 / (w (W - w)) / W * (v (v / u))
                  gini                ((L (W - w) + R w) / (w (W - w)) - T / W) u,
                                      L, R, T sums of squares of left, right and node
                  poisson, 1 output   (s log(s/w) + (S-s) log((S-s)/(W-w)) - S log(S/W)) v
                  otherwise           0
                  of m outputs        gini, or the sum of their squared errors, by m
    impurity      gini                (m W^2 - T) / (W W) / m
                  otherwise           (gain + wl Il + wr Ir) / W of the children, in the user's
                                      units; leaves 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtrees.core.data._logarithm import log
from dtrees.core.data.criteria import CRITERIA, REGRESSION
from dtrees.core.model.flat import (
    DTYPES,
    TYPES,
    Arrays,
    Shape,
    n_classes_of,
    shared_facts,
    split_trees,
)
from dtrees.core.model.tree import AT_MOST, IN_SUBSET, LEAF, LEAF_VALUES, UNITS, Tree, total_of

_UNSIGNED = (np.uint8, np.uint16, np.uint32)
_SIGNED = (np.int8, np.int16, np.int32)
_EXACT_TOTAL = 2**31  # squares of smaller weights are exact in int64


def pack(trees: Sequence[Tree]) -> tuple[Arrays, dict[str, Any]] | None:
    """What cannot be computed from the rest, for all trees together, of one table and criterion.

    These are arrays by name, one-dimensional, of fixed-width types, in little-endian order; and
    what all trees share, int, str or bool. None when the trees do not follow the rules of grown
    trees. O(nodes * log nodes).
    """
    if not trees or not _are_alike(trees):
        return None
    n_nodes = np.array([tree.node_count for tree in trees], dtype=np.int64)
    all_of = {
        name: np.concatenate([getattr(tree, name) for tree in trees])
        for name in trees[0].arrays()
        if name != "subset_words"
    }
    is_inner = all_of["test"] != LEAF
    try:
        shape = Shape(is_inner, n_nodes)
    except ValueError:
        return None
    lengths = _subset_lengths(trees)
    if lengths is None or not _is_canonical(all_of, shape):
        return None
    inner, leaves = shape.inner, shape.leaves
    is_subset = all_of["test"] == IN_SUBSET
    arrays: Arrays = {
        "n_nodes": n_nodes,
        "is_inner": np.packbits(is_inner),
        "missing_left": np.packbits(all_of["missing_go_to_left"][inner]),
        **{name: np.array([getattr(tree, name) for tree in trees]).ravel() for name in UNITS},
        "subset_words": np.concatenate([tree.subset_words for tree in trees]),
    }
    arrays |= _tests(all_of, inner)
    if len(lengths) != np.count_nonzero(is_subset):
        return None
    arrays |= narrow("subset_lengths", lengths)

    statistics = all_of["statistics"].astype(np.int64, copy=False)
    for k in range(statistics.shape[1]):
        held = _kept_nodes(trees[0].criterion, k, shape)
        arrays |= narrow(f"statistics.{k}", statistics[held, k], divide=True)
    is_regression = trees[0].criterion in REGRESSION
    n_outputs = trees[0].n_outputs
    total = total_of(statistics, trees[0].criterion, n_outputs)
    if total.min() <= 0 or statistics.shape[1] < 1 + is_regression:
        return None
    rows = all_of["n_node_samples"]
    if not np.array_equal(rows[leaves], total[leaves]):
        arrays |= narrow("n_node_samples", rows[leaves], divide=True)
    facts = shared_facts(trees[0]) | {"n_statistics": statistics.shape[1]}
    has_sums = CRITERIA[trees[0].criterion].has_sums
    sums = np.column_stack([rows, statistics if has_sums else total])
    if not np.array_equal(shape.sums(sums[leaves]), sums):
        return None

    units = Units(arrays, shape, n_outputs, is_regression)
    gain = gains(statistics, total, units, shape, trees[0].criterion)
    arrays |= residual("gain", all_of["gain"][inner], gain)
    impurity = all_of["impurity"]
    if trees[0].criterion == "gini":
        arrays |= residual("impurity", impurity, gini(statistics, total, n_outputs))
    elif all_of["gain"].any() and _holds(impurity, 0.0):  # of trees of steps, say
        facts["has_impurity"] = False
    else:
        weight = total * units.weight
        predicted = impurity_above(impurity, all_of["gain"], weight, shape, inner)
        arrays |= residual("impurity", impurity[inner], predicted)
        arrays |= residual("leaf_impurity", impurity[leaves], np.zeros(len(leaves)))
    return arrays, facts


def unpack(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> tuple[Tree, ...]:
    """The trees that were packed, from what `pack` returned, wherever that comes from.

    Everything that a reader of trees relies on is checked: ValueError where the arrays are not
    those of trees. O(nodes * log depth).
    """
    n_columns, criterion = int(facts["n_columns"]), str(facts["criterion"])
    is_regression = criterion in REGRESSION
    n_statistics = int(facts["n_statistics"])
    n_nodes = typed(arrays, "n_nodes", np.int64)
    total_nodes = int(n_nodes.sum()) if len(n_nodes) and n_nodes.min() > 0 else 0
    if not 0 < total_nodes <= 8 * len(arrays["is_inner"]) or n_nodes.max() >= 2**31:
        raise ValueError("The trees have no nodes, or more than are described.")
    if criterion not in CRITERIA or not 1 + is_regression <= n_statistics <= 65_535:
        raise ValueError(f"There is no criterion {criterion!r} of {n_statistics} statistics.")
    n_classes = n_classes_of(facts, n_statistics)
    n_outputs = n_statistics - 1 if is_regression else max(1, len(n_classes))
    shape = Shape(bits(arrays, "is_inner", total_nodes), n_nodes)
    inner, leaves = shape.inner, shape.leaves
    for k in range(n_statistics):
        if len(arrays[f"statistics.{k}"]) != len(_kept_nodes(criterion, k, shape)):
            raise ValueError("There are not so many statistics as leaves.")

    all_of: Arrays = {
        name: np.full(total_nodes, value, DTYPES[name]) for name, value in LEAF_VALUES.items()
    }
    own = shape.start[shape.tree[inner]]  # first node of the inner node's tree
    all_of["children_left"][inner] = inner + 1 - own
    all_of["children_right"][inner] = shape.right - own
    all_of["missing_go_to_left"][inner] = bits(arrays, "missing_left", len(inner))
    for name, column in _read_tests(arrays, len(inner), n_columns).items():
        all_of[name][inner] = column
    word_counts = _place_subsets(arrays, all_of, shape)

    sums = np.empty((len(leaves), n_statistics + 1), dtype=np.int64)
    known = {}
    for k in range(n_statistics):
        kept = _kept_nodes(criterion, k, shape)
        known[k] = widen(arrays, f"statistics.{k}", len(kept))
        sums[:, k] = known[k] if len(kept) == len(leaves) else 0
    total = total_of(sums[:, :n_statistics], criterion, n_outputs)
    first = np.cumsum((0, *n_classes[:-1]))
    if n_classes and (total != np.add.reduceat(sums[:, :-1], first, axis=1).T).any():
        raise ValueError("The outputs of a leaf differ in weight.")
    if "n_node_samples" in arrays:
        sums[:, -1] = widen(arrays, "n_node_samples", len(leaves))
    else:
        sums[:, -1] = total
    sums = shape.sums(sums)
    statistics = np.ascontiguousarray(sums[:, :n_statistics])
    if not CRITERIA[criterion].has_sums:
        statistics[:, 1:] = np.column_stack([known[k] for k in range(1, n_statistics)])
    all_of["statistics"] = statistics
    all_of["n_node_samples"] = sums[:, -1].copy()
    total = total_of(statistics, criterion, n_outputs)
    if total.min() <= 0:
        raise ValueError("A node has no weight.")
    units = Units(arrays, shape, n_outputs, is_regression)
    if not np.isfinite(units.weight).all() or units.weight.min() <= 0:
        raise ValueError("The unit of the weights is no positive number.")
    gain = corrected(arrays, "gain", gains(statistics, total, units, shape, criterion))
    all_of["gain"][inner] = gain
    if criterion == "gini":
        all_of["impurity"] = corrected(arrays, "impurity", gini(statistics, total, n_outputs))
    elif facts.get("has_impurity", True) is False:
        all_of["impurity"] = np.zeros(total_nodes)
    else:
        all_of["impurity"] = impurities(arrays, all_of["gain"], total * units.weight, shape)
    return split_trees(
        all_of,
        arrays["subset_words"],
        n_nodes,
        word_counts,
        n_columns=n_columns,
        criterion=criterion,
        units=units.of_trees,
        n_classes=n_classes,
    )


def _kept_nodes(criterion: str, k: int, shape: Shape) -> np.ndarray:
    """Nodes whose statistic number k is stored: leaves, or all where it is no sum of theirs."""
    is_sum = k == 0 or CRITERIA[criterion].has_sums
    return shape.leaves if is_sum else np.arange(len(shape.last))


def _tests(all_of: Arrays, inner: np.ndarray) -> Arrays:
    """The tests of inner nodes; each once when that is shorter."""
    feature = all_of["feature"][inner].astype(np.int64)
    test, code, threshold = (all_of[name][inner] for name in ("test", "code", "threshold"))
    which, first = _numbered(feature << 34 | test.astype(np.int64) << 32 | code)
    bits = threshold.view(np.int64)
    if (bits[first][which] != bits).any():
        # the same code with several thresholds: values between were not in all nodes
        which, first = _numbered(_numbered(bits)[0] << 32 | which)
    each = len(inner) * (feature.itemsize + 5)
    index = narrow("test_number", which)
    n_bytes = sum(array.nbytes for array in index.values())
    chosen: Any = slice(None)
    arrays: Arrays = {}
    if len(first) * (feature.itemsize + 5) + n_bytes < each:
        chosen, arrays = first, index
    if (test != AT_MOST).any():
        arrays["test"] = test[chosen]
    arrays["threshold"] = threshold[chosen]
    arrays |= narrow("feature", feature[chosen])
    arrays |= narrow("code", code[chosen].astype(np.int64))
    return arrays


def _numbered(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys by number: the number of every key, ascending, and a place of every number."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return number, first


def _read_tests(arrays: Mapping[str, np.ndarray], n_inner: int, n_columns: int) -> Arrays:
    """Feature, test, code and threshold of inner nodes."""
    threshold = typed(arrays, "threshold", np.float64)
    test = np.full(len(threshold), AT_MOST, dtype=np.uint8)
    if "test" in arrays:
        test = typed(arrays, "test", np.uint8)
    feature = widen(arrays, "feature", len(test))
    code = widen(arrays, "code", len(test))
    if len(threshold) != len(test) or not ((test >= AT_MOST) & (test <= IN_SUBSET)).all():
        raise ValueError("There are nodes without a test.")
    if len(test) and not (feature.min() >= 0 and feature.max() < n_columns):
        raise ValueError("A node tests a column that is not there.")
    if len(code) and not (code.min() >= 0 and code.max() < 2**32):
        raise ValueError("A node tests a code that cannot be.")
    found: Arrays = {"feature": feature, "test": test, "code": code, "threshold": threshold}
    if "test_number" in arrays:
        which = widen(arrays, "test_number", n_inner)
        if len(which) and not (which.min() >= 0 and which.max() < len(test)):
            raise ValueError("A node has a test that is not there.")
        found = {name: array[which] for name, array in found.items()}
    if len(found["test"]) != n_inner:
        raise ValueError("There is not one test for every inner node.")
    return found


def _place_subsets(arrays: Mapping[str, np.ndarray], all_of: Arrays, shape: Shape) -> np.ndarray:
    """Write the offsets of the subsets; returns the number of words of every tree."""
    nodes = np.flatnonzero(all_of["test"] == IN_SUBSET)
    lengths = widen(arrays, "subset_lengths", len(nodes))
    words = typed(arrays, "subset_words", np.uint64)
    if len(lengths) and not 1 <= lengths.min() <= lengths.max() <= len(words):
        raise ValueError("A subset has no words.")
    ends = np.cumsum(lengths)
    if (int(ends[-1]) if len(ends) else 0) != len(words):
        raise ValueError("The subsets have more or fewer words than there are.")
    counts = np.bincount(shape.tree[nodes], weights=lengths, minlength=len(shape.start))
    counts = counts.astype(np.int64)
    first = np.cumsum(counts) - counts
    all_of["subset_offset"][nodes] = ends - lengths - first[shape.tree[nodes]]
    return counts


def _subset_lengths(trees: Sequence[Tree]) -> np.ndarray | None:
    """Number of words of every subset; None where they do not fill the words in node order."""
    lengths = []
    for tree in trees:
        starts = tree.subset_offset[tree.subset_offset >= 0]
        own = np.diff(starts, append=len(tree.subset_words))
        unused = starts[0] if len(starts) else len(tree.subset_words)
        if unused != 0 or (own < 1).any():
            return None
        lengths.append(own)
    return np.concatenate(lengths)


def _are_alike(trees: Sequence[Tree]) -> bool:
    """Whether all arrays have their type, and all trees the same widths."""
    first = trees[0]
    if first.criterion not in CRITERIA:
        return False
    return all(
        tree.criterion == first.criterion
        and tree.n_columns == first.n_columns
        and tree.n_classes == first.n_classes
        and tree.node_count > 0
        and tree.statistics.shape == (tree.node_count, first.statistics.shape[1])
        and tree.statistics.shape[1] > 0
        and all(
            array.dtype in TYPES[name] and (name == "subset_words" or len(array) == tree.node_count)
            for name, array in tree.arrays().items()
        )
        for tree in trees
    )


def _is_canonical(all_of: Arrays, shape: Shape) -> bool:
    """Whether children are where preorder has them, and leaves hold what leaves hold."""
    inner = shape.inner
    own = shape.start[shape.tree[inner]]
    test, offset = all_of["test"], all_of["subset_offset"]
    return bool(
        test.max() <= IN_SUBSET
        and (all_of["children_left"][inner] + own == inner + 1).all()
        and (all_of["children_right"][inner] + own == shape.right).all()
        and (all_of["feature"][inner] >= 0).all()
        and (all_of["missing_go_to_left"] <= 1).all()
        and all(_holds(all_of[name][shape.leaves], LEAF_VALUES[name]) for name in LEAF_VALUES)
        and ((offset >= 0) == (test == IN_SUBSET)).all()
        and (offset[test != IN_SUBSET] == -1).all()
    )


def _holds(array: np.ndarray, value: float) -> bool:
    """Whether all bits are those of the value."""
    kind = f"u{array.itemsize}"
    return bool((array.view(kind) == np.full(1, value, array.dtype).view(kind)).all())


def narrow(name: str, values: np.ndarray, divide: bool = False) -> Arrays:
    """Integers in the type that takes least, under their name.

    `divide`: by their greatest common divisor, if that is above 1. Returns ``name``, and where they
    are needed ``name.escapes`` and ``name.divisor``, int64.
    """
    arrays: Arrays = {}
    values = np.ascontiguousarray(values, dtype=np.int64)
    if divide and len(values):
        divisor = int(np.gcd.reduce(values))
        if divisor > 1:
            values = values // divisor
            arrays[f"{name}.divisor"] = np.array([divisor], dtype=np.int64)
    signed = bool(values.min(initial=0) < 0)
    best, best_bytes = values, values.nbytes
    escapes = values[:0]
    for kind in _SIGNED if signed else _UNSIGNED:
        info = np.iinfo(kind)
        low, high = (info.min + 1, info.max) if signed else (0, info.max - 1)
        outside = (values < low) | (values > high)
        n_bytes = len(values) * info.bits // 8 + 8 * int(np.count_nonzero(outside))
        if n_bytes < best_bytes:
            marker = info.min if signed else info.max
            best, best_bytes = np.where(outside, marker, values).astype(kind), n_bytes
            escapes = values[outside]
    arrays[name] = best
    if len(escapes):
        arrays[f"{name}.escapes"] = escapes
    return arrays


def widen(arrays: Mapping[str, np.ndarray], name: str, length: int) -> np.ndarray:
    """The integers that `narrow` got, int64 (length,).

    Raises ValueError where there are not so many, or escapes are missing.
    """
    packed = arrays[name]
    if packed.dtype.kind not in "iu" or packed.shape != (length,) or packed.dtype == np.uint64:
        raise ValueError(f"{name} is not {length} integers.")
    values = packed.astype(np.int64)
    if packed.dtype != np.int64:
        info = np.iinfo(packed.dtype)
        outside = np.flatnonzero(packed == (info.min if info.min < 0 else info.max))
        escapes = arrays.get(f"{name}.escapes", values[:0])
        if escapes.dtype != np.int64 or escapes.shape != outside.shape:
            raise ValueError(f"{name} has {len(outside)} escapes, but not so many values for them.")
        values[outside] = escapes
    if f"{name}.divisor" in arrays:
        divisor = typed(arrays, f"{name}.divisor", np.int64)
        if divisor.shape != (1,):
            raise ValueError(f"{name} has not one divisor.")
        values *= divisor[0]
    return values


def typed(arrays: Mapping[str, np.ndarray], name: str, dtype: Any) -> np.ndarray:
    """A one-dimensional array of a type."""
    array = arrays[name]
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not a row of {dtype}.")
    return array


def bits(arrays: Mapping[str, np.ndarray], name: str, length: int) -> np.ndarray:
    """Packed bits, bool (length,)."""
    packed = typed(arrays, name, np.uint8)
    if len(packed) != -(-length // 8):
        raise ValueError(f"{name} is not {length} bits.")
    return np.unpackbits(packed, count=length).astype(bool)


class Units:
    """Units of every node's statistics, and of the trees as `split_trees` takes them.

    Those of the target are (n_nodes, n_outputs) of several outputs of numbers.
    """

    def __init__(
        self, arrays: Mapping[str, np.ndarray], shape: Shape, n_outputs: int, is_regression: bool
    ) -> None:
        self.n_outputs, n_trees = n_outputs, len(shape.start)
        self.of_trees = {name: typed(arrays, name, np.float64) for name in UNITS}
        for name, array in self.of_trees.items():
            several = is_regression and n_outputs > 1 and name != "weight_unit"
            if len(array) != (n_trees * n_outputs if several else n_trees):
                raise ValueError("There is not one unit for every tree.")
            if several:
                self.of_trees[name] = array.reshape(n_trees, n_outputs)
        self.weight = self.of_trees["weight_unit"][shape.tree]
        self.target = self.of_trees["unit"][shape.tree]


def residual(name: str, actual: np.ndarray, predicted: np.ndarray) -> Arrays:
    """How far predictions are off, in units in the last place; nothing where all are right."""
    mine = np.ascontiguousarray(actual).view(np.int64).ravel()
    off = mine - np.ascontiguousarray(predicted).view(np.int64).ravel()
    return narrow(name, off) if off.any() else {}


def corrected(arrays: Mapping[str, np.ndarray], name: str, predicted: np.ndarray) -> np.ndarray:
    """The inverse of `residual`; may write to ``predicted``."""
    if name not in arrays:
        return predicted
    off = widen(arrays, name, predicted.size).reshape(predicted.shape)
    return (np.ascontiguousarray(predicted).view(np.int64) + off).view(np.float64)


def _squares(statistics: np.ndarray, total: np.ndarray, n_outputs: int) -> np.ndarray:
    """Sums of squares over the classes; exact integers, or doubles where these do not fit."""
    if total.max(initial=0) >= _EXACT_TOTAL // n_outputs:
        statistics = statistics.astype(np.float64)
    squares = statistics[:, 0] * statistics[:, 0]
    for k in range(1, statistics.shape[1]):
        squares += statistics[:, k] * statistics[:, k]
    return squares


def gini(statistics: np.ndarray, total: np.ndarray, n_outputs: int = 1) -> np.ndarray:
    """Gini impurity of every node, the mean over outputs."""
    squares = _squares(statistics, total, n_outputs)
    weight = total.astype(np.float64)
    own = n_outputs * (weight if squares.dtype == np.float64 else total) ** 2
    return (own - squares) / (weight * weight) / n_outputs


def gains(
    statistics: np.ndarray, total: np.ndarray, units: Units, shape: Shape, criterion: str
) -> np.ndarray:
    """Predicted gain of every inner node."""
    inner, left = shape.inner, shape.inner + 1
    unit, n_outputs = units.weight[inner], units.n_outputs
    n_statistics = statistics.shape[1]
    is_gini = criterion == "gini"
    is_known = CRITERIA[criterion].has_known_gains and (criterion != "poisson" or n_outputs == 1)
    if not is_known or n_statistics < 2:
        return np.zeros(len(inner))
    W, w = total[inner].astype(np.float64), total[left].astype(np.float64)
    with np.errstate(all="ignore"):
        if is_gini and (n_statistics > 2 or n_outputs > 1):
            squares = _squares(statistics, total, n_outputs).astype(np.float64)
            score = squares[left] * (W - w) + squares[shape.right] * w
            raw = score / (w * (W - w)) - squares[inner] / W
            unit = unit / n_outputs
        elif n_outputs > 1:
            raw = np.zeros(len(inner))
            for target, of_output in zip(units.target[inner].T, statistics[:, 1:].T, strict=True):
                D = W * of_output[left].astype(np.float64) - w * of_output[inner]
                raw += D * D / (w * (W - w)) / W * (target * (target / unit))
            unit = np.full(len(inner), 1.0 / n_outputs)
        else:
            S, s = statistics[inner, 1].astype(np.float64), statistics[left, 1].astype(np.float64)
            target = units.target[inner]
            if criterion == "poisson":
                raw = s * log(s / w) + (S - s) * log((S - s) / (W - w)) - S * log(S / W)
                unit = target
            else:
                D = W * s - w * S
                raw = D * D / (w * (W - w)) / W
                unit = 2 * unit if is_gini else target * (target / unit)
        return np.where(raw > 0, raw * unit, 0.0)


def impurity_above(
    impurity: np.ndarray,
    gain: np.ndarray,
    weight: np.ndarray,
    shape: Shape,
    nodes: np.ndarray,
    right: np.ndarray | None = None,
) -> np.ndarray:
    """Predicted impurity of some inner nodes, from those of their children."""
    left = nodes + 1
    right = shape.right if right is None else right
    with np.errstate(all="ignore"):
        below = weight[left] * impurity[left] + weight[right] * impurity[right]
        return (gain[nodes] + below) / weight[nodes]


def impurities(
    arrays: Mapping[str, np.ndarray], gain: np.ndarray, weight: np.ndarray, shape: Shape
) -> np.ndarray:
    """Impurities of all nodes, leaves first, then level by level towards the root."""
    inner, leaves = shape.inner, shape.leaves
    impurity = np.zeros(len(shape.last))
    impurity[leaves] = corrected(arrays, "leaf_impurity", np.zeros(len(leaves)))
    off = np.zeros(len(inner), dtype=np.int64)
    if "impurity" in arrays:
        off = widen(arrays, "impurity", len(inner))
    for level in shape.levels() if len(inner) else ():
        nodes, right = inner[level], shape.right[level]
        predicted = impurity_above(impurity, gain, weight, shape, nodes, right)
        impurity[nodes] = (predicted.view(np.int64) + off[level]).view(np.float64)
    return impurity
