"""scikit-learn's contract for estimators; what is expected to fail is declared, and fails."""

import warnings

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_estimator,
    parametrize_with_checks,
)

from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)

TREES = (DecisionTreeClassifier, DecisionTreeRegressor)
FORESTS = (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
ESTIMATORS = [
    DecisionTreeClassifier(),
    DecisionTreeRegressor(),
    DecisionTreeClassifier(
        criterion="entropy", max_depth=6, max_leaf_nodes=20, max_bins=255, n_jobs=2
    ),
    DecisionTreeRegressor(
        max_features=0.6,
        ccp_alpha=0.001,
        random_state=0,
        min_samples_leaf=0.01,
        handle_unknown="majority",
    ),
]

ESTIMATORS += [
    AdaBoostClassifier(10),
    AdaBoostClassifier(5, max_depth=3, learning_rate=0.5, criterion="entropy"),
    GradientBoostingClassifier(max_iter=20),
    GradientBoostingRegressor(max_iter=20),
    GradientBoostingClassifier(max_iter=5, min_samples_leaf=1, max_leaf_nodes=4),
    GradientBoostingRegressor(
        max_iter=20,
        min_samples_leaf=1,
        min_split_gain=0.01,
        l1_regularization=0.1,
        max_delta_step=9.0,
        path_smooth=1.0,
        colsample_bytree=0.7,
        random_state=0,
    ),
]

# Without bags, rows of weight 2 are rows that stand there twice: nothing is expected to fail.
ESTIMATORS += [kind(n_estimators=5, bootstrap=False) for kind in FORESTS]


def bags_belong_to_row_numbers(forest) -> dict[str, str]:
    """What cannot hold with bags: rows that are repeated or left out are in other bags."""
    names = ("dense", "sparse")
    if not (forest.bootstrap or isinstance(forest, IsolationForest)):
        return {}  # AdaBoost of numbers has bags, too
    return {
        f"check_sample_weight_equivalence_on_{name}_data": "bags are drawn by row" for name in names
    }


@pytest.mark.one_of(6)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore:alpha is of loss='huber' only")  # a check sets any alpha
@parametrize_with_checks(ESTIMATORS)
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", [AdaBoostRegressor, IsolationForest, *FORESTS])
def test_forests_with_bags(kind):
    forest = kind(n_estimators=5)
    if kind in FORESTS:
        forest.set_params(bootstrap=True)
    declared = bags_belong_to_row_numbers(forest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(forest, on_fail=None, expected_failed_checks=declared)
    names = {"passed": [], "xfail": [], "failed": [], "skipped": []}
    for result in results:
        names[result["status"]].append(result["check_name"])
    assert not names["failed"]
    assert sorted(names["xfail"]) == sorted(declared)  # one that passes need not be declared
    assert len(declared) == 2
    assert len(names["passed"]) > 40
    assert all("array_api" in name for name in names["skipped"])


@pytest.mark.parametrize("kind", TREES)
def test_nothing_fails_and_nothing_is_expected_to(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(kind(), on_fail=None)
    assert len(results) > 40
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    for result in results:
        if result["status"] == "skipped":  # what scikit-learn itself does not test here
            assert "array_api" in result["check_name"], result


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", [AdaBoostClassifier, AdaBoostRegressor, *TREES, *FORESTS])
def test_column_names(kind):
    # scikit-learn runs this on its own estimators only
    check_dataframe_column_names_consistency(kind.__name__, kind())
