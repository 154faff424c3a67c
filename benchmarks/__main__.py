"""``python -m benchmarks``: measure, print a line at a time, write the table."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from datetime import date
from pathlib import Path

import click

from benchmarks import fits, forests, kernels, report
from benchmarks.cases import Case, Fit, Scale, Skipped
from benchmarks.measure import contest, memory

CASES = [*fits.CASES, *forests.CASES, *kernels.CASES]
RESULTS = Path(__file__).resolve().parent / "results"


def choose(names: tuple[str, ...]) -> list[Case]:
    """Cases by name, group, or the beginning of a name; without names all but the kernels."""
    if not names:
        return [case for case in CASES if case.group != "kernels"]
    chosen = []
    for name in names:
        found = [case for case in CASES if case.group == name or case.name.startswith(name)]
        if not found:
            raise click.BadParameter(f"no case is called {name!r}; see --list")
        chosen += [case for case in found if case not in chosen]
    return chosen


@click.command()
@click.argument("names", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="Show the cases and stop.")
@click.option("--quick", is_flag=True, help="Tiny tables, one turn: does everything run?")
@click.option("--repeats", type=click.IntRange(1), help="Turns of each side (default: 5 or more).")
@click.option("--budget", default=40.0, show_default=True, help="Seconds for a case's turns.")
@click.option("--race-budget", default=240.0, show_default=True, help="The same for sparse tables.")
@click.option("--output", type=click.Path(path_type=Path), help="Where the table is written.")
def main(
    names: tuple[str, ...],
    only_list: bool,
    quick: bool,
    repeats: int | None,
    budget: float,
    race_budget: float,
    output: Path | None,
) -> None:
    """Measure dtrees against scikit-learn.

    NAMES are cases, groups (fits, prediction, memory, forests, kernels) or beginnings of names.
    Without any, everything is measured but the kernels, and the table is written to
    benchmarks/results.
    """
    chosen = choose(names)
    if quick:  # ratios of tiny tables say nothing
        chosen = [replace(case, reach=None, aim=None) for case in chosen]
    if only_list:
        for case in chosen if names else CASES:
            click.echo(f"{case.name:34}{case.group:12}{case.work}")
        return
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    start = time.perf_counter()
    lines: list[str] = []
    memory_lines: list[str] = []
    skipped: list[str] = []
    click.echo(report.HEAD)
    for case in chosen:
        try:
            prepared = case.prepare(Scale(quick))
        except Skipped as why:
            skipped.append(f"{case.name}: {why}")
            click.echo(f"skipped {skipped[-1]}", err=True)
            continue
        if isinstance(prepared, Fit):
            memory_lines.append(report.memory_line(case, prepared, memory(prepared)))
            click.echo(memory_lines[-1])
        else:
            turns = 1 if quick else repeats or case.repeats or 5
            limit = race_budget if prepared.race else budget
            lines.append(report.line(case, contest(prepared, turns, limit)))
            click.echo(lines[-1])
    minutes = (time.perf_counter() - start) / 60
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    page = report.page(command, lines, memory_lines, skipped, minutes)
    if output is None and not names and not quick:
        output = RESULTS / f"{date.today().isoformat()}.md"
    if output is not None:
        output.parent.mkdir(exist_ok=True)
        output.write_text(page, encoding="utf-8")
        click.echo(f"\nwritten to {output.name}", err=True)


if __name__ == "__main__":
    main()
