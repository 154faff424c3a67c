"""Builds the Cython extensions; everything else about the package stands in pyproject.toml.

``DTREES_DEBUG=1`` turns bounds and initialisation checks on in every kernel: slow, and what
``make debug-test`` runs the whole suite on once more. ``DTREES_SANITIZE=address,undefined`` or
``thread`` lets the compiler watch every kernel for errors of memory, arithmetic and threads: what
``make sanitize`` runs tests on. ``DTREES_LEVEL=0`` compiles such kernels in a third of the time,
and they take longer. ``DTREES_PATHS=1`` lets the environment switch special paths off
(`dtrees/core/data/_paths.pxd`): what ``make paths`` measures.

What a package index shows is the README, whose links lead to files of this tree. They become
absolute as soon as ``[project.urls]`` names a ``Source``, and are plain text until then.
"""

import glob
import multiprocessing
import os
import re
import tomllib

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("DTREES_DEBUG", "0") not in ("", "0")
PATHS = os.environ.get("DTREES_PATHS", "0") not in ("", "0")
SANITIZE = os.environ.get("DTREES_SANITIZE", "")
SLOW = DEBUG or bool(SANITIZE)

# From the ground up: a kernel imports from those above it (tests/test_floors.py).
EXTENSIONS = [
    "dtrees._random",
    "dtrees.coding._binning",
    "dtrees.coding._thresholds",
    "dtrees.coding._cells",
    "dtrees.core.data._cpu",
    "dtrees.core.data._logarithm",
    "dtrees.core.data._columns",
    "dtrees.core.histogram._count",
    "dtrees.core.histogram._totals",
    "dtrees.core.search._criterion",
    "dtrees.core.search._open_node",
    "dtrees.core.search._sort",
    "dtrees.core.search._absolute_errors",
    "dtrees.core.search._search",
    "dtrees.core.search._number_scan",
    "dtrees.core.search._output_scan",
    "dtrees.core.search._two_class_scan",
    "dtrees.core.search._absolute_scan",
    "dtrees.core.search._categories",
    "dtrees.core.search._bins",
    "dtrees.core.search._gradient_scan",
    "dtrees.core.search._intervals",
    "dtrees.core.search._entry_scan",
    "dtrees.core.losses._derivatives",
    "dtrees.core.stores._dataset",
    "dtrees.core.stores._partition",
    "dtrees.core.stores.presorted._buffers",
    "dtrees.core.stores.presorted._presorted_store",
    "dtrees.core.stores.presorted._few_rows",
    "dtrees.core.stores.sampled._column_loader",
    "dtrees.core.stores.sampled._sampled_columns",
    "dtrees.core.stores.sampled._random_split",
    "dtrees.core.stores.sampled._sampled_store",
    "dtrees.core.stores.shared._shared_nodes",
    "dtrees.core.stores.shared._shared_entries",
    "dtrees.core.stores.shared._shared_store",
    "dtrees.core.stores.blocks._node_counts",
    "dtrees.core.stores.blocks._node_partition",
    "dtrees.core.stores.blocks._histogram_store",
    "dtrees.core.stores.boosted._column_blocks",
    "dtrees.core.stores.boosted._boosted_store",
    "dtrees.core.grow._node_buffer",
    "dtrees.core.grow._team",
    "dtrees.core.grow._single_tree",
    "dtrees.core.grow._shared_growth",
    "dtrees.core.grow._boosted_rows",
    "dtrees.core.grow._leaf_wise",
    "dtrees.core.grow._round_tree",
    "dtrees.core.model._pruning",
    "dtrees.core.predict._packed_forest",
    "dtrees.core.predict._walk",
    "dtrees.core.predict._shap",
    "dtrees.core.predict._leaf_rows",
    "dtrees.core._testing",
]

UTILITIES = "dtrees._cyutility"

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
LEVEL = os.environ.get("DTREES_LEVEL", "1" if SLOW else "3")
COMPILE_ARGS = [f"-O{LEVEL}", "-ffp-contract=off", "-fno-math-errno"]
LINK_ARGS = []
if not SANITIZE:
    # Python's own flags ask for -g: a wheel of 13 MB instead of 2.7, and a quarter of the time.
    COMPILE_ARGS.append("-g0")
if not SLOW:
    LINK_ARGS.append("-Wl,-s")  # tables of symbols: a sixteenth of the wheel
if SANITIZE:
    # Sums that overflow are errors here, although they wrap around where Python's own flags say so.
    watched = [f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer", "-g1", "-fno-wrapv"]
    if "undefined" in SANITIZE:
        watched.append("-fsanitize=float-cast-overflow")
    COMPILE_ARGS += watched
    LINK_ARGS += watched

# Hot loops take constants (mode, direction) as arguments and rely on being inlined with them.
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
if DEBUG:
    MACROS.append(("DTREES_DEBUG", "1"))
if PATHS:
    MACROS.append(("DTREES_PATHS", "1"))
if not SLOW:
    MACROS.append(("CYTHON_INLINE", "__inline__ __attribute__((always_inline))"))


# Cells of a few words are cleared by a loop: a call of memset for each takes longer (measured:
# forests of letter and covertype 1.05 and 1.09 times).
OWN_ARGS = {
    "dtrees.core.search._intervals": ["-fno-trapping-math"],  # else choices are branches
    "dtrees.core.stores.sampled._sampled_columns": ["-fno-tree-loop-distribute-patterns"],
    # Nobody looks at the exceptions of floating point: bounds of an exponent are no branch then.
    "dtrees.core.losses._derivatives": ["-fno-trapping-math"],
}


def extension(name):
    """One module of the table above, compiled against the numpy C API."""
    return Extension(
        name,
        [name.replace(".", "/") + ".pyx"],
        include_dirs=[np.get_include(), "dtrees/core"],
        depends=sorted(glob.glob("dtrees/core/**/*.h", recursive=True)),
        define_macros=MACROS,
        extra_compile_args=COMPILE_ARGS + OWN_ARGS.get(name, []),
        extra_link_args=LINK_ARGS,
    )


def shared_utilities():
    """What Cython would write into every module that has memoryviews, three quarters of their C."""
    return Extension(
        UTILITIES,
        [UTILITIES.replace(".", "/") + ".c"],
        extra_compile_args=COMPILE_ARGS,
        extra_link_args=LINK_ARGS,
    )


def description():
    """The README for readers who do not have the tree."""
    with open("pyproject.toml", "rb") as file:
        source = tomllib.load(file)["project"].get("urls", {}).get("Source")
    with open("README.md", encoding="utf-8") as file:
        text = file.read()
    if source is None:
        text = re.sub(r"!\[[^]]*\]\((?!https?:)[^)]*\)\n*", "", text)
        return re.sub(r"(?<!!)\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", text)
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{source}/raw/HEAD/", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:)", rf"\1{source}/blob/HEAD/", text)


# Two translate at a time where they are forked; others would begin with this file.
IN_PROCESSES = 2 if multiprocessing.get_start_method() == "fork" else 0
KIND = SANITIZE.replace(",", "-") or ("debug" if DEBUG else "paths" if PATHS else "release")

setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    ext_modules=cythonize(
        [shared_utilities(), *map(extension, EXTENSIONS)],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=UTILITIES,
        build_dir="build/" + KIND,
        nthreads=IN_PROCESSES,
    ),
    options={"build_ext": {"parallel": 2}},
)
