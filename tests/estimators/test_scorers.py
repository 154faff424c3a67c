"""Scorers that know the classes of a model, or its quantile."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import (
    f1_score,
    fbeta_score,
    get_scorer,
    log_loss,
    make_scorer,
    mean_pinball_loss,
)

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from dtrees.estimators.scorers import (
    is_own_loss,
    pinball_of_rows,
    pinball_scorer,
    refuse_unfit,
    with_labels,
)

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


def own(y, predicted):
    raise ValueError("pos_label")


@pytest.mark.parametrize(
    ("scoring", "classes"),
    [
        ("f1", [0, 1]),
        ("f1", ["a"]),
        ("f1_macro", ["a", "b", "c"]),
        ("roc_auc", ["a", "b"]),
        ("roc_auc_ovr", ["a", "b", "c"]),
        ("r2", ["a", "b"]),  # which fails for another reason
        (make_scorer(f1_score, pos_label="a"), ["a", "b"]),
        (make_scorer(f1_score, response_method="decision_function"), ["a", "b"]),
        (make_scorer(own), ["a", "b"]),  # is not asked
        (own, ["a", "b"]),
        (None, ["a", "b"]),
    ],
)
def test_scorers_that_are_not_refused(scoring, classes):
    refuse_unfit(scoring, np.array(classes))
    refuse_unfit(scoring, None)


@pytest.mark.parametrize(
    ("scoring", "classes", "said"),
    [
        ("f1", ["a", "b"], r"make_scorer\(f1_score, average='binary', pos_label='b'\)\.$"),
        ("neg_brier_score", ["a", "b"], r"pos_label='b', .*greater_is_better=False\)\.$"),
        ("jaccard", ["a", "b", "c"], "there are 3: .* Take scoring='jaccard_macro'"),
        ("roc_auc", [0, 1, 2], "there are 3: .* Take scoring='roc_auc_ovr'"),
        (make_scorer(fbeta_score, beta=2), [0, 1, 2], "there are 3: .* choose another average"),
    ],
)
def test_scorers_that_are_refused_and_which_ones_to_take(scoring, classes, said):
    with pytest.raises(ValueError, match=said):
        refuse_unfit(scoring, np.array(classes))


def test_early_stopping_refuses_them():
    model = GradientBoostingClassifier(early_stopping=True, scoring="f1")
    y = np.tile(["no", "yes"], 20)
    with pytest.raises(ValueError, match=r"Say which one is: scoring=make_scorer\(f1_score"):
        model.fit(np.zeros((40, 1)), y)
    with pytest.raises(ValueError, match="Take scoring='f1_macro'"):
        model.fit(np.zeros((40, 1)), np.tile(["a", "b", "c", "d"], 10))


DRAWN = np.random.default_rng(0).exponential(size=200)


@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_rows_have_the_mean_that_scikit_learn_tells(quantile):
    for said in (0.3, 1.0, 2.5):
        rows = pinball_of_rows(quantile)(DRAWN, np.full(len(DRAWN), said))
        assert (rows <= 0).all()
        assert -rows.mean() == pytest.approx(
            mean_pinball_loss(DRAWN, 0 * DRAWN + said, alpha=quantile)
        )


def test_which_scorers_are_minus_the_loss_of_a_model():
    model = GradientBoostingRegressor(loss="quantile", quantile=0.9)
    assert is_own_loss(pinball_scorer(0.9), model)
    others = [
        *(None, "r2", pinball_scorer(0.8), mean_pinball_loss),
        make_scorer(mean_pinball_loss, alpha=0.9),
        make_scorer(mean_pinball_loss, alpha=0.9, sample_weight=DRAWN, greater_is_better=False),
    ]
    assert not any(is_own_loss(scorer, model) for scorer in others)
    for other in (GradientBoostingRegressor(quantile=0.9), DecisionTreeRegressor()):
        assert not is_own_loss(pinball_scorer(0.9), other)
