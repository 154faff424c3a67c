"""The table of criteria: what is asked about a criterion wherever no split is scored.

How splits are scored is written in `dtrees.core.search._criterion`. So are criteria that are
functions of both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Criterion:
    """A row of the table."""

    of_numbers: bool = False  # of regression; else of classes
    has_logarithms: bool = False  # sums of x log x are in a fixed point that depends on all rows
    # of both sides, of which a function is told: nothing else is known of it
    is_function: bool = False
    # scores of whole intervals of codes are bounded (`dtrees.core.search._intervals`)
    has_bounds: bool = True
    # gains follow from the statistics of nodes (`dtrees.core.model.packing`)
    has_known_gains: bool = True
    # nodes add up to their parents; else values are medians, and rows are at hand in target order
    has_sums: bool = True


FUNCTION = Criterion(is_function=True, has_bounds=False, has_known_gains=False)
OF_USER = "user"  # a `dtrees.criteria.Criterion`, of classes
OF_USER_NUMBERS = "user_numbers"  # and of numbers
OF_USERS = (OF_USER, OF_USER_NUMBERS)
CRITERIA = {
    "gini": Criterion(),
    "entropy": Criterion(has_logarithms=True, has_bounds=False, has_known_gains=False),
    "squared_error": Criterion(of_numbers=True),
    "poisson": Criterion(of_numbers=True, has_logarithms=True),
    "absolute_error": Criterion(
        of_numbers=True, has_bounds=False, has_known_gains=False, has_sums=False
    ),
    "chi_square": FUNCTION,
    "gain_ratio": FUNCTION,
    OF_USER: FUNCTION,
    OF_USER_NUMBERS: replace(FUNCTION, of_numbers=True),
}
LOGARITHMS = tuple(name for name, row in CRITERIA.items() if row.has_logarithms)
REGRESSION = tuple(name for name, row in CRITERIA.items() if row.of_numbers)
