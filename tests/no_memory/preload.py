"""The library of `no_memory.h`, and processes that have it before their C library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

FOLDER = Path(__file__).parent
COMPILER = shutil.which("cc")


@cache
def library() -> Path:
    """Compiled once by each process of tests."""
    if COMPILER is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and glibc")
    path = Path(mkdtemp()) / "no_memory.so"
    source = FOLDER / "no_memory.h"
    how = ["-x", "c", "-O2", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *how, source, "-x", "none", "-ldl", "-o", path], check=True)
    return path


def run(module: str, *arguments: object) -> tuple[int, ...]:
    """What a module prints: how much was made while allocations failed, and how much was lost."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.no_memory.{module}", *map(str, arguments)],
        cwd=FOLDER.parent.parent,
        env={**os.environ, "LD_PRELOAD": str(library())},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return tuple(map(int, done.stdout.split()))
