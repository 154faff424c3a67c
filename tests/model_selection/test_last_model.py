"""The model of all rows: the same, whether it grows beside those of the splits or when asked."""

import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit

import dtrees
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from dtrees.model_selection import fit_together as together
from dtrees.model_selection.last_model import grows_with_splits, shares_most

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.digitize(X[:, 0] + RNG.normal(size=300), [-0.5, 0.5])
WEIGHT = RNG.integers(1, 4, 300).astype(float)
TREE = dtrees.DecisionTreeClassifier()
SHALLOW = dtrees.DecisionTreeClassifier(max_depth=4)
ONE = ShuffleSplit(1, test_size=0.1, random_state=0)


@pytest.fixture
def grown(monkeypatch):
    """How many models each growth is of."""
    numbers = []
    fit_splits = together.fit_splits

    def counted(estimator, work):
        found = fit_splits(estimator, work)
        numbers.append(len(found.fitted.models))
        return found

    monkeypatch.setattr(together, "fit_splits", counted)
    return numbers


@pytest.mark.parametrize(
    ("estimator", "is_shallow"),
    [
        (TREE, False),
        (SHALLOW, True),
        (dtrees.DecisionTreeClassifier(max_depth=11), False),
        (dtrees.DecisionTreeClassifier(max_leaf_nodes=31), True),
        (dtrees.DecisionTreeClassifier(min_samples_leaf=20), True),
        (dtrees.DecisionTreeClassifier(min_samples_leaf=19), False),
        (dtrees.DecisionTreeClassifier(min_samples_leaf=0.07), True),
        (dtrees.DecisionTreeClassifier(min_samples_leaf=0.06), False),  # 18 rows
        (dtrees.RandomForestRegressor(max_depth=8), True),
        (dtrees.GradientBoostingRegressor(max_depth=3), False),  # they share no node
        (GridSearchCV(SHALLOW, {"max_depth": [1]}), False),
    ],
)
def test_what_shares_most(estimator, is_shallow):
    assert shares_most(estimator, 300) == is_shallow


@pytest.mark.parametrize(
    ("cv", "of_shallow", "of_deep"),
    [
        (ONE, False, False),
        (KFold(2), False, False),
        (KFold(3), True, False),
        (TimeSeriesSplit(5), True, False),
        (KFold(5), True, False),
        (KFold(10), True, True),
    ],
)
def test_few_splits_do_without(cv, of_shallow, of_deep, grown):
    splits = list(cv.split(X))
    for estimator, expected in ((SHALLOW, of_shallow), (TREE, of_deep)):
        assert grows_with_splits(estimator, splits, len(Y)) == expected
        found = cross_validate(estimator, X, Y, cv=splits)
        assert grown.pop() == len(splits) + expected
        assert "final_estimator" not in found
        repr(found)
        assert grown == []
        assert found["final_estimator"].tree_.n_node_samples[0] == 300
        assert grown == [1] * (not expected)
        grown.clear()


@pytest.mark.parametrize("function", [cross_val_score, cross_val_predict])
def test_who_cannot_see_it_does_not_grow_it(function, grown):
    function(TREE, X, Y, cv=10)
    assert grown == [10]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
@pytest.mark.parametrize("cv", [ONE, KFold(3)], ids=["one", "three"])
@pytest.mark.parametrize(
    "estimator",
    [
        TREE,
        dtrees.DecisionTreeClassifier(class_weight="balanced"),
        dtrees.DecisionTreeClassifier(class_weight={0: 3.0}),
        dtrees.RandomForestClassifier(3, random_state=5),
        dtrees.GradientBoostingClassifier(max_iter=3, random_state=5),
    ],
)
def test_it_is_the_model_of_a_fit(estimator, cv, weight):
    params = {} if weight is None else {"sample_weight": weight}
    table, y, given = X.copy(), Y.copy(), clone(estimator)
    if weight is not None:
        params["sample_weight"] = weight.copy()
    found = cross_validate(given, table, y, cv=cv, params=params)
    table[:], y[:] = 0, 1  # it grows from what there was
    given.set_params(min_samples_leaf=100)
    if weight is not None:
        params["sample_weight"][:] = 7
    late, alone = found["final_estimator"], clone(estimator).fit(X, Y, sample_weight=weight)
    trees = zip(trees_of(late), trees_of(alone), strict=True)
    assert all(mine.equals(other) for mine, other in trees)
    assert found["final_estimator"] is late
    assert vars(late).keys() == vars(alone).keys()


def test_draws_are_those_of_the_other_models():
    """Also where nobody has given a seed: it has the bags of the models of the splits."""
    forest = dtrees.RandomForestClassifier(3, max_features=None)
    every = [(np.arange(300), np.arange(9))]
    found = cross_validate(forest, X, Y, cv=every, return_estimator=True)
    (mine,), late = found["estimator"], found["final_estimator"]
    trees = zip(trees_of(mine), trees_of(late), strict=True)
    assert all(own.equals(other) for own, other in trees)


def test_draws_of_a_state_are_those_of_the_other_models():
    """The state is drawn from once, and not when the model is asked for."""
    forest = dtrees.RandomForestClassifier(3, random_state=np.random.RandomState(4))
    every = [(np.arange(300), np.arange(9))]
    found = cross_validate(forest, X, Y, cv=every, return_estimator=True)
    state = forest.random_state.get_state()[1].copy()
    trees = zip(trees_of(found["estimator"][0]), trees_of(found["final_estimator"]), strict=True)
    assert all(own.equals(other) for own, other in trees)
    assert (forest.random_state.get_state()[1] == state).all()


def test_it_tells_what_the_others_have_shared():
    found = cross_validate(TREE, X, Y, cv=3, return_estimator=True)
    report, own = found["estimator"][0].fit_report_, found["final_estimator"].fit_report_
    assert own["shared_nodes"] == report["shared_nodes"]
    assert own.keys() == report.keys()


def test_searches_grow_it_at_once():
    """Whatever they look at may have changed when it is asked for."""
    search = GridSearchCV(SHALLOW, {"max_depth": [1, 3]}, cv=3)
    found = cross_validate(search, X, Y, cv=3)
    assert found._grow is None
    alone = clone(search).fit(X, Y)
    assert found["final_estimator"].best_params_ == alone.best_params_
    assert found["final_estimator"].best_score_ == alone.best_score_


@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_a_fit_that_fails_is_told_when_it_is_asked_for(error_score, monkeypatch):
    found = cross_validate(TREE, X, Y, cv=2, error_score=error_score)

    def fails(estimator, work):
        raise ValueError("not today")

    monkeypatch.setattr(together, "fit_splits", fails)
    if error_score == "raise":
        with pytest.raises(ValueError, match="not today"):
            found["final_estimator"]
        return
    with pytest.warns(FitFailedWarning, match="all rows failed.*not today"):
        final = found["final_estimator"]
    assert not hasattr(final, "tree_")


def test_no_memory_is_no_failed_fit(monkeypatch):
    found = cross_validate(TREE, X, Y, cv=2)

    def fails(estimator, work):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(together, "fit_splits", fails)
        with pytest.raises(MemoryError):
            found["final_estimator"]
    assert found["final_estimator"].tree_.node_count > 1  # once there is memory


@pytest.mark.parametrize("copied", [deepcopy, lambda found: pickle.loads(pickle.dumps(found))])
def test_pickles_have_it(copied):
    found = cross_validate(TREE, X, Y, cv=2)
    again = copied(found)
    assert again.final_estimator is not found.final_estimator
    assert again["final_estimator"].tree_.node_count == found["final_estimator"].tree_.node_count


@pytest.mark.parametrize("copied", [copy, lambda found: found.copy(), lambda found: found | {}])
def test_copies_grow_it_once_and_when_it_is_asked_for(copied):
    found = cross_validate(TREE, X, Y, cv=2)
    assert found._grow is not None
    again = copied(copied(found))
    assert type(again) is type(found)
    assert again.keys() == found.keys()
    assert found._grow is not None
    assert again.final_estimator is found.final_estimator
    assert copied(found).final_estimator is found.final_estimator
    again.pop("fit_time")
    assert "fit_time" in found


def test_unions_have_it():
    found = cross_validate(TREE, X, Y, cv=2, return_estimator=True)
    both = found | {"seed": 3}
    assert list(both) == [*found, "seed"]
    assert both.final_estimator is found.final_estimator
    assert type({"seed": 3} | found) is dict  # of the type of the first, as for any dict
    model = found.final_estimator
    found |= {"seed": 3}
    assert found == both
    assert found.final_estimator is model
    with pytest.raises(TypeError, match="unsupported operand"):
        found | [3]


def test_get_knows_it():
    found = cross_validate(TREE, X, Y, cv=2)
    assert found.get("final_estimator") is found.final_estimator
    assert found.get("test_score") is found["test_score"]
    assert found.get("estimator") is None
    assert found.get("estimator", 3) == 3


@pytest.mark.parametrize("cv", [2, 10], ids=["late", "at once"])
def test_items_are_those_of_arrays(cv):
    """So frames, means over all items and JSON of lists are what they are of scikit-learn's."""
    found = cross_validate(SHALLOW, X, Y, cv=cv, return_train_score=True)
    names = ["fit_time", "score_time", "test_score", "train_score"]
    assert sorted(found) == sorted(dict(found)) == sorted({**found}) == names
    assert all(np.mean(values) >= 0 for values in found.values())
    assert len(json.loads(json.dumps({k: v.tolist() for k, v in found.items()}))) == 4
    pd = pytest.importorskip("pandas")
    assert pd.DataFrame(found).shape == (cv, 4)
    assert found["final_estimator"] is found.final_estimator
    assert "final_estimator" not in found
    with pytest.raises(KeyError):
        found["final"]


def test_threads_that_ask_at_once_have_the_same(monkeypatch):
    found, calls, entered = cross_validate(TREE, X, Y, cv=2), [], threading.Event()
    fit_splits = together.fit_splits

    def waits(estimator, work):
        calls.append(1)
        entered.wait()
        return fit_splits(estimator, work)

    monkeypatch.setattr(together, "fit_splits", waits)
    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(getattr, found, "final_estimator") for _ in range(3)]
        entered.set()
        assert len({id(each.result()) for each in asking}) == 1
    assert len(calls) == 1
