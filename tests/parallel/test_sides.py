"""Sides of splits that are scored where their rows are: scores and warnings of the table here."""

import os
import signal
import sys
import types
import warnings
from contextlib import suppress
from itertools import product

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import KFold, ShuffleSplit

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.model_selection import (
    GridSearchCV,
    HashKFold,
    RandomizedSearchCV,
    boosting_curve,
    cost_complexity_cv,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    tuned_size,
    validation_surface,
)
from dtrees.parallel import distributed_apply
from dtrees.parallel.distributed_apply import join_sides
from tests.pairs import parametrize_in_turn
from tests.parallel.clusters import connect, ours

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

N = 600
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)).round(1)
X[RNG.random(X.shape) < 0.05] = np.nan
NUMBERS = np.nan_to_num(X[:, 0]) * 3 + np.nan_to_num(X[:, 1]) ** 2 + RNG.normal(size=N)
CLASSES = (NUMBERS > 0) * 1 + (NUMBERS > 2)
WORDS = np.array(["a", "bb", "ccc"])
TARGETS = {
    "classes": CLASSES,
    "words": WORDS[CLASSES],
    "objects": WORDS.astype(object)[CLASSES],
    "flags": CLASSES > 0,
    "sorted": np.sort(CLASSES),  # parts lack classes
}
WEIGHTS = RNG.integers(1, 4, N).astype(float)
START = RNG.normal(size=N)
CHUNKS = (90, 0, 250, 1, 100, 159)
CV = HashKFold(3, random_state=1)
FOREST = RandomForestClassifier(2, random_state=0, max_depth=4)
TREE = DecisionTreeClassifier(random_state=0, max_depth=5)
BOOSTS = GradientBoostingClassifier(
    max_iter=3, max_leaf_nodes=4, random_state=0, early_stopping=False
)
MEANS = RandomForestRegressor(2, random_state=0, max_depth=4)
STEPS = GradientBoostingRegressor(max_iter=3, max_leaf_nodes=4, random_state=0)


SEVERAL = ["accuracy", "f1_macro"]


def plain(found):
    """Scores by name."""
    return {name: scores for name, scores in found.items() if name.startswith(("test", "train"))}


def searched(search, X, y, **params):
    results = search.fit(X, y, **params).cv_results_
    return {
        name: scores for name, scores in results.items() if "_test_" in name or "_train_" in name
    }


OF_CLASSES = {
    "a tree": lambda X, y: plain(cross_validate(TREE, X, y, cv=CV, return_train_score=True)),
    "a tree by shares": lambda X, y: plain(
        cross_validate(TREE, X, y, cv=5, scoring=["neg_log_loss", "f1_macro"])
    ),
    "a forest": lambda X, y: plain(
        cross_validate(
            FOREST, X, y, cv=CV, return_train_score=True, scoring=["accuracy", "f1_macro"]
        )
    ),
    "boosting": lambda X, y: plain(
        cross_validate(BOOSTS, X, y, cv=4, scoring="neg_log_loss", return_train_score=True)
    ),
    "repeated rows": lambda X, y: cross_val_score(
        FOREST, X, y, cv=ShuffleSplit(4, test_size=0.3, random_state=0), scoring="neg_log_loss"
    ),
    "a grid of forests": lambda X, y: searched(
        GridSearchCV(
            FOREST,
            {"max_depth": [1, 3], "n_estimators": [2, 3], "criterion": ["gini", "entropy"]},
            cv=CV,
            return_train_score=True,
        ),
        *(X, y),
    ),
    "a grid of iterations": lambda X, y: searched(
        GridSearchCV(BOOSTS, {"max_iter": [1, 2, 3]}, cv=CV, scoring="neg_log_loss"), X, y
    ),
    "weights": lambda X, y: [
        searched(GridSearchCV(each, {"max_depth": [1, 3]}, cv=CV), X, y, sample_weight=WEIGHTS)
        for each in (TREE, FOREST)
    ],
    "a curve": lambda X, y: boosting_curve(BOOSTS, X, y, cv=CV).shrunken(0.5).scores,
    "a curve of accuracies": lambda X, y: boosting_curve(BOOSTS, X, y, cv=3, scoring=None).scores,
    "a path": lambda X, y: cost_complexity_cv(TREE, X, y, cv=3).errors,
    "a size of a tree": lambda X, y: [
        choice.scores for choice in tuned_size(TREE, X, y, CV, scoring="neg_log_loss").choices
    ],
    "iterations": lambda X, y: [choice.scores for choice in tuned_size(BOOSTS, X, y, CV).choices],
    "predictions": lambda X, y: cross_val_predict(FOREST, X, y, cv=CV),
    "shares": lambda X, y: cross_val_predict(BOOSTS, X, y, cv=CV, method="predict_proba"),
}
OF_NUMBERS = {
    "a tree": lambda X, y: plain(
        cross_validate(
            DecisionTreeRegressor(max_depth=4, random_state=0), X, y, cv=4, return_train_score=True
        )
    ),
    "a forest": lambda X, y: plain(
        cross_validate(MEANS, X, y, cv=CV, scoring=["r2", "neg_mean_absolute_error"])
    ),
    "boosting": lambda X, y: cross_val_score(
        STEPS, X, y, cv=KFold(3, shuffle=True, random_state=0)
    ),
    "boosting that goes on": lambda X, y: plain(
        cross_validate(
            STEPS, X, y, cv=CV, params={"init_score": START, "sample_weight": WEIGHTS}, scoring="r2"
        )
    ),
    "a curve that goes on": lambda X, y: (
        boosting_curve(STEPS, X, y, cv=CV, params={"init_score": START}).scores
    ),
    "a curve of R^2": lambda X, y: boosting_curve(STEPS, X, y, cv=CV, scoring="r2").scores,
    "a random search": lambda X, y: searched(
        RandomizedSearchCV(
            MEANS, {"max_depth": [1, 2, 3], "n_estimators": [1, 3]}, n_iter=4, cv=3, random_state=0
        ),
        *(X, y),
    ),
    "a surface": lambda X, y: (
        validation_surface(
            DecisionTreeRegressor(random_state=0),
            *(X, y),
            cv=CV,
            max_depth=[2, 4],
            min_samples_split=[2, 30],
            scoring="neg_mean_absolute_error",
        ).scores
    ),
    "a path": lambda X, y: (
        cost_complexity_cv(
            DecisionTreeRegressor(max_depth=4, random_state=0), X, y * 1e90, cv=3
        ).standard_errors
    ),
}


def as_array(values):
    return da.from_array(X, chunks=(CHUNKS, -1))


def as_frame(values):
    frame = pd.DataFrame(values, columns=list("abcd"))
    ends = np.cumsum(CHUNKS)
    parts = [frame.iloc[last - n : last] for n, last in zip(CHUNKS, ends, strict=True) if n > 0]
    return dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])


def as_sparse(values):
    ends = np.cumsum(CHUNKS)
    blocks = [sp.csr_matrix(values[last - n : last]) for n, last in zip(CHUNKS, ends, strict=True)]
    return da.concatenate(
        [
            da.from_delayed(
                dask.delayed(block), block.shape, float, meta=sp.csr_matrix((0, values.shape[1]))
            )
            for block in blocks
        ]
    )


LAYOUTS = {"array": as_array, "frame": as_frame, "sparse": as_sparse}


@pytest.fixture(scope="module")
def two():
    """A client of two workers in this process, on which codes stay, however few rows there are."""
    how = {"dtrees.regime": "partitioned", "dtrees.gather-rows": 100}
    with (
        pytest.MonkeyPatch.context() as patch,
        connect(2, 1, False) as cluster,
        Client(cluster) as client,
    ):
        patch.setattr("dtrees.parallel.row_columns.FEW_ROWS", 0)
        with dask.config.set(how):
            yield client


@pytest.fixture
def only_scores(monkeypatch):
    """Nothing that models say of rows comes here."""

    def refuse(parts, asked, **how):
        assert not asked, "rows have walked for this process"
        return []

    monkeypatch.setattr(distributed_apply, "walk_parts", refuse)


def equal(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        for own, other in zip(found, expected, strict=True):
            equal(own, other)
    else:
        np.testing.assert_array_equal(found, expected)


def of_frames(values, layout):
    """The table in memory, as it is in a layout."""
    return {
        "array": values,
        "frame": pd.DataFrame(values, columns=list("abcd")),
        "sparse": sp.csr_matrix(values),
    }[layout]


@pytest.mark.one_of(6)
@parametrize_in_turn(
    2,
    (
        "case, target",
        [
            *((case, "words") for case in OF_CLASSES),
            *((case, target) for case in ("a forest", "a tree by shares") for target in TARGETS),
            *((case, "numbers") for case in OF_NUMBERS),
        ],
    ),
    ("layout, is_lazy", [*product(LAYOUTS, [False, True])]),
)
def test_scores_are_those_of_the_table_in_memory(case, target, is_lazy, layout, two, request):
    values = np.nan_to_num(X) if layout == "sparse" else X
    validate = (OF_NUMBERS if target == "numbers" else OF_CLASSES)[case]
    y = NUMBERS if target == "numbers" else TARGETS[target]
    with dask.config.set({"dtrees.regime": None}), warnings.catch_warnings():
        expected = validate(of_frames(values, layout), y)
    if case != "weights":
        request.getfixturevalue("only_scores")
    given = da.from_array(y, chunks=(200,)) if is_lazy else y
    equal(validate(LAYOUTS[layout](values), given), expected)
    assert ours(two) == []


def test_rows_that_repeat_are_scored_in_their_order(two, request):
    test_scores_are_those_of_the_table_in_memory(
        "repeated rows", "words", True, "frame", two, request
    )


def heard(validate):
    """What is said, and the warnings."""
    with warnings.catch_warnings(record=True, action="always") as found:
        scores = validate()
    return scores, sorted(f"{each.category.__name__}: {each.message}" for each in found)


def test_warnings_of_scorers_are_issued_here(two):
    """Of a class that no model says."""

    def validate(table):
        stump = RandomForestClassifier(2, max_depth=1, random_state=0)
        return cross_val_score(stump, table, CLASSES, cv=CV, scoring="precision_macro")

    with dask.config.set({"dtrees.regime": None}):
        expected, said = heard(lambda: validate(X))
    assert said
    found, told = heard(lambda: validate(as_array(X)))
    equal(found, expected)
    assert told == said
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match="ill-defined"):
        cross_val_score(
            RandomForestClassifier(2, max_depth=1, random_state=0),
            *(as_array(X), CLASSES),
            cv=CV,
            scoring="precision_macro",
            error_score="raise",
        )


def of_few_rows(y, predicted):
    """A metric that fails of some sides."""
    if len(y) < 200:
        raise ValueError(f"There are {len(y)} rows, which are too few.")
    return accuracy_score(y, predicted)


UNEVEN = [(np.arange(150, N), np.arange(150)), (np.arange(300), np.arange(300, N))]


def test_a_scorer_that_fails_is_worth_what_was_asked(two):
    how = {"cv": UNEVEN, "scoring": make_scorer(of_few_rows)}
    with dask.config.set({"dtrees.regime": None}):
        expected, said = heard(lambda: cross_val_score(FOREST, X, CLASSES, **how))
    assert np.isnan(expected).tolist() == [True, False]
    found, told = heard(lambda: cross_val_score(FOREST, as_array(X), CLASSES, **how))
    equal(found, expected)
    assert len(told) == len(said)
    with pytest.raises(ValueError, match="150 rows, which are too few"):
        cross_val_score(FOREST, as_array(X), CLASSES, error_score="raise", **how)


MADE = []


def made(values):
    MADE.append(len(values))
    return values


@pytest.mark.one_of(3)
@pytest.mark.parametrize("model", [BOOSTS, FOREST, TREE])
def test_columns_are_made_once(model, two):
    """However often they are asked: each model of a fold begins with questions of its own."""
    y = da.from_array(CLASSES, chunks=200).map_blocks(made, dtype=int, meta=np.empty(0, int))
    MADE.clear()
    cross_val_score(model, as_array(X), y, cv=CV)
    assert MADE == [200, 200, 200]
    assert ours(two) == []


class OwnError(Exception):
    """An error that needs more than its words."""

    def __init__(self, rows, what):
        super().__init__(rows, what)


def raise_own(y, predicted):
    raise OwnError(len(y), "rows")


def test_errors_of_metrics_are_raised_here_and_no_task_fails(two, caplog):
    with pytest.raises(OwnError, match="rows") as raised:
        boosting_curve(STEPS, as_array(X), NUMBERS, cv=CV, scoring=make_scorer(raise_own))
    assert "in raise_own" in raised.value.__notes__[0]
    assert "Compute Failed" not in caplog.text
    assert ours(two) == []


def test_a_function_of_the_model_and_its_rows_is_called_here(two):
    called = []

    def score(model, rows, y):
        called.append(len(rows))
        return model.score(rows, y)

    curve = boosting_curve(STEPS, X, NUMBERS, cv=CV, scoring=score)
    own = boosting_curve(STEPS, X, NUMBERS, cv=CV, scoring="r2")
    np.testing.assert_allclose(curve.scores, own.scores, rtol=1e-12)
    assert len(called) == curve.scores.size


class DeadlyJoin:
    """A task that ends the process of its worker, as long as there is a file."""

    def __init__(self, path):
        self.path = path
        self.__name__ = "deadly_join"

    def __call__(self, *args):
        with suppress(FileNotFoundError):  # another process may be faster
            os.remove(self.path)
            os.kill(os.getpid(), signal.SIGKILL)
        return join_sides(*args)


class TestProcesses:
    """On workers in other processes."""

    @pytest.fixture(autouse=True)
    def stays(self):
        with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 100}):
            yield

    @pytest.mark.long
    @pytest.mark.rest
    @pytest.mark.parametrize("case", ["boosting", "a grid of forests"])
    def test_a_worker_dies_while_it_scores(self, case, monkeypatch, tmp_path, only_scores):
        path = tmp_path / "deadly"
        path.touch()
        with dask.config.set({"dtrees.regime": None}):
            expected = OF_CLASSES[case](X, CLASSES)
        monkeypatch.setattr(distributed_apply, "join_sides", DeadlyJoin(str(path)))
        with connect(2, 1, True) as cluster, Client(cluster):
            found = OF_CLASSES[case](as_array(X), CLASSES)
        assert not path.exists()
        equal(found, expected)

    def test_a_metric_that_workers_cannot_import_is_called_here(self, monkeypatch, processes):
        """Its module is in this process alone."""
        module = types.ModuleType("of_this_process")
        exec("def metric(y, predicted):\n    return float((y == predicted).mean())", vars(module))
        module.metric.__module__ = module.__name__
        monkeypatch.setitem(sys.modules, module.__name__, module)
        how = {"cv": CV, "scoring": make_scorer(module.metric)}
        workers = processes.nthreads().keys()
        with processes.as_current():
            found = cross_val_score(FOREST, as_array(X), CLASSES, **how)
        equal(found, cross_val_score(FOREST, X, CLASSES, cv=CV))
        assert processes.nthreads().keys() == workers
        assert ours(processes) == []
