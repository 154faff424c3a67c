"""What is promised in words: commands of the pages run, and links lead somewhere."""

import ast
import os
import re
import subprocess
import sys

import pytest

from tests.pages import PAGES, ROOT, blocks

pytest.importorskip("pandas")

COMPLETE = [ROOT / "README.md", ROOT / "docs" / "index.md"]  # each of their blocks is complete


def commands():
    """Every command on the pages once, as words."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    lines = dict.fromkeys(text.splitlines())
    found = [line.split()[3:] for line in lines if line.startswith("python -m dtrees ")]
    assert {words[0] for words in found} == {"cv", "fit", "predict", "show"}
    return found


def shown():
    """What the pages show of what a command prints, by the command."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    found = re.findall(
        r"^```bash\npython -m dtrees ([^\n]*)\n```\n\n```text\n(.*?)^```", text, re.M | re.S
    )
    return {tuple(words.split()): without_ends(lines) for words, lines in found}


def without_ends(text):
    """Lines without blanks at their ends, since tables are as wide as their column names."""
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


@pytest.mark.long
@pytest.mark.parametrize("page", COMPLETE, ids=lambda page: page.name)
def test_the_python_on_the_first_pages_runs_in_processes(page):
    for code, shown in blocks(page):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == shown


@pytest.mark.long
def test_the_commands_on_the_pages_run_one_after_the_other(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    expected = shown()
    assert expected
    for words in commands():
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "dtrees", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout
        assert expected.get(tuple(words), "") in without_ends(done.stdout)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            assert (page.parent / link).exists(), link


def test_every_law_is_seen_when_tests_are_chosen():
    # `make test-long` asks for "every law": hypothesis marks what pytest collects, and no law that
    # is defined within a test.
    hidden = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for outer in ast.walk(ast.parse(text)) if "given(" in text else ():
            if isinstance(outer, ast.FunctionDef):
                inner = [n for n in ast.walk(outer) if isinstance(n, ast.FunctionDef)]
                laws = [n for n in inner if n is not outer and is_law(n)]
                hidden += [f"{path.name}: {outer.name}" for _ in laws]
    assert not hidden


def is_law(function):
    """Whether a function is decorated with ``given(...)``."""
    calls = [d.func for d in function.decorator_list if isinstance(d, ast.Call)]
    return any(ast.unparse(call).endswith("given") for call in calls)


def test_the_demo_installs_what_the_commands_need(tmp_path):
    wanted = ["make", "-n", "demo", f"VENV={tmp_path / 'new'}", f"PYTHON={sys.executable}"]
    done = subprocess.run(wanted, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--editable ." in done.stdout
    assert "install 'dask-dtrees[cli,plot]'" in done.stdout  # --report draws
