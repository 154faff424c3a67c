"""``python -m dtrees predict MODEL FILE --out PREDICTIONS``: what a saved model says of a table.

::

    MODEL --load--> estimator, which knows its columns
    FILE --read--> DataFrame --columns_as_fitted--> the model's columns --predict--> PREDICTIONS

One row of predictions for each row of the table, in its order.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from dtrees.cli.columns import codebook_of, columns_as_fitted, number_columns, text_columns
from dtrees.cli.description import task_of_model
from dtrees.cli.errors import RequestError, one_line_errors
from dtrees.cli.files import (
    check_format,
    check_out,
    file_errors,
    is_stream,
    load_model,
    write_table,
)
from dtrees.cli.models import jobs_option
from dtrees.cli.show import model_argument
from dtrees.cli.tables import FORM, drop_option, file_argument, options, read
from dtrees.cli.words import counted

PREDICTION = "prediction"
PROBABILITY = "probability_"


@click.command("predict")
@options(
    model_argument,
    file_argument,
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default="-",
        metavar="FILE",
        help="Predictions as .csv, .csv.gz or .parquet; by default CSV on standard output.",
    ),
    click.option(
        "--proba", is_flag=True, help="Also the probability of every class, a column for each."
    ),
    click.option(
        "--keep",
        multiple=True,
        metavar="COLUMN",
        help="Copy a column of FILE, such as a key, in front of the predictions; repeatable.",
    ),
    drop_option,
    *FORM,
    jobs_option("the prediction"),
)
def command(
    model: Path,
    file: Path,
    out: Path,
    proba: bool,
    keep: tuple[str, ...],
    drop: tuple[str, ...],
    sep: str | None,
    encoding: str | None,
    jobs: int,
) -> None:
    """Predict every row of FILE by the model in the file MODEL.

    FILE is a table (.csv, .csv.gz or .parquet), or - for CSV from standard input. Its columns are
    found by name: their order does not matter, and columns that the model does not know, such as
    the target, are left alone.
    """
    with one_line_errors():
        if not is_stream(out):
            check_out(out, model, file)
            check_format(out)
        fitted = load_model(model)
        if proba and task_of_model(fitted) == "regression":
            raise RequestError("--proba is for classes, and the model predicts numbers")
        book = codebook_of(fitted)
        kept = list(dict.fromkeys(keep))
        as_written = {*text_columns(book), *kept} - set(number_columns(book))
        table = read(file, sep, encoding, as_text=as_written)
        table = table.set_axis([str(name) for name in table.columns], axis=1)
        for name in (*kept, *drop):
            if name not in table.columns:
                raise RequestError(f"no column {name!r} in {file}")
        X = columns_as_fitted(table.drop(columns=list(drop)), book, file)
        fitted.set_params(n_jobs=jobs)
        start = perf_counter()
        answers = predictions(fitted, X, proba)
        seconds = perf_counter() - start
        taken = [name for name in kept if name in answers]
        if taken:
            raise RequestError(f"--keep {taken[0]} has the name of a column of predictions")
        frame = table[kept].assign(**answers)
        if not is_stream(out):
            with file_errors(out, "written"):
                write_table(frame, out)
    if is_stream(out):
        with file_errors("standard output", "written"):
            sys.stdout.buffer.write(frame.to_csv(index=False).encode())
            sys.stdout.buffer.flush()
    else:
        columns = ", ".join(frame.columns[: len(kept) + 4])
        more = ", ..." if len(frame.columns) > len(kept) + 4 else ""
        rows = counted(len(frame), "row")
        click.echo(f"{out}: {rows} in {seconds:.2f} s, columns {columns}{more}")


def predictions(fitted: Any, X: Any, proba: bool) -> dict[str, np.ndarray]:
    """The columns of predictions by name.

    Parameters
    ----------
    fitted : object
        A tree or a forest.
    X : DataFrame
        The model's columns; it may have no rows.
    proba : bool
        Whether shares of the classes are among them.
    """
    classes = getattr(fitted, "classes_", np.empty(0))
    if proba:
        shares = fitted.predict_proba(X) if len(X) else np.empty((0, len(classes)))
        answers = {PREDICTION: classes.take(shares.argmax(axis=1))}  # as predict does
        names = [f"{PROBABILITY}{label}" for label in classes]
        return answers | dict(zip(names, shares.T, strict=True))
    return {PREDICTION: fitted.predict(X) if len(X) else classes[:0]}
