"""Strong and weak scaling: one and two workers measured, 4 to 256 by the cost model.

The model (`dtrees.parallel.cost`) gets the constants of this machine, measured in the same run, and
is checked against fits that it has not seen: seconds, rounds and bytes. Where its line stands
beyond the measured points nothing has been measured, and the page says so.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.cluster.constants import measured
from benchmarks.cluster.places import COLUMNS, DEPTH, TREES, forest, placed, table, workers
from benchmarks.measure import in_turns
from benchmarks.report import seconds
from dtrees.parallel.cost import Cost, CostModel, GrowthSize

DRAWN = 5
FEW, MANY = 250_000, 10**9
PER_WORKER = 4_000_000
MEMORY = 32 * 2**30  # of a worker, beyond two
GROWING = (4, 8, 16, 32, 64, 128, 256)
COLORS = ("#0b62a4", "#c4561b", "#4b8b3b", "#7a4f9a", "#8c8c8c")
TABLE = Table(
    (
        "scaling of the partitioned regime",
        "workers",
        "measured, s",
        "model, s",
        "model / measured",
        "rounds, measured / model",
        "MB moved, measured / model",
    ),
    "Constants of the model, measured in this run, stand in the first line. Beyond two workers "
    "nothing is measured: those lines are what the model says, for workers of one thread and 32 GB "
    "each.",
)


@dataclass
class Points:
    """What the picture shows.

    Attributes
    ----------
    strong, weak : dict of int to float
        Measured seconds by workers.
    model : CostModel
    """

    strong: dict[int, float] = field(default_factory=dict)
    weak: dict[int, float] = field(default_factory=dict)
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

    def lines(self, scale: Scale) -> Iterator[tuple[str, ...]]:
        """Measure, then tell what the model says of larger clusters."""
        self.n_rows = scale.rows(FEW)
        self.model = measured(scale)
        named = ", ".join(f"{name} {value:.2g}" for name, value in asdict(self.model).items())
        yield f"constants, s: {named}", "", "", "", "", "", ""
        for n_workers in (1, 2):
            with workers(n_workers) as client:
                self.strong[n_workers], line = self.checked(client, n_workers, self.n_rows, scale)
                yield "strong", *line
                n_rows = self.n_rows // 2 * n_workers
                self.weak[n_workers], line = self.checked(client, n_workers, n_rows, scale)
                yield "weak", *line
        for n_workers in GROWING:
            for kind, n_rows in (("strong", MANY), ("weak", PER_WORKER * n_workers)):
                cost = self.cost(n_rows, n_workers)
                phases = ", ".join(
                    f"{name} {seconds(spent)}" for name, spent in cost.seconds.items()
                )
                yield (
                    f"{kind}, {n_rows:,} × {COLUMNS}: {phases}",
                    str(n_workers),
                    "-",
                    seconds(cost.total_seconds),
                    "-",
                    f"- / {cost.rounds}",
                    f"- / {cost.bytes_moved / 1e6:,.0f}",
                )

    def checked(
        self, client: Any, n_workers: int, n_rows: int, scale: Scale
    ) -> tuple[float, tuple[str, ...]]:
        """Seconds of fits, and the rest of a line."""
        here = placed(client, table(scale, n_rows * (10 if scale.quick else 1)))
        (spent,), (model,) = in_turns(
            [lambda: forest("partitioned", max_depth=DEPTH).fit(*here.on_workers)], 3, 60.0
        )
        report, cost = model.fit_report_, self.cost(len(here.X), n_workers)
        return spent, (
            str(n_workers),
            seconds(spent),
            seconds(cost.total_seconds),
            f"{cost.total_seconds / spent:.2f}",
            f"{report['rounds']} / {cost.rounds}",
            f"{report['bytes_moved'] / 1e6:,.0f} / {cost.bytes_moved / 1e6:,.0f}",
        )

    def draw(self) -> bytes:
        """A PNG: measured points and the model; a large table over workers; weak scaling."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

        figure = Figure(figsize=(13.0, 4.4), layout="constrained")
        FigureCanvasAgg(figure)
        few = (1, 2, *GROWING)
        left, middle, right = (
            figure.add_subplot(1, 3, place, xscale="log", yscale="log") for place in (1, 2, 3)
        )
        for axes, title, points, rows in (
            (left, f"{self.n_rows:,} rows", self.strong, lambda w: self.n_rows),
            (
                right,
                f"{self.n_rows // 2:,} rows a worker",
                self.weak,
                lambda w: self.n_rows // 2 * w,
            ),
        ):
            of_model = [self.cost(rows(w), w).total_seconds for w in few]
            axes.plot(few, of_model, "-", color=COLORS[0], label="cost model")
            axes.plot(list(points), list(points.values()), "o", color=COLORS[1], label="measured")
            axes.set_title(f"{title}, {TREES} trees of depth {DEPTH}", fontsize=10)
        large = [self.cost(PER_WORKER * w, w).total_seconds for w in few]
        label = f"cost model, {PER_WORKER // 10**6} M rows a worker"
        right.plot(few, large, "--", color=COLORS[3], label=label)
        costs = [self.cost(MANY, w) for w in GROWING]
        for color, name in zip(COLORS[1:], ("coding", "rounds", "subtrees", "target"), strict=True):
            spent = [cost.seconds[name] for cost in costs]
            middle.plot(GROWING, spent, "--", color=color, label=name, linewidth=1.2)
        total = [cost.total_seconds for cost in costs]
        middle.plot(GROWING, total, "-", color=COLORS[0], label="all of it")
        ideal = [total[0] * GROWING[0] / w for w in GROWING]
        middle.plot(GROWING, ideal, ":", color="0.4", label="if it were parted evenly")
        middle.set_title(
            f"10⁹ rows, {TREES} trees of depth {DEPTH}, by the model alone", fontsize=10
        )
        for axes in (left, middle, right):
            axes.set_xlabel("workers of one thread (and 32 GB)")
            axes.set_ylabel("seconds of a fit")
            axes.set_xticks(few if axes is not middle else GROWING)
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
        figure.savefig(out, format="png", dpi=120)
        return out.getvalue()


def _survey(scale: Scale) -> Survey:
    points = Points()
    return Survey(TABLE, lambda: points.lines(scale), points.draw)


CASES = [
    Case(
        "partitioned-scaling",
        "partitioned",
        "one and two workers measured, 4 to 256 by the cost model, with a picture",
        _survey,
    )
]
