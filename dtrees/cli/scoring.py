"""What models are scored by: names of scikit-learn's scorers.

::

    --scoring NAME --check_scoring--> a scorer --check_scores--> one that fits the target

Whether a scorer fits a target is for the scorer to say. It is asked before the models grow, about a
model that always says the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtrees.cli.errors import RequestError

if TYPE_CHECKING:
    from dtrees.io import Problem

ROWS_OF_A_CLASS = 2  # that a scorer is tried on
ROWS_OF_NUMBERS = 1000


def check_scoring(names: Sequence[str]) -> tuple[str, ...]:
    """The scorers that are asked for, each once; RequestError: scikit-learn has no such scorer."""
    if not names:
        return ()
    from sklearn.metrics import get_scorer_names

    from dtrees.io.problem import near

    known = get_scorer_names()
    for name in names:
        if name not in known:
            raise RequestError(f"--scoring: scikit-learn has no scorer {name!r}{near(name, known)}")
    return tuple(dict.fromkeys(names))


def check_scores(names: Sequence[str], problem: Problem) -> None:
    """Refuse, before the models grow, scorers that do not fit the target; with their own reason."""
    if not names:
        return
    import numpy as np
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.metrics import get_scorer, get_scorer_names

    known = get_scorer_names()
    model, y = DummyRegressor(), problem.y[:ROWS_OF_NUMBERS]
    if problem.task == "classification":
        model, y = DummyClassifier(), np.repeat(np.unique(problem.y), ROWS_OF_A_CLASS)
    X = np.zeros((len(y), 1))
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
        for name in names:
            try:
                get_scorer(name)(model, X, y)
            except (AttributeError, TypeError, ValueError) as error:
                reason = "it is for classes" if isinstance(error, AttributeError) else str(error)
                if "pos_label" in reason and f"{name}_macro" in known:
                    reason += f". For labels other than 0 and 1, try {name}_macro"
                raise RequestError(f"--scoring {name} does not fit the target: {reason}") from error
