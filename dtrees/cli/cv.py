"""``python -m dtrees cv FILE --target COLUMN``: the score of a model, by cross-validation.

::

    FILE --read--> DataFrame --problem_of--> Problem (X, y, task)
      Problem --cross_validation--> FoldResult ... --+
      Problem --fit on all rows--> the final model --+--> Report --> tables and text, or JSON

How the models of the folds are grown is the business of `dtrees.model_selection`; what comes from
there is one `FoldResult` after the other.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

import dtrees
from dtrees.cli.description import (
    SCORE_NAME,
    TEXT_LEVELS,
    columns_of,
    first_rules,
    importance_table,
    is_tree,
    oob_line,
    size_in_words,
)
from dtrees.cli.errors import RequestError, notes, one_line_errors
from dtrees.cli.models import KINDS, MODEL, check_options, chosen_parameters, estimator_of
from dtrees.cli.tables import PROBLEM, headlines, options, read
from dtrees.cli.terminal import console, print_json, progress

if TYPE_CHECKING:
    from dtrees.model_selection import FoldResult, Problem


@dataclass(frozen=True)
class Report:
    """Everything a run found out; `document` is its JSON form.

    Attributes
    ----------
    file, target : str
    problem : Problem
    kind : str
        Of `dtrees.cli.models.KINDS`.
    model : object
        The estimator, fitted on all rows.
    seconds : float
        Of that fit.
    folds : list of FoldResult
    """

    file: str
    target: str
    problem: Problem
    kind: str
    model: Any
    seconds: float
    folds: list[FoldResult]

    @property
    def mean_and_error(self) -> tuple[float, float]:
        """Mean of the folds' scores, and its standard error."""
        from dtrees.model_selection import mean_and_standard_error

        return mean_and_standard_error([fold.score for fold in self.folds])

    def document(self) -> dict[str, Any]:
        """The run as one JSON document; docs/user_guide/command_line.md describes it."""
        mean, standard_error = self.mean_and_error
        return {
            "format": "dtrees.cv/1",
            "dtrees": dtrees.__version__,
            "file": self.file,
            "target": self.target,
            "task": self.problem.task,
            "model": self.kind,
            "score": {"classification": "accuracy", "regression": "r2"}[self.problem.task],
            "rows": len(self.problem.y),
            "rows_without_target": self.problem.rows_without_target,
            "dropped": list(self.problem.dropped),
            "parameters": {"folds": len(self.folds), **chosen_parameters(self.model)},
            "columns": columns_of(self.model),
            "folds": [asdict(fold) for fold in self.folds],
            "mean": mean,
            "standard_error": standard_error,
            KINDS[self.kind].noun: self.final(),
        }

    def final(self) -> dict[str, Any]:
        """The model on all rows."""
        from dtrees.model_selection import size_of

        size = asdict(size_of(self.model))
        found = {**size, "seconds": self.seconds}
        if is_tree(self.model):
            del found["trees"]
            found["text"] = first_rules(self.model)
        if hasattr(self.model, "oob_score_"):
            found["oob_score"] = float(self.model.oob_score_)
        return found


@click.command("cv")
@options(
    *PROBLEM,
    click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True),
    *MODEL,
    click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
)
def command(
    file: Path,
    target: str,
    task: Any,
    drop: tuple[str, ...],
    sep: str | None,
    encoding: str | None,
    folds: int,
    as_json: bool,
    **model: Any,
) -> None:
    """Cross-validate a tree or a forest on FILE.

    FILE is a table (.csv, .csv.gz or .parquet), or - for CSV from standard input. Prints a line per
    fold, the mean score with its standard error, the ten most important columns, and the first
    levels of the tree, or the size of the forest, grown on all rows.

    In a CSV file, a column whose every value is an ISO 8601 date, with or without a time of day
    (2024-05-01, 2024-05-01T13:30), is ordered by time.
    """
    with one_line_errors():
        from dtrees.model_selection import problem_of
        from dtrees.model_selection.files import extra

        check_options(**model)
        problem = problem_of(read(file, sep, encoding), target, task, drop=drop)
        estimator = estimator_of(problem.task, **model)
        if not as_json:
            extra("rich")
        results, seconds = cross_validate(problem, folds, estimator, show=not as_json)
        report = Report(str(file), target, problem, model["model"], estimator, seconds, results)
    if as_json:
        print_json(report.document())
    else:
        print_report(report)


def cross_validate(
    problem: Problem, folds: int, estimator: Any, show: bool
) -> tuple[list[FoldResult], float]:
    """Score the models of the folds and fit the estimator on all rows.

    Parameters
    ----------
    problem : Problem
    folds : int
    estimator : object
        Fitted in the end.
    show : bool
        Whether there may be a progress bar.

    Returns
    -------
    results : list of FoldResult
    seconds : float
        Of the fit on all rows.
    """
    from sklearn.base import clone

    from dtrees.model_selection import cross_validation, shuffled_folds

    check_folds(problem, folds)
    is_classes = problem.task == "classification"
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # check_folds notes it
        splits = shuffled_folds(problem.y, folds, estimator.random_state, stratified=is_classes)
    of_fold = clone(estimator)
    if hasattr(of_fold, "oob_score"):  # the folds have better: their held-out rows
        of_fold.set_params(oob_score=False)
    results = []
    with notes(), progress(folds + 1, show) as advance:
        for result in cross_validation(of_fold, problem.X, problem.y, splits):
            results.append(result)
            advance(f"fold {result.fold + 1} of {folds}" if result.fold < folds else "all rows")
        start = perf_counter()
        estimator.fit(problem.X, problem.y)
        seconds = perf_counter() - start
        advance("done")
    return results, seconds


def check_folds(problem: Problem, folds: int) -> None:
    """Refuse more folds than the rows or the largest class can fill; note a small class."""
    is_classes = problem.task == "classification"
    rows = len(problem.y)
    smallest = 1 if is_classes else 2  # R^2 of a single row is not defined
    if folds * smallest > rows:
        raise RequestError(
            f"--folds {folds} is too many for {rows} rows: a fold needs at least {smallest}"
        )
    if is_classes:
        sizes = Counter(problem.y.tolist()).values()
        if folds > max(sizes):
            raise RequestError(
                f"--folds {folds} is too many: the largest class has {max(sizes)} rows"
            )
        if folds > min(sizes):
            click.echo(
                f"Note: the smallest class has {min(sizes)} rows, not one for every fold.", err=True
            )


def print_report(report: Report) -> None:
    """Print the run for people."""
    columns = columns_of(report.model)
    out = console()
    kinds = [column["kind"] for column in columns]
    for line in headlines(Path(report.file), report.target, report.problem, kinds):
        click.echo(line)
    out.print(fold_table(report))
    score, (mean, standard_error) = SCORE_NAME[report.problem.task], report.mean_and_error
    out.print(f"[bold]{score} {mean:.4f} ± {standard_error:.4f}[/bold]", end="")
    out.print(f" (mean ± standard error of {len(report.folds)} folds)")
    out.print(importance_table(columns))
    model = report.model
    noun, size = KINDS[report.kind].noun, size_in_words(model)
    is_cut = is_tree(model) and model.get_depth() > TEXT_LEVELS
    shown = f", its first {TEXT_LEVELS} levels" if is_cut else ""
    out.print(f"[bold]The {noun} on all rows[/bold]: {size}, {report.seconds:.2f} s{shown}")
    for line in oob_line(model):
        click.echo(line)
    if is_tree(model):
        click.echo(first_rules(model).rstrip("\n"))


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
