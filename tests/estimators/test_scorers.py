"""Scorers of shares that know the classes of a model."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import get_scorer, log_loss, make_scorer

from dtrees import DecisionTreeClassifier
from dtrees.estimators.scorers import with_labels

X = np.array([[0.0], [1.0], [2.0], [2.0]])
Y = np.array(["a", "b", "c", "b"])
MODEL = DecisionTreeClassifier().fit(X, Y)
LOSS = make_scorer(log_loss, response_method="predict_proba", greater_is_better=False)


@pytest.mark.parametrize("scoring", ["neg_log_loss", LOSS], ids=["name", "scorer"])
def test_rows_may_lack_a_class(scoring):
    with pytest.raises(ValueError, match="labels"):
        get_scorer(scoring)(MODEL, X[1:], Y[1:])
    told = pickle.loads(pickle.dumps(with_labels(scoring, MODEL.classes_)))
    assert told(MODEL, X[1:], Y[1:]) == pytest.approx(2 / 3 * np.log(0.5))
    assert told(MODEL, X, Y) == get_scorer(scoring)(MODEL, X, Y)


def test_several_scorers_have_their_names():
    found = with_labels(["neg_log_loss", "accuracy"], MODEL.classes_)
    assert list(found) == ["neg_log_loss", "accuracy"]
    assert found["accuracy"] == "accuracy"
    assert found["neg_log_loss"] != "neg_log_loss"


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "f1_macro",
        "nonsense",
        lambda model, X, y: 1.0,
        make_scorer(log_loss, response_method="predict_proba", labels=["a", "b"]),
    ],
)
def test_others_stay(scoring):
    assert with_labels(scoring, MODEL.classes_) is scoring


def test_numbers_have_no_classes():
    assert with_labels("neg_log_loss", None) == "neg_log_loss"
