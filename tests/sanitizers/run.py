"""Tests on kernels that the compiler watches: ``python -m tests.sanitizers.run memory``.

A tree of its own under ``build/sanitize`` holds the package, the tests, and kernels that are built
with a sanitizer of the compiler; the release build is not touched. Two of them::

    memory     address, undefined    bytes beyond an array or after free; overflow, shifts, casts
    threads    thread                two threads at the same bytes, of which one writes

Python itself and the libraries are as they are: the sanitizer's library is loaded before them, so
that it sees every allocation (``PYTHONMALLOC=malloc``: each by itself) and every lock. Reports go
to files, as pytest takes what is printed (see also ``startup/sitecustomize.py``). A report fails
the run, whatever the tests say.

``--plant NAME`` puts a bug of `tests.sanitizers.planted` into the tree's kernels first: the run has
to fail then, with a report that names it. ``--prove`` does so with each bug of a sanitizer, one
after the other, and once without any.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.sanitizers.planted import BUGS, Bug

ROOT = Path(__file__).resolve().parent.parent.parent
WHOLE = ("dtrees", "tests", "docs", "examples", "benchmarks")  # folders of the tree
FILES = ("setup.py", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile")
FILES += ("CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "MANIFEST.in")
MADE = shutil.ignore_patterns("*.so", "*.c", "__pycache__")

SANITIZERS = {"memory": "address,undefined", "threads": "thread"}
LIBRARIES = {"memory": ("libasan.so", "libubsan.so"), "threads": ("libtsan.so",)}

SHORT = ["tests/sanitizers/test_two_threads.py"]
PROOF = [f"{SHORT[0]}::test_two_walks_at_the_same_time"]  # which goes where the bugs are planted
LAWS = ["tests/core", "tests/laws", "tests/test_random.py", "tests/parallel/test_threads.py"]
CODING = ["tests/coding/test_dense_columns.py", "tests/coding/test_coded.py"]
# Figures of memory are those of the release build. Polars crashes as the thread sanitizer loads it.
NOT_HERE = [
    *("--deselect", "tests/core/stores/shared/test_shared_nodes.py"),
    "--deselect",
    "tests/core/grow/test_shared_growth.py::test_records_of_a_set_are_given_back_with_its_tree",
]
# The sanitizer of threads knows no threads of a child that was forked.
FORKED = ["--deselect", "tests/parallel/test_threads.py::test_ctrl_c_ends_the_work"]
KERNELS = {
    "memory": [*SHORT, *LAWS, *CODING, "tests/coding/test_codebook.py", *NOT_HERE],
    "threads": [*SHORT, *LAWS, *CODING, *NOT_HERE, *FORKED],
}


def main(arguments: list[str] | None = None) -> int:
    """Build the tree and run tests on it; returns 0 where there was no report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=SANITIZERS)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--short", action="store_true", help="two threads at every kernel, no more")
    chosen.add_argument("--plant", choices=BUGS, help="with this bug")
    chosen.add_argument("--prove", action="store_true", help="with every bug, and without")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, instead of the usual ones")
    given = parser.parse_args(arguments)
    if given.prove:
        return prove(given.kind)
    bug = BUGS[given.plant] if given.plant else None
    usual = PROOF if bug else SHORT if given.short else KERNELS[given.kind]
    what = given.pytest or usual
    failed, reports = run(given.kind, what, bug)
    print(reports)
    print(f"{given.kind}: {'failed' if failed else 'no report, and the tests pass'}")
    return int(failed)


def prove(kind: str) -> int:
    """Whether the sanitizer tells each planted bug, and nothing where there is none."""
    wrong = []
    for name, bug in {**BUGS, "no bug": None}.items():
        if bug is not None and bug.kind != kind:
            continue
        failed, reports = run(kind, PROOF, bug)
        right = not failed if bug is None else failed and bug.report in reports
        print(f"{name}: {'as it should be' if right else 'WRONG'}", flush=True)
        if not right:
            wrong.append(name)
            print(reports)
    return int(bool(wrong))


def run(kind: str, what: list[str], bug: Bug | None) -> tuple[bool, str]:
    """Run tests on kernels that are watched; whether they failed, and what was reported."""
    tree = ROOT / "build" / "sanitize" / kind
    copy_to(tree, kind, bug)
    start = time.perf_counter()
    build = {**os.environ, "DTREES_SANITIZE": SANITIZERS[kind]}
    if what == SHORT:  # to compile takes longer than the tests do
        build["DTREES_LEVEL"] = "0"
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=tree,
        env=build,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    print(f"{kind}: built in {time.perf_counter() - start:.0f} s", flush=True)
    log = tree / "reports"
    shutil.rmtree(log, ignore_errors=True)
    log.mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "0", *what]
    if kind == "threads" and not subprocess.run(["setarch", "-R", "true"], check=False).returncode:
        command = ["setarch", "-R", *command]  # its shadow has no room for addresses at random
    done = subprocess.run(command, cwd=tree, env=environment(kind, tree, log), check=False)
    reports = "\n".join(path.read_text(errors="replace") for path in sorted(log.iterdir()))
    if done.returncode < 0:
        print(f"{kind}: pytest was ended by {signal.Signals(-done.returncode).name}")
    return bool(done.returncode or reports), reports


def environment(kind: str, tree: Path, log: Path) -> dict[str, str]:
    """Where the sanitizer is, what it is to do, and what it is to say nothing of."""
    here = tree / "tests" / "sanitizers"
    common = f"log_path={log}/report:print_stacktrace=1:suppressions={here}"
    return {
        **os.environ,
        "PYTHONPATH": f"{tree}{os.pathsep}{here / 'startup'}",
        "DTREES_UNDEFINED_REPORTS": f"{log}/undefined",
        "PYTHONMALLOC": "malloc",
        "OPENBLAS_NUM_THREADS": "1",
        "LD_PRELOAD": " ".join(map(library, LIBRARIES[kind])),
        # CPython keeps what it has until its end: that is no leak.
        "ASAN_OPTIONS": f"{common}/address.supp:detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": f"{common}/undefined.supp",
        "TSAN_OPTIONS": f"{common}/thread.supp:exitcode=0:history_size=7",
    }


def library(name: str) -> str:
    """Where the compiler has a library of its sanitizers."""
    compiler = os.environ.get("CC", "gcc").split()[0]
    asked = [compiler, f"-print-file-name={name}"]
    found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    if not Path(found).is_file():
        raise SystemExit(f"{compiler} has no {name}: install its sanitizers (libasan, libtsan).")
    return found


def copy_to(tree: Path, kind: str, bug: Bug | None) -> None:
    """The sources as they are now, but for the bug; what is the same keeps its time.

    A new file has the time of its original, so that what Cython has made of the original will do.
    """
    wanted: dict[Path, bytes] = {}
    for folder in WHOLE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and not MADE(str(path.parent), [path.name, path.parent.name]):
                wanted[path.relative_to(ROOT)] = path.read_bytes()
    for name in FILES:
        wanted[Path(name)] = (ROOT / name).read_bytes()
    if bug is not None:
        wanted[Path(bug.path)] = bug.planted_in(wanted[Path(bug.path)].decode()).encode()
    for relative, data in wanted.items():
        target = tree / relative
        is_new = not target.is_file()
        if is_new or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if is_new and data == (ROOT / relative).read_bytes():
            shutil.copystat(ROOT / relative, target)
    for folder in WHOLE:
        for path in sorted((tree / folder).rglob("*")):
            gone = path.relative_to(tree) not in wanted
            if (
                path.is_file()
                and gone
                and not MADE(str(path.parent), [path.name, path.parent.name])
            ):
                path.unlink()
    made = ROOT / "build" / "release"
    for path in made.rglob("*.c"):
        target = tree / "build" / SANITIZERS[kind].replace(",", "-") / path.relative_to(made)
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)


if __name__ == "__main__":
    raise SystemExit(main())
