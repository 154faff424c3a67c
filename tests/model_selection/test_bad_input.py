"""Input that is strange or wrong: what comes of it is what comes of it in scikit-learn's functions.

Both are called with the same estimator of dtrees; results, errors and warnings are compared.
"""

import logging
import re
import warnings
from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning, FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score

import dtrees
import dtrees.model_selection as ours
from dtrees.core.grow.forest import ForestGrowth

N = 150
ROWS = np.arange(N)
X, Y = (values[np.random.default_rng(0).permutation(N)] for values in load_iris(return_X_y=True))
Z = X[:, 0] + X[:, 2] * X[:, 3]
BY_CLASS = np.argsort(Y, kind="stable")  # 50 rows each
TREE = dtrees.DecisionTreeClassifier(max_depth=3, random_state=0)
REGRESSOR = dtrees.DecisionTreeRegressor(max_depth=3, random_state=0)
A, B = ROWS[:75], ROWS[75:]
HALVES = [(A, B), (B, A)]
FUNCTIONS = ("cross_validate", "cross_val_score", "cross_val_predict", "shares")
FINAL = "The fit to all rows failed"


def mask(rows):
    return np.isin(ROWS, rows)


def changed(values, value):
    """One row is other than it should be."""
    kind = object if value is None or value is pd.NA else float
    values = np.array(values, dtype=kind)
    values[3] = value
    return values


def fails(estimator, X, y):
    raise RuntimeError("no score today")


def fails_sometimes(estimator, X, y):
    if len(X) == 50 and y[0] == Y[0]:
        raise RuntimeError("no score today")
    return 1.0


def of_results(estimator, X, y):
    return {"a": 1.0, "b": fails_sometimes(estimator, X, y)}


class NoEstimator:
    pass


SPLITS = {
    "test sides overlap": [(ROWS[:100], B), (B, ROWS[:100])],
    "training and test side overlap": [(ROWS[:100], ROWS[:100]), (B, B)],
    "a row in no training set": [(ROWS[:50], B), (ROWS[60:100], ROWS[:50])],
    "empty training side": [(A[:0], A), (A, B)],
    "empty training side, a list": [([], A), (A, B)],
    "empty sides": [(A[:0], A[:0])],
    "no splits": [],
    "out of range": [(np.r_[A, N], B), (B, A)],
    "test out of range": [(A, np.r_[B, N]), (B, A)],
    "too negative": [(np.r_[A, -N - 1], B), (B, A)],
    "negative": [(A - N, B), (B, A - N)],
    "a row twice": [(np.r_[A, -N], B), (B, A)],
    "masks": [(mask(A), mask(B)), (mask(B), mask(A))],
    "masks that are short": [(mask(A)[:100], mask(B)), (mask(B), mask(A))],
    "masks that are lists": [(mask(A).tolist(), mask(B).tolist())],
    "numbers that are no integers": [(A + 0.0, B)],
    "test numbers that are no integers": [(A, B + 0.0)],
    "two dimensions": [(A[:, None], B)],
    "strings": [(np.array(["a", "b"]), B)],
    "lists": [(A.tolist(), B.tolist()), (B.tolist(), A.tolist())],
    "lists of lists": [[A, B], [B, A]],
    "slices": [(slice(0, 75), slice(75, N))],
}
CASES = {
    **{f"splits: {name}": (TREE, X, Y, {"cv": splits}) for name, splits in SPLITS.items()},
    "numbers, empty training side": (REGRESSOR, X, Z, {"cv": SPLITS["empty training side"]}),
    "groups missing": (TREE, X, Y, {"cv": theirs.GroupKFold(3)}),
    "groups not needed": (TREE, X, Y, {"cv": 3, "groups": ROWS}),
    "groups few": (TREE, X, Y, {"cv": theirs.GroupKFold(3), "groups": ROWS % 2}),
    "one fold": (TREE, X, Y, {"cv": 1}),
    "no fold": (TREE, X, Y, {"cv": 0}),
    "cv is a float": (TREE, X, Y, {"cv": 2.5}),
    "cv is a string": (TREE, X, Y, {"cv": "five"}),
    "more folds than rows": (TREE, X, Y, {"cv": 1000}),
    "more folds than rows of a class": (TREE, X, (BY_CLASS < 3).astype(int), {"cv": 5}),
    "more folds than rows of any class": (TREE, X[:6], np.arange(6) // 2, {"cv": 3}),
    "unknown scorer": (TREE, X, Y, {"scoring": "nope"}),
    "scoring is a number": (TREE, X, Y, {"scoring": 3}),
    "no scorers": (TREE, X, Y, {"scoring": []}),
    "a scorer twice": (TREE, X, Y, {"scoring": ["accuracy", "accuracy"]}),
    "several scorers": (TREE, X, Y, {"scoring": ["accuracy", "f1_macro"]}),
    "a metric, not a scorer": (TREE, X, Y, {"scoring": accuracy_score}),
    "a scorer of two classes": (TREE, X, Y, {"scoring": "roc_auc"}),
    "a scorer of classes for numbers": (REGRESSOR, X, Z, {"scoring": "accuracy"}),
    "a scorer of numbers for classes": (TREE, X, Y, {"scoring": "r2"}),
    "a scorer returns a string": (TREE, X, Y, {"scoring": lambda estimator, X, y: "good"}),
    "a scorer returns None": (TREE, X, Y, {"scoring": lambda estimator, X, y: None}),
    "y short": (TREE, X, Y[:-1], {}),
    "y long": (TREE, X, np.r_[Y, 0], {}),
    "no y": (TREE, X, None, {}),
    "y continuous for classes": (TREE, X, Z + 0.01, {}),
    "y is a column": (TREE, X, Y[:, None], {}),
    "y is a frame": (REGRESSOR, X, pd.DataFrame({"y": Z}), {}),
    "y has two columns": (REGRESSOR, X, np.c_[Z, Z], {}),
    "y is a number": (REGRESSOR, X, 3.0, {}),
    "y is a list": (TREE, X, Y.tolist(), {}),
    "y of one class": (TREE, X, np.zeros(N), {}),
    "y of strings": (TREE, X, np.array(["a", "b", "c"])[Y], {}),
    "y categorical": (TREE, X, pd.Series(list("abc"), dtype="category").take(Y), {}),
    "y of pandas' strings": (TREE, X, pd.Series(list("abc"), dtype="string").take(Y), {}),
    "X of one dimension": (TREE, X[:, 0], Y, {}),
    "X of three dimensions": (TREE, X[:, :, None], Y, {}),
    "X empty": (TREE, X[:0], Y[:0], {}),
    "X without columns": (TREE, X[:, :0], Y, {}),
    "X of a row": (TREE, X[:1], Y[:1], {"cv": 2}),
    "no X": (TREE, None, Y, {}),
    "X a string": (TREE, "abc", Y, {}),
    "X a list": (TREE, X.tolist(), Y, {}),
    "X infinite": (TREE, np.where(X > 6, np.inf, X), Y, {}),
    "frames of other indices": (
        TREE, pd.DataFrame(X, index=3 * ROWS[::-1]), pd.Series(Y, index=ROWS + 5), {}
    ),
    "frames of indices that repeat": (
        TREE, pd.DataFrame(X, index=ROWS // 2), pd.Series(Y, index=ROWS // 3), {}
    ),
    "weights of zero": (TREE, X, Y, {"params": {"sample_weight": np.zeros(N)}}),
    "weights of zero in a split": (
        TREE, X, Y, {"cv": HALVES, "params": {"sample_weight": mask(A) * 1.0}}
    ),
    "weights of strings": (TREE, X, Y, {"params": {"sample_weight": np.array(["a"] * N)}}),
    "weights are None": (TREE, X, Y, {"params": {"sample_weight": None}}),
    "weights of another index": (
        TREE, X, Y, {"params": {"sample_weight": pd.Series(ROWS % 3, index=ROWS[::-1])}}
    ),
    "unknown params": (TREE, X, Y, {"params": {"weights": np.ones(N)}}),
    "params is a list": (TREE, X, Y, {"params": ["sample_weight"]}),
    "n_jobs is a string": (TREE, X, Y, {"n_jobs": "many"}),
    "pre_dispatch is None": (TREE, X, Y, {"pre_dispatch": None}),
    "another estimator": (Ridge(), X, Z, {}),
    "no estimator": (NoEstimator(), X, Y, {}),
    "None": (None, X, Y, {}),
    "a class": (dtrees.DecisionTreeClassifier, X, Y, {}),
    "a fitted estimator": (clone(TREE).fit(X[A], Y[A] == 1), X, Y, {}),
    "a wrong parameter": (clone(TREE).set_params(max_depth=-1), X, Y, {}),
    "a wrong random state": (clone(TREE).set_params(random_state="x"), X, Y, {}),
    "what is not supported": (clone(TREE).set_params(monotonic_cst=[1, 0, 0, 0]), X, Y, {}),
}  # fmt: skip
OF_SCORERS = {
    "fails": {"scoring": fails},
    "sometimes": {"scoring": fails_sometimes},
    "one of two": {"scoring": {"a": fails_sometimes, "b": "accuracy"}},
    "train": {"scoring": fails_sometimes, "return_train_score": True},
    "results": {"scoring": of_results},
}
NO_FINAL = {  # some splits have models, all rows have none
    "y nan": (REGRESSOR, X, changed(Z, np.nan), {}),
    "y infinite": (REGRESSOR, X, changed(Z, np.inf), {}),
    "y None": (TREE, X, changed(Y, None), {"cv": theirs.KFold(3)}),
    "y NA": (REGRESSOR, X, pd.Series(changed(Y, pd.NA)).astype("Int64"), {}),
    "y nan, in no split": (REGRESSOR, X, changed(Z, np.nan), {"cv": [(B[:50], B[50:])]}),
    "y nan, in no training side": (REGRESSOR, X, changed(Z, np.nan), {"cv": [(B, A), (B[:9], B)]}),
    "weights negative": (TREE, X, Y, {"params": {"sample_weight": changed(np.ones(N), -1)}}),
    "weights nan": (TREE, X, Y, {"params": {"sample_weight": changed(np.ones(N), np.nan)}}),
}


def said(text):
    """A message without tracebacks: what failed, how often, and why."""
    lines = str(text).strip().splitlines() or [""]
    if not any(line.startswith("Traceback") for line in lines):
        return re.sub(r" at 0x\w+", "", "\n".join(lines))
    why = re.compile(r"\d+ fits|\w+(Error|Warning):")
    return [lines[0], *filter(why.match, lines[1:])]


def outcome(module, function, estimator, X, y, how):
    """What is returned or raised, and warnings."""
    how = {"cv": 3, **how}
    how["cv"] = how["cv"]() if isinstance(how["cv"], partial) else how["cv"]
    if function == "shares":
        how["method"] = "predict_proba"
    call = getattr(module, "cross_val_predict" if function == "shares" else function)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = call(estimator, X, y, **how)
        except Exception as error:
            result = error
    return result, sorted({(w.category.__name__, str(said(w.message))) for w in heard})


def assert_same(one, other):
    if isinstance(other, Exception):
        assert type(one) is type(other), one
        assert said(one) == said(other)
        return
    if not isinstance(other, dict):
        one, other = {"": one}, {"": other}
    for name, values in other.items():
        if not name.endswith("_time"):
            assert np.asarray(one[name]).dtype == np.asarray(values).dtype
            if np.asarray(values).dtype.kind == "f":  # means of numbers: up to their fixed point
                np.testing.assert_allclose(one[name], values, rtol=1e-12, err_msg=name)
            else:
                assert str(one[name]) == str(values)


def compare(function, estimator, X, y, how):
    """Compare with scikit-learn's function; what both have said, and ours has returned."""
    mine, heard = outcome(ours, function, estimator, X, y, how)
    other, expected = outcome(theirs, function, estimator, X, y, how)
    assert_same(mine, other)
    of_final = [warning for warning in heard if FINAL in warning[1]]
    assert [warning for warning in heard if warning not in of_final] == expected
    return mine, of_final


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("case", "function"),
    [
        (case, function)
        for case, (*_, how) in CASES.items()
        for function in (FUNCTIONS[:2] if "scoring" in how else FUNCTIONS)
        # says that it takes None, and then does not
        if (case, function) != ("pre_dispatch is None", "cross_val_score")
    ],
)
def test_as_scikit_learn(case, function):
    estimator, X, y, how = CASES[case]
    found, of_final = compare(function, estimator, X, y, how)
    assert of_final == []
    if isinstance(found, dict):
        assert hasattr(found["final_estimator"], "n_features_in_")


@pytest.mark.one_of(5)
@pytest.mark.parametrize("error_score", [np.nan, -1, "raise", None, "other"])
@pytest.mark.parametrize("case", OF_SCORERS)
def test_failures_of_scorers(case, error_score):
    compare("cross_validate", TREE, X, Y, {**OF_SCORERS[case], "error_score": error_score})
    if case in ("fails", "sometimes"):
        compare("cross_val_score", TREE, X, Y, {**OF_SCORERS[case], "error_score": error_score})


@pytest.mark.one_of(3)
@pytest.mark.parametrize("error_score", [np.nan, 0, "raise", "other"])
@pytest.mark.parametrize("case", ["a wrong parameter", "weights of zero", "X of one dimension"])
def test_failures_of_fits(case, error_score):
    estimator, X, y, how = CASES[case]
    for function in ("cross_validate", "cross_val_score"):
        compare(function, estimator, X, y, {**how, "error_score": error_score})


@pytest.mark.parametrize("splits", [[1, 2], [(A, B, A)], np.arange(3), ["ab", "cd"]])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_splits_that_are_no_pairs(function, splits):
    """scikit-learn: "cannot unpack non-iterable int object"."""
    found, _ = outcome(ours, function, TREE, X, Y, {"cv": splits})
    assert isinstance(found, ValueError)
    assert "'cv' parameter of cross_val" in str(found)
    assert "an iterable of (train, test)" in str(found)


class TestWithoutFinalModel:
    """Where all rows have no model, some splits may have one."""

    @pytest.mark.parametrize("case", NO_FINAL)
    def test_scores_are_there(self, case):
        estimator, X, y, how = NO_FINAL[case]
        found, of_final = compare("cross_validate", estimator, X, y, how)
        assert [category for category, _ in of_final] == ["FitFailedWarning"]
        assert type(found["final_estimator"]) is type(estimator)
        assert not hasattr(found["final_estimator"], "tree_")
        _, of_final = compare("cross_val_score", estimator, X, y, how)
        assert of_final == []  # nobody has asked for it
        if "in no" not in case:
            compare("cross_val_predict", estimator, X, y, how)

    def test_raised(self):
        estimator, X, y, how = NO_FINAL["y nan, in no split"]
        with pytest.raises(ValueError, match="y contains NaN"):
            ours.cross_validate(estimator, X, y, **how, error_score="raise")
        scores = ours.cross_val_score(estimator, X, y, **how, error_score="raise")
        np.testing.assert_array_equal(scores, theirs.cross_val_score(estimator, X, y, **how))

    def test_of_another_estimator(self):
        y = changed(Z, np.nan)
        with pytest.warns(FitFailedWarning, match=FINAL):
            found = ours.cross_validate(Ridge(), X, y, cv=[(B[:50], B[50:])])
        assert np.isfinite(found["test_score"]).all()
        assert not hasattr(found["final_estimator"], "coef_")


class TestWeights:
    """Weights that are not one per row: scikit-learn hands them to every fit as they are."""

    @pytest.mark.parametrize(
        "weights", [np.ones(N - 1), np.ones(100), np.ones((N, 1)), np.ones((N, 2)), 2.0]
    )
    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_not_one_per_row(self, function, weights):
        how = {"params": {"sample_weight": weights}}
        found, _ = outcome(ours, function, TREE, X, Y, how)
        assert type(found) is ValueError
        assert "one weight per row" in str(found)
        assert str(np.shape(weights)) in str(found)


GROUP_SPLITTERS = {
    "keyed": ours.HashKFold(3, random_state=0),
    "stratified": ours.HashKFold(3, stratify=True, random_state=0),
    "by group": theirs.GroupKFold(3),
    "not needed": theirs.KFold(3),
}


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("n_groups", [N - 50, N + 50])
@pytest.mark.parametrize("cv", GROUP_SPLITTERS.values(), ids=list(GROUP_SPLITTERS))
class TestGroupsOfAnotherLength:
    """Refused by name, and before anything is grown, where scikit-learn lists the lengths."""

    @pytest.fixture(autouse=True)
    def nothing_grows(self, monkeypatch):
        def grow(self, *arguments, **options):
            raise AssertionError("something is grown")

        for name in ("tree", "trees_of_sets"):
            monkeypatch.setattr(ForestGrowth, name, grow)

    def said(self, fit, n_groups, lazily, what="groups"):
        groups = np.arange(n_groups) % 40
        tables = [X, da.from_array(X, chunks=(40, -1))] if lazily else [X]
        for table in tables:
            with pytest.raises(ValueError, match=f"X has {N} rows, {what} has {n_groups} values"):
                fit(table, da.from_array(groups, chunks=20) if lazily else groups)

    @pytest.mark.one_of(16)
    @pytest.mark.parametrize(
        "function",
        [
            ours.cross_validate,
            ours.cross_val_score,
            ours.cross_val_predict,
            ours.validation_surface,
            ours.cost_complexity_cv,
        ],
    )
    def test_functions(self, function, cv, n_groups, lazily):
        def fit(table, groups):
            function(TREE, table, Y, cv=cv, groups=groups)

        self.said(fit, n_groups, lazily)

    def test_searches(self, cv, n_groups, lazily):
        search = ours.GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=cv)

        def weighted(table, weights):
            search.fit(table, Y, sample_weight=weights)

        self.said(lambda table, groups: search.fit(table, Y, groups=groups), n_groups, lazily)
        self.said(weighted, n_groups, lazily, "sample_weight")
        assert not hasattr(search, "best_score_")


class TestClassesThatATrainingSideLacks:
    SPLITS = ((BY_CLASS[:100], BY_CLASS[100:]), (BY_CLASS[50:], BY_CLASS[:50]))
    MIXED = ((BY_CLASS[:100], BY_CLASS[25:]), (BY_CLASS[50:], BY_CLASS[:125]))

    @pytest.mark.parametrize("labels", [np.arange(3), np.array(["x", "y", "z"])])
    @pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
    def test_predictions(self, method, labels):
        splits = [*self.SPLITS, (BY_CLASS[100:], BY_CLASS[:0])]  # of one class
        compare("cross_val_predict", TREE, X, labels[Y], {"cv": splits, "method": method})

    def test_predictions_of_forests(self):
        forest = dtrees.RandomForestClassifier(3, bootstrap=False, random_state=0, max_bins=None)
        compare("shares", forest, X, Y, {"cv": self.SPLITS})

    @pytest.mark.parametrize("scoring", ["accuracy", "f1_macro", "balanced_accuracy"])
    def test_scores_of_predictions(self, scoring):
        compare("cross_val_score", TREE, X, Y, {"cv": self.MIXED, "scoring": scoring})

    def test_scores_of_shares(self):
        """Our models know the class, as one that has no share."""
        how = {"cv": self.MIXED, "scoring": "neg_log_loss"}
        expected, heard = outcome(theirs, "cross_val_score", TREE, X, Y, how)
        assert np.isnan(expected).all()
        assert [category for category, _ in heard] == ["UserWarning"]
        found = ours.cross_val_score(TREE, X, Y, **how)
        assert (found < -1).all()
        assert np.isfinite(found).all()


def test_empty_test_sides():
    """Nothing to predict: no score, as there."""
    how = {"cv": [(A, B[:0]), (A, B)]}
    for function in ("cross_validate", "cross_val_score"):
        found, heard = outcome(ours, function, TREE, X, Y, how)
        expected, warned = outcome(theirs, function, TREE, X, Y, how)
        assert_same(found, expected)
        assert [category for category, _ in heard] == [category for category, _ in warned]
        assert "Scoring failed" in heard[0][1]
        assert "while a minimum of 1" in heard[0][1]


def test_scorers_of_classes_for_numbers():
    """A tree of numbers has no shares, even of numbers that are 0 and 1."""
    y = (Z.mean() < Z).astype(float)
    how = {"cv": 3, "scoring": "roc_auc"}
    found, heard = outcome(ours, "cross_val_score", REGRESSOR, X, y, how)
    expected, warned = outcome(theirs, "cross_val_score", REGRESSOR, X, y, how)
    assert_same(found, expected)
    assert [category for category, _ in heard] == [category for category, _ in warned]


@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "transform"])
def test_methods_that_are_not_there(method):
    compare("cross_val_predict", REGRESSOR, X, Z, {"method": method})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_iterators(function):
    """Splits that come once, also where scikit-learn does the work."""
    for estimator in (TREE, dtrees.ExtraTreesClassifier(2, random_state=0, max_bins=None)):
        compare(function, estimator, X, Y, {"cv": partial(iter, HALVES)})
    twice = [(np.r_[A, A], B), (B, A)]
    compare(function, TREE, X, Y, {"cv": partial(iter, twice)})


def test_iterators_that_fail():
    def splits():
        yield A, B
        raise RuntimeError("no more splits")

    compare("cross_validate", TREE, X, Y, {"cv": partial(splits)})


def test_lists_of_rows_are_returned():
    splits = SPLITS["lists"]
    found = ours.cross_validate(TREE, X, Y, cv=splits, return_indices=True)
    assert list(zip(found["indices"]["train"], found["indices"]["test"], strict=True)) == splits


def test_nothing_is_grown_before_the_scorer_is_known(monkeypatch):
    monkeypatch.setattr("dtrees.model_selection.fitted_splits.fit_table", pytest.fail)
    with pytest.raises(ValueError, match="nope"):
        ours.cross_validate(TREE, X, Y, scoring="nope")


def test_what_is_no_bad_input(monkeypatch):
    """Nothing is fitted again when memory, say, is short."""

    def no_memory(*args, **options):
        raise MemoryError("no memory today")

    monkeypatch.setattr("dtrees.model_selection.fitted_splits.fit_table", no_memory)
    with pytest.raises(MemoryError, match="no memory today"):
        ours.cross_validate(TREE, X, Y)


@pytest.mark.parametrize("function", FUNCTIONS[:3])
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("another estimator", "Ridge is not an estimator of dtrees"),
        ("a class", "is not an estimator of dtrees"),
        ("splits: empty training side", "a training side is empty"),
        ("splits: a row twice", "lists rows twice"),
        ("splits: out of range", "a side of a split is no rows of X"),
        ("unknown params", "fit is given weights"),
        ("a wrong parameter", "max_depth"),
        ("y short", "inconsistent numbers of samples"),
    ],
)
def test_why_scikit_learn_does_the_work(caplog, function, case, reason):
    estimator, X, y, how = CASES[case]
    with caplog.at_level(logging.INFO, "dtrees.model_selection.validation"):
        outcome(ours, function, estimator, X, y, how)
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert f"{function} is scikit-learn's" in record.getMessage()
    assert reason in record.getMessage()


def test_params_for_others_than_fit():
    """Routed metadata: `final` is fitted with what `fit` asks for."""
    groups = ROWS % 20
    with sklearn.config_context(enable_metadata_routing=True):
        tree = clone(TREE).set_fit_request(sample_weight=True)
        tree.set_score_request(sample_weight=False)
        how = {"cv": theirs.GroupKFold(3), "params": {"groups": groups, "sample_weight": ROWS % 3}}
        found, of_final = compare("cross_validate", tree, X, Y, how)
    assert of_final == []
    alone = clone(TREE).fit(X, Y, sample_weight=ROWS % 3)
    assert found["final_estimator"].tree_.model.equals(alone.tree_.model)


class TestGroupsOfOneColumn:
    """Of shape (n, 1): splitters of scikit-learn fail on them; here they are a column."""

    KINDS = {  # noqa: RUF012
        "numpy": lambda column: column,
        "pandas": lambda column: pd.DataFrame({"group": column[:, 0]}),
        "dask array": lambda column: da.from_array(column, chunks=(40, 1)),
        "dask frame": lambda column: dd.from_pandas(pd.DataFrame({"group": column[:, 0]}), 3),
    }
    ENTRIES = {  # noqa: RUF012
        "cross_validate": lambda given: ours.cross_validate(TREE, X, Y, **given)["test_score"],
        "cross_val_score": lambda given: ours.cross_val_score(TREE, X, Y, **given),
        "cross_val_predict": lambda given: ours.cross_val_predict(TREE, X, Y, **given),
        "validation_surface": lambda given: ours.validation_surface(TREE, X, Y, **given).scores,
        "cost_complexity_cv": lambda given: ours.cost_complexity_cv(TREE, X, Y, **given).errors,
        "search": lambda given: (
            ours.GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=given["cv"])
            .fit(X, Y, groups=given["groups"])
            .cv_results_["mean_test_score"]
        ),
    }

    @pytest.mark.one_of(8)
    @pytest.mark.parametrize("splitter", [theirs.GroupKFold(3), ours.HashKFold(3, random_state=0)])
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("entry", ENTRIES)
    def test_they_are_a_column(self, entry, kind, splitter):
        groups = ROWS % 20
        expected = self.ENTRIES[entry]({"groups": groups, "cv": splitter})
        column = self.KINDS[kind](groups.reshape(-1, 1))
        with pytest.warns(DataConversionWarning, match=r"its shape is \(150, 1\)"):
            found = self.ENTRIES[entry]({"groups": column, "cv": splitter})
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("third", "error"),
    [(None, ValueError), (np.nan, ValueError), (3, TypeError)],
    ids=["none", "nan", "number"],
)
def test_labels_that_cannot_be_sorted(third, error):
    """What a fit says of them, and not what the sort of a splitter does."""
    y = np.array(["a", "b", third] * 50, dtype=object)
    with pytest.raises(error) as fit:
        TREE.fit(X, y)
    said = re.escape(str(fit.value)[:30])  # pandas has nan for None
    for call in (
        lambda: ours.cross_validate(TREE, X, y),
        lambda: ours.cross_val_score(TREE, X, y),
        lambda: ours.GridSearchCV(TREE, {"max_depth": [1, 2]}).fit(X, pd.Series(y)),
        lambda: ours.validation_surface(TREE, X, y),
    ):
        with pytest.raises(error, match=said):
            call()
