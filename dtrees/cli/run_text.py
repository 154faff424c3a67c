"""What a cross-validation has found, in tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtrees.cli.description import (
    TEXT_LEVELS,
    first_rules,
    growth_lines,
    importance_table,
    is_tree,
    oob_line,
    size_in_words,
    stopping_line,
)
from dtrees.cli.run import (
    Run,
    nested_lines,
    path_lines,
    size_lines,
    untuned_score,
    with_error,
)
from dtrees.cli.tables import kinds_line
from dtrees.cli.terminal import console, print_sentence, say

if TYPE_CHECKING:
    from dtrees.model_selection import CostComplexity, TunedSize

STEPS_SHOWN = 10  # of a path


def print_run(run: Run) -> None:
    """Print a run for people, below the lines on what was read."""
    columns = run.columns
    out = console()
    kinds = [column["kind"] for column in columns]
    say(kinds_line(kinds))
    score = run.score_name
    if run.found.tuned is not None:
        out.print(size_table(run.found.tuned, score))
        say("* chosen, by the folds that score it: the score is a little too good")
        if run.nested_mean_and_error is None:
            say("  (--tune-nested tells what it is on new rows)")
    if run.found.path is not None:
        out.print(path_table(run.found.path))
    out.print(fold_table(run))
    for name, mean_and_error in run.means_and_errors.items():
        what = f" (mean ± standard error of {len(run.found.folds)} folds)" if name == score else ""
        print_sentence(out, f"{name} {with_error(*mean_and_error)}", what)
    for name in run.no_better_than_guess:
        print_sentence(out, f"No better than {run.guess}: {name} {run.baseline[name]:.4f}")
    if run.nested_mean_and_error is not None:
        what = " on new rows: the size was chosen anew for each fold, without it"
        print_sentence(out, f"{score} {with_error(*run.nested_mean_and_error)}", what)
    if run.nested is not None:
        say("\n  ".join(nested_lines(run.nested, run.request.row_score)))
    out.print(importance_table(columns))
    model = run.model
    is_cut = is_tree(model) and model.get_depth() > TEXT_LEVELS
    shown = f"; its first {TEXT_LEVELS} levels" if is_cut else ""
    print_sentence(out, f"The {run.noun} on all rows", f": {size_in_words(model)}{shown}")
    for line in (*oob_line(model), *stopping_line(model)):
        say(line)
    if is_tree(model):
        say(first_rules(model).rstrip("\n"))
    say(f"All models took {run.seconds:.2f} s.")
    for line in growth_lines(model, on_cluster=run.is_on_cluster):
        say(line)


def fold_table(run: Run) -> Any:
    """One line per fold."""
    lines = _table("fold", *run.scores, "depth", "leaves")
    for column in lines.columns:
        column.justify = "right"
    for fold, scores in zip(run.found.folds, zip(*run.scores.values(), strict=True), strict=True):
        told = [f"{score:.4f}" for score in scores]
        lines.add_row(str(fold.fold), *told, str(fold.depth), f"{fold.n_leaves:,}")
    return lines


def size_table(tuned: TunedSize, score: str) -> Any:
    """One line per size that was to be chosen from."""
    lines = _table("", "size", score, "leaves", "")
    lines.collapse_padding = True  # to fit into 80 letters
    for column in lines.columns[2:4]:
        column.justify = "right"
    lines.add_row("", "largest", untuned_score(tuned))
    for *words, is_chosen in size_lines(tuned):
        lines.add_row(*words, "*" if is_chosen else "")
    return lines


def path_table(path: CostComplexity) -> Any:
    """Some steps of cost-complexity pruning."""
    lines = _table("ccp_alpha", "leaves", "error", "")
    for column in lines.columns[:3]:
        column.justify = "right"
    for line in path_lines(path, STEPS_SHOWN):
        lines.add_row(*line)
    return lines


def _table(*names: str) -> Any:
    from rich import box, table

    return table.Table(*names, box=box.SIMPLE_HEAD)
