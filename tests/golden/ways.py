"""In which ways a model is made, all of which give the same bits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """How a model is made, which must not show.

    Attributes
    ----------
    wide : bool
        Whether wide instructions may be used.
    n_jobs : int
    in_rounds : bool
        Whether nodes of many rows grow in rounds over blocks of the table.
    """

    wide: bool
    n_jobs: int
    in_rounds: bool = False


WAYS = (Way(True, 1), Way(False, 2), Way(True, 2, in_rounds=True))
