"""Processes that are forked from one that has worked on threads, or has a Dask client."""

import multiprocessing
import textwrap

import pytest

from tests.forked import run_forked

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no process can be forked"
)

# `in_child` ends with a traceback where a child hangs: all that a program here does takes seconds.
HEAD = """
import faulthandler
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

import dask
import dask.array as da
import distributed
import numpy as np
import pandas as pd

import dtrees
from dtrees.model_selection import *

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 6))
y = (X[:, 0] + 0.3 * rng.normal(size=4000) > 0).astype(int)


def in_child(work):
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(100, exit=True)
        try:
            work()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


def run(program):
    done = run_forked("-c", HEAD + textwrap.dedent(program), PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr
    return done.stdout


WORK = """
from click.testing import CliRunner
from sklearn.model_selection import KFold
from dtrees.cli import main as command
from dtrees.inspection import partial_dependence

lazy = da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000)
tree = dtrees.DecisionTreeClassifier(max_depth=5, random_state=0, n_jobs=2)
forest = dtrees.RandomForestClassifier(4, max_depth=5, random_state=0, n_jobs=2)
boosted = dtrees.GradientBoostingClassifier(max_iter=3, random_state=0, n_jobs=2)
some = {"n_estimators": 4, "max_depth": 5, "random_state": 0, "n_jobs": 2}
others = [dtrees.ExtraTreesClassifier(**some), dtrees.BaggingRegressor(**some)]
folds = list(KFold(3).split(X))


def answers(model):
    model.fit(X, y)
    leaves = [model.apply(X)] if hasattr(model, "apply") else []
    return np.column_stack([model.predict(X), *leaves])


def commanded():
    with CliRunner().isolated_filesystem():
        pd.DataFrame({"a": X[:, 0], "y": y}).to_csv("in.csv", index=False)
        done = CliRunner().invoke(command, ["fit", "in.csv", "--target", "y", "--out", "m"])
        assert done.exit_code == 0, done.output
        return done.exit_code


JOBS = [
    *(lambda model=model: answers(model) for model in (tree, forest, boosted, *others)),
    lambda: tree.fit(*lazy).predict(lazy[0]).compute(),
    lambda: [tree.score(*lazy)],
    lambda: boosted.fit(*lazy, X_val=X, y_val=lazy[1]).predict_proba(X),
    lambda: dtrees.RandomForestClassifier(regime="partitioned", **some).fit(*lazy).predict(X),
    lambda: cross_validate(tree, X, y, cv=folds)["test_score"],
    lambda: cross_validate(forest, *lazy, cv=3, scoring="accuracy")["test_score"],
    lambda: cross_val_predict(forest, X, y, cv=folds),
    lambda: GridSearchCV(tree, {"max_depth": [2, 3]}, cv=folds, n_jobs=2).fit(X, y).predict(X),
    lambda: validation_surface(tree, X, y, cv=folds).scores,
    lambda: cost_complexity_cv(tree, X, y, cv=folds).ccp_alphas,
    lambda: boosting_curve(boosted, X, y, cv=folds).scores,
    lambda: tuned_size(tree, X, y, folds).chosen.scores,
    lambda: partial_dependence(forest.fit(X, y), 0).average,
    commanded,
]


def all_work():
    return [np.asarray(piece) for job in JOBS for piece in [job()]]


def compare():
    for number, (found, expected) in enumerate(zip(all_work(), before, strict=True)):
        assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"), number


before = all_work()
assert dask.threaded.default_pool is not None  # whose threads a child would miss
"""


def test_all_that_works_in_the_parent_works_in_a_child():
    run(WORK + "in_child(compare)\n")


def test_a_child_of_a_process_whose_other_threads_work():
    """Locks that they hold are free in it."""
    run("""
        X, y = X[:1000], y[:1000]
        tree = dtrees.DecisionTreeRegressor(max_depth=5, n_jobs=2)
        forest = dtrees.RandomForestRegressor(10, oob_score=True, n_jobs=2).fit(X, y)
        done = threading.Event()
        works = [  # and no Dask collection: of Python 3.11, Dask's cached properties hold a lock
            lambda: tree.fit(X, y),
            lambda: forest.prediction_interval(X[:20]),
            lambda: forest.predict(X),
        ]

        def go_on(work):
            while not done.is_set():
                work()

        def all_works():
            for work in works:
                work()

        threads = [threading.Thread(target=go_on, args=[work], daemon=True) for work in works]
        for thread in threads:
            thread.start()
        for _ in range(2):
            in_child(all_works)
        done.set()
        for thread in threads:
            thread.join()
    """)


def test_what_another_thread_holds_meanwhile():
    """It is free in a child, which has what the thread was about to make."""
    run("""
        import pickle
        import sys
        import time
        from dtrees.parallel import dask_predict

        sys.begun = threading.Event()
        SLOW = "__import__('sys').begun.set() or __import__('time').sleep(0.3) or 7"


        class Slow:
            def __reduce__(self):
                return eval, (SLOW,)


        def work():
            faulthandler.dump_traceback_later(10, exit=True)
            assert shared.open() == 7


        shared = pickle.loads(pickle.dumps(dask_predict.Sealed(Slow())))
        thread = threading.Thread(target=shared.open)
        thread.start()
        assert sys.begun.wait(30)
        in_child(work)
        thread.join()
    """)


def test_a_child_of_a_process_that_grows_the_final_model():
    """Whoever grows it holds a lock of the result, which a child asks for."""
    run("""
        found = cross_validate(dtrees.DecisionTreeClassifier(n_jobs=1), X, y, cv=2)
        grow, grows, goes_on = found._grow, threading.Event(), threading.Event()

        def wait_and_grow():
            if threading.current_thread() is not threading.main_thread():
                grows.set()
                assert goes_on.wait(100)
            return grow()

        def work():
            assert found.final_estimator.tree_.node_count > 1
            assert found["final_estimator"] is found.final_estimator

        assert grow is not None
        found._grow = wait_and_grow
        thread = threading.Thread(target=lambda: found.final_estimator)
        thread.start()
        assert grows.wait(100)
        in_child(work)
        goes_on.set()
        thread.join()
        work()
    """)


def test_stored_cells_that_another_thread_lists_by_row():
    """Whoever lists them holds a lock of theirs, which a child asks for."""
    run("""
        from dtrees.coding.target import Target
        from dtrees.core.data.rules import GrowthRules
        from dtrees.core.stores._dataset import Dataset
        from dtrees.core.stores.blocks._node_counts import StoredCounter
        from dtrees.core.stores.blocks.block import EVERYONE, NodeRows
        from dtrees.core.stores.blocks.messages import Root
        from tests.laws.tables import coded_sparse, seeded

        matrix = coded_sparse(seeded("gini", 3, "none", kinds=("distinct",), n_rows=900).table, 1)
        dataset = Dataset(matrix, Target.classification(y[:900]), GrowthRules(criterion="gini"))
        node = NodeRows(Root(0, 0), np.arange(9, dtype=np.uint32), None, None, EVERYONE)
        zeros, lists, goes_on = np.zeros, threading.Event(), threading.Event()

        def wait_and_make(shape, dtype=float):
            if shape == matrix.n_rows + 2 and not lists.is_set():
                lists.set()
                assert goes_on.wait(100)
            return zeros(shape, dtype)

        def work():
            counter = StoredCounter(dataset, matrix)
            counter.count(node, 1)
            assert counter.by_row == 1

        np.zeros = wait_and_make
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        assert lists.wait(100)
        in_child(work)
        goes_on.set()
        thread.join()
    """)


@pytest.mark.parametrize(
    ("pool", "grown"),
    [
        ("ProcessPoolExecutor(2, mp_context=context)", "pool.submit(tree.fit, X, y).result()"),
        ("context.Pool(2)", "pool.apply(tree.fit, (X, y))"),
    ],
)
def test_pools_of_processes(pool, grown):
    run(f"""
        faulthandler.dump_traceback_later(100, exit=True)
        tree = dtrees.DecisionTreeClassifier(random_state=0, n_jobs=2).fit(X, y)
        context = multiprocessing.get_context("fork")
        with {pool} as pool:
            assert np.array_equal({grown}.predict(X), tree.predict(X))
    """)


def test_a_client_of_the_parent():
    run("""
        from dtrees.exceptions import ClusterError, SchedulerLostError

        lazy = da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000)
        tree = dtrees.DecisionTreeClassifier(max_depth=3)
        forest = dtrees.RandomForestClassifier(4, random_state=0)
        everywhere = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp://"}

        def refused(work):
            try:
                work()
            except SchedulerLostError as error:
                assert "was forked" in str(error), error
            else:
                raise AssertionError("it was not refused")

        def work():
            before = forest.predict(X)
            dask.config.set({"distributed.comm.timeouts.connect": "100s"})
            forest.fit(X, y)
            assert forest.fit_report_["regime"] == "local", forest.fit_report_
            assert "forked" in forest.fit_report_["reason"]
            assert np.array_equal(forest.predict(X), before)
            cross_validate(forest, X, y)
            tree.fit(X, y)
            dtrees.GradientBoostingClassifier(max_iter=2).fit(X, y)
            refused(lambda: forest.fit(*lazy))
            refused(lambda: tree.fit(*lazy))
            refused(lambda: tree.score(*lazy))
            refused(lambda: cross_validate(tree, *lazy, cv=3))
            refused(lambda: dtrees.estimate_cost(forest, lazy[0]))
            refused(lambda: forest.set_params(regime="replicated").fit(X, y))
            forest.set_params(regime="partitioned").fit(X, y)
            with dask.config.set(scheduler="threads"):
                tree.fit(*lazy)
            with distributed.Client(address, set_as_default=False).as_current():
                forest.set_params(regime="replicated").fit(X, y)
                assert forest.fit_report_["regime"] == "replicated"

        with (
            distributed.LocalCluster(dashboard_address=":0", **everywhere) as cluster,
            distributed.Client(cluster),
        ):
            address = cluster.scheduler_address
            forest.fit(X, y)
            assert forest.fit_report_["regime"] == "replicated"
            in_child(work)
    """)
