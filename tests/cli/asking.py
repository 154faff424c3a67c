"""Asking the command line, and what every refusal looks like."""

import json
import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from dtrees.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
ADULT = ROOT / "examples" / "adult.csv.gz"


def ask(*args, text=None):
    """The result of a command, in this process; `text` is its standard input."""
    return CliRunner().invoke(main, [*map(str, args)], input=text)


def ask_json(*args):
    """The document that a command prints with --json."""
    result = ask(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def check_refused(result, words):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def process(*args, **environment):
    return subprocess.run(
        [sys.executable, "-m", "dtrees", *map(str, args)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8", "TERM": "dumb"} | environment,
    )
