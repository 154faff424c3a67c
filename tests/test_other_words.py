"""Words of other libraries for losses, criteria and scorers are errors that say them here."""

import pytest
from sklearn.metrics import get_scorer_names

import dtrees
from dtrees import DecisionTreeClassifier, GridSearchCV, cross_val_score, cross_validate
from dtrees._other_words import WORDS, did_you_mean, refuse_other_scorers
from dtrees.model_selection import validation_surface

X, Y = [[float(i)] for i in range(40)], [0, 1] * 20


@pytest.mark.parametrize(
    ("kind", "name", "word", "meant"),
    [
        ("GradientBoostingRegressor", "loss", "mse", "squared_error"),
        ("GradientBoostingRegressor", "loss", "RMSE", "squared_error"),
        ("GradientBoostingRegressor", "loss", "mae", "absolute_error"),
        ("GradientBoostingRegressor", "loss", "count:poisson", "poisson"),
        ("GradientBoostingRegressor", "loss", "absolut_error", "absolute_error"),
        ("GradientBoostingClassifier", "loss", "binary:logistic", "log_loss"),
        ("GradientBoostingClassifier", "loss", "MultiClass", "log_loss"),
        ("DecisionTreeRegressor", "criterion", "mse", "squared_error"),
        ("RandomForestRegressor", "criterion", "variance", "squared_error"),
        ("RandomForestClassifier", "criterion", "Gini", "gini"),
        ("RandomForestClassifier", "criterion", "information_gain", "entropy"),
        ("DecisionTreeClassifier", "handle_unknown", "majorit", "majority"),
    ],
)
def test_fits_say_what_was_meant(kind, name, word, meant):
    with pytest.raises(ValueError, match=rf"Got '{word}' instead\. Did you mean '{meant}'\?$"):
        getattr(dtrees, kind)(**{name: word}).fit(X, Y)


def test_words_that_mean_nothing_here_are_asked_for_nothing():
    for word in ("excellence", "roc_auc"):
        with pytest.raises(ValueError, match=f"Got '{word}' instead.$"):
            dtrees.GradientBoostingRegressor(loss=word).fit(X, Y)
    assert did_you_mean(3, ["3"]) == ""


@pytest.mark.parametrize(
    ("kind", "name", "word", "said"),
    [
        ("GradientBoostingRegressor", "loss", "binary:logistic", "It is for classifiers."),
        ("GradientBoostingRegressor", "loss", "multi:softprob", "It is for classifiers."),
        ("GradientBoostingClassifier", "loss", "reg:squarederror", "It is for regressors."),
        ("GradientBoostingClassifier", "loss", "count:poisson", "It is for regressors."),
        ("RandomForestRegressor", "criterion", "gini", "It is for classifiers."),
        ("DecisionTreeClassifier", "criterion", "squared_error", "It is for regressors."),
        ("GradientBoostingRegressor", "loss", "rank:pairwise", "There is no ranking. See docs/"),
        ("GradientBoostingClassifier", "loss", "lambdarank", "There is no ranking. See docs/"),
        ("GradientBoostingClassifier", "loss", "exponential", "AdaBoost makes it smaller, and so"),
        ("GradientBoostingRegressor", "loss", "survival:cox", "There is no survival analysis."),
    ],
)
def test_losses_that_are_elsewhere_are_said_to_be_there(kind, name, word, said):
    with pytest.raises(ValueError, match=rf"Got '{word}' instead\. {said}"):
        getattr(dtrees, kind)(**{name: word}).fit(X, Y)


@pytest.mark.parametrize(
    "call",
    [
        lambda scoring: cross_validate(DecisionTreeClassifier(), X, Y, scoring=scoring),
        lambda scoring: cross_validate(DecisionTreeClassifier(), X, Y, scoring=["f1", scoring]),
        lambda scoring: cross_validate(DecisionTreeClassifier(), X, Y, scoring={"a": scoring}),
        lambda scoring: cross_val_score(DecisionTreeClassifier(), X, Y, scoring=scoring),
        lambda scoring: validation_surface(DecisionTreeClassifier(), X, Y, scoring=scoring),
        lambda scoring: GridSearchCV(
            DecisionTreeClassifier(), {"max_depth": [1]}, scoring=scoring
        ).fit(X, Y),
        lambda scoring: dtrees.GradientBoostingClassifier(early_stopping=True, scoring=scoring).fit(
            X, Y
        ),
    ],
)
def test_scorers_say_what_was_meant(call):
    for word, meant in (
        ("auc", "roc_auc"),
        ("logloss", "neg_log_loss"),
        ("r2_score", "r2"),
        ("accurac", "accuracy"),
    ):
        with pytest.raises(ValueError, match=rf"^'{word}' is not .* Did you mean '{meant}'\?$"):
            call(word)


def test_names_of_scorers_and_other_things_are_left_alone():
    for scoring in (None, "excellence", "loss", len, 3, [len], {"a": None}, *get_scorer_names()):
        refuse_other_scorers(scoring)


def test_every_word_is_for_one_that_is_here():
    known = {"loss", *get_scorer_names()}
    for name in dtrees.__all__:
        rules = getattr(getattr(dtrees, name), "_constraints", {})
        for rule in (*rules.get("loss", ()), *rules.get("criterion", ())):
            known |= {*rule.options}
    for word, here in WORDS.items():
        assert word == word.lower()
        assert set(here) <= known
