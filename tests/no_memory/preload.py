"""Libraries such as `no_memory.h`, and processes that have them before their C library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp

import pytest

FOLDER = Path(__file__).parent
COMPILER = shutil.which("cc")


@cache
def compiled(source: Path) -> Path:
    """A library of a file of C, made once by each process of tests."""
    if COMPILER is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and glibc")
    path = Path(mkdtemp()) / f"{source.stem}.so"
    how = ["-x", "c", "-O2", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *how, source, "-x", "none", "-ldl", "-o", path], check=True)
    return path


@contextmanager
def process_of(module: str) -> Iterator[Callable[..., tuple[int, ...]]]:
    """A process of a module, which takes three seconds to begin; a function that asks it.

    It is given words, and returns how much was made while allocations failed, and how much was
    lost.
    """
    with TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.no_memory.{module}"],
            cwd=FOLDER.parent.parent,
            env={**os.environ, "LD_PRELOAD": str(compiled(FOLDER / "no_memory.h"))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

        def ask(*words: object) -> tuple[int, ...]:
            print(*words, sep="\t", file=process.stdin, flush=True)
            answer = process.stdout.readline().split()
            if not answer:
                process.wait()
                errors.seek(0)
                pytest.fail(f"it ended with {process.returncode}: {errors.read()[-2000:]}")
            return tuple(map(int, answer))

        with process:
            yield ask


def answer_with(work: Callable[..., tuple[int, int]]) -> None:
    """Do the work of each line that comes in; what that has come to goes out."""
    for line in sys.stdin:
        print(*work(*line.rstrip("\n").split("\t")), flush=True)
