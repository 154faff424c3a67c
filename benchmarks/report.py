"""The table of results, as Markdown.

work | ours, s | theirs, s | ratio (least to greatest) | reach | aim | verdict
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from benchmarks.cases import THREADS, Case, Fit, Page, Survey, Table
from benchmarks.measure import Memory, Times

ROOT = Path(__file__).resolve().parent.parent
CONTESTS = Table(
    ("work", "ours, s", "theirs, s", "ratio", "reach", "aim", "verdict", "remarks"),
)
MEMORY = Table(
    ("work", "peak above the table, MB", "limit, MB", "verdict", "table, MB", "seconds", "remarks"),
)


def head(table: Table) -> str:
    """The first two rows of a table."""
    return f"{row(table.columns)}\n|{'---|' * len(table.columns)}"


def row(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def seconds(value: float | None) -> str:
    """Three significant digits; "-" for none."""
    if value is None:
        return "-"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def ratio(value: float) -> str:
    """One decimal below ten."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def verdict(case: Case, times: Times) -> str:
    """What the ratio means."""
    value = times.ratio
    if value is None or case.reach is None:
        return times.fault or "-"
    if value < case.reach:
        words = f"**missed**: {value / case.reach:.0%} of the reach"
    elif case.aim is not None and value >= case.aim:
        words = "aim reached"
    else:
        words = "reached"
    return f"{words}; **{times.fault}**" if times.fault else words


def line(case: Case, times: Times) -> str:
    """The line of a contest."""
    middle = "-"
    spread = times.spread
    if times.ratio is not None and spread is not None:
        middle = f"{ratio(times.ratio)} ({ratio(spread[0])} to {ratio(spread[1])})"
    remarks = [times.remark] if times.remark else []
    if len(times.theirs) > 1:
        remarks.append(f"the better of {len(times.theirs)}: {times.opponent}")
    turns = [len(times.ours), *map(len, times.theirs.values())]
    remarks.append(f"{turns[0]} turns" if len(set(turns)) == 1 else f"{turns[0]} and {turns[1]}")
    cells = [
        case.work,
        seconds(times.seconds),
        seconds(times.opponent_seconds),
        middle,
        "-" if case.reach is None else f"{case.reach:g}",
        "-" if case.aim is None else f"{case.aim:g}",
        verdict(case, times),
        "; ".join(remarks),
    ]
    return row(cells)


def memory_line(case: Case, fit: Fit, memory: Memory) -> str:
    """The line of a fit whose memory was measured."""
    reached = memory.peak_mb <= fit.limit_mb
    words = "reached" if reached else f"**missed** by {memory.peak_mb - fit.limit_mb:.0f} MB"
    cells = [
        case.work,
        f"{memory.peak_mb:.0f}",
        f"{fit.limit_mb:.0f}",
        words,
        f"{memory.table_mb:.0f}",
        seconds(memory.seconds),
        f"{memory.remark}; {memory.how}",
    ]
    return row(cells)


def machine() -> str:
    """Processor, memory and system in a line."""
    processor = read("/proc/cpuinfo")
    name = next((pair[1] for pair in processor if pair[0] == "model name"), platform.machine())
    cores = sum(pair[0] == "processor" for pair in processor)
    kilobytes = next((pair[1] for pair in read("/proc/meminfo") if pair[0] == "MemTotal"), "0 kB")
    memory = int(kilobytes.removesuffix(" kB")) / 2**20
    return f"{name}, {cores} cores, {memory:.0f} GB, {platform.system()}"


def read(path: str) -> list[list[str]]:
    """The "name: value" lines of a file of the kernel's; none where it does not exist."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError:
        return []
    pairs = [line.split(":", 1) for line in text.splitlines() if ":" in line]
    return [[part.strip() for part in pair] for pair in pairs]


def versions() -> str:
    """The versions that matter."""
    packages = ("numpy", "scipy", "scikit-learn", "dask", "pandas")
    listed = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"dtrees {revision()}, Python {platform.python_version()}, {listed}"


def revision() -> str:
    """Version and commit of the project; "+" when files have changed since."""
    from dtrees import __version__

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
        return f"{__version__} ({git('rev-parse', '--short', 'HEAD')}{changed})"
    except (OSError, subprocess.CalledProcessError):
        return __version__


def section(survey: Survey, lines: Sequence[str], picture: str | None) -> str:
    """A survey on a page of its own: its table, what it says, its picture."""
    parts = ["\n".join([head(survey.table), *lines])]
    if survey.table.note:
        parts.append(survey.table.note)
    if survey.findings is not None:
        parts.append(survey.findings())
    if picture is not None:
        parts.append(f"![{Path(picture).stem}]({picture})")
    return "\n\n".join(parts)


def own_page(page: Page, sections: Sequence[str], command: str, load: float) -> str:
    """The page of some surveys, from their sections."""
    measured = (
        f"Measured on {date.today().isoformat()} by `{command}`; {machine()}; {versions()}. Load "
        f"average before it: {load:.1f}."
    )
    return "\n\n".join([f"# {page.title}", page.about, *sections, measured]) + "\n"


def page(
    command: str,
    tables: Mapping[Table, Sequence[str]],
    pictures: Sequence[str],
    skipped: Sequence[str],
    minutes: float,
    load: float,
) -> str:
    """The whole page.

    Parameters
    ----------
    command : str
        How to make it again.
    tables : dict of Table to its lines
    pictures : names of files
    skipped : names of cases, with the reasons
    minutes : float
        That it took.
    load : float
        Of the machine before it began, in processes that want to run.
    """
    parts = [
        f"# Measured on {date.today().isoformat()}",
        f"Machine: {machine()}\n\nVersions: {versions()}\n\n"
        f"Command: `{command}` ({minutes:.0f} minutes), {THREADS} threads for dtrees; load average "
        f"before it: {load:.1f}",
    ]
    for table, lines in tables.items():
        parts.append("\n".join([head(table), *lines]))
        if table.note:
            parts.append(table.note)
    parts += [f"![{Path(name).stem}]({name})" for name in pictures]
    if skipped:
        parts.append("Skipped:\n\n" + "\n".join(f"* {why}" for why in skipped))
    return "\n\n".join(parts) + "\n"
