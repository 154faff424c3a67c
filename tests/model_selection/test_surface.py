"""Every cell of a validation surface is the score of its fits."""

import pickle

import numpy as np
import pytest
import sklearn.model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dtrees
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import (
    GridSearchCV,
    cost_complexity_cv,
    cross_val_score,
    tuned_size,
    validation_surface,
)

CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
TREE = dtrees.DecisionTreeClassifier(random_state=0)


@pytest.mark.one_of(6)
@pytest.mark.parametrize(
    ("estimator", "data", "scoring"),
    [
        (TREE, CANCER, None),
        (TREE, CANCER, "neg_log_loss"),
        (TREE, CANCER, "roc_auc"),
        (TREE, CANCER, lambda model, X, y: -model.get_n_leaves()),
        (dtrees.DecisionTreeRegressor(), DIABETES, "r2"),
        (dtrees.RandomForestRegressor(3, random_state=0, max_bins=20), DIABETES, None),
    ],
    ids=["accuracy", "log loss", "auc", "function", "r2", "forest"],
)
def test_cells_are_cross_validations(estimator, data, scoring):
    cv = theirs.KFold(4, shuffle=True, random_state=0)
    surface = validation_surface(estimator, *data, cv=cv, scoring=scoring)
    n_depths, n_limits, n_splits = surface.scores.shape
    assert n_splits == 4
    assert surface.max_depth[0] == 1
    assert surface.min_samples_split[0] == 2
    assert surface.min_samples_split[-1] == int(0.04 * len(data[1]))
    rng = np.random.default_rng(0)
    for _ in range(6):
        i, j = int(rng.integers(n_depths)), int(rng.integers(n_limits))
        cell = {
            "max_depth": int(surface.max_depth[i]),
            "min_samples_split": int(surface.min_samples_split[j]),
        }
        own = clone(estimator).set_params(**cell)
        scores = cross_val_score(own, *data, cv=cv, scoring=scoring)
        np.testing.assert_allclose(surface.scores[i, j], scores, 1e-10)
        alone = own.fit(*data)
        for a, b in zip(trees_of(surface.model(**cell)), trees_of(alone), strict=True):
            assert a.equals(b)


def test_what_a_surface_says_of_itself():
    surface = validation_surface(TREE, *CANCER, max_depth=[1, 3], min_samples_split=[2, 9], cv=3)
    best = f"best: {surface.mean.max():.4g} at {surface.best}"
    assert repr(surface) == f"ValidationSurface(accuracy, shape (2, 2, 3), {best})"
    with pytest.warns(UserWarning, match="nan"):
        nothing = validation_surface(
            TREE, *CANCER, max_depth=[1], min_samples_split=[2], cv=3, scoring=never
        )
    assert repr(nothing) == "ValidationSurface(never, shape (1, 1, 3), every mean is nan)"


def never(model, X, y):
    """A score that there is not."""
    raise ValueError


@pytest.mark.parametrize(
    ("estimator", "scoring", "is_said"),
    [
        (TREE, None, False),
        (TREE, "roc_auc", True),
        (dtrees.RandomForestClassifier(2, random_state=0, max_bins=20), None, True),
    ],
    ids=["accuracy", "auc", "forest"],
)
def test_predictions_for_every_size_are_logged(estimator, scoring, is_said, caplog):
    grid = {"max_depth": [1, 3], "min_samples_split": [2, 9, 20]}
    with caplog.at_level("INFO", logger="dtrees"):
        validation_surface(estimator, *CANCER, **grid, cv=3, scoring=scoring)
    said = [line for line in caplog.messages if line.startswith("up to 18 scores by predictions")]
    assert len(said) == is_said


def test_a_pipeline_is_told_what_to_give():
    pipeline = make_pipeline(StandardScaler(), TREE)
    for ask in (validation_surface, cost_complexity_cv):
        with pytest.raises(TypeError, match=r"Pipeline is not an estimator .* Give its last step"):
            ask(pipeline, *CANCER)


def test_grids_that_are_given():
    surface = validation_surface(
        TREE, *CANCER, max_depth=[5, 2], min_samples_split=[40, 3, 10], cv=3
    )
    assert surface.max_depth.tolist() == [2, 5]
    assert surface.min_samples_split.tolist() == [3, 10, 40]
    grid = {"max_depth": [2, 5], "min_samples_split": [3, 10, 40]}
    search = GridSearchCV(TREE, grid, cv=3).fit(*CANCER)
    mean = search.cv_results_["mean_test_score"].reshape(2, 3)
    np.testing.assert_allclose(surface.mean, mean)
    assert surface.mean.max() == search.best_score_
    error = surface.scores.std(axis=2, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(surface.standard_error, error)


def test_which_cell_is_the_best():
    tree = dtrees.DecisionTreeClassifier(min_samples_leaf=5)
    surface = validation_surface(tree, *CANCER, cv=10)
    best, simple = surface.best, surface.one_standard_error
    i = int(np.flatnonzero(surface.max_depth == best["max_depth"])[0])
    j = int(np.flatnonzero(surface.min_samples_split == best["min_samples_split"])[0])
    top = surface.mean.max()
    assert i > 0
    assert j + 1 < len(surface.min_samples_split)
    assert surface.mean[i, j] == top
    assert (surface.mean[:i] < top).all()  # the shallowest of the best
    assert (surface.mean[i, j + 1 :] < top).all()
    allowed = top - surface.standard_error[i, j]
    k = int(np.flatnonzero(surface.max_depth == simple["max_depth"])[0])
    assert 0 < k <= i
    assert (surface.mean[:k] < allowed).all()
    assert (surface.mean[k] >= allowed).any()


def test_one_split_has_no_standard_error():
    cv = theirs.ShuffleSplit(1, random_state=0)
    surface = validation_surface(TREE, *CANCER, cv=cv)
    assert np.isnan(surface.standard_error).all()
    assert surface.one_standard_error["max_depth"] == surface.best["max_depth"]


def test_weights():
    weight = np.random.default_rng(0).integers(1, 4, len(CANCER[1])).astype(float)
    how = {"params": {"sample_weight": weight}, "cv": 3}
    surface = validation_surface(TREE, *CANCER, max_depth=[3], min_samples_split=[2], **how)
    alone = clone(TREE).set_params(max_depth=3)
    np.testing.assert_allclose(surface.scores[0, 0], cross_val_score(alone, *CANCER, **how))


@pytest.mark.one_of(8)
@pytest.mark.parametrize(
    ("given", "grid"),
    [
        ({}, {}),
        ({"max_leaf_nodes": 9}, {}),
        ({"max_leaf_nodes": 9, "min_impurity_decrease": 0.004}, {}),
        ({"min_impurity_decrease": 0.004, "min_samples_leaf": 3}, {}),
        ({"ccp_alpha": 0.01}, {}),
        ({"max_leaf_nodes": 5, "ccp_alpha": 0.01}, {"max_depth": [2, 4]}),
        ({}, {"max_depth": [2, 4], "min_samples_split": [20, 40]}),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_classes", [True, False])
def test_the_path_from_the_same_growth(is_classes, given, grid):
    data = CANCER if is_classes else DIABETES
    if not is_classes and "min_impurity_decrease" in given:
        given = given | {"min_impurity_decrease": 40.0}
    tree = clone(TREE if is_classes else dtrees.DecisionTreeRegressor()).set_params(**given)
    path = validation_surface(tree, *data, cv=5, **grid).cost_complexity()
    if grid:
        largest = {"max_depth": 4, "min_samples_split": min(grid.get("min_samples_split", [2]))}
        tree.set_params(**largest)
    expected = cost_complexity_cv(tree, *data, cv=5)
    for name in ("ccp_alphas", "n_leaves", "fold_alphas", "errors", "standard_errors"):
        np.testing.assert_array_equal(getattr(path, name), getattr(expected, name), name)
    assert path.best_index == expected.best_index
    assert path.one_standard_error_index == expected.one_standard_error_index
    for alpha in (0.0, path.best_alpha, path.one_standard_error_alpha):
        alone = clone(tree).set_params(ccp_alpha=alpha).fit(*data)
        assert path.model(alpha).tree_.model.equals(alone.tree_.model)
        assert path.model(alpha).get_params() == alone.get_params()


@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
@pytest.mark.parametrize("kind", ["DecisionTree", "RandomForest"])
def test_a_pickle_leaves_the_table_behind(kind, task):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 30))
    y = X[:, 0] + rng.normal(size=3000)
    y = y > 0 if task == "Classifier" else y
    model = getattr(dtrees, kind + task)(random_state=0, max_bins=255)
    if kind == "RandomForest":
        model.set_params(n_estimators=3)
    surface = validation_surface(model, X, y, max_depth=[1, 3], min_samples_split=[2, 9], cv=3)
    kept = pickle.dumps(surface)
    assert len(kept) < X.size  # codes of a byte
    again = pickle.loads(kept)
    np.testing.assert_array_equal(again.scores, surface.scores)
    assert (again.best, again.scoring) == (surface.best, surface.scoring)
    for cell in (surface.best, {"max_depth": 1, "min_samples_split": 9}):
        mine, other = surface.model(**cell), again.model(**cell)
        assert mine.get_params() == other.get_params()
        np.testing.assert_array_equal(mine.predict(X), other.predict(X))
    if kind == "DecisionTree":
        with pytest.raises(RuntimeError, match="left behind the table and the trees of the splits"):
            again.cost_complexity()
        assert len(pickle.dumps(surface.cost_complexity())) < X.size
    else:
        with pytest.raises(TypeError, match="single tree"):
            again.cost_complexity()


class NeverAsked:
    """A splitter that must not be asked for splits."""

    def split(self, X, y=None, groups=None):
        """Fail."""
        raise AssertionError

    def get_n_splits(self, X=None, y=None, groups=None):
        """Any number."""
        return 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: validation_surface(model, *DIABETES, cv=NeverAsked()),
        lambda model: cost_complexity_cv(model, *DIABETES, cv=NeverAsked()),
        lambda model: tuned_size(model, *DIABETES, NeverAsked()),
    ],
    ids=["surface", "path", "size"],
)
def test_what_is_not_ours_is_refused_before_splits_are_drawn(ask):
    with pytest.raises(TypeError, match="Ridge is not an estimator of dtrees"):
        ask(Ridge())


def test_parameters_of_other_fits_are_refused_before_splits_are_drawn():
    how = {"cv": NeverAsked(), "params": {"check_input": False}}
    with pytest.raises(TypeError, match=r"surface: fit of .* has no parameter 'check_input'"):
        validation_surface(TREE, *CANCER, **how)
    with pytest.raises(TypeError, match=r"complexity_cv: fit of .* no parameter 'check_input'"):
        cost_complexity_cv(TREE, *CANCER, **how)
    how["params"] = {"callbacks": []}
    with pytest.raises(TypeError, match=r"validation_surface needs .* fit is given callbacks"):
        validation_surface(dtrees.RandomForestClassifier(2), *CANCER, **how)
    with pytest.raises(
        TypeError, match="'y' parameter of validation_surface must be an array-like"
    ):
        validation_surface(TREE, CANCER[0], None, cv=NeverAsked())
    with pytest.raises(TypeError, match="RandomForestClassifier is not a single tree"):
        cost_complexity_cv(dtrees.RandomForestClassifier(2), *CANCER, cv=NeverAsked())


def test_errors():
    with pytest.raises(TypeError, match="Ridge is not an estimator of dtrees"):
        validation_surface(Ridge(), *DIABETES)
    with pytest.raises(ValueError, match="max_depth"):
        validation_surface(TREE, *CANCER, max_depth=[-3])
    surface = validation_surface(TREE, *CANCER, max_depth=[3], cv=3)
    with pytest.raises(ValueError, match=r"no max_depth=4: it has 3\."):
        surface.model(4, 2)
    with pytest.raises(ValueError, match=r"no min_samples_split=9999: it has 2, .*, \.\.\., .*\.$"):
        surface.model(3, 9999)
    surface = validation_surface(TREE, *CANCER, min_samples_split=[5, 9], cv=3)
    with pytest.raises(ValueError, match=r"no min_samples_split=2: it has 5, 9\.$"):
        surface.model(max_depth=2)


@pytest.mark.parametrize("limits", [[2.5], [], [0], [None], 3, [[1, 2]]], ids=str)
def test_limits_that_are_none(limits):
    with pytest.raises(ValueError, match="max_depth must be a sequence"):
        validation_surface(TREE, *CANCER, max_depth=limits)
    with pytest.raises(ValueError, match="min_samples_split must be a sequence"):
        validation_surface(TREE, *CANCER, min_samples_split=limits)


@pytest.mark.filterwarnings("ignore")
def test_scores_that_are_none():
    tree = dtrees.DecisionTreeRegressor()
    surface = validation_surface(tree, DIABETES[0][:15], DIABETES[1][:15], cv=15, max_depth=[2])
    with pytest.raises(ValueError, match="Every mean of the surface is nan"):
        surface.best  # noqa: B018
    with pytest.raises(ValueError, match="'scoring' parameter of validation_surface"):
        validation_surface(TREE, *CANCER, scoring=["accuracy"])


def test_held_out_rows_count_once_whatever_the_scorer():
    weight = np.random.default_rng(0).integers(1, 9, len(CANCER[1])).astype(float)
    how = {"params": {"sample_weight": weight}, "cv": 3, "max_depth": [1, 2]}
    a, b = (
        validation_surface(TREE, *CANCER, min_samples_split=[2], scoring=scoring, **how)
        for scoring in ("accuracy", make_scorer(accuracy_score))
    )
    np.testing.assert_allclose(a.scores, b.scores)
