"""Scores of predicted classes from matrices, by scikit-learn's own functions."""

import warnings

import numpy as np
import pytest
import sklearn.model_selection as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    cohen_kappa_score,
    f1_score,
    fbeta_score,
    jaccard_score,
    make_scorer,
    precision_score,
    recall_score,
    zero_one_loss,
)

from dtrees.model_selection import GridSearchCV
from dtrees.model_selection.confusion import KnownPredictions, scorer_of_classes, scores_of_matrices
from dtrees.model_selection.leaf_scores import leaf_scores
from tests.model_selection.test_search import (
    CANCER,
    CLASSIFIER,
    FEW_LIMITS,
    IRIS,
    both,
    named,
    same,
)

OF_MATRICES = [
    *(f"{metric}{average}" for metric in ("f1", "precision", "recall", "jaccard")
      for average in ("_macro", "_micro", "_weighted")),
    "matthews_corrcoef",
    make_scorer(fbeta_score, beta=2, average="macro", zero_division=1, pos_label=None),
    make_scorer(precision_score, average="weighted", labels=["b", "c"], pos_label=None),
    make_scorer(jaccard_score, average="weighted", zero_division=0, pos_label=None),
    make_scorer(zero_one_loss, greater_is_better=False, normalize=False),
    make_scorer(cohen_kappa_score, weights=None),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*ill-defined|.*is ill-defined")
@pytest.mark.parametrize("labels", ["ba", "cab"], ids=["two classes", "three"])
def test_scorers_of_predicted_classes(labels, by_leaves_alone):
    data = named(CANCER if labels == "ba" else IRIS, list(labels))
    scoring = {str(number): scorer for number, scorer in enumerate(OF_MATRICES)}
    limits = {"max_depth": [1, None], "ccp_alpha": [0.0, 0.02]}
    both(CLASSIFIER, limits, data, scoring=scoring, refit="0", return_train_score=True)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("labels", [[0, 1], [False, True], [-1, 1], [1.0, 2.0]], ids=str)
def test_scorers_of_a_positive_class(labels, by_leaves_alone):
    scoring = ["f1", "precision", "recall", "jaccard"]
    both(CLASSIFIER, FEW_LIMITS, named(CANCER, labels), scoring=scoring, refit="f1")
    both(
        CLASSIFIER,
        {"max_depth": [1, 2]},
        named(CANCER, labels),
        scoring=make_scorer(fbeta_score, beta=0.5, pos_label=labels[0]),
    )


def test_a_positive_class_that_is_named(by_leaves_alone):
    scoring = {
        label: make_scorer(recall_score, average="binary", pos_label=label) for label in "ab"
    }
    both(CLASSIFIER, FEW_LIMITS, named(CANCER, ["b", "a"]), scoring=scoring, refit="a")


@pytest.mark.long
@settings(max_examples=max(12, settings.default.max_examples // 40))
@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_matrices_of_few_rows(seed, weighted):
    """Classes that are held out only, that nobody says, and held-out rows of no weight."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    X, y = rng.integers(0, 6, (n, 2)).astype(float), rng.integers(0, rng.integers(2, 6), n)
    weight = rng.integers(0 if seed % 2 else 1, 4, n).astype(float) if weighted else None
    n_train = n // 2
    cv = theirs.ShuffleSplit(2, train_size=n_train, random_state=seed)
    if weighted:
        for train, _ in cv.split(X):
            weight[train[:2]] = 1
    scoring = ["f1_macro", "precision_micro", "recall_weighted", "jaccard_macro",
               "matthews_corrcoef", "accuracy"]  # fmt: skip
    with warnings.catch_warnings(action="ignore"):
        ours, expected = (
            search(CLASSIFIER, {"max_depth": [1, 2, None]}, cv=cv, scoring=scoring, refit=False)
            .fit(X, y, sample_weight=weight)
            for search in (GridSearchCV, theirs.GridSearchCV)
        )  # fmt: skip
    same(ours, expected)


@pytest.mark.parametrize(("most", "is_made"), [(10, False), (2**23, True)])
def test_a_matrix_of_too_many_classes_is_not_made(monkeypatch, most, is_made):
    """Then scikit-learn is asked, and says the same."""
    made = []

    def noted(*arguments):
        made.append(leaf_scores(*arguments))
        return made[-1]

    monkeypatch.setattr("dtrees.model_selection.leaf_scores.MOST_SUMS", most)
    monkeypatch.setattr("dtrees.model_selection.cell_scores.leaf_scores", noted)
    both(CLASSIFIER, FEW_LIMITS, IRIS, scoring="f1_macro")
    assert made
    assert all((found is not None) == is_made for found in made)


NAMES = [
    *("accuracy", "balanced_accuracy", "matthews_corrcoef"),
    *("f1_macro", "precision_weighted", "recall_micro"),
]
PAIRS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=12)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=max(20, settings.default.max_examples // 10))
@given(st.lists(PAIRS, min_size=1, max_size=3), st.sampled_from(NAMES))
def test_a_matrix_is_worth_what_its_rows_are_worth(models, name):
    classes = np.array(["no", "oh", "yes"])
    matrices = np.zeros((len(models), 9))
    expected = []
    scorer = scorer_of_classes(name)
    for matrix, pairs in zip(matrices, models, strict=True):
        said, true = np.array(pairs).T
        np.add.at(matrix, said * 3 + true, 1)
        expected.append(scorer(KnownPredictions(classes), said, classes[true]))
    found = scores_of_matrices(scorer, matrices, classes)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "scorer",
    [
        "roc_auc",
        "no such scorer",
        "r2",
        make_scorer(lambda y, said: 1.0),
        make_scorer(f1_score, sample_weight=[1.0]),
        f1_score,
    ],
    ids=["shares", "unknown", "numbers", "a function", "own weights", "no scorer"],
)
def test_scorers_that_look_at_more(scorer):
    assert scorer_of_classes(scorer) is None


def test_scorers_that_fail_are_left_to_others():
    scorer = scorer_of_classes("f1")  # whose positive label, 1, is none of these
    assert scores_of_matrices(scorer, np.ones((1, 4)), np.array(["a", "b"])) is None
