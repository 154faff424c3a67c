"""``python -m dtrees cv FILE --target COLUMN``: the score of a model, by cross-validation.

::

    FILE --read--> DataFrame --problem_of--> Problem (X, y, task)
      Problem --validate_folds--> folds, the model of all rows, a size if one is to be chosen
        --> Run
      Run --> tables and text, or JSON; and a page, if one is asked for

How the models are grown is the business of `dtrees.model_selection`.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dtrees.cli.columns import note_ids
from dtrees.cli.files import (
    bytes_in_words,
    check_out,
    check_replaceable,
    file_errors,
    force_option,
    is_page,
    is_stream,
    whole_file,
)
from dtrees.cli.invocation import cv_command, fit_command
from dtrees.cli.models import (
    MODEL,
    check_columns,
    check_options,
    check_task,
    estimator_of,
    option_of,
    rules_as_options,
)
from dtrees.cli.run import Request, Run, print_run, validated
from dtrees.cli.tables import (
    CLUSTER,
    PROBLEM,
    Targets,
    check_files,
    form_of,
    headlines,
    label_of,
    one_target,
    options,
    problem_in,
    table_of,
)
from dtrees.cli.terminal import (
    RequestError,
    counted,
    note,
    notes,
    one_line_errors,
    print_json,
    say,
    trees_grown,
    waiting,
)

if TYPE_CHECKING:
    from dtrees.io import Problem

USUAL = (  # scorers that a message lists first
    *("accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "neg_log_loss"),
    *("r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error"),
)
ROWS_OF_A_CLASS = 2  # that a scorer is tried on
ROWS_OF_NUMBERS = 1000
CHOSEN_BY_TUNING = ("min_samples_split", "ccp_alpha")
PAGES = (".html", ".htm")
LEAST_NESTED = 3  # folds, of which two are left out


def check_scoring(names: Sequence[str], quantile: float | None = None) -> dict[str, Any]:
    """The scorers that are asked for, by name; empty: the score of the estimator.

    Of a model that predicts a `quantile`, minus its loss. RequestError: there is no such scorer.
    """
    if quantile is None and not names:
        return {}
    from sklearn.metrics import get_scorer_names

    from dtrees.estimators.scorers import PINBALL, pinball_scorer
    from dtrees.io.problem import near

    scorers: dict[str, Any] = {name: name for name in names}
    if quantile is not None:
        own = pinball_scorer(quantile)
        scorers = {name: own if name == PINBALL else name for name in names or (PINBALL,)}
    elif PINBALL in scorers:
        raise RequestError(f"--scoring {PINBALL} is for --loss quantile and --quantile SHARE")

    known = get_scorer_names() if quantile is None else [*get_scorer_names(), PINBALL]
    known.sort(key=lambda name: USUAL.index(name) if name in USUAL else len(USUAL))
    for name in scorers:
        if name not in known:
            likely = near(name.removesuffix("_score"), known)  # of a function of sklearn.metrics
            raise RequestError(f"--scoring: scikit-learn has no scorer {name!r}{likely}")
    return scorers


def check_scores(scorers: Mapping[str, Any], problem: Problem) -> None:
    """Refuse, before the models grow, scorers that do not fit the target; with their own reason."""
    if not scorers:
        return
    import numpy as np
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.metrics import get_scorer, get_scorer_names

    known = get_scorer_names()
    model, y = DummyRegressor(), problem.y[:ROWS_OF_NUMBERS]
    if problem.task == "classification":
        model, y = DummyClassifier(), np.repeat(np.unique(problem.y), ROWS_OF_A_CLASS)
    X = np.zeros((len(y), 1))
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
        for name, scorer in scorers.items():
            try:
                get_scorer(scorer)(model, X, y)
            except (AttributeError, TypeError, ValueError) as error:
                reason = reason_of(error, name, problem.task, known)
                raise RequestError(f"--scoring {name} does not fit the target: {reason}") from error


def reason_of(error: Exception, name: str, task: str, known: Sequence[str]) -> str:
    """Why a scorer does not fit a target, and which one does."""
    reason = str(error)
    if isinstance(error, AttributeError) or (task == "regression" and "not supported" in reason):
        return "it is for classes, and the target holds numbers. Try r2"
    others = [other for other in (f"{name}_macro", f"{name}_ovr") if other in known]
    if not others:
        return reason
    if "pos_label" in reason:
        return f"{reason}. For labels other than 0 and 1, try {others[0]}"
    if "multiclass" in reason or "multi_class" in reason:
        return f"it is for two classes, and there are more. Try {others[0]}"
    return reason


@click.command("cv")
@options(
    *PROBLEM,
    *CLUSTER,
    click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True),
    click.option(
        "--hash-folds",
        is_flag=True,
        help="Draw the fold of each row from the seed and its number, without lists of rows: for "
        "very large tables. Folds of a regression then differ a little in size.",
    ),
    click.option(
        "--scoring",
        multiple=True,
        metavar="NAME",
        help="Score by one of scikit-learn's scorers (f1_macro, roc_auc, ...) instead of accuracy "
        "or R² (of --loss quantile, the pinball loss); repeatable, and --tune goes by the first.",
    ),
    click.option(
        "--tune",
        is_flag=True,
        help="Choose the size of the model by the folds: max_depth with min_samples_split or, of a "
        "tree, ccp_alpha, whichever has the better mean score; of boosting, the number of "
        "iterations. The score is then somewhat too good: --tune-nested. --max-depth and "
        "--max-iter are the largest that are tried.",
    ),
    click.option(
        "--tune-simplest",
        is_flag=True,
        help="The same, but the simplest size whose score is at most a standard error below.",
    ),
    click.option(
        "--tune-nested",
        is_flag=True,
        help="With --tune or --tune-simplest: also what such a choice is worth on new rows, chosen "
        "anew for each fold from the rows outside of it. Takes a cross-validation for each fold.",
    ),
    click.option(
        "--nested-error",
        type=click.IntRange(min=1),
        metavar="N",
        help="Also the standard error by nested cross-validation, which knows that folds share "
        "rows, with N divisions into folds: 20 or more. Grows --folds times (--folds + 1) / 2 "
        "models for each. Of numbers it is that of the squared error, or of --loss quantile.",
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
        help="Also write a page with tables and pictures; another report is replaced.",
    ),
    force_option,
    *MODEL,
    click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
)
@click.pass_context
def command(
    context: click.Context,
    files: tuple[str, ...],
    target: Targets,
    task: Any,
    drop: tuple[str, ...],
    cluster: str | None,
    regime: str | None,
    folds: int,
    hash_folds: bool,
    scoring: tuple[str, ...],
    tune: bool,
    tune_simplest: bool,
    tune_nested: bool,
    nested_error: int | None,
    pruning_table: bool,
    report: Path | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Cross-validate a tree, a forest or a boosted model on FILE.

    FILE is a table (.csv, .csv.gz or .parquet), or - for CSV from standard input; with --cluster,
    one file or many, or patterns ('big/*.parquet') and URLs, which the workers read. Prints a line
    per fold, the mean score with its standard error, the ten most important columns, and the first
    levels of the tree, or the size of the model, grown on all rows. The models of all folds and
    the one on all rows grow together; boosted ones grow side by side.

    In a CSV file, a column whose every value is an ISO 8601 date, with or without a time of day
    (2024-05-01, 2024-05-01T13:30), is ordered by time. So are columns of dates that are written
    alike: 31.12.2024, 12/31/2024, or 31/12/2024 with --dayfirst.
    """
    with one_line_errors():
        target = one_target(target)
        check_files(files, cluster)
        from dtrees._extras import extra

        form, model = form_of(given), given
        check_options(**model)
        scorers = check_scoring(scoring, model["quantile"])
        rule = rule_of(tune, tune_simplest, model)
        check_nested(folds, scoring, rule, tune_nested, nested_error)
        if pruning_table and model["model"] != "tree":
            raise RequestError(f"--pruning-table is for --model tree, not for {model['model']}")
        if report is not None:
            check_report(report, files, force)
        if not as_json:
            extra("rich")
        with table_of(files, form, cluster, regime) as table:
            problem = problem_in(table, target, task, drop=drop, form=form, files=files)
            check_folds(problem, folds, nested=tune_nested)
            check_task(problem.task, model)
            check_scores(scorers, problem)
            check_columns(model, problem.X.columns)
            if not as_json:  # before scikit-learn is imported, which takes a second
                for line in headlines(label_of(files), target, problem):
                    say(line)
            estimator = estimator_of(problem.task, **model)
            request = Request(
                file=label_of(files),
                target=target,
                kind=model["model"],
                problem=problem,
                n_folds=folds,
                has_hash_folds=hash_folds,
                scoring=scorers,
                rule=rule,
                wants_nested=tune_nested,
                wants_path=pruning_table,
                n_divisions=nested_error,
                quantile=model["quantile"],
            )
            with notes():
                with rules_as_options(model), trees_grown(show=not as_json) as bar:
                    run = validated(request, estimator, bar)
                note_ids(run.model, len(problem.y), form, files)
                if report is not None:
                    with waiting("drawing the report", show=not as_json):
                        write_report(run, report, context)
    if as_json:
        print_json(run.document())
        return
    print_run(run)
    if run.found.tuned is not None:
        say(f"To save it: {fit_command(context, run.found.tuned.chosen.parameters)}")
    if report is not None:
        say(f"{report}: {bytes_in_words(report)}")


def rule_of(tune: bool, tune_simplest: bool, model: dict[str, Any]) -> str | None:
    """By which rule the size of the model is chosen; None: it is not.

    RequestError: both are asked for, or a size is given that is to be chosen.
    """
    if tune and tune_simplest:
        raise RequestError("--tune and --tune-simplest: give either")
    if not tune and not tune_simplest:
        return None
    for name in CHOSEN_BY_TUNING:
        if model[name] is not None:
            raise RequestError(f"{option_of(name)} is what --tune chooses: give either")
    if model["early_stopping"]:
        raise RequestError(
            "--early-stopping ends a boosted model by rows that it holds out, and --tune by the "
            "folds: give either"
        )
    return "simplest" if tune_simplest else "best"


def check_nested(
    folds: int,
    scorers: Sequence[str],
    rule: str | None,
    tune_nested: bool,
    nested_error: int | None,
) -> None:
    """Refuse nested choices of nothing.

    And nested standard errors of too few folds, of a size that is to be chosen, or of scorers.
    """
    if tune_nested and rule is None:
        raise RequestError("--tune-nested is for --tune or --tune-simplest: add either")
    if nested_error is None:
        return
    if folds < LEAST_NESTED:
        raise RequestError(f"--nested-error needs --folds {LEAST_NESTED} or more, not {folds}")
    if rule is not None:
        raise RequestError("--nested-error is for a size that is given, not for --tune")
    if scorers:
        raise RequestError(
            "--nested-error is of the accuracy, or of the squared error (of --loss quantile, the "
            "pinball loss): not with --scoring"
        )


def check_report(report: Path, files: Sequence[str], force: bool) -> None:
    """Refuse, before the work is done, a page that cannot be made or written."""
    from dtrees.cli.report import check_libraries

    if is_stream(report):
        raise RequestError("--report: a page goes to a file, not to standard output")
    check_out(report, *map(Path, files), option="--report")
    check_replaceable(report, is_page, "a report", force)
    if report.suffix.lower() not in PAGES:
        raise RequestError(f"--report {report}: the page is HTML, so its name ends with .html")
    check_libraries()


def write_report(run: Run, report: Path, context: click.Context) -> None:
    """Write the page of a run."""
    from dtrees.cli.report import page

    next_command = None
    if run.found.tuned is not None:
        next_command = fit_command(context, run.found.tuned.chosen.parameters)
    text = page(run, cv_command(context), next_command)
    with file_errors(report, "written"), whole_file(report) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def check_folds(problem: Problem, folds: int, *, nested: bool = False) -> None:
    """Refuse more folds than the rows or the largest class can fill; note a small class.

    With `nested`, the rows outside of a fold are cut into as many folds again.
    """
    is_classes = problem.task == "classification"
    rows = len(problem.y)
    smallest = 1 if is_classes else 2  # R^2 of a single row is not defined
    if folds * smallest > rows:
        raise RequestError(
            f"--folds {folds} is too many for {counted(rows, 'row')}: a fold needs at least "
            f"{smallest}"
        )
    to_fill = rows
    if is_classes:
        sizes = Counter(problem.y.tolist()).values()
        to_fill = max(sizes)
        if folds > max(sizes):
            raise RequestError(
                f"--folds {folds} is too many: the largest class has {counted(max(sizes), 'row')}"
            )
        if folds > min(sizes):
            rows_of_it = counted(min(sizes), "row")
            note(f"the smallest class has {rows_of_it}, not one for every fold.")
    outside = to_fill - math.ceil(to_fill / folds)  # of the largest fold
    if nested and folds * smallest > outside:
        raise RequestError(
            f"--folds {folds} is too many for --tune-nested, which cuts the rows outside of a fold "
            "into as many folds again"
        )
