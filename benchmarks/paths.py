"""``make paths``: what each special path of the kernels is worth, and whether it earns its place.

A special path is a second way to the same bits. The kernels of ``make paths`` can switch each of
them off (`dtrees/core/data/_paths.pxd`). Every work below is done in fresh processes, in turns with
the path on and off, and the models have to be the same:

    turn           1st      2nd      3rd
    path on        0.20     0.21     0.20       processor seconds, on one thread
    path off       0.25     0.25     0.26
    off / on       1.25     1.19     1.30       the gain is the median: 1.25

A path stays if its gain on a row of README's tables is at least 1.10, or 1.5 on work that users do
often, for each 250 lines. A small path has to gain 1.03 at least, which is what noise may be.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.model_selection import KFold

import dtrees
from benchmarks import data, report
from benchmarks.cases import Scale, Skipped, Table
from benchmarks.measure import in_a_child
from dtrees.core.data._cpu import has_path_switches

CORE = Path(__file__).resolve().parent.parent / "dtrees" / "core"
ROW_OF_README, FREQUENT = 0.10, 0.50  # gain less one that 250 lines have to be worth
PER_LINES = 250
NOISE = 0.03
TURNS = 5
SECONDS = 0.5  # of the work in a process, at least; the median of its times counts
TABLE = Table(
    ("path", "lines", "gain", "asked", "work", "date"),
    "`gain` is the processor time with the path off, divided by the time with it on. `asked` is\n"
    "the gain that so many lines have to bring.",
)
PAGE = """# Special paths of the kernels

A special path is a second way to the same bits, there for speed or memory only. `make paths`
switches each of them off, measures some work with and without it, and writes this page.

A path stays if it gains enough for each 250 lines: 1.10 on a row of the README's tables, 1.5 on
other work that users do often. A new path comes with its switch (`PATH_IS_ON` in
`dtrees/core/data/_paths.pxd`) and its row in `benchmarks/paths.py`.

"""
ON_CLUSTERS = """## Paths of clusters

`make paths` starts no cluster, so these are measured by hand. To switch one off, set its constant
on the workers.

| path | lines | off | on | work | date |
|---|---|---|---|---|---|
| whole search | 5 | 2.5 s | 1.8 s | boosting of 500,000 × 30, 8 workers | 2026-11-29 |
| whole search | 5 | 3.7 s | 3.4 s | boosting of 500,000 × 30, 2 workers | 2026-11-29 |
| mapped codes | 160 | workers are lost | 378 s | boosting of 8 GB, 2 × 400 MB | 2026-11-29 |

Whole search: where the columns of a boosted model have few codes, every member searches all of
them, and a round has a message less. The work is 20 iterations of 31 codes a column, on a busy
machine; processor time on 8 workers goes from 6.1 to 4.7 s. The seconds are of growth. Off:
`dtrees.core.grow.boosting.WHOLE_CODES = 0`.

Mapped codes: where a worker has no memory for the codes of a boosted model, they are in files of
its disk (`dtrees.coding.mapped`, `count_mapped` and `let_go_of_column` of `_column_blocks.pyx`).
The work is 10,000,000 × 100 raw numbers; the seconds are of the fit. Off:
`dtrees.parallel.memory.MEMBER_SHARE = math.inf`.
"""


@dataclass(frozen=True)
class Work:
    """Something to measure.

    Attributes
    ----------
    words : str
        What it is.
    prepare : callable
        Takes a `Scale` and returns what does the work.
    share : float
        ROW_OF_README or FREQUENT.
    """

    words: str
    prepare: Callable[[Scale], Callable[[], Any]]
    share: float = ROW_OF_README


@dataclass(frozen=True)
class SpecialPath:
    """A special path: its code, and the work on which it pays.

    Attributes
    ----------
    code : tuple of str
        Files of the core, and functions of files: ``"search/_search.pyx::offer"``.
    works : tuple of str
        Names in `WORKS`; the best of them counts.
    """

    code: tuple[str, ...]
    works: tuple[str, ...]


def _model(kind: str, y: np.ndarray, **parameters: Any) -> Any:
    ending = "Regressor" if y.dtype.kind == "f" else "Classifier"
    return getattr(dtrees, kind + ending)(random_state=0, n_jobs=1, **parameters)


def _fit(
    table: Callable[[Scale], tuple[Any, np.ndarray]],
    kind: str = "DecisionTree",
    **parameters: Any,
) -> Callable[[Scale], Callable[[], Any]]:
    def prepare(scale: Scale) -> Callable[[], Any]:
        X, y = table(scale)
        return lambda: _model(kind, y, **parameters).fit(X, y)

    return prepare


def _folds(
    table: Callable[[Scale], tuple[Any, np.ndarray]],
    kind: str = "DecisionTree",
    **parameters: Any,
) -> Callable[[Scale], Callable[[], Any]]:
    def prepare(scale: Scale) -> Callable[[], Any]:
        X, y = table(scale)
        cv = list(KFold(10, shuffle=True, random_state=0).split(y))
        return lambda: dtrees.model_selection.cross_validate(
            _model(kind, y, **parameters), X, y, cv=cv
        )

    return prepare


def _scores(scale: Scale) -> Callable[[], Any]:
    X, _ = _classes(scale)
    model = dtrees.IsolationForest(random_state=0, n_jobs=1).fit(X)
    return partial(model.score_samples, X)


def _real(name: str, scale: Scale) -> tuple[Any, np.ndarray]:
    return data.real_part(name, scale)


def _classes(scale: Scale) -> tuple[Any, np.ndarray]:
    return data.classification(scale.rows(100_000))


def _numbers(scale: Scale) -> tuple[Any, np.ndarray]:
    return data.regression(scale.rows(100_000))


def _outputs(scale: Scale) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    n_rows = scale.rows(20_000)
    X = rng.normal(size=(n_rows, 20)).astype(np.float32)
    noise = 2 * rng.normal(size=(n_rows, 10))
    return X, np.maximum(X @ rng.normal(size=(20, 10)), 0) + noise


def _texts(n_rows: int, scale: Scale) -> tuple[Any, np.ndarray]:
    X, y = data.real("newsgroups20")
    return X[: scale.rows(n_rows)], y[: scale.rows(n_rows)]


adult, letter, california, covertype, spambase = (
    partial(_real, name)
    for name in (*("adult", "letter", "california_housing", "covertype_20k", "spambase"),)
)
WORKS: Mapping[str, Work] = {
    "two classes": Work("100,000 × 30 float32, two classes, exact tree", _fit(_classes)),
    "regression": Work("100,000 × 30 float32, regression, exact tree", _fit(_numbers)),
    "ten targets": Work("20,000 × 20 float32, ten targets, exact tree", _fit(_outputs), FREQUENT),
    "california": Work("california housing, exact tree", _fit(california)),
    "adult": Work("adult, exact tree", _fit(adult)),
    "letter": Work("letter, exact tree", _fit(letter)),
    "entropy": Work(
        "100,000 × 30 float32, two classes, exact tree of entropy",
        _fit(_classes, criterion="entropy"),
        FREQUENT,
    ),
    "text": Work("20 newsgroups, counts, exact tree", _fit(partial(_texts, 11_314))),
    "forest": Work(
        "100,000 × 30 float32, two classes, forest of 5 trees",
        _fit(_classes, "RandomForest", n_estimators=5),
    ),
    "letter forest": Work(
        "letter, forest of 20 trees", _fit(letter, "RandomForest", n_estimators=20), FREQUENT
    ),
    "extra trees": Work(
        "100,000 × 30 float32, two classes, 5 extra trees",
        _fit(_classes, "ExtraTrees", n_estimators=5),
    ),
    "isolation scores": Work(
        "100,000 × 30 float32, scores of an isolation forest", _scores, FREQUENT
    ),
    "boosted covertype": Work(
        "covertype, 20,000 rows, 20 iterations", _fit(covertype, "GradientBoosting", max_iter=20)
    ),
    "boosted numbers": Work(
        "100,000 × 30 float32, two classes, 20 iterations",
        _fit(_classes, "GradientBoosting", max_iter=20),
    ),
    "boosted texts": Work(
        "20 newsgroups, 3,000 rows, 3 iterations",
        _fit(partial(_texts, 3_000), "GradientBoosting", max_iter=3),
    ),
    "exact folds": Work(
        "100,000 × 30 float32, ten folds and the final model, exact codes", _folds(_classes)
    ),
    "adult folds": Work(
        "adult, ten folds and the final model, leaves of 10", _folds(adult, min_samples_leaf=10)
    ),
}
PATHS: Mapping[str, SpecialPath] = {
    "two_class_scan": SpecialPath(
        ("search/two_classes.h", "search/_two_class_scan.pyx::scan_two_classes"), ("two classes",)
    ),
    "outputs_in_registers": SpecialPath(
        (
            "search/outputs.h",
            "search/_output_scan.pyx::begin_scan",
            "search/_output_scan.pyx::move_rows",
            "search/_output_scan.pyx::scan_in_registers",
        ),
        ("ten targets",),
    ),
    "squared_scan": SpecialPath(
        (
            "search/squared.h",
            "search/_number_scan.pyx::begin_scan",
            "search/_number_scan.pyx::scan_squared",
        ),
        ("regression", "california"),
    ),
    "entropy_of_two_classes": SpecialPath(
        (
            "search/_two_class_scan.pyx::scan_entropy",
            "search/_two_class_scan.pyx::scan_entropy_of_bins",
        ),
        ("entropy",),
    ),
    "few_rows": SpecialPath(
        ("stores/presorted/_few_rows.pyx", "stores/few_rows.h"), ("regression", "california")
    ),
    "partition_by_eight": SpecialPath(("stores/partition.h",), ("two classes", "adult folds")),
    "counted_columns": SpecialPath(
        (
            "stores/presorted/_presorted_store.pyx::count_features",
            "stores/presorted/_presorted_store.pyx::give_histograms",
            "stores/presorted/_presorted_store.pyx::fresh_histogram",
            "stores/presorted/_buffers.pyx::is_counted",
        ),
        ("letter", "adult"),
    ),
    "short_sparse_columns": SpecialPath(("search/_entry_scan.pyx::pass_over_short",), ("text",)),
    "packed_cell_of_two_classes": SpecialPath(
        ("stores/sampled/_column_loader.pyx::pack_rows",), ("forest",)
    ),
    "local_classes": SpecialPath(
        (
            "stores/sampled/_sampled_columns.pyx::begin_local",
            "stores/sampled/_column_loader.pyx::number_classes",
        ),
        ("letter forest",),
    ),
    "random_splits_in_registers": SpecialPath(
        (
            "stores/sampled/_random_split.pyx::search_simd",
            "stores/sampled/_random_split.pyx::search_block",
            "stores/sampled/_random_split.pyx::threshold_of_slot",
            "stores/sampled/random_split_simd.h",
        ),
        ("extra trees",),
    ),
    "small_trees_by_eight": SpecialPath(("predict/walk_simd.h",), ("isolation scores",)),
    "intervals_of_shared_nodes": SpecialPath(
        (
            "search/_intervals.pyx",
            "search/intervals.h",
            *(
                f"stores/shared/_shared_store.pyx::{name}"
                for name in (
                    "has_bounds",
                    "bound_columns",
                    "search_intervals",
                    "widen_range",
                    "find_range",
                    "count_intervals",
                    "bound_column",
                    "reaches",
                    "search_alive",
                    "mark_alive",
                    "bound_member",
                    "scan_alive",
                    "pick_alive",
                    "gather",
                    "code_in",
                    "reserve_alive",
                    "sort_alive",
                    "take_rows",
                    "scan_member",
                    "scan_intervals",
                )
            ),
        ),
        ("exact folds",),
    ),
    "gradient_scan": SpecialPath(
        ("search/_gradient_scan.pyx", "search/gradients.h"), ("boosted numbers",)
    ),
    "bundles": SpecialPath(
        tuple(
            f"stores/boosted/_column_blocks.pyx::{name}"
            for name in ("mark_others", "are_apart", "bundles_of", "add_codes", "complete_bundled")
        ),
        ("boosted covertype",),
    ),
    "stored_bounds": SpecialPath(
        tuple(
            f"stores/boosted/_boosted_store.pyx::{name}"
            for name in (
                "removal_of",
                "begin_bounds_of",
                "take_off_sums",
                "least_side",
                "note_searched",
                "most_promising",
            )
        ),
        ("boosted texts",),
    ),
}


@dataclass(frozen=True)
class Measured:
    """What a work took in one process: processor seconds, and a digest of its models."""

    seconds: float
    digest: str


def measured(work: str, off: str, quick: bool = False) -> Measured:
    """Do a work in a fresh process, with the paths that `off` names switched off."""
    arguments = ["--child", work, *(["--quick"] if quick else [])]
    words = in_a_child("benchmarks.paths", *arguments, DTREES_PATHS_OFF=off)
    return Measured(**json.loads("".join(words)))


Measure = Callable[[str, str], Measured]


@dataclass(frozen=True)
class Row:
    """A path on one of its works."""

    path: str
    n_lines: int
    work: Work
    gain: float

    @property
    def asked(self) -> float:
        """The gain that so many lines have to be worth."""
        return 1.0 + max(NOISE, self.work.share * self.n_lines / PER_LINES)

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        gain, asked = f"{self.gain:.2f}", f"{self.asked:.2f}"
        day = date.today().isoformat()
        return self.path, f"{self.n_lines}", gain, asked, self.work.words, day


def rows(
    paths: Mapping[str, SpecialPath], measure: Measure, turns: int = TURNS, works=WORKS
) -> Iterator[Row]:
    """Every path on every work of its own; an error where the models differ."""
    for name, path in paths.items():
        n_lines = sum(map(lines_of, path.code))
        for work in path.works:
            ratios = []
            for turn in range(turns):
                order = ("", name) if turn % 2 else (name, "")
                found = {off: measure(work, off) for off in order}
                if found[""].digest != found[name].digest:
                    raise click.ClickException(f"{name} changes the models of {work!r}")
                ratios.append(found[name].seconds / found[""].seconds)
            yield Row(name, n_lines, works[work], statistics.median(ratios))


def below_the_rule(found: Iterable[Row]) -> list[str]:
    """Paths that are worth too little on each of their works."""
    earned: dict[str, bool] = {}
    for row in found:
        earned[row.path] = earned.get(row.path, False) or round(row.gain - row.asked, 2) >= 0
    return [path for path, is_earned in earned.items() if not is_earned]


def lines_of(code: str) -> int:
    """Lines of a file of the core, or of one of its functions."""
    name, _, function = code.partition("::")
    lines = (CORE / name).read_text().splitlines()
    if not function:
        return len(lines)
    begins = re.compile(rf"^\S.*\b{function}\(")
    (first,) = [i for i, line in enumerate(lines) if begins.match(line) and "cimport" not in line]
    inside = next(i for i in range(first, len(lines)) if lines[i].endswith((":", "{")))
    end = inside + 1
    while end < len(lines) and (not lines[end] or lines[end][0] in " \t"):
        end += 1
    return len("\n".join(lines[first:end]).rstrip().splitlines())


def page_of(found: list[Row]) -> str:
    """The page of the table."""
    weak = below_the_rule(found)
    told = f"Below the rule: {', '.join(weak)}." if weak else "Every path earns its place."
    table = "\n".join([report.head(TABLE), *(report.row(row.cells()) for row in found)])
    return f"{PAGE}{TABLE.note}\n\n{table}\n\n{told}\n\n{ON_CLUSTERS}"


def digest_of(result: Any) -> str:
    """One hash of the trees of a model, of the scores and the final model of a validation, or of
    answers."""
    if isinstance(result, np.ndarray):
        return hashlib.sha256(result.tobytes()).hexdigest()
    found = hashlib.sha256()
    model = result
    if isinstance(result, dict):
        found.update(np.asarray(result["test_score"]).tobytes())
        model = result.final_estimator
    trees = model.forest_.trees if hasattr(model, "forest_") else [model.tree_.model]
    for tree in trees:
        for array in tree.arrays().values():
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def in_this_process(name: str, quick: bool) -> Measured:
    """Do a work some times; the median of its processor times."""
    work = WORKS[name].prepare(Scale(quick))
    result = work()  # what is loaded and allocated first does not count
    times: list[float] = []
    while not times or (sum(times) < SECONDS and not quick):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return Measured(statistics.median(times), digest_of(result))


@click.command()
@click.argument("names", nargs=-1)
@click.option("--child", help="Do this work here, and print what it took.")
@click.option("--quick", is_flag=True, help="Tiny tables, one turn: does everything run?")
@click.option("--output", type=click.Path(path_type=Path), help="Where the page is written.")
def main(names: tuple[str, ...], child: str | None, quick: bool, output: Path | None) -> None:
    """Measure special paths, all or those of these NAMES, and print their table."""
    if child is not None:
        click.echo(json.dumps(vars(in_this_process(child, quick))))
        return
    if not has_path_switches():
        raise click.ClickException("these kernels have no switches: run `make paths`")
    chosen = {name: PATHS[name] for name in names or PATHS}
    found = []
    measure = partial(measured, quick=quick)
    for row in rows(chosen, measure, 1 if quick else TURNS):
        found.append(row)
        click.echo(report.row(row.cells()), err=True)
    page = page_of(found)
    click.echo(page)
    if output is not None and not names:
        output.write_text(page)
    if below_the_rule(found):
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except Skipped as why:
        sys.exit(str(why))
