"""Lines of single fits, as scikit-learn's searches print them with ``verbose`` above 1.

::

    [CV 2/5; 1/36] START max_depth=1................................................
    [CV 2/5; 1/36] END ...................max_depth=1;, score=0.914 total time=   0.0s
        |     |  above 9, as the first line is                  |  above 2

Fits of a growth have no order: their lines come when their candidates have scores, and the time of
each is its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joblib.logger import short_format_time

from dtrees.model_selection.search_scores import SearchScores

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
        test, train = found.scores(self.names, self.has_train)
        for place, split in self._fits(places):
            parameters = self._parameters(place)
            said = parameters + (";" if parameters else "")
            if self.verbose > 2:
                said += _scores(
                    {name: scores[place, split] for name, scores in test.items()},
                    {name: scores[place, split] for name, scores in train.items()},
                )
            said += f" total time={short_format_time(found.seconds[place, split])}"
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
