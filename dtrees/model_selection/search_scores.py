"""Scores and times of a search, before scikit-learn makes its results of them.

`FitLines` are lines of single fits, as scikit-learn's searches print them with ``verbose`` above
1::

    [CV 2/5; 1/36] START max_depth=1................................................
    [CV 2/5; 1/36] END ...................max_depth=1;, score=0.914 total time=   0.0s
        |     |  above 9, as the first line is                  |  above 2

Fits of a growth have no order: their lines come when their candidates have scores, and the time of
each is its share.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib.logger import short_format_time
from sklearn.exceptions import FitFailedWarning

from dtrees._warnings import warn
from dtrees.model_selection.fitted_splits import ModelScores


@dataclass
class SearchScores:
    """Scores and times of all candidates and splits, arrays (n_candidates, n_splits)."""

    fit_time: np.ndarray  # seconds
    score_time: np.ndarray
    of_failures: float = np.nan  # score of fits that fail
    test: dict[str, np.ndarray] = field(default_factory=dict)  # by scorer; one: "score"
    train: dict[str, np.ndarray] = field(default_factory=dict)
    is_single: bool = True  # there is one scorer, without a name
    failures: Counter[str] = field(default_factory=Counter)  # fits, by printed error

    @classmethod
    def of(cls, n_candidates: int, n_splits: int, error_score: Any) -> SearchScores:
        """Nothing is known yet; with ``error_score="raise"`` nothing fails."""
        shape = n_candidates, n_splits
        of_failures = np.nan if error_score == "raise" else float(error_score)
        return cls(np.zeros(shape), np.zeros(shape), of_failures)

    def fail(self, error: Exception, n_fits: int) -> None:
        """An error has ended some fits."""
        self.failures["".join(traceback.format_exception_only(error))] += n_fits

    def put(self, places: Sequence[int], scored: ModelScores) -> None:
        """Scores of some candidates on all splits."""
        self.is_single = scored.is_single
        self.score_time[places] = scored.seconds[:, None]
        for (side, name), scores in scored.scores.items():
            self._put(side, name, places, scores)

    def _put(self, side: str, name: str, cells: Any, scores: np.ndarray) -> None:
        """Scores of some candidates, or cells; those of which nothing is known have failed."""
        into = self.test if side == "test" else self.train
        if name not in into:
            into[name] = np.full(self.fit_time.shape, self.of_failures)
        into[name][cells] = scores

    def add(self, other: SearchScores, places: Sequence[int], split: int) -> None:
        """Scores and times of some candidates for a split, the only one of `other`."""
        self.failures += other.failures
        self.is_single &= other.is_single
        self.fit_time[places, split] = other.fit_time[places, 0]
        self.score_time[places, split] = other.score_time[places, 0]
        for side, by_name in (("test", other.test), ("train", other.train)):
            for name, scores in by_name.items():
                self._put(side, name, (places, split), scores[places, 0])

    def outputs(self) -> list[dict[str, Any]]:
        """A dict for each candidate and split, as scikit-learn's loops make them."""
        columns: dict[str, list[Any]] = {
            "fit_time": self.fit_time.ravel().tolist(),
            "score_time": self.score_time.ravel().tolist(),
        }
        for side, scores in (("test_scores", self.test), ("train_scores", self.train)):
            if self.is_single and scores:
                columns[side] = scores["score"].ravel().tolist()
            elif scores:
                by_name = [values.ravel().tolist() for values in scores.values()]
                columns[side] = [
                    dict(zip(scores, cell, strict=True)) for cell in zip(*by_name, strict=True)
                ]
        names = list(columns)
        cells = zip(*columns.values(), strict=True)
        return [dict(zip(names, cell, strict=True)) for cell in cells]

    def report(self, error_score: Any) -> None:
        """Say which fits have failed, as scikit-learn does."""
        if not self.failures:
            return
        n_fits, n_failed = self.fit_time.size, sum(self.failures.values())
        rule = "-" * 80
        details = "\n".join(
            f"{rule}\n{n} fits failed with the following error:\n{error}"
            for error, n in self.failures.items()
        )
        if n_failed == n_fits:
            raise ValueError(
                f"\nAll the {n_fits} fits failed.\nIt is very likely that your model is "
                "misconfigured.\nYou can try to debug the error by setting error_score='raise'."
                f"\n\nBelow are more details about the failures:\n{details}"
            )
        warn(
            f"\n{n_failed} fits failed out of a total of {n_fits}.\nThe score on these train-test "
            f"partitions for these parameters will be set to {error_score}.\nIf these "
            "failures are not expected, you can try to debug them by setting error_score='raise'."
            f"\n\nBelow are more details about the failures:\n{details}",
            FitFailedWarning,
        )


WIDTH = 80


@dataclass(frozen=True)
class FitLines:
    """Prints the lines of a search with these candidates, or nothing."""

    verbose: int
    candidates: Sequence[Mapping[str, Any]]
    n_splits: int
    names: Sequence[str]  # of scorers, as far as they are known before a score is
    has_train: bool  # whether training sides are scored

    def start(self, places: Sequence[int]) -> None:
        """Some candidates begin to grow."""
        if self.verbose > 9:
            for place, split in self._fits(places):
                print(
                    f"{self._name(place, split)} START {self._parameters(place)}".ljust(WIDTH, ".")
                )

    def end(self, places: Sequence[int], found: SearchScores) -> None:
        """Some candidates have scores; one scorer, "score", has no name."""
        if self.verbose <= 1:
            return
        failed = {name: np.full(found.fit_time.shape, found.of_failures) for name in self.names}
        test, train = found.test or failed, (found.train or failed) if self.has_train else {}
        seconds = found.fit_time + found.score_time
        for place, split in self._fits(places):
            parameters = self._parameters(place)
            said = parameters + (";" if parameters else "")
            if self.verbose > 2:
                said += _scores(
                    {name: scores[place, split] for name, scores in test.items()},
                    {name: scores[place, split] for name, scores in train.items()},
                )
            said += f" total time={short_format_time(seconds[place, split])}"
            name = f"{self._name(place, split)} END "
            print(name + said.rjust(WIDTH - len(name), "."))

    def _fits(self, places: Sequence[int]) -> Iterator[tuple[int, int]]:
        return ((place, split) for place in places for split in range(self.n_splits))

    def _name(self, place: int, split: int) -> str:
        """Which fit this is."""
        if self.verbose <= 2:
            return "[CV]"
        of_candidates = f"; {place + 1}/{len(self.candidates)}" if self.verbose > 9 else ""
        return f"[CV {split + 1}/{self.n_splits}{of_candidates}]"

    def _parameters(self, place: int) -> str:
        candidate = self.candidates[place]
        return ", ".join(f"{name}={candidate[name]}" for name in sorted(candidate))


def _scores(test: Mapping[str, float], train: Mapping[str, float]) -> str:
    """Scores of a fit."""
    if list(test) == ["score"]:
        of_test = f"{test['score']:.3f}"
        return (
            f", score=(train={train['score']:.3f}, test={of_test})"
            if train
            else (f", score={of_test}")
        )
    texts = []
    for name in sorted(test):
        of_train = f"train={train[name]:.3f}, " if train else ""
        texts.append(f" {name}: ({of_train}test={test[name]:.3f})")
    return "".join(texts)
