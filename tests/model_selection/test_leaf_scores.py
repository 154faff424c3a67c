"""Sums over held-out rows in the nodes of a tree, against sums by hand."""

import warnings
from itertools import product

import numpy as np
import pytest
import sklearn.model_selection as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.metrics import (
    cohen_kappa_score,
    f1_score,
    fbeta_score,
    get_scorer,
    jaccard_score,
    make_scorer,
    precision_score,
    recall_score,
    zero_one_loss,
)

import dtrees
from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.estimators.training_sets import fit_sets
from dtrees.model_selection import GridSearchCV
from dtrees.model_selection import cross_validate as ours
from dtrees.model_selection.fitted_splits import scores_by_leaves
from dtrees.model_selection.leaf_scores import (
    errors_of_alphas,
    held_out_of,
    leaf_scores,
    leaf_scores_of,
    scorer_of_classes,
)
from tests.model_selection.test_fitted_splits import SPLITS, TREE, whole
from tests.model_selection.test_search import (
    CANCER,
    CLASSIFIER,
    DIABETES,
    FEW_LIMITS,
    IRIS,
    LIMITS,
    REGRESSOR,
    both,
    named,
    same,
)


def of_half(estimator, X, y, weight=None):
    """A tree of half of the rows, the others, and the nodes that each of those passes."""
    train = np.arange(len(y)) % 2 == 0
    fitted = fit_sets(estimator, X, y, None, train[None])
    rows = np.flatnonzero(~train)
    weight = None if weight is None else weight[rows]
    paths = fitted.models[0].decision_path(X[rows]).toarray().astype(bool)
    return held_out_of(fitted, 0, rows, weight), rows, paths


@pytest.mark.parametrize("weighted", [False, True])
def test_classes(weighted):
    X, y = load_iris(return_X_y=True)
    weight = np.arange(1.0, 151.0) if weighted else None
    held_out, rows, paths = of_half(DecisionTreeClassifier(max_depth=3), X, y, weight)
    own = np.ones(len(rows)) if weight is None else weight[rows]
    for node in range(held_out.tree.node_count):
        expected = np.bincount(y[rows], own * paths[:, node], minlength=3)
        np.testing.assert_allclose(held_out.counts[node], expected)
    np.testing.assert_allclose(held_out.counts[0].sum(), own.sum())


def test_numbers():
    X, y = load_diabetes(return_X_y=True)
    held_out, rows, paths = of_half(DecisionTreeRegressor(max_depth=3), X, y)
    away = y[rows] - y[rows].mean()
    for node in range(held_out.tree.node_count):
        mine = away[paths[:, node]]
        expected = [len(mine), mine.sum(), (mine**2).sum()]
        np.testing.assert_allclose(held_out.moments[node], expected, rtol=1e-9, atol=1e-6)


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


@pytest.mark.one_of(4)
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
    monkeypatch.setattr("dtrees.model_selection.fitted_splits.leaf_scores", noted)
    both(CLASSIFIER, FEW_LIMITS, IRIS, scoring="f1_macro")
    assert made
    assert all((found is not None) == is_made for found in made)


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


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "accuracy",
        "balanced_accuracy",
        "neg_log_loss",
        "neg_brier_score",
        "roc_auc",
        make_scorer(f1_score),
        lambda estimator, X, y: estimator.get_depth() + 1e-3 * len(X),
    ],
    ids=lambda scoring: "function" if callable(scoring) else str(scoring),
)
def test_scorers_of_classes(scoring):
    limits = LIMITS if scoring is None else FEW_LIMITS
    both(CLASSIFIER, limits, CANCER, scoring=scoring, return_train_score=True)


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    "scoring",
    ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_poisson_deviance",
     "neg_mean_absolute_error"],
)  # fmt: skip
def test_scorers_of_numbers(scoring):
    grid = LIMITS | {"ccp_alpha": [0.0, 50.0]}
    both(REGRESSOR, grid, DIABETES, scoring=scoring, return_train_score=True)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("weight", [None, {0: 0.3, 1: 0.7, 2: 1.1}], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_accuracy_of_whole_trees(n_classes, weight, by_leaves_alone):
    X, y = load_wine(return_X_y=True)
    some = y < n_classes
    model = clone(CLASSIFIER).set_params(
        class_weight=weight and {label: weight[label] for label in range(n_classes)}
    )
    grid = {"min_samples_leaf": [1, 8, 20]}
    both(model, grid, (X[some], y[some]), scoring="accuracy", return_train_score=True)
    tied = np.arange(some.sum()) // 2 % n_classes  # shares are equal in many leaves
    both(model, grid, (X[some], tied), scoring="accuracy", return_train_score=True)


@pytest.mark.parametrize("shift", [0, 1e6])
def test_errors_of_full_trees_are_nothing(shift, by_leaves_alone):
    """As those of predictions: no rest of squares that cancel."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.integers(-9999, 9999, 3000) + shift
    scoring = ["neg_root_mean_squared_error", "r2"]
    how = {"scoring": scoring, "refit": False, "return_train_score": True}
    search = GridSearchCV(REGRESSOR, {"max_depth": [20, None]}, cv=3, **how).fit(X, y)
    assert search.cv_results_["mean_train_neg_root_mean_squared_error"][1] == 0.0
    assert search.cv_results_["mean_train_r2"][1] == 1.0


def test_equal_trees_of_several_growths_tie(by_leaves_alone):
    """Whole trees, and those inside which there are others."""
    grids = [{"max_depth": [2, 60, None]}, {"max_features": [1.0, 3]}]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
        how = {"scoring": "neg_mean_squared_error", "refit": False, "cv": 3}
        found = GridSearchCV(REGRESSOR, grids, **how).fit(X, y).cv_results_
        for split in range(3):
            assert len(set(found[f"split{split}_test_score"].tolist()[1:])) == 1


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error"])
def test_squared_errors_of_whole_trees(scoring):
    X, y = DIABETES
    how = {"scoring": scoring, "cv": 4, "return_train_score": True}
    found, expected = (
        cross_validate(REGRESSOR, X, y, **how) for cross_validate in (ours, theirs.cross_validate)
    )
    for side in ("test_score", "train_score"):
        np.testing.assert_allclose(found[side], expected[side], rtol=1e-12)


SCORES_OF_CLASSES = [
    "accuracy", "balanced_accuracy", "neg_log_loss", "f1_macro", "precision_weighted",
    "jaccard_micro", "matthews_corrcoef",
]  # fmt: skip

SCORES_OF_NUMBERS = [
    "r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_poisson_deviance",
]  # fmt: skip


@pytest.mark.one_of(6)
@pytest.mark.parametrize("scale", [1, 0.37, 1e-9], ids=["whole", "fractions", "tiny"])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_held_out_rows_have_weights(kind, scale, by_leaves_alone):
    estimator, data, scoring = {
        "classes": (CLASSIFIER, CANCER, [*SCORES_OF_CLASSES, "neg_brier_score", "f1"]),
        "numbers": (REGRESSOR, DIABETES, SCORES_OF_NUMBERS),
    }[kind]
    X, y = data
    weight = np.random.default_rng(0).integers(1, 9, len(y)) * scale
    how = {"scoring": scoring, "refit": False, "return_train_score": True}
    cv = theirs.KFold(2, shuffle=True, random_state=0)
    grid = {"max_depth": [2, None], "ccp_alpha": [0.0, 0.02]}
    search = GridSearchCV(estimator, grid, cv=cv, **how).fit(X, y, sample_weight=weight)
    for number, sides in enumerate(cv.split(X)):
        own = np.zeros(len(y))
        own[sides[0]] = weight[sides[0]]
        for place, params in enumerate(search.cv_results_["params"]):
            model = clone(estimator).set_params(**params).fit(X, y, sample_weight=own)
            for name, (side, rows) in product(scoring, zip(("train", "test"), sides, strict=True)):
                score = get_scorer(name)(model, X[rows], y[rows], sample_weight=weight[rows])
                found = search.cv_results_[f"split{number}_{side}_{name}"][place]
                assert found == pytest.approx(score, rel=1e-9, abs=1e-11)


@pytest.mark.one_of(3)
@pytest.mark.filterwarnings("ignore:.*ill-defined|.*is ill-defined|.*single label")
@pytest.mark.parametrize("scoring", ["accuracy", "f1_micro", "matthews_corrcoef"])
def test_single_rows_are_scored_by_leaves(scoring, by_leaves_alone):
    X, y = CANCER[0][::15], CANCER[1][::15]
    how = {"cv": theirs.LeaveOneOut(), "scoring": scoring}
    both(CLASSIFIER, {"max_depth": [1, 3], "ccp_alpha": [0.0, 0.02]}, (X, y), **how)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_root_mean_squared_error"])
def test_numbers_of_single_rows(scoring, by_leaves_alone):
    data = DIABETES[0][:40], DIABETES[1][:40]
    how = {"cv": theirs.LeaveOneOut(), "scoring": scoring}
    both(REGRESSOR, {"max_depth": [1, 3]}, data, **how)


@pytest.mark.parametrize("labels", [["a", "b"], [1, 2], [False, True], [-1, 1]], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_which_label_is_positive(labels):
    y = np.array(labels)[CANCER[1]]
    grid = {"max_depth": [1, 3]}
    both(CLASSIFIER, grid, (CANCER[0], y), scoring=["neg_brier_score", "accuracy"], refit=False)


@pytest.mark.parametrize(
    ("estimator", "scoring"),
    [
        (dtrees.RandomForestClassifier(2, random_state=0), "accuracy"),
        (TREE, "roc_auc"),
        (TREE, lambda model, X, y: 1.0),
    ],
)
def test_what_is_no_sum_over_leaves(estimator, scoring):
    assert scores_by_leaves(whole(estimator)[0], SPLITS, scoring) is None


@pytest.mark.parametrize(
    ("scoring", "of_classes", "names"),
    [
        (None, True, {"score": "accuracy"}),
        (None, False, {"score": "r2"}),
        (["r2", "neg_mean_squared_error"], False, {n: n for n in ("r2", "neg_mean_squared_error")}),
        ({"a": "accuracy", "b": "neg_log_loss"}, True, {"a": "accuracy", "b": "neg_log_loss"}),
        ("r2", True, None),
        ("accuracy", False, None),
        (["accuracy", "roc_auc"], True, None),
        (lambda model, X, y: 1.0, True, None),
    ],
)
def test_which_scorers_are_sums_over_leaves(scoring, of_classes, names):
    found = leaf_scores_of(scoring, of_classes=of_classes)
    assert names == (found and {key: score.name for key, score in found.items()})


@pytest.mark.parametrize("power", [0, 5])
@pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=["classes", "numbers"])
def test_errors_of_pruned_trees_are_those_of_their_predictions(model, power):
    X, y = CANCER if model is CLASSIFIER else DIABETES
    train = np.arange(len(y)) % 2 == 0
    fitted = fit_sets(model, X, y, None, train[None])
    rows = np.flatnonzero(~train)
    held_out = held_out_of(fitted, 0, rows, None)
    path = clone(model).fit(X[train], y[train]).cost_complexity_pruning_path(X[train], y[train])
    alphas = np.unique(np.append(path.ccp_alphas[:: len(path.ccp_alphas) // 5], [0.0, 1e9]))
    errors, squares = errors_of_alphas(held_out, alphas, power)
    for alpha, error, square in zip(alphas, errors, squares, strict=True):
        said = clone(model).set_params(ccp_alpha=alpha).fit(X[train], y[train]).predict(X[rows])
        if model is CLASSIFIER:
            each = (said != y[rows]).astype(float)
        else:
            each = ((said - y[rows]) / 2.0**power) ** 2
        assert error == pytest.approx(each.sum(), rel=1e-9)
        assert square == pytest.approx((each**2).sum(), rel=1e-9)
