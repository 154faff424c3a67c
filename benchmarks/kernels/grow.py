"""Codes to a tree."""

from functools import partial

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from dtrees.coding import CodeBook, Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.forest import ForestGrowth
from dtrees.parallel import threaded


def _grow(task: str, max_depth: int | None, n_threads: int, scale: Scale) -> Contest:
    n_rows = scale.rows(100_000)
    if task == "classification":
        X, y = data.classification(n_rows)
        target, criterion = Target.classification(y), "gini"
    else:
        X, y = data.regression(n_rows)
        target, criterion = Target.regression(y), "squared_error"
    book, coded = CodeBook.fit_encode(X)
    rules = GrowthRules(criterion=criterion, max_depth=max_depth)

    def one_tree():
        growth = ForestGrowth(coded, target, rules, None, book.thresholds)
        return growth.tree(0, threaded(n_threads), n_threads)

    return Contest(one_tree, remark=lambda tree, _: f"{tree.node_count:,} nodes")


CASES = [
    Case(
        f"grow-{task}-{words.replace(' ', '-')}-{n_threads}",
        "kernels",
        f"grow, {task}, 100,000 × 30, {words}, {n_threads} threads",
        partial(_grow, task, max_depth, n_threads),
    )
    for task in ("classification", "regression")
    for words, max_depth in (("to the end", None), ("depth 6", 6))
    for n_threads in (1, 2)
]
