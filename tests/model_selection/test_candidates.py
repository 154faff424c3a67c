"""Cells of a growth: which of them are the same trees."""

import numpy as np
import pytest
import sklearn.model_selection
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, ParameterGrid, ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import dtrees
from dtrees import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from dtrees.core.membership.resampling import of_sets
from dtrees.estimators import training_sets
from dtrees.estimators.boosting import shortened
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import trees_of
from dtrees.estimators.training_sets import TrainingTable, fit_table
from dtrees.model_selection import (
    GridSearchCV,
    cost_complexity_cv,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    nested_standard_error,
    validation_surface,
)
from dtrees.model_selection.candidates import Cells, growths_of, key_of
from dtrees.model_selection.fitted_splits import fit_splits
from dtrees.model_selection.prefitted_proxy import RowNumbers
from dtrees.model_selection.prepare import SplitTable
from dtrees.typing import serial
from tests.estimators.test_boosted_sets import fault_of
from tests.model_selection.test_search import CANCER, CLASSIFIER, IRIS, LIMITS

TREE = dtrees.DecisionTreeClassifier(random_state=0)


@settings(max_examples=max(6, settings.default.max_examples // 40))
@given(seed=st.integers(0, 10**6), n_trees=st.sampled_from([None, 1, 3]))
def test_distinct_models_are_those_of_different_trees(seed, n_trees):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 5, (40, 3)).astype(float), rng.integers(0, 3, 40)
    grid = {
        "max_depth": [1, 3, None],
        "min_samples_split": [2, 5, 0.3],
        "max_leaf_nodes": [None, int(rng.integers(2, 8))],
        "ccp_alpha": [0.0, float(rng.random() / 20)],
        "min_impurity_decrease": [0.0, float(rng.random() / 20)],
    }
    estimator = TREE
    if n_trees is not None:
        estimator = dtrees.RandomForestClassifier(2, random_state=seed)
        grid["n_estimators"] = list(range(1, n_trees + 1))
    (growth,), _ = growths_of(estimator, list(ParameterGrid(grid)))
    sets = of_sets(np.stack([rng.random(40) < 0.7, np.arange(40) < 30]))
    cells = Cells(growth, fit_table(growth.estimator, TrainingTable(X, y, None), sets))
    for number in range(2):
        first, place = cells.distinct(number)
        models = [trees_of(cells.model(candidate, number)) for candidate in range(len(place))]
        for candidate, model in enumerate(models):
            assert first[place[candidate]] <= candidate
            own = models[first[place[candidate]]]
            assert len(own) == len(model)
            assert all(a.equals(b) for a, b in zip(own, model, strict=True))
        of_first = [b"".join(t.test.tobytes() + bytes([255]) for t in models[i]) for i in first]
        assert len(set(of_first)) == len(first) > 1


RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 3)).round(1)
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + RNG.normal(size=N) / 2, [-0.6, 0.6])]
NUMBERS = X[:, 1] * X[:, 2] + RNG.normal(size=N)
TABLES = {"two": (X, LABELS == "b"), "three": (X, LABELS), "numbers": (X, NUMBERS)}
SCORERS = {
    "two": ["accuracy", "roc_auc", "average_precision", "neg_log_loss", "f1"],
    "three": ["accuracy", "neg_log_loss", "roc_auc_ovr", "f1_macro"],
    "numbers": ["r2", "neg_mean_absolute_error"],
}


def estimator_of(kind, **how):
    common = {"max_iter": 6, "min_samples_leaf": 5, "random_state": 0, **how}
    if kind == "numbers":
        return GradientBoostingRegressor(**common)
    return GradientBoostingClassifier(**common)


def separate(estimator, y, train, weight=None):
    """The fit in which the rows outside of a training side weigh nothing."""
    own = np.zeros(N)
    own[train] = 1 if weight is None else weight[train]
    return clone(estimator).fit(X, y, sample_weight=own)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", sorted(TABLES))
@pytest.mark.parametrize("how", [{}, {"early_stopping": True, "n_iter_no_change": 1}])
def test_scores_are_those_of_separate_fits(kind, how):
    _, y = TABLES[kind]
    estimator = estimator_of(kind, **how)
    splits = list(ShuffleSplit(3, random_state=0).split(X))
    found = cross_validate(
        estimator,
        X,
        y,
        cv=splits,
        scoring=SCORERS[kind],
        return_train_score=True,
        return_estimator=True,
    )
    for number, (train, test) in enumerate(splits):
        model = separate(estimator, y, train)
        own = found["estimator"][number]
        assert own.n_iter_ == model.n_iter_
        assert own.fit_report_["models_together"] == 3
        np.testing.assert_array_equal(own.predict(X), model.predict(X))
        for name in SCORERS[kind]:
            scorer = get_scorer(name)
            assert found[f"test_{name}"][number] == scorer(model, X[test], y[test])
            assert found[f"train_{name}"][number] == scorer(model, X[train], y[train])
    whole = clone(estimator).fit(X, y)
    np.testing.assert_array_equal(found["final_estimator"].predict(X), whole.predict(X))


@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from(sorted(TABLES)))
def test_weights_and_groups(seed, kind):
    rng = np.random.default_rng(seed)
    _, y = TABLES[kind]
    estimator = estimator_of(kind, max_iter=3)
    weight, groups = rng.random(N), rng.integers(0, 9, N)
    found = cross_validate(
        *(estimator, X, y),
        groups=groups,
        cv=GroupKFold(3),
        params={"sample_weight": weight},
        return_estimator=True,
        return_indices=True,
    )
    for train, model in zip(found["indices"]["train"], found["estimator"], strict=True):
        expected = separate(estimator, y, train, weight)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("kind", sorted(TABLES))
def test_without_bins_models_are_those_of_the_training_rows(kind):
    _, y = TABLES[kind]
    estimator, cv = estimator_of(kind, max_bins=None), KFold(3, shuffle=True, random_state=0)
    ours = cross_val_score(estimator, X, y, cv=cv)
    theirs = sklearn.model_selection.cross_val_score(estimator, X, y, cv=cv)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_held_out_predictions(method):
    estimator, cv = estimator_of("three", max_bins=None), KFold(3, shuffle=True, random_state=0)
    ours = cross_val_predict(estimator, X, LABELS, cv=cv, method=method)
    theirs = sklearn.model_selection.cross_val_predict(estimator, X, LABELS, cv=cv, method=method)
    np.testing.assert_array_equal(ours, theirs)


def test_a_scorer_that_looks_at_the_model():
    def n_trees(model, rows, y):
        assert rows.shape[1] == X.shape[1]
        return len(model.forest_)

    found = cross_validate(estimator_of("three"), X, LABELS, scoring=n_trees, cv=3)
    assert found["test_score"].tolist() == [18, 18, 18]


def test_equal_shares_are_told_apart_by_raw_predictions():
    """Scorers of ranks ask for `decision_function` first, where shares are all 1 or 0."""
    X = np.repeat(np.arange(8.0), 20)[:, None]
    y = (X[:, 0] > 3) ^ (np.arange(160) % 20 < np.minimum(X[:, 0], 7 - X[:, 0]))
    estimator = GradientBoostingClassifier(
        max_iter=1, learning_rate=40.0, min_samples_leaf=1, max_bins=None, l2_regularization=0
    )
    cv = KFold(4, shuffle=True, random_state=0)
    how = {"cv": cv, "scoring": ["roc_auc", "average_precision"]}
    ours = cross_validate(estimator, X, y, **how, return_estimator=True)
    theirs = sklearn.model_selection.cross_validate(estimator, X, y, **how)
    shares = ours["final_estimator"].predict_proba(X)[:, 1]
    raw = ours["final_estimator"].decision_function(X)
    assert len(np.unique(shares)) < len(np.unique(raw))
    for name in ("test_roc_auc", "test_average_precision"):
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize("fraction", [0.3, None])
@pytest.mark.parametrize("use_best_model", [True, False])
@pytest.mark.parametrize("max_iter", [1, 4, 6])
def test_a_prefix_is_a_fit_of_fewer_iterations(fraction, use_best_model, max_iter):
    estimator = estimator_of(
        "three",
        early_stopping=True,
        n_iter_no_change=2,
        validation_fraction=fraction,
        use_best_model=use_best_model,
    )
    whole, shorter = clone(estimator).fit(X, LABELS), clone(estimator).set_params(max_iter=max_iter)
    prefix = shortened(shorter, whole)
    assert fault_of(prefix, clone(shorter).fit(X, LABELS)) == ""
    assert prefix.get_params() == shorter.get_params()


def test_candidates_are_answered_in_any_order():
    splits = list(KFold(2).split(X))
    table = TrainingTable(X, NUMBERS, None)
    grown = fit_splits(estimator_of("numbers"), SplitTable(table, splits))
    candidates = [{"max_iter": n} for n in (6, 2, 4)]
    cells = grown.cells(estimator_of("numbers"), candidates)
    rows = splits[0][1]
    for place in (0, 1, 2, 1, 0):
        expected = cells.model(place, 0).predict(X[rows])
        np.testing.assert_array_equal(cells.values(place, 0, rows)[:, 0], expected)


@pytest.mark.parametrize("with_train", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_of_all_sides_walk_when_one_is_asked_for(n_jobs, with_train, monkeypatch):
    splits = list(KFold(3).split(X))
    estimator = estimator_of("three", n_jobs=n_jobs)
    grown = fit_splits(estimator, SplitTable(TrainingTable(X, LABELS, None), splits))
    cells = grown.cells(estimator, [{}])
    cells.bring(list(RowNumbers(N, splits).sides(with_train)))
    walks = []
    stages_of = type(cells.fitted).stages_of
    monkeypatch.setattr(
        type(cells.fitted), "stages_of", lambda *args: walks.append(args) or stages_of(*args)
    )
    for number, (_, test) in enumerate(splits):
        model = cells.model(0, number)
        np.testing.assert_array_equal(cells.values(0, number, test), model.predict_proba(X[test]))
        assert len(walks) == 3 * (1 + with_train)
    train, _ = splits[2]
    np.testing.assert_array_equal(cells.values(0, 2, train), model.predict_proba(X[train]))
    assert len(walks) == (6 if with_train else 4)


@pytest.mark.parametrize("most", [0, 2**13])
def test_rows_of_one_side_walk_on_all_threads(most, monkeypatch):
    splits = list(ShuffleSplit(1, random_state=0).split(X))
    monkeypatch.setattr("dtrees.model_selection.candidates.MANY_ROWS", most)
    estimator = estimator_of("three", n_jobs=2)
    grown = fit_splits(estimator, SplitTable(TrainingTable(X, LABELS, None), splits, None, False))
    cells, runs = grown.cells(estimator, [{}]), []
    stages_of = type(cells.fitted).stages_of
    monkeypatch.setattr(
        type(cells.fitted), "stages_of", lambda *args: runs.append(args[3]) or stages_of(*args)
    )
    cells.bring(list(RowNumbers(N, splits).sides()))
    test = splits[0][1]
    expected = cells.model(0, 0).predict_proba(X[test])
    np.testing.assert_array_equal(cells.values(0, 0, test), expected)
    assert runs == [None if most == 0 else serial]


class TestErrors:
    y = np.where(np.arange(N) < 60, 0.0, 1.0)  # of which gamma's fits refuse the first half

    def test_failed_fits_have_the_score_of_failures(self):
        estimator = GradientBoostingRegressor("poisson", max_iter=2)
        splits = [(np.arange(60), np.arange(60, N)), (np.arange(30, N), np.arange(30))]
        with pytest.warns(FitFailedWarning, match="not all of it may be zero"):
            found = cross_validate(estimator, X, self.y, cv=splits, error_score=-7.0)
        assert found["test_score"][0] == -7.0
        assert found["test_score"][1] != -7.0
        assert found["final_estimator"].n_iter_ == 2

    def test_errors_are_raised(self):
        estimator = GradientBoostingRegressor("poisson", max_iter=2)
        splits = [(np.arange(60), np.arange(60, N))]
        with pytest.raises(ValueError, match="not all of it may be zero"):
            cross_validate(estimator, X, self.y, cv=splits, error_score="raise")

    def test_a_scorer_of_early_stopping_that_fails_fails_the_fit(self):
        def broken(model, X, y):
            raise RuntimeError("no score")

        estimator = estimator_of("two", early_stopping=True, scoring=broken)
        with pytest.raises(RuntimeError, match="no score"):
            cross_validate(estimator, X, LABELS == "b", cv=2, error_score="raise")

    @pytest.mark.parametrize("ask", [validation_surface, cost_complexity_cv])
    def test_sizes_of_trees_are_not_those_of_boosted_models(self, ask):
        with pytest.raises(TypeError, match="GradientBoostingRegressor is a boosted model"):
            ask(estimator_of("numbers"), X, NUMBERS)


GRID = {"max_iter": [6, 2, 4], "learning_rate": [0.1, 0.5]}


class TestSearches:
    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("kind", sorted(TABLES))
    @pytest.mark.parametrize("how", [{}, {"early_stopping": True, "n_iter_no_change": 1}])
    def test_every_cell_is_a_separate_fit(self, kind, how):
        _, y = TABLES[kind]
        splits = list(KFold(3, shuffle=True, random_state=0).split(X))
        estimator = estimator_of(kind, **how)
        search = GridSearchCV(
            estimator, GRID, cv=splits, scoring=SCORERS[kind], refit=SCORERS[kind][0]
        )
        results = search.fit(X, y).cv_results_
        for place, candidate in enumerate(results["params"]):
            for number, (train, test) in enumerate(splits):
                model = separate(clone(estimator).set_params(**candidate), y, train)
                for name in SCORERS[kind]:
                    expected = get_scorer(name)(model, X[test], y[test])
                    assert results[f"split{number}_test_{name}"][place] == expected
        best = clone(estimator).set_params(**search.best_params_).fit(X, y)
        np.testing.assert_array_equal(search.predict(X), best.predict(X))
        assert search.best_estimator_.n_iter_ == best.n_iter_
        np.testing.assert_array_equal(
            search.best_estimator_.validation_score_, best.validation_score_
        )

    def test_iterations_are_decided_on_one_growth(self, monkeypatch):
        from dtrees.core.grow import boosting

        grown, iterate = [], boosting.Booster.iterate
        monkeypatch.setattr(
            boosting.Booster, "iterate", lambda self: grown.append(1) or iterate(self)
        )
        grid = {"max_iter": [1, 2, 3, 4, 5, 6]}
        search = GridSearchCV(estimator_of("numbers"), grid, cv=2).fit(X, NUMBERS)
        assert len(grown) == 3 * 6  # two splits and all rows
        report = search.best_estimator_.fit_report_
        assert report["models_together"] == 3

    @pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
    def test_a_wrong_number_of_iterations_fails_its_fits(self):
        search = GridSearchCV(estimator_of("two"), {"max_iter": [2, 0]}, cv=2)
        with pytest.warns(FitFailedWarning, match="max_iter"):
            search.fit(X, LABELS == "b")
        assert np.isnan(search.cv_results_["mean_test_score"][1])

    def test_searches_within_a_cross_validation(self):
        search = GridSearchCV(estimator_of("two"), {"max_iter": [1, 3]}, cv=2)
        y = LABELS == "b"
        splits = list(KFold(2, shuffle=True, random_state=0).split(X))
        found = cross_validate(search, X, y, cv=splits, scoring="roc_auc", return_estimator=True)
        for number, (_, test) in enumerate(splits):
            model = found["estimator"][number]
            assert found["test_score"][number] == get_scorer("roc_auc")(model, X[test], y[test])


def test_nested_standard_errors():
    found = nested_standard_error(
        estimator_of("numbers", max_iter=2), X, NUMBERS, cv=3, n_repeats=1, random_state=0
    )
    assert np.isfinite(found.standard_error)


def test_one_growth_for_all_limits(monkeypatch):
    fits, codings = [], []
    fit_table, code = training_sets.fit_table, FitPlan.code
    monkeypatch.setattr(
        "dtrees.model_selection.search.fit_table",
        lambda estimator, *args, **how: (
            fits.append(estimator) or fit_table(estimator, *args, **how)
        ),
    )
    monkeypatch.setattr(FitPlan, "code", lambda *args: codings.append(args) or code(*args))
    GridSearchCV(CLASSIFIER, LIMITS).fit(*CANCER)
    assert len(fits) == len(codings) == 1
    grid = LIMITS | {"criterion": ["gini", "entropy"], "min_samples_leaf": [1, 2]}
    GridSearchCV(CLASSIFIER, grid).fit(*CANCER)
    assert len(fits) == 1 + 4 + 1  # and the best one, to all rows
    assert len(codings) == 2


def test_candidates_are_grouped_by_all_but_limits():
    candidates = [
        {"criterion": "gini", "max_depth": 3, "ccp_alpha": 0.1},
        {"criterion": "entropy", "max_depth": 3},
        {"criterion": "gini", "max_depth": 8, "min_samples_split": 9},
        {"criterion": "gini", "max_depth": 0},
    ]
    growths, errors = growths_of(CLASSIFIER, candidates)
    assert [list(growth.places) for growth in growths] == [[0, 2], [1]]
    assert list(errors) == [3]
    assert "'max_depth' parameter" in str(errors[3])
    both, alone = growths
    assert (both.is_whole, alone.is_whole) == (False, True)
    grown = both.estimator.get_params()
    assert (grown["criterion"], grown["max_depth"], grown["min_samples_split"]) == ("gini", 8, 2)
    assert (grown["max_leaf_nodes"], grown["ccp_alpha"]) == (None, 0.0)
    for number, place in enumerate(both.places):
        asked = CLASSIFIER.get_params() | candidates[place]
        assert both.estimator_of(number).get_params() == asked
    assert CLASSIFIER.get_params()["max_depth"] is None  # the given one is as it was


LIMIT = {
    "max_depth": st.sampled_from([1, 2, 3, None]),
    "min_samples_split": st.sampled_from([2, 9, 0.3]),
    "min_impurity_decrease": st.sampled_from([0.0, 0.01]),
    "max_leaf_nodes": st.sampled_from([2, 5, None]),
    "ccp_alpha": st.sampled_from([0.0, 0.02]),
}


@settings(max_examples=max(15, settings.default.max_examples // 20))
@given(st.lists(st.fixed_dictionaries({}, optional=LIMIT), min_size=2, max_size=4))
def test_every_candidate_is_cut_from_the_growth_of_all(candidates):
    X, y = IRIS[0][:, 2:], IRIS[1]
    (growth,), errors = growths_of(CLASSIFIER, candidates)
    assert not errors
    grown = growth.estimator.fit(X, y).tree_.model
    limits = growth.limits(len(y))
    assert growth.has_shares() == any(
        "min_samples_split" in c and c["min_samples_split"] == 0.3 for c in candidates
    )
    for number in range(len(candidates)):
        alone = growth.estimator_of(number).fit(X, y).tree_.model
        assert limits[number].prune(grown).equals(alone)


def test_trees_of_forests_are_decided_later_too():
    forest = RandomForestClassifier(7, random_state=0)
    (growth,), _ = growths_of(forest, [{"n_estimators": 2}, {"max_depth": 3}])
    assert growth.n_trees() == [2, 7]
    assert growth.estimator.n_estimators == 7
    apart, _ = growths_of(forest.set_params(oob_score=True), [{"n_estimators": 2}, {}])
    assert [growth.is_whole for growth in apart] == [True, True]


def test_values_that_have_no_hash_are_compared_as_well():
    weights = [{"class_weight": {0: 1.0}, "max_depth": depth} for depth in (1, 2)]
    growths, _ = growths_of(CLASSIFIER, [*weights, {"class_weight": {0: 2.0}}])
    assert [list(growth.places) for growth in growths] == [[0, 1], [2]]


def test_what_cannot_be_pickled_is_a_value_like_others():
    """A lambda or an object of a local class equals itself; others are told apart by value."""

    class Own:
        pass

    first, other, own = (lambda y, p: 1.0), (lambda y, p: 1.0), Own()
    values = [first, other, first, own, own, {0: 1.0}, {0: 1.0}, 1, 1.0, True]
    keys = [key_of({"name": value}) for value in values]
    numbers = [keys.index(key) for key in keys]
    assert numbers == [0, 1, 0, 3, 3, 5, 5, 7, 8, 9]


@pytest.mark.parametrize("is_pipeline", [False, True], ids=["forest", "pipeline"])
def test_a_search_over_a_function_of_no_name(is_pipeline):
    grid = {"oob_score": [lambda y, predicted: 0.25], "max_depth": [1, 2]}
    forest = RandomForestClassifier(30, random_state=0)
    if is_pipeline:
        grid = {f"forest__{name}": values for name, values in grid.items()}
        forest = Pipeline([("scale", StandardScaler()), ("forest", forest)])
    ours = GridSearchCV(forest, grid, cv=2).fit(*IRIS)
    plain = GridSearchCV(forest, dict([grid.popitem()]), cv=2).fit(*IRIS)
    names = ("mean_test_score", "rank_test_score")
    assert all((ours.cv_results_[name] == plain.cv_results_[name]).all() for name in names)
    best = ours.best_estimator_[-1] if is_pipeline else ours.best_estimator_
    assert best.oob_score_ == 0.25
