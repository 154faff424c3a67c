"""Whether a grown tree is the greedy tree: walk it, and try every candidate at every node.

Ties make two correct trees possible where two different tuples of integers give the same gain: in
float64 either may come out ahead by a rounding. So the walk follows the split that the tree chose,
after it has checked that

    no candidate gains more, in exact arithmetic, than the chosen one (and the rounding allows),
    what a column of many categories pays taken off;
    of candidates whose sides hold the same integers, which tie in any arithmetic, the chosen one is
    the first: in the order of the columns (`tests.oracle.ties`), then in that of
    `tests.oracle.candidates`;
    every stored number is right, and every leaf is one for a reason.
"""

from __future__ import annotations

import math

import numpy as np

from tests.oracle.candidates import MAX_SUBSETS, Candidate, candidates, categories_of, numbers_of
from tests.oracle.constraints import Above, below, is_allowed
from tests.oracle.outputs import statistics_of
from tests.oracle.ties import ROOT, child, order_of_columns
from tests.oracle.tree import EPSILON, gains_enough, missing_goes_left, must_be_leaf, threshold_of

TESTS = {1: "<=", 2: ">", 3: "in"}


def assert_tree_is_greedy(tree, table, target, rules, thresholds: bool = True) -> None:
    """Check a `dtrees.core.model.tree.Tree` against a table of raw values; see above.

    ``thresholds=False``: the tree knows codes only, so its thresholds are not looked at.
    """
    Walk(tree, table, target, rules, thresholds).run()


class Walk:
    def __init__(self, tree, table, target, rules, thresholds) -> None:
        self.tree, self.table, self.rules, self.thresholds = tree, table, rules, thresholds
        self.statistics = statistics_of(target, rules.criterion)
        self.numbers = [numbers_of(column) for column in table]
        self.categories = [categories_of(column) for column in table]

    def run(self) -> None:
        rows = self.statistics.rows()
        whole = self.statistics.sums(rows)
        self.root_weight = whole.weight * self.statistics.weight_unit
        self.largest = self.statistics.largest(rows)
        self.next_node = 0
        self.visit(rows, 0, ROOT, Above())
        assert self.next_node == self.tree.node_count

    def visit(self, rows: list[int], depth: int, path: int, above: Above) -> None:
        node, self.next_node = self.next_node, self.next_node + 1  # preorder
        self.check_numbers(node, rows)
        split = self.check_split(node, rows, depth, path, above)
        if split is None:
            self.check_leaf(node)
            return
        left = split.left
        whole = self.statistics.sums(rows)
        of_left, of_right = below(self.statistics, whole, split, above, self.rules)
        assert self.tree.children_left[node] == self.next_node
        self.visit([i for i in rows if i in left], depth + 1, child(path, True), of_left)
        assert self.tree.children_right[node] == self.next_node
        self.visit([i for i in rows if i not in left], depth + 1, child(path, False), of_right)

    def check_numbers(self, node: int, rows: list[int]) -> None:
        tree, statistics = self.tree, self.statistics
        whole = statistics.sums(rows)
        parts = whole.parts
        if not statistics.is_classification:
            parts = (whole.weight, *statistics.kept(whole))
        assert tree.n_node_samples[node] == whole.n
        assert tuple(tree.statistics[node].tolist()) == parts
        weight = float(whole.weight * statistics.weight_unit)
        close(tree.weighted_n_node_samples[node], weight, "weight", node)
        # A mean is a sum of two floats; an impurity is a difference of two squares, whose terms
        # are rounded to the fixed point of all rows.
        largest = statistics.largest(rows)
        error = 1e-15 * (largest + abs(statistics.offset))
        close(tree.value[node], statistics.value(whole), "value", node, error)
        logarithmic = self.rules.criterion in ("entropy", "poisson")
        error = 1e-11 if logarithmic else 1e-14 * largest * self.largest
        if self.rules.criterion == "absolute_error":
            error = 1e-13 * self.largest
        close(tree.impurity[node], statistics.impurity(rows), "impurity", node, error)

    def check_split(
        self, node: int, rows: list[int], depth: int, path: int, above: Above
    ) -> Candidate | None:
        """The split, or None for a leaf, after all that can be said about it."""
        tree, statistics, rules = self.tree, self.statistics, self.rules
        is_leaf = tree.test[node] == 0
        if must_be_leaf(rows, depth, statistics, rules):
            assert is_leaf, f"node {node} is split against the rules"
            return None
        whole = statistics.sums(rows)
        offered = [
            c
            for c in candidates(self.table, rows, statistics, rules)
            if is_allowed(statistics, whole, c, above, rules)
        ]
        if not offered:
            assert is_leaf, f"node {node} is split, but no candidate is permitted"
            return None
        split = None if is_leaf else self.find(node, rows, offered)
        is_known = split in offered
        if split is not None and not is_known:  # the best subset that the kernel knows
            offered.append(split)
        gains = [statistics.gain(whole, c.sums) for c in offered]
        pays = self.penalties(rows, offered, gains)
        offered = [c for c in offered if pays[c.column] < math.inf]
        if split is not None:
            assert split in offered, f"node {node} is split for no more than chance"
        if not offered:
            return None
        gains = [statistics.gain(whole, c.sums) for c in offered]
        worth = [
            g - pays[c.column] if pays[c.column] else g for g, c in zip(gains, offered, strict=True)
        ]
        best = max(worth)
        error = max(statistics.gain_error(whole, c.sums) for c in offered)
        slack = error + 1e-12 * float(max(gains)) + 1e-11 * max(x for x in pays if x < math.inf)
        if is_leaf:
            first = gains[worth.index(best)]
            if any(pays):  # which of those that are worth the same it was is not known
                first = min(g for g, w in zip(gains, worth, strict=True) if best - w <= 2 * slack)
            reason = not gains_enough(first - 2 * slack, self.root_weight, rules)
            assert reason, f"node {node} is a leaf, but a split gains {float(first)}"
            return None
        gain = statistics.gain(whole, split.sums)
        assert gains_enough(gain + 2 * slack, self.root_weight, rules), f"node {node} gains little"
        first = offered[worth.index(best)]
        assert float(best - gain + pays[split.column]) <= 2 * slack, (
            f"node {node}: {split} gains {float(gain)} less {pays[split.column]}, "
            f"{first} is worth {float(best)}"
        )
        if is_known:
            order = order_of_columns(rules, path)
            ties = (
                c
                for c in offered
                if sides(whole, c) == sides(whole, split) and pays[c.column] == pays[split.column]
            )
            first = min(ties, key=lambda c: order(c.column))
            assert first == split, f"node {node}: {split} ties with {first}, which comes first"
        close(tree.gain[node], max(float(gain), 0.0), "gain", node, 2 * slack + EPSILON)
        self.check_test(node, rows, split, whole)
        return split

    def penalties(self, rows: list[int], offered, gains) -> list[float]:
        """What columns without numbers pay for their categories in the node."""
        of_each = self.rules.category_penalty
        found = []
        for column, values in enumerate(self.table):
            kinds = [values[i] for i in rows]
            of_column = [g for c, g in zip(offered, gains, strict=True) if c.column == column]
            if of_each == 0 or numbers_of(kinds) or not of_column:
                found.append(0.0)
            else:
                gain = float(max(of_column))
                found.append(self.statistics.penalty(rows, kinds, of_each, gain))
        return found

    def find(self, node: int, rows: list[int], offered) -> Candidate:
        """The candidate that the tree chose."""
        column = int(self.tree.feature[node])
        test = TESTS[int(self.tree.test[node])]
        left = frozenset(i for i in rows if self.goes_left(node, self.code(column, i)))
        for c in offered:
            if (c.column, c.test, c.left) == (column, test, left):
                return c
        assert test == "in", f"node {node}: {column} {test} {sorted(left)} is no candidate"
        assert self.is_heuristic(column, rows), f"node {node}: {column} in {left}: no candidate"
        values = self.table[column]
        missing_left = any(values[i] is None for i in left)
        subset = frozenset(values[i] for i in left) - {None}
        return Candidate(column, test, missing_left, None, subset, left, self.statistics.sums(left))

    def is_heuristic(self, column: int, rows: list[int]) -> bool:
        """Whether there are too many categories and classes to try all subsets."""
        present = categories_of([self.table[column][i] for i in rows])
        many = 2 ** (len(present) - 1) - 1 > MAX_SUBSETS
        return not self.statistics.has_order and many

    def code(self, column: int, row: int) -> int:
        value = self.table[column][row]
        if value is None:
            return 0
        if isinstance(value, float):
            return 1 + self.numbers[column].index(value)
        return 1 + len(self.numbers[column]) + self.categories[column].index(value)

    def goes_left(self, node: int, code: int) -> bool:
        tree, test, boundary = self.tree, self.tree.test[node], int(self.tree.code[node])
        if test == 3:
            word = int(tree.subset_words[tree.subset_offset[node] + code // 64])
            return bool(word >> (code % 64) & 1)
        if code == 0:
            return bool(tree.missing_go_to_left[node])
        n_ordered = len(self.numbers[tree.feature[node]])
        return code <= boundary if test == 1 else boundary < code <= n_ordered

    def check_test(self, node: int, rows: list[int], split, whole) -> None:
        tree, column = self.tree, split.column
        numbers, categories = self.numbers[column], self.categories[column]
        some_missing = any(self.table[column][i] is None for i in rows)
        missing_left = missing_goes_left(split, some_missing, whole)
        assert bool(tree.missing_go_to_left[node]) == missing_left, f"node {node}: missing"
        if split.subset is None:
            assert tree.subset_offset[node] == -1
            threshold = threshold_of(split.boundary)
            if self.thresholds:
                assert tree.threshold[node] == threshold, f"node {node}: threshold"
                last_left = sum(v <= threshold for v in numbers)
                assert tree.code[node] == last_left, f"node {node}: code"
            return
        assert math.isnan(tree.threshold[node])
        # What the node lacks goes with the missing values (or the heavier side); beside numbers,
        # where the test reads `= category`, it fails the test.
        present = {self.table[column][i] for i in rows}
        absent_left = (
            missing_left if self.handle_unknown == "missing" else heavier_left(split, whole)
        )
        for k, value in enumerate([*numbers, *categories]):
            absent = absent_left and not numbers
            expected = value in split.subset if value in present else absent
            assert self.goes_left(node, 1 + k) == expected, f"node {node}: {value}"
        assert self.goes_left(node, 0) == missing_left

    @property
    def handle_unknown(self) -> str:
        return getattr(self.rules, "handle_unknown", "missing")

    def check_leaf(self, node: int) -> None:
        tree = self.tree
        assert tree.feature[node] == -2
        assert tree.children_left[node] == tree.children_right[node] == -1
        assert tree.subset_offset[node] == -1
        assert math.isnan(tree.threshold[node])
        assert tree.code[node] == tree.missing_go_to_left[node] == tree.gain[node] == 0


def heavier_left(split, whole) -> bool:
    return 2 * split.sums.weight > whole.weight


def sides(whole, candidate) -> frozenset:
    """The integers on the two sides.

    Sides that are exchanged tie as well, as long as the products of the integers are exact.
    """
    left = candidate.sums
    right = tuple(a - b for a, b in zip(whole.parts, left.parts, strict=True))
    both = ((left.weight, left.parts), (whole.weight - left.weight, right))
    largest = max(whole.weight, *(abs(p) for p in (*whole.parts, *left.parts, *right)))
    return frozenset(both) if whole.weight * largest < 2**53 else frozenset(both[:1])


def close(actual, expected, what: str, node: int, absolute: float = 0.0) -> None:
    np.testing.assert_allclose(
        actual, expected, rtol=1e-12, atol=absolute, err_msg=f"node {node}: {what}"
    )
