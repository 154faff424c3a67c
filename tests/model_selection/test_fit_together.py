"""Which calls of a cross-validation grow their models together."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeClassifier

from dtrees import DecisionTreeClassifier
from dtrees.model_selection import GridSearchCV
from dtrees.model_selection.cells import Cells
from dtrees.model_selection.fit_together import fit_together
from dtrees.model_selection.nested import FittedSearches
from dtrees.model_selection.prepare import Arguments

X, Y = load_iris(return_X_y=True)
TREE = DecisionTreeClassifier(random_state=0)
OPTIONS = {"verbose": 0, "n_jobs": None, "pre_dispatch": "2*n_jobs"}


def test_trees_and_searches():
    prepared, fitted = fit_together(Arguments("f", TREE, 3), X, Y, OPTIONS)
    assert isinstance(fitted.models, Cells)
    assert len(prepared.arguments.cv) == len(fitted.models.fitted.models) == 3
    search = GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=2)
    _, fitted = fit_together(Arguments("f", search, 3), X, Y, OPTIONS)
    assert isinstance(fitted.models, FittedSearches)
    assert fitted.models.model(0, 0).best_params_["max_depth"] == 2


@pytest.mark.parametrize(
    ("estimator", "params", "options", "reason"),
    [
        (RidgeClassifier(), None, {}, "RidgeClassifier is not an estimator of dtrees"),
        (TREE, {"other": 1}, {}, "fit is given other"),
        (TREE, None, {"method": "decision_function"}, "method='decision_function'"),
        (TREE.set_params(), None, {"scoring": "nope"}, "nope"),
        (DecisionTreeClassifier(max_depth=0), None, {}, "max_depth"),
    ],
)
def test_reasons(estimator, params, options, reason):
    prepared, fitted = fit_together(
        Arguments("f", estimator, 3, params=params), X, Y, OPTIONS | options
    )
    assert fitted is None
    with pytest.raises(ValueError, match=reason):
        raise ValueError(prepared.reason)


def test_weights_of_another_length():
    arguments = Arguments("f", TREE, 3, params={"sample_weight": np.ones(3)})
    with pytest.raises(ValueError, match=r"sample_weight in params has shape \(3,\)"):
        fit_together(arguments, X, Y, OPTIONS)
