"""Agreement of fold models, against recursion on dicts, and what reports say."""

import doctest
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier as TheirTree

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from dtrees.inspection import impurity_importances, stability, stability_report
from tests.inspection.tables import fold_models

IRIS = load_iris(return_X_y=True)


def test_a_single_leaf_asks_nothing():
    X, y = np.zeros((6, 2)), np.arange(6) % 2
    leaf = DecisionTreeClassifier().fit(X, y)
    report = stability_report([leaf, leaf], leaf)
    assert report.levels == ()
    assert str(report).splitlines() == [
        "2 models against the final one",
        "",
        "The reference asks nothing: it is a single leaf.",
        "",
        "No model asks about a column.",
    ]
    stump = DecisionTreeClassifier(max_depth=1).fit(np.arange(6.0)[:, None] * [1, 0], y > 0)
    assert stability_report([leaf, stump], leaf).levels == ()
    (level,) = stability_report([leaf, leaf], stump).levels
    assert (level.same_column, level.n_shared_nodes) == (0.0, 1.0)


def test_one_model_has_no_deviation():
    tree = DecisionTreeRegressor(max_depth=2).fit(*load_diabetes(return_X_y=True))
    report = stability_report([tree])
    assert_allclose(report.importances.mean, tree.feature_importances_)
    assert not report.importances.deviation.any()


def test_trees_on_codes():
    models, final = fold_models(1, max_depth=3)
    report = stability_report([m.tree_.model for m in models], final.tree_.model)
    assert report.importances.names[:2] == ("feature_0", "feature_1")
    same = stability_report([m.tree_ for m in models], final.tree_)
    assert [a.same_column for a in report.levels] == [a.same_column for a in same.levels]
    assert same.to_dict() == stability_report(models, final).to_dict()


def test_the_text():
    X, y = load_iris(return_X_y=True, as_frame=True)
    one = DecisionTreeClassifier(max_depth=1).fit(X, y)
    other = DecisionTreeClassifier(max_depth=1).fit(X.drop(index=range(30)), y[30:])
    assert str(stability_report([one, one, other], one)).splitlines() == [
        "3 models against the final one",
        "",
        "level  tests  rows  shared nodes  same column  least  same test  least",
        "0          1  100%             2          2.0      2        2.0      2",
        "",
        "importance          final    mean            models",
        "petal length (cm)  1.0000  0.6667  ± 0.5774       2",
        "petal width (cm)   0.0000  0.3333  ± 0.5774       1",
    ]


def test_long_tables_are_cut():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 30)), rng.integers(0, 2, 300)
    tree = DecisionTreeClassifier().fit(X, y)
    text = str(stability_report([tree] * 2)).splitlines()
    assert text[0] == "2 models against the first of them"
    n_levels, n_columns = tree.get_depth(), np.count_nonzero(tree.feature_importances_)
    assert text[15] == f"... {n_levels - 12} more"
    assert text[-1] == f"... {n_columns - 20} more"


def test_a_report_is_ready_for_json():
    models, final = fold_models(2, max_depth=3)
    for reference in (final, None):
        report = stability_report(models, reference).to_dict()
        assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert [column["name"] for column in report["importances"]] == [
        "ties",
        "gaps",
        "letters",
        "holes",
        "hybrid",
    ]
    first = stability_report(models, final).to_dict()["importances"][0]
    assert first["final"] == pytest.approx(final.feature_importances_[0])


def test_importances_are_those_of_the_trees():
    models, final = fold_models(4)
    shares = [impurity_importances(model.tree_.model) for model in models]
    found = stability_report(models, final).importances
    assert_allclose(found.mean, np.mean(shares, axis=0))
    assert_allclose(found.deviation, np.std(shares, axis=0, ddof=1))
    assert len(found) == 5
    assert (np.diff(found.mean[found.order()]) <= 0.0).all()


class TestErrors:
    def test_no_model(self):
        with pytest.raises(ValueError, match="at least one fitted model is needed"):
            stability_report([])

    def test_a_single_tree(self):
        tree = DecisionTreeClassifier().fit(*IRIS)
        with pytest.raises(
            TypeError, match="'models' parameter of stability_report must be a list"
        ):
            stability_report(tree, tree)

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            stability_report([DecisionTreeClassifier()])

    @pytest.mark.parametrize("model", [TheirTree().fit(*IRIS), 3])
    def test_what_is_no_tree_of_ours(self, model):
        with pytest.raises(TypeError):
            stability_report([model])

    def test_other_columns(self):
        tree = DecisionTreeClassifier().fit(*IRIS)
        narrow = DecisionTreeClassifier().fit(IRIS[0][:, :2], IRIS[1])
        with pytest.raises(ValueError, match="model 1 has other columns than model 0"):
            stability_report([tree, narrow])
        with pytest.raises(ValueError, match="model 2 has other columns than model 0"):
            stability_report([tree, tree], narrow)

    def test_trees_and_forests(self):
        models = [DecisionTreeClassifier().fit(*IRIS), RandomForestClassifier(2).fit(*IRIS)]
        with pytest.raises(ValueError, match="trees and forests cannot be compared"):
            stability_report(models)


def test_the_example():
    results = doctest.testmod(stability)
    assert results.attempted > 4
    assert results.failed == 0


def test_boosted_models_have_their_own_importances():
    X, y = load_diabetes(return_X_y=True)
    models = [
        GradientBoostingRegressor(max_iter=20, max_leaf_nodes=4).fit(X[i::3], y[i::3])
        for i in range(3)
    ]
    report = stability_report(models, models[0])
    assert (report.n_models, report.n_trees) == (3, 20)
    shares = np.array([model.feature_importances_ for model in models])
    assert_allclose(report.importances.mean, shares.mean(axis=0), rtol=1e-12)
    assert_allclose(report.importances.final, shares[0], rtol=1e-12)
    three = GradientBoostingClassifier(max_iter=2).fit(*IRIS)
    assert stability_report([three, three]).n_trees == 6
