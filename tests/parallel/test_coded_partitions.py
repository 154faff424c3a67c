"""Codes in parts that can be sent."""

import dask
import numpy as np
import pytest
import scipy.sparse

from dtrees.parallel import coded_partitions
from dtrees.parallel.coded_partitions import CodedPartitions, PartFacts, are_known, learn_rows
from dtrees.parallel.fit_statistics import FitStatistics
from tests.coding.examples import coded_columns, coded_csc


def table(n_rows=50):
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 5, n_rows).astype(np.uint8), np.ones(n_rows, dtype=np.uint8)]
    return coded_columns(codes, np.full(2, 4), np.full(2, 4))


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.setattr(coded_partitions, "PART_BYTES", 7 * (table().nbytes // 50))
    monkeypatch.setattr(coded_partitions, "WHOLE_BYTES", 0)
    return CodedPartitions.cut(table(), "asked for")


def test_cut(parts):
    assert parts.lengths == (7,) * 7 + (1,)
    assert (parts.n_rows, parts.n_columns, parts.reason) == (50, 2, "asked for")
    found = np.concatenate([part.column(0) for part in parts.each()])
    np.testing.assert_array_equal(found, table().column(0))
    assert parts.sample.n_rows == 1


def test_a_table_of_few_rows_is_not_cut(monkeypatch):
    codes = table()
    monkeypatch.setattr(coded_partitions, "PART_BYTES", 1)
    with dask.config.set({"dtrees.gather-rows": 49}):
        assert len(CodedPartitions.cut(codes, "asked for").lengths) == 50
    whole = CodedPartitions.cut(codes, "asked for")
    assert whole.lengths == (50,)
    assert whole.each()[0] is codes


def test_the_sample_tells_which_columns_are_sparse_once_they_are_known():
    stored = scipy.sparse.csc_array(np.array([[3, 0], [0, 0], [2, 1]], dtype=np.uint32))
    matrix = coded_csc(stored, [3, 2], [3, 2], [1, 2])
    parts = CodedPartitions.cut(matrix, "asked for")
    assert parts.sample.storage.tolist() == [0, 0]
    learn_rows(parts)
    assert parts.facts.n_stored == 3
    assert parts.sample.storage.tolist() == [3, 3]
    assert parts.sample.fill_code.tolist() == [1, 2]
    learned = CodedPartitions.cut(table(), "asked for")
    learn_rows(learned)
    assert learned.sample.storage.tolist() == [0, 0]


@pytest.mark.parametrize(("n_rows", "expected"), [(1, [7] * 7 + [1]), (14, [14, 14, 14, 8])])
def test_groups_lie_one_behind_the_other(n_rows, expected, parts):
    groups = parts.groups(n_rows)
    assert [length for _, length in groups] == expected
    assert [sum(part.n_rows for part in some) for some, _ in groups] == expected


def test_what_is_learned_does_not_depend_on_the_parts(parts):
    stats = FitStatistics()
    assert not are_known(parts)
    learn_rows(parts, stats)
    whole = PartFacts.of(table(), 0)
    assert are_known(parts)
    assert parts.facts.digest == whole.digest
    assert parts.facts.has_missing.tolist() == whole.has_missing.tolist() == [True, False]
    learn_rows(parts, stats)
    assert stats.counts["passes"] == 1
    assert are_known(table())
