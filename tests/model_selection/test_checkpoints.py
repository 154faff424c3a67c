"""Cross-validations and searches that end before their end, and go on to the same results."""

from __future__ import annotations

import pickle
import signal
import sys
from contextlib import ExitStack

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from scipy.stats import randint
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from dtrees.exceptions import ModelFileError
from dtrees.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    boosting_curve,
    cost_complexity_cv,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    nested_standard_error,
    tuned_size,
    validation_surface,
)
from dtrees.parallel import SavedTrees
from tests.forked import run_forked
from tests.parallel.clusters import connect, digest
from tests.parallel.conftest import scheduler  # noqa: F401
from tests.parallel.test_boosted_checkpoint import FRACTIONS, NUMBERS, TABLES, THREE, TWO, WEIGHT, X

TREE = DecisionTreeClassifier(max_features=3, random_state=1)
FOREST = RandomForestClassifier(8, random_state=1)
BOOSTED = GradientBoostingClassifier(max_iter=6, max_leaf_nodes=6, random_state=1)
STOPS = {"early_stopping": True, "n_iter_no_change": 3, "max_iter": 20}
ESTIMATORS = {
    "tree": (TREE, TWO, {}),
    "tree of weights": (
        DecisionTreeRegressor(min_samples_leaf=0.02, random_state=1),
        NUMBERS,
        {"sample_weight": FRACTIONS},
    ),
    "forest": (FOREST, THREE, {}),
    "forests one by one": (
        RandomForestClassifier(5, class_weight="balanced", random_state=1),
        TWO,
        {"sample_weight": WEIGHT + 0.25},
    ),
    "forests that stop": (
        RandomForestClassifier(45, oob_tol=0.02, oob_score=True, random_state=1),
        TWO,
        {},
    ),
    "boosted": (BOOSTED, THREE, {"sample_weight": WEIGHT}),
    "boosted that stop": (
        GradientBoostingRegressor(max_leaf_nodes=5, random_state=1, **STOPS),
        NUMBERS,
        {"init_score": X[:, 1]},
    ),
}
GRID = {"max_depth": [2, 4, None], "max_features": [2, 3], "max_bins": [None, 20]}


@pytest.fixture
def arrivals(monkeypatch):
    """Counts trees that come, or iterations; Ctrl-C comes before number ``last``."""
    return Arrivals(monkeypatch)


class Arrivals:
    def __init__(self, monkeypatch):
        self.n, self.last = 0, None
        add = SavedTrees.add

        def counted(saved, at, trees):
            if self.n == self.last:
                raise KeyboardInterrupt
            self.n += 1
            add(saved, at, trees)

        monkeypatch.setattr(SavedTrees, "add", counted)

    def of(self, work, last=None):
        """Results of a piece of work, and how many trees came."""
        self.n, self.last = 0, last
        return work(), self.n


def trees_of(model):
    return digest(model.forest_.trees if hasattr(model, "forest_") else [model.tree_.model])


def validated(estimator, X, y, params=None, **how):
    params = params or None
    found = cross_validate(estimator, X, y, cv=4, params=params, return_estimator=True, **how)
    models = [*found["estimator"], found.final_estimator]
    return found["test_score"].tolist(), [trees_of(model) for model in models]


def interrupted_twice(arrivals, work, folder, n_trees, seed):
    """Interrupt work at two moments that are drawn, and end it; what it found."""
    first, second = np.sort(np.random.default_rng(seed).choice(n_trees, 2, replace=False)).tolist()
    for last in (first, second - first):
        with pytest.raises(KeyboardInterrupt):
            arrivals.of(lambda: work(checkpoint=folder), last)
    found, n_new = arrivals.of(lambda: work(checkpoint=folder))
    assert n_new == n_trees - second  # and nothing grows again
    again, n_new = arrivals.of(lambda: work(checkpoint=folder))
    assert n_new == 0
    return found, again


class TestValidations:
    @pytest.mark.one_of(10)
    @pytest.mark.parametrize("name", ESTIMATORS)
    @pytest.mark.parametrize("table", TABLES)
    def test_the_same_models_and_scores(self, table, name, arrivals, tmp_path):
        estimator, y, params = ESTIMATORS[name]
        with dask.config.set(scheduler="synchronous"):
            given = TABLES[table]()

            def work(**how):
                return validated(estimator, given, y, params, **how)

            whole, _ = arrivals.of(work)
            _, n_trees = arrivals.of(lambda: work(checkpoint=tmp_path / "whole"))
            seed = [len(name), len(table)]
            for found in interrupted_twice(arrivals, work, tmp_path / "there", n_trees, seed):
                assert found == whole

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize(
        "ask",
        [
            lambda **how: cross_val_predict(FOREST, X, TWO, cv=3, **how),
            lambda **how: cross_val_score(BOOSTED, X, TWO, cv=3, **how),
            lambda **how: boosting_curve(BOOSTED, X, TWO, cv=3, **how).scores,
            lambda **how: validation_surface(TREE, X, TWO, cv=3, **how).scores,
            lambda **how: cost_complexity_cv(TREE, X, TWO, cv=3, **how).errors,
            lambda **how: list(tuned_size(BOOSTED, X, TWO, 3, **how).chosen.parameters.values()),
            lambda **how: (
                nested_standard_error(
                    *(FOREST, X, TWO), cv=3, n_repeats=2, random_state=0, **how
                ).standard_error
            ),
            lambda **how: (
                nested_standard_error(
                    *(GridSearchCV(TREE, {"max_features": [2, 4]}, cv=2), X, TWO),
                    cv=3,
                    n_repeats=1,
                    random_state=0,
                    **how,
                ).standard_error
            ),
        ],
        ids=["predictions", "scores", "curve", "surface", "path", "size", "error", "of a search"],
    )
    def test_what_else_there_is(self, ask, arrivals, tmp_path):
        _, n_trees = arrivals.of(lambda: ask(checkpoint=tmp_path / "whole"))
        whole = ask()
        for found in interrupted_twice(arrivals, ask, tmp_path / "there", n_trees, 5):
            np.testing.assert_array_equal(found, whole)

    def test_draws_and_results_that_are_pickled(self, tmp_path):
        """Without a random state, the seed is that of the trees that are there."""
        drawn = RandomForestClassifier(5)
        first = validated(drawn, X, TWO, checkpoint=tmp_path)
        assert validated(drawn, X, TWO, checkpoint=tmp_path) == first
        more = validated(RandomForestClassifier(9), X, TWO, checkpoint=tmp_path)
        assert more != first
        found = cross_validate(drawn, X, TWO, cv=4, checkpoint=tmp_path)
        copy = pickle.loads(pickle.dumps(found))
        assert trees_of(copy.final_estimator) == trees_of(found.final_estimator)

    def test_there_are_few_files(self, tmp_path):
        """One for each growth that has ended, where it takes less than ten seconds."""
        cross_val_score(FOREST, X, TWO, cv=30, checkpoint=tmp_path)
        assert len(list(tmp_path.iterdir())) == 2

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
    @pytest.mark.parametrize("name", ["forest", "boosted"])
    def test_of_a_process_that_is_killed(self, name, arrivals, tmp_path):
        there, number = tmp_path / "there", int(np.random.default_rng(len(name)).integers(3, 20))
        done = run_forked("-c", KILLED, name, there, str(number))
        assert done.returncode == -signal.SIGKILL, done.stderr
        estimator, y, params = ESTIMATORS[name]
        whole = tmp_path / "whole"
        _, n_trees = arrivals.of(lambda: validated(estimator, X, y, params, checkpoint=whole))
        found, n_new = arrivals.of(lambda: validated(estimator, X, y, params, checkpoint=there))
        assert found == validated(estimator, X, y, params)
        assert n_trees - number <= n_new <= n_trees - number + 2  # threads add at the same time

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("regime", ["replicated", "partitioned"])
    def test_on_a_cluster(self, regime, arrivals, tmp_path):
        whole = validated(FOREST, X, THREE)
        own = RandomForestClassifier(8, random_state=1, regime=regime)
        table = da.from_array(X, chunks=(90, 6))
        with ExitStack() as stack:
            stack.enter_context(Client(stack.enter_context(connect(2, 1, False))))
            with pytest.raises(KeyboardInterrupt):
                arrivals.of(lambda: validated(own, table, THREE, checkpoint=tmp_path), 17)
            found, n_new = arrivals.of(lambda: validated(own, table, THREE, checkpoint=tmp_path))
        assert found == whole
        assert n_new == 5 * 8 - 17
        assert validated(FOREST, X, THREE, checkpoint=tmp_path) == whole


KILLED = """
import os, signal, sys
import dask
import dtrees.parallel.checkpoint
from dtrees.parallel import SavedTrees
from tests.model_selection.test_checkpoints import ESTIMATORS, X, validated

added, add = [], SavedTrees.add

def killed(saved, at, trees):
    if len(added) == int(sys.argv[3]):
        saved.checkpoint.save()
        os.kill(os.getpid(), signal.SIGKILL)
    added.append(at)
    add(saved, at, trees)

SavedTrees.add = killed
dask.config.set({"dtrees.checkpoint-every": "0s"})
dtrees.parallel.checkpoint.SHARE = 0
estimator, y, params = ESTIMATORS[sys.argv[1]]
validated(estimator, X, y, params, checkpoint=sys.argv[2])
"""


class TestSearches:
    @pytest.mark.one_of(4)
    @pytest.mark.parametrize(
        "search",
        [
            GridSearchCV(TREE, GRID, cv=3),
            GridSearchCV(FOREST, GRID, cv=3, refit=False),
            GridSearchCV(BOOSTED, {"max_iter": [3, 6], "learning_rate": [0.1, 0.3]}, cv=3),
            RandomizedSearchCV(
                *(FOREST, {"n_estimators": randint(1, 8), "max_features": [2, 3]}),
                n_iter=6,
                random_state=0,
                cv=3,
                return_train_score=True,
            ),
        ],
        ids=["tree", "forest", "boosted", "drawn"],
    )
    def test_the_same_results(self, search, arrivals, tmp_path):
        def work(**how):
            found = search.fit(X, TWO, **how)
            scores = {
                name: values.tolist()
                for name, values in found.cv_results_.items()
                if name.endswith("_score")
            }
            return scores, trees_of(found.best_estimator_) if found.refit else None

        whole, _ = arrivals.of(work)
        _, n_trees = arrivals.of(lambda: work(checkpoint=tmp_path / "whole"))
        for found in interrupted_twice(arrivals, work, tmp_path / "there", n_trees, 8):
            assert found == whole

    def test_nested(self, arrivals, tmp_path):
        search = GridSearchCV(TREE, GRID, cv=3)

        def work(**how):
            found = cross_validate(search, X, TWO, cv=3, **how)
            return found["test_score"].tolist(), trees_of(found.final_estimator.best_estimator_)

        _, n_trees = arrivals.of(lambda: work(checkpoint=tmp_path / "whole"))
        whole = work()
        for found in interrupted_twice(arrivals, work, tmp_path / "there", n_trees, 9):
            assert found == whole

    def test_more_candidates(self, arrivals, tmp_path):
        small, large = {"max_features": [2, 3]}, {"max_features": [2, 5, 3], "max_depth": [3, None]}
        GridSearchCV(FOREST, small, cv=3).fit(X, TWO, checkpoint=tmp_path)
        _, n_new = arrivals.of(
            lambda: GridSearchCV(FOREST, large, cv=3, refit=False).fit(X, TWO, checkpoint=tmp_path)
        )
        assert n_new == 3 * 8


class TestOthers:
    @pytest.fixture
    def folder(self, tmp_path):
        cross_validate(FOREST, X, TWO, cv=4, checkpoint=tmp_path)
        return tmp_path

    @pytest.mark.parametrize(
        ("work", "words"),
        [
            (lambda **to: cross_validate(FOREST, X, 1 - TWO, cv=4, **to), r"y, or sample_weight"),
            (lambda **to: cross_validate(FOREST, X[::-1], TWO, cv=4, **to), "the rows of X"),
            (lambda **to: cross_validate(FOREST, X, TWO, cv=5, **to), "training sides, which cv"),
            (
                lambda **to: cross_val_score(FOREST, X, TWO, cv=4, **to),
                "asked for .it was cross_va",
            ),
            (lambda **to: FOREST.fit(X, TWO, **to), r"asked for .it was cross_validate and is fit"),
            (lambda **to: cross_validate(TREE, X, TWO, cv=4, **to), "the class .it was Random"),
            (
                lambda **to: cross_validate(
                    GridSearchCV(RandomForestClassifier(8, max_depth=3, random_state=1), {}, cv=2),
                    *(X, TWO),
                    cv=4,
                    **to,
                ),
                "max_depth was None and is 3",
            ),
        ],
    )
    def test_are_refused(self, work, words, folder):
        with pytest.raises(ValueError, match=f"holds trees of another fit.*differs: .*{words}"):
            work(checkpoint=folder)

    def test_a_search_is_refused_by_its_first_growth(self, folder):
        with pytest.raises(ValueError, match=r"asked for \(it was cross_validate and is GridS"):
            GridSearchCV(FOREST, GRID, cv=4).fit(X, TWO, checkpoint=folder)

    def test_a_file_that_is_torn(self, folder):
        for path in folder.glob("*.dtrees"):
            path.write_bytes(path.read_bytes()[:-50])
        with pytest.raises(ModelFileError, match=r"\.dtrees"):
            cross_validate(FOREST, X, TWO, cv=4, checkpoint=folder)

    @pytest.mark.parametrize(
        ("work", "words"),
        [
            (
                lambda **to: cross_validate(make_pipeline(StandardScaler(), TREE), X, TWO, **to),
                "cross_validate has no checkpoint here, as models do not grow together: Pipeline",
            ),
            (
                lambda **to: cross_val_score(DummyClassifier(), X, TWO, **to),
                "cross_val_score has no checkpoint here.*DummyClassifier is not an estimator of dt",
            ),
            (
                lambda **to: GridSearchCV(
                    make_pipeline(StandardScaler(), TREE),
                    {"decisiontreeclassifier__max_depth": [1, 2]},
                ).fit(X, TWO, **to),
                "GridSearchCV has no checkpoint here.*fit a model to each training side",
            ),
            (
                lambda checkpoint: cross_validate(
                    FOREST, X, TWO, params={"checkpoint": checkpoint}
                ),
                "as all fits would have the same one. Give checkpoint=... to cross_validate itself",
            ),
            (
                lambda **to: validation_surface(make_pipeline(TREE), X, TWO, **to),
                "validation_surface needs models that grow together",
            ),
        ],
    )
    def test_work_that_cannot_have_one(self, work, words, tmp_path):
        with pytest.raises((ValueError, TypeError), match=words):
            work(checkpoint=tmp_path / "new")
        assert not (tmp_path / "new").exists()
