"""One tree: its leaves, its paths, and the steps of its pruning."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import KFold

import dtrees
from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.coding import target as coding_target
from tests.estimators.walk import assert_no_node_is_worse, assert_same_tree, same_up_to_ties
from tests.pairs import parametrize_pairs

CASES = [
    (DecisionTreeClassifier, load_iris(return_X_y=True)),
    (DecisionTreeRegressor, load_diabetes(return_X_y=True)),
]


@pytest.mark.parametrize(("kind", "data"), CASES)
def test_every_step_of_the_path_is_a_smaller_tree(kind, data):
    path = kind(max_depth=4).cost_complexity_pruning_path(*data)
    assert path.ccp_alphas[0] == 0
    assert (np.diff(path.ccp_alphas) >= 0).all()
    assert (np.diff(path.impurities) >= 0).all()
    sizes = [
        kind(max_depth=4, ccp_alpha=alpha).fit(*data).get_n_leaves() for alpha in path.ccp_alphas
    ]
    assert sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(("kind", "data"), CASES)
def test_a_row_passes_the_nodes_from_the_root_to_its_leaf(kind, data):
    tree = kind(max_depth=3, random_state=0).fit(*data)
    leaves, paths = tree.apply(data[0]), tree.decision_path(data[0])
    assert paths.shape == (len(data[0]), tree.tree_.node_count)
    assert (paths[:, 0].toarray() == 1).all()
    assert (paths[np.arange(len(leaves)), leaves] == 1).all()
    assert paths.sum(axis=1).max() == tree.get_depth() + 1


def test_a_failed_fit_leaves_the_tree_as_it_was():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    grown = tree.tree_
    with pytest.raises(ValueError, match="inconsistent"):
        tree.fit(X, y[:-1])
    assert tree.tree_ is grown


CLASSIFICATION = ("gini", "entropy", "log_loss")
REGRESSION = ("squared_error", "poisson")

LIMITS = {
    "max_depth": {"max_depth": 3, "min_samples_leaf": 10},
    "min_samples_leaf": {"min_samples_leaf": 20},
    "min_samples_leaf_share": {"min_samples_leaf": 0.041},
    "min_samples_split": {"min_samples_split": 120, "min_samples_leaf": 7},
    "min_samples_split_share": {"min_samples_split": 0.27},
    "min_impurity_decrease": {"min_impurity_decrease": 0.02, "min_samples_leaf": 10},
    "min_weight_fraction_leaf": {"min_weight_fraction_leaf": 0.06},
    "max_leaf_nodes": {"max_leaf_nodes": 7, "min_samples_leaf": 15},
    "ccp_alpha": {"ccp_alpha": 0.01, "min_samples_leaf": 15},
    "several": {
        "max_depth": 5,
        "min_samples_leaf": 12,
        "min_samples_split": 40,
        "max_leaf_nodes": 9,
        "min_impurity_decrease": 0.001,
        "ccp_alpha": 0.002,
    },
}


def table(seed, n_rows=500, n_columns=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32).astype(np.float64)
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * X[:, 3] + rng.normal(size=n_rows) / 2
    return rng, X, signal


def classes_of(signal, n_classes):
    return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def weights_of(kind, rng, n_rows):
    if kind == "integer":
        return rng.integers(0, 6, n_rows).astype(np.float64)
    if kind == "fractional":
        return rng.exponential(size=n_rows)
    return None


def has_ties(estimator, X, y, sample_weight=None):
    """scikit-learn's fit, and whether another seed gives another tree.

    Rows of weight zero are left out: scikit-learn counts them in shares of the rows, and nowhere
    else.
    """
    if sample_weight is not None:
        live = sample_weight > 0
        X, y, sample_weight = X[live], y[live], sample_weight[live]

    def fit(seed):
        seeded = sklearn.base.clone(estimator).set_params(random_state=seed)
        return seeded.fit(X, y, sample_weight=sample_weight)

    first = fit(0)
    for seed in range(1, 11):
        tree = fit(seed).tree_
        if not (
            np.array_equal(first.tree_.feature, tree.feature)
            and np.array_equal(first.tree_.threshold, tree.threshold)
        ):
            return first, True
    return first, False


def without_ties(estimator, make):
    """The first of some tables on which scikit-learn's tree has no ties.

    ``make(seed)`` gives X, y and weights. Returns these and scikit-learn's fit.
    """
    for seed in range(50):
        X, y, sample_weight = make(seed)
        fit, ties = has_ties(estimator, X, y, sample_weight)
        if not ties and fit.get_n_leaves() > 2:  # stumps prove nothing
            return X, y, sample_weight, fit
    raise AssertionError("every table has ties")


def compare(ours, theirs, make):
    """Fit both, compare the trees node by node, then what the estimators say."""
    X, y, sample_weight, theirs = without_ties(theirs, make)
    ours.fit(X, y, sample_weight=sample_weight)
    assert_same_tree(ours.tree_, theirs.tree_)
    fresh = np.random.default_rng(99).normal(size=(300, X.shape[1]))
    fresh = fresh.astype(np.float32).astype(np.float64)
    for rows in (X, fresh):
        if hasattr(ours, "classes_"):
            assert_array_equal(ours.predict(rows), theirs.predict(rows))
            assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), atol=1e-12)
            with np.errstate(divide="ignore"):
                expected = theirs.predict_log_proba(rows)
            assert_allclose(ours.predict_log_proba(rows), expected, atol=1e-11)
        else:
            assert_allclose(ours.predict(rows), theirs.predict(rows), rtol=1e-11, atol=1e-12)
        depths = ours.decision_path(rows).sum(axis=1)
        assert_array_equal(np.asarray(depths), np.asarray(theirs.decision_path(rows).sum(axis=1)))
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), rel=1e-12)
    assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-10)
    assert_allclose(
        ours.tree_.compute_feature_importances(normalize=False),
        theirs.tree_.compute_feature_importances(normalize=False),
        atol=1e-10,
    )
    for name in ("n_features_in_", "n_outputs_", "max_features_"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.get_depth() == theirs.get_depth()
    assert ours.get_n_leaves() == theirs.get_n_leaves()


@pytest.mark.one_of(3)
@parametrize_pairs(
    limit=LIMITS,
    criterion=CLASSIFICATION,
    n_classes=[2, 4],
    weights=["none", "integer", "fractional"],
)
def test_classifier(limit, criterion, n_classes, weights):
    def make(seed):
        rng, X, signal = table(seed)
        return X, classes_of(signal, n_classes), weights_of(weights, rng, len(X))

    parameters = {"criterion": criterion, **LIMITS[limit]}
    ours = DecisionTreeClassifier(**parameters)
    compare(ours, sklearn.tree.DecisionTreeClassifier(**parameters), make)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("weights", ["none", "integer", "fractional"])
@pytest.mark.parametrize("criterion", REGRESSION)
@pytest.mark.parametrize("limit", LIMITS)
def test_regressor(limit, criterion, weights):
    def make(seed):
        rng, X, signal = table(seed)
        y = np.exp(signal) if criterion == "poisson" else signal
        return X, y, weights_of(weights, rng, len(X))

    parameters = {"criterion": criterion, **LIMITS[limit]}
    ours = DecisionTreeRegressor(**parameters)
    compare(ours, sklearn.tree.DecisionTreeRegressor(**parameters), make)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("limit", ["min_samples_leaf", "min_weight_fraction_leaf", "ccp_alpha"])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize(
    ("class_weight", "weights"),
    [
        ("balanced", "none"),
        ({"a": 1.0, "b": 2.5, "c": 0.4}, "none"),
        ({"a": 3, "b": 1, "c": 2}, "integer"),
        ({"b": 0.3}, "fractional"),
    ],
)
def test_class_weight(class_weight, weights, criterion, limit):
    def make(seed):
        rng, X, signal = table(seed)
        y = np.array(["a", "b", "c"])[classes_of(signal**2, 3)]
        y[rng.random(len(y)) < 0.2] = "a"
        return X, y, weights_of(weights, rng, len(X))

    parameters = {"criterion": criterion, "class_weight": class_weight, **LIMITS[limit]}
    ours = DecisionTreeClassifier(**parameters)
    compare(ours, sklearn.tree.DecisionTreeClassifier(**parameters), make)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("least", [1, 1_024])
@pytest.mark.parametrize("limit", ["min_samples_leaf", "min_weight_fraction_leaf"])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_balanced_fractions(criterion, limit, least, monkeypatch):
    """Class weights and weights of many rows share the bits of a product, of few they do not."""
    monkeypatch.setattr(coding_target, "LEAST_BALANCED", least)
    weights = {}

    def make(seed):
        rng, X, signal = table(seed)
        y = np.minimum(classes_of(signal**2, 5), 2)
        w = weights[seed] = weights_of("fractional", rng, len(X))
        return X, y, w / np.bincount(y, w)[y] * w.sum() / 3

    parameters = {"criterion": criterion, **LIMITS[limit]}
    X, y, _, theirs = without_ties(sklearn.tree.DecisionTreeClassifier(**parameters), make)
    ours = DecisionTreeClassifier(**parameters, class_weight="balanced")
    ours.fit(X, y, sample_weight=weights[max(weights)])
    assert_same_tree(ours.tree_, theirs.tree_, rtol=1e-5 if least == 1 else 1e-9)
    atol = 1e-5 if least == 1 else 1e-9
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=atol)


def test_balanced_class_weight_counts_weight_not_rows():
    # Where scikit-learn counts rows, a row of weight 2 stays the same as two rows here.
    rng, X, signal = table(6)
    y = classes_of(signal, 3)
    weights = rng.integers(0, 4, len(y))
    tree = DecisionTreeClassifier(class_weight="balanced", max_depth=4)
    weighted = tree.fit(X, y, weights).predict_proba(X)
    repeated = tree.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict_proba(X)
    assert_array_equal(weighted, repeated)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("weights", ["none", "integer", "fractional"])
@pytest.mark.parametrize("criterion", [*CLASSIFICATION, *REGRESSION])
def test_fully_grown(criterion, weights):
    # Small nodes have ties: two columns that part the same rows, or gain exactly as much.
    rng, X, signal = table(7)
    sample_weight = weights_of(weights, rng, len(X))
    if criterion in CLASSIFICATION:
        kind, y = DecisionTreeClassifier, classes_of(signal, 3)
    else:
        kind, y = DecisionTreeRegressor, np.exp(signal)
    ours = kind(criterion=criterion).fit(X, y, sample_weight)
    theirs = getattr(sklearn.tree, kind.__name__)(criterion=criterion, random_state=0)
    theirs.fit(X, y, sample_weight)
    rows = slice(None) if sample_weight is None else sample_weight > 0
    compared, ends = same_up_to_ties(ours.tree_, theirs.tree_, X[rows])
    if criterion in REGRESSION:
        # other columns may part the same rows, but no other parting gains as much
        assert ends == 0
        assert compared == theirs.tree_.node_count == ours.tree_.node_count
    else:
        assert ends <= 0.1 * theirs.tree_.node_count
        assert compared >= 0.5 * theirs.tree_.node_count
    score = theirs.score(X, y, sample_weight)
    assert ours.score(X, y, sample_weight) == pytest.approx(score)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("part", range(4))
def test_limits_together(part):
    # Limits drawn at random, ties and all: no split of ours gains less than theirs. (Limits that
    # compare nodes of different branches are left out: a tie here changes what they do there.)
    rng = np.random.default_rng(part)
    for seed in range(50 * part, 50 * (part + 1)):
        limits = {
            "max_depth": int(rng.integers(1, 9)),
            "min_samples_leaf": int(rng.integers(1, 40)),
            "min_samples_split": int(rng.integers(2, 150)),
            "min_weight_fraction_leaf": float(rng.choice([0.01, 0.04, 0.05, 0.06, 0.1, 0.2])),
            "min_impurity_decrease": float(rng.choice([0.001, 0.01, 0.03])),
        }
        limits = {name: value for name, value in limits.items() if rng.random() < 0.4}
        kind = rng.choice(["DecisionTreeClassifier", "DecisionTreeRegressor"])
        n_rows, n_columns = int(rng.choice([60, 200, 500])), int(rng.integers(4, 9))
        table_rng, X, signal = table(seed, n_rows, n_columns)
        X = X.argsort(axis=0).argsort(axis=0) / 16  # scikit-learn takes neighbours for equal
        sample_weight = weights_of(rng.choice(["none", "integer", "fractional"]), table_rng, n_rows)
        if kind == "DecisionTreeClassifier":
            limits["criterion"] = str(rng.choice(["gini", "entropy"]))
            y = classes_of(signal, int(rng.choice([2, 2, 3, 7])))
        else:
            limits["criterion"] = str(rng.choice(REGRESSION))
            y = np.exp(signal)
        ours = getattr(dtrees, kind)(**limits, n_jobs=int(rng.integers(1, 3)))
        theirs = getattr(sklearn.tree, kind)(**limits, random_state=0)
        ours.fit(X, y, sample_weight)
        theirs.fit(X, y, sample_weight)
        assert assert_no_node_is_worse(ours.tree_, theirs.tree_) > 0, (seed, limits)


@pytest.mark.parametrize("n_leaves", [2, 3, 5, 10, 20])
def test_max_leaf_nodes(n_leaves):
    _, X, signal = table(8)
    parameters = {"max_leaf_nodes": n_leaves, "min_samples_leaf": 15}
    ours = DecisionTreeRegressor(**parameters).fit(X, signal)
    theirs = sklearn.tree.DecisionTreeRegressor(**parameters)
    theirs, ties = has_ties(theirs, X, signal)
    assert not ties
    assert ours.get_n_leaves() == n_leaves
    assert_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.one_of(8)
@pytest.mark.parametrize("weights", ["none", "integer", "fractional"])
@pytest.mark.parametrize("criterion", [*CLASSIFICATION, *REGRESSION])
def test_pruning_path(criterion, weights):
    classify = criterion in CLASSIFICATION

    def make(seed):
        rng, X, signal = table(seed)
        y = classes_of(signal, 3) if classify else np.exp(signal)
        return X, y, weights_of(weights, rng, len(X))

    kind = DecisionTreeClassifier if classify else DecisionTreeRegressor
    parameters = {"criterion": criterion, "min_samples_leaf": 10}
    ours = kind(**parameters)
    theirs = getattr(sklearn.tree, kind.__name__)(**parameters)
    X, y, sample_weight, theirs = without_ties(theirs, make)
    root = theirs.tree_.impurity[0]
    path = ours.cost_complexity_pruning_path(X, y, sample_weight)
    expected = theirs.cost_complexity_pruning_path(X, y, sample_weight)
    assert not hasattr(ours, "tree_")
    assert len(path.ccp_alphas) > 10
    assert_allclose(path.ccp_alphas, expected.ccp_alphas, rtol=0, atol=1e-12 * root)
    assert_allclose(path.impurities, expected.impurities, rtol=0, atol=1e-12 * root)

    # ... and a tree at every step of it, between two alphas where rounding decides nothing
    for alpha in (path.ccp_alphas[:-1] / 2 + path.ccp_alphas[1:] / 2)[::4]:
        ours.set_params(ccp_alpha=alpha).fit(X, y, sample_weight)
        theirs.set_params(ccp_alpha=alpha, random_state=0).fit(X, y, sample_weight)
        assert_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.parametrize("max_features", [None, 1, 4, 0.5, 1.0, "sqrt", "log2"])
def test_max_features(max_features):
    _, X, signal = table(10)
    ours = DecisionTreeRegressor(max_features=max_features, max_depth=3).fit(X, signal)
    theirs = sklearn.tree.DecisionTreeRegressor(max_features=max_features, max_depth=3)
    assert ours.max_features_ == theirs.fit(X, signal).max_features_


def test_labels_of_any_kind():
    _, X, signal = table(11)
    y = classes_of(signal, 3)
    for labels in (
        np.array(["no", "perhaps", "yes"]),
        np.array(["no", "perhaps", "yes"], dtype=object),
        np.array([-3, 7, 1000]),
        np.array([0.0, 1.0, 5.0]),
        np.array([True, False, True]),
    ):
        ours = DecisionTreeClassifier(max_depth=2).fit(X, labels[y])
        theirs = sklearn.tree.DecisionTreeClassifier(max_depth=2).fit(X, labels[y])
        assert_array_equal(ours.classes_, theirs.classes_)
        assert ours.classes_.dtype == theirs.classes_.dtype
        assert ours.n_classes_ == theirs.n_classes_
        predicted = ours.predict(X)
        assert predicted.dtype == theirs.predict(X).dtype
        assert_array_equal(predicted, theirs.predict(X))


@pytest.mark.parametrize("to_sparse", ["csr_matrix", "csc_array", "coo_array"])
def test_sparse_tables(to_sparse):
    import scipy.sparse

    rng, X, signal = table(12)
    X = np.where(rng.random(X.shape) < 0.6, 0.0, X)
    sparse = getattr(scipy.sparse, to_sparse)(X)
    parameters = {"min_samples_leaf": 20}
    theirs, ties = has_ties(sklearn.tree.DecisionTreeRegressor(**parameters), X, signal)
    assert not ties
    dense = DecisionTreeRegressor(**parameters).fit(X, signal)
    ours = DecisionTreeRegressor(**parameters).fit(sparse, signal)
    assert_same_tree(ours.tree_, theirs.tree_)
    assert ours.tree_.model.equals(dense.tree_.model)
    assert_array_equal(ours.predict(sparse), dense.predict(X))
    assert_array_equal(ours.predict(X), dense.predict(sparse))


def test_missing_values_go_where_they_gain_most():
    # scikit-learn looks at both directions as well; the signal is in the missingness.
    rng, X, signal = table(13)
    X[rng.random(len(X)) < np.where(signal > 0, 0.5, 0.1), 0] = np.nan
    parameters = {"max_depth": 3, "min_samples_leaf": 20}
    theirs, ties = has_ties(sklearn.tree.DecisionTreeRegressor(**parameters), X, signal)
    assert not ties
    ours = DecisionTreeRegressor(**parameters).fit(X, signal)
    assert ours.score(X, signal) == pytest.approx(theirs.score(X, signal), rel=1e-12)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-11)


def columns_of_all_kinds(n_rows=400):
    """Numbers with missing values, and categories."""
    rng = np.random.default_rng(n_rows)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)).round(1), columns=list("abc"))
    X.loc[rng.random(n_rows) < 0.2, "b"] = np.nan
    X["d"] = pd.Categorical(rng.choice(list("pqrst"), n_rows))
    return X, X["a"] + (X["d"] == "p") + rng.normal(size=n_rows) * 0.3


@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
@pytest.mark.parametrize("max_features", [1.0, 2])
def test_random_splits_are_those_of_extra_trees(task, max_features):
    """A tree of its own is the first one of a forest of the same seed and columns."""
    X, y = columns_of_all_kinds()
    y = y > 0.5 if task == "Classifier" else y
    how = {"max_features": max_features, "random_state": 5, "min_samples_leaf": 3}
    tree = getattr(dtrees, f"DecisionTree{task}")(splitter="random", max_bins=255, **how)
    forest = getattr(dtrees, f"ExtraTrees{task}")(2, **how)
    own, (first, _) = tree.fit(X, y).tree_.model, forest.fit(X, y).forest_.trees
    assert own.node_count > 30
    assert_array_equal(own.n_node_samples, first.n_node_samples)
    for name, array in first.arrays().items():
        if name != "statistics":  # of numbers, forests leave bits to bags
            assert_allclose(array, getattr(own, name), rtol=1e-12, atol=1e-12, err_msg=name)
    assert forest.estimators_[0].splitter == forest.estimator_.splitter == "random"


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_random_splits_depend_on_the_seed_alone(criterion):
    X, y = columns_of_all_kinds()
    X, y = X[["a", "c"]].to_numpy(), y - y.min()
    how = {"splitter": "random", "criterion": criterion, "random_state": 0}
    tree = DecisionTreeRegressor(**how).fit(X, y)
    rows = np.random.default_rng(0).permutation(len(y))
    for other in (
        DecisionTreeRegressor(n_jobs=2, **how).fit(X[rows], y.to_numpy()[rows]),
        DecisionTreeRegressor(**how).fit(scipy.sparse.csc_array(X), y),
        clone(tree).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2), np.tile([1, 0], len(y))),
    ):
        assert_array_equal(other.tree_.threshold, tree.tree_.threshold)
    again = DecisionTreeRegressor(**how | {"random_state": 1}).fit(X, y)
    assert again.tree_.threshold[0] != tree.tree_.threshold[0]


def test_random_splits_of_folds_and_searches():
    X, y = columns_of_all_kinds()
    tree = DecisionTreeRegressor(splitter="random", random_state=0)
    cv = KFold(3)
    found = dtrees.cross_validate(tree, X, y, cv=cv)["test_score"]
    one_by_one = [clone(tree).fit(X.iloc[a], y[a]).score(X.iloc[b], y[b]) for a, b in cv.split(X)]
    assert_allclose(found, one_by_one, rtol=1e-12)
    grid = {"splitter": ["best", "random"]}
    search = dtrees.GridSearchCV(tree, grid, cv=cv, return_train_score=False).fit(X, y)
    assert_allclose(search.cv_results_["mean_test_score"][1], np.mean(one_by_one))


def test_random_splits_are_as_good_as_those_of_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    how = {"splitter": "random", "min_samples_leaf": 5}
    scores = [
        np.mean(
            [
                kind(random_state=seed, **how).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
                for seed in range(60)
            ]
        )
        for kind in (DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor)
    ]
    assert abs(scores[0] - scores[1]) < 0.05


def test_a_splitter_is_best_or_random():
    with pytest.raises(ValueError, match="The 'splitter' parameter of DecisionTreeClassifier"):
        DecisionTreeClassifier(splitter="worst").fit([[1], [2]], [0, 1])
