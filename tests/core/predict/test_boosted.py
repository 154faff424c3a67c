"""Raw predictions are sums of steps, class by class, in the order of the trees."""

import numpy as np
import pytest
import scipy.sparse

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.core.model.tree import Forest
from dtrees.core.predict import packed_forest
from dtrees.core.predict.boosted import raw_predictions, staged_raw_predictions
from dtrees.core.predict.raw import FOREST_ROWS, forest_apply
from dtrees.parallel.local import LocalRunner

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 4))


def model_of(n_classes, table=X, **limits):
    if n_classes == 0:
        return GradientBoostingRegressor(max_iter=4).fit(table, X[:, 0] * X[:, 1])
    y = np.floor(X.sum(axis=1) + 5 * X[:, 0] * X[:, 3]).astype(int) % n_classes
    return GradientBoostingClassifier(max_iter=4, **limits).fit(table, y)


def sums_of_steps(model, X):
    """Raw predictions, tree by tree."""
    initial = model._initial
    leaves = forest_apply(model.forest_, model.codebook_, X)
    found = np.repeat(initial[None, :], len(leaves), axis=0)
    for number, tree in enumerate(model.forest_.trees):
        found[:, number % len(initial)] += tree.value[leaves[:, number], 0]
    return found


@pytest.mark.parametrize("n_classes", [0, 2, 3, 5])
def test_sums_of_the_steps_of_leaves(n_classes):
    model = model_of(n_classes)
    book, forest, initial = model.codebook_, model.forest_, model._initial
    found = raw_predictions(forest, initial, book, X)
    wanted = sums_of_steps(model, X)
    assert found.tobytes() == wanted.tobytes()
    few = np.vstack([raw_predictions(forest, initial, book, X[i : i + 1]) for i in range(9)])
    assert few.tobytes() == wanted[:9].tobytes()
    *_, last = stages = list(staged_raw_predictions(forest, initial, book, book.check(X)))
    assert len(stages) == 4
    assert last.tobytes() == wanted.tobytes()


def sparse_table():
    table = X.copy()
    table[RNG.random(table.shape) < 0.6] = 0
    return scipy.sparse.csr_array(table)


def mixed_table():
    table = pandas.DataFrame(X, columns=list("abcd"))
    table["e"] = pandas.Categorical(RNG.choice(["red", "blue", None, "green"], len(X)))
    table["f"] = pandas.Categorical(RNG.integers(0, 99, len(X)).astype(str))
    return table


class TestEveryTable:
    """Trees of all classes are walked together, and their steps go to the outputs in turn."""

    @pytest.mark.parametrize("table", [X, sparse_table(), mixed_table()], ids=type)
    @pytest.mark.parametrize(("most_slots", "n_parts"), [(99, {1}), (4, range(2, 20)), (2, {0})])
    def test_and_forests_in_parts(self, table, most_slots, n_parts, monkeypatch):
        monkeypatch.setattr(packed_forest, "MOST_SLOTS", most_slots)
        model = model_of(5, table, max_leaf_nodes=4)
        parts = packed_forest.pack_forest(model.forest_, model.codebook_) or ()
        assert len(parts) in n_parts
        wanted = sums_of_steps(model, table)
        arguments = model.forest_, model._initial, model.codebook_
        assert raw_predictions(*arguments, table).tobytes() == wanted.tobytes()
        for n in (1, 3, 20):
            assert raw_predictions(*arguments, table[:n]).tobytes() == wanted[:n].tobytes()

    def test_many_rows_on_threads(self):
        model, rows = model_of(3), np.vstack([X] * 12)
        assert len(rows) > 2 * FOREST_ROWS
        found = raw_predictions(
            model.forest_, model._initial, model.codebook_, rows, LocalRunner(2)
        )
        assert found.tobytes() == np.vstack([sums_of_steps(model, X)] * 12).tobytes()


def test_rows_are_coded_once(monkeypatch):
    calls = []
    code_numbers = packed_forest.code_numbers
    monkeypatch.setattr(
        packed_forest, "code_numbers", lambda *given: calls.append(1) or code_numbers(*given)
    )
    model = model_of(5)
    raw_predictions(model.forest_, model._initial, model.codebook_, X)
    assert len(calls) == 1


def test_totals_that_do_not_fit():
    model = model_of(0)
    (part,) = packed_forest.pack_forest(model.forest_, model.codebook_)
    codes = np.zeros((9, part.nodes.n_slots), dtype=np.uint16)
    for total, first in ((np.zeros((8, 1)), 0), (np.zeros((9, 0)), 0), (np.zeros((9, 2)), -1)):
        with pytest.raises(ValueError, match="do not fit"):
            packed_forest.walk_values(part.nodes, part.values, codes, total, first)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_trees_all_rows_have_the_beginning(n_classes):
    model = model_of(n_classes)
    found = raw_predictions(Forest(()), model._initial, model.codebook_, X)
    np.testing.assert_array_equal(found, np.repeat(model._initial[None, :], len(X), axis=0))
