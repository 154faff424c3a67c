"""The house rules that can be counted: lines of files and functions, and parameters.

A file has at most 400 lines and half of them have less than 150, a function at most 80 without its
docstring, an internal function at most 8 parameters. Constructors of estimators, public functions
and commands have one for each of the user's choices. What does not keep a rule yet is listed in
`sizes.txt`, which gets shorter: whatever keeps the rules is taken away.
"""

import ast
import functools
import re
import statistics
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "dtrees"
MOST_LINES = 400
MEDIAN_LINES = 150
MOST_LINES_OF_FUNCTION = 80
MOST_PARAMETERS = 8

SOURCES = sorted(
    path
    for path in PACKAGE.rglob("*")
    if path.suffix in (".py", ".pyx", ".pxd", ".h") and path.stat().st_size > 0
)
HEAD = re.compile(
    r"^( *)(?:cdef|cpdef|def) (?!class|struct|enum|extern)[^\n=]*?(\w+)\(", re.MULTILINE
)
LISTED = Path(__file__).with_name("sizes.txt").read_text(encoding="ascii").splitlines()


def lines_of(path):
    return path.read_text(encoding="utf-8").count("\n")


def functions_of_python(path):
    """(name, lines, parameters) of every function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            names = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            names = [each for each in names if each.arg not in ("self", "cls")]
            n_lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                n_lines -= node.body[0].end_lineno - node.body[0].lineno + 1
            yield node.name, n_lines, len(names)


def functions_of_kernel(path):
    """The same of a file that Python cannot read: a function ends where its indentation does."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    for match in HEAD.finditer(text):
        first = text.count("\n", 0, match.start())
        depth = 0
        for end in range(match.end() - 1, len(text)):
            depth += (text[end] in "([") - (text[end] in ")]")
            if depth == 0:
                break
        arguments = text[match.end() : end]
        depth, n_parameters = 0, 1 if arguments.strip() else 0
        for character in arguments:
            depth += (character in "([{") - (character in ")]}")
            n_parameters += character == "," and depth == 0
        n_parameters -= bool(re.match(r"\s*(?:self|cls)\b", arguments))
        last = text.count("\n", 0, end)
        while last + 1 < len(lines):
            following = lines[last + 1]
            if following.strip() and len(following) - len(following.lstrip()) <= len(match[1]):
                break
            last += 1
        while not lines[last].strip():
            last -= 1
        if "# ----" in lines[last]:
            last -= 1
        yield match[2], last - first + 1, n_parameters


def functions():
    for path in SOURCES:
        name = path.relative_to(PACKAGE).as_posix()
        if path.suffix == ".py":
            yield from ((name, *found) for found in functions_of_python(path))
        elif path.suffix == ".pyx":
            yield from ((name, *found) for found in functions_of_kernel(path))


def is_public(file, name):
    """Whether users call it with a keyword for each of their choices."""
    folder = file.split("/")[0]
    if folder == "cli":
        return name in ("command", "add_options")
    if folder == "estimators":
        return name == "__init__"
    return folder in ("inspection", "model_selection") and not name.startswith("_")


@functools.cache
def faults():
    """What does not keep a rule, as lines of `sizes.txt`."""
    return set(_faults())


def _faults():
    for path in SOURCES:
        if lines_of(path) > MOST_LINES:
            yield f"{path.relative_to(PACKAGE).as_posix()} lines"
    for file, name, n_lines, n_parameters in functions():
        if n_lines > MOST_LINES_OF_FUNCTION:
            yield f"{file} {name} lines"
        if n_parameters > MOST_PARAMETERS and not is_public(file, name):
            yield f"{file} {name} parameters"


def test_half_of_the_files_are_very_short():
    assert statistics.median(map(lines_of, SOURCES)) < MEDIAN_LINES


def test_files_and_functions_are_short():
    assert faults() - set(LISTED) == set()


def test_the_list_holds_nothing_else():
    assert set(LISTED) - faults() == set()
    assert sorted(LISTED) == LISTED


def test_a_long_function_of_a_kernel_is_seen(tmp_path):
    body = "\n".join(f"    cdef int a{i} = {i}" for i in range(MOST_LINES_OF_FUNCTION))
    head = "cdef int f(int a, (int, int) b,\n           int c) noexcept nogil:"
    text = f"{head}\n{body}\n\n\ncdef int g():\n    pass\n"
    path = tmp_path / "kernel.pyx"
    path.write_text(text)
    assert list(functions_of_kernel(path)) == [("f", MOST_LINES_OF_FUNCTION + 2, 3), ("g", 2, 0)]
