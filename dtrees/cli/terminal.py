"""Output: progress on a terminal, tables that a pipe can read too, and JSON."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click


def console() -> Any:
    """What draws on standard output."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):  # a stream without block characters shows "?"
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False)


@contextmanager
def progress(steps: int, show: bool) -> Iterator[Callable[[str], None]]:
    """A bar on standard error when it is a terminal; yields a function that begins a step."""
    if show:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        error = Console(stderr=True)
        if error.is_terminal:
            words = TextColumn("{task.description}")
            columns = (words, BarColumn(), MofNCompleteColumn(), Elapsed())
            with Progress(*columns, console=error, transient=True) as bar:

                def begin(words: str) -> None:
                    if not bar.task_ids:
                        bar.add_task(words, total=steps)
                    else:
                        task = bar.task_ids[0]
                        bar.update(task, advance=1, description=words, refresh=True)

                yield begin
            return
    yield lambda words: None


@contextmanager
def waiting(words: str, show: bool) -> Iterator[None]:
    """A sign of life on standard error when it is a terminal, for work without steps."""
    if show:
        from rich.console import Console

        error = Console(stderr=True)
        if error.is_terminal:
            with error.status(words):
                yield
            return
    yield


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(finite(document), indent=2, allow_nan=False))


def finite(value: Any) -> Any:
    """The value with null for every number that JSON has no word for."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
