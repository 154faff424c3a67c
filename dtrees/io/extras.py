"""Modules of an extra, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def extra(module: str, *, of: str = "cli", for_: str = "the command line") -> Any:
    """Import a module of an extra, or say how to get it.

    Parameters
    ----------
    module : str
    of : str, default="cli"
        The extra, or several with commas between them.
    for_ : str, default="the command line"
        What needs it, for the message.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{for_} needs {module}, which is not installed: pip install 'dask-dtrees[{of}]'"
        ) from error
