"""What a guess scores: the largest class, the shares of all classes, the mean, or a quantile."""

import numpy as np
import pytest

from dtrees.model_selection import baseline
from dtrees.model_selection.baseline import baseline_scores

SPLITS = [(np.arange(0, 6), np.arange(6, 9)), (np.arange(3, 9), np.arange(0, 3))]
LABELS = np.array(["a", "a", "b", "a", "b", "a", "b", "b", "b"])
NUMBERS = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 9])


def test_the_largest_class_of_the_training_rows():
    by_hand = [
        (LABELS[test] == largest).mean() for (_, test), largest in zip(SPLITS, "ab", strict=True)
    ]
    assert baseline_scores(LABELS, "classification", SPLITS) == {"score": np.mean(by_hand)}


def test_the_mean_of_the_training_rows():
    scoring = {name: name for name in ("r2", "neg_mean_squared_error")}
    found = baseline_scores(NUMBERS, "regression", iter(SPLITS), scoring)
    errors, r2 = [], []
    for train, test in SPLITS:
        away = NUMBERS[test] - NUMBERS[train].mean()
        errors.append((away**2).mean())
        r2.append(1 - errors[-1] / NUMBERS[test].var())
    assert found == pytest.approx({"r2": np.mean(r2), "neg_mean_squared_error": -np.mean(errors)})


def test_a_quantile_of_the_training_rows():
    scoring = {"own": lambda guess, X, y: -np.abs(y - guess.predict(X)).mean()}
    found = baseline_scores(NUMBERS, "regression", SPLITS, scoring, quantile=1.0)
    by_hand = [np.abs(NUMBERS[test] - NUMBERS[train].max()).mean() for train, test in SPLITS]
    assert found == pytest.approx({"own": -np.mean(by_hand)})


def test_scores_that_cannot_be_had_are_left_out():
    scoring = {name: name for name in ("accuracy", "roc_auc", "f1_macro")}
    labels = np.array(list("abcabcabc"))
    found = baseline_scores(labels, "classification", SPLITS, scoring)
    assert list(found) == ["accuracy", "f1_macro"]  # there are more than two classes


def test_folds_without_a_class_are_told_of():
    """Before models grow, as their scores will be nan there, too."""
    with pytest.raises(ValueError, match=r"Scores of roc_auc_ovr are nan .* 1 has no row of a"):
        baseline_scores(LABELS, "classification", SPLITS, {"roc_auc_ovr": "roc_auc_ovr"})
    shares = {"neg_log_loss": "neg_log_loss"}
    assert list(baseline_scores(LABELS, "classification", SPLITS, shares)) == ["neg_log_loss"]


def test_many_rows_are_not_guessed(monkeypatch):
    monkeypatch.setattr(baseline, "MOST_ROWS", 8)
    assert baseline_scores(NUMBERS, "regression", SPLITS) == {}
