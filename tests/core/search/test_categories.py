"""Categories of a column: their order, the subset that is chosen, and what it pays."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from tests.laws.tables import Example, coded, coded_sparse, fit, grow_parts, grow_tree
from tests.oracle.greedy import assert_tree_is_greedy


def example(columns, y, weight=None, **limits):
    weight = None if weight is None else np.array(weight, dtype=float)
    return Example(columns, np.asarray(y), weight, "gini", limits)


def test_many_categories_and_classes():
    # Beyond all subsets: the first principal component finds two kinds of categories.
    rng = np.random.default_rng(0)
    letters = np.repeat([f"c{k:02d}" for k in range(40)], 30)
    kind = np.repeat(rng.integers(0, 2, 40), 30)
    y = np.where(kind, rng.integers(0, 2, 1200), rng.integers(2, 4, 1200))
    case = example([letters.tolist()], y, max_depth=1)
    tree = fit(case)
    assert tree.value[1:].max(axis=1).max() < 0.6
    assert ((tree.value[1:] > 0).sum(axis=1) == 2).all()
    assert_tree_is_greedy(tree, case.table, case.target, case.rules)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_classes", [4, 60])
@pytest.mark.parametrize("weighted", [False, True])
def test_principal_component(seed, n_classes, weighted):
    # As good as the best prefix along numpy's component, and as each category alone.
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 15, 400)
    y = (codes % 3 + rng.integers(0, 3, 400)) % 4
    noise = rng.random(400) < (0.0 if n_classes == 4 else 0.5)
    y = np.where(noise, rng.integers(0, n_classes, 400), y)
    weight = rng.integers(1, 4, 400) if weighted else np.ones(400)
    counts = np.zeros((15, n_classes))
    np.add.at(counts, (codes, y), weight)
    shares = counts / counts.sum(axis=1, keepdims=True)
    around = shares - counts.sum(axis=0) / counts.sum()
    _, axes = np.linalg.eigh((around * counts.sum(axis=1, keepdims=True)).T @ around)
    order = np.argsort(around @ axes[:, -1])
    lefts = [counts[order[:k]].sum(axis=0) for k in range(1, 15)] + list(counts)
    total = counts.sum(axis=0)

    def share(c):
        return (c**2).sum() / c.sum()

    best = max(share(left) + share(total - left) for left in lefts) - share(total)
    tree = fit(example([[f"c{c:02d}" for c in codes]], y, weight=weight, max_depth=1))
    assert tree.gain[0] >= best * (1 - 1e-12)


def test_as_many_classes_as_rows():
    # Nothing of 30,000 x 30,000 numbers is allocated. Any two halves gain the same.
    letters = np.repeat([f"c{k:02d}" for k in range(12)], 2_500)
    tree = fit(example([letters.tolist()], np.arange(30_000), max_depth=1))
    assert tree.node_count == 3
    assert tree.gain[0] == pytest.approx(1.0)


N_SUBSET_ROWS = 400


def one_column(criterion: str, n_classes: int, n_categories: int, missing: bool) -> Example:
    """One column of categories, some of which are missing values."""
    rng = np.random.default_rng(n_categories)
    codes = rng.integers(0, n_categories, N_SUBSET_ROWS)
    if n_classes > 0:
        y = np.where(
            rng.random(N_SUBSET_ROWS) < 0.4, codes * 7 % n_classes, rng.integers(0, n_classes)
        )
        y[:n_classes] = range(n_classes)
    else:
        y = codes * 7 % 5 + rng.gamma(2.0, size=N_SUBSET_ROWS)
    column = [None if missing and k == 0 else f"c{k:02d}" for k in codes]
    return Example([column], y, None, criterion, {"max_depth": 1, "category_penalty": 0.0})


def impurity(sums: np.ndarray, criterion: str) -> np.ndarray:
    """Weight times impurity of nodes: sums per class, or (rows, y, y * y)."""
    n = np.maximum(sums.sum(axis=-1) if criterion != "squared_error" else sums[..., 0], 1e-300)
    if criterion == "squared_error":
        return sums[..., 2] - sums[..., 1] ** 2 / n
    share = sums / n[..., None]
    if criterion == "gini":
        return n * (1 - (share**2).sum(axis=-1))
    return -n * (share * np.log2(np.maximum(share, 1e-300))).sum(axis=-1)


def gains_of(given: Example, masks: np.ndarray) -> np.ndarray:
    """What each set of categories gains; a missing value is a category, too."""
    names = [*sorted({*given.table[0]} - {None}), None]
    place = np.array([names.index(v) for v in given.table[0]])
    if given.criterion == "squared_error":
        parts = np.column_stack([np.ones(N_SUBSET_ROWS), given.y, given.y**2])
    else:
        parts = np.eye(given.y.max() + 1)[given.y]
    sums = np.array([parts[place == k].sum(axis=0) for k in range(len(names))])
    is_left = (masks[:, None] >> np.arange(len(names))) & 1
    left, whole = is_left @ sums, sums.sum(axis=0)
    return sum(
        sign * impurity(each, given.criterion)
        for sign, each in [(1, whole[None]), (-1, left), (-1, whole - left)]
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("n_categories", "n_classes"), [(13, 2), (9, 4), (2, 3)])
def test_the_best_of_all_subsets(criterion, missing, n_categories, n_classes):
    n_classes = 0 if criterion == "squared_error" else n_classes
    given = one_column(criterion, n_classes, n_categories, missing)
    best = gains_of(given, np.arange(1 << n_categories)).max()
    assert fit(given).gain[0] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("missing", [False, True])
def test_many_categories_of_many_classes(criterion, missing):
    """Not all subsets are tried: it is at least as good as one category against the rest."""
    given = one_column(criterion, 5, 13, missing)
    found = fit(given).gain[0]
    assert found >= gains_of(given, 1 << np.arange(13)).max() * (1 - 1e-6)
    assert found <= gains_of(given, np.arange(1 << 14)).max() * (1 + 1e-6)


N_ROWS = 240

# Of trees that grew before there was a penalty.
DIGESTS = {
    "gini-2-False-False": "e4d91426173cdda0",
    "gini-4-True-True": "f3b27b679a090f54",
    "entropy-2-True-False": "010ebef79eb21908",
    "entropy-3-False-True": "06be3513d2b73a34",
    "squared_error-0-False-False": "943841c7179ee05d",
    "squared_error-0-True-True": "499efc50bde3c1e1",
    "poisson-0-False-True": "4ee9a913ca92c344",
    "poisson-0-True-False": "22b7b1db09042467",
}


def table_of_categories(seed: int, n_categories: int = 40) -> list[list]:
    """Two columns of many categories, one of which has missing values, and two of numbers."""
    rng = np.random.default_rng(seed)
    names = [f"c{k:02d}" for k in range(n_categories)]
    some = [None if rng.random() < 0.1 else names[k] for k in rng.integers(0, 18, N_ROWS)]
    return [
        [names[k] for k in rng.integers(0, n_categories, N_ROWS)],
        some,
        rng.integers(0, 50, N_ROWS).astype(float).tolist(),
        rng.normal(size=N_ROWS).tolist(),
    ]


def example_with_penalty(criterion: str, n_classes: int, weighted: bool, draws: bool) -> Example:
    """Half of the target follows the third column."""
    rng = np.random.default_rng(n_classes)
    columns = table_of_categories(5)
    steps = np.array(columns[2]) // 10
    noise = rng.integers(0, 5, N_ROWS)
    y = np.where(rng.random(N_ROWS) < 0.5, steps, noise)
    y = y.astype(int) % n_classes if n_classes > 0 else y * 1.25
    weight = rng.choice([0.5, 1.0, 2.0, 3.25], N_ROWS) if weighted else None
    limits = {"max_features": 2, "seed": 3} if draws else {}
    return Example(columns, y, weight, criterion, limits)


def digest(tree) -> str:
    found = hashlib.sha256()
    for array in tree.arrays().values():
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


CASES = [
    ("gini", 2, False, False),
    ("gini", 4, True, True),
    ("entropy", 2, True, False),
    ("entropy", 3, False, True),
    ("squared_error", 0, False, False),
    ("squared_error", 0, True, True),
    ("poisson", 0, True, False),
    ("poisson", 0, False, True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_no_penalty_is_the_search_as_it_was(case):
    assert digest(fit(example_with_penalty(*case))) == DIGESTS["-".join(map(str, case))]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_storage_blocks_and_threads_pay_alike(case):
    given = with_penalty(example_with_penalty(*case), 4.0)
    matrix, target = coded(given.table), given.target
    tree = digest(grow_tree(given, matrix))
    assert tree != digest(fit(with_penalty(given, 0.0)))
    assert tree == digest(grow_tree(given, coded_sparse(given.table, 1)))
    assert tree == digest(grow_tree(given, coded(given.table, 70_000)))
    assert tree == digest(fit(given, n_threads=2))
    parts = [
        (matrix.take(rows), target.take(rows)) for rows in np.split(np.arange(N_ROWS), [70, 90])
    ]
    for gather_rows in (0, 60):
        assert tree == digest(grow_parts(given, parts, gather_rows=gather_rows))


def noisy(weight: np.ndarray | None = None) -> Example:
    """A target of one number and noise, and 120 categories that say nothing."""
    rng = np.random.default_rng(0)
    names = [f"c{k:03d}" for k in rng.integers(0, 120, N_ROWS)]
    number = rng.normal(size=N_ROWS)
    y = (number > 0) + 1.5 * rng.normal(size=N_ROWS)
    return Example([names, number.tolist()], y, weight, "squared_error", {"max_depth": 1})


def with_penalty(given: Example, penalty: float) -> Example:
    return replace(given, limits={**given.limits, "category_penalty": penalty})


class TestWhatIsChosen:
    def test_many_categories_win_by_chance_without_it(self):
        assert fit(noisy()).feature[0] == 0

    def test_with_it_the_number_wins(self):
        assert fit(with_penalty(noisy(), 1.0)).feature[0] == 1

    def test_categories_that_tell_much_are_chosen_all_the_same(self):
        given = noisy()
        told = np.array([hash_of(name) for name in given.table[0]])
        tree = fit(with_penalty(replace(given, y=given.y + 20.0 * told), 1.0))
        assert tree.feature[0] == 0

    def test_gain_is_that_of_the_split(self):
        """The penalty is for the choice only: importances and pruning see what a split gains."""
        given = noisy()
        told = np.array([hash_of(name) for name in given.table[0]])
        given = replace(given, table=given.table[:1], y=given.y + 20.0 * told)
        free, dear = fit(given), fit(with_penalty(given, 1.0))
        assert free.node_count == 3
        for name, array in free.arrays().items():
            assert array.tobytes() == dear.arrays()[name].tobytes(), name

    @pytest.mark.parametrize("penalty", [1.0, 50.0])
    def test_what_gains_no_more_than_chance_is_not_split(self, penalty):
        given = replace(noisy(), table=noisy().table[:1])
        assert fit(given).node_count == 3
        assert fit(with_penalty(given, penalty)).node_count == 1

    @pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
    @pytest.mark.parametrize("n_rows", [3, 4, 7, 20, 200])
    def test_a_name_of_each_row_is_not_split(self, criterion, n_rows):
        """However small the node is. Two names are one boundary, as two numbers would be."""
        ids = [f"{i:03d}" for i in range(n_rows)]
        y = np.arange(n_rows) % 2 + (criterion == "poisson")
        given = Example([ids], y, None, criterion, {})
        assert fit(given).node_count > 1
        assert fit(with_penalty(given, 1.0)).node_count == 1
        if n_rows > 3:
            half = [["ab"[i % 2] for i in range(n_rows)]]
            assert fit(with_penalty(replace(given, table=half), 1.0)).node_count == 3

    def test_in_a_bag_a_row_drawn_twice_is_one_row(self):
        """Names of rows are not split there either; of repeated rows of a table they may be."""
        times = np.random.default_rng(1).multinomial(N_ROWS, np.full(N_ROWS, 1 / N_ROWS))
        ids = [[f"{i:03d}" for i in range(N_ROWS)]]
        y = np.arange(N_ROWS) * 7 % 5 % 2
        given = Example(ids, y, times.astype(float), "gini", {"category_penalty": 1.0})
        assert fit(given).node_count > 1
        limits = {**given.limits, "in_bags": True}
        assert fit(replace(given, limits=limits)).node_count == 1


class TestUnitOfWeights:
    """Small weights make nothing dear, large ones are so many rows."""

    @pytest.mark.parametrize("power", [-40, -3])
    def test_small(self, power):
        tree = fit(with_penalty(noisy(), 1.0))
        small = fit(with_penalty(noisy(np.full(N_ROWS, 2.0**power)), 1.0))
        assert tree.feature.tolist() == small.feature.tolist()
        assert tree.threshold.tobytes() == small.threshold.tobytes()

    def test_many_rows_of_a_category_make_it_credible(self):
        assert fit(with_penalty(noisy(np.full(N_ROWS, 64.0)), 1.0)).feature[0] == 0


def hash_of(name: str) -> int:
    return int(name[1:]) % 7
