"""Results are short tables in notebooks, and start no fit for it."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from dtrees import (
    DecisionTreeRegressor,
    RandomForestRegressor,
    cross_validate,
    estimate_cost,
    shared_forest,
    stability_report,
)
from dtrees._html import html_table

X, Y = load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def result():
    tree = DecisionTreeRegressor(max_depth=3)
    return cross_validate(
        tree, X, Y, cv=25, return_estimator=True, scoring=["r2", "neg_mean_absolute_error"]
    )


def test_text_is_escaped():
    shown = html_table("a < b", ["<", "b"], [["&", "2"]], "1 > 0")
    assert "a &lt; b" in shown
    assert "<th>&lt;</th>" in shown
    assert "&amp;" in shown
    assert shown.endswith("<p>1 &gt; 0</p>")
    assert html_table("t", ["a"], []).endswith("</table>")


def test_a_cross_validation_shows_numbers_of_its_folds(result):
    shown = result._repr_html_()
    assert "25 folds" in shown
    assert f"{result['test_r2'].mean():.4g}" in shown
    assert shown.count("<tr>") == 1 + 1 + 20
    assert "... 5 more" in shown
    assert "<th>test_neg_mean_absolute_error</th>" in shown
    assert "DecisionTree" not in shown


def test_forests_of_folds_are_not_looked_into():
    forest = RandomForestRegressor(50, oob_score=True, oob_tol=0.05, random_state=0)
    found = cross_validate(forest, X, Y, cv=3, return_estimator=True)
    assert len({each.n_estimators_ for each in found["estimator"]}) > 1
    found["mean"] = np.array([1.0])
    shown = found._repr_html_()
    assert "3 folds" in shown
    assert "<th>mean</th>" not in shown


def test_the_final_estimator_is_not_grown_for_it(result, monkeypatch):
    kind = type(result)
    monkeypatch.setattr(kind, "final_estimator", property(lambda _: 1 / 0))
    assert result._repr_html_()


def test_a_report_of_stability(result):
    report = stability_report(result["estimator"])
    shown = report._repr_html_()
    assert "25 models against the first of them" in shown
    assert "<th>same column</th>" in shown
    assert report.importances.names[report.importances.order()[0]] in shown
    assert repr(report) == str(report)
    stumps = [DecisionTreeRegressor(max_depth=1).fit(X, np.ones(len(X)))] * 2
    assert "single leaf" in stability_report(stumps)._repr_html_()


def test_a_shared_forest(result):
    forest = shared_forest(result["estimator"])
    assert repr(forest) == f"<SharedForest of 25 models: {len(forest)} nodes>"
    shown = forest._repr_html_()
    assert shown.count("<tr>") == 1 + min(30, len(forest))
    assert forest[0].text.replace("<", "&lt;") in shown


def test_an_estimate_of_the_cost():
    cost = estimate_cost(RandomForestRegressor(10), X)
    shown = cost._repr_html_()
    assert "442 rows x 10 columns" in shown
    assert cost.reason in shown
    assert repr(cost) == str(cost)
