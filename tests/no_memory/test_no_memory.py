"""Without memory for a block of a kernel a fit raises MemoryError, and nothing is left behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
COMPILER = shutil.which("cc")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if COMPILER is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and glibc")
    path = tmp_path_factory.mktemp("no_memory") / "no_memory.so"
    source = FOLDER / "no_memory.h"
    how = ["-x", "c", "-O2", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *how, source, "-x", "none", "-ldl", "-o", path], check=True)
    return path


def run(library, *arguments):
    """(models that were made while an allocation failed, how many of them raised MemoryError)."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.no_memory.models", *map(str, arguments)],
        cwd=FOLDER.parent.parent,
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return tuple(map(int, done.stdout.split()))


def test_a_failed_allocation_ends_in_a_memory_error(library):
    n_made, n_lost = run(library, 1, 12, 3)
    assert n_made > 24
    assert n_lost > n_made // 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_failed_allocations(library, seed):
    n_made, n_lost = run(library, seed, 190, 3)
    assert n_lost > n_made // 2
