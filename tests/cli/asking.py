"""Asking the command line, and what every refusal looks like."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from dtrees.cli import main
from tests.forked import run_forked

ROOT = Path(__file__).resolve().parent.parent.parent
ADULT = ROOT / "examples" / "adult.csv.gz"
NOISY = ("--target", "class", "--drop", "amount", "--drop", "mixed", "--folds", 3, "--seed", 1)


def ask(*args, text=None):
    """The result of a command, in this process; `text` is its standard input."""
    return CliRunner().invoke(main, [*map(str, args)], input=text)


def succeed(*args, text=None):
    """The result of a command that comes to its end."""
    result = ask(*args, text=text)
    assert result.exit_code == 0, result.output
    return result


def ask_json(*args):
    """The document that a command prints with --json."""
    result = succeed(*args, "--json")
    return json.loads(result.stdout)


def check_refused(result, words, is_read=False):
    """One line, and nothing else; `is_read`: below the lines on what was read."""
    assert result.exit_code == 2, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 2 * is_read
    if is_read:
        assert re.search(r"\d rows, \d+ columns?$", lines[0])
        assert lines[1].startswith("target ")
    assert words in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def forked(*args, **environment):
    """A command in a process of its own, which has loaded what commands need."""
    return run_forked("-m", "dtrees", *args, **{"TERM": "dumb"} | environment)


def process(*args, **environment):
    """A command in a new Python; where that matters: it takes a second to load what it needs."""
    return subprocess.run(
        [sys.executable, "-m", "dtrees", *map(str, args)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8", "TERM": "dumb"} | environment,
    )


def cv(*args):
    return ask("cv", *args)


def cv_json(*args):
    return ask_json("cv", *args)


def without_seconds(document):
    del document["seconds"]
    del document["parameters"]["n_jobs"]
    return document


def fit_table(table, folder, *args, target="y"):
    """A model file of a DataFrame in a CSV file."""
    path, out = folder / "fit.csv", folder / "a.dtrees"
    table.to_csv(path, index=False)
    succeed("fit", path, "--target", target, "--out", out, *args)
    return out


def predict(model, source, *args, text=None):
    """The predictions that go to standard output."""
    import pandas

    result = succeed("predict", model, source, *args, text=text)
    assert result.stderr == ""
    return pandas.read_csv(io.StringIO(result.stdout))


def predict_text(model, text, *args):
    return predict(model, "-", *args, text=text)["prediction"].tolist()


def shown(result):
    """Everything that a command has printed, whose only control characters are line ends."""
    text = result.stdout + result.stderr
    assert all(letter.isprintable() or letter == "\n" for letter in text), ascii(text)
    return text


def fit(csv, out, *args):
    result = succeed("fit", csv, "--out", out, *args)
    return result
