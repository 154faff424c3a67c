"""What to do about a kernel that is not compiled, where somebody imports it.

A clone holds the kernels as ``.pyx`` files, and Python prefers the package in the current folder to
an installed one. So ``python -m dtrees`` in a clone that was not built finds no kernel, wherever
dtrees is installed, and a changed clone may lack one. Python asks the finder below when no other
knows a module: it costs nothing where kernels are compiled.
"""

from __future__ import annotations

import os.path
import sys
from collections.abc import Sequence


class Uncompiled:
    """A finder that finds no module, and refuses kernels of dtrees."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Raise ImportError for a kernel whose source is there; None for any other module."""
        if not name.startswith("dtrees."):
            return
        for folder in path or ():
            source = os.path.join(folder, name.rpartition(".")[2] + ".pyx")
            if os.path.isfile(source):
                root = os.path.realpath(source).removesuffix(f"{name.replace('.', os.sep)}.pyx")
                version = f"{sys.version_info.major}.{sys.version_info.minor}"
                raise ImportError(
                    f"{name} in {os.path.dirname(root)} is not compiled for Python {version}. Run "
                    f"\"pip install -e '.[cli,plot]'\" in that folder. Where dtrees is also "
                    "installed elsewhere, leave the folder: Python prefers what lies in it.",
                    name=name,
                    path=source,
                )


def explain() -> None:
    """Let imports of kernels that are not compiled say what to do."""
    if Uncompiled not in sys.meta_path:
        sys.meta_path.append(Uncompiled)
