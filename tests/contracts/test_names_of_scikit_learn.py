"""Parameters and attributes that scikit-learn's models have, and that users rely on."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from dtrees import (
    AdaBoostRegressor,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
)

X, Y = load_diabetes(return_X_y=True)
REGRESSORS = (
    *(AdaBoostRegressor, BaggingRegressor, DecisionTreeRegressor),
    *(ExtraTreesRegressor, RandomForestRegressor),
)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_friedman_mse_is_the_squared_error(kind):
    with pytest.warns(FutureWarning, match="friedman_mse") as told:
        model = kind(criterion="friedman_mse", max_depth=3, random_state=0)
    assert told[0].filename == __file__
    assert model.get_params()["criterion"] == "squared_error"
    same = kind(max_depth=3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), same.predict(X))


def test_friedman_mse_is_no_criterion_of_classes():
    tree = DecisionTreeClassifier(criterion="friedman_mse")
    with pytest.raises(ValueError, match="criterion"):
        tree.fit(X, Y > 100)
