"""Products of matrices take one thread, and leave what was set before."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.model_selection import RepeatedKFold
from threadpoolctl import threadpool_info, threadpool_limits

from dtrees import DecisionTreeRegressor, RandomForestRegressor
from dtrees.core.predict import intervals
from dtrees.core.predict.blas import one_blas_thread
from dtrees.core.predict.intervals import Calibration
from dtrees.model_selection import cross_validate


def n_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three():
    with threadpool_limits(limits=3, user_api="blas"):
        assert n_threads() == {3}
        yield
        assert n_threads() == {3}


@pytest.fixture
def seen(monkeypatch):
    """How many threads BLAS had, product by product."""
    had = []

    class Seen(np.ndarray):
        def __matmul__(self, other):
            had.extend(n_threads())
            return np.asarray(self) @ other

    def fixed_point(values):
        *others, numbers = found(values)
        return *others, numbers.view(Seen)

    found = intervals._fixed_point
    monkeypatch.setattr(intervals, "_fixed_point", fixed_point)
    return had


def test_one_thread_and_as_before():
    with one_blas_thread():
        assert n_threads() == {1}
        with one_blas_thread():
            assert n_threads() == {1}
        assert n_threads() == {1}
    assert n_threads() == {3}
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018


def test_threads_take_turns():
    within, together = [], []

    def enter(number):
        for _ in range(20):
            with one_blas_thread():
                within.append(number)
                together.append(len(within))
                within.pop()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(enter, range(3)))
    assert together == [1] * 60
    assert n_threads() == {3}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_intervals(seen, n_jobs):
    X, y = make_friedman1(200, random_state=0)
    forest = RandomForestRegressor(30, oob_score=True, random_state=0, n_jobs=n_jobs).fit(X, y)
    forest.prediction_interval(X)
    assert seen[0] == 1
    assert set(seen) == {1}
    del seen[:]
    tree, cv = DecisionTreeRegressor(max_depth=3, n_jobs=n_jobs), RepeatedKFold(n_repeats=2)
    found = cross_validate(tree, X, y, cv=cv, return_estimator=True)
    found.prediction_interval(X)
    assert set(seen) == {1}


def test_blocks_are_tasks(monkeypatch):
    monkeypatch.setattr(intervals, "CELLS", 60)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10, 5))
    calibration = Calibration(np.ones(20), rng.random((20, 5)) < 0.5)
    sizes = []

    def run(tasks):
        sizes.append(len(tasks))
        return [task() for task in reversed(tasks)]

    np.testing.assert_array_equal(calibration.ends(values, 0.8, run), calibration.ends(values, 0.8))
    assert sizes == [4]
