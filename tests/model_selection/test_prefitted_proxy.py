"""A proxy answers scikit-learn's loops for the model that its training rows belong to."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer

from dtrees import DecisionTreeClassifier
from dtrees.model_selection.prefitted_proxy import (
    PrefittedProxy,
    RowNumbers,
    asks_for_predictions,
    scoring_of_proxies,
)

SPLITS = [(np.array([2, 3, 4]), np.array([0, 1])), (np.array([0, 1, 4]), np.array([2, 3]))]
SHARES = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.3, 0.7], [1.0, 0.0]])


class Known:
    """Shares of two classes that are there already; the model of the second split has failed."""

    classes = np.array(["no", "yes"])

    def error(self, number):
        return ValueError("no rows") if number == 1 else None

    def model(self, candidate, number):
        return f"candidate {candidate} of split {number}"

    def values(self, candidate, number, rows):
        return SHARES[rows]


@pytest.fixture
def rows():
    return RowNumbers(5, SPLITS)


def fitted(models, rows, estimator, **options):
    proxy = clone(PrefittedProxy(models, rows, estimator, **options))
    return proxy.fit(rows.table[SPLITS[0][0]])


def test_it_predicts_by_row_number(rows):
    proxy = fitted(Known(), rows, DecisionTreeClassifier())
    assert proxy.predict(rows.table).tolist() == ["no", "yes", "no", "yes", "no"]
    np.testing.assert_array_equal(proxy.predict_proba(rows.table[1:3]), SHARES[1:3])
    assert proxy.predict_log_proba(rows.table[4:]).tolist() == [[0.0, -np.inf]]
    assert proxy.score(rows.table[:2], ["no", "no"]) == 0.5
    assert proxy.model == "candidate 0 of split 0"


def test_scorers_of_models_see_the_model_and_the_table(rows):
    X = np.arange(10.0).reshape(5, 2)
    seen = []

    def scorer(model, table, y):
        seen.append((model, table.tolist(), y))
        return 1.0

    score = scoring_of_proxies({"mine": scorer, "theirs": "accuracy"}, X, None)
    assert score["theirs"] == "accuracy"
    proxy = fitted(Known(), rows, DecisionTreeClassifier(), candidate=3)
    assert score["mine"](proxy, rows.table[1:2], ["yes"]) == 1.0
    assert seen == [("candidate 3 of split 0", [[2.0, 3.0]], ["yes"])]


@pytest.mark.parametrize(
    ("scoring", "asks"),
    [
        (None, True),
        ("roc_auc", True),
        (get_scorer("accuracy"), True),
        (["accuracy"], True),
        (len, False),
        ({"a": "accuracy", "b": len}, False),
    ],
    ids=str,
)
def test_who_asks_for_predictions_only(scoring, asks):
    assert asks_for_predictions(scoring) is asks
