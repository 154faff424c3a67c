"""``python -m benchmarks``: measure, print a line at a time, write the table."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import click

from benchmarks import accuracy, cluster, fits, forests, kernels, papers, report, shapes, validation
from benchmarks.cases import Case, Contest, Fit, Page, Scale, Skipped, Survey, Table
from benchmarks.measure import contest, memory

CASES = [
    *fits.CASES,
    *forests.CASES,
    *validation.CASES,
    *cluster.CASES,
    *accuracy.CASES,
    *papers.CASES,
    *shapes.CASES,
    *kernels.CASES,
]
GROUPS = tuple(dict.fromkeys(case.group for case in CASES))
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
@click.option("--output", type=click.Path(path_type=Path), help="Where the tables are written.")
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

    NAMES are cases, groups (--list shows both) or beginnings of names. Without any, everything is
    measured but the kernels, and the tables are written to benchmarks/results. The papers' tables
    have pages of their own, in results/papers or in a folder of that name beside the output.
    """
    chosen = choose(names)
    if quick:  # ratios of tiny tables say nothing
        chosen = [replace(case, reach=None, aim=None) for case in chosen]
    if only_list:
        for case in chosen if names else CASES:
            click.echo(f"{case.name:34}{case.group:12}{case.work}")
        return
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    load, start = os.getloadavg()[0], time.perf_counter()
    tables: dict[Table, list[str]] = {}
    pictures: dict[str, bytes] = {}
    skipped: list[str] = []
    own_pages: dict[Page, list[str]] = {}
    folder = (output.parent if output is not None else RESULTS) / "papers"
    writes_pages = output is not None or not quick
    shown = None
    for case in chosen:
        try:
            prepared = case.prepare(Scale(quick))
        except Skipped as why:
            skipped.append(f"{case.name}: {why}")
            click.echo(f"skipped {skipped[-1]}", err=True)
            continue
        table, lines = measured(
            case,
            prepared,
            turns=1 if quick else repeats or case.repeats or 5,
            limit=race_budget if isinstance(prepared, Contest) and prepared.race else budget,
        )
        if table != shown:
            click.echo(f"\n{report.head(table)}")
            shown = table
        found = []
        for line in lines:
            found.append(line)
            click.echo(line)
        if case.page is not None and isinstance(prepared, Survey):
            if writes_pages:
                section = write_section(folder, case, prepared, found)
                own_pages.setdefault(case.page, []).append(section)
            continue
        tables.setdefault(table, []).extend(found)
        if isinstance(prepared, Survey) and prepared.picture is not None:
            pictures[case.name] = prepared.picture()
    minutes = (time.perf_counter() - start) / 60
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    for own, sections in own_pages.items():
        text = report.own_page(own, sections, command, load)
        (folder / f"{own.name}.md").write_text(text, encoding="utf-8")
        click.echo(f"\nwritten to papers/{own.name}.md", err=True)
    if output is None and not names and not quick:
        output = RESULTS / f"{date.today().isoformat()}.md"
    if output is not None and (tables or skipped):
        output.parent.mkdir(exist_ok=True)
        files = {
            f"{output.stem.removesuffix(f'-{name}')}-{name}.png": drawn
            for name, drawn in pictures.items()
        }
        for name, drawn in files.items():
            (output.parent / name).write_bytes(drawn)
        page = report.page(command, tables, list(files), skipped, minutes, load)
        output.write_text(page, encoding="utf-8")
        click.echo(f"\nwritten to {output.name}", err=True)


def write_section(folder: Path, case: Case, survey: Survey, lines: list[str]) -> str:
    """The section of a survey that has been measured; its picture is written into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    name = None
    if survey.picture is not None:
        name = f"{case.name}.png"
        (folder / name).write_bytes(survey.picture())
    return report.section(survey, lines, name)


def measured(
    case: Case,
    prepared: Contest | Fit | Survey,
    *,
    turns: int,
    limit: float,
) -> tuple[Table, Iterable[str]]:
    """The table of a case and its lines, which are measured as they are asked for."""
    if isinstance(prepared, Survey):
        return prepared.table, map(report.row, prepared.lines())
    if isinstance(prepared, Fit):
        return report.MEMORY, [report.memory_line(case, prepared, memory(prepared))]
    return report.CONTESTS, [report.line(case, contest(prepared, turns, limit))]


if __name__ == "__main__":
    main()
