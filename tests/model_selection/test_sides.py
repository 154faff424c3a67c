"""Functions of sides of splits, where the table is here; tests/parallel has those of clusters."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold, ShuffleSplit

from dtrees import DecisionTreeClassifier
from dtrees.estimators.training_sets import TrainingTable
from dtrees.model_selection.fitted_splits import fit_splits
from dtrees.model_selection.folds import TEST, TRAIN, Splits
from dtrees.model_selection.prepare import SplitTable
from dtrees.model_selection.sides import of_sides
from dtrees.parallel import threaded

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["a", "b", "c"])[Y]


def cells_and_splits(splitter):
    splits = Splits(splitter.split(X), len(X)).in_short()
    grown = fit_splits(DecisionTreeClassifier(max_depth=2), SplitTable(TrainingTable(X, Y), splits))
    return grown.whole(), splits


@pytest.mark.parametrize("run", [None, threaded(2)], ids=["in turn", "threads"])
@pytest.mark.parametrize(
    "splitter", [KFold(3, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0)]
)
def test_functions_get_their_rows_in_the_order_of_the_sides(splitter, run):
    cells, splits = cells_and_splits(splitter)

    def look(name, own, number, rows, names, nothing):
        assert own is cells
        assert nothing is None
        return name, number, rows, names, own.values(0, number, rows)

    asked = [(2, TEST), (0, TRAIN), (1, TEST)]
    sides = [(number, side, partial(look, place)) for place, (number, side) in enumerate(asked)]
    found = list(of_sides(cells, splits, sides, [NAMES, None], run=run))
    for place, ((number, side), own) in enumerate(zip(asked, found, strict=True)):
        expected = splits[number][side]
        assert own[:2] == (place, number)
        np.testing.assert_array_equal(own[2], expected)
        np.testing.assert_array_equal(own[3], NAMES[expected])
        shares = cells.fitted.models[number].predict_proba(X[expected])
        np.testing.assert_array_equal(own[4], shares)


def test_a_side_is_looked_at_when_its_answer_is():
    cells, splits = cells_and_splits(KFold(3))

    def fail(own, number, rows):
        raise RuntimeError(f"split {number}")

    answers = iter(of_sides(cells, splits, [(number, TEST, fail) for number in (1, 2)]))
    with pytest.raises(RuntimeError, match="split 1"):
        next(answers)
