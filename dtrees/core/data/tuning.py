"""Where one way of growing a tree becomes cheaper than another.

None of these numbers can change a tree; they were measured on two cores. Tests set them to 0, so
that small tables take the ways of large ones.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Thresholds between ways to the same tree. An *entry* is a cell without a majority value.

    Parameters
    ----------
    level_entries : int, default=2**19
        Threads do not share the columns of nodes of fewer entries: to wake them takes longer.
    task_entries : int, default=2**15
        Subtrees of so many entries are left to other threads as a whole, unless they are less
        than an eighth of it.
    counted_rows : int, default=128
        Nodes of fewer rows are searched by sorted entries, never by histogram. Above, the cells
        of a column's histogram decide; 0: every column that can be is read by histogram.
    shared_rows : int, default=700
        Nodes of several training sets of fewer rows are grown set by set, where rows are what all
        sets have and count once for every set beyond the first, less the 50 that any node costs;
        0: sets stay together as long as they can. Twelve times as many where all columns have many
        codes.
    interval_rows, interval_codes : int, default=1024, 512
        Nodes of several training sets of fewer rows, and columns of fewer codes, are searched code
        by code. Above, the intervals come first that a better split may lie in.
    """

    level_entries: int = 1 << 19
    task_entries: int = 1 << 15
    counted_rows: int = 128
    shared_rows: int = 700
    interval_rows: int = 1024
    interval_codes: int = 512
