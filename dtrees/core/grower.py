"""Growing: the driver, which knows no row, no thread and no machine.

    table --codebook--> codes ----+
    y, weights -------> target ---+--> source (shards)         resampling (cells, mix)
                                            |                        |
       +--> open nodes whose rows are in one place: finish, a whole subtree each
       |
    frontier --next batch--> source.histogram --(sum over shards)--> mix --> splitter
       ^                                                                        |
       +------------ children <---------- source.advance <-------- splits ------+

A tree grows in *rounds* only while its nodes' rows are spread over several places. A round takes
the open nodes of one depth (as many as the byte budget holds histograms for), asks for their
histograms, which are sums of integers over the shards, lets the splitter choose, and routes the
rows. As soon as the rows of a node are in one place, or few enough to be brought there, its whole
subtree is finished by one call ([SK] 3 has the rounds; the early end of them is ours). With all
rows in one process that is at the root, and there is no round at all.

Cross-validation does not change what a node is: rows are counted by cell and the statistics of a
training set are a mix of cells (`dtrees.core.resampling`). With all rows in one place, the trees of
all sets are finished by one call, too (`dtrees.core.shared`); in rounds, sets are not grown yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dtrees.core._shard import child_path
from dtrees.core.assembly import Piece, Thresholds, join, trees_of
from dtrees.core.frontier import FoundSplit, Frontier, Sums
from dtrees.core.model import IN_SUBSET, Forest
from dtrees.core.resampling import Resampling
from dtrees.core.rules import GrowthRules
from dtrees.core.source import ROOT_PATH, Source

HISTOGRAM_BUDGET = 256 * 2**20


def grow(
    source: Source,
    rules: GrowthRules,
    resampling: Resampling,
    thresholds: Thresholds,
    *,
    histogram_budget: int = HISTOGRAM_BUDGET,
    rules_of_sets: Sequence[GrowthRules] | None = None,
) -> Forest:
    """Grow one tree per training set.

    Parameters
    ----------
    source : Source
    rules : GrowthRules
    resampling : Resampling
        Other than the plain one, `source` holds all rows in one place.
    thresholds : callable
        `CodeBook.thresholds`.
    histogram_budget : int, default=256 MiB
        Bytes of histograms in a round; at least one node is taken.
    rules_of_sets : sequence of GrowthRules or None, default=None
        Several sets: the rules of each, which differ in limits of rows and weight only
        (`dtrees.core.shares`). None: `rules` for all of them.

    Returns
    -------
    Forest
    """
    n_codes, n_ordered = source.coded.n_codes, source.coded.n_ordered

    def forest(pieces: Sequence[Piece]) -> Forest:
        trees = trees_of(pieces, source.target, n_codes, thresholds, rules.criterion)
        return Forest(tuple(trees))

    if not resampling.is_plain:
        by_set = [rules] * resampling.n_sets if rules_of_sets is None else rules_of_sets
        return forest(source.sets(resampling, by_set))
    frontier = Frontier()
    splitter = source.splitter
    bytes_per_node = 8 * int(splitter.histogram_sizes().sum())

    def record(sums: Sums, depth: int, path: int) -> int:
        impurity, is_leaf = splitter.describe(sums, depth)
        return frontier.add(sums, impurity, is_leaf, depth, path)

    record(source.root(), 0, ROOT_PATH)
    while frontier.open:
        spread = []
        for node in frontier.next_batch(bytes_per_node, histogram_budget):
            if source.gathers(node):
                frontier.graft(node, source.finish(node))
            else:
                spread.append(node)
        for node, statistics in zip(spread, source.histogram(spread), strict=True):
            found = splitter.search(statistics, node.sums, node.path)
            if found is None:
                continue
            sums = source.advance(node, found)
            missing_left, words = learned(found, sums, int(n_codes[found.column]), rules, n_ordered)
            frontier.split(node, found, missing_left, words)
            left, right = (
                record(child, node.depth + 1, child_path(node.path, is_left))
                for child, is_left in zip(sums, (True, False), strict=True)
            )
            frontier.link(node, left, right)
    return forest([join(frontier.pieces())])


def learned(
    found: FoundSplit,
    sums: tuple[Sums, Sums],
    n_codes: int,
    rules: GrowthRules,
    n_ordered: np.ndarray,
) -> tuple[bool, np.ndarray | None]:
    """Where missing values go, and the subset with a bit for every code of the column.

    What the node has not seen goes to the heavier child: missing values, and categories when the
    rules say so; otherwise categories go with the missing values.
    """
    heavier_left = sums[0].weight > sums[1].weight
    missing_left = found.missing_left if found.saw_missing else heavier_left
    if found.test != IN_SUBSET:
        return missing_left, None
    assert found.subset is not None
    absent = heavier_left if rules.unseen == "majority" else missing_left
    if n_ordered[found.column] > 0:
        absent = False
    bits = np.zeros(64 * (n_codes // 64 + 1), dtype=np.uint8)
    bits[: n_codes + 1] = absent
    for code, is_left in found.subset.items():
        bits[code] = is_left
    bits[0] = missing_left
    return missing_left, np.packbits(bits, bitorder="little").view(np.uint64)
