"""Several collections are computed at once, each with its own result."""

from __future__ import annotations

import ast
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dtrees
from dtrees.parallel.executors import computed
from dtrees.parallel.one_kind import is_lazy, one_kind_at_a_time
from tests.parallel.test_mixes import N_ROWS, VALUES, given

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")


def test_one_place_asks_dask_for_several_results():
    """Another call may get several kinds one day; there, the order of results is Dask's."""
    calls = set()
    for file in sorted(Path(dtrees.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("compute", "persist", "optimize")
            ):
                calls.add((file.stem, ast.unparse(node.func)))
    assert calls == {
        ("executors", "dask.compute"),  # given to `one_kind_at_a_time`, as the next one
        ("submission", "self.client.compute"),
        ("worker_blocks", "self._tasks.compute"),  # which is `Tasks.compute`, as the next one
        ("executors", "self._tasks.compute"),
    }


class TestOneKindAtATime:
    def test_no_call_gets_two_kinds(self):
        asked = []

        def compute(same):
            asked.append({type(value).__name__.replace("DelayedLeaf", "Delayed") for value in same})
            return dask.compute(*same)

        kinds = ["array", "delayed", "series", "array", "numpy", "one", "delayed", "series"]
        values = [given("y" if i % 2 else "groups", kind) for i, kind in enumerate(kinds)]
        values.append(dask.delayed(np.add)(1, 2))  # of another type than a delayed value
        found = one_kind_at_a_time(values, compute)
        assert sorted(map(sorted, asked)) == [["Array"], ["DataFrame"], ["Delayed"], ["Series"]]
        for value, result in zip(values, found, strict=True):
            expected = value.compute() if hasattr(value, "compute") else value
            assert_array_equal(result, expected)

    def test_what_a_kind_shares_is_computed_once(self):
        counted = []

        def read():
            counted.append(1)
            return VALUES["y"]

        source = dask.delayed(read)()
        y = da.from_delayed(source, (N_ROWS,), int)
        with dask.config.set(scheduler="synchronous"):
            found = computed(y, "between", y + 1)
        assert len(counted) == 1
        assert_array_equal(found[2] - found[0], 1)
        assert found[1] == "between"


def test_what_is_no_collection_is_its_own_result():
    value = [1, 2]
    found = computed(value, da.arange(3, chunks=2), None, dask.delayed(sum)(value))
    assert found[0] is value
    np.testing.assert_array_equal(found[1], [0, 1, 2])
    assert found[2:] == [None, 3]
    assert one_kind_at_a_time([1, "a"], None) == [1, "a"]  # nobody is asked


def test_what_is_lazy():
    assert is_lazy(da.zeros(3))
    assert is_lazy(dask.delayed(1))
    for value in (np.zeros(3), [da.zeros(3)], None, "x", da.Array):
        assert not is_lazy(value)


def test_too_few_results_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        one_kind_at_a_time([da.zeros(2), da.zeros(3)], lambda same: same[:1])
