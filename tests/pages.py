"""The pages, and the Python that stands on them.

The fences of a page say what they hold: ``python`` runs in `tests/test_pages.py`, block after
block, and what stands in the ``text`` block below it is what it prints; ``bash`` is for a terminal.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]

PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.M | re.S)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """The Python blocks of a page, each with what the page says that it prints."""
    return PYTHON.findall(page.read_text(encoding="utf-8"))
