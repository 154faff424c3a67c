"""Held-out rows of tables that stay in their partitions: the results of the table in memory."""

import os
import signal
import sys
from contextlib import contextmanager, suppress

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from dtrees import (
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.predict.binned import CodedRows
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import (
    GridSearchCV,
    HashKFold,
    RandomizedSearchCV,
    cost_complexity_cv,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    tuned_size,
    validation_surface,
)
from dtrees.parallel import PartitionedRows, distributed_apply, liveness
from dtrees.parallel import client as clients
from dtrees.parallel.coded_partitions import CodedPartitions
from dtrees.parallel.distributed_apply import (
    RequestedRows,
    Walk,
    walk_codes_of_part,
    walk_parts,
)
from tests.coding.examples import coded_columns
from tests.parallel.clusters import connect, digest, ours

N_ROWS = 700
CHUNKS = (90, 0, 250, 1, 200, 159)


def table():
    """Numbers with missing values, three classes, and a quantity."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5)).round(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    z = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + rng.normal(size=N_ROWS)
    return X, (z > 0).astype(int) + (z > 1.5), z


X, Y, Z = table()
WEIGHTS = np.random.default_rng(2).integers(0, 3, N_ROWS).astype(float)
FOREST = RandomForestClassifier(3, random_state=0, max_depth=5, n_jobs=2)
TREE = DecisionTreeClassifier(random_state=0, max_depth=6)
CV = HashKFold(3, stratify=True, random_state=1)


def plain(found):
    """Results without times and models, of which there are hashes."""
    return {
        name: value for name, value in found.items() if "time" not in name and name != "estimator"
    }


def search(cls, estimator, *grid, **more):
    def results(X):
        found = cls(estimator, *grid, cv=CV, **more).fit(X, Y)
        return plain(found.cv_results_) | {"best": digest(trees_of(found.best_estimator_))}

    return results


def warm(X):
    model = RandomForestClassifier(3, random_state=3, oob_score=True, warm_start=True).fit(X, Y)
    return model.set_params(n_estimators=6).fit(X, Y).oob_decision_function_


def models(X, estimator, name, y=Y):
    found = cross_validate(estimator, X, y, cv=CV, return_estimator=True)
    return [getattr(model, name) for model in found["estimator"]]


CASES = {
    "forest": lambda X: plain(cross_validate(FOREST, X, Y, cv=CV)),
    "forest, both sides": lambda X: plain(
        cross_validate(
            FOREST, X, Y, cv=3, return_train_score=True, scoring=["f1_macro", "roc_auc_ovr"]
        )
    ),
    "means of forests": lambda X: cross_val_score(
        RandomForestRegressor(4, random_state=1), X, Z, cv=3, params={"sample_weight": WEIGHTS}
    ),
    "tree": lambda X: plain(cross_validate(TREE, X, Y, cv=3, return_train_score=True)),
    "tree, by predictions": lambda X: plain(
        cross_validate(TREE, X, Y, cv=CV, scoring=["accuracy", "roc_auc_ovr", "neg_log_loss"])
    ),
    "tree of means": lambda X: cross_val_score(DecisionTreeRegressor(max_depth=4), X, Z, cv=3),
    "sides that overlap": lambda X: cross_val_score(
        TREE, X, Y, cv=ShuffleSplit(3, test_size=0.3, random_state=0)
    ),
    "rows in any order": lambda X: cross_val_score(
        FOREST, X, Y, cv=[(np.arange(300), np.array([650, 2, 310, 2, 699]))]
    ),
    "apart": lambda X: cross_val_score(ExtraTreesClassifier(3, random_state=0), X, Y, cv=3),
    "classes weigh": lambda X: cross_val_score(
        RandomForestClassifier(3, random_state=0, class_weight="balanced"), X, Y, cv=3
    ),
    "predictions": lambda X: cross_val_predict(FOREST, X, Y, cv=CV, method="predict_proba"),
    "grid": search(GridSearchCV, TREE, {"max_depth": [2, 4], "min_samples_leaf": [1, 9]}),
    "grid of forests": search(
        GridSearchCV,
        RandomForestClassifier(3, random_state=1),
        {"max_depth": [2, None], "n_estimators": [2, 3]},
        return_train_score=True,
    ),
    "random grid": search(
        RandomizedSearchCV,
        TREE,
        {"max_depth": [2, 4, 5], "max_features": [2, 4]},
        n_iter=4,
        random_state=0,
        scoring="roc_auc_ovr",
    ),
    "nested": lambda X: cross_val_score(
        GridSearchCV(TREE, {"max_depth": [2, 4]}, cv=3), X, Y, cv=CV
    ),
    "path": lambda X: [cost_complexity_cv(TREE, X, Y, cv=3).errors],
    "surface": lambda X: validation_surface(TREE, X, Y, cv=CV).scores,
    "surface of forests": lambda X: (
        validation_surface(
            RandomForestClassifier(3, random_state=0), X, Y, cv=CV, max_depth=[2, 4]
        ).scores
    ),
    "size": lambda X: tuned_size(TREE, X, Y, CV.split(X, Y)).untuned,
    "out of bag": lambda X: (
        RandomForestClassifier(9, random_state=3, oob_score=True).fit(X, Y).oob_decision_function_
    ),
    "out of bag, means": lambda X: (
        BaggingRegressor(9, random_state=3, oob_score=True, max_samples=0.4)
        .fit(X, Z, sample_weight=WEIGHTS)
        .oob_prediction_
    ),
    "groups out of bag": lambda X: (
        RandomForestClassifier(9, random_state=3, oob_score=True)
        .fit(X, Y, bootstrap_groups=np.arange(N_ROWS) % 40)
        .oob_decision_function_
    ),
    "oob_tol": lambda X: (
        RandomForestClassifier(40, random_state=3, oob_tol=0.01).fit(X, Y).oob_scores_
    ),
    "more trees": warm,
    "out of bags of sets": lambda X: models(
        X, RandomForestClassifier(9, random_state=3, oob_score=True), "oob_score_"
    ),
    "oob_tol of sets": lambda X: [
        len(scores)
        for scores in models(
            X, RandomForestClassifier(20, random_state=3, oob_tol=0.02), "oob_scores_"
        )
    ],
}


@contextmanager
def partitioned():
    """Nodes of more than a few rows are counted in rounds, and codes stay in partitions."""
    with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 100}):
        yield


def equal(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            equal(found[name], expected[name])
    elif isinstance(expected, np.ma.MaskedArray):
        assert found.tolist() == expected.tolist()
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def walks():
    """Rows that have walked on codes that are not here, in each pass over them: of sets."""
    return []


@pytest.fixture(scope="module")
def sides():
    """Sides of splits that were scored where they are, in each pass."""
    return []


@pytest.fixture(autouse=True)
def counted(monkeypatch, walks, sides):
    walk, ask = distributed_apply.walk_parts, PartitionedRows.on_sides

    def counting(parts, asked, **how):
        if asked:
            walks.append(len(asked))
        return walk(parts, asked, **how)

    def counting_sides(rows, asked, *how):
        sides.append(len(asked))
        return ask(rows, asked, *how)

    monkeypatch.setattr(distributed_apply, "walk_parts", counting)
    monkeypatch.setattr(PartitionedRows, "on_sides", counting_sides)
    walks.clear()
    sides.clear()


OF_FEW_VOTES = "ignore:Some inputs do not have OOB scores"


@pytest.mark.one_of(9)
@pytest.mark.filterwarnings(OF_FEW_VOTES)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_in_memory(name, walks, sides):
    case = CASES[name]
    expected = case(X)
    assert not walks
    assert not sides
    with partitioned():
        found = case(da.from_array(X, chunks=(CHUNKS, -1)))
    assert walks or sides, "codes were here"
    if not any(word in name for word in ("out of", "oob", "more", "nested")):
        assert not walks, "what is said of rows was here"
    equal(found, expected)


@pytest.mark.one_of(3)
@pytest.mark.filterwarnings(OF_FEW_VOTES)
@pytest.mark.parametrize(
    "name",
    [
        *("tree", "grid of forests", "out of bag"),
        *(
            pytest.param(name, marks=pytest.mark.chaos)
            for name in ("forest", "path", "oob_tol", "predictions")
        ),
    ],
)
def test_results_of_a_cluster(name, walks, sides, processes):
    case = CASES[name]
    expected = case(X)
    with partitioned(), processes.as_current(), dask.config.set(scheduler=processes):
        found = case(da.from_array(X, chunks=(CHUNKS, -1)))
    assert walks or sides
    equal(found, expected)
    assert not ours(processes)


def test_codes_that_are_too_many_stay(monkeypatch, sides, processes):
    """Nobody asks for the regime: it follows from the size of the codes."""
    expected = CASES["forest"](X)
    monkeypatch.setattr("dtrees.parallel.tasks.Tasks.room", lambda executor: 1000)
    with processes.as_current(), dask.config.set(scheduler=processes):
        found = CASES["forest"](da.from_array(X, chunks=(CHUNKS, -1)))
    assert sides
    equal(found, expected)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("scoring", [None, ["roc_auc_ovr", "accuracy"]])
def test_sides_of_all_models_walk_in_one_pass(scoring, walks, sides):
    """Those of training rows, too, where they are not scored by leaves."""
    lazy = da.from_array(X, chunks=(CHUNKS, -1))
    how = {"scoring": scoring, "cv": CV}
    grid = {"cv": CV, "refit": False, "scoring": scoring and scoring[0]}
    with partitioned():
        cross_validate(FOREST, lazy, Y, **how)
        cross_validate(FOREST, lazy, Y, return_train_score=True, **how)
        GridSearchCV(FOREST, {"max_depth": [2, 3, 4, 5]}, **grid).fit(lazy, Y)
        cross_validate(TREE, lazy, Y, **how)
        assert sides == [3, 6, 3, 3]
        sides.clear()
        cross_validate(TREE, lazy, Y, return_train_score=True, **how)
        assert sides == ([3, 3] if scoring is None else [6])
        sides.clear()
        GridSearchCV(FOREST, {"criterion": ["gini", "entropy"]}, **grid).fit(lazy, Y)
        cross_val_predict(FOREST, lazy, Y, cv=StratifiedKFold(3))
        assert sides == [3, 3, 3]
    assert not walks


def test_sparse_blocks(sides):
    matrix = sp.random(N_ROWS, 8, density=0.3, random_state=0, format="csr")
    matrix.data[:] = matrix.data.round(1)
    blocks = [
        da.from_delayed(
            dask.delayed(sp.csr_matrix(matrix[start:end])),
            shape=(end - start, 8),
            dtype=float,
            meta=sp.csr_matrix((0, 0)),
        )
        for start, end in ((0, 300), (300, 400), (400, N_ROWS))
    ]
    expected = cross_val_predict(FOREST, matrix, Y, cv=CV)
    with partitioned():
        found = cross_val_predict(FOREST, da.concatenate(blocks), Y, cv=CV)
    assert sides
    equal(found, expected)


class DeadlyWalk:
    """A walk that ends the process of the worker, or stops it, as long as there is a file."""

    def __init__(self, path, number=signal.SIGKILL):
        self.path, self.number = path, number
        self.__name__ = "deadly_walk"

    def __call__(self, *args):
        with suppress(FileNotFoundError):  # another process may be faster
            os.remove(self.path)
            os.kill(os.getpid(), self.number)
        return walk_codes_of_part(*args)


@pytest.mark.one_of(2)
@pytest.mark.filterwarnings(OF_FEW_VOTES)
@pytest.mark.parametrize("together", [False, True])
def test_a_worker_dies_while_rows_out_of_bags_walk(together, monkeypatch, tmp_path):
    """Which is part of a fit, and of a growth that models share: their reports tell of it."""
    path = tmp_path / "deadly"
    path.touch()
    forest = RandomForestClassifier(6, random_state=0, max_depth=3, oob_score=True)
    expected = forest.fit(X, Y).oob_score_
    monkeypatch.setattr(distributed_apply, "walk_codes_of_part", DeadlyWalk(str(path)))
    with partitioned(), connect(2, 1, True) as cluster, Client(cluster):
        lazy = da.from_array(X, chunks=(CHUNKS, -1))
        model = (
            cross_validate(forest, lazy, Y, cv=3)["final_estimator"]
            if together
            else forest.fit(lazy, Y)
        )
    assert not path.exists()
    assert model.oob_score_ == expected
    assert model.fit_report_["lost_workers"] == 1


@pytest.mark.chaos
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
def test_a_worker_hangs_while_rows_walk(monkeypatch, tmp_path, caplog):
    path = tmp_path / "deadly"
    path.touch()
    expected = CASES["forest"](X)
    stopping = DeadlyWalk(str(path), signal.SIGSTOP)
    monkeypatch.setattr(distributed_apply, "walk_codes_of_part", stopping)
    # The other worker may have to import first: it is asked as often as it takes.
    monkeypatch.setattr(clients, "ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(liveness, "SILENT_ROUNDS", 1000)
    with (
        dask.config.set({"dtrees.worker-patience": "8s"}),
        partitioned(),
        connect(2, 1, True) as cluster,
        Client(cluster) as client,
    ):
        workers = client.run(os.getpid)
        try:
            found = CASES["forest"](da.from_array(X, chunks=(CHUNKS, -1)))
        finally:
            for pid in workers.values():
                os.kill(pid, signal.SIGCONT)
        assert not path.exists()
        assert "do not answer, and are taken out of the cluster" in caplog.text
    equal(found, expected)


# -------------------------------------------------------------------------------------------------
# rows and loads


def coded(n_rows=60):
    rng = np.random.default_rng(5)
    codes = [rng.integers(0, 9, n_rows).astype(np.uint8) for _ in range(3)]
    return coded_columns(codes, np.full(3, 8), np.full(3, 8))


def grown():
    """Trees of a table of codes, whose values are the codes."""
    matrix = coded()
    values = np.column_stack([matrix.column(i) for i in range(3)]).astype(float)
    y = (values[:, 0] * values[:, 1] > 12).astype(int)
    values[values == 0] = np.nan
    model = RandomForestClassifier(5, random_state=0).fit(values, y)
    return matrix, model.forest_.trees


MATRIX, TREES = grown()


@settings(max_examples=max(20, settings.default.max_examples // 20))
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    sides=st.lists(st.lists(st.integers(0, 59), max_size=80), min_size=1, max_size=4),
    load=st.sampled_from([1, 600, 2**20]),
    named=st.sampled_from([1, 2**20]),
    with_values=st.booleans(),
)
def test_answers_are_those_of_codes_that_are_here(lengths, sides, load, named, with_values):
    """For rows in any order, again and again, of any parts, and few trees at a time."""
    ends = np.minimum(np.cumsum([*lengths, 60]), 60)
    lengths = [int(n) for n in np.diff([0, *ends]) if n > 0]
    parts = [MATRIX.take(rows) for rows in np.split(np.arange(60), np.cumsum(lengths)[:-1])]
    how = MATRIX.n_codes, MATRIX.n_ordered, lengths, MATRIX.nbytes, lambda: parts, "a test"
    partitions = CodedPartitions(*how, [dask.delayed(None)])
    rows = [np.array(side, dtype=np.int64) for side in sides]
    asked = [(TREES[: 1 + i], side) for i, side in enumerate(rows)]
    here = CodedRows(MATRIX)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed_apply, "LOAD_BYTES", load)
        patch.setattr(distributed_apply, "GRAPH_BYTES", named)
        patch.setattr(distributed_apply, "PIECE_BYTES", 100 * load)
        start = 0.0 if with_values else None
        found = walk_parts(partitions, [Walk(t, RequestedRows(side), start) for t, side in asked])
    for (trees, side), answer in zip(asked, found, strict=True):
        if with_values:
            expected = here.sums(trees, side, lambda tasks: [task() for task in tasks])
            (total,) = answer
            np.testing.assert_array_equal(total, expected)
            assert total.dtype == np.float64
            continue
        assert len(answer) == len(trees)
        for tree, leaves in zip(trees, answer, strict=True):
            assert leaves.dtype == np.uint8
            np.testing.assert_array_equal(leaves, here.leaves(tree, side))


def test_answers_are_kept_until_they_are_taken():
    partitions = CodedPartitions.cut(MATRIX, "a test")
    rows, side = PartitionedRows(partitions), np.array([3, 1])
    rows.bring([(TREES, side)])
    rows.bring([(TREES, side)], [0.0])
    made = partitions.groups
    partitions.groups = None  # nothing is computed any more
    here = CodedRows(MATRIX)
    for tree in TREES:
        np.testing.assert_array_equal(rows.leaves(tree, side), here.leaves(tree, side))
    np.testing.assert_array_equal(
        rows.sums(TREES, side, list), here.sums(TREES, side, lambda tasks: [t() for t in tasks])
    )
    partitions.groups = made
    np.testing.assert_array_equal(rows.leaves(TREES[0], side), here.leaves(TREES[0], side))
