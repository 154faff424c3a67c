"""Sphinx: MyST pages, API pages from the docstrings, warnings are errors (`make docs`)."""

import logging
import re

from sphinx.domains.python import PyObject

import dtrees

for name in ("dtrees", "distributed"):  # Sphinx shows what examples log at level INFO
    logging.getLogger(name).setLevel(logging.WARNING)

project = "dtrees"
author = "dtrees developers"
project_copyright = f"2026, {author}"
version = release = dtrees.__version__

extensions = [
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "examples"]

# Pages of docs/examples: a script, what it prints, its picture.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
}

# Docstrings say `name` for a parameter and for code alike.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "dtrees"
html_show_sphinx = False


def draw(app, what, name, obj, options, lines):
    """Show the indented blocks of a module's essay (formulas, drawings) as they stand."""
    if what != "module":
        return
    out: list[str] = []
    previous, literal = "", False
    for line in lines:
        indented = line.startswith(" ")
        if indented and not literal and out and not out[-1].strip():
            if not previous.rstrip().endswith("::"):
                out += ["::", ""]
            literal = True
        elif line.strip() and not indented:
            literal = False
        out.append(line)
        previous = line if line.strip() else previous
    lines[:] = out


def quote(app, what, name, obj, options, lines):
    """Show ``n_classes_`` in plain text as code; a last underscore is a link to docutils."""
    if what == "module":
        return
    for i, line in enumerate(lines):
        head, colon, tail = line.rpartition(" : ")
        head = re.sub(r"^(\w+)_$", r"\1\\_", head)
        lines[i] = head + colon + re.sub(r"(?<![\w`.])(\w+_)(?![\w`(])", r"`\1`", tail)


def types_are_text():
    """Show types of parameters as text. Sphinx would link each word that ends some name."""
    for field in PyObject.doc_field_types:
        if field.name in ("parameter", "variable"):
            field.typerolename = ""


def setup(app):
    types_are_text()
    app.connect("autodoc-process-docstring", draw, priority=100)
    app.connect("autodoc-process-docstring", quote, priority=100)
