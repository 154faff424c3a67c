"""Criteria that are functions of both sides: the compiled one, by its definition."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from dtrees import DecisionTreeClassifier
from dtrees.coding.codebook import CodeBook
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from tests.laws.tables import grow_blocks


def test_chi_square_takes_the_boundary_of_the_greatest_statistic():
    rng = np.random.default_rng(0)
    x, y = rng.permutation(40), rng.integers(0, 3, 40)
    y[x > 25] = 1
    model = DecisionTreeClassifier(criterion="chi_square", max_depth=1).fit(x.reshape(-1, 1), y)
    found = []
    for code in range(39):
        sides = [np.bincount(y[side], minlength=3) for side in (x <= code, x > code)]
        found.append(chi2_contingency(np.array(sides), correction=False).statistic)
    tree = model.tree_.model
    assert tree.threshold[0] == np.argmax(found) + 0.5
    assert np.isclose(tree.gain[0], max(found))


def test_rows_in_several_places_are_refused():
    X, y = np.arange(40.0).reshape(-1, 1), np.arange(40) % 3
    book, coded = CodeBook.fit_encode(X)
    target, halves = Target.classification(y), np.array_split(np.arange(40), 2)
    parts = [(coded.take(rows), target.take(rows)) for rows in halves]
    with pytest.raises(ValueError, match="rows in one place"):
        grow_blocks(parts, GrowthRules(criterion="chi_square"), book.thresholds)
