"""Pipelines that end in an estimator of dtrees: which of their candidates share a growth.

A pipeline's steps before the last see the training rows of a split only. So every split has a table
of its own, and trees are not shared between splits. The candidates of a split share them
(`dtrees.model_selection.pipeline_scores`). A growth has the trees of every candidate that differs
in limits only (`dtrees.model_selection.candidates`), or of a boosted model in iterations only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.pipeline import Pipeline

from dtrees.model_selection.candidates import Growth, Parameters, growths_of, key_of
from dtrees.model_selection.eligibility import (
    NotShareableError,
    is_any_of_dtrees,
    unsupported_fit,
)


def last_step(pipeline: Pipeline) -> tuple[str, Any]:
    """The last step of a pipeline, or of the pipeline that is its last step, and its full name."""
    name, last = pipeline.steps[-1]
    if isinstance(last, Pipeline):
        inner, estimator = last_step(last)
        return f"{name}__{inner}", estimator
    return name, last


def ends_in_dtrees(estimator: Any) -> bool:
    """Whether an estimator is a pipeline whose last step is an estimator of dtrees."""
    return isinstance(estimator, Pipeline) and is_any_of_dtrees(last_step(estimator)[1])


def unsupported_pipeline(pipeline: Pipeline, y: Any, params: Iterable[str]) -> str | None:
    """Why the candidates of a pipeline do not share their growth; None: they may.

    It ends in an estimator of dtrees; `params` are names for ``fit``.
    """
    part: Any = pipeline
    while isinstance(part, Pipeline):
        if type(part) is not Pipeline:
            return f"{type(part).__name__} is a pipeline of its own kind"
        part = part.steps[-1][1]
    return unsupported_fit(y, params, f"{last_step(pipeline)[0]}__sample_weight")


@dataclass(frozen=True, eq=False)
class Setting:
    """Candidates that have the steps before the last in common."""

    steps: Parameters  # parameters of the pipeline, without its last step's
    places: list[int]  # of the candidates, among all
    growths: list[Growth]  # of the last step
    errors: dict[int, Exception]  # what fits would raise, by place


def settings_of(pipeline: Pipeline, candidates: Sequence[Parameters]) -> list[Setting]:
    """Candidates by what they ask of the steps before the last.

    Raises NotShareableError where a candidate has another last step, which is none of dtrees, and
    ValueError where a name is no parameter of the last step.
    """
    name, given = last_step(pipeline)
    above = {"steps", *(name.rsplit("__", n)[0] for n in range(1, name.count("__") + 1))}
    groups: dict[Any, list[int]] = {}
    steps: list[Parameters] = []
    own: list[Parameters] = []
    for place, candidate in enumerate(candidates):
        if above & candidate.keys():
            raise NotShareableError(
                f"{min(above & candidate.keys())} is a parameter of a candidate"
            )
        last = candidate.get(name, given)
        if not is_any_of_dtrees(last):
            raise NotShareableError(f"{name} is {type(last).__name__} in a candidate")
        start = f"{name}__"
        own.append({k.removeprefix(start): v for k, v in candidate.items() if k.startswith(start)})
        steps.append({k: v for k, v in candidate.items() if k != name and not k.startswith(start)})
        groups.setdefault(key_of(steps[-1]), []).append(place)
    settings = []
    for places in groups.values():
        by_last: dict[int, list[int]] = {}
        for place in places:
            by_last.setdefault(id(candidates[place].get(name, given)), []).append(place)
        growths: list[Growth] = []
        errors: dict[int, Exception] = {}
        for alike in by_last.values():
            last = candidates[alike[0]].get(name, given)
            grown, failed = growths_of(last, [own[place] for place in alike])
            growths += [replace(one, places=[alike[i] for i in one.places]) for one in grown]
            errors |= {alike[i]: error for i, error in failed.items()}
        settings.append(Setting(steps[places[0]], places, growths, errors))
    return settings
