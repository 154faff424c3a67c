"""Bugs that are put into a copy of the kernels, to see that the sanitizers tell them.

Each is a small change of a line of a kernel that every test of two threads goes through. They are
never in the sources: `tests.sanitizers.run` plants them in its tree under ``build/``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """A change of one file.

    Attributes
    ----------
    kind : str
        Which tree of sanitizers has to tell it.
    report : str
        What its report says.
    path : str
        Of the file.
    changes : tuple of (str, str)
        Text that stands there once, and what is written in its place.
    """

    kind: str
    report: str
    path: str
    changes: tuple[tuple[str, str], ...]

    def planted_in(self, text: str) -> str:
        """The file with the bug."""
        for old, new in self.changes:
            if text.count(old) != 1:
                raise ValueError(f"{old!r} is not once in {self.path}: plant the bug elsewhere.")
            text = text.replace(old, new)
        return text


WALK = "dtrees/core/predict/_walk.pyx"
BUGS = {
    "overflow": Bug(
        "memory",
        "heap-buffer-overflow",
        WALK,
        (
            (
                "number = <int32_t*>malloc((tree.n_nodes + n_inner + 1) * sizeof(int32_t))",
                "number = <int32_t*>malloc((tree.n_nodes + n_inner - 1) * sizeof(int32_t))",
            ),
        ),
    ),
    "undefined": Bug(
        "memory",
        "shift exponent 64 is too large",
        WALK,
        (("~<uint64_t>0 >> (63 - (last & 63))", "~<uint64_t>0 >> (64 - (last & 63))"),),
    ),
    "race": Bug(
        "threads",
        "data race",
        WALK,
        (
            ("def find_leaves(", "cdef int64_t walked = 0\n\n\ndef find_leaves("),
            (
                "    if leaf.shape[0] != grown.n_trees or",
                "    global walked\n    if leaf.shape[0] != grown.n_trees or",
            ),
            (
                "            fault = find_binned(grown.trees + t,",
                "            for i in range(n): walked += i\n"
                "            fault = find_binned(grown.trees + t,",
            ),
        ),
    ),
}
