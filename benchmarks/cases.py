"""What a case is.

A case names a piece of work and how it compares: ``prepare`` makes the data and returns a `Contest`
(two sides that do the same work), a `Fit` (a child process whose memory is watched), a `Survey`
(lines of a table of its own), or raises `Skipped` with the reason. Making data is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

THREADS = 2


class Skipped(Exception):
    """A case cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Scale:
    """How large a run is.

    Attributes
    ----------
    quick : bool
        A tenth of the rows of random tables: shows that the scripts work, and no more.
    """

    quick: bool = False

    def rows(self, n: int) -> int:
        """Rows of a random table that has n in full."""
        return n // 10 if self.quick else n

    def verdict(self, reached: bool, missed: str, *, aim: bool = False) -> str:
        """What a survey says of a figure that has a limit; tiny tables say nothing."""
        if self.quick:
            return "-"
        if not reached:
            return f"**missed**: {missed}"
        return "aim reached" if aim else "reached"


@dataclass(frozen=True)
class Contest:
    """The same work done by two sides.

    Attributes
    ----------
    ours : callable
        Without arguments; returns what `remark` wants to see, a fitted tree for example.
    theirs : dict of name to callable
        The fastest counts. Without opponents the work is only timed.
    remark : callable (ours, theirs) -> str
        What can be said of the results, as "12,707 and 12,709 nodes".
    fault : callable (ours, theirs) -> str
        What is wrong with our result, "" if nothing; a fault spoils the verdict.
    race : bool
        An opponent that takes longer than the best one so far is stopped: for work that takes
        scikit-learn minutes. The opponents then run in forked processes.
    parts : dict of name to float
        What the seconds of an opponent are multiplied with that does a part of the work.
    """

    ours: Callable[[], Any]
    theirs: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    remark: Callable[[Any, Any], str] = lambda ours, theirs: ""
    fault: Callable[[Any, Any], str] = lambda ours, theirs: ""
    race: bool = False
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Fit:
    """A fit whose peak memory is measured in a process of its own.

    Attributes
    ----------
    n_rows, n_columns : int
    max_bins : int or None
    limit_mb : float
        Most that it may need above the table.
    model : str, default="DecisionTreeClassifier"
        A class of dtrees.
    """

    n_rows: int
    n_columns: int
    max_bins: int | None
    limit_mb: float
    model: str = "DecisionTreeClassifier"


@dataclass(frozen=True)
class Table:
    """What stands above the lines of a table, and below them.

    Attributes
    ----------
    columns : tuple of str
    note : str
        How to read it.
    """

    columns: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Survey:
    """What is neither two sides in turns nor the peak of a fit: lines of a table of its own.

    Attributes
    ----------
    table : Table
        Cases that share a table stand in it together.
    lines : callable () -> iterable of tuple of str
        Measures; a cell for each of the table's columns. Lines are shown as they come.
    picture : callable () -> bytes, or None
        A PNG of what the lines have found.
    findings : callable () -> str, or None
        What they say, in sentences; for a page.
    """

    table: Table
    lines: Callable[[], Iterable[tuple[str, ...]]]
    picture: Callable[[], bytes] | None = None
    findings: Callable[[], str] | None = None


@dataclass(frozen=True)
class Page:
    """A page of its own, of several surveys.

    Attributes
    ----------
    name : str
        Of its file, without the suffix.
    title : str
    about : str
        What was asked, and how it is measured.
    """

    name: str
    title: str
    about: str


@dataclass(frozen=True)
class Case:
    """A line of the table.

    Attributes
    ----------
    name : str
        To choose it by.
    group : str
        One of the `GROUPS` of ``__main__``.
    work : str
        What is done, for the table.
    prepare : callable (Scale) -> Contest, Fit or Survey
    reach, aim : float or None
        How many times faster than scikit-learn.
    repeats : int or None, default=None
        Fewer or more runs than usual.
    page : Page or None, default=None
        Where a survey is written instead of the page of the run.
    """

    name: str
    group: str
    work: str
    prepare: Callable[[Scale], Contest | Fit | Survey]
    reach: float | None = None
    aim: float | None = None
    repeats: int | None = None
    page: Page | None = None
