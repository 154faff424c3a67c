r"""A tree in the language of Graphviz, with tests in the user's formatter.

scikit-learn's function of this name can write ``<=`` and nothing else. This one writes the tests of
`dtrees.inspection.text`: sets of categories, dates, and where missing values go::

    0 [label="job in {clerk, sales}\ngini = 0.48\nsamples = 90\nvalue = [40, 50]\nclass = yes"]
    0 -> 1 [headlabel="True"]

Rows that pass a test go left, as in the text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dtrees.constraints import NAMES, Boolean, InstanceOf, IntegerIn, Nothing, checked
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection.colours import colours_of, hexadecimal
from dtrees.inspection.tree_formatter import Reach, TreeFormatter, formatter_of, impurity_name

LABEL_WIDTH = 40  # characters of a line within a node


@checked(
    out_file=(InstanceOf(str | PathLike, "str or path"), Nothing()),
    max_depth=(IntegerIn(0), Nothing()),
    feature_names=NAMES,
    class_names=NAMES,
    impurity=(Boolean(),),
    node_ids=(Boolean(),),
    filled=(Boolean(),),
    decimals=(IntegerIn(0),),
    tree=(IntegerIn(0),),
    max_categories=(IntegerIn(1), Nothing()),
)
def export_graphviz(
    decision_tree: Any,
    out_file: str | PathLike[str] | None = None,
    *,
    max_depth: int | None = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    impurity: bool = True,
    node_ids: bool = False,
    filled: bool = False,
    decimals: int = 2,
    max_categories: int | None = 8,
    tree: int = 0,
) -> str | None:
    """Return a tree in DOT, the language of Graphviz.

    Parameters
    ----------
    decision_tree : estimator, TreeView or Tree
        A fitted tree, forest or boosted model, a tree's ``tree_``, or a tree on codes (whose
        categories have no names).
    out_file : path, default=None
        Where the text is written to, in UTF-8; a file of this name is replaced. None: it is
        returned.
    max_depth : int, default=None
        Deepest tests that are drawn, at least 0; "(...)" stands for branches below. None: all.
    feature_names : sequence of str, default=None
        A name per column. None: the names at fit, or "feature_0", "feature_1", ...
    class_names : sequence of str, default=None
        A name per class, in the order of ``classes_``. None: the labels.
    impurity : bool, default=True
        Whether nodes show their impurity. Boosted models have none.
    node_ids : bool, default=False
        Whether nodes show their number.
    filled : bool, default=False
        Whether nodes have the colour of their largest class, the stronger the purer they are; for
        regression, the stronger the larger their mean.
    decimals : int, default=2
        Least number of decimals, at least 0.
    max_categories : int, default=8
        Longest set of categories that is written out; of longer ones the first, and how many are
        left out. None: no limit.
    tree : int, default=0
        Number of the tree in a forest or a boosted model. Of K outputs of a boosted model, tree t
        adds to output ``t % K``.

    Returns
    -------
    str or None
        For ``dot -Tsvg``, or ``graphviz.Source`` of Python. O(drawn nodes), and for tests of
        categories O(categories) each.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    ValueError
        Too many or too few names, a negative size, or no tree of this number.
    """
    view, names = ModelNodes.of(decision_tree, "decision_tree"), (feature_names, class_names)
    options: dict[str, Any] = {"decimals": decimals, "max_categories": max_categories}
    formatter = formatter_of(view, tree, *names, **options)
    is_leaf, colours = formatter.nodes.is_leaf, colours_of(formatter.nodes)
    nodes, edges = [], []
    # node, depth, what tests above have left of their columns
    todo: list[tuple[int, int, dict[int, Reach]]] = [(0, 0, {})]
    while todo:
        node, depth, reaches = todo.pop()
        label = [f"node #{node}"] if node_ids else []
        children: tuple = ()
        if max_depth is not None and depth > max_depth and not is_leaf[node]:
            label = ["(...)"]
        else:
            if not is_leaf[node]:
                children = formatter.children(node, reaches)
                test = children[0][2].text
                label += textwrap.wrap(
                    test, LABEL_WIDTH, break_long_words=False, break_on_hyphens=False
                )
            label += _statistics(formatter, node, impurity)
        text = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in label)
        fill = f', fillcolor="{hexadecimal(colours[node])}"' if filled else ""
        nodes.append(f'{node} [label="{text}"{fill}] ;')
        # the edge that stands first is drawn left
        for (child, below, _), answer in zip(children, ("True", "False"), strict=False):
            todo.append((child, depth + 1, below))
            word = f' [labeldistance=2.5, headlabel="{answer}"]' if node == 0 else ""
            edges.append(f"{node} -> {child}{word} ;")
    style = ', style="filled"' if filled else ""
    head = f'node [shape=box{style}, fontname="helvetica"] ;'
    dot = "\n".join(["digraph Tree {", head, *nodes, *edges, "}\n"])
    if out_file is None:
        return dot
    Path(out_file).write_text(dot, encoding="utf-8")
    return None


def _statistics(formatter: TreeFormatter, node: int, impurity: bool) -> list[str]:
    """Impurity, samples and value, as scikit-learn writes them."""
    tree, known = formatter.nodes, impurity and formatter.nodes.has_impurity
    (value,) = tree.value_of([node])
    lines = [f"{impurity_name(tree)} = {tree.impurity[node]:.3f}"] if known else []
    lines.append(f"samples = {tree.n_samples[node]}")
    if not formatter.classes:
        return [*lines, f"value = {formatter.answer(value)}"]
    weights = tree.class_weights(node)
    shown = ", ".join(np.format_float_positional(w, formatter.decimals, trim="-") for w in weights)
    return [*lines, f"value = [{shown}]", f"class = {formatter.answer(value)}"]
