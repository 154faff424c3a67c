"""A run as one page of HTML that needs nothing else: ``python -m dtrees cv ... --report FILE``.

::

    Run --> facts: numbers as they are read, tables cut to a length +
    Run --> dtrees.cli.figures: SVG --> data: addresses -----------+-> templates/report.html.jinja

The page has no scripts, and its pictures and styles stand in it; it forbids the browser to load
anything else. Names and labels come from the data and can be anything: the template escapes all of
them.
"""

from __future__ import annotations

import base64
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

import dtrees
from dtrees.cli.columns import codebook_of
from dtrees.cli.description import (
    TEXT_LEVELS,
    columns_of,
    first_rules,
    is_tree,
    oob_line,
    size_in_words,
)
from dtrees.cli.figures import (
    curve_picture,
    fold_picture,
    importance_picture,
    path_picture,
    shared_forest_picture,
    short,
    surface_picture,
)
from dtrees.cli.models import chosen_parameters
from dtrees.cli.run import Run, nested_lines, path_lines, size_lines, untuned_score, with_error
from dtrees.cli.terminal import counted
from dtrees.parallel import computed

MOST_COLUMNS, MOST_CLASSES, MOST_FOLDS, MOST_LEVELS, MOST_STEPS = 40, 12, 50, 8, 12
BARS = 12
LETTERS = 40  # of a name in a table
LIBRARIES = ("numpy", "scikit-learn", "pandas", "matplotlib", "jinja2")


def check_libraries() -> None:
    """Refuse (ImportError) a report that cannot be made here: a library is not installed."""
    from dtrees._extras import extra

    for module in ("jinja2", "matplotlib"):
        extra(module, of="cli,plot", for_="a report")


def page(run: Run, command: str, next_command: str | None = None) -> str:
    """The page of a run that a command asked for, HTML of some 100 kB to 1 MB.

    `next_command` saves the model whose size was chosen.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dtrees.cli"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["address"] = address
    return environment.get_template("report.html.jinja").render(
        command=command,
        next_command=next_command,
        run=run,
        **_facts(run),
        data=_data(run),
        folds=_folds(run),
        size=_size(run),
        columns=_columns(run),
        stability=_stability(run) if is_tree(run.model) else None,
        rules=first_rules(run.model).rstrip("\n") if is_tree(run.model) else None,
        made=_made(run),
    )


def address(svg: str) -> str:
    """A picture as the address of itself."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")


def _facts(run: Run) -> dict[str, Any]:
    """Facts at the head of the page."""
    mean, standard_error = run.mean_and_error
    is_cut = is_tree(run.model) and run.model.get_depth() > TEXT_LEVELS
    depth, _, leaves = size_in_words(run.model).rpartition(", ")
    return {
        "score": run.score_name,
        "other_scores": [
            (name, with_error(*mean_and_error))
            for name, mean_and_error in run.means_and_errors.items()
            if name != run.score_name
        ],
        "mean": f"{mean:.4f}",
        "standard_error": f"{standard_error:.4f}",
        "model_depth": depth,
        "model_leaves": leaves,
        "shown_levels": TEXT_LEVELS if is_cut else None,
        "seconds": f"{run.seconds:.1f}",
        "nested_lines": nested_lines(run.nested, run.request.row_score) if run.nested else [],
        "oob_line": "".join(oob_line(run.model)),
    }


def _data(run: Run) -> dict[str, Any]:
    """Rows, columns, the target."""
    y = run.problem.y
    kinds = [column["kind"] for column in columns_of(run.model)]
    order = [kind for kind in ("ordered", "categorical", "hybrid", "empty") if kind in kinds]
    found: dict[str, Any] = {
        "rows": f"{len(y):,}",
        "n_columns": f"{len(kinds):,}",
        "counted_rows": counted(len(y), "row"),
        "counted_columns": counted(len(kinds), "column"),
        "kinds": ", ".join(f"{kinds.count(kind):,} {kind}" for kind in order),
        "without_target": counted(run.problem.rows_without_target, "row"),
        "classes": [],
        "more_classes": 0,
        "numbers": [],
    }
    if run.problem.task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        largest = np.argsort(-counts, kind="stable")
        found["more_classes"] = max(0, len(labels) - MOST_CLASSES)
        found["classes"] = [
            (short(str(labels[i]), LETTERS), f"{counts[i]:,}", float(counts[i] / len(y)))
            for i in largest[:MOST_CLASSES]
        ]
    else:
        names = ("least", "first quartile", "median", "third quartile", "largest", "mean")
        values = [*np.quantile(y, [0, 0.25, 0.5, 0.75, 1]), y.mean()]
        found["numbers"] = [
            (name, f"{value:,.6g}") for name, value in zip(names, values, strict=True)
        ]
    guess = run.baseline.get(run.score_name)
    return found | {"baseline": None if guess is None else (f"{guess:.4f}", run.guess)}


def _folds(run: Run) -> dict[str, Any]:
    scores = [fold.score for fold in run.found.folds]
    lines = [
        (
            str(fold.fold),
            f"{fold.n_test:,}",
            *(f"{of_folds[number]:.4f}" for of_folds in run.scores.values()),
            str(fold.depth),
            f"{fold.n_leaves:,}",
        )
        for number, fold in enumerate(run.found.folds[:MOST_FOLDS])
    ]
    return {
        "picture": fold_picture(scores, *run.mean_and_error, run.score_name),
        "head": ["fold", "rows scored", *run.scores, "depth", "leaves"],
        "lines": lines,
        "more": len(run.found.folds) - len(lines),
    }


def _size(run: Run) -> dict[str, Any] | None:
    """The choice of a size, and pruning; None: nobody asked."""
    if run.found.tuned is None and run.found.path is None:
        return None
    found: dict[str, Any] = dict.fromkeys(("surface", "curve", "path"))
    found |= {"choices": [], "steps": []}
    if run.found.tuned is not None:
        surface, curve = run.found.tuned.surface, run.found.tuned.curve
        found["surface"] = None if surface is None else surface_picture(surface)
        found["curve"] = None if curve is None else curve_picture(curve)
        found["untuned"] = untuned_score(run.found.tuned)
        found["rule"] = run.found.tuned.chosen.rule
        found["choices"] = size_lines(run.found.tuned)
        nested = run.nested_mean_and_error
        found["nested"] = None if nested is None else with_error(*nested)
    if run.found.path is not None:
        path = run.found.path
        found["path"] = path_picture(path)
        found["steps"] = path_lines(path, MOST_STEPS)
        found["more_steps"] = len(path.n_leaves) - len(found["steps"])
    return found


def _columns(run: Run) -> dict[str, Any]:
    """The columns by falling importance, with what the folds say of it."""
    columns = run.columns
    codes = codebook_of(run.model).n_codes
    missing = computed(run.problem.X.isna().mean())[0].to_numpy()
    final = np.array([column["importance"] for column in columns])
    folds = np.array([model.feature_importances_ for model in run.found.models])
    asked = (folds > 0).sum(axis=0)
    if run.found.importances is not None:
        folds = run.found.importances
    mean, deviation = folds.mean(axis=0), folds.std(axis=0, ddof=1)
    order = np.lexsort((np.arange(len(final)), -final, -mean))
    lines = [
        (
            short(columns[j]["name"], LETTERS),
            f"{mean[j]:.4f} ± {deviation[j]:.4f}",
            f"{final[j]:.4f}",
            str(asked[j]),
            f"{codes[j]:,}",
            f"{missing[j]:.1%}" if missing[j] else "",
            columns[j]["kind"],
        )
        for j in order[:MOST_COLUMNS]
    ]
    drawn = [j for j in order[:BARS] if final[j] > 0 or mean[j] > 0]
    picture = None
    if drawn:
        names = [columns[j]["name"] for j in drawn]
        picture = importance_picture(names, final[drawn], mean[drawn], deviation[drawn])
    held_out = run.found.importances is not None
    return {
        "picture": picture,
        "lines": lines,
        "more": len(columns) - len(lines),
        "folds": "held-out rows" if held_out else "training rows of folds",
        "held_out": held_out,
    }


def _stability(run: Run) -> dict[str, Any]:
    """Tests on which the trees of the folds agree."""
    from dtrees.inspection import stability_report

    report = stability_report(run.found.models, run.model)
    lines = [
        (
            str(level.depth),
            f"{level.n_tests:,.0f}",
            f"{level.row_share:.0%}",
            f"{level.n_shared_nodes:,.0f}",
            f"{level.same_column:.1f}",
            str(level.least_same_column),
            f"{level.same_test:.1f}",
            str(level.least_same_test),
        )
        for level in report.levels[:MOST_LEVELS]
    ]
    return {
        "lines": lines,
        "more": len(report.levels) - len(lines),
        "picture": shared_forest_picture(run.found.models),
    }


def _made(run: Run) -> dict[str, Any]:
    """Parameters, versions, the day."""
    parameters = [
        (name, "None" if value is None else str(value))
        for name, value in chosen_parameters(run.model).items()
    ]
    versions = [("dtrees", dtrees.__version__), ("Python", platform.python_version())]
    versions += [(library, version(library)) for library in LIBRARIES]
    return {
        "estimator": type(run.model).__name__,
        "parameters": parameters,
        "versions": versions,
        "day": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
