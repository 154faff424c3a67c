"""The label split of [SF] 3, algorithm 6: a prototype in NumPy beside the ordinary split.

A node of a regression first parts its *targets* in two, where the squared error is least, and then
looks for the test that tells the two parts apart, as if they were classes:

    targets, sorted   3 4 4 5 | 21 22 30       labels  0 0 0 0 1 1 1
    test              of most information about these labels
    ordinary split    of least squared error of the targets themselves

Both grow in the same way otherwise: the best of all columns and thresholds, until a node has fewer
than `LEAST` rows. Trees are then cut to a depth and a least number of rows of a node that is split,
chosen on other rows ([SF] algorithm 7). O(rows log rows x columns) for each node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

LEAST = 10  # rows of a node that is split
NONE = -1


@dataclass
class Grown:
    """A tree as lists, a number for each node; children of leaves are -1."""

    column: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    n_rows: list[int] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)

    def add(self, y: np.ndarray) -> int:
        """A leaf of these targets; its number."""
        for values in (self.left, self.right, self.column):
            values.append(NONE)
        self.threshold.append(np.nan)
        self.n_rows.append(len(y))
        self.mean.append(float(y.mean()))
        return len(self.mean) - 1

    def paths(self, X: np.ndarray) -> np.ndarray:
        """The node of each row at each depth, the leaf below it; (n_rows, depth + 1)."""
        column, threshold = np.array(self.column), np.array(self.threshold)
        left, right = np.array(self.left), np.array(self.right)
        at = np.zeros(len(X), dtype=np.int64)
        found = [at]
        while (left[at] != NONE).any():
            goes_left = X[np.arange(len(X)), column[at]] <= threshold[at]
            below = np.where(goes_left, left[at], right[at])
            at = np.where(left[at] == NONE, at, below)
            found.append(at)
        return np.stack(found, axis=1)


def labels_of(y: np.ndarray) -> np.ndarray:
    """0 and 1: the parts of the targets of least squared error; all 0 if they are equal."""
    values = np.sort(y)
    n = np.arange(1, len(y))
    sums = np.cumsum(values)[:-1]
    gain = sums**2 / n + (values.sum() - sums) ** 2 / (len(y) - n)
    gain[values[1:] == values[:-1]] = -np.inf
    best = int(np.argmax(gain))
    return (y > values[best]).astype(float) if np.isfinite(gain[best]) else np.zeros(len(y))


def entropy_sum(ones: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Rows times the entropy of two classes."""
    zeros = n - ones
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nan_to_num(ones * np.log(ones / n)) - np.nan_to_num(zeros * np.log(zeros / n))


def best_test(X: np.ndarray, y: np.ndarray, by_label: bool) -> tuple[int, float] | None:
    """Column and threshold; None where no test parts the rows, or nothing is gained."""
    target = labels_of(y) if by_label else y - y.mean()
    order = np.argsort(X, axis=0, kind="stable")
    values = np.take_along_axis(X, order, axis=0)
    sums = np.cumsum(target[order], axis=0)[:-1]
    n = np.arange(1, len(y), dtype=float)[:, None]
    total, m = float(target.sum()), float(len(y))
    if by_label:
        score = -entropy_sum(sums, n) - entropy_sum(total - sums, m - n)
        nothing = -float(entropy_sum(np.array(total), np.array(m)))
    else:
        score = sums**2 / n + (total - sums) ** 2 / (m - n)
        nothing = total**2 / m
    score[values[1:] == values[:-1]] = -np.inf
    place, column = np.unravel_index(int(np.argmax(score)), score.shape)
    if not score[place, column] > nothing + 1e-12 * m:
        return None
    below, above = values[place, column], values[place + 1, column]
    middle = below + (above - below) / 2
    return int(column), float(below if middle >= above else middle)


def grow(X: np.ndarray, y: np.ndarray, *, by_label: bool) -> Grown:
    """Grow a tree until nodes have fewer than `LEAST` rows."""
    tree = Grown()
    tree.add(y)
    todo = [(0, np.arange(len(y)))]
    while todo:
        node, rows = todo.pop()
        mine = y[rows]
        if len(rows) < LEAST or mine.min() == mine.max():
            continue
        test = best_test(X[rows], mine, by_label)
        if test is None:
            continue
        tree.column[node], tree.threshold[node] = test
        goes_left = X[rows, test[0]] <= test[1]
        for children, side in ((tree.left, rows[goes_left]), (tree.right, rows[~goes_left])):
            children[node] = tree.add(y[side])
            todo.append((children[node], side))
    return tree


def ends(tree: Grown, paths: np.ndarray, depth: int, least: int) -> np.ndarray:
    """Where rows end: at a depth, or before nodes of fewer than `least` rows are split."""
    sizes = np.array(tree.n_rows)[paths[:, :depth]]
    stops = (sizes >= least).sum(axis=1)  # sizes fall along a path
    found: np.ndarray = paths[np.arange(len(paths)), stops]
    return found


def tuned(tree: Grown, X: np.ndarray, y: np.ndarray, n_train: int) -> tuple[int, int]:
    """Depth, then least rows of a node that is split, of least squared error on these rows."""
    paths, mean = tree.paths(X), np.array(tree.mean)
    errors = ((mean[paths] - y[:, None]) ** 2).mean(axis=0)
    depth = int(np.argmin(errors))
    sizes = sorted({max(2, round(n_train * share)) for share in np.linspace(0, 0.04, 201)})
    by_size = [((mean[ends(tree, paths, depth, s)] - y) ** 2).mean() for s in sizes]
    return depth, sizes[int(np.argmin(by_size))]


def n_kept(tree: Grown, depth: int, least: int) -> int:
    """Nodes of the tree that is cut."""
    count, todo = 0, [(0, 0)]
    while todo:
        node, level = todo.pop()
        count += 1
        if tree.left[node] != NONE and level < depth and tree.n_rows[node] >= least:
            todo += [(tree.left[node], level + 1), (tree.right[node], level + 1)]
    return count
