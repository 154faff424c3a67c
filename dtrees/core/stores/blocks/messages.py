"""What a driver tells blocks of rows, and what they tell it: small, and the same for all blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrees._pickling import SmallArraysInside
from dtrees.coding.target import Target
from dtrees.core.model.tree import ABOVE, AT_MOST
from dtrees.core.stores.blocks._node_counts import HIGHEST, LOWEST


@dataclass(frozen=True, eq=False)
class FoundSplit:
    """The test of a node in codes, as its record has it.

    Attributes
    ----------
    column, test : int
    boundary : int
        The last code at or below the boundary that occurs in the node.
    missing_left : bool
        Where missing values go: as was learned, or to the heavier child.
    subset : uint64 (n_codes // 64 + 1,) or None
        A bit for each code that goes left, missing first.
    """

    column: int
    test: int
    boundary: int
    missing_left: bool
    subset: np.ndarray | None


@dataclass(frozen=True)
class Root:
    """Where a tree begins.

    Attributes
    ----------
    node : int
    number : int
        Of the tree.
    key : int or None
        The only one in a bag that would be empty.
    class_multiplier : int64 (n_classes,) or None
        Of a bag whose classes are balanced.
    class_exponent : int
    fixed_point : float
        `Scale.fixed_point`, where the sums of rows depend on it.
    """

    node: int
    number: int
    key: int | None = None
    class_multiplier: np.ndarray | None = None
    class_exponent: int = 0
    fixed_point: float = 1.0

    def balanced(self, target: Target) -> Target:
        """A target with the weights of the classes of this bag, if it has any."""
        if self.class_multiplier is None:
            return target
        multiplier, exponent = self.class_multiplier, self.class_exponent
        return replace(target, class_multiplier=multiplier, class_exponent=exponent)


@dataclass(frozen=True)
class NodeSplit:
    """How the rows of a node go to two children.

    Attributes
    ----------
    node, left, right : int
    column : int
    tests : tuple of (int, FoundSplit)
        Training sets, and the split of each, all on this column.
    """

    node: int
    left: int
    right: int
    column: int
    tests: tuple[tuple[int, FoundSplit], ...]


@dataclass(frozen=True)
class SplitUpdate:
    """What changes a position index.

    Attributes
    ----------
    roots : tuple of Root
    splits : tuple of NodeSplit
    done : tuple of int
        Nodes whose rows are not needed any more, after the splits.
    """

    roots: tuple[Root, ...] = ()
    splits: tuple[NodeSplit, ...] = ()
    done: tuple[int, ...] = ()


@dataclass(frozen=True)
class HistogramRequest:
    """A node that is to be counted.

    Attributes
    ----------
    node : int
    members : int
        A bit for each training set that is asked for.
    columns : int32 (k,)
        Of the histogram; the sums come with it.
    n_numbers : int
        Of the histogram, of all sets.
    """

    node: int
    members: int
    columns: np.ndarray
    n_numbers: int


@dataclass(frozen=True)
class Counts(SmallArraysInside):
    """What blocks add up to, for some requests, one behind the other.

    Attributes
    ----------
    sums : int64 (members of all requests, 8 + n_classes)
        As `dtrees.core.stores.blocks._node_counts.count`.
    histogram : int64 (n,)
    """

    sums: np.ndarray
    histogram: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return self.sums.nbytes + self.histogram.nbytes


def add_up(counts: Iterable[Counts]) -> Counts:
    """The counts of several blocks, of which one at a time is looked at; they are not changed."""
    rest = iter(counts)
    total = next(rest)
    is_own = False
    for other in rest:
        if not is_own:  # one copy, whatever their number
            total = Counts(np.array(total.sums), np.array(total.histogram))
            is_own = True
        sums = total.sums
        lowest = np.minimum(sums[:, LOWEST], other.sums[:, LOWEST])
        highest = np.maximum(sums[:, HIGHEST], other.sums[:, HIGHEST])
        sums += other.sums
        sums[:, LOWEST], sums[:, HIGHEST] = lowest, highest
        histogram = total.histogram
        histogram += other.histogram
    return total


def merge_bags(
    of_blocks: Sequence[Sequence[tuple[Counts, list[int]]]],
) -> list[tuple[Counts, list[int]]]:
    """What `BlockOfRows.bags` says of several blocks, as one."""
    return [
        (add_up([counts for counts, _ in of_tree]), [key for _, keys in of_tree for key in keys])
        for of_tree in zip(*of_blocks, strict=True)
    ]


def codes_left(found: FoundSplit, n_codes: int, n_ordered: int) -> np.ndarray:
    """Which codes of a column go left; bool (n_codes,), missing first.

    Parameters
    ----------
    found : FoundSplit
    n_codes, n_ordered : int
        Codes with the missing one, and how many of them are ordered.
    """
    goes = np.zeros(n_codes, dtype=bool)
    if found.test == AT_MOST:
        goes[1 : found.boundary + 1] = True
    elif found.test == ABOVE:
        goes[found.boundary + 1 : n_ordered + 1] = True
    else:
        assert found.subset is not None
        bits = np.unpackbits(found.subset.view(np.uint8), bitorder="little")
        goes[:] = bits[:n_codes]
    goes[0] = found.missing_left
    return goes
