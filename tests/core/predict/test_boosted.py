"""Raw predictions are sums of steps, class by class, in the order of the trees."""

import numpy as np
import pytest

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.core.model.tree import Forest
from dtrees.core.predict.boosted import forests_by_class, raw_predictions, staged_raw_predictions
from dtrees.core.predict.raw import forest_apply
from dtrees.parallel.local import LocalRunner

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 4))


def model_of(n_classes):
    if n_classes == 0:
        return GradientBoostingRegressor(max_iter=4).fit(X, X[:, 0] * X[:, 1])
    y = RNG.integers(0, n_classes, len(X))
    return GradientBoostingClassifier(max_iter=4).fit(X, y)


@pytest.mark.parametrize("n_classes", [0, 2, 3, 5])
def test_sums_of_the_steps_of_leaves(n_classes):
    model = model_of(n_classes)
    book, forest, initial = model.codebook_, model.forest_, model._initial
    found = raw_predictions(forest, initial, book, X)
    leaves = forest_apply(forest, book, X)
    wanted = np.repeat(initial[None, :], len(X), axis=0)
    for number, tree in enumerate(forest.trees):
        wanted[:, number % len(initial)] += tree.value[leaves[:, number], 0]
    assert found.tobytes() == wanted.tobytes()
    assert raw_predictions(forest, initial, book, X, LocalRunner(2)).tobytes() == wanted.tobytes()
    few = np.vstack([raw_predictions(forest, initial, book, X[i : i + 1]) for i in range(9)])
    assert few.tobytes() == wanted[:9].tobytes()
    *_, last = stages = list(staged_raw_predictions(forest, initial, book, book.check(X)))
    assert len(stages) == 4
    assert last.tobytes() == wanted.tobytes()


def test_the_forests_of_classes_are_made_once():
    model = model_of(3)
    forests = forests_by_class(model.forest_, 3)
    assert forests_by_class(model.forest_, 3) is forests
    assert [len(each) for each in forests] == [4, 4, 4]
    assert forests[1][2] is model.forest_[7]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_trees_all_rows_have_the_beginning(n_classes):
    model = model_of(n_classes)
    found = raw_predictions(Forest(()), model._initial, model.codebook_, X)
    np.testing.assert_array_equal(found, np.repeat(model._initial[None, :], len(X), axis=0))
