"""``python -m dtrees fit FILE --target COLUMN --out MODEL``: a model of all rows, in a file."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import click

from dtrees.cli.columns import note_ids, remember_orders
from dtrees.cli.description import (
    columns_of,
    growth_document,
    growth_lines,
    model_document,
    oob_line,
    size_in_words,
    stopping_line,
)
from dtrees.cli.files import (
    bytes_in_words,
    check_out,
    check_replaceable,
    file_errors,
    force_option,
    is_model,
    is_stream,
    target_of,
)
from dtrees.cli.models import (
    MODEL,
    check_columns,
    check_options,
    check_task,
    estimator_of,
    rules_as_options,
)
from dtrees.cli.tables import (
    CLUSTER,
    PROBLEM,
    Targets,
    check_files,
    form_of,
    headlines,
    kinds_line,
    label_of,
    options,
    problem_in,
    table_of,
)
from dtrees.cli.terminal import RequestError, notes, one_line_errors, print_json, say, waiting


@click.command("fit")
@options(
    *PROBLEM,
    *CLUSTER,
    click.option(
        "--out",
        required=True,
        type=click.Path(path_type=Path),
        metavar="MODEL",
        help="The model file, by custom with the suffix .dtrees; another model is replaced.",
    ),
    force_option,
    *MODEL,
    click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
)
def command(
    files: tuple[str, ...],
    target: Targets,
    task: Any,
    drop: tuple[str, ...],
    cluster: str | None,
    regime: str | None,
    out: Path,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Fit a tree, a forest or a boosted model on all rows of FILE and save it.

    FILE is a table (.csv, .csv.gz or .parquet), or - for CSV from standard input; with --cluster,
    one file or many, or patterns and URLs, which the workers read. The model file is
    read by `predict` and `show`, and by dtrees.export.load in Python.
    """
    with one_line_errors():
        check_files(files, cluster)
        from dtrees._extras import extra
        from dtrees.export import save

        if is_stream(out):
            raise RequestError("--out: a model goes to a file, not to standard output")
        check_out(out, *map(Path, files))
        check_replaceable(out, is_model, "a model file", force)
        form, model = form_of(given), given
        check_options(**model)
        if not as_json:
            extra("rich")
        with table_of(files, form, cluster, regime) as table:
            problem = problem_in(table, target, task, drop=drop, form=form, files=files)
            check_task(problem.task, model)
            check_columns(model, problem.X.columns)
            if not as_json:
                for line in headlines(label_of(files), target, problem):
                    say(line)
            estimator = estimator_of(problem.task, **model)
            start = perf_counter()
            with notes(), rules_as_options(model), waiting("fitting", show=not as_json):
                estimator.fit(problem.X, problem.y)
            seconds = perf_counter() - start
            note_ids(estimator, len(problem.y), form, files)
            remember_orders(estimator, form)
        with file_errors(out, "written"):
            save(estimator, target_of(out))
    on_cluster = cluster is not None
    if as_json:
        rows = len(problem.y)
        facts = {"target": target, "rows": rows, "seconds": seconds}
        growth = growth_document(estimator, on_cluster=on_cluster)
        document = {**model_document(estimator, out), **facts, **growth}
        print_json(document)
        return
    say(kinds_line(column["kind"] for column in columns_of(estimator)))
    name = type(estimator).__name__
    say(f"{name}: {size_in_words(estimator)}, fitted in {seconds:.2f} s")
    grown = growth_lines(estimator, on_cluster=on_cluster)
    for line in (*grown, *oob_line(estimator), *stopping_line(estimator)):
        say(line)
    say(f"{out}: {bytes_in_words(out)}")
