"""Tests in memory that is never zero by chance: ``python -m tests.poison.run``.

Memory that is new holds zeros as a rule, so what is read before it is written often looks right.
Here it is full of one byte (`poison.h`), and then of another one::

    FF    no number, a negative integer, a code or a row that there is not
    01    a small number, a code or a row that there may be

Tests of the kernels and the coding run with each of them, and so do the models of `tests.golden`,
which must have the same bits as ever. The kernels are those of the release build.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.no_memory.preload import compiled

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
PATTERNS = ("FF", "01")
KERNELS = ["tests/coding", "tests/core", "tests/laws"]
# Figures of memory are those of memory that is not written.
NOT_HERE = ["--deselect", "tests/core/stores/shared/test_shared_nodes.py"]
IN_PROCESSES = ["-n", "2", "--dist", "worksteal", "--timeout", "0", "-p", "no:cacheprovider"]
# NumPy, which is there before pytest, has said so to nobody.
IN_PROCESSES += ["-W", "ignore:the matrix subclass:PendingDeprecationWarning"]


def main(arguments: list[str] | None = None) -> int:
    """Run tests and models with each of the bytes; returns 0 where all is well."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, instead of the usual ones")
    given = parser.parse_args(arguments)
    commands = [["pytest", *IN_PROCESSES, *(given.pytest or [*KERNELS, *NOT_HERE])]]
    if not given.pytest:
        commands.append(["tests.golden"])
    failed = [
        f"{pattern}: {command[0]}"
        for pattern in PATTERNS
        for command in commands
        if subprocess.run(
            [sys.executable, "-m", *command], cwd=ROOT, env=environment(pattern), check=False
        ).returncode
    ]
    print("poison:", ", ".join(failed) or "the tests pass, and the models are the same")
    return int(bool(failed))


def environment(pattern: str) -> dict[str, str]:
    """Of a process whose memory is full of a byte, which is given as two hexadecimal digits."""
    return {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{FOLDER / 'startup'}",
        "LD_PRELOAD": str(compiled(FOLDER / "poison.h")),
        "DTREES_POISON": pattern,
    }


if __name__ == "__main__":
    raise SystemExit(main())
