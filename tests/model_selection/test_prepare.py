"""Arguments of a validation are checked once, and the splits drawn once."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.model_selection import GridSearchCV, cross_validate, validation_surface
from dtrees.model_selection.prepare import Arguments, prepare, prepare_shared

X, Y = load_iris(return_X_y=True)
TREE = DecisionTreeClassifier()
GROUPS = np.arange(150)[:, None]


def test_models_that_grow_together():
    weight = np.arange(150.0)
    arguments = Arguments("f", TREE, KFold(3), params={"sample_weight": weight})
    prepared = prepare(arguments, X, Y, reason=None)
    assert prepared.reason is None
    assert len(prepared.arguments.cv) == 3
    work = prepared.shared()
    assert work.table.sample_weight is weight
    assert work.splits is prepared.arguments.cv


def test_an_iterator_is_asked_once():
    asked = []

    def splits():
        asked.append(1)
        yield np.arange(75), np.arange(75, 150)

    prepared = prepare(Arguments("f", TREE, splits()), X, Y, reason=None)
    sides = [list(prepared.arguments.cv) for _ in range(2)]
    assert len(asked) == 1
    np.testing.assert_array_equal(sides[0][0][1], sides[1][0][1])


def test_a_reason_leaves_the_splitter_alone():
    cv = KFold(3)
    for how in ({"reason": "because"}, {"reason": None, "refused": "because"}):
        prepared = prepare(Arguments("f", TREE, cv), X, Y, **how)
        assert prepared.reason == "because"
        assert prepared.arguments.cv is cv


def test_errors_are_reasons_where_scikit_learn_will_raise_them():
    arguments = Arguments("f", TREE, KFold(200))
    with pytest.raises(ValueError, match="n_splits=200"):
        prepare(arguments, X, Y, reason=None)
    prepared = prepare(arguments, X, Y, reason=None, check=lambda: None)
    assert "n_splits=200" in prepared.reason
    with pytest.raises(ValueError, match="groups has 3 values"):
        prepare(Arguments("f", TREE, 3, [1, 2, 3]), X, Y, reason=None, check=lambda: None)


def test_splits_that_are_no_sets_of_rows():
    prepared = prepare(Arguments("f", TREE, [([0, 0, 1], [2])]), X, Y, reason=None)
    assert prepared.reason == "a training side lists rows twice"


@pytest.mark.parametrize(
    ("estimator", "how", "message"),
    [
        (Ridge(), {}, "f needs models that grow together: Ridge is not an estimator of dtrees"),
        (make_pipeline(TREE), {}, r"Give its last step, and X as the steps before it leave it\."),
        (RandomForestClassifier(), {"single": True}, "is not a single tree"),
    ],
)
def test_who_cannot_share(estimator, how, message):
    with pytest.raises(TypeError, match=message):
        prepare_shared(Arguments("f", estimator, 3), X, Y, **how)


def test_the_warning_of_a_column_of_groups_points_at_the_caller():
    with pytest.warns(DataConversionWarning, match="ravel") as warned:
        validation_surface(TREE, X, Y, max_depth=[1], cv=GroupKFold(3), groups=GROUPS)
    assert warned[0].filename == __file__
    with pytest.warns(DataConversionWarning, match="ravel") as warned:
        cross_validate(TREE, X, Y, cv=GroupKFold(3), groups=GROUPS)
    assert warned[0].filename == __file__
    with pytest.warns(DataConversionWarning, match="ravel") as warned:
        GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    assert warned[0].filename == __file__
