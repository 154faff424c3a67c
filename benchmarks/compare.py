"""``python -m benchmarks.compare BASE``: the same cases here and at an earlier commit, in turns.

    this process     checks BASE out into build/compare, compiles its kernels there, and asks
    two children     one in each tree, which prepare a case and do its work when they are asked

    turn      1      2      3    ...
    here      1st    2nd    1st         medians of both sides, and their ratio
    base      2nd    1st    2nd

Each child imports its own tree's `benchmarks`, so a case may be written otherwise there, as long as
its name and its work are the same. Of a case with opponents only our side is done. Without names,
cases are compared that have one short piece of work of ours: fits, prediction, forests, and ten
folds with their scores.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.__main__ import choose

ROOT = Path(__file__).resolve().parent.parent
SIDE = Path(__file__).with_name("side.py")
NAMES = (
    *("dense", "text", "sparse-0.01", "sparse-0.05", "weather", "letter", "spambase"),
    *("covertype_20k", "california_housing", "adult", "connect4", "nursery", "predict"),
    *("forest-scikit_learn", "forest-letter-scikit_learn", "forest-covertype_20k-scikit_learn"),
    *("forest-adult-scikit_learn", "forest-california_housing-scikit_learn"),
    *(
        "forest-newsgroups",
        "forest-small",
        "extra-trees",
        "forest-predict-scikit_learn",
        "everything",
    ),
)
MOST = 1.03  # times the base, in seconds and in bytes
LONG = 0.2  # seconds of a turn; what is shorter is done several times in it


@dataclass
class Side:
    """A child in one of the trees."""

    tree: Path

    def __post_init__(self) -> None:
        data = os.environ.get("DTREES_DATA") or str(ROOT.parent / "shared" / "data")
        self.process = subprocess.Popen(
            [sys.executable, str(SIDE)],
            cwd=self.tree,
            env={**os.environ, "PYTHONPATH": str(self.tree), "DTREES_DATA": data},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **question: Any) -> Any:
        """The answer of the child."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise click.ClickException(f"the side in {self.tree} has ended")
        return json.loads(answer)


def tree_of(base: str) -> Path:
    """A checkout of a commit, with its kernels; it stays for the next time."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.check_output([*git, "rev-parse", "--short=12", base], text=True).strip()
    tree = ROOT / "build" / "compare" / commit
    if not (tree / "setup.py").exists():
        subprocess.run([*git, "worktree", "prune"], check=True)
        subprocess.run([*git, "worktree", "add", "--detach", str(tree), commit], check=True)
    build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(build, cwd=tree, check=True, stdout=sys.stderr)
    return tree


def compared(
    here: Side, base: Side, names: Sequence[str], turns: int, budget: float
) -> Iterator[tuple[str, float, float]]:
    """Case by case, medians of what it takes: seconds, or bytes of a case of memory."""
    for case in choose(tuple(names)):
        name = case.name
        why = here.ask(prepare=name) or base.ask(prepare=name)
        if why:
            click.echo(f"{name}: {why}", err=True)
            continue
        sides = [here, base]
        found: dict[int, list[float]] = {id(side): [] for side in sides}
        first = max(side.ask(work=1)[0] for side in sides)  # does not count
        spent, n_times = 0.0, max(1, round(LONG / first))
        while len(found[id(here)]) < turns and (spent < budget or not found[id(here)]):
            for side in sides:
                seconds, value = side.ask(work=n_times)
                found[id(side)].append(value)
                spent += seconds
            sides.reverse()
        yield name, statistics.median(found[id(here)]), statistics.median(found[id(base)])


@click.command()
@click.argument("base")
@click.argument("names", nargs=-1)
@click.option("--turns", type=click.IntRange(1), default=7, show_default=True)
@click.option("--budget", default=60.0, show_default=True, help="Seconds for the turns of a case.")
def main(base: str, names: tuple[str, ...], turns: int, budget: float) -> None:
    """Compare the cases NAMES here with the commit BASE.

    Ends with an error when a median is more than 1.03 times that of the base.
    """
    sides = Side(ROOT), Side(tree_of(base))
    worse = []
    click.echo("| case | here | base | times the base |\n|---|---|---|---|")
    for name, mine, theirs in compared(*sides, names or NAMES, turns, budget):
        ratio = mine / theirs
        told = f"**{ratio:.3f}**" if ratio > MOST else f"{ratio:.3f}"
        click.echo(f"| {name} | {mine:.4g} | {theirs:.4g} | {told} |")
        if ratio > MOST:
            worse.append(name)
    if worse:
        raise click.ClickException(f"{len(worse)} cases are slower: {', '.join(worse)}")


if __name__ == "__main__":
    main()
