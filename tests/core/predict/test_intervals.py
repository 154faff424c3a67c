"""Ends of intervals are those of sorted lists, and the same bits in any blocks."""

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.model_selection import RepeatedKFold
from threadpoolctl import threadpool_info, threadpool_limits

from dtrees import DecisionTreeRegressor, RandomForestRegressor
from dtrees.core.predict import intervals
from dtrees.core.predict.intervals import Calibration, least_rows, one_blas_thread, ranks
from dtrees.model_selection import cross_validate


def listed(values, errors, unseen, confidence):
    """Ends for one row, one calibrating row after the other; exact means."""
    lower, upper = [], []
    for error, models in zip(errors, unseen, strict=True):
        mine = [Fraction(v) for v, is_unseen in zip(values, models, strict=True) if is_unseen]
        if not math.isfinite(error):
            lower.append(-math.inf)
            upper.append(math.inf)
            continue
        mean = float(sum(mine) / len(mine)) if mine else 0.0
        lower.append(mean - error)
        upper.append(mean + error)
    n, share = len(errors), Fraction(str(confidence))
    high = math.ceil(share * (n + 1))
    if high > n:
        return -math.inf, math.inf
    return sorted(lower)[n + 1 - high - 1], sorted(upper)[high - 1]


def drawn(seed, n, n_models, n_rows, ties=False):
    rng = np.random.default_rng(seed)
    values, errors = rng.normal(size=(n_rows, n_models)), np.abs(rng.normal(size=n))
    if ties:
        values, errors = np.rint(values), np.rint(errors)
    unseen = rng.random((n, n_models)) < 0.4
    errors[~unseen.any(axis=1)] = np.inf
    return values, errors, unseen


@given(
    st.integers(0, 1000),
    st.integers(0, 40),
    st.integers(1, 12),
    st.sampled_from([0.5, 0.8, 0.9, 0.95]),
    st.booleans(),
)
def test_sorted_lists(seed, n, n_models, confidence, ties):
    values, errors, unseen = drawn(seed, n, n_models, 5, ties)
    found = Calibration(errors, unseen).ends(values, confidence)
    expected = [listed(row, errors, unseen, confidence) for row in values.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    patterns, pattern = np.unique(unseen, axis=0, return_inverse=True)
    shared = Calibration(errors, patterns, pattern.ravel())
    np.testing.assert_array_equal(shared.ends(values, confidence), found)


@pytest.mark.parametrize("cells", [1, 7, 50, 1000])
def test_any_blocks_give_the_same_bits(monkeypatch, cells):
    values, errors, unseen = drawn(0, 90, 33, 40)
    whole = Calibration(errors, unseen).ends(values, 0.9)
    monkeypatch.setattr(intervals, "CELLS", cells)
    np.testing.assert_array_equal(Calibration(errors, unseen).ends(values, 0.9), whole)
    for first in range(0, 40, 13):
        part = Calibration(errors, unseen).ends(values[first : first + 13], 0.9)
        np.testing.assert_array_equal(part, whole[first : first + 13])


@pytest.mark.parametrize("cells", [1, 50, 2**20])
def test_errors_in_units_that_models_tell(monkeypatch, cells):
    monkeypatch.setattr(intervals, "CELLS", cells)
    rng = np.random.default_rng(0)
    values, spreads, errors = rng.random((7, 3)), rng.random((7, 3)), rng.normal(size=40)
    errors[3] = np.inf
    unseen = np.array([[True, False, False], [False, True, True]])
    pattern = rng.integers(0, 2, 40)
    share = (unseen / unseen.sum(axis=1, keepdims=True))[pattern].T
    ends = values @ share + spreads @ share * np.where(errors == np.inf, 0, errors)
    low, high = (np.where(errors == np.inf, end, ends) for end in (-np.inf, np.inf))
    first, last = ranks(0.8, 40, apart=True)
    expected = np.stack([np.sort(low)[:, first - 1], np.sort(high)[:, last - 1]], axis=1)
    made = Calibration(errors, unseen, pattern, is_scaled=True)
    np.testing.assert_allclose(made.ends(values, 0.8, spreads=spreads), expected, rtol=1e-12)


def test_one_model_for_each_row_is_its_own_bits():
    values = np.random.default_rng(0).normal(size=(6, 4)) * [1, 1e-300, 1e300, 0.1]
    pattern = np.array([3, 1, 2, 0, 0, 3])
    found = Calibration(np.zeros(6), np.eye(4, dtype=bool), pattern).means(values)
    np.testing.assert_array_equal(found, values)
    errors = np.arange(6.0)
    made = [Calibration(errors, unseen, pattern) for unseen in (np.eye(4, dtype=bool), None)]
    np.testing.assert_array_equal(made[0].ends(values, 0.6), made[1].ends(values, 0.6))


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e307, 1.7e308])
def test_numbers_of_any_size(scale):
    values = scale * np.array([[0.9, -0.9, 1.0, 0.25], [1.0, 1.0, 1.0, 1.0]])
    unseen = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]], dtype=bool)
    found = Calibration(np.zeros(3), unseen).means(values)
    expected = [[(row / scale)[mine].mean() for mine in unseen] for row in values]
    np.testing.assert_allclose(found / scale, expected, rtol=1e-12, atol=1e-12)


def test_no_model_and_no_rows():
    lost = Calibration(np.array([np.inf, 1.0]), np.array([[False], [True]]))
    np.testing.assert_array_equal(lost.means(np.array([[3.0]])), [[0.0, 3.0]])
    np.testing.assert_array_equal(lost.ends(np.array([[3.0]]), 0.5), [[-np.inf, np.inf]])
    none = Calibration(np.zeros(0), np.zeros((0, 2), dtype=bool))
    np.testing.assert_array_equal(none.ends(np.zeros((1, 2)), 0.5), [[-np.inf, np.inf]])
    assert none.ends(np.zeros((0, 2)), 0.5).shape == (0, 2)


def test_shares_are_the_decimals_that_are_written():
    assert ranks(0.9, 9) == (1, 9)
    assert ranks(0.9, 8) == (0, 9)
    assert ranks(0.9, 89) == (9, 81)  # 0.9 * 90 is 81 and a bit in floats, or a bit less
    for n in range(1, 2000):
        for percent in (50, 80, 90, 95, 99):
            low, high = ranks(percent / 100, n)
            assert high == -(-percent * (n + 1) // 100)
            assert low == n + 1 - high


@pytest.mark.parametrize("apart", [False, True])
def test_the_least_rows_that_have_both_ends(apart):
    for confidence in (0.5, 0.8, 0.9, 0.95, 0.999):
        n = least_rows(confidence, apart)
        assert ranks(confidence, n, apart)[1] == n
        assert ranks(confidence, n - 1, apart)[1] == n
    assert least_rows(0.9, apart) == (19 if apart else 9)


def test_coverage_of_new_rows_of_the_same_kind():
    """The order statistics of n alike rows: means that never change are exact in the mean."""
    rng = np.random.default_rng(0)
    n, n_rows, n_tables = 39, 200, 300
    inside = []
    for _ in range(n_tables):
        made = Calibration(np.abs(rng.normal(size=n)), np.ones((n, 1), dtype=bool))
        low, high = made.ends(np.zeros((1, 1)), 0.9)[0]
        new = rng.normal(size=n_rows)
        inside.append(np.mean((low <= new) & (new <= high)))
    spread = math.sqrt(0.9 * 0.1 * (1 / n + 1 / n_rows) / n_tables)
    assert abs(np.mean(inside) - 36 / 40) < 4 * spread


def n_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture
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


@pytest.mark.usefixtures("three")
def test_one_thread_and_as_before():
    with one_blas_thread():
        assert n_threads() == {1}
        with one_blas_thread():
            assert n_threads() == {1}
        assert n_threads() == {1}
    assert n_threads() == {3}
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018


@pytest.mark.usefixtures("three")
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


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_products_take_one_thread(seen, n_jobs):
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
