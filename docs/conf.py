"""Sphinx: MyST pages, API pages from the docstrings, warnings are errors (`make docs`)."""

import dtrees

project = "dtrees"
author = "dtrees developers"
project_copyright = f"2026, {author}"
version = release = dtrees.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

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


def setup(app):
    app.connect("autodoc-process-docstring", draw, priority=100)
