"""Criteria of users: the trees of compiled ones, in Python."""

import numpy as np
import pytest

import dtrees
from dtrees import DecisionTreeClassifier, RandomForestClassifier, cross_validate
from dtrees.callbacks import Callback
from dtrees.constraints import InvalidParameterError
from dtrees.criteria import Criterion


class ChiSquare(Criterion):
    """The compiled criterion once more, in Python: the same operations in the same order."""

    def score(self, left, right):
        w = rest = found = 0.0
        for a, b in zip(left.tolist(), right.tolist(), strict=True):
            w, rest = w + a, rest + b
        for a, b in zip(left.tolist(), right.tolist(), strict=True):
            expected = (a + b) * w / (w + rest)
            if expected > 0:
                found += (a - expected) * (a - expected) / expected * (w + rest) / rest
        return found


class Gini(Criterion):
    def score(self, left, right):
        both = left + right
        w, rest = left.sum(), right.sum()
        return (left @ left) / w + (right @ right) / rest - (both @ both) / both.sum()


def table(n_classes, n_rows=300):
    """Numbers with ties and missing values, most of one column zero, and categories."""
    import pandas as pd

    rng = np.random.default_rng(n_classes)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)).round(1), columns=list("abc"))
    X.loc[rng.random(n_rows) < 0.2, "b"] = np.nan
    X.loc[rng.random(n_rows) < 0.7, "c"] = 0.0
    X["d"] = pd.Categorical(rng.choice(list("pqrst"), n_rows))
    y = (X["a"] + X["c"] + (X["d"] == "p") + rng.normal(size=n_rows) * 0.5) * 2
    return X, np.clip(np.floor(y), 0, n_classes - 1).astype(int)


def shape(tree):
    """What rows meet, without what is measured in units of the criterion."""
    left_out = ("gain", "impurity", "criterion")
    return {name: repr(own.tolist()) for name, own in tree.arrays().items() if name not in left_out}


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_of_python_is_that_of_the_compiled_function(n_classes, weighted):
    X, y = table(n_classes)
    w = np.arange(len(y)) % 3 + 0.5 if weighted else None
    trees = [
        DecisionTreeClassifier(criterion=criterion, random_state=0).fit(X, y, w).tree_.model
        for criterion in ("chi_square", ChiSquare())
    ]
    assert trees[0].node_count > 20
    own, of_python = (dict(tree.arrays()) for tree in trees)
    assert all(np.array_equal(own[name], of_python[name], equal_nan=True) for name in own)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_gini_in_python_has_the_splits_of_gini(n_classes):
    """Gains as well, but for roundings; nodes whose columns tie by a rounding are below depth 3."""
    X, y = table(n_classes)
    how = {"random_state": 0, "max_depth": 3, "category_penalty": 0}
    own = DecisionTreeClassifier(**how).fit(X, y).tree_.model
    of_python = DecisionTreeClassifier(criterion=Gini(), **how).fit(X, y).tree_.model
    assert shape(own) == shape(of_python)
    assert np.allclose(own.gain, of_python.gain)
    assert np.array_equal(own.impurity, of_python.impurity)


@pytest.mark.parametrize("forest", ["RandomForest", "ExtraTrees", "Bagging"])
def test_forests(forest):
    """Columns that are drawn, random splits, and bags; on threads as on one."""
    X, y = table(3)
    trees = [
        getattr(dtrees, forest + "Classifier")(
            4, criterion=criterion, random_state=0, n_jobs=n_jobs
        )
        .fit(X, y)
        .forest_.trees
        for criterion, n_jobs in [("chi_square", 1), ("chi_square", 2), (ChiSquare(), 2)]
    ]
    for other in trees[1:]:
        for a, b in zip(trees[0], other, strict=True):
            assert shape(a) == shape(b)


def test_a_fit_goes_on_with_an_equal_criterion(tmp_path):
    X, y = table(3)

    def forest(n_trees):
        return RandomForestClassifier(n_trees, criterion=ChiSquare(), random_state=0)

    forest(2).fit(X, y, checkpoint=tmp_path)
    heard = []
    forest(4).fit(X, y, checkpoint=tmp_path, callbacks=[Heard(heard)])
    assert heard == [2, 3]
    other = RandomForestClassifier(4, criterion=Gini(), random_state=0)
    with pytest.raises(ValueError, match="criterion was"):
        other.fit(X, y, checkpoint=tmp_path)


class Heard(Callback):
    def __init__(self, numbers):
        self.numbers = numbers

    def on_tree_end(self, fit, number):
        self.numbers.append(number)


def test_folds_grow_one_by_one():
    """As the loop over folds does, with a compiled function as with one in Python."""
    X, y = table(3)
    scores = [
        cross_validate(RandomForestClassifier(2, criterion=criterion, random_state=0), X, y, cv=3)
        for criterion in ("chi_square", ChiSquare())
    ]
    assert np.array_equal(scores[0]["test_score"], scores[1]["test_score"])


class Broken(Criterion):
    def score(self, left, right):
        if left.sum() > 100:
            raise ZeroDivisionError("as the user wrote it")
        return 0.0


class Nothing(Criterion):
    def score(self, left, right):
        return float("nan")


class Forbidding(Criterion):
    def score(self, left, right):
        return float("-inf")


def test_what_a_criterion_raises_is_raised_by_fit():
    X, y = table(3)
    with pytest.raises(ZeroDivisionError, match="as the user wrote it"):
        DecisionTreeClassifier(criterion=Broken()).fit(X, y)
    with pytest.raises(ZeroDivisionError, match="as the user wrote it"):
        RandomForestClassifier(3, criterion=Broken(), n_jobs=2).fit(X, y)
    with pytest.raises(ValueError, match="not a number"):
        DecisionTreeClassifier(criterion=Nothing()).fit(X, y)
    tree = DecisionTreeClassifier(criterion=Forbidding()).fit(X, y).tree_.model
    assert tree.node_count == 1


def test_what_a_criterion_cannot_do_is_refused():
    X, y = table(2)
    with pytest.raises(InvalidParameterError, match=r"dtrees\.criteria\.Criterion"):
        DecisionTreeClassifier(criterion=lambda left, right: 0.0).fit(X, y)
    with pytest.raises(InvalidParameterError, match="criterion"):
        dtrees.DecisionTreeRegressor(criterion=ChiSquare()).fit(X, y)


def test_limits_and_pruning_go_on_working():
    X, y = table(3)
    whole = DecisionTreeClassifier(criterion=ChiSquare(), random_state=0).fit(X, y)
    for limits in ({"max_leaf_nodes": 5}, {"ccp_alpha": 0.01}, {"min_impurity_decrease": 0.05}):
        model = DecisionTreeClassifier(criterion=ChiSquare(), random_state=0, **limits).fit(X, y)
        assert 1 < model.tree_.model.node_count < whole.tree_.model.node_count
    assert whole.feature_importances_.sum() == pytest.approx(1)
