"""Rules for columns by name: predictions that rise or fall along them, and which go together.

::

    --rising age --falling price          monotonic_cst={"age": 1, "price": -1}
    --interaction age,price               interaction_cst=[["age", "price"]]
    --interaction 'town,"street, no"'     a name with a comma stands in quotation marks

A set is a line of a CSV file. What rules mean is the business of the estimators. Their refusals are
told by the names of the options.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from dtrees.cli.errors import RequestError

WORDS = ("pairwise", "no_interactions")  # of ``interaction_cst``; each stands alone
DIRECTIONS = ("rising", "falling")
RULES = (
    click.option(
        "--rising",
        multiple=True,
        metavar="COLUMN",
        help="Predictions never fall along this column of numbers; repeatable. Of two classes, "
        "the share of the second one.",
    ),
    click.option(
        "--falling",
        multiple=True,
        metavar="COLUMN",
        help="Predictions never rise along this column of numbers; repeatable.",
    ),
    click.option(
        "--interaction",
        multiple=True,
        metavar="COLUMN,...",
        help="Columns that may be tested together on the way to a leaf, between commas; "
        "repeatable, and all other columns are one more set. Or pairwise, or no_interactions: at "
        "most two columns, or one.",
    ),
)


def rules_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator for the rules that are given, by their names.

    RequestError: a column is to rise and to fall, or a set has no columns.
    """
    rising, falling = given.get("rising") or (), given.get("falling") or ()
    sets = given.get("interaction") or ()
    found: dict[str, Any] = {}
    both = sorted({*rising} & {*falling})
    if both:
        raise RequestError(f"--rising {both[0]!r} and --falling {both[0]!r}: give either")
    if rising or falling:
        found["monotonic_cst"] = dict.fromkeys(rising, 1) | dict.fromkeys(falling, -1)
    if sets:
        is_word = len(sets) == 1 and sets[0] in WORDS
        found["interaction_cst"] = sets[0] if is_word else [*map(names_in, sets)]
    return found


def names_in(text: str) -> list[str]:
    """The names in a set of columns."""
    (names,) = csv.reader([text], skipinitialspace=True) if text else ([],)
    if not all(names) or not names:
        raise RequestError(f"--interaction {text!r}: give names of columns between commas")
    return names


def check_columns(given: Mapping[str, Any], names: Collection[str]) -> None:
    """Refuse (RequestError) rules for columns that a table does not have."""
    from dtrees.io.problem import near

    rules = rules_of(given)
    sets = rules.get("interaction_cst", [])
    asked = [(name, "interaction") for each in sets if isinstance(each, list) for name in each]
    for option in DIRECTIONS:
        asked += [(name, option) for name in given.get(option) or ()]
    for name, option in asked:
        if name not in names:
            raise RequestError(f"--{option}: no column {name!r} in the table{near(name, names)}")


@contextmanager
def rules_as_options(given: Mapping[str, Any]) -> Iterator[None]:
    """Tell (RequestError) by options what estimators say of the parameters that stand for them."""
    try:
        yield
    except ValueError as error:
        reason = _reason_of(str(error), given)
        if reason is None:
            raise
        raise RequestError(reason) from error


def _reason_of(said: str, given: Mapping[str, Any]) -> str | None:
    """What an error says, with options; None: it is not about them."""
    from dtrees.estimators.column_rules import NO_ORDER, TWO_CLASSES_ONLY

    asked = [(f"--{option}", name) for option in DIRECTIONS for name in given.get(option) or ()]
    if said.startswith(TWO_CLASSES_ONLY):
        option, name = asked[0]
        return f"{option} {name!r}: the target has to be numbers or two classes, and there are more"
    for option, name in asked if said.startswith(NO_ORDER) else ():
        if f"column {name!r} has" in said:
            return (
                f"{option} {name!r}: the column holds words, which are in no order. Give a column "
                "of numbers or dates, or leave the option out"
            )
    return None
