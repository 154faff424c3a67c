"""``python -m benchmarks.compare BASE``: the same cases here and at an earlier commit, in turns.

    this process     checks BASE out into build/compare, compiles its kernels there, and asks
    two children     one in each tree, which prepare a case and do its work when they are asked

    turn      1      2      3    ...    1      2    ...
    now       1st    2nd    1st         1st    2nd           medians of both sides, and their ratio
    before    2nd    1st    2nd         2nd    1st
              one pair of children      another pair

Each child imports its own tree's `dtrees` and `benchmarks`: parameters may have had other names,
and modules may have stood elsewhere. What is done has to be the same there; where the words of a
case are others, they are shown. Only our side of a case is done. Without names, cases are compared
of fits, predictions, forests and cross-validation, and those of memory.

Where its memory happens to lie makes a process up to a tenth faster or slower than another one of
the same tree, as long as it lives. `--pairs` takes the turns in several pairs of children.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import click

from benchmarks import report
from benchmarks.__main__ import choose
from benchmarks.cases import Table

ROOT = Path(__file__).resolve().parent.parent
SIDE = Path(__file__).with_name("side.py")
COMPARED = ("fits", "prediction", "forests", "validation", "folds", "memory")
MOST = 1.03  # times what it was, seconds and bytes
LONG = 0.2  # seconds of a turn; what is shorter is done several times in it
TURNS_OF_BYTES = 3  # of a line without seconds, which is nearly the same each time
TABLE = Table(
    ("work", "now, s", "before, s", "now / before", "now, MB", "before, MB", "now / before"),
)


class Asked(Protocol):
    """What does the work of one of the trees."""

    def ask(self, **question: Any) -> Any:
        """Answer as `benchmarks.side` says."""


@dataclass
class Side:
    """A child in one of the trees."""

    tree: Path

    def __post_init__(self) -> None:
        shared = os.environ.get("DTREES_DATA") or str(ROOT.parent / "shared" / "data")
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(SIDE)],  # -P: the tree's own `benchmarks`, not SIDE's folder
            cwd=self.tree,
            env={**os.environ, "PYTHONPATH": str(self.tree), "DTREES_DATA": shared},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **question: Any) -> Any:
        """The answer of the child."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise click.ClickException(f"the side in {self.tree} has ended")
        return json.loads(answer)

    def close(self) -> None:
        """Nothing more is asked: the child ends."""
        self.process.communicate()


class Taken(NamedTuple):
    """Medians of a line, None where nothing of the kind is measured."""

    seconds: float | None
    mb: float | None


@dataclass
class Turns:
    """What the turns of one side took."""

    seconds: list[float] = field(default_factory=list)
    mb: list[float] = field(default_factory=list)

    def add(self, answer: dict[str, Any]) -> None:
        """One turn more."""
        for found, value in ((self.seconds, answer["seconds"]), (self.mb, answer["mb"])):
            if value is not None:
                found.append(value)

    def medians(self) -> Taken:
        """Of all turns."""
        seconds, mb = (
            statistics.median(found) if found else None for found in (self.seconds, self.mb)
        )
        return Taken(seconds, mb)


def tree_of(base: str) -> Path:
    """A checkout of a commit, with its kernels; it stays for the next time."""
    git = ["git", "-C", str(ROOT)]
    asked = [*git, "rev-parse", "--verify", "--quiet", "--short=12", f"{base}^{{commit}}"]
    found = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        raise click.ClickException(f"there is no commit {base!r}")
    commit = found.stdout.strip()
    tree = ROOT / "build" / "compare" / commit
    if not (tree / "setup.py").exists():
        subprocess.run([*git, "worktree", "prune"], check=True)
        added = [*git, "worktree", "add", "--quiet", "--detach", str(tree), commit]
        subprocess.run(added, check=True)
    click.echo(f"compiling what is new in build/compare/{commit}", err=True)
    build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    if subprocess.run(build, cwd=tree, stdout=sys.stderr, check=False).returncode != 0:
        raise click.ClickException(f"the kernels of {base} cannot be compiled in {tree}")
    return tree


def pairs_of(tree: Path, n_pairs: int) -> Iterator[tuple[Side, Side]]:
    """Children here and in an earlier tree, a pair after the other."""
    for _ in range(n_pairs):
        now, before = Side(ROOT), Side(tree)
        try:
            yield now, before
        finally:
            now.close()
            before.close()


def compared(
    pairs: Iterable[tuple[Asked, Asked]],
    name: str,
    *,
    turns: int,
    budget: float,
    quick: bool = False,
) -> Iterator[tuple[str, Taken, Taken]]:
    """Line by line of a case, medians of what it takes on each side.

    Parameters
    ----------
    pairs : iterable of pairs of Asked
        Now and before; each pair takes its turns before the next one is there.
    name : str
        Of the case. One that a side cannot do has no lines, and the reason is shown.
    turns : int
        Of each side of a pair.
    budget : float
        Seconds of the turns of a line and a pair, after which no further one is begun. Each side
        has one.
    quick : bool, default=False
        Tiny tables.
    """
    found: dict[str, tuple[Turns, Turns]] = {}
    for number, (now, before) in enumerate(pairs):
        lines, remarks = prepare(now, before, name, quick=quick)
        for line in lines:
            both = found.setdefault(line, (Turns(), Turns()))
            in_turns((now, before), line, both, turns=turns, budget=budget)
        for remark in remarks if number == 0 else ():
            click.echo(remark, err=True)
    for line, (mine, theirs) in found.items():
        yield line, mine.medians(), theirs.medians()


def prepare(now: Asked, before: Asked, name: str, *, quick: bool) -> tuple[list[str], list[str]]:
    """Lines of a case that both sides have, and remarks about those that they have not."""
    mine, theirs = (side.ask(prepare=name, quick=quick) for side in (now, before))
    for when, answer in (("now", mine), ("before", theirs)):
        if answer["why"]:
            return [], [f"{name}: {when}: {answer['why']}"]
    remarks = []
    if mine["work"] != theirs["work"]:
        remarks = [f"{name}: now: {mine['work']}; before: {theirs['work']}"]
    lines = [line for line in mine["lines"] if line in theirs["lines"]]
    return lines, remarks + [f"{line}: not before" for line in mine["lines"] if line not in lines]


def in_turns(
    sides: Sequence[Asked],
    line: str,
    found: tuple[Turns, Turns],
    *,
    turns: int,
    budget: float,
) -> None:
    """Add to what the turns of a line have taken; each side goes first in every other turn.

    The first work of each side does not count, except where a process of its own does it.
    """
    order = list(zip(sides, found, strict=True))
    spent, n_times, n_done = 0.0, 1, 0
    first = [side.ask(line=line, n_times=1) for side in sides]
    if first[0]["mb"] is None:
        n_times = max(1, round(LONG / max(answer["spent"] for answer in first)))
    else:
        n_done = 1
        for mine, answer in zip(found, first, strict=True):
            mine.add(answer)
            spent += answer["spent"]
    if first[0]["seconds"] is None:
        turns = min(turns, TURNS_OF_BYTES)
    while n_done < turns and (not n_done or spent < budget):
        n_done += 1
        for side, mine in order:
            answer = side.ask(line=line, n_times=n_times)
            mine.add(answer)
            spent += answer["spent"]
        order.reverse()


def ratio_of(now: float | None, before: float | None) -> float | None:
    """How many times what it was; None where it is not measured, or nothing."""
    return now / before if now is not None and before else None


def row(line: str, now: Taken, before: Taken) -> str:
    """A row of the table; ratios above `MOST` are bold."""
    cells = [line]
    for mine, theirs in zip(now, before, strict=True):
        ratio = ratio_of(mine, theirs)
        told = "-" if ratio is None else f"{ratio:.3f}"
        cells += ["-" if value is None else f"{value:.4g}" for value in (mine, theirs)]
        cells.append(f"**{told}**" if is_worse(mine, theirs) else told)
    return report.row(cells)


def is_worse(now: float | None, before: float | None) -> bool:
    """Whether the ratio is above `MOST`."""
    ratio = ratio_of(now, before)
    return ratio is not None and ratio > MOST


@click.command()
@click.argument("base")
@click.argument("names", nargs=-1)
@click.option("--turns", type=click.IntRange(1), default=7, show_default=True, help="Of a pair.")
@click.option(
    "--pairs", "n_pairs", type=click.IntRange(1), default=1, show_default=True, help="Of processes."
)
@click.option("--budget", default=60.0, show_default=True, help="Seconds for the turns of a line.")
@click.option("--quick", is_flag=True, help="Tiny tables: does it run?")
def main(
    base: str, names: tuple[str, ...], turns: int, n_pairs: int, budget: float, quick: bool
) -> None:
    """Compare the cases NAMES now with those of the commit BASE.

    Ends with an error when a median, of seconds or of MB, is more than 1.03 times what it was;
    what a --quick run measures says nothing of that.
    """
    cases = choose(names or COMPARED)
    tree = tree_of(base)
    worse = []
    click.echo(report.head(TABLE))
    for case in cases:
        pairs = pairs_of(tree, n_pairs)
        found = compared(pairs, case.name, turns=turns, budget=budget, quick=quick)
        for line, mine, theirs in found:
            click.echo(row(line, mine, theirs))
            if not quick and any(map(is_worse, mine, theirs)):
                worse.append(line)
    if worse:
        raise click.ClickException(f"{len(worse)} take more than they did: {'; '.join(worse)}")


if __name__ == "__main__":
    main()
