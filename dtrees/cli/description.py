"""A fitted model in words and as a document: its size, its columns, its first rules."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import dtrees
from dtrees.cli.columns import codebook_of, column_kind, column_names
from dtrees.cli.files import in_units
from dtrees.cli.terminal import counted, visible

TOP_COLUMNS = 10
TEXT_LEVELS = 3
GROWTH_FACTS = (  # of fit_report_, those that mean something to people
    ("rounds", "round", "rounds"),
    ("passes", "pass over the codes", "passes over the codes"),
    ("tasks", "task", "tasks"),
    ("retries", "retry", "retries"),
    ("restarts", "restart", "restarts"),
    ("lost_workers", "worker lost", "workers lost"),
)
SAID_OF_NONE = ("rounds", "lost_workers")
SCORE_NAME = {"classification": "accuracy", "regression": "R²"}


def task_of_model(model: Any) -> str:
    """Task of a model: 'classification' or 'regression'."""
    return "classification" if hasattr(model, "classes_") else "regression"


def columns_of(model: Any) -> list[dict[str, Any]]:
    """Name, kind and importance of every column."""
    book = codebook_of(model)
    importance = model.feature_importances_
    return [
        {"name": name, "kind": column_kind(book, j), "importance": float(importance[j])}
        for j, name in enumerate(column_names(book))
    ]


def size_in_words(model: Any) -> str:
    """Trees, depth and leaves."""
    from dtrees.model_selection.folds import size_of

    size = size_of(model)
    leaves = counted(size.n_leaves, "leaf", "leaves")
    if is_tree(model):
        return f"depth {size.depth}, {leaves}"
    iterations = f"{counted(model.n_iter_, 'iteration')}, " if is_boosted(model) else ""
    return f"{iterations}{counted(size.trees, 'tree')}, depth up to {size.depth}, {leaves}"


def labels_by_target(model: Any) -> list[Any]:
    """The labels of the classes of each target."""
    return model.classes_ if isinstance(model.classes_, list) else [model.classes_]


def names_of_targets(model: Any) -> list[str]:
    """Names of the targets of a model, or their numbers; of one target nothing."""
    n_targets = getattr(model, "n_outputs_", 1)
    names = getattr(model, "target_names_in_", range(n_targets))
    return [str(name) for name in names] if n_targets > 1 else []


def is_tree(model: Any) -> bool:
    """Tell whether the model is a single tree."""
    return hasattr(model, "tree_")


def is_boosted(model: Any) -> bool:
    """Tell whether the trees of the model follow each other."""
    return hasattr(model, "n_trees_per_iteration_")


def stopping_line(model: Any) -> list[str]:
    """When rows that were held out were predicted best, if any were."""
    if not getattr(model, "do_early_stopping_", False):
        return []
    rows = "held-out" if len(model.validation_score_) > 0 else "training"
    best = counted(model.best_iteration_, "iteration")
    ended = "" if len(model._scores) - 1 < model.max_iter else "; --max-iter ended the fit"
    return [f"best score of the {rows} rows after {best}{ended}"]


def oob_line(model: Any) -> list[str]:
    """The out-of-bag score, if there is one."""
    if not hasattr(model, "oob_score_"):
        return []
    return [f"out-of-bag {oob_name(model)} {model.oob_score_:.4f}"]


def oob_name(model: Any) -> str:
    """What the out-of-bag score of a model is called."""
    if hasattr(model, "oob_improvement_"):  # of boosting
        return "loss"
    return "score" if callable(model.oob_score) else SCORE_NAME[task_of_model(model)]


def growth_document(model: Any, *, on_cluster: bool = False) -> dict[str, Any]:
    """Facts of a growth that was not simply here, as `fit_report_` has them; empty where it was.

    On workers, that is, or in rounds; and of a table `on_cluster` wherever it grew. Of models that
    grew together, the growth of all of them.
    """
    report: dict[str, Any] | None = getattr(model, "fit_report_", None)
    if report is None or (report["regime"] == "local" and not on_cluster):
        return {}
    return {"growth": report}


def growth_lines(model: Any, *, on_cluster: bool = False) -> list[str]:
    """Facts of a growth in words."""
    report = growth_document(model, on_cluster=on_cluster).get("growth")
    if report is None:
        return []
    regime = f"regime {report['regime']} ({report['reason']})"
    if report["regime"] == "local":
        return [f"{regime}: grown in this process"]
    facts = [
        counted(report[name], one, many)
        for name, one, many in GROWTH_FACTS
        if name in report and (report[name] > 0 or name in SAID_OF_NONE)
    ]
    if "bytes_moved" in report:
        facts.append(f"{in_units(report['bytes_moved'])} moved")
    return [f"{regime}: {', '.join(facts)}"]


def first_rules(model: Any) -> str:
    """The first levels of a tree as text."""
    return dtrees.export_text(model, max_depth=TEXT_LEVELS - 1)


def model_document(model: Any, file: Path) -> dict[str, Any]:
    """A model and its file as one JSON document; docs/user_guide/command_line.md describes it."""
    from dtrees.model_selection.folds import size_of

    size = size_of(model)
    document = {
        "format": "dtrees.model/1",
        "dtrees": dtrees.__version__,
        "file": str(file),
        "bytes": file.stat().st_size,
        "estimator": type(model).__name__,
        "task": task_of_model(model),
        "trees": size.trees,
        "depth": size.depth,
        "n_leaves": size.n_leaves,
        "parameters": {name: plain(value) for name, value in model.get_params().items()},
        "columns": columns_of(model),
    }
    if names := names_of_targets(model):
        document["targets"] = names
    if is_boosted(model):
        document["iterations"] = model.n_iter_
    if hasattr(model, "classes_"):
        document["classes"] = each = [
            [plain(label) for label in labels.tolist()] for labels in labels_by_target(model)
        ]
        if not isinstance(model.classes_, list):
            (document["classes"],) = each
    if hasattr(model, "oob_score_"):
        document["oob_score"] = float(model.oob_score_)
    return document


def plain(value: Any) -> Any:
    """A value as JSON has it, or as Python writes it."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def importance_table(columns: list[dict[str, Any]]) -> Any:
    """The most important of the columns that are used; equal ones in the file's order.

    By held-out rows, where they have been asked.
    """
    from rich import box, table
    from rich.text import Text

    used = [column for column in columns if column["importance"] > 0]
    if not used:
        return Text("\n  The model asks nothing: no column is used.\n")
    by = "held_out_importance" if "held_out_importance" in columns[0] else "importance"
    rows = "held-out" if by == "held_out_importance" else "training"
    ranked = sorted(used, key=lambda column: -column[by])[:TOP_COLUMNS]
    longest = max(ranked[0][by], 1e-4)
    lines = table.Table("column", "kind", f"importance, {rows} rows", "", box=box.SIMPLE_HEAD)
    lines.columns[2].justify = "right"
    for column in ranked:
        shown = f"{column[by]:.4f}"
        bar = "█" * math.ceil(20 * (column[by] / longest)) if float(shown) > 0 else ""
        name = Text(visible(column["name"]), overflow="ellipsis", no_wrap=True)
        lines.add_row(name, column["kind"], shown, bar)
    return lines
