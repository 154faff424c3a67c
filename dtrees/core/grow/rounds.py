"""Growth in rounds: trees whose rows are in several places.

A round takes open nodes, of all trees of a batch and of all training sets, asks every block of
rows for their histograms, searches the sums, and tells the blocks how the nodes are split
([SK] 3)::

    driver    open nodes --requests--> blocks --counts--> sum --search--> splits --update--> blocks
              (small, has no rows)     (hold the rows, know the splits of the updates only)

    round 0   roots of all trees
    round 1   their children ...
    the end   nodes of few rows: their rows are gathered in one place, and finished there

The last line is ours: a node is spread only as long as it is large, so what is sent grows with the
rows and not with 2^depth. How many bytes a round sends is bounded by a budget, beyond which nodes
of one depth take several rounds; a node whose draw of columns is to be extended takes one more.

Columns of many codes send a histogram of intervals of codes. The driver bounds what a split in each
interval can gain, and asks in a second request for the codes of those that may hold the best one:
of one column, rarely two, of a node. So the split is exact, however many codes there are::

    driver    open nodes --requests--> blocks --intervals--> bounds --requests--> blocks --codes-->

Where all columns are searched and both children of a node are spread, the smaller one is counted,
and the larger one is the parent less the smaller one: integers, exact.

Training sets go together as long as their tests look at the same column
(`dtrees.core.stores.blocks.block`), as in `_shared_growth`; those that differ go apart. A
set's tree is that of its own fit, bit for bit: its scores are read from the same integers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence

from dtrees.core.data.criteria import CRITERIA, OF_USER
from dtrees.core.grow.round_roots import roots_of, sets_of_scales
from dtrees.core.grow.round_spec import Blocks, RoundSpec
from dtrees.core.grow.tree_batch import TreeBatch
from dtrees.core.model.tree import Tree


def grow_in_rounds(
    spec: RoundSpec,
    numbers: Sequence[int],
    blocks: Blocks,
    heard: Callable[[str, int], object] = lambda what, n: None,
    work: Counter[str] | None = None,
) -> Generator[tuple[int, list[Tree]]]:
    """Grow the trees of a batch.

    Parameters
    ----------
    spec : RoundSpec
    numbers : sequence of int
        Of the trees.
    blocks : Blocks
    heard : callable
        Called with "round" and the least depth of its nodes before each of them; with "code round"
        before a second request, and with "code request" for each node and column of it.
    work : Counter or None, default=None
        Told in how many nodes, and of how many rows, several sets were searched together: of each
        node the rows of its largest set. What `blocks` finish is not part of it.

    Yields
    ------
    number : int
    trees : list of Tree
        By training set, as soon as all of them are complete, in any order.
    """
    rules = spec.common.rules
    if CRITERIA[rules.criterion].is_function:
        what = f"criterion={rules.criterion!r}"
        if rules.criterion == OF_USER:
            what = "a criterion of your own"
        raise ValueError(
            f"Trees of {what} need all rows in one place: replicate them, or choose another "
            "criterion."
        )
    blocks.begin(spec.common)
    begin = roots_of(spec, numbers, blocks)
    groups = sets_of_scales(spec, begin)
    if len(groups) > 1:
        of_set: dict[int, dict[int, Tree]] = {tree: {} for tree in numbers}
        for group in groups:
            for tree, own in grow_in_rounds(spec.some(group), numbers, blocks, heard, work):
                of_set[tree].update(zip(group, own, strict=True))
        yield from ((tree, [own[s] for s in range(spec.n_sets)]) for tree, own in of_set.items())
        return
    batch = TreeBatch(spec, numbers, begin)
    while batch.frontier:
        nodes = batch.next_nodes()
        heard("round", min(node.depth for node in nodes))
        batch.take(nodes, blocks.count(batch.take_update(), batch.requests(nodes)))
        while batch.waiting:
            waiting = batch.take_waiting()
            requests = batch.code_requests(waiting)
            heard("code round", min(each.node.depth for each in waiting))
            for each in waiting:
                for _ in each.wanted:
                    heard("code request", each.node.depth)
            batch.take_codes(waiting, blocks.count(None, requests))
    if work is not None:
        work.update(batch.shared)
    missing = Counter(node.tree for node in batch.gathered)
    empty: dict[int, list[int]] = defaultdict(list)  # sets without a row in the bag of a tree
    for tree, number in batch.empty:
        empty[tree].append(number)
    ready = [tree for tree in range(len(numbers)) if tree not in missing and tree not in empty]
    yield from ((numbers[tree], list(batch.trees(tree).values())) for tree in ready)
    for index, pieces in blocks.finish(batch.take_update(), batch.gathered):
        tree = batch.graft(index, pieces)
        missing[tree] -= 1
        if missing[tree] == 0 and tree not in empty:
            yield numbers[tree], list(batch.trees(tree).values())
    for tree, alone in empty.items():  # growths of their own, when this one is over
        trees = batch.trees(tree)
        for number in alone:
            ((_, (trees[number],)),) = grow_in_rounds(spec.some([number]), [numbers[tree]], blocks)
        yield numbers[tree], [trees[number] for number in range(spec.n_sets)]
