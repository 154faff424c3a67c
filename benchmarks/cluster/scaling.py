"""Strong and weak scaling: one and two workers measured, 4 to 1,024 by the cost model.

The model (`dtrees.parallel.cost`) gets the constants of this machine, measured in the same run, and
is checked against fits that it has not seen: seconds, rounds and bytes. Where its line stands
beyond the measured points nothing has been measured, and the page says so.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import dask

import dtrees
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.cluster.constants import measured
from benchmarks.cluster.places import COLUMNS, DEPTH, TREES, forest, placed, table, workers
from benchmarks.measure import in_turns
from benchmarks.report import seconds
from dtrees.core.data.rules import BoostingRules
from dtrees.parallel.cost import Cost, CostModel, GrowthSize

DRAWN, CODES, LEAVES, ITERATIONS = 5, 256, 31, 100
FEW, MANY = 250_000, 10**10
PER_WORKER = 4_000_000
MEMORY = 32 * 2**30  # of a worker, beyond two
GROWING = (4, 16, 64, 256, 1024)
LARGE = (64, 256, 1024)  # workers that hold many rows
COLORS = ("#0b62a4", "#c4561b", "#4b8b3b", "#7a4f9a", "#8c8c8c")
COLUMNS_OF_TABLE = (
    "workers",
    "measured, s",
    "model, s",
    "against the first one, or model / measured",
    "rounds, measured / model",
    "MB of a worker, measured / model",
)
ASSUMED = (
    "Constants of the model stand in the first line. Beyond two workers "
    "nothing is measured: those lines are what the model says. Its assumptions: workers of one "
    "thread and 32 GB each, as fast as those of this machine, whose messages take what they take "
    "between two processes here, however many are sent at a time; rows in equal parts; no worker "
    "is lost or late; columns of 255 codes; two classes. Reading the table and computing its "
    "partitions is not in it."
)
TABLE = Table(("scaling of the partitioned regime", *COLUMNS_OF_TABLE), ASSUMED)
MODEL = Table(
    ("scaling by the model", *COLUMNS_OF_TABLE),
    f"{ASSUMED} Constants are those of `dtrees.parallel.cost.CostModel`.",
)


@dataclass
class Points:
    """What the picture shows.

    Attributes
    ----------
    forests, boosted : dict of int to float
        Measured seconds by workers.
    model : CostModel
    """

    forests: dict[int, float] = field(default_factory=dict)
    boosted: dict[int, float] = field(default_factory=dict)
    model: CostModel = field(default_factory=CostModel)
    n_rows: int = FEW

    def cost(self, n_rows: int, n_workers: int, n_trees: int = TREES) -> Cost:
        """What the model says of a forest of `TREES` trees of depth `DEPTH`."""
        return self.model.of(
            GrowthSize(
                n_rows=n_rows,
                n_columns=COLUMNS,
                n_trees=n_trees,
                depth=DEPTH,
                n_workers=n_workers,
                columns_drawn=DRAWN,
                memory_limit=MEMORY,
            )
        )

    def forest(self, n_rows: int, n_workers: int) -> dict[str, float]:
        """Seconds of a forest by phase."""
        return self.cost(n_rows, n_workers).seconds

    def boosting(self, n_rows: int, n_workers: int) -> dict[str, float]:
        """Seconds of a boosted model of `ITERATIONS` trees of `LEAVES` leaves, by phase."""
        before = self.cost(n_rows, n_workers).seconds
        own = self.boosted_cost(n_rows, n_workers)
        tasks, growth = own.tasks * self.model.task, own.seconds["growth"]
        messages = own.seconds["rounds"] - tasks - self.model.start
        kept = {name: before[name] for name in ("start", "target", "coding")}
        return {**kept, "growth": growth, "messages": messages, "tasks": tasks}

    def boosted_cost(self, n_rows: int, n_workers: int) -> Cost:
        """What the model says of a boosted model."""
        return self.model.of_boosting(
            GrowthSize(
                boosting=BoostingRules(max_leaf_nodes=LEAVES),
                n_rows=n_rows,
                n_columns=COLUMNS,
                n_codes=CODES,
                n_trees=ITERATIONS,
                n_workers=n_workers,
            )
        )

    def lines(self, scale: Scale) -> Iterator[tuple[str, ...]]:
        """Measure, then tell what the model says of larger clusters."""
        self.n_rows = scale.rows(FEW)
        self.model = measured(scale)
        yield self.constants()
        for n_workers in (1, 2):
            with dask.config.set({"dtrees.members": 2}), workers(n_workers) as client:
                here = placed(client, table(scale, self.n_rows * (10 if scale.quick else 1)))
                self.forests[n_workers], line = self.checked(here, n_workers)
                yield "forest", *line
                self.boosted[n_workers], line = self.checked_boosting(here, n_workers)
                yield "boosting", *line
        yield from self.told()

    def constants(self) -> tuple[str, ...]:
        """The line of the constants."""
        named = ", ".join(f"{name} {value:.2g}" for name, value in asdict(self.model).items())
        return (f"constants, s: {named}", *[""] * 6)

    def told(self) -> Iterator[tuple[str, ...]]:
        """What the model says of clusters."""
        kinds: dict[str, Callable[[int, int], dict[str, float]]] = {
            "forest": self.forest,
            "boosting": self.boosting,
        }
        for name, of in kinds.items():
            for how, rows, by in (
                ("weak", lambda w: PER_WORKER * w, GROWING),
                ("strong", lambda w: MANY, LARGE),
            ):
                first = 0.0
                for n_workers in by:
                    phases = of(rows(n_workers), n_workers)
                    spent = sum(phases.values())
                    first = first or spent
                    words = ", ".join(f"{key} {seconds(each)}" for key, each in phases.items())
                    yield (
                        f"{name}, {how}, {rows(n_workers):,} × {COLUMNS}: {words}",
                        str(n_workers),
                        "-",
                        seconds(spent),
                        f"{spent / first:.2f}",
                        "-",
                        "-",
                    )

    def checked(self, here: Any, n_workers: int) -> tuple[float, tuple[str, ...]]:
        """Seconds of forests, and the rest of a line."""
        (spent,), (model,) = in_turns(
            [lambda: forest("partitioned", max_depth=DEPTH).fit(*here.on_workers)], 3, 60.0
        )
        report, cost = model.fit_report_, self.cost(len(here.X), n_workers)
        moved = (report["bytes_moved"], cost.bytes_moved)
        return spent, against(n_workers, spent, cost.total_seconds, report, cost.rounds, moved)

    def checked_boosting(self, here: Any, n_workers: int) -> tuple[float, tuple[str, ...]]:
        """Seconds of boosted models, and the rest of a line."""
        (spent,), (model,) = in_turns([lambda: boosted().fit(*here.on_workers)], 3, 60.0)
        told = sum(self.boosting(len(here.X), n_workers).values())
        report, cost = model.fit_report_, self.boosted_cost(len(here.X), n_workers)
        moved = (report["bytes_moved"], cost.bytes_moved)
        return spent, against(n_workers, spent, told, report, cost.rounds, moved)

    def draw(self) -> bytes:
        """A PNG: measured points and the model; weak scaling of both; a large table."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

        rows = 2 if self.forests else 1
        figure = Figure(figsize=(13.0, 4.1 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        weak, parts, large, *checked = (
            figure.add_subplot(rows, 2 if self.forests else 3, place, xscale="log", yscale="log")
            for place in range(1, 5 if self.forests else 4)
        )
        few, many = (1, 2, *GROWING), LARGE
        kinds = (
            ("forest", self.forest, COLORS[0]),
            ("boosting", self.boosting, COLORS[1]),
        )
        for name, of, color in kinds:
            for axes in checked:
                small = [sum(of(self.n_rows, w).values()) for w in (1, 2)]
                axes.plot((1, 2), small, "-", color=color, label=f"{name}, model")
            of_weak = [sum(of(PER_WORKER * w, w).values()) for w in few]
            weak.plot(few, of_weak, "-", color=color, label=name)
            of_large = [sum(of(MANY, w).values()) for w in many]
            large.plot(many, of_large, "-", color=color, label=name)
        for axes in checked:
            for name, points, color in (
                ("forest", self.forests, COLORS[0]),
                ("boosting", self.boosted, COLORS[1]),
            ):
                label = f"{name}, measured"
                axes.plot(list(points), list(points.values()), "o", color=color, label=label)
            axes.set_title(f"{self.n_rows:,} rows, what the model is checked by", fontsize=10)
        some = few[1:]
        of_phases = [self.boosting(PER_WORKER * w, w) for w in some]
        for color, name in zip(COLORS, ("growth", "messages", "tasks", "coding"), strict=False):
            spent = [each[name] for each in of_phases]
            parts.plot(some, spent, "-", color=color, label=f"boosting: {name}")
        for style, name in (("--", "rounds"), (":", "subtrees")):
            of_forest = [self.forest(PER_WORKER * w, w)[name] for w in some]
            parts.plot(some, of_forest, style, color=COLORS[4], label=f"forest: {name}")
        of_million = f"{PER_WORKER // 10**6} million rows a worker, by the model alone"
        weak.set_title(of_million, fontsize=10)
        parts.set_title(f"parts of it, {of_million}", fontsize=10)
        large.set_title("10¹⁰ rows, by the model alone", fontsize=10)
        for axes, ticks in (
            (weak, few),
            (parts, some),
            (large, many),
            *((axes, (1, 2)) for axes in checked),
        ):
            axes.set_xlabel("workers of one thread")
            axes.set_ylabel("seconds of a fit")
            axes.set_xticks(ticks)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_minor_formatter(NullFormatter())
            low, high = axes.get_ylim()
            axes.set_ylim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
            axes.grid(color="0.9", linewidth=0.8)
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False, fontsize=8)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=110)
        return out.getvalue()


def boosted() -> Any:
    """A boosted model that is not fitted."""
    return dtrees.GradientBoostingClassifier(
        max_iter=ITERATIONS,
        max_leaf_nodes=LEAVES,
        early_stopping=False,
        regime="partitioned",
        random_state=0,
    )


def against(
    n_workers: int,
    spent: float,
    told: float,
    report: dict[str, Any],
    rounds: int,
    moved: tuple[int, int],
) -> tuple[str, ...]:
    """What was measured beside what the model tells."""
    of_worker = [each / n_workers / 1e6 for each in moved]
    return (
        str(n_workers),
        seconds(spent),
        seconds(told),
        f"{told / spent:.2f}",
        f"{report['rounds']} / {rounds}",
        f"{of_worker[0]:,.0f} / {of_worker[1]:,.0f}",
    )


def _survey(scale: Scale) -> Survey:
    points = Points()
    return Survey(TABLE, lambda: points.lines(scale), points.draw)


def _model(scale: Scale) -> Survey:
    points = Points()
    return Survey(MODEL, lambda: [points.constants(), *points.told()], points.draw)


CASES = [
    Case(
        "partitioned-scaling",
        "partitioned",
        "one and two workers measured, 4 to 1,024 by the cost model, with a picture",
        _survey,
    ),
    Case(
        "scaling-model",
        "partitioned",
        "the same lines and picture by the cost model and its own constants; nothing is measured",
        _model,
    ),
]
