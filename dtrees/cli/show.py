"""``python -m dtrees show MODEL``: what a model file holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dtrees.cli.description import (
    TEXT_LEVELS,
    columns_of,
    first_rules,
    importance_table,
    is_tree,
    labels_by_target,
    model_document,
    names_of_targets,
    oob_line,
    size_in_words,
    stopping_line,
)
from dtrees.cli.files import bytes_in_words, load_model
from dtrees.cli.tables import options
from dtrees.cli.terminal import console, counted, one_line_errors, print_json, say

MOST_LABELS = 10


def listed(labels: Sequence[Any]) -> str:
    """The first of some labels in words."""
    more = ", ..." if len(labels) > MOST_LABELS else ""
    return f"{', '.join(map(str, labels[:MOST_LABELS]))}{more}"


model_argument = click.argument("model", type=click.Path(path_type=Path))


@click.command("show")
@options(
    model_argument,
    click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
)
def command(model: Path, as_json: bool) -> None:
    """Tell what the file MODEL holds: kind, size, parameters, columns."""
    with one_line_errors():
        from dtrees._extras import extra

        fitted = load_model(model)
        if not as_json:
            extra("rich")
    if as_json:
        print_json(model_document(fitted, model))
    else:
        print_model(fitted, model)


def print_model(fitted: Any, path: Path) -> None:
    """Print what a model is for people."""
    say(f"{path}: {bytes_in_words(path)}")
    say(" ".join(repr(fitted).split()))
    say(size_in_words(fitted))
    names = names_of_targets(fitted)
    if hasattr(fitted, "classes_"):
        for name, known in zip(names or [""], labels_by_target(fitted), strict=True):
            classes = counted(len(known), "class", "classes")
            say(f"{name and f'target {name}: '}predicts {classes}: {listed(known)}")
    else:
        say(f"predicts {len(names)} targets: {listed(names)}" if names else "predicts numbers")
    for line in (*oob_line(fitted), *stopping_line(fitted)):
        say(line)
    columns = columns_of(fitted)
    used = sum(column["importance"] > 0 for column in columns)
    say(f"{counted(len(columns), 'column')}, {used} of them used")
    console().print(importance_table(columns))
    if is_tree(fitted):
        is_cut = fitted.get_depth() > TEXT_LEVELS
        say(f"The first {TEXT_LEVELS} levels:" if is_cut else "The tree:")
        say(first_rules(fitted).rstrip("\n"))
