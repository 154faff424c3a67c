"""Scores that are sums over leaves, against those of scikit-learn."""

from itertools import product

import numpy as np
import pytest
import sklearn.model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import (
    f1_score,
    get_scorer,
    make_scorer,
)

import dtrees
from dtrees.estimators.training_sets import fit_sets
from dtrees.model_selection import GridSearchCV
from dtrees.model_selection import cross_validate as ours
from dtrees.model_selection.cell_scores import scores_by_leaves
from dtrees.model_selection.held_out import held_out_of
from dtrees.model_selection.leaf_scores import errors_of_alphas, leaf_scores_of
from tests.model_selection.test_cell_scores import SPLITS, TREE, whole
from tests.model_selection.test_search import (
    CANCER,
    CLASSIFIER,
    DIABETES,
    FEW_LIMITS,
    LIMITS,
    REGRESSOR,
    both,
)


@pytest.mark.one_of(2)
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


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "scoring",
    ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_poisson_deviance",
     "neg_mean_absolute_error"],
)  # fmt: skip
def test_scorers_of_numbers(scoring):
    grid = LIMITS | {"ccp_alpha": [0.0, 50.0]}
    both(REGRESSOR, grid, DIABETES, scoring=scoring, return_train_score=True)


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


@pytest.mark.one_of(3)
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
