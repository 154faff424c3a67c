"""The table of criteria: what is asked about a criterion wherever no split is scored.

How splits are scored is written in `dtrees.core.search._criterion`. So are criteria that are
functions of the class weights of both sides.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Criterion:
    """A row of the table."""

    of_numbers: bool = False  # of regression; else of classes
    has_logarithms: bool = False  # sums of x log x are in a fixed point that depends on all rows
    has_outputs: bool = False  # of several outputs it is the mean
    # of the class weights of both sides: nothing but such a function is known of it
    is_function: bool = False
    # scores of whole intervals of codes are bounded (`dtrees.core.search._intervals`)
    has_bounds: bool = True
    # gains follow from the statistics of nodes (`dtrees.core.model.packing`)
    has_known_gains: bool = True


FUNCTION = Criterion(is_function=True, has_bounds=False, has_known_gains=False)
OF_USER = "user"  # a `dtrees.criteria.Criterion`
CRITERIA = {
    "gini": Criterion(has_outputs=True),
    "entropy": Criterion(
        has_logarithms=True, has_bounds=False, has_known_gains=False, has_outputs=True
    ),
    "squared_error": Criterion(of_numbers=True, has_outputs=True),
    "poisson": Criterion(of_numbers=True, has_logarithms=True),
    "chi_square": FUNCTION,
    OF_USER: FUNCTION,
}
LOGARITHMS = tuple(name for name, row in CRITERIA.items() if row.has_logarithms)
REGRESSION = tuple(name for name, row in CRITERIA.items() if row.of_numbers)
