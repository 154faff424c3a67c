"""``python -m dtrees predict MODEL FILE --out PREDICTIONS``: what a saved model says of a table.

::

    MODEL --load--> estimator, which knows its columns
    FILE --read--> DataFrame --columns_as_fitted--> the model's columns --predict--> PREDICTIONS

One row of predictions for each row of the table, in its order. On a cluster the workers do the same
with every partition of the table.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from dtrees.cli.columns import (
    codebook_of,
    column_names,
    columns_as_fitted,
    date_columns,
    day_first,
    note_open_orders,
    note_other_orders,
    number_columns,
    text_columns,
)
from dtrees.cli.description import names_of_targets, task_of_model
from dtrees.cli.files import (
    PARQUET,
    check_format,
    check_out,
    check_replaceable,
    file_errors,
    force_option,
    holds_marked_cells,
    is_packed,
    is_predictions,
    is_stream,
    load_model,
    may_hold_text,
    safe_table,
    whole_file,
    write_table,
)
from dtrees.cli.models import jobs_option
from dtrees.cli.show import model_argument
from dtrees.cli.tables import (
    FORM,
    check_files,
    cluster_option,
    drop_option,
    files_argument,
    form_of,
    label_of,
    options,
    table_of,
)
from dtrees.cli.terminal import RequestError, counted, note, notes, one_line_errors, say

if TYPE_CHECKING:
    from dtrees.coding.times import DateForm

PREDICTION = "prediction"
PROBABILITY = "probability_"
ENDS = ("lower", "upper")  # of an interval


@click.command("predict")
@options(
    model_argument,
    files_argument,
    cluster_option,
    click.option(
        "--out",
        default="-",
        metavar="FILE",
        help="Predictions as .csv, .csv.gz or .parquet; by default CSV on standard output. With "
        "--cluster, .parquet is a new folder, or a URL of one, which the workers write.",
    ),
    force_option,
    click.option(
        "--proba", is_flag=True, help="Also the probability of every class, a column for each."
    ),
    click.option(
        "--interval",
        type=float,
        metavar="SHARE",
        help="Also an interval that holds the target of so many rows, such as 0.9: columns lower "
        "and upper. For numbers, by a forest that was fitted with --oob.",
    ),
    click.option(
        "--keep",
        multiple=True,
        metavar="COLUMN",
        help="Copy a column of FILE, such as a key, in front of the predictions; repeatable.",
    ),
    click.option(
        "--raw",
        is_flag=True,
        help="Write all text of a CSV file as it is. By default text that a spreadsheet would take "
        "for a formula, such as =1+1 or @name, gets an apostrophe in front: labels, kept columns, "
        "and names of columns; numbers and signs alone (-1, +) do not.",
    ),
    drop_option,
    *FORM,
    jobs_option("the prediction"),
)
def command(
    model: Path,
    files: tuple[str, ...],
    cluster: str | None,
    out: str,
    force: bool,
    proba: bool,
    interval: float | None,
    keep: tuple[str, ...],
    raw: bool,
    drop: tuple[str, ...],
    jobs: int,
    **given: Any,
) -> None:
    """Predict every row of FILE by the model in the file MODEL.

    FILE is a table (.csv, .csv.gz or .parquet), or - for CSV from standard input; with --cluster,
    one file or many, or patterns and URLs, which the workers read. Its columns are found by name:
    their order does not matter, and columns that the model does not know, such as the target, are
    left alone.
    """
    with one_line_errors():
        check_files(files, cluster)
        form = form_of(given)
        form, dayfirst = replace(form, dayfirst=None), form.dayfirst
        is_folder = cluster is not None and out.lower().endswith(PARQUET)
        if not is_stream(Path(out)):
            if not is_folder:
                check_out(Path(out), model, *map(Path, files))
            check_format(Path(out))
        fitted = load_model(model)
        if proba and task_of_model(fitted) == "regression":
            raise RequestError("--proba is for classes, and the model predicts numbers")
        if interval is not None:
            check_interval(fitted, interval)
        book = codebook_of(fitted)
        is_csv = is_stream(Path(out)) or not out.lower().endswith(PARQUET)
        is_safe = is_csv and not raw
        kept = list(dict.fromkeys(keep))
        known = day_first(fitted)
        orders = known if dayfirst is None else dict.fromkeys(date_columns(book), dayfirst)
        wanted = Wanted(label_of(files), proba, kept, list(drop), is_safe, interval, orders)
        if not is_stream(Path(out)) and not is_folder:
            is_ours = partial(is_predictions, names=[*kept, *names_of(fitted, wanted)])
            what = "a table of predictions with the columns that are asked for"
            check_replaceable(Path(out), is_ours, what, force)
        as_written = {*text_columns(book), *wanted.kept} - set(number_columns(book))
        as_written.update(date_columns(book))
        # A model's columns say themselves which of them are dates.
        with table_of(files, form, cluster, as_text=as_written, dates=False) as table:
            start = perf_counter()
            if cluster is None:
                fitted.set_params(n_jobs=jobs)
                with notes():
                    frame, date_forms = answers(table, fitted, wanted)
                if dayfirst is None:
                    note_open_orders(date_forms, known)
                else:
                    note_other_orders(date_forms, known, dayfirst)
                seconds, n_rows = perf_counter() - start, len(frame)
                n_changed = 0
                if is_safe:
                    frame, n_changed = safe_table(frame)
                write(frame, out)
                if n_changed:
                    note_cells(counted(n_changed, "text"))
            else:
                frame = lazy_answers(table, fitted, wanted)
                n_rows, is_changed = write_by_workers(frame, out, is_safe)
                seconds = perf_counter() - start
                if is_changed:
                    note_cells("some text")
    if not is_stream(Path(out)):
        n_shown = len(wanted.kept) + 4
        columns = ", ".join(frame.columns[:n_shown])
        more = ", ..." if len(frame.columns) > n_shown else ""
        say(f"{out}: {counted(n_rows, 'row')} in {seconds:.2f} s, columns {columns}{more}")


@dataclass(frozen=True)
class Wanted:
    """Answers that are asked for."""

    label: str  # what the table is called in messages
    proba: bool  # shares of the classes, too
    kept: list[str]  # columns in front of the predictions
    dropped: list[str]  # columns that the model does not see
    for_sheets: bool = False  # text is to be safe in a spreadsheet (`dtrees.cli.files`)
    confidence: float | None = None  # of intervals; None: there are none
    dayfirst: dict[str, bool] = field(default_factory=dict)  # how dates are read, by column


def check_interval(fitted: Any, confidence: float) -> None:
    """Refuse intervals that the model does not have, or a share that none has."""
    if task_of_model(fitted) != "regression":
        raise RequestError("--interval is for numbers, and the model predicts classes")
    if not 0.5 <= confidence < 1:
        raise RequestError(f"--interval {confidence:g}: a share from 0.5 to below 1, such as 0.9")
    has_errors = getattr(fitted, "oob_score", False) or getattr(fitted, "oob_tol", None) is not None
    if not has_errors:
        raise RequestError(
            "--interval needs the errors of rows out of bags: fit a forest with --oob"
        )


def answers(table: Any, fitted: Any, wanted: Wanted) -> tuple[Any, dict[str, DateForm]]:
    """Answers to each row of a DataFrame, if any; and the forms of dates in text.

    ValueError, RequestError: it lacks columns, or they hold something else than at fit.
    """
    from pandas import DataFrame, concat

    from dtrees.io.problem import near

    table = table.set_axis([str(name) for name in table.columns], axis=1)
    for name in (*wanted.kept, *wanted.dropped):
        if name not in table.columns:
            raise RequestError(f"no column {name!r} in {wanted.label}{near(name, table.columns)}")
    table_of_model = table.drop(columns=wanted.dropped)
    book = codebook_of(fitted)
    X, date_forms = columns_as_fitted(table_of_model, book, wanted.label, wanted.dayfirst)
    names = names_of(fitted, wanted)
    if len(set(names)) < len(names):
        ((name, _),) = Counter(names).most_common(1)
        raise RequestError(f"labels of two targets have one name for their shares: {name}")
    found = predictions(fitted, X, wanted)
    taken = [name for name in wanted.kept if name in found]
    if taken:
        raise RequestError(f"--keep {taken[0]} has the name of a column of predictions")
    return concat([table[wanted.kept], DataFrame(found, table.index)], axis=1), date_forms


def answers_of_part(table: Any, fitted: Any, wanted: Wanted) -> Any:
    """Answers to the rows of a part on a worker, as they are to be written."""
    frame, _ = answers(table, fitted, wanted)
    return safe_table(frame)[0] if wanted.for_sheets else frame


def lazy_answers(table: Any, fitted: Any, wanted: Wanted) -> Any:
    """Answers to a Dask data frame, for the workers to compute; other columns are not read."""
    from dtrees.parallel import map_parts

    answers(table._meta, fitted, wanted)  # refuses what can be told by columns
    book = codebook_of(fitted)
    if book.feature_names is not None:
        used = {*column_names(book), *wanted.kept}
        table = table[[name for name in table.columns if str(name) in used]]
        wanted = replace(wanted, dropped=[])
    fitted.set_params(n_jobs=1)  # of a task
    return map_parts(partial(answers_of_part, wanted=wanted), fitted, table)


def predictions(fitted: Any, X: Any, wanted: Wanted) -> dict[str, Any]:
    """The columns of predictions by name, for the model's columns; there may be no rows."""
    import numpy as np
    from pandas import Series

    if targets := names_of_targets(fitted):
        each = [predictions(fitted.of_target(k), X, wanted) for k in range(len(targets))]
        of_targets = zip(targets, each, strict=True)
        return {f"{name}_{target}": x for target, own in of_targets for name, x in own.items()}
    classes = getattr(fitted, "classes_", np.empty(0))
    more: dict[str, Any] = {}
    if wanted.proba:
        of_rows = fitted.predict_proba(X) if len(X) else np.empty((0, len(classes)))
        said = classes.take(of_rows.argmax(axis=1))  # as predict does
        more = dict(zip(names_of(fitted, wanted)[1:], of_rows.T, strict=True))
    else:
        said = fitted.predict(X) if len(X) else classes[:0]
    if wanted.confidence is not None:
        ends = np.empty((0, 2))
        if len(X):
            ends = fitted.prediction_interval(X, wanted.confidence)
        more = dict(zip(ENDS, ends.T, strict=True))
    # where there are no rows, pandas has to be told the type of labels
    return {PREDICTION: Series(said, X.index, dtype=Series(classes).dtype), **more}


def names_of(fitted: Any, wanted: Wanted) -> list[str]:
    """Names of the columns of predictions; of several targets with the name of each behind."""
    if targets := names_of_targets(fitted):
        each = [names_of(fitted.of_target(k), wanted) for k in range(len(targets))]
        of_targets = zip(targets, each, strict=True)
        return [f"{name}_{target}" for target, own in of_targets for name in own]
    if wanted.confidence is not None:
        return [PREDICTION, *ENDS]
    classes = fitted.classes_ if wanted.proba else ()
    return [PREDICTION, *(f"{PROBABILITY}{label}" for label in classes)]


def note_cells(what: str) -> None:
    """Say that text was changed."""
    note(
        f"{what} that a spreadsheet would take for a formula (=1+1, @name) got an apostrophe in "
        "front; --raw writes all text as it is."
    )


def write(frame: Any, out: str) -> None:
    """Write predictions to a file, or to standard output."""
    if is_stream(Path(out)):
        with file_errors("standard output", "written"):
            sys.stdout.buffer.write(frame.to_csv(index=False).encode())
            sys.stdout.buffer.flush()
        return
    with file_errors(out, "written"):
        write_table(frame, Path(out))


def write_by_workers(frame: Any, out: str, is_safe: bool) -> tuple[int, bool]:
    """Compute a lazy data frame and write it; its rows, and whether text was changed to be safe."""
    from dtrees.parallel import write_csv, write_parquet

    meta = frame._meta
    holds_text = any(may_hold_text(meta.iloc[:, place]) for place in range(meta.shape[1]))
    may_change = is_safe and (holds_text or any(name.startswith("'") for name in meta.columns))
    try:
        if out.lower().endswith(PARQUET):
            return write_parquet(frame, out), False
        if not is_stream(Path(out)):
            packed = is_packed(Path(out))
            with whole_file(Path(out)) as unfinished:
                n_rows = write_csv(frame, unfinished, packed=packed)
                return n_rows, may_change and holds_marked_cells(unfinished, packed=packed)
        with TemporaryDirectory() as folder:
            text = Path(folder, "predictions.csv")
            n_rows = write_csv(frame, text)
            is_changed = may_change and holds_marked_cells(text, packed=False)
            with file_errors("standard output", "written"), text.open("rb") as source:
                shutil.copyfileobj(source, sys.stdout.buffer)
                sys.stdout.buffer.flush()
        return n_rows, is_changed
    except BrokenPipeError:  # who reads has enough; click ends in silence
        raise
    except OSError as error:  # of a file that is read or written, which it names
        raise RequestError(error) from error
