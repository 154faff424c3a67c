"""Short tables for notebooks, which show what ``_repr_html_`` of a result returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[str]], foot: str = ""
) -> str:
    """Write a table with a line above it and, if there is one, a line below it."""
    cells = "".join(f"<th>{escape(word)}</th>" for word in head)
    lines = [f"<p><strong>{escape(title)}</strong></p>", f"<table><thead><tr>{cells}</tr></thead>"]
    lines.append("<tbody>")
    for row in rows:
        first, *others = (escape(word) for word in row)
        aligned = "".join(f"<td>{word}</td>" for word in others)
        lines.append(f'<tr><td style="text-align:left;white-space:pre">{first}</td>{aligned}</tr>')
    lines.append("</tbody></table>")
    return "\n".join([*lines, *([f"<p>{escape(foot)}</p>"] if foot else [])])
