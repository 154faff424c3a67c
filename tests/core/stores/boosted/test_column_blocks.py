"""Codes by row, in blocks of columns."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.mapped import empty_on_disk, is_mapped
from dtrees.core._testing import histogram_of
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks
from tests.coding.examples import coded_columns
from tests.core.grow.boosted_cases import table_of
from tests.oracle.boosting import Rules, boost

MAPPED_ROWS = 2**17  # as in _column_blocks.pyx
RNG = np.random.default_rng(0)


def coded_of(n_codes, n_rows=200):
    columns = [RNG.integers(0, k + 1, n_rows) for k in n_codes]
    return columns, coded_columns(columns, n_codes, n_codes)


@pytest.mark.parametrize(
    ("n_codes", "n_threads", "n_blocks"),
    [
        ([3], 1, 1),
        ([3], 9, 1),
        ([3] * 8, 1, 1),
        ([3] * 8, 2, 2),
        ([3] * 9, 1, 2),
        ([3] * 9, 4, 2),
        ([255] * 16, 1, 2),
        ([255] * 16, 3, 3),
        ([255] * 16, 8, 4),
        ([7] * 17, 1, 3),
        ([7] * 17, 2, 4),
        ([3, 300, 4, 70_000], 1, 3),
        ([300, 70_000], 2, 2),
    ],
)
@pytest.mark.parametrize("some", [False, True])
def test_cells_have_the_sums_of_their_rows(n_codes, n_threads, n_blocks, some):
    columns, coded = coded_of(n_codes)
    blocks = ColumnBlocks(coded, n_threads=n_threads)
    assert (blocks.n_rows, blocks.n_blocks) == (200, n_blocks)
    assert blocks.n_cells == sum(n_codes) + len(n_codes)
    rows = np.flatnonzero(RNG.random(200) < 0.4).astype(np.uint32) if some else None
    gradient, hessian = RNG.integers(-99, 99, 200), RNG.integers(0, 99, 200)
    packed = (gradient << 32 | hessian).view(np.uint64)
    own = slice(None) if rows is None else rows
    for j, codes in enumerate(columns):
        found = histogram_of(blocks, j, rows, packed)
        for column, values in enumerate((np.ones(200, dtype=int), hessian, gradient)):
            wanted = np.bincount(codes[own], values[own], minlength=n_codes[j] + 1)
            np.testing.assert_array_equal(found[:, column], wanted)


def test_sparse_columns():
    indptr, rows, codes = [0, 2, 3], [1, 4, 0], [2, 3, 1]
    coded = CodedMatrix.sparse(
        5, np.array(indptr), np.array(rows), np.array(codes), [3, 2], [3, 2], [1, 2]
    )
    blocks = ColumnBlocks(coded)
    packed = np.ones(5, dtype=np.uint64)
    np.testing.assert_array_equal(histogram_of(blocks, 0, None, packed)[:, 0], [0, 3, 1, 1])
    some = np.array([0, 4], dtype=np.uint32)
    np.testing.assert_array_equal(histogram_of(blocks, 1, some, packed)[:, 0], [0, 1, 1])


pytest.importorskip("pandas")


def exclusive(rng, n_rows, n_columns, others):
    """Codes of columns that have a common one; in a row, one column at most has another."""
    owner = rng.integers(0, 10 * n_columns // 8, n_rows)
    found = []
    for j in range(n_columns):
        common = int(rng.integers(0, others + 1))
        codes = np.full(n_rows, common)
        own = owner == j
        codes[own] = rng.integers(0, others + 1, own.sum())
        found.append(codes)
    return found


def blocks_of(columns, n_codes):
    coded = coded_columns(columns, n_codes, n_codes)
    blocks = ColumnBlocks(coded)
    return blocks


@given(
    seed=st.integers(0, 500),
    n_columns=st.integers(9, 20),
    others=st.integers(1, 30),
    some=st.booleans(),
)
def test_cells_of_bundles_have_the_sums_of_their_rows(seed, n_columns, others, some):
    rng = np.random.default_rng(seed)
    n = 300
    columns = exclusive(rng, n, n_columns, others)
    columns.insert(3, rng.integers(0, 5, n))  # one that is like no other
    n_codes = [others] * len(columns)
    n_codes[3] = 4
    blocks = blocks_of(columns, n_codes)
    assert blocks.n_bundled >= n_columns - 2
    rows = np.flatnonzero(rng.random(n) < 0.4).astype(np.uint32) if some else None
    own = slice(None) if rows is None else rows
    gradient, hessian = rng.integers(-99, 99, n), rng.integers(0, 99, n)
    packed = (gradient << 32 | hessian).view(np.uint64)
    for j, codes in enumerate(columns):
        found = histogram_of(blocks, j, rows, packed)
        for column, values in enumerate((np.ones(n, dtype=int), hessian, gradient)):
            wanted = np.bincount(codes[own], values[own], minlength=n_codes[j] + 1)
            np.testing.assert_array_equal(found[:, column], wanted)


def indicators(n, *owned):
    """Columns of code 2 in some rows, and code 1 elsewhere."""
    columns = []
    for rows in owned:
        codes = np.ones(n, dtype=int)
        codes[rows] = 2
        columns.append(codes)
    return columns


@pytest.mark.parametrize(
    ("owned", "n_bundled"),
    [
        ([[0], [1], [2]], 3),
        ([[0], [0], [2]], 2),  # the second one stands alone
        ([[0], [0], [0]], 0),
        ([list(range(50)), list(range(50, 100))], 0),  # no code is common
        ([[99], [64, 98], [63]], 3),  # words of 64 rows
        ([[99], [64, 99], [63]], 2),
        ([[], []], 2),
        ([[5]], 0),  # no company
    ],
)
def test_a_row_has_one_other_code_at_most(owned, n_bundled):
    blocks = blocks_of(indicators(100, *owned), [2] * len(owned))
    assert blocks.n_bundled == n_bundled


def test_a_bundle_has_no_more_cells_than_a_byte_tells_apart():
    owned = [[row] for row in range(90)]
    blocks = blocks_of(indicators(200, *owned), [2] * 90)
    assert blocks.n_bundled == 90
    assert blocks.n_cells == 90 * 3 + 2  # 85 columns, and 5
    many = np.ones(200, dtype=int)
    many[:10] = np.arange(100, 110)
    assert blocks_of([many, *indicators(200, [50])], [254, 2]).n_bundled == 0
    assert blocks_of([many, *indicators(200, [50])], [251, 2]).n_bundled == 2


@given(
    seed=st.integers(0, 1000),
    is_classes=st.booleans(),
    min_rows=st.sampled_from([1, 3]),
    l2=st.sampled_from([0.0, 0.75]),
)
def test_the_slow_model(seed, is_classes, min_rows, l2):
    """Numbers, gaps and categories, common and not, have the splits of their raw values."""
    rng = np.random.default_rng(seed)
    n, kinds = 48, ("numbers", "gaps", "categories")
    owner = rng.integers(0, 10, n)
    columns = []
    for j in range(8):
        kind = kinds[int(rng.integers(3))]
        values = {
            "numbers": [0.0, 1.0, 2.0, 5.0],
            "gaps": [None, 1.0, 2.0, -1.0],
            "categories": list("abcd"),
        }[kind]
        rng.shuffle(values)
        columns.append([values[int(rng.integers(4))] if o == j else values[0] for o in owner])
    columns.append(rng.integers(0, 5, n).astype(float).tolist())
    y = rng.integers(0, 2, n) if is_classes else rng.integers(-9, 9, n).astype(float)
    if is_classes:
        y[:2] = 0, 1
    rules = {"max_leaf_nodes": 8, "min_samples_leaf": min_rows, "l2_regularization": l2}
    kind = GradientBoostingClassifier if is_classes else GradientBoostingRegressor
    model = kind(max_iter=3, max_bins=None, **rules).fit(table_of(columns), y)
    loss = "log_loss" if is_classes else "squared_error"
    start = float(model._initial[0])
    raw, used = boost(columns, y.astype(float).tolist(), loss, start, Rules(**rules))
    found = [sorted(t.feature[t.feature >= 0].tolist()) for t in model.forest_.trees]
    assert found == [sorted(each) for each in used]
    predicted = model._predictor().raw(model._predictor().check(table_of(columns)))[:, 0]
    np.testing.assert_allclose(predicted, raw, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_codes", [[255] * 11 + [300], [3] * 3])
def test_blocks_in_files(n_codes, tmp_path):
    """Rows of stretches, and of ends of them, are counted as in memory; their pages are let go."""
    n_rows = 2 * MAPPED_ROWS + 5
    _, coded = coded_of(n_codes, n_rows)
    empty = partial(empty_on_disk, folder=tmp_path)
    mapped = CodedMatrix.stack([coded], empty=empty)
    assert mapped.is_mapped
    blocks = [ColumnBlocks(mapped, is_part=True, empty=empty), ColumnBlocks(coded, is_part=True)]
    assert is_mapped(blocks[0].empty(1))
    derivatives = RNG.integers(0, 2**63, n_rows).astype(np.uint64)
    few = np.sort(RNG.choice(n_rows, 99, replace=False)).astype(np.uint32)
    ends = np.array([0, MAPPED_ROWS - 1, MAPPED_ROWS, n_rows - 1], dtype=np.uint32)
    for rows, j in product((None, few, ends, ends[-1:], ends[:0]), (0, len(n_codes) - 1)):
        found, expected = (histogram_of(each, j, rows, derivatives) for each in blocks)
        np.testing.assert_array_equal(found, expected)
