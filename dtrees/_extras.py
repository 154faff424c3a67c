"""Modules of libraries that come with an extra of the package."""

from importlib import import_module
from typing import Any


def extra(module: str, *, of: str = "cli", for_: str = "the command line") -> Any:
    """Import a module of an extra, or say (ImportError) how to get it.

    `of` is the extra, or several with commas between them; `for_` is what needs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{for_} needs {module}, which is not installed: pip install 'dask-dtrees[{of}]'"
        ) from error
