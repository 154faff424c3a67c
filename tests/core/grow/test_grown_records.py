"""Trees that stand behind each other are those that are put in preorder one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.grow._grown_records import GrownRecords
from dtrees.core.grow.assembly import join
from tests.core.grow.boosted_cases import derivatives, free_rules, grown, random_columns, table_of


@given(st.integers(0, 100), st.lists(st.integers(2, 90), min_size=1, max_size=4))
def test_trees_stand_behind_each_other_in_preorder(seed, sizes):
    rng = np.random.default_rng(seed)
    records, pieces = GrownRecords(), []
    for n in sizes:
        table = table_of(random_columns(rng, n, 3))
        grower, piece = grown(table, *derivatives(rng, n), free_rules(max_leaf_nodes=n // 2 + 1))
        pieces.append(join([piece]))
        records.append(grower, float(n))
    found = records.take()
    assert found.n_nodes.tolist() == [len(piece.nodes) for piece in pieces]
    assert found.units.tolist() == [float(n) for n in sizes]
    np.testing.assert_array_equal(
        found.statistics, np.concatenate([piece.statistics for piece in pieces])
    )
    assert found.words.tolist() == np.concatenate([piece.words for piece in pieces]).tolist()
    first_word = np.cumsum([0] + [len(piece.words) for piece in pieces])
    ends = np.cumsum(found.n_nodes)
    for piece, end, word in zip(pieces, ends.tolist(), first_word.tolist(), strict=False):
        nodes = piece.nodes.copy()
        nodes["subset"] += np.where(nodes["subset"] >= 0, word, 0)
        for name in nodes.dtype.names:
            own = found.nodes[name][end - len(nodes) : end]
            np.testing.assert_array_equal(own, nodes[name])


def test_what_is_taken_is_gone():
    rng = np.random.default_rng(0)
    records = GrownRecords()
    for _ in range(2):
        assert len(records.take().nodes) == records.n_trees == 0
        gradient, hessian = derivatives(rng, 200)
        grower, piece = grown(rng.normal(size=(200, 2)), gradient, hessian, free_rules())
        records.append(grower)
        first, again = records.n_trees, records.take()
        assert (first, len(again.nodes)) == (1, len(piece.nodes))
