"""Two threads through every kernel: small tables, so that a slow build is done with them soon.

In the release build these are tests of one hash; what the sanitizers see is the same work. Planted
bugs (`tests.sanitizers.planted`) stand where these tests go.
"""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import dtrees
from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.predict.binned import CodedRows
from dtrees.model_selection import cross_validate
from tests.sanitizers.planted import BUGS, Bug

N_ROWS = 3_000


def table(storage):
    """Numbers with few and many values, gaps, and categories unless it is sparse."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4)).round(1)
    X[:, 1] = rng.normal(size=N_ROWS)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + rng.normal(size=N_ROWS) > 0) + 2 * (rng.random(N_ROWS) < 0.2)
    if storage == "sparse":
        return sp.csc_array(np.where(rng.random(X.shape) < 0.6, 0, X)), y
    if storage == "dense":
        return X, y
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["few"] = pd.Categorical(rng.choice(list("xyz"), N_ROWS))
    frame["many"] = pd.Categorical(rng.integers(0, 300, N_ROWS))
    frame["both"] = np.where(rng.random(N_ROWS) < 0.5, "word", frame["a"].astype(object))
    return frame, y


STORAGE = ["dense", "frame", "sparse"]
ENDS = ("Classifier", "Regressor")
NAMES = sorted({getattr(dtrees, each).__name__ for each in dtrees.__all__ if each.endswith(ENDS)})


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("name", NAMES)
def test_fits_and_predictions(name, storage):
    X, y = table(storage)
    weights = np.random.default_rng(1).choice([0, 1, 2.5], N_ROWS)
    found = []
    for n_jobs in (1, 2):
        model = getattr(dtrees, name)(random_state=0, n_jobs=n_jobs)
        if hasattr(model, "n_estimators"):
            model.set_params(n_estimators=3, max_bins=None if storage == "dense" else 64)
        if hasattr(model, "max_iter"):
            model.set_params(max_iter=3)
        for sample_weight in (None, weights):
            model.fit(X, y, sample_weight)
            found.append((n_jobs, sample_weight is None, model.predict(X).tobytes()))
        found.append((n_jobs, None, model.feature_importances_.tobytes()))
    one, two = ([each[1:] for each in found if each[0] == n_jobs] for n_jobs in (1, 2))
    assert one == two


def test_threads_that_boost_the_same_tree():
    """Three blocks of columns and two stretches of rows: chunks for both threads."""
    X, y = table("dense")
    X, y = np.tile(X, (3, 5)), np.tile(y, 3)
    found = []
    for n_jobs in (1, 2):
        for loss in ("log_loss", "absolute_error"):
            kind = GradientBoostingClassifier if loss == "log_loss" else GradientBoostingRegressor
            model = kind(loss, max_iter=3, n_jobs=n_jobs).fit(X, y)
            found.append((n_jobs, loss, model.predict(X).tobytes()))
    one, two = ([each[1:] for each in found if each[0] == n_jobs] for n_jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize("storage", STORAGE)
def test_folds(storage):
    X, y = table(storage)
    for model in (
        DecisionTreeClassifier(random_state=0, min_samples_leaf=20),
        RandomForestRegressor(2, random_state=0, max_depth=5),
    ):
        scores = [
            cross_validate(model.set_params(n_jobs=n_jobs), X, y, cv=3)["test_score"].tolist()
            for n_jobs in (1, 2)
        ]
        assert scores[0] == scores[1]


def test_targets_of_rows_that_a_group_of_folds_lacks():
    """The logarithms of `DecisionTreeRegressor` have the scale of the rows that count."""
    y = np.where(np.arange(200) < 64, 1.0, 1e12)
    X = np.arange(200)[:, None]
    splits = [([row, (row + 7) % 64], [row]) for row in range(64)] + [(np.arange(64, 200), [0])]
    scores = [
        cross_validate(
            DecisionTreeRegressor(criterion="poisson", n_jobs=n_jobs), X, y, cv=splits,
            scoring="neg_mean_squared_error",
        )["test_score"].tolist()
        for n_jobs in (1, 2)
    ]  # fmt: skip
    assert scores[0] == scores[1]
    assert scores[0][:64] == [0.0] * 64


def test_rows_out_of_bags():
    X, y = table("frame")
    models = [
        RandomForestClassifier(30, random_state=0, oob_score=True, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    ]
    assert models[0].oob_score_ == models[1].oob_score_


def test_two_walks_at_the_same_time():
    """Both threads are within the loop, whoever has the interpreter."""
    caught = {}

    class Caught(DecisionTreeClassifier):
        def _fit_coded(self, training):
            caught["coded"] = training.encoded.coded
            return super()._fit_coded(training)

    X, y = table("dense")
    X, y = np.tile(X, (10, 1)), np.tile(y, 10)
    tree = Caught(max_depth=8, max_bins=64, random_state=0).fit(X, y).tree_.model
    rows = CodedRows(caught["coded"])
    numbers = np.arange(len(X))
    expected = rows.leaves(tree, numbers)
    barrier, same = threading.Barrier(2), []

    def walk():
        for _ in range(5):
            barrier.wait()
            same.append(np.array_equal(rows.leaves(tree, numbers), expected))

    threads = [threading.Thread(target=walk) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 10


@pytest.mark.parametrize("name", BUGS)
def test_bugs_can_be_planted(name):
    """The kernels still have the lines that the planted bugs change."""
    bug = BUGS[name]
    with open(bug.path) as file:
        text = file.read()
    try:
        planted = bug.planted_in(text)
    except ValueError:  # it is planted: this is a tree of `make sanitize-proof`
        planted = text
        assert any(new in text for _, new in bug.changes)
    assert planted != text or any(new in text for _, new in bug.changes)


def test_a_bug_that_cannot_be_planted():
    with pytest.raises(ValueError, match="plant the bug elsewhere"):
        Bug("memory", "", "a.pyx", (("a", "b"),)).planted_in("aa")
