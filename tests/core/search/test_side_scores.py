"""Criteria that are functions of both sides: the compiled one, by its definition."""

import numpy as np
from scipy.stats import chi2_contingency

from dtrees import DecisionTreeClassifier


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
