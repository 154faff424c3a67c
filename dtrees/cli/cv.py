"""``python -m dtrees cv FILE --target COLUMN``: the score of a model, by cross-validation.

::

    FILE --read--> DataFrame --problem_of--> Problem (X, y, task)
      Problem --tuned_size--> a size, if one is to be chosen
      Problem --cross_validate--> folds, and the model of all rows --> Run
      Run --> tables and text, or JSON; and a page, if one is asked for

How the models are grown is the business of `dtrees.model_selection`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from dtrees.cli.as_given import cv_command, fit_command
from dtrees.cli.errors import RequestError, notes, one_line_errors
from dtrees.cli.files import bytes_in_words, check_out, file_errors, is_stream, write_text
from dtrees.cli.models import MODEL, check_options, estimator_of, option_of
from dtrees.cli.run import Request, Run
from dtrees.cli.run_text import print_run
from dtrees.cli.tables import PROBLEM, options, read
from dtrees.cli.terminal import print_json, progress

if TYPE_CHECKING:
    from dtrees.model_selection import Problem

CHOSEN_BY_TUNING = ("min_samples_split", "ccp_alpha")


@click.command("cv")
@options(
    *PROBLEM,
    click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True),
    click.option(
        "--tune",
        is_flag=True,
        help="Choose the size of the model by the folds: max_depth with min_samples_split or, of a "
        "tree, ccp_alpha, whichever has the better mean score. The score is then somewhat too "
        "good. --max-depth is the largest depth that is tried.",
    ),
    click.option(
        "--tune-simplest",
        is_flag=True,
        help="The same, but the simplest size whose score is at most a standard error below.",
    ),
    click.option(
        "--pruning-table",
        is_flag=True,
        help="The errors of a tree under cost-complexity pruning; --tune shows them, too.",
    ),
    click.option(
        "--report",
        type=click.Path(path_type=Path),
        metavar="FILE.html",
        help="Also write a page with tables and pictures; one that is there is replaced.",
    ),
    *MODEL,
    click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
)
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    target: str,
    task: Any,
    drop: tuple[str, ...],
    sep: str | None,
    encoding: str | None,
    folds: int,
    tune: bool,
    tune_simplest: bool,
    pruning_table: bool,
    report: Path | None,
    as_json: bool,
    **model: Any,
) -> None:
    """Cross-validate a tree or a forest on FILE.

    FILE is a table (.csv, .csv.gz or .parquet), or - for CSV from standard input. Prints a line per
    fold, the mean score with its standard error, the ten most important columns, and the first
    levels of the tree, or the size of the forest, grown on all rows. The models of all folds and
    the one on all rows grow together.

    In a CSV file, a column whose every value is an ISO 8601 date, with or without a time of day
    (2024-05-01, 2024-05-01T13:30), is ordered by time.
    """
    with one_line_errors():
        from dtrees.model_selection import problem_of
        from dtrees.model_selection.files import extra

        check_options(**model)
        rule = rule_of(tune, tune_simplest, model)
        if pruning_table and model["model"] != "tree":
            raise RequestError(f"--pruning-table is for --model tree, not for {model['model']}")
        if report is not None:
            check_report(report, file)
        problem = problem_of(read(file, sep, encoding), target, task, drop=drop)
        estimator = estimator_of(problem.task, **model)
        if not as_json:
            extra("rich")
        check_folds(problem, folds)
        request = Request(str(file), target, model["model"], problem, folds, rule, pruning_table)
        steps = 1 + (rule is not None or pruning_table) + (report is not None)
        with notes(), progress(steps, show=not as_json) as begin:
            run = validated(request, estimator, begin)
            if report is not None:
                begin("drawing the report")
                write_report(run, report, context)
    if as_json:
        print_json(run.document())
        return
    print_run(run)
    if run.tuned is not None:
        click.echo(f"To save it: {fit_command(context, run.tuned.chosen.parameters)}")
    if report is not None:
        click.echo(f"{report}: {bytes_in_words(report)}")


def rule_of(tune: bool, tune_simplest: bool, model: dict[str, Any]) -> str | None:
    """By which rule the size of the model is chosen; None: it is not.

    Raises
    ------
    RequestError
        Both are asked for, or a size is given that is to be chosen.
    """
    if tune and tune_simplest:
        raise RequestError("--tune and --tune-simplest: give either")
    if not tune and not tune_simplest:
        return None
    for name in CHOSEN_BY_TUNING:
        if model[name] is not None:
            raise RequestError(f"{option_of(name)} is what --tune chooses: give either")
    return "simplest" if tune_simplest else "best"


def check_report(report: Path, file: Path) -> None:
    """Refuse, before the work is done, a page that cannot be made or written."""
    from dtrees.cli.report import check_libraries

    if is_stream(report):
        raise RequestError("--report: a page goes to a file, not to standard output")
    check_out(report, file, option="--report")
    check_libraries()


def write_report(run: Run, report: Path, context: click.Context) -> None:
    """Write the page of a run."""
    from dtrees.cli.report import page

    next_command = None
    if run.tuned is not None:
        next_command = fit_command(context, run.tuned.chosen.parameters)
    text = page(run, cv_command(context), next_command)
    with file_errors(report, "written"):
        write_text(text, report)


def validated(request: Request, estimator: Any, begin: Callable[[str], None]) -> Run:
    """Score the models of the folds and fit the estimator on all rows; all of it grows together.

    Parameters
    ----------
    request : Request
    estimator : object
        Not fitted itself.
    begin : callable
        Is told what is done next.
    """
    from sklearn.base import clone

    from dtrees.model_selection import (
        cost_complexity_cv,
        cross_validate,
        fold_results,
        shuffled_folds,
        tuned_size,
    )

    X, y = request.problem.X, request.problem.y
    start = perf_counter()
    is_classes = request.problem.task == "classification"
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # check_folds notes it
        splits = shuffled_folds(y, request.n_folds, estimator.random_state, stratified=is_classes)
    of_fold = clone(estimator)
    if hasattr(of_fold, "oob_score"):  # the folds have better: their held-out rows
        of_fold.set_params(oob_score=False)
    tuned = path = None
    if request.rule is not None:
        begin("choosing the size")
        tuned = tuned_size(of_fold, X, y, splits, request.rule)
        path = tuned.path
        for model in (estimator, of_fold):
            model.set_params(**tuned.chosen.parameters)
    elif request.wants_path:
        begin("pruning")
        path = cost_complexity_cv(of_fold, X, y, cv=splits)
    begin(f"{request.n_folds} folds and all rows")
    found = cross_validate(of_fold, X, y, cv=splits, return_estimator=True, error_score="raise")
    final = found["final"]
    if getattr(estimator, "oob_score", False):
        final = estimator.fit(X, y)
    seconds = perf_counter() - start
    folds = fold_results(found, splits)
    return Run(request, folds, found["estimator"], final, seconds, tuned, path)


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
