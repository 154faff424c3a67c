"""Sets share sums where their own fits have the same integers, up to what is multiplied.

Their table is read once, and coded once for each way of coding.
"""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris

import dtrees
from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.coding import target as coding_target
from dtrees.coding.target import TargetUnits
from dtrees.estimators import training_sets
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import trees_of
from dtrees.estimators.training_sets import TrainingTable, fit_sets
from dtrees.parallel import threaded
from tests.laws.together import staying_together
from tests.pairs import parametrize_pairs

TREE = FitPlan.of(dtrees.DecisionTreeClassifier())
IRIS = load_iris(return_X_y=True)
HALVES = np.array([0.5, 1.5, 2.25, 3.0])


@pytest.fixture
def grown():
    """Training sets that have grown, and stayed together however small their nodes were."""
    with staying_together() as found:
        yield found


@pytest.fixture
def few_rows_share(monkeypatch):
    """Balanced fractions share as those of 1,024 rows do."""
    monkeypatch.setattr(coding_target, "LEAST_BALANCED", 1)


def test_sums_that_would_overflow_are_apart(grown, monkeypatch):
    """Sets that lack the heavy row have a unit of their own, and would share sums otherwise."""
    X, y, rng = table(3)
    weight = rng.random(N_ROWS)
    weight[0] = 1000.0
    rows = np.vstack([sets(rng), sets(rng)])
    check(estimator_of("DecisionTree", "Regressor"), X, y, weight, rows)
    assert len(grown) == 2
    monkeypatch.setattr(training_sets, "LARGEST_SUM", 1.0)
    check(estimator_of("DecisionTree", "Regressor"), X, y, weight, rows)
    assert len(grown) == 3


@pytest.mark.one_of(8)
@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5}, {0: 0.0, 1: 0.7, 2: 1.0}])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("kind", ["DecisionTree", "ExtraTrees"])
@pytest.mark.parametrize("weights", ["none", "whole"])
def test_class_weights_share(kind, criterion, class_weight, weights, grown):
    X, y, rng = table(2)
    y = np.digitize(y, [0, 2])
    class_weight = class_weight if isinstance(class_weight, str) else {2: 1.0, **class_weight}
    estimator = estimator_of(kind, "Classifier", class_weight=class_weight, criterion=criterion)
    weight = None if weights == "none" else rng.integers(0, 3, N_ROWS).astype(float)
    check(estimator, X, y, weight, sets(rng))
    assert len(grown) == (1 if kind == "DecisionTree" else 3)
    assert all(own.n_shared_nodes > 0 for own in grown)


@pytest.mark.one_of(8)
@pytest.mark.parametrize("large", [1.0, 1000.0])
@pytest.mark.parametrize("of", ["halves", "fractions"])
@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
@pytest.mark.parametrize("kind", ["DecisionTree", "ExtraTrees"])
def test_fractions_share(kind, task, of, large, grown):
    """A large weight of one row: sets that lack it have another unit."""
    X, y, rng = table(3)
    y = np.digitize(y, [0, 2]) if task == "Classifier" else y
    weight = rng.random(N_ROWS) if of == "fractions" else rng.choice(HALVES, N_ROWS)
    weight[0] = large * 0.75
    check(estimator_of(kind, task), X, y, weight, sets(rng))
    assert all(own.n_shared_nodes > 0 for own in grown)
    assert len(grown) > 0


def test_a_dictionary_and_fractions_share(grown):
    X, y, rng = table(4)
    tree = estimator_of("DecisionTree", "Classifier", class_weight={0: 3.0, 1: 0.5, 2: 1.0})
    check(tree, X, np.digitize(y, [0, 2]), rng.random(N_ROWS), sets(rng))
    assert sum(own.n_shared_nodes for own in grown) > 0


@pytest.mark.one_of(4)
@pytest.mark.parametrize("large", [1.0, 1000.0])
@pytest.mark.parametrize("of", ["halves", "fractions"])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("kind", ["DecisionTree", "ExtraTrees"])
@pytest.mark.usefixtures("few_rows_share")
def test_balanced_fractions_share(kind, criterion, of, large, grown):
    """Classes weigh what they do in each set; units are those of the rows."""
    X, y, rng = table(4)
    weight = rng.random(N_ROWS) if of == "fractions" else rng.choice(HALVES, N_ROWS)
    weight[0] = large * 0.75
    model = estimator_of(kind, "Classifier", class_weight="balanced", criterion=criterion)
    check(model, X, np.digitize(y, [0, 2]), weight, sets(rng))
    assert len(grown) > 0
    assert all(own.n_shared_nodes > 0 for own in grown)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.sampled_from(["uniform", "wide", "exact"]),
    st.sampled_from([1, 120]),
)
def test_law_of_balanced_fractions(seed, n_classes, of, least):
    """Also where some sets lack a class or have few rows, and where few have the same unit."""
    X, y, _ = table(4)
    rng = np.random.default_rng(seed)
    weight = {
        "uniform": rng.random(N_ROWS),
        "wide": np.exp(4 * rng.normal(size=N_ROWS)),
        "exact": rng.integers(0, 9, N_ROWS) / 8,
    }[of]
    rows = rng.random((4, N_ROWS)) < rng.uniform(0.1, 1, (4, 1))
    classes = rng.permutation(np.digitize(y, np.linspace(-2, 3, n_classes - 1)))
    tree = estimator_of("DecisionTree", "Classifier", class_weight="balanced", max_depth=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding_target, "LEAST_BALANCED", least)
        check(tree, X, classes, weight, rows)


def test_balanced_fractions_of_few_rows_grow_alone(grown):
    """Products are rounded row by row there, in each set on its own."""
    X, y, rng = table(4)
    tree = estimator_of("DecisionTree", "Classifier", class_weight="balanced")
    check(tree, X, np.digitize(y, [0, 2]), rng.random(N_ROWS), sets(rng))
    assert grown == []


def test_balanced_fractions_of_more_and_of_fewer_rows(grown, caplog):
    """Four folds of 1,080 rows and all of them share; a half of the rows is 720."""
    tables = [table(seed) for seed in range(6)]
    X, y = (np.concatenate(parts) for parts in list(zip(*tables, strict=True))[:2])
    rows = np.hstack([sets(rng) for *_, rng in tables])
    tree = estimator_of("DecisionTree", "Classifier", class_weight="balanced", max_depth=4)
    with caplog.at_level(logging.INFO, "dtrees"):
        check(tree, X, np.digitize(y, [0, 2]), tables[0][2].random(len(y)), rows)
    assert "1 of 6 models are fitted one by one: class_weight" in caplog.text
    assert grown[0].n_shared_nodes > 0


def test_sets_without_rows_of_weight():
    X, y, rng = table(5)
    y = np.digitize(y, [0, 2])
    rows = np.vstack([y == 0, np.zeros((1, N_ROWS), dtype=bool), sets(rng)])
    weights = {0: 0.0, 1: 2.0, 2: 1.0}
    tree = estimator_of("DecisionTree", "Classifier", class_weight=weights)
    found = dtrees.estimators.training_sets.fit_sets(tree, X, y, None, rows)
    assert "nothing is left to learn from" in str(found.models[0])
    assert isinstance(found.models[1], ValueError)
    check(tree, X, y, None, rows[2:])


N_ROWS = 240
OUT_OF_BAG = ("oob_score_", "oob_scores_", "oob_prediction_", "oob_decision_function_")
KINDS = ("DecisionTree", "RandomForest", "ExtraTrees", "Bagging")
TASKS = ("Classifier", "Regressor")
WEIGHTS = {
    "none": lambda rng: None,
    "whole": lambda rng: rng.integers(0, 3, N_ROWS).astype(float),
    "fractions": lambda rng: rng.random(N_ROWS),
    "large": lambda rng: rng.integers(1, 100_000, N_ROWS).astype(float),
}
PARAMETERS = {
    "defaults": {},
    "limits": {"min_samples_leaf": 5, "max_depth": 4, "min_impurity_decrease": 0.001},
    "share of the weight": {"min_weight_fraction_leaf": 0.05},
    "shares of the rows": {"min_samples_leaf": 0.03, "min_samples_split": 0.11},
    "all shares": {
        "min_samples_leaf": 0.031,
        "min_samples_split": 0.2,
        "min_weight_fraction_leaf": 0.02,
    },
    "best first": {"max_leaf_nodes": 6},
    "pruned": {"ccp_alpha": 0.01},
    "few columns": {"max_features": 2},
    "cuts at quantiles": {"max_bins": 20},
}


def table(seed=0):
    """Numbers, counts, missing values and a category; three classes or a number."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 5))
    X[:, 3] = rng.integers(0, 4, N_ROWS)
    y = X[:, 0] + X[:, 3] + rng.normal(size=N_ROWS)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, rng


def sets(rng):
    """Four folds, all rows, and any half of them."""
    fold = rng.permutation(np.arange(N_ROWS) % 4)
    ones = np.ones((1, N_ROWS), dtype=bool)
    return np.vstack([fold != np.arange(4)[:, None], ones, rng.random((1, N_ROWS)) < 0.5])


def estimator_of(kind, task, **parameters):
    parameters = {"random_state": 3, "categorical_features": [3], **parameters}
    if kind != "DecisionTree":
        parameters["n_estimators"] = 3
    return getattr(dtrees, kind + task)(**parameters)


def check(estimator, X, y, weight, rows):
    found = fit_sets(estimator, X, y, weight, rows)
    for number, mine in enumerate(rows):
        own = (np.ones(len(mine)) if weight is None else weight) * mine
        alone = clone(estimator).fit(X, y, sample_weight=own)
        model = found.models[number]
        assert vars(alone).keys() == vars(model).keys()
        for a, b in zip(trees_of(alone), trees_of(model), strict=True):
            assert a.equals(b)
        expected = alone.predict_proba(X) if hasattr(alone, "classes_") else alone.predict(X)
        values = found.values(number, np.arange(len(mine)))
        np.testing.assert_array_equal(values, expected.reshape(values.shape))
        for name in OUT_OF_BAG:
            np.testing.assert_array_equal(getattr(model, name, None), getattr(alone, name, None))


@pytest.mark.one_of(8)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_models_are_fits(kind, task, weights):
    X, y, rng = table()
    y = np.array(["a", "b", "c"])[np.digitize(y, [0, 2])] if task == "Classifier" else y
    check(estimator_of(kind, task), X, y, WEIGHTS[weights](rng), sets(rng))


@pytest.mark.one_of(18)
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", ["DecisionTree", "RandomForest"])
def test_parameters(kind, task, parameters):
    X, y, rng = table(1)
    y = y > 1 if task == "Classifier" else y
    estimator = estimator_of(kind, task, **PARAMETERS[parameters])
    check(estimator, X, y, None, sets(rng))
    weight = WEIGHTS["whole"](rng)
    if "max_bins" in PARAMETERS[parameters]:  # cuts know the weights of rows that are left out
        weight = weight > 0
    check(estimator, X, y, weight, sets(rng))


@pytest.mark.one_of(8)
@pytest.mark.parametrize("limit", ["min_samples_leaf", "min_samples_split"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("task", TASKS)
def test_shares_of_rows_of_positive_weight(task, weights, limit):
    """A set is as good as its rows alone, where codes are exact; and so is a single fit."""
    X, y, rng = table(9)
    y = y > 1 if task == "Classifier" else y
    weight, rows = WEIGHTS[weights](rng), sets(rng)
    differ = 0
    for share in (0.021, 0.1, 0.33):
        # leaves of several rows: few partitions are found by two columns, once mirrored
        tree = estimator_of("DecisionTree", task, **{"min_samples_leaf": 5, limit: share})
        found = fit_sets(tree, X, y, weight, rows)
        for mine, model in zip(rows, found.models, strict=True):
            live = mine if weight is None else mine & (weight > 0)
            alone = clone(tree).fit(X[live], y[live], None if weight is None else weight[live])
            assert_same_tree(model.tree_, alone.tree_)
            number = max(2, int(np.ceil(share * live.sum())))
            same = clone(tree).set_params(**{limit: number}).fit(X, y, weighted(weight, live))
            assert same.tree_.model.equals(model.tree_.model)
            of_all = max(2, int(np.ceil(share * N_ROWS)))
            other = clone(tree).set_params(**{limit: of_all}).fit(X, y, weighted(weight, live))
            differ += not other.tree_.model.equals(model.tree_.model)
    assert differ > 0


def weighted(weight, rows):
    """Weights that are zero but for some rows."""
    return (np.ones(N_ROWS) if weight is None else weight) * rows


def assert_same_tree(one, other):
    """The same questions; values to the last digits of the fixed point."""
    for name in ("children_left", "children_right", "feature", "n_node_samples"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.model.threshold, other.model.threshold)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-9)


def test_shares_where_classes_weigh_nothing():
    """Rows of a class of weight zero do not count."""
    X, y, rng = table(10)
    y = np.digitize(y, [0, 2])
    tree = estimator_of("DecisionTree", "Classifier", min_samples_leaf=0.1)
    tree.set_params(class_weight={1: 0.0})
    check(tree, X, y, None, sets(rng))
    alone = clone(tree).set_params(min_samples_leaf=int(np.ceil(0.1 * (y != 1).sum())))
    assert alone.fit(X, y).tree_.model.equals(clone(tree).fit(X, y).tree_.model)


def test_shares_of_forests_are_of_the_table():
    """Not of the bag, which has two rows in three."""
    X, y, rng = table(11)
    weight = rng.integers(0, 2, N_ROWS).astype(float)
    for limit in ("min_samples_leaf", "min_samples_split"):
        forest = estimator_of("RandomForest", "Regressor", **{limit: 0.2})
        number = int(np.ceil(0.2 * (weight > 0).sum()))
        same = clone(forest).set_params(**{limit: number}).fit(X, y, weight)
        for a, b in zip(trees_of(forest.fit(X, y, weight)), trees_of(same), strict=True):
            assert a.equals(b)
            assert a.node_count > 1


@pytest.mark.parametrize("criterion", ["entropy", "poisson"])
def test_logarithms(criterion):
    X, y, rng = table(3)
    task = "Classifier" if criterion == "entropy" else "Regressor"
    y = y > 1 if task == "Classifier" else np.maximum(0, y)
    check(estimator_of("DecisionTree", task, criterion=criterion), X, y, None, sets(rng))


OF_FORESTS = {
    "score": {"oob_score": True},
    "scorer": {"oob_score": lambda y, predicted: float(np.mean(y == predicted))},
    "stopped": {"oob_tol": 0.01, "n_estimators": 60},
    "warm": {"warm_start": True},
}


@pytest.mark.one_of(8)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
@parametrize_pairs(
    kind=["RandomForest", "ExtraTrees"], task=TASKS, parameters=OF_FORESTS, weights=WEIGHTS
)
def test_what_forests_learn(kind, task, parameters, weights):
    X, y, rng = table(4)
    y = np.array(["a", "b", "c"])[np.digitize(y, [0, 2])] if task == "Classifier" else y
    estimator = estimator_of(kind, task, bootstrap=True, n_jobs=2)
    estimator.set_params(**{"n_estimators": 9, **OF_FORESTS[parameters]})
    check(estimator, X, y, WEIGHTS[weights](rng), sets(rng))


def test_forests_of_sets_end_each_at_a_tree_of_its_own():
    X, y, rng = table(16)
    forest = estimator_of("RandomForest", "Regressor", oob_tol=0.01, max_depth=3)
    found = fit_sets(forest.set_params(n_estimators=200), X, y, None, sets(rng))
    lengths = [len(model) for model in found.models]
    assert max(lengths) < 200
    assert len(set(lengths)) > 1


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample"])
def test_out_of_bag_with_class_weights(class_weight):
    X, y, rng = table(12)
    forest = estimator_of("RandomForest", "Classifier", class_weight=class_weight, oob_score=True)
    check(forest.set_params(n_estimators=9), X, y > 2, None, sets(rng))


def test_the_table_is_coded_once(monkeypatch):
    X, y, rng = table(13)
    codings = []
    code = FitPlan.code
    monkeypatch.setattr(
        FitPlan, "code", lambda self, *args: codings.append(self) or code(self, *args)
    )
    for parameters in OF_FORESTS.values():
        forest = estimator_of("RandomForest", "Regressor", **parameters)
        fit_sets(forest.set_params(n_estimators=30), X, y, None, sets(rng))
    assert len(codings) == len(OF_FORESTS)


def test_forests_of_sets_grow_on():
    """Adding trees to the model of a set gives the forest that would have been fitted at once."""
    X, y, rng = table(14)
    forest = estimator_of("RandomForest", "Regressor", warm_start=True, oob_score=True)
    rows = sets(rng)
    found = fit_sets(forest.set_params(n_estimators=20), X, y, None, rows)
    for mine, model in zip(rows, found.models, strict=True):
        whole = clone(forest).set_params(n_estimators=25).fit(X, y, mine.astype(float))
        grown = model.set_params(n_estimators=25).fit(X, y, mine.astype(float))
        assert len(grown) == 25
        assert all(a.equals(b) for a, b in zip(trees_of(whole), trees_of(grown), strict=True))
        np.testing.assert_array_equal(grown.oob_prediction_, whole.oob_prediction_)
        assert grown.oob_score_ == whole.oob_score_


def test_a_scorer_that_fails_is_an_error_of_its_set():
    X, y, rng = table(15)
    rows = sets(rng)[:2]
    calls = []

    def score(y, predicted):
        calls.append(len(calls))
        if len(calls) == 1:
            raise ValueError("no score")
        return 0.25

    forest = estimator_of("RandomForest", "Regressor", oob_score=score)
    found = fit_sets(forest.set_params(n_estimators=20), X, y, None, rows)
    assert str(found.models[0]) == "no score"
    assert found.models[1].oob_score_ == 0.25


def test_bags_without_rows_of_a_set():
    """Ten rows, a few of which are in a bag of a tenth: some sets have none of them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    rows = np.arange(10) != np.arange(10)[:, None]
    rows = np.vstack([rows, ~rows])
    estimator = dtrees.RandomForestRegressor(5, max_samples=0.1, random_state=0)
    check(estimator, X, y, None, rows)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB"):
        check(estimator.set_params(oob_score=True), X, y, None, rows)


def test_a_set_without_weight_is_an_error_of_its_own():
    X, y, rng = table(5)
    rows = np.vstack([np.zeros((1, N_ROWS), dtype=bool), sets(rng)[:1]])
    found = fit_sets(estimator_of("DecisionTree", "Regressor"), X, y, None, rows)
    assert isinstance(found.models[0], ValueError)
    assert found.models[1].tree_.node_count > 1


def test_sets_of_other_rows():
    X, y, _ = table()
    with pytest.raises(ValueError, match="240 rows, but the sets are of 3"):
        fit_sets(estimator_of("DecisionTree", "Regressor"), X, y, None, np.ones((1, 3), bool))


@pytest.mark.one_of(2)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")  # other draws each time
@pytest.mark.parametrize("parameters", [{}, {"oob_score": True}], ids=["together", "apart"])
def test_random_states(parameters):
    """A state that is given is left as it is; without one, all sets have the same draws."""
    X, y, rng = table(6)
    rows = sets(rng)
    state = np.random.RandomState(5)
    forest = estimator_of("RandomForest", "Regressor", random_state=state, **parameters)
    check(forest.set_params(n_estimators=20, max_bins=20), X, y, None, rows)
    np.testing.assert_array_equal(state.random(9), np.random.RandomState(5).random(9))
    check(forest, X, y, None, rows)  # other draws
    found = fit_sets(forest.set_params(random_state=None), X, y, None, rows)
    assert [model.random_state for model in found.models] == [None] * len(rows)
    assert len({model._fit_seed for model in found.models}) == 1
    for number, model in enumerate(found.models):
        values = found.values(number, np.arange(N_ROWS))
        np.testing.assert_array_equal(values[:, 0], model.predict(X))


def test_counts_are_read_once_for_all_sets(monkeypatch):
    """Of Poisson, too: the integers of a set are those of all rows, unless its sum is zero."""
    read = []
    of_numbers = TargetUnits.of_numbers
    monkeypatch.setattr(
        TargetUnits, "of_numbers", lambda *of, **how: read.append(1) or of_numbers(*of, **how)
    )
    X, y, _ = table(7)
    rows = np.arange(N_ROWS) % 4 != np.arange(5)[:, None]
    fit_sets(dtrees.DecisionTreeRegressor(criterion="poisson"), X, np.exp(y), None, rows)
    assert len(read) == 1


def test_a_set_whose_target_is_zero():
    X, y, _ = table(7)
    y = np.where(np.arange(N_ROWS) < 100, 0.0, np.exp(y))
    rows = np.vstack([np.arange(N_ROWS) < 100, np.arange(N_ROWS) >= 50])
    found = fit_sets(dtrees.DecisionTreeRegressor(criterion="poisson"), X, y, None, rows)
    assert "y is not positive" in str(found.models[0])
    assert found.models[1].tree_.node_count > 1


def test_codes_depend_on_few_parameters(monkeypatch):
    iris, run = TrainingTable(*IRIS), threaded(1)

    def coded(seed=0, **parameters):
        plan = FitPlan.of(RandomForestClassifier(random_state=seed, **parameters))
        found = iris.coded(plan, run)
        np.testing.assert_array_equal(found.values, IRIS[1])
        return found.coded

    assert coded() is coded(seed=1, max_depth=3, criterion="entropy")
    assert coded() is not coded(max_bins=20)
    assert coded() is not coded(handle_unknown="error")
    assert coded(categorical_features=[0]) is coded(categorical_features=[0])
    monkeypatch.setattr(training_sets, "SAMPLE_ROWS", 10)
    assert coded() is not coded(seed=1)  # cuts are those of a sample


def test_without_a_random_state_there_is_one_seed():
    iris, run = TrainingTable(*IRIS), threaded(1)
    plans = [FitPlan.of(DecisionTreeClassifier(random_state=seed)) for seed in (None, 5, None)]
    one, given, other = (iris.coded(plan, run).seed for plan in plans)
    assert one == other
    assert given == plans[1].seed()


def test_estimators_share_targets_that_are_equal():
    """That of an estimator is what it makes of the target itself, whoever has asked before."""
    iris, run = TrainingTable(*IRIS), threaded(1)
    weights = None, "balanced", "balanced_subsample", {0: 1.0, 1: 2.0, 2: 3.0}
    estimators = [
        *(DecisionTreeClassifier(class_weight=weight) for weight in weights[:2]),
        DecisionTreeClassifier(class_weight=weights[3]),
        *(
            RandomForestClassifier(class_weight=weight, bootstrap=bootstrap)
            for weight in weights
            for bootstrap in (True, False)
        ),
    ]
    for estimator in estimators:
        plan = FitPlan.of(estimator)
        found, expected = iris.coded(plan, run).target, plan.estimator._encode_target(IRIS[1], None)
        for name in ("y", "w", "class_multiplier"):
            np.testing.assert_equal(getattr(found, name), getattr(expected, name))
        assert found.class_exponent == expected.class_exponent
        other = FitPlan.of(clone(estimator).set_params(criterion="entropy"))
        is_plain = not isinstance(estimator.class_weight, dict)
        assert (iris.coded(other, run).target is found) == is_plain
