"""What trees have in common, by recursion on nested dicts: slow, and seen to be right.

A leaf is ``{"rows": n, "test": None}``, another node ``{"rows": n, "test": test, "sides": [left,
right]}`` with ``test = (column, kind, what passes, side of missing values or None)``. What passes
is a threshold, or the labels of those categories that tests above let through.
"""

from __future__ import annotations

from collections import Counter
from typing import Any


def nested(estimator: Any) -> dict[str, Any]:
    """A fitted tree as a dict."""
    view = estimator.tree_
    tree, book = view.model, view.codebook

    def labels_of(column):
        first = int(book.n_ordered[column]) + 1
        return dict(enumerate(book.categories.get(column, ()), start=first))

    def passes(node, code):
        word = int(tree.subset_words[tree.subset_offset[node] + code // 64])
        return bool(word >> (code % 64) & 1)

    def build(node, labels, missing):
        found = {"rows": int(tree.n_node_samples[node]), "test": None}
        if tree.test[node] == 0:
            return found
        column, kind = int(tree.feature[node]), int(tree.test[node])
        here = labels.get(column, labels_of(column))
        may_miss = missing.get(column, bool(view.saw_missing[column]))
        goes_left = bool(tree.missing_go_to_left[node])
        if kind == 3:
            left = {code: label for code, label in here.items() if passes(node, code)}
            what = frozenset(left.values())
        else:
            left = {}
            what = float(tree.threshold[node])
        right = {code: label for code, label in here.items() if code not in left}
        found["test"] = (column, kind, what, goes_left if may_miss else None)
        found["sides"] = [
            build(int(child), labels | {column: part}, missing | {column: may_miss and comes})
            for child, part, comes in (
                (tree.children_left[node], left, goes_left),
                (tree.children_right[node], right, not goes_left),
            )
        ]
        return found

    return build(0, {}, {})


def key(node: dict[str, Any]) -> Any:
    """What models that stay together have in common."""
    return None if node["test"] is None else node["test"][:2]


def agreement(
    models: list[dict[str, Any]], reference: dict[str, Any]
) -> tuple[Counter[int], dict[int, list[tuple[int, int, int]]]]:
    """Shared nodes by depth; and by depth, for every test of the reference, its rows and how many
    models still ask about the same column, and the very same.
    """
    shared: Counter[int] = Counter()
    tests: dict[int, list[tuple[int, int, int]]] = {}

    def visit(depth, here, ref, same):
        groups = {}
        for model, node in here.items():
            groups.setdefault(key(node), {})[model] = node
        shared[depth] += len(groups)
        if ref is not None and ref["test"] is not None:
            mine = groups.setdefault(key(ref), {})
            same = {m for m in same if m in mine and mine[m]["test"] == ref["test"]}
            tests.setdefault(depth, []).append((ref["rows"], len(mine), len(same)))
        for name, members in groups.items():
            if name is None:
                continue
            follows = ref is not None and key(ref) == name
            for side in (0, 1):
                below = {m: node["sides"][side] for m, node in members.items()}
                visit(depth + 1, below, ref["sides"][side] if follows else None, same)

    visit(0, dict(enumerate(models)), reference, set(range(len(models))))
    return shared, tests


def shared_nodes(models: list[dict[str, Any]]) -> Counter[tuple[int, tuple[int, ...], Any]]:
    """How often models, by number, share a node with a column and kind (None: a leaf), by depth."""
    found: Counter[tuple[int, tuple[int, ...], Any]] = Counter()

    def visit(depth, here):
        groups = {}
        for model, node in here.items():
            groups.setdefault(key(node), {})[model] = node
        for name, members in groups.items():
            found[depth, tuple(members), name] += 1
            if name is not None:
                for side in (0, 1):
                    visit(depth + 1, {m: node["sides"][side] for m, node in members.items()})

    visit(0, dict(enumerate(models)))
    return found
