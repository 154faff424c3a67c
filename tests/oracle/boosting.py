"""The slow, obvious boosted model: raw values, sums of Python's integers, gains as fractions.

Only the exponential function is the product's: it has tests of its own. Columns are lists of
numbers, None where one is missing, or of categories (strings).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dtrees.core.losses._derivatives import shares_of_two

SMOOTHING = 10.0
FEW, TOLD_APART = 11, 15
LARGEST_STEP = 8.0  # of log odds


@dataclass(frozen=True)
class Rules:
    """Under the names of the estimators."""

    max_iter: int = 3
    learning_rate: float = 0.1
    max_leaf_nodes: int = 31
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_child_weight: float = 1e-3
    min_split_gain: float = 0.0
    l2_regularization: float = 1.0
    l1_regularization: float = 0.0
    max_delta_step: float = 0.0
    path_smooth: float = 0.0
    category_penalty: float = 1.0


@dataclass
class Units:
    """What integers are multiplied by."""

    gradient: Fraction
    hessian: Fraction
    squares: list[int]  # of gradients, by the weight of the row
    row: Fraction  # the mean hessian of a row, in units
    penalty: float


def nearest(x: float) -> int:
    """Python rounds to nearest, to even where two are as near."""
    return round(x)


def bits(x: float) -> int:
    return math.frexp(x)[1]


def derivatives_of(loss, y, raw, weight, rules):
    """Gradient and hessian of each row, in fixed point, and their units."""
    n = len(y)
    if loss == "log_loss":
        p = [logistic_of(r) for r in raw]
        g = [pi - yi for pi, yi in zip(p, y, strict=True)]
        h = [pi * (1 - pi) for pi in p]
        most_g, most_h = 1.0, 0.25
    else:
        g = [ri - yi for ri, yi in zip(raw, y, strict=True)]
        h = [1.0] * n
        most_g, most_h = max(map(abs, g)), 1.0
    total = most_h * math.fsum(weight)
    of_gradients = 30 - bits(most_g * 7)
    of_hessians = min(31 - bits(most_h * 7), 64 - n.bit_length() - 1 - bits(total))
    g = [nearest(gi * 2.0**of_gradients) for gi in g]
    squares = [gi * gi * int(wi) for gi, wi in zip(g, weight, strict=True)]
    g = [gi * int(wi) for gi, wi in zip(g, weight, strict=True)]
    h = [nearest(hi * 2.0**of_hessians) * int(wi) for hi, wi in zip(h, weight, strict=True)]
    row = Fraction(sum(h)) / Fraction(math.fsum(weight))
    of_both = Fraction(2) ** -of_gradients, Fraction(2) ** -of_hessians
    return g, h, Units(*of_both, squares, row, rules.category_penalty)


def logistic_of(x: float) -> float:
    import numpy as np

    return float(shares_of_two(np.array([[x]]))[0, 1])


def price_of_category(groups, sums, units):
    """What one of many categories pays: the impurity of a row within its category."""
    rows = [r for group in groups for r in group]
    gradient, hessian = sums(rows)
    n = hessian / units.row
    total = sum(units.squares[r] for r in rows) / units.row - Fraction(gradient**2) / hessian
    within = total + Fraction(gradient**2) / hessian
    within -= sum(Fraction(g * g) / h for g, h in map(sums, groups))
    return units.penalty * float((max(within, 0) + max(total, 0) * len(groups) / n) / n)


def tests_of(column, rows, sums, units):
    """(left rows, what they pay) of each candidate, in the order in which they are tried."""
    smoothing = SMOOTHING / float(units.hessian)
    values = {r: column[r] for r in rows}
    missing = [r for r in rows if values[r] is None]
    found, ends = [], []
    there = [r for r in rows if values[r] is not None]
    if there and isinstance(values[there[0]], str):
        groups = {}
        for r in there:
            groups.setdefault(values[r], []).append(r)
        order = sorted(
            sorted(groups),
            key=lambda c: sums(groups[c])[0] / (float(sums(groups[c])[1]) + smoothing),
        )
    else:
        groups = {}
        for r in there:
            groups.setdefault(values[r], []).append(r)
        order = sorted(groups)
    for with_missing in (False, True) if missing else (False,):
        left = list(missing) if with_missing else []
        is_many = there and isinstance(values[there[0]], str) and len(order) > FEW
        apart = [*groups.values(), missing] if missing else list(groups.values())
        pays = price_of_category(apart, sums, units) if is_many else 0.0
        if is_many and units.penalty:
            kept = [v for v in order if sums(groups[v])[1] >= TOLD_APART * units.row]
            for end in (kept, kept[::-1]):
                for i in range((len(kept) + 1) // 2):
                    some = left + [r for value in end[: i + 1] for r in groups[value]]
                    ends.append((frozenset(some), pays * (i + 1)))
        for i, value in enumerate(order):
            left = left + groups[value]
            if i < len(order) - 1 or (missing and not with_missing):
                found.append((frozenset(left), pays * (len(order) - FEW)))
    return ends + found


def softened(gradient, units, rules):
    """A sum of gradients, in units, drawn to 0 by the l1 penalty."""
    l1 = Fraction(rules.l1_regularization) / units.gradient
    return max(gradient - l1, 0) + min(gradient + l1, 0)


def step_of(gradient, hessian, above, units, rules, most=None):
    """The step of sums, in the units of the loss; `above` is that of the node above, or None."""
    l2 = Fraction(rules.l2_regularization) / units.hessian
    step = -softened(gradient, units, rules) / (hessian + l2) * units.gradient / units.hessian
    for limit in (rules.max_delta_step, most):
        if limit:
            step = max(-Fraction(limit), min(step, Fraction(limit)))
    rows = hessian / units.row
    smooth = Fraction(rules.path_smooth)
    return step if above is None else (rows * step + smooth * above) / (rows + smooth)


def taken_off(gradient, hessian, step, units, rules):
    """Twice what a step takes off the loss, in units of squared gradients by hessians."""
    l2 = Fraction(rules.l2_regularization) / units.hessian
    step = step * units.hessian / units.gradient
    return -step * (2 * softened(gradient, units, rules) + (hessian + l2) * step)


def best_split(columns, rows, g, h, units, rules, above):
    """(gain, column, left rows) of the best split; None where there is none.

    above : the step of the node
    """
    least = max(1, int(rules.min_child_weight / float(units.hessian)))

    def sums(some):
        return sum(g[r] for r in some), sum(h[r] for r in some)

    G, H = sums(rows)
    best = None
    for j, column in enumerate(columns):
        for left, pays in tests_of(column, rows, sums, units):
            right = [r for r in rows if r not in left]
            too_few = len(rows) < rules.min_samples_split
            if too_few or min(len(left), len(right)) < rules.min_samples_leaf:
                continue
            (gl, hl), (gr, hr) = sums(left), sums(right)
            if min(hl, hr) < least:
                continue
            score = sum(
                taken_off(gs, hs, step_of(gs, hs, above, units, rules), units, rules)
                for gs, hs in ((gl, hl), (gr, hr))
            )
            if best is None or score - Fraction(pays) > best[0]:
                best = (score - Fraction(pays), j, left)
    if best is None:
        return None
    gain = best[0] - taken_off(G, H, above, units, rules)
    least_gain = Fraction(rules.min_split_gain) * units.hessian / units.gradient**2
    return (gain, best[1], best[2]) if gain > max(abs(best[0]) / 2**45, least_gain) else None


def grow(columns, g, h, units, rules, weight, most):
    """Leaves of a tree, as lists of rows with steps, and columns of its splits in their order."""

    def leaf_of(number, rows, above, made_above):
        gradient, hessian = sum(g[r] for r in rows), sum(h[r] for r in rows)
        step = step_of(gradient, hessian, above, units, rules)
        split = best_split(columns, rows, g, h, units, rules, step)
        if 2 * abs(gradient) <= Fraction(sum(weight[r] for r in rows)):
            gradient = 0  # each row of weight one is rounded by up to half a unit
        made = step_of(gradient, hessian, made_above, units, rules, most)
        return number, rows, split, step, made

    leaves = [leaf_of(0, list(range(len(g))), None, None)]
    made, used = 1, []
    while len(leaves) < rules.max_leaf_nodes:
        open_ones = [leaf for leaf in leaves if leaf[2] is not None]
        if not open_ones:
            break
        leaf = max(open_ones, key=lambda leaf: (leaf[2][0], -leaf[0]))
        leaves.remove(leaf)
        used.append(leaf[2][1])
        for side in (
            [r for r in leaf[1] if r in leaf[2][2]],
            [r for r in leaf[1] if r not in leaf[2][2]],
        ):
            leaves.append(leaf_of(made, side, *leaf[3:]))
            made += 1
    return [(leaf[1], leaf[4]) for leaf in leaves], used


def boost(columns, y, loss, initial, rules, weight=None):
    """Raw predictions of the rows, and the columns of all splits, tree by tree."""
    weight = [1.0] * len(y) if weight is None else [float(w) for w in weight]
    raw = [initial] * len(y)
    used = []
    for _ in range(rules.max_iter):
        g, h, units = derivatives_of(loss, y, raw, weight, rules)
        most = LARGEST_STEP if loss == "log_loss" else None
        leaves, splits = grow(columns, g, h, units, rules, weight, most)
        used.append(splits)
        for leaf, step in leaves:
            for r in leaf:
                raw[r] += rules.learning_rate * float(step)
    return raw, used
