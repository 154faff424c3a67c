"""Growing: from codes to trees.

    table --codebook--> codes ----+
    y, weights -------> target ---+--> rows (one place, or blocks)    resampling (cells, mix)
                                            |                             |
         rows in one place:   a whole tree by one call, no rounds <-------+      here
         rows in blocks:      large nodes in rounds of merged histograms,        `rounds`
                              small ones gathered in one place, and finished by the same call

A node is finished where its rows are. With all rows in one process that is at the root, and there
is no round at all. Where rows are spread over chunks and workers, a node is spread only as long as
it is large ([SK] 3 has the rounds; the early end of them is ours).

Cross-validation does not change what a node is: rows are counted by cell, and the statistics of a
training set are a mix of cells (`dtrees.core.membership.resampling`). The trees of all sets are
grown together, in one place (`dtrees.core.grow.shared`) and in rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.assembly import Thresholds, frozen, on_threads, trees_of
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import Resampling
from dtrees.core.model.tree import Forest, Tree


def grow_tree(source: DatasetSource, thresholds: Thresholds) -> Tree:
    """Grow the tree of all rows; `thresholds` is `CodeBook.thresholds`."""
    piece = source.finish()
    if source.n_threads > 1:
        thresholds = on_threads(thresholds, source.run, source.n_threads)
    (tree,) = frozen([piece], source.target, source.coded.n_codes, thresholds, source.rules)
    return tree


def grow(
    source: DatasetSource,
    rules: GrowthRules,
    resampling: Resampling,
    thresholds: Thresholds,
    *,
    rules_of_sets: Sequence[GrowthRules] | None = None,
) -> Forest:
    """Grow one tree per training set.

    Parameters
    ----------
    source : DatasetSource
    rules : GrowthRules
    resampling : Resampling
    thresholds : callable
        `CodeBook.thresholds`.
    rules_of_sets : sequence of GrowthRules or None, default=None
        Several sets: the rules of each, which differ in limits of rows and weight only
        (`dtrees.core.membership.shares`). None: `rules` for all of them.

    Returns
    -------
    Forest
    """
    own = resampling.class_weights
    units = None
    if own is not None:
        units = [own.unit(source.target, number) for number in range(resampling.n_sets)]
    elif resampling.is_plain:
        assert rules_of_sets is None, "the rules of one set of all rows are `rules`"
        return Forest((grow_tree(source, thresholds),))
    by_set = [rules] * resampling.n_sets if rules_of_sets is None else rules_of_sets
    pieces = pieces_of_sets(source, by_set, resampling)
    n_codes = source.coded.n_codes
    thresholds = on_threads(thresholds, source.run, source.n_threads)
    return Forest(tuple(trees_of(pieces, source.target, n_codes, thresholds, rules, units)))
