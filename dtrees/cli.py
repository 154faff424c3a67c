"""The command line: ``python -m dtrees cv FILE --target COLUMN``.

Reads a table, asks the floors below for folds, trees and importances, and prints what they say::

    FILE --read_table--> DataFrame --problem_of--> Problem (X, y, task)
      Problem --cross_validation--> FoldResult ... --+
      Problem --fit on all rows--> the final tree ---+--> Report --> tables and text, or JSON

Nothing is computed here. People get tables on standard output and a progress bar on a terminal;
machines get ``--json``: one document on standard output and nothing else. A request that cannot be
served ends with one line on standard error and exit code 2.

pandas reads the files and rich draws; both come with the extra ``cli`` and are imported when they
are needed, so that ``--help`` answers at once.
"""

from __future__ import annotations

import io
import json
import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import dtrees

if TYPE_CHECKING:
    from dtrees.model_selection import FoldResult, Problem

CRITERIA = {
    "classification": ("gini", "entropy", "log_loss"),
    "regression": ("squared_error", "poisson"),
}
SCORE_NAME = {"classification": "accuracy", "regression": "R²"}
TOP_COLUMNS = 10
TEXT_LEVELS = 3


class RequestError(click.ClickException):
    """A request that cannot be served: one line, exit code 2."""

    exit_code = 2

    def __init__(self, message: object):
        super().__init__(" ".join(str(message).split()))


@dataclass(frozen=True)
class Report:
    """Everything a run found out; `document` is its JSON form."""

    file: str
    target: str
    problem: Problem
    parameters: dict[str, Any]
    columns: list[dict[str, Any]]
    folds: list[FoldResult]
    mean: float
    standard_error: float
    final_tree: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """The run as one JSON document; docs/user_guide/command_line.md describes it."""
        return {
            "format": "dtrees.cv/1",
            "dtrees": dtrees.__version__,
            "file": self.file,
            "target": self.target,
            "task": self.problem.task,
            "score": {"classification": "accuracy", "regression": "r2"}[self.problem.task],
            "rows": len(self.problem.y),
            "rows_without_target": self.problem.rows_without_target,
            "dropped": list(self.problem.dropped),
            "parameters": self.parameters,
            "columns": self.columns,
            "folds": [asdict(fold) for fold in self.folds],
            "mean": self.mean,
            "standard_error": self.standard_error,
            "tree": self.final_tree,
        }


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(dtrees.__version__, prog_name="dtrees")
def main() -> None:
    """Exact decision trees on tables."""


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
    help="auto: regression for numbers, unless they are whole with at most 20 distinct values.",
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable.")
@click.option(
    "--sep",
    metavar="CHARACTER",
    help=r"Between the fields of a CSV file: ',' by default, or ';', '\t', ...",
)
@click.option("--encoding", metavar="NAME", help="Of a CSV file; by default utf-8.")
@click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True)
@click.option("--max-depth", type=click.IntRange(min=1), help="No limit by default.")
@click.option("--min-samples-leaf", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--max-codes",
    type=click.IntRange(min=2),
    help="Most codes of an ordered column; by default each distinct value has one.",
)
@click.option(
    "--criterion",
    type=click.Choice([name for names in CRITERIA.values() for name in names]),
    help="By default gini or squared_error.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    default=0,
    show_default=True,
    help="Shuffles the folds; also the tree's random_state.",
)
@click.option(
    "--jobs",
    type=int,
    default=-1,
    show_default=True,
    metavar="N",
    help="Threads of one tree; -1 means all cores.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def cv(
    file: Path,
    target: str,
    task: Any,
    drop: tuple[str, ...],
    sep: str | None,
    encoding: str | None,
    folds: int,
    as_json: bool,
    **tree: Any,
) -> None:
    """Cross-validate a tree on FILE (.csv, .csv.gz or .parquet).

    Prints a line per fold, the mean score with its standard error, the ten most important columns,
    and the first levels of the tree grown on all rows.

    In a CSV file, a column whose every value is an ISO 8601 date, with or without a time of day
    (2024-05-01, 2024-05-01T13:30), is ordered by time.
    """
    with one_line_errors():
        from dtrees.model_selection import problem_of, read_table
        from dtrees.model_selection.problem import extra

        separator = "\t" if sep == r"\t" else sep
        table = read_table(file, separator=separator, encoding=encoding)
        problem = problem_of(table, target, task, drop=drop)
        parameters = tree_parameters(problem.task, **tree)
        if not as_json:
            extra("rich")
        report = cross_validate(problem, folds, parameters, file, target, show=not as_json)
    if as_json:
        click.echo(json.dumps(finite(report.document()), indent=2, allow_nan=False))
    else:
        print_report(report)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what the floors below refuse into one line and exit code 2."""
    try:
        yield
    except (ImportError, TypeError, ValueError) as error:
        raise RequestError(error) from error


def tree_parameters(
    task: str,
    *,
    criterion: str | None,
    max_depth: int | None,
    min_samples_leaf: int,
    max_codes: int | None,
    seed: int,
    jobs: int,
) -> dict[str, Any]:
    """The estimator's parameters from the command line's."""
    if criterion is not None and criterion not in CRITERIA[task]:
        raise RequestError(
            f"--criterion {criterion} is not for {task}: choose one of {', '.join(CRITERIA[task])}"
        )
    return {
        "criterion": criterion or CRITERIA[task][0],
        "max_depth": max_depth,
        "min_samples_leaf": min_samples_leaf,
        "max_codes": max_codes,
        "random_state": seed,
        "n_jobs": jobs,
    }


def cross_validate(
    problem: Problem, folds: int, parameters: dict[str, Any], file: Path, target: str, show: bool
) -> Report:
    """Grow the tree of every fold and the final one; `show` allows a progress bar."""
    from dtrees.model_selection import cross_validation, mean_and_standard_error, shuffled_folds

    classes = problem.task == "classification"
    rows = len(problem.y)
    smallest = 1 if classes else 2  # R^2 of a single row is not defined
    if folds * smallest > rows:
        raise RequestError(
            f"--folds {folds} is too many for {rows} rows: a fold needs at least {smallest}"
        )
    if classes:
        sizes = Counter(problem.y.tolist()).values()
        if folds > max(sizes):
            raise RequestError(
                f"--folds {folds} is too many: the largest class has {max(sizes)} rows"
            )
        if folds > min(sizes):
            click.echo(
                f"Note: the smallest class has {min(sizes)} rows, not one for every fold.", err=True
            )
    kind = dtrees.DecisionTreeClassifier if classes else dtrees.DecisionTreeRegressor
    estimator = kind(**parameters)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the note says it
        splits = shuffled_folds(problem.y, folds, parameters["random_state"], stratified=classes)
    results = []
    with progress(folds + 1, show) as advance:
        for result in cross_validation(estimator, problem.X, problem.y, splits):
            results.append(result)
            advance(f"fold {result.fold + 1} of {folds}" if result.fold < folds else "all rows")
        start = perf_counter()
        estimator.fit(problem.X, problem.y)
        seconds = perf_counter() - start
        advance("done")
    mean, standard_error = mean_and_standard_error([result.score for result in results])
    importance = estimator.feature_importances_
    return Report(
        file=str(file),
        target=target,
        problem=problem,
        parameters={"folds": folds, **parameters},
        columns=[
            {"name": name, "kind": column_kind(estimator, j), "importance": float(importance[j])}
            for j, name in enumerate(problem.X.columns)
        ],
        folds=results,
        mean=mean,
        standard_error=standard_error,
        final_tree={
            "depth": int(estimator.get_depth()),
            "n_leaves": int(estimator.get_n_leaves()),
            "seconds": seconds,
            "text": dtrees.export_text(estimator, max_depth=TEXT_LEVELS - 1),
        },
    )


def column_kind(estimator: Any, j: int) -> str:
    """Ordered, categorical, hybrid, or empty: how the final tree's codebook sees column j."""
    book = estimator.tree_.codebook
    n_codes, n_ordered = book.n_codes[j], book.n_ordered[j]
    if n_codes == 0:
        return "empty"
    if n_ordered == n_codes:
        return "ordered"
    return "hybrid" if n_ordered else "categorical"


@contextmanager
def progress(steps: int, show: bool) -> Iterator[Any]:
    """A bar on standard error when it is a terminal; yields a function that takes a step."""
    if show:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        console = Console(stderr=True)
        if console.is_terminal:
            words = TextColumn("{task.description:<14}")
            columns = (words, BarColumn(), MofNCompleteColumn(), Elapsed())
            with Progress(*columns, console=console, transient=True) as bar:
                task = bar.add_task("fold 1", total=steps)
                yield lambda words: bar.update(task, advance=1, description=words)
            return
    yield lambda words: None


def print_report(report: Report) -> None:
    """Print the run for people."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):  # a stream without block characters shows "?"
        sys.stdout.reconfigure(errors="replace")
    out = Console(highlight=False)
    for line in headlines(report):
        click.echo(line)
    out.print(fold_table(report))
    score = SCORE_NAME[report.problem.task]
    out.print(f"[bold]{score} {report.mean:.4f} ± {report.standard_error:.4f}[/bold]", end="")
    out.print(f" (mean ± standard error of {len(report.folds)} folds)")
    out.print(importance_table(report))
    tree = report.final_tree
    shown = f", its first {TEXT_LEVELS} levels" if tree["depth"] > TEXT_LEVELS else ""
    out.print(
        f"[bold]The tree on all rows[/bold]: depth {tree['depth']}, {tree['n_leaves']:,} leaves, "
        f"{tree['seconds']:.2f} s{shown}"
    )
    click.echo(tree["text"].rstrip("\n"))


def headlines(report: Report) -> list[str]:
    """What was read, and what it was taken for."""
    problem = report.problem
    kinds = Counter(column["kind"] for column in report.columns)
    order = [kind for kind in ("ordered", "categorical", "hybrid", "empty") if kinds[kind]]
    columns = ", ".join(f"{kinds[kind]} {kind}" for kind in order)
    what = f"{len(np.unique(problem.y))} classes" if problem.task == "classification" else "numbers"
    lines = [
        f"{report.file}: {len(problem.y):,} rows, {len(report.columns)} columns ({columns})",
        f"target {report.target}: {problem.task}, {what}",
    ]
    if problem.dropped:
        lines.append(f"left out: {', '.join(problem.dropped)}")
    if problem.rows_without_target:
        lines.append(f"{problem.rows_without_target:,} rows without a target are left out")
    return lines


def fold_table(report: Report) -> Any:
    """One line per fold."""
    from rich import box, table

    score = SCORE_NAME[report.problem.task]
    lines = table.Table("fold", score, "depth", "leaves", "seconds", box=box.SIMPLE_HEAD)
    for column in lines.columns:
        column.justify = "right"
    for fold in report.folds:
        lines.add_row(
            str(fold.fold),
            f"{fold.score:.4f}",
            str(fold.depth),
            f"{fold.n_leaves:,}",
            f"{fold.seconds:.3f}",
        )
    return lines


def importance_table(report: Report) -> Any:
    """The most important of the columns that are used; equal ones in the file's order."""
    from rich import box, table
    from rich.text import Text

    used = [column for column in report.columns if column["importance"] > 0]
    if not used:
        return Text("\n  The tree asks nothing: no column is used.\n")
    ranked = sorted(used, key=lambda column: -column["importance"])[:TOP_COLUMNS]
    longest = ranked[0]["importance"]
    lines = table.Table("column", "kind", "importance", "", box=box.SIMPLE_HEAD)
    lines.columns[2].justify = "right"
    for column in ranked:
        bar = "█" * math.ceil(20 * (column["importance"] / longest))
        name = Text(column["name"], overflow="ellipsis", no_wrap=True)
        lines.add_row(name, column["kind"], f"{column['importance']:.4f}", bar)
    return lines


def finite(value: Any) -> Any:
    """The value with null for every number that JSON has no word for."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
