"""The table of a command: which file, which columns, which target."""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dtrees.cli.columns import note_open_orders, note_single_class, note_strays
from dtrees.cli.files import PARQUET, check_there, head_of, is_stream
from dtrees.cli.form import (
    CsvForm,
    encoding_hint,
    header_hint,
    names_given_twice,
    number_hints,
    separator_hint,
)
from dtrees.cli.invocation import stray_hint
from dtrees.cli.terminal import RequestError, counted, note

if TYPE_CHECKING:
    from dtrees.io import Problem


files_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...")
drop_option = click.option(
    "--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable."
)
FORM: tuple[Callable[..., Any], ...] = (
    click.option(
        "--sep",
        metavar="CHARACTER",
        help=r"Between the fields of a CSV file: ',' by default, or ';', '\t', ...",
    ),
    click.option("--encoding", metavar="NAME", help="Of a CSV file; by default utf-8."),
    click.option(
        "--decimal",
        metavar="CHARACTER",
        help="In front of the decimals of a number in a CSV file: '.' by default, or ','.",
    ),
    click.option(
        "--thousands",
        metavar="CHARACTER",
        help="Between the thousands of a number in a CSV file: ',' for 1,234.5.",
    ),
    click.option(
        "--dayfirst/--no-dayfirst",
        default=None,
        help="In a CSV file, 01/02/2024 is a day of February, or of January. By default as at fit, "
        "and for fit and cv of January.",
    ),
)


Targets = str | tuple[str, ...]  # one, or several


def targets_given(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> Targets:
    """The column that is named, or several; RequestError: one is given twice."""
    if len(set(given)) < len(given):
        raise RequestError(f"--target: a column is given twice: {', '.join(given)}")
    return given if len(given) > 1 else given[0]


def one_target(target: Targets) -> str:
    """The only target; RequestError: there are several, and one would be a feature."""
    if not isinstance(target, str):
        raise RequestError(
            f"--target takes one column, and {len(target)} are given: {', '.join(target)}. Scores "
            "are of one target: give a command for each, and leave the others out with --drop. "
            "Only fit takes several."
        )
    return target


MANY_CLASSES = 100  # above which classes need two rows each on average, or to be asked for
REGIMES = ("local", "replicated", "partitioned")  # as dtrees.parallel has them
cluster_option = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Work on a Dask cluster, which reads the files: tcp://host:8786, or local:N for N "
    "workers on this machine.",
)
CLUSTER: tuple[Callable[..., Any], ...] = (
    cluster_option,
    click.option(
        "--regime",
        type=click.Choice(REGIMES),
        help="Where trees grow: here, on workers that hold the whole table each, or a part of it. "
        "By default as sizes say.",
    ),
)
PROBLEM: tuple[Callable[..., Any], ...] = (
    files_argument,
    click.option(
        "--target",
        required=True,
        multiple=True,
        callback=targets_given,
        metavar="COLUMN",
        help="The column to predict; for fit there may be several.",
    ),
    click.option(
        "--task",
        type=click.Choice(["auto", "classification", "regression"]),
        default="auto",
        show_default=True,
        help="auto: regression for numbers, unless they are whole with at most 20 distinct values. "
        "More than 100 classes with fewer than two rows each on average have to be asked for.",
    ),
    drop_option,
    *FORM,
)


def options(*declared: Callable[..., Any]) -> Callable[..., Any]:
    """Many declared arguments and options as one decorator, in their order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for declare in reversed(declared):
            command = declare(command)
        return command

    return decorate


def form_of(given: dict[str, Any]) -> CsvForm:
    """The form of a CSV file, taken out of what is given."""
    names = "sep", "encoding", "decimal", "thousands", "dayfirst"
    return CsvForm(*(given.pop(name) for name in names))


def read(file: Path, form: CsvForm, as_text: Collection[str] = ()) -> Any:
    """The DataFrame in a file, or in the CSV on standard input."""
    from dtrees.io.files import read_dated

    source = io.BytesIO(sys.stdin.buffer.read()) if is_stream(file) else file
    try:
        table, forms = read_dated(source, **form.options(), as_text=as_text)
    except ValueError as error:
        if isinstance(error.__cause__, UnicodeError):
            hint = encoding_hint(head_of(source)) if form.encoding is None else None
        else:
            is_read = error.__cause__ is not None and form.separator is None
            hint = header_hint(head_of(source)) if is_read else None
        if hint is None:
            raise
        raise RequestError(f"{error}; {hint}") from error
    if not str(file).lower().endswith(PARQUET):
        head = head_of(source)
        nulls = form.encoding is None and 0 in head.partition(b"\n")[0]  # pandas 2.2 skips them
        if nulls or any("\0" in str(name) for name in table.columns):
            hint = encoding_hint(head)
            raise RequestError(f"{file}: there are NUL bytes in the header; {hint}")
        for name in names_given_twice(head, form):
            renamed = f"{name}.1"
            note(f"several columns are named {name!r}: the second is {renamed!r} here")
    form.date_forms.update(forms)
    return table


def problem_in(
    table: Any,
    target: Targets,
    task: Any,
    *,
    drop: Sequence[str],
    form: CsvForm,
    files: Sequence[str],
) -> Problem:
    """The problem in a table; says what to try where a CSV file seems to be written otherwise.

    Of several targets `y` is a data frame.
    """
    from dtrees.io import problem_of
    from dtrees.parallel import is_lazy

    targets = [target] if isinstance(target, str) else target

    is_csv = not files[0].lower().endswith(PARQUET)
    names = [str(name) for name in table.columns]
    hints: dict[str, str] = {}
    if is_csv:
        lazy = is_lazy(table)
        hints = number_hints(table.head() if lazy else table, form, lazy)
        for name in targets:
            if name in hints and task != "classification":
                otherwise = "--task classification takes them as they are"
                raise RequestError(f"the target {name!r}: {hints[name]} ({otherwise})")
        for hint in dict.fromkeys(hints.values()):
            note(hint)
    if not is_lazy(table):
        note_strays(table, form, (*hints, *drop), is_csv)
    if form.dayfirst is None:
        note_open_orders(form.date_forms, drop)
    try:
        if len(targets) == 1:
            problem = problem_of(table, targets[0], task, drop=drop)
        else:
            problem = problem_of_several(table, targets, task, drop)
    except ValueError as error:
        missing = [name for name in targets if name not in names]
        other = separator_hint(missing[0], names, form) if is_csv and missing else None
        if other is None:
            raise
        raise RequestError(f"{error}; {other}") from error
    for name, y in each_target(problem, targets):
        if task == "auto" and problem.task == "classification":
            check_classes(y, name)
        note_single_class(y, name, problem.task)
    return problem


def problem_of_several(
    table: Any, targets: Sequence[str], task: Any, drop: Sequence[str]
) -> Problem:
    """The problem of several targets, of the rows that have all of them."""
    from pandas import DataFrame

    from dtrees.io import problem_of
    from dtrees.parallel import computed, is_lazy

    if not is_lazy(table):
        table = table.set_axis([str(name) for name in table.columns], axis=1)
    known = [name for name in targets if name in table.columns]
    has_all = table[known].notnull().all(axis=1)
    (n_without,) = computed((~has_all).sum())
    if n_without > 0:
        table = table[has_all]
        table = table if is_lazy(table) else table.reset_index(drop=True)
    each = [
        problem_of(table, name, task, drop=[*drop, *(other for other in targets if other != name)])
        for name in targets
    ]
    if len({problem.task for problem in each}) > 1:
        tasks = ", ".join(f"{n} {p.task}" for n, p in zip(targets, each, strict=True))
        raise ValueError(f"targets are of one task, and these are of two: {tasks}; give --task")
    return replace(
        each[0],
        y=DataFrame({name: problem.y for name, problem in zip(targets, each, strict=True)}),
        rows_without_target=int(n_without),
        dropped=tuple(name for name in each[0].dropped if name not in targets),
    )


def each_target(problem: Problem, targets: Sequence[str]) -> list[tuple[str, Any]]:
    """The targets of a problem, each with its name."""
    if len(targets) == 1:
        return [(targets[0], problem.y)]
    y: Any = problem.y
    return [(name, y[name].to_numpy()) for name in targets]


def check_classes(y: Any, target: str) -> None:
    """Refuse many words with fewer than two rows each: a key, or numbers that were not read."""
    n_classes = len(set(y.tolist()))
    if n_classes > max(MANY_CLASSES, len(y) / 2):
        raise RequestError(
            f"the target {target!r} holds words, {n_classes:,} different ones in "
            f"{counted(len(y), 'row')}: if they are classes, add --task classification"
        )


def check_files(files: Sequence[str], cluster: str | None) -> None:
    """Refuse files that are not there, before much is imported; workers look for theirs.

    Of several files, a word that stands alone may belong to an option.
    """
    for path in map(Path, files):
        hint = stray_hint(str(path)) if len(files) > 1 else ""
        is_word = bool(hint) and re.fullmatch(r"[^./*?\[]+", str(path)) is not None
        if not is_stream(path) and (cluster is None or is_word):
            check_there(path, hint)


@contextmanager
def table_of(
    files: Sequence[str],
    form: CsvForm,
    cluster: str | None,
    regime: str | None = None,
    as_text: Collection[str] = (),
    dates: bool = True,
) -> Iterator[Any]:
    """The table in some files, and a context in which it is computed and trees grow.

    A DataFrame; with a cluster, a Dask data frame. Columns of a CSV file that are named in
    `as_text` are read as they are written. Without `dates`, a cluster leaves them text.
    """
    from dtrees.parallel import connected, read_files, regime_asked_for

    with regime_asked_for(regime):
        if cluster is None:
            if regime == "replicated":
                raise RequestError("--regime replicated needs a cluster: add --cluster local:2")
            if len(files) > 1:
                raise RequestError("several files are read on a cluster: add --cluster local:2")
            yield read(Path(files[0]), form, as_text)
            return
        if any(map(is_stream, map(Path, files))):
            raise RequestError("--cluster: workers cannot read standard input")
        if form.thousands is not None:
            raise RequestError(
                "--thousands is not for --cluster: write the table as Parquet, or read it here"
            )
        with connected(cluster):
            table, forms = read_files(files, **form.options(), as_text=as_text, dates=dates)
            form.date_forms.update(forms)
            yield table


def label_of(files: Sequence[str]) -> str:
    """Name of a table in some files."""
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def headlines(file: str, target: Targets, problem: Problem) -> list[str]:
    """Lines on what was read, and what it was taken for."""
    n_columns = counted(problem.X.shape[1], "column")
    lines = [f"{file}: {counted(len(problem.y), 'row')}, {n_columns}"]
    for name, y in each_target(problem, [target] if isinstance(target, str) else target):
        what = "numbers"
        if problem.task == "classification":
            import numpy as np

            what = counted(len(np.unique(y)), "class", "classes")
        lines.append(f"target {name}: {problem.task}, {what}")
    if problem.dropped:
        lines.append(f"left out: {', '.join(problem.dropped)}")
    if problem.rows_without_target:
        rows = counted(problem.rows_without_target, "row")
        are = "is" if problem.rows_without_target == 1 else "are"
        lines.append(f"{rows} without a target {are} left out")
    return lines


def kinds_line(kinds: Iterable[str]) -> str:
    """A line on what the columns hold; `kinds` has one per column."""
    counts = Counter(kinds)
    shown = [
        f"{counts[kind]} {kind}{' (numbers and words)' if kind == 'hybrid' else ''}"
        for kind in ("ordered", "categorical", "hybrid", "empty")
        if counts[kind]
    ]
    return f"columns: {', '.join(shown)}"
