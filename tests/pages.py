"""The pages, and their measure: short sentences, short lines, no prose in cells of tables.

A page is Markdown. Its fences say what they hold: ``python`` runs in `tests/test_pages.py`, block
after block, and what stands in the ``text`` block below it is what it prints; ``bash`` is for a
terminal; a fence without a word is a drawing.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]

MOST_CHARACTERS = 100
MOST_WORDS = 25
MOST_WORDS_IN_A_CELL = 12

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.M | re.S)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NO_PROSE = re.compile(r"^(#|\||!\[|\([\w-]+\)=)")  # headings, tables, pictures, targets
NEW_ITEM = re.compile(r"^\s*([-*]|\d+\.|:)\s+")


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """The Python blocks of a page, each with what the page says that it prints."""
    return PYTHON.findall(page.read_text(encoding="utf-8"))


def prose_of(text):
    """A page without code and formulas; each of those within a line is one word."""
    text = FENCE.sub("\n", text)
    text = re.sub(r"\$\$.*?\$\$", "\n", text, flags=re.S)
    text = re.sub(r"`[^`]*`|\$[^$]*\$", "Code", text)
    return re.sub(r"\bet al\.", "et al", LINK.sub(r"\1", text))


def paragraphs(text):
    """Paragraphs and items of lists, each in one line."""
    found, lines = [], []
    for line in [*prose_of(text).splitlines(), ""]:
        ends = not line.strip() or NO_PROSE.match(line)
        if lines and (ends or NEW_ITEM.match(line)):
            found.append(" ".join(lines))
            lines = []
        if not ends:
            lines.append(NEW_ITEM.sub("", line).strip())
    return found


def sentences(text):
    return [
        each for paragraph in paragraphs(text) for each in re.split(r"(?<=[.?!])\W*\s", paragraph)
    ]


def words_of(text):
    return re.findall(r"[^\W_][\w'’.,-]*", text)


def cells(text):
    """Cells of all tables."""
    rows = [line for line in prose_of(text).splitlines() if line.startswith("|")]
    return [cell.strip() for row in rows for cell in row.strip("|").split("|")]


def long_lines(text):
    """Lines above the limit without their addresses; tables, pictures and code may be longer."""
    lines = re.sub(r"\]\([^)\s]*\)", "]", FENCE.sub("", text)).splitlines()
    return [
        line for line in lines if len(line) > MOST_CHARACTERS and not line.startswith(("|", "!["))
    ]


def faults_of(text):
    """What sentences and tables of a page have against the measure."""
    found = []
    for sentence in sentences(text):
        if len(words_of(sentence)) > MOST_WORDS:
            found.append(f"sentence of {len(words_of(sentence))} words: {sentence}")
    for cell in cells(text):
        if len(words_of(cell)) > MOST_WORDS_IN_A_CELL or re.search(r"[.?!;] \w", cell):
            found.append(f"a cell that is prose: {cell}")
    return found
