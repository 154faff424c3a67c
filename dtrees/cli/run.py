"""A cross-validation as it is asked for, what it has found, and tables of it for people.

::

    Request ──folds──▶ validate_folds ──▶ scores, models, a size if one is to be chosen
       │                                        │
       └──▶ scores of a guess on the same folds ┴──▶ Run

A terminal, a machine and a page tell a `Run`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import dtrees
from dtrees.cli.description import (
    SCORE_NAME,
    TEXT_LEVELS,
    columns_of,
    first_rules,
    growth_document,
    growth_lines,
    importance_table,
    is_boosted,
    is_tree,
    oob_line,
    size_in_words,
    stopping_line,
)
from dtrees.cli.models import KINDS, chosen_parameters
from dtrees.cli.tables import kinds_line
from dtrees.cli.terminal import console, counted, print_sentence, say

if TYPE_CHECKING:
    import numpy as np

    from dtrees.callbacks import Bar
    from dtrees.io import Problem
    from dtrees.model_selection import BoostingCurve, CostComplexity, NestedStandardError, TunedSize
    from dtrees.model_selection.folds import Split
    from dtrees.model_selection.validated import ValidatedFolds

CONFIDENCE = 0.9  # of the interval that is told beside a nested standard error
STEPS_SHOWN = 10  # of a path


@dataclass(frozen=True)
class Request:
    """A cross-validation that is asked for."""

    file: str
    target: str
    kind: str  # of `dtrees.cli.models.KINDS`
    problem: Problem
    n_folds: int
    has_hash_folds: bool  # folds are drawn row by row
    scoring: Mapping[str, Any]  # by name, the first chooses the size; none: accuracy or R^2
    rule: Any  # by which the size is chosen: 'best', 'simplest' or None
    wants_nested: bool  # it is also chosen without each fold, to be scored there
    wants_path: bool  # cost-complexity pruning is to be told
    n_divisions: int | None = None  # into folds, of a nested cross-validation; None: not asked
    quantile: float | None = None  # that is predicted; None: a class or a mean

    @property
    def row_score(self) -> str:
        """Score of a row in a nested cross-validation."""
        if self.problem.task == "classification":
            return "accuracy"
        return "squared error" if self.quantile is None else "pinball loss"


@dataclass(frozen=True)
class Run:
    """Everything a run found out; `document` is its JSON form."""

    request: Request
    found: ValidatedFolds
    model: Any  # fitted on all rows
    seconds: float  # of all of it, but for reading the file
    baseline: dict[str, float]  # mean scores of a guess, by name; those that can be had
    nested: NestedStandardError | None = None  # if it was asked for

    @property
    def problem(self) -> Problem:
        """The table that was asked about."""
        return self.request.problem

    @property
    def is_on_cluster(self) -> bool:
        """Tell whether workers hold the table."""
        from dtrees.parallel import is_lazy

        return is_lazy(self.problem.X)

    @property
    def noun(self) -> str:
        """Noun for the model."""
        return KINDS[self.request.kind].noun

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """Scores of the folds under the names that people read; sizes are chosen by the first."""
        if self.request.scoring:
            return self.found.scores
        return {SCORE_NAME[self.problem.task]: self.found.scores["score"]}

    @property
    def score_name(self) -> str:
        """Name of the first score."""
        return next(iter(self.scores))

    @property
    def columns(self) -> list[dict[str, Any]]:
        """`columns_of` the model, and the mean importance by the held-out rows of the folds."""
        columns = columns_of(self.model)
        if self.found.importances is not None:
            for column, mean in zip(columns, self.found.importances.mean(axis=0), strict=True):
                column["held_out_importance"] = float(mean)
        return columns

    @property
    def means_and_errors(self) -> dict[str, tuple[float, float]]:
        """Mean of the folds' scores, and its standard error, by the names of the scores."""
        from dtrees.model_selection.folds import mean_and_standard_error

        return {
            name: mean_and_standard_error(scores.tolist()) for name, scores in self.scores.items()
        }

    @property
    def mean_and_error(self) -> tuple[float, float]:
        """Mean and standard error of the first score."""
        return self.means_and_errors[self.score_name]

    @property
    def guess(self) -> str:
        """Words for what the baseline does."""
        if self.problem.task == "classification":
            return "always saying the largest class"
        quantile = self.request.quantile
        return f"always saying the {'mean' if quantile is None else f'quantile {quantile:g}'}"

    @property
    def no_better_than_guess(self) -> list[str]:
        """Names of the scores by which the model is no better than a guess."""
        means = self.means_and_errors
        return [name for name, guess in self.baseline.items() if means[name][0] <= guess]

    @property
    def nested_mean_and_error(self) -> tuple[float, float] | None:
        """Mean and error of sizes chosen without the fold that scores them; None: not asked."""
        from dtrees.model_selection.folds import mean_and_standard_error

        scores = self.found.tuned_scores
        return None if scores is None else mean_and_standard_error(scores.tolist())

    def document(self) -> dict[str, Any]:
        """The run as one JSON document; docs/user_guide/command_line.md describes it."""
        mean, standard_error = self.mean_and_error
        how = {"hash_folds": True} if self.request.has_hash_folds else {}
        of_task = {"classification": "accuracy", "regression": "r2"}[self.problem.task]
        document: dict[str, Any] = {
            "format": "dtrees.cv/2",
            "dtrees": dtrees.__version__,
            "file": self.request.file,
            "target": self.request.target,
            "task": self.problem.task,
            "model": self.request.kind,
            "score": next(iter(self.request.scoring), of_task),
            "rows": len(self.problem.y),
            "rows_without_target": self.problem.rows_without_target,
            "dropped": list(self.problem.dropped),
            "parameters": {"folds": len(self.found.folds), **how, **chosen_parameters(self.model)},
            "columns": self.columns,
            "folds": [asdict(fold) for fold in self.found.folds],
            "mean": mean,
            "standard_error": standard_error,
            "baseline": self.baseline.get(self.score_name),
            "seconds": self.seconds,
            KINDS[self.request.kind].field: self._final(),
        }
        document.update(growth_document(self.model, on_cluster=self.is_on_cluster))
        if self.request.scoring:
            document["scores"] = self._scores_document()
        if self.found.tuned is not None:
            document["tuned"] = _tuned_document(self.found.tuned)
            if self.nested_mean_and_error is not None:
                mean, standard_error = self.nested_mean_and_error
                nested = {"mean": mean, "standard_error": standard_error}
                document["tuned"]["nested"] = nested
            if self.found.tuned.curve is not None:
                document["boosting_curve"] = _curve_document(self.found.tuned.curve)
        if self.nested is not None:
            document["nested_error"] = nested_document(self.nested, self.request.row_score)
        if self.found.path is not None:
            document["cost_complexity"] = _path_document(self.found.path)
        return document

    def _scores_document(self) -> dict[str, Any]:
        """All scores that were asked for."""
        means = self.means_and_errors
        return {
            name: {
                "folds": scores.tolist(),
                "mean": means[name][0],
                "standard_error": means[name][1],
                "baseline": self.baseline.get(name),
            }
            for name, scores in self.scores.items()
        }

    def _final(self) -> dict[str, Any]:
        """The model on all rows."""
        from dtrees.model_selection.folds import size_of

        found = asdict(size_of(self.model))
        if is_tree(self.model):
            del found["trees"]
            found["text"] = first_rules(self.model)
        if is_boosted(self.model):
            found["iterations"] = self.model.n_iter_
        if hasattr(self.model, "oob_score_"):
            found["oob_score"] = float(self.model.oob_score_)
        return found


def nested_document(nested: NestedStandardError, of: str) -> dict[str, Any]:
    """A standard error by nested cross-validation, of a score; errors are positive."""
    is_error = of != "accuracy"
    lower, upper = nested.interval(CONFIDENCE)
    return {
        "score": of,
        "mean": -nested.mean if is_error else nested.mean,
        "standard_error": nested.standard_error,
        "naive_standard_error": nested.naive_standard_error,
        "interval": [-upper, -lower] if is_error else [lower, upper],
        "confidence": CONFIDENCE,
        "divisions": nested.n_repeats,
    }


def nested_lines(nested: NestedStandardError, of: str) -> list[str]:
    """A standard error by nested cross-validation in words."""
    told = nested_document(nested, of)
    mean, error = told["mean"], told["standard_error"]
    lower, upper = told["interval"]
    naive = told["naive_standard_error"]
    others = counted(told["divisions"], "other division")
    return [
        f"{of} {mean:.4g} ± {error:.2g} (nested cross-validation: mean of {others} into folds)",
        f"its ± knows that folds share rows; without that it is {naive:.2g}",
        f"{CONFIDENCE:.0%} interval for new rows: {lower:.4g} to {upper:.4g}",
    ]


def with_error(mean: float, standard_error: float) -> str:
    """A mean score with its standard error, as it is read."""
    return f"{mean:.4f} ± {standard_error:.4f}"


def untuned_score(tuned: TunedSize) -> str:
    """The score of the largest model, as it is read."""
    return with_error(*_untuned_mean_and_error(tuned))


def size_lines(tuned: TunedSize) -> list[tuple[str, str, str, str, bool]]:
    """Rule, parameters, score and leaves of each choice, as they are read; whether it was taken."""
    return [
        (
            choice.rule,
            ", ".join(
                f"{name} {value:.4g}"
                for name, value in choice.parameters.items()
                if not isinstance(value, bool)
            ),
            with_error(*choice.mean_and_error),
            f"{choice.n_leaves:,}",
            choice is tuned.chosen,
        )
        for choice in tuned.choices
    ]


def path_lines(path: CostComplexity, most: int) -> list[tuple[str, str, str, str]]:
    """Alpha, leaves and error of some steps of a path, as they are read, and what they are."""
    lines = []
    for step in steps_to_show(path, most):
        error, standard_error = path.errors[step], path.standard_errors[step]
        form = ".4f" if error < 1 else ",.4g"
        marks = ["best"] * (step == path.best_index)
        marks += ["one standard error"] * (step == path.one_standard_error_index)
        told = f"{path.ccp_alphas[step]:.3g}", f"{path.n_leaves[step]:,}"
        lines.append((*told, f"{error:{form}} ± {standard_error:{form}}", ", ".join(marks)))
    return lines


def _untuned_mean_and_error(tuned: TunedSize) -> tuple[float, float]:
    """Mean of the scores of the largest model, and its standard error."""
    from dtrees.model_selection.folds import mean_and_standard_error

    return mean_and_standard_error(tuned.untuned.tolist())


def _tuned_document(tuned: TunedSize) -> dict[str, Any]:
    mean, standard_error = _untuned_mean_and_error(tuned)
    return {
        "way": tuned.chosen.way,
        "rule": tuned.chosen.rule,
        "parameters": tuned.chosen.parameters,
        "untuned": {"mean": mean, "standard_error": standard_error},
        "choices": [
            {
                "way": choice.way,
                "rule": choice.rule,
                "parameters": choice.parameters,
                "mean": choice.mean_and_error[0],
                "standard_error": choice.mean_and_error[1],
                "n_leaves": choice.n_leaves,
            }
            for choice in tuned.choices
        ],
    }


def _path_document(path: CostComplexity) -> dict[str, Any]:
    steps = {
        "ccp_alpha": path.ccp_alphas,
        "n_leaves": path.n_leaves,
        "error": path.errors,
        "standard_error": path.standard_errors,
    }
    return _steps_document(path.best_index, path.one_standard_error_index, steps)


def _curve_document(curve: BoostingCurve) -> dict[str, Any]:
    steps = {"max_iter": curve.max_iter, "mean": curve.mean, "standard_error": curve.standard_error}
    return _steps_document(curve.best - 1, curve.one_standard_error - 1, steps)


def _steps_document(best: int, simple: int, steps: dict[str, np.ndarray]) -> dict[str, Any]:
    """Steps as records, and which of them is the best, and the simplest about as good."""
    records = zip(*(column.tolist() for column in steps.values()), strict=True)
    return {
        "best": best,
        "one_standard_error": simple,
        "steps": [dict(zip(steps, values, strict=True)) for values in records],
    }


def steps_to_show(path: CostComplexity, most: int) -> list[int]:
    """Steps of a path for a table: the ends, the best, the simplest, and others between.

    Leaves of the steps between are about equally far apart on a logarithmic scale.
    """
    import numpy as np

    n_steps = len(path.n_leaves)
    shown = {0, path.best_index, path.one_standard_error_index, n_steps - 1}
    between = np.geomspace(path.n_leaves[0], path.n_leaves[-1], most - len(shown) + 2)
    for n_leaves in between:
        if len(shown) < most:
            shown.add(int(np.argmin(np.abs(np.log(path.n_leaves / n_leaves)))))
    return sorted(shown)


def validated(request: Request, estimator: Any, bar: Bar | None = None) -> Run:
    """Score the models of the folds and fit the estimator on all rows; all of it grows together.

    `estimator` is fitted itself only where scores out of bags are asked for.
    """
    from sklearn.base import clone

    from dtrees.model_selection import HashKFold
    from dtrees.model_selection.folds import shuffled_folds
    from dtrees.model_selection.validated import Questions, baseline_scores, validate_folds

    X, y = request.problem.X, request.problem.y
    start = perf_counter()
    is_classes = request.problem.task == "classification"
    keyed = HashKFold(request.n_folds, stratify=is_classes, random_state=estimator.random_state)

    def folds_of(rows: np.ndarray | slice) -> Sequence[Split]:
        if request.has_hash_folds:
            return keyed.split(y[rows], y[rows])
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # check_folds notes it
            return shuffled_folds(
                y[rows], request.n_folds, estimator.random_state, stratified=is_classes
            )

    of_fold = clone(estimator)
    if "oob_score" in of_fold.get_params():  # the folds have better: their held-out rows
        of_fold.set_params(oob_score=False)
    splits = folds_of(slice(None))
    task = request.problem.task  # a score that is not defined on a fold is told before they grow
    baseline = baseline_scores(y, task, splits, request.scoring, request.quantile)
    found = validate_folds(
        of_fold,
        X,
        y,
        splits,
        Questions(
            rule=request.rule,
            with_path=request.wants_path,
            scoring=request.scoring,
            folds_of=folds_of if request.wants_nested else None,
        ),
        bar=bar,
    )
    final = found.final_estimator
    if getattr(estimator, "oob_score", False):
        if found.tuned is not None:
            estimator.set_params(**found.tuned.chosen.parameters)
        final = estimator.fit(X, y)
    nested = None if request.n_divisions is None else nested_error_of(request, of_fold)
    seconds = perf_counter() - start
    if not request.scoring:
        baseline = dict(zip([SCORE_NAME[request.problem.task]], baseline.values(), strict=False))
    return Run(request, found, final, seconds, baseline, nested)


def nested_error_of(request: Request, estimator: Any) -> NestedStandardError:
    """The standard error of an estimator by nested cross-validation."""
    from dtrees.estimators.scorers import pinball_of_rows
    from dtrees.model_selection import nested_standard_error

    scoring = None if request.quantile is None else pinball_of_rows(request.quantile)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # check_folds notes it
        return nested_standard_error(
            estimator,
            *(request.problem.X, request.problem.y),
            scoring=scoring,
            cv=request.n_folds,
            n_repeats=request.n_divisions,
            random_state=estimator.random_state,
        )


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
