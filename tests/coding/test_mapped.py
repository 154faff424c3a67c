"""Arrays in files: as those in memory, and nothing is left of them."""

import errno
import os
import sys

import numpy as np
import psutil
import pytest

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.mapped import empty_on_disk, is_mapped, let_go
from dtrees.exceptions import ClusterError
from tests.coding.examples import coded_columns


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [7, (3, 4), (0, 4), (3, 0)])
def test_as_in_memory(shape, order, tmp_path):
    made = empty_on_disk(shape, np.uint16, order, folder=tmp_path)
    expected = np.empty(shape, np.uint16, order)
    assert (made.shape, made.dtype, made.strides) == (
        shape if isinstance(shape, tuple) else (7,),
        expected.dtype,
        expected.strides,
    )
    made[:] = np.arange(made.size).reshape(made.shape)
    let_go(made)
    assert made.ravel().tolist() == list(range(made.size))
    assert is_mapped(made) == is_mapped(made[1:]) == (made.size > 0)
    assert not is_mapped(made.copy())
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pages go when the system wants")
def test_pages_do_not_count(tmp_path):
    own, size = psutil.Process(), 2**26
    before = own.memory_info().rss
    made = empty_on_disk(size, np.uint8, folder=tmp_path)
    made[:] = 7
    assert own.memory_info().rss - before > size / 2
    let_go(made)
    assert own.memory_info().rss - before < size / 4
    assert (made == 7).all()


def test_a_full_disk_is_told(tmp_path):
    about = rf"a worker .* {2**60:,} bytes .* {tmp_path}: .*(File too large|No space left)"
    with pytest.raises(ClusterError, match=about):  # not when it is written
        empty_on_disk(2**60, np.uint8, folder=tmp_path, owner="a worker")


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL])
def test_file_systems_that_set_no_room_aside(number, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    made = empty_on_disk((3, 4), np.uint16, folder=tmp_path)
    made[:] = 7
    assert is_mapped(made)
    assert made.sum() == 84


def test_parts_that_come_one_by_one(tmp_path):
    """A table in files, from parts that are dropped at once."""
    rng = np.random.default_rng(0)
    columns = [
        rng.integers(0, 200, 50).astype(np.uint8),
        rng.integers(0, 900, 50).astype(np.uint16),
    ]
    whole = coded_columns(columns, np.array([200, 900]), np.array([200, 900]))
    rows = np.split(np.arange(50), [9, 9, 30])
    made = CodedMatrix.stack(
        (whole.take(some) for some in rows),
        50,
        lambda *args, **how: empty_on_disk(*args, **how, folder=tmp_path),
    )
    assert made.is_mapped
    assert not whole.is_mapped
    made.let_go()
    for j, column in enumerate(columns):
        np.testing.assert_array_equal(made.column(j), column)
    assert not made.take(np.arange(7)).is_mapped
