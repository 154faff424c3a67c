"""The command line: ``python -m dtrees COMMAND``.

A command reads files, asks the floors below, and prints what they say. Nothing is computed here::

    cv.py         TABLE --> folds, scores, the model on all rows --> tables and text, or JSON
    fit.py        TABLE --> model --> MODEL file
    predict.py    MODEL file, TABLE --> predictions
    show.py       MODEL file --> what it is, and which columns it looks at

what they tell, and what they share::

    run.py           what is asked of a cross-validation, what it has found; tables and JSON of it
    report.py        the same as a page: templates/, with figures.py
    invocation.py    commands as words for a shell
    tables.py        options that say which table, and its target; the problem in it
    form.py          how a CSV file is written, its numbers too; which option to try instead
    columns.py       a table's columns as a model knows them, and what is worth a note of them
    models.py        options that say which model, and its rules for columns; the estimator
    files.py         models that are read, models and predictions that are written
    description.py   what a fitted model says of itself
    terminal.py      notes, refusals (exit code 2), progress bars, tables, JSON

People get tables on standard output and a progress bar on a terminal; machines get ``--json``: one
document on standard output and nothing else.

pandas reads the files and rich draws; both come with the extra ``cli``. They are imported when they
are needed, so ``--help`` answers at once. A report takes jinja2 and matplotlib, too.
"""

from __future__ import annotations

import click

import dtrees
from dtrees.cli import cv, fit, predict, show
from dtrees.cli.invocation import Commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(dtrees.__version__, prog_name="dtrees")
def main() -> None:
    """Decision trees and forests on tables."""


for module in (cv, fit, predict, show):
    main.add_command(module.command)
