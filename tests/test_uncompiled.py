"""A clone whose kernels are not compiled says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dtrees

PACKAGE = Path(dtrees.__file__).parent
SOURCES = ("*.py", "*.pyx", "*.pxd", "py.typed")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The package as a clone has it: its sources, and no compiled kernel."""
    folder = tmp_path_factory.mktemp("clone")
    for source in (path for pattern in SOURCES for path in PACKAGE.rglob(pattern)):
        copy = folder / "dtrees" / source.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    return folder


def python(clone, *words):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *words], cwd=clone, capture_output=True, text=True, env=environment
    )


def test_the_command_line_of_a_clone_says_what_to_do_in_one_line(clone):
    (clone / "a.csv").write_text("x,y\n1,a\n2,b\n")
    done = python(clone, "-m", "dtrees", "cv", "a.csv", "--target", "y")
    assert done.returncode == 1  # of Python, which has found nothing to run
    assert done.stderr.count("\n") == 1
    assert f" in {clone} is not compiled for Python 3." in done.stderr
    assert "pip install -e '.[cli,plot]'" in done.stderr


@pytest.mark.one_of(2)
@pytest.mark.parametrize("statement", ["dtrees.DecisionTreeClassifier", "import dtrees.coding"])
def test_an_import_says_what_to_do(clone, statement):
    done = python(clone, "-c", f"import dtrees; {statement}")
    assert done.stderr.splitlines()[-1].startswith(
        f"ImportError: dtrees in {clone} is not compiled"
    )
    assert "pip install -e" in done.stderr
