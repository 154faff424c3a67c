"""The floors: imports go down only, in the kernels too, and ``import dtrees`` is light.

import-linter checks the ``.py`` files (pyproject.toml); it cannot read Cython, so the ``.pyx`` and
``.pxd`` files are scanned here, for imports and cimports. The kernels have an order among
themselves, too: that of setup.py.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "dtrees"
KERNELS = sorted([*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd")])

FLOORS = {
    "exceptions": 0,
    "typing": 0,
    "_random": 0,
    "_pickling": 0,
    "_forks": 0,
    "_html": 0,
    "_other_words": 0,
    "_warnings": 0,
    "_extras": 0,
    "coding": 1,
    "core": 2,
    "constraints": 2,
    "parallel": 3,
    "inspection": 4,
    "export": 3,
    "callbacks": 3,
    "criteria": 3,
    "losses": 3,
    "estimators": 5,
    "io": 5,
    "model_selection": 6,
    "cli": 7,
    "__main__": 8,
}

# Kernels see arrays: the C library, Python's and numpy's own modules, and the floors below.
KERNEL_MAY_IMPORT = {"cython", "libc", "cpython", "libcpp", "numpy", "dtrees"}
KERNEL_MAY_IMPORT |= sys.stdlib_module_names

STATEMENT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>[.\w]+)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n#]+)"
    r"|c?import[ \t]+(?P<modules>[^\n#]+))",
    re.MULTILINE,
)


def module_of(path, root):
    """Dotted name of a source file."""
    return ".".join(path.relative_to(root).with_suffix("").parts)


def imports(text, module):
    """Absolute dotted names that the text of a module imports or cimports."""
    found = []
    for match in STATEMENT.finditer(text):
        if match["modules"]:
            found += [part.split(" as ")[0].strip() for part in match["modules"].split(",")]
            continue
        source = match["source"]
        dots = len(source) - len(source.lstrip("."))
        if dots:
            base = module.split(".")[: -dots or None]
            source = ".".join([*base, *filter(None, [source.lstrip(".")])])
        if source == "dtrees" or dots:
            names = match["names"].strip("() \n").split(",")
            found += [f"{source}.{name.split(' as ')[0].strip()}" for name in names if name.strip()]
        else:
            found.append(source)
    return found


def faults(text, module):
    """What in a kernel's imports breaks the rules."""
    found = []
    own = FLOORS[module.split(".")[1]]
    for name in imports(text, module):
        top, *rest = name.split(".")
        if top not in KERNEL_MAY_IMPORT:
            found.append(f"{module} imports {name}: a kernel sees arrays only")
        elif top == "dtrees" and rest:
            if rest[0] not in FLOORS:
                found.append(f"{module} imports {name}: on no floor")
            elif FLOORS[rest[0]] > own:
                found.append(f"{module} imports {name}: imports go down only")
    return found


def test_the_kernels_import_downwards_only():
    assert KERNELS
    wrong = []
    for path in KERNELS:
        if path.stem != "__init__":
            wrong += faults(path.read_text(encoding="utf-8"), module_of(path, ROOT))
    assert not wrong, "\n".join(wrong)


def kernels_in_order():
    """The modules of setup.py, in the order in which they stand there."""
    for node in ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "EXTENSIONS":
            return ast.literal_eval(node.value)
    raise AssertionError("setup.py has no EXTENSIONS")


def test_a_kernel_imports_from_kernels_above_it_only():
    order = kernels_in_order()
    compiled = {module_of(path, ROOT) for path in KERNELS if path.suffix == ".pyx"}
    assert sorted(order) == sorted(compiled)

    def place(module, seen=()):
        """Place in setup.py; of a file of declarations, that of the last kernel it imports."""
        if module in order:
            return order.index(module)
        assert module not in seen, f"{module} imports itself"
        path = ROOT.joinpath(*module.split(".")).with_suffix(".pxd")
        found = imports(path.read_text(encoding="utf-8"), module) if path.exists() else []
        places = [place(name, (*seen, module)) for name in map(kernel_of, found) if name]
        return max(places, default=-1)

    wrong = []
    for path in KERNELS:
        module = module_of(path, ROOT)
        for name in map(kernel_of, imports(path.read_text(encoding="utf-8"), module)):
            if name and module in order and name != module and place(name) >= place(module):
                wrong.append(f"{module} imports {name}, which stands behind it in setup.py")
    assert not wrong, "\n".join(wrong)


def kernel_of(name):
    """The kernel or file of declarations that an import names, if it does."""
    while name.startswith("dtrees."):
        path = ROOT.joinpath(*name.split("."))
        if path.with_suffix(".pyx").exists() or path.with_suffix(".pxd").exists():
            return name
        name = name.rpartition(".")[0]
    return None


# The folders of the core, from the ground up: each imports from itself and those before it.
FOLDERS = (
    "data",
    "model",
    "membership",
    "histogram",
    "search",
    "losses",
    "stores",
    "grow",
    "predict",
    "_testing",
)


def folder_of(module):
    """Number of the folder of a module of the core; None: it is no such module."""
    parts = module.split(".")
    return FOLDERS.index(parts[2]) if parts[:2] == ["dtrees", "core"] and parts[2:] else None


def test_the_folders_of_the_core_import_downwards_only():
    found = set()
    for path in sorted((PACKAGE / "core").rglob("*.p[yx]*")):
        if path.suffix not in (".py", ".pyx", ".pxd") or path.stem == "__init__":
            continue
        module = module_of(path, ROOT)
        for name in imports(path.read_text(encoding="utf-8"), module):
            if name.startswith("dtrees.core.") and folder_of(name) > folder_of(module):
                found.add((module.removeprefix("dtrees.core."), name.removeprefix("dtrees.core.")))
    assert found == set()


# Exporters and pictures read `dtrees.export.model_nodes`; these few hand trees to the core.
READ_TREES = {"export.model_nodes", "export.parts", "export.trees", "inspection.importance"}


def test_exporters_and_pictures_read_models_through_the_view():
    found = set()
    for folder in ("export", "inspection"):
        for path in (PACKAGE / folder).glob("*.py"):
            module = module_of(path, ROOT)
            if "dtrees.core.model.tree" in imports(path.read_text(encoding="utf-8"), module):
                found.add(module.removeprefix("dtrees."))
    assert found == READ_TREES


@pytest.mark.parametrize(
    "line",
    [
        "from dtrees.core.stores._partition cimport route",
        "from ..core cimport _route",
        "import pandas",
        "from dask import threaded",
        "from dtrees.helpers cimport x",
    ],
)
def test_the_scan_finds_an_import_that_goes_up_or_out(line):
    assert len(faults(line, "dtrees.coding._cells")) == 1


def test_every_python_module_is_on_a_floor():
    names = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py*")}
    tops = {name.split(".")[0] for name in names} - {"__init__", "__pycache__"}
    assert tops <= set(FLOORS)


HEAVY = ("distributed", "fsspec", "pandas", "polars", "pyarrow", "matplotlib", "click", "rich")
# scikit-learn imports pandas (and that pyarrow) where it is installed, and rich from 1.9 on.
BY_SCIKIT_LEARN = ("pandas", "pyarrow", "rich")


def run(code):
    """What a fresh interpreter writes."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def loaded_by(statement, names=HEAVY):
    """Which of some libraries a fresh interpreter has loaded after the statement."""
    code = f"{statement}; import sys; print(*[m for m in {names!r} if m in sys.modules])"
    return set(run(code).stdout.split())


@pytest.mark.parametrize("statement", ["import dtrees", "import dtrees.coding, dtrees.core"])
def test_the_import_is_light(statement):
    assert loaded_by(statement) == set()


def test_public_names_and_fits_load_what_scikit_learn_loads_and_nothing_more():
    """Packages are attributes, as scikit-learn's are, where nobody has imported them."""
    names = loaded_by(
        "import dtrees; dtrees.export.load, dtrees.model_selection.cross_validate\n"
        "[getattr(dtrees, name) for name in dtrees.__all__]\n"
        "dtrees.RandomForestClassifier(2).fit([[0], [1]], [0, 1])"
    )
    assert names <= set(BY_SCIKIT_LEARN)


def test_help_loads_neither_tables_nor_arrays():
    pytest.importorskip("click")
    code = (
        "import runpy, sys; sys.argv[1:] = ['cv', '--help']\n"
        "try: runpy.run_module('dtrees', run_name='__main__')\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = run(code)
    assert done.stdout.startswith("Usage: python -m dtrees cv ")
    loaded = set(done.stderr.split())
    assert "click" in loaded
    assert loaded.isdisjoint({"numpy", "sklearn", "dask", *HEAVY} - {"click"})


@pytest.mark.parametrize("floor", ["coding", "core"])
def test_the_lower_floors_load_neither_scikit_learn_nor_dask(floor):
    assert loaded_by(f"import dtrees.{floor}", ("sklearn", "dask")) == set()


def test_the_suite_tests_the_tree_it_stands_in():
    import dtrees
    from dtrees import _random

    assert Path(dtrees.__file__).resolve().parent == PACKAGE
    assert Path(_random.__file__).resolve().parent == PACKAGE


def test_the_public_names_are_there_and_no_others():
    import dtrees
    import dtrees.model_selection

    for module in (dtrees, dtrees.model_selection):
        assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dtrees.nothing
