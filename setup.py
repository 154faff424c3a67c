"""Builds the Cython extensions; everything else about the package stands in pyproject.toml.

``DTREES_DEBUG=1`` turns bounds and initialisation checks on in every kernel: slow, and what
``make debug-test`` runs the whole suite on once more.
"""

import glob
import os

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("DTREES_DEBUG", "0") not in ("", "0")

# From the ground up: a kernel imports from those above it (tests/test_floors.py).
EXTENSIONS = [
    "dtrees._random",
    "dtrees.coding._encode",
    "dtrees.core._wide",
    "dtrees.core._columns",
    "dtrees.core._criterion",
    "dtrees.core._search",
    "dtrees.core._sort",
    "dtrees.core._component",
    "dtrees.core._groups",
    "dtrees.core._splitter",
    "dtrees.core._workspace",
    "dtrees.core._histogram",
    "dtrees.core._route",
    "dtrees.core._bag",
    "dtrees.core._reader",
    "dtrees.core._drawn_cells",
    "dtrees.core._drawn_entries",
    "dtrees.core._drawn",
    "dtrees.core._cuts",
    "dtrees.core._lanes",
    "dtrees.core._nodes",
    "dtrees.core._records",
    "dtrees.core._finish",
    "dtrees.core._assembly",
    "dtrees.core._shard",
    "dtrees.core._kinds",
    "dtrees.core._rounds",
    "dtrees.core._pool",
    "dtrees.core._shared_nodes",
    "dtrees.core._shared_counts",
    "dtrees.core._shared_classes",
    "dtrees.core._shared",
    "dtrees.core._large_node",
    "dtrees.core._levels",
    "dtrees.core._coded_walk",
    "dtrees.core._predict",
    "dtrees.core._forest",
    "dtrees.core._pruning",
]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "embedsignature": True,
}

# No contraction: a fused multiply-add rounds once where other machines round twice, and a gain
# must have the same bits everywhere.
COMPILE_ARGS = ["-O1" if DEBUG else "-O3", "-ffp-contract=off", "-fno-math-errno"]

# Hot loops take constants (mode, direction) as arguments and rely on being inlined with them.
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
if DEBUG:
    MACROS.append(("DTREES_DEBUG", "1"))
else:
    MACROS.append(("CYTHON_INLINE", "__inline__ __attribute__((always_inline))"))


def extension(name):
    """One module of the table above, compiled against the numpy C API."""
    return Extension(
        name,
        [name.replace(".", "/") + ".pyx"],
        include_dirs=[np.get_include(), "dtrees/core"],
        depends=sorted(glob.glob("dtrees/core/*.h")),
        define_macros=MACROS,
        extra_compile_args=COMPILE_ARGS,
    )


setup(
    ext_modules=cythonize(
        [extension(name) for name in EXTENSIONS],
        compiler_directives=DIRECTIVES,
        build_dir="build/debug" if DEBUG else "build/release",
    ),
    options={"build_ext": {"parallel": 2}},
)
