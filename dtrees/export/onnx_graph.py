"""Fitted models as ONNX files, for programs without Python.

::

    column of numbers       float32 or float64 ───────────────────────────┐
    dates and time spans    int64 nanoseconds ── NaN for NaT ─────────────┤ float64
    categories              string or number ─── number of the category ──┼──▶ TreeEnsemble
    numbers and categories  string ──┬─ number of the category ───────────┤        │
                                     └─ numbers, beyond which categories ─┘        ▼
                                                            mean, or start + sum, and the link

The trees compare float64, whatever the inputs are, so thresholds are those of the model, and leaves
add up as in the model. The n categories of a column are the numbers 1 .. n; unseen ones are n + 1,
missing ones n + 2, and in columns of numbers and categories a number is n + 3. No set holds missing
ones: where they go left, the children change places.

A test of numbers in a column of numbers and categories has a feature in which the categories are
infinite, so that they go where the node sends them: above the threshold, or up to it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees._extras import extra
from dtrees.constraints import InstanceOf, Nothing, OneOf, checked
from dtrees.export.model_nodes import ModelNodes, TreeNodes

if TYPE_CHECKING:
    from onnx import ModelProto

    from dtrees.coding.codebook import CodeBook

ML = "ai.onnx.ml"
OPSETS = {"": 20, ML: 5}  # RegexFullMatch, TreeEnsemble
IR_VERSION = 10
TYPES = ("float32", "float64")
MODES = np.array([0, 0, 3, 6])  # of TreeEnsemble, by the test: leaf, at most, above, in a set
INNER = {
    "nodes_modes": np.uint8,
    "nodes_featureids": np.int64,
    "nodes_splits": np.float64,
    "nodes_missing_value_tracks_true": np.int64,
    "nodes_truenodeids": np.int64,
    "nodes_trueleafs": np.int64,
    "nodes_falsenodeids": np.int64,
    "nodes_falseleafs": np.int64,
    "membership_values": np.float64,
}
GREATEST = np.finfo(np.float64).max
SUM = 1
LARGE = 1024  # nodes of a tree, above which runtimes are quicker if it is a node of its own
# numbers as text, so short that no runtime fails at them: 1e-299 to 1e300
NUMBER = (
    r"\s*[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?([01]?[0-9]{1,2}|2[0-5][0-9]))?\s*"
)
NUMBERS = bool | int | float
LABELS: dict[str, Any] = {"str": object, "bool": bool, "int": np.int64, "float": np.float64}
NOT_A_TIME = np.iinfo(np.int64).min
FEATURES = 5  # that a column has at most


@checked(
    path=(InstanceOf(str | os.PathLike, "str or path"), Nothing()),
    dtype=(OneOf(TYPES), Nothing()),
    missing=(InstanceOf(str, "str"),),
)
def to_onnx(
    model: Any,
    path: str | os.PathLike | None = None,
    *,
    dtype: str | None = None,
    missing: str = "",
) -> ModelProto:
    """Translate a fitted model to ONNX.

    Parameters
    ----------
    model : tree, forest or boosted model of dtrees, or TreeView
        Fitted.
    path : str, path or None, default=None
        Where to write the file; by custom with the suffix ``.onnx``.
    dtype : {"float32", "float64"} or None, default=None
        Of the inputs that are numbers. None: float32 if it holds all numbers of the table at fit
        (float32, booleans, integers of 16 bits, and categories), else float64. Rows of float64
        that are rounded to float32 may come to the other side of a threshold.
    missing : str, default=""
        What stands for a missing value in columns of strings. ONNX knows no missing strings.

    Returns
    -------
    onnx.ModelProto
        Inputs have a row for each row of the table:

        - of a model fitted on an array of numbers, "X" with all columns;
        - otherwise an input of shape (n_rows, 1) for each column, under the name of the column.

        Numbers, booleans and categories that are numbers are of `dtype`; NaN is missing. Other
        categories, and columns of numbers and categories, are strings: a number is written out,
        "2.5", in ASCII, with at most 40 digits on each side of the point and exponents up to 259;
        others are unseen. Dates and time spans are int64 nanoseconds, those of dates since 1970,
        as NumPy has them; the least int64, which is NaT, is missing.

        Outputs are "label", of the type of the labels, and "probabilities", float64
        (n_rows, n_classes), or of regressors "prediction", float64 (n_rows, n_outputs). With
        several targets of classes each has its own, by its name or number: "label_0",
        "probabilities_0", "label_1", ... Where a column has such a name, the output has an
        underscore behind it.

    Raises
    ------
    ImportError
        onnx is not installed.
    TypeError
        The model is none of these; labels or categories are neither strings nor numbers.
    ValueError
        `missing` is a category of a column, or a number where a column has numbers and categories;
        a category is no float32 where those are asked for; columns have no names, or the same.
        Columns that no tree tests may hold anything.
    sklearn.exceptions.NotFittedError, OSError
        The model is not fitted; the file cannot be written.

    Notes
    -----
    The file needs a runtime of opset 20 and of ``TreeEnsemble`` of ai.onnx.ml 5: onnxruntime 1.23
    or later. (1.21 and 1.22 fail at sets of more than 62 categories, or get them wrong.)

    Predictions are those of the model but for the rounding of sums, 1e-15. Categories that were not
    there at fit go where the model sends them; with ``handle_unknown="error"``, where missing ones
    go. The file predicts without `init_score`.

    O(nodes), and O(categories) for each test of a set. A tree of more than 1024 nodes is a node of
    the graph of its own. So large forests take a third to a half of the time for many rows, and up
    to five times as long for a single one: about 100 us for 100 trees.

    Where trees are smaller and classes more than two, a batch of n rows takes
    ``8 * n * n_trees * n_classes`` bytes to look up the shares of each tree.

    Examples
    --------
    >>> import numpy as np, onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import RandomForestClassifier
    >>> from dtrees.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    >>> file = to_onnx(forest).SerializeToString()
    >>> session = onnxruntime.InferenceSession(file)
    >>> label, probabilities = session.run(None, {"X": X})
    >>> bool((label == forest.predict(X)).all())
    True
    >>> bool(np.allclose(probabilities, forest.predict_proba(X), rtol=0, atol=1e-12))
    True
    """
    view, book = ModelNodes.with_book(model)
    if dtype is None:
        labels = [label for known in book.categories.values() for label in known.tolist()]
        narrow = book.low.dtype == np.float32 and _misfit(labels, np.float32) is None
        dtype = "float32" if narrow else "float64"
    graph = _Graph(extra("onnx", of="onnx", for_="to_onnx"), np.dtype(dtype), missing)
    matrix, places = _add_inputs(view, book, graph)
    _add_outputs(view, graph, _add_trees(view, graph, matrix, places))
    made = graph.finish()
    if path is not None:
        Path(path).write_bytes(made.SerializeToString())
    return made


@dataclass(eq=False)
class _Graph:
    """An ONNX graph in the making.

    Attributes
    ----------
    onnx : module
    dtype : dtype
        Of inputs that are numbers.
    missing : str
        What stands for missing strings.
    """

    onnx: Any
    dtype: np.dtype
    missing: str
    names: set = field(default_factory=set)

    def __post_init__(self) -> None:
        self.graph = self.onnx.GraphProto(name="dtrees")

    def fresh(self, name: str) -> str:
        """A name that nothing has so far."""
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name

    def type_of(self, dtype: Any) -> int:
        """The number that ONNX has for a type of NumPy, strings with it."""
        number: int = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return number

    def table(self, name: str, dtype: Any, *width: int) -> Any:
        """What ONNX is told of an input or output."""
        make = self.onnx.helper.make_tensor_value_info
        return make(name, self.type_of(dtype), ["rows", *width])

    def input(self, name: str, dtype: Any, width: int = 1) -> str:
        """Add an input of the model."""
        self.names.add(name)
        self.graph.input.append(self.table(name, dtype, width))
        return name

    def output(self, name: str, value: str, dtype: Any, *width: int) -> None:
        """Make a value an output of the model."""
        name = self.fresh(name)
        self.graph.node.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.graph.output.append(self.table(name, dtype, *width))

    def constant(self, array: Any) -> str:
        """Add an array that nodes read."""
        name = self.fresh(f"dtrees/constant{len(self.graph.initializer)}")
        self.graph.initializer.append(self.tensor(array, name))
        return name

    def tensor(self, array: Any, name: str = "") -> Any:
        """An array as ONNX has it."""
        return self.onnx.numpy_helper.from_array(np.asarray(array), name)

    def add(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; the name of its result."""
        name = self.fresh(f"dtrees/{op}{len(self.graph.node)}")
        node = self.onnx.helper.make_node(op, inputs, [name], domain=domain)
        for key, value in attributes.items():
            if isinstance(value, np.ndarray):  # make_attribute looks at every element
                many = node.attribute.add(name=key, type=self.onnx.AttributeProto.INTS)
                many.ints.extend(value.tolist())
            else:
                node.attribute.append(self.onnx.helper.make_attribute(key, value))
        self.graph.node.append(node)
        return name

    def cast(self, value: str, dtype: Any) -> str:
        """Add a change of the type."""
        return self.add("Cast", value, to=self.type_of(dtype))

    def finish(self) -> ModelProto:
        """The model, as the checker of ONNX has seen it."""
        import dtrees

        made: ModelProto = self.onnx.helper.make_model(
            self.graph,
            opset_imports=[self.onnx.helper.make_opsetid(*opset) for opset in OPSETS.items()],
            ir_version=IR_VERSION,
            producer_name="dtrees",
            producer_version=dtrees.__version__,
        )
        self.onnx.checker.check_model(made)
        return made


def _add_inputs(view: ModelNodes, book: CodeBook, graph: _Graph) -> tuple[str, np.ndarray]:
    """Add the inputs of a model and what they are coded with.

    Returns
    -------
    matrix : str
        What the trees read, float64 (n_rows, n_features).
    places : int64 (n_columns, FEATURES)
        Which feature a test reads; columns of one kind have one. 0: sets of categories. 1, 2:
        numbers up to a threshold; unseen categories go right, or left. 3, 4: numbers above it.
    """
    places = np.repeat(np.arange(view.n_columns)[:, np.newaxis], FEATURES, axis=1)
    if book.feature_names is None and (view.kinds == "number").all():
        return graph.cast(graph.input("X", graph.dtype, view.n_columns), np.float64), places
    counts = Counter(view.column_names)
    graph.names |= set(counts)
    wrong = [name for name, count in counts.items() if count > 1 or not name]
    if wrong:
        raise ValueError(
            f"to_onnx needs columns with names, no two of them equal. Got {str(wrong)[1:-1]}."
        )
    features: list[str] = []
    tested = set(view.tested.tolist()) or {0}  # of one leaf: any column
    for column, (name, kind) in enumerate(zip(view.column_names, view.kinds, strict=True)):
        labels = book.categories[column].tolist() if column in book.categories else []
        are_numbers = kind != "hybrid" and all(isinstance(label, NUMBERS) for label in labels)
        of_labels = graph.dtype if are_numbers else object
        cells = graph.input(name, np.int64 if kind == "time" else of_labels)
        if column not in tested:
            continue
        if kind == "time":
            found = [_times(graph, cells)]
        elif kind == "number":
            found = [graph.cast(cells, np.float64)]
        elif kind == "hybrid":
            found = _hybrid(graph, cells, name, labels)
        else:
            found = [graph.cast(_categories(graph, cells, name, labels, are_numbers), np.float64)]
        places[column] = len(features) + np.arange(FEATURES) % len(found)
        features += found
    return graph.add("Concat", *features, axis=1), places


def _times(graph: _Graph, value: str) -> str:
    """Add what makes numbers of times; NaT becomes NaN."""
    is_missing = graph.add("Equal", value, graph.constant(np.int64(NOT_A_TIME)))
    nan = graph.constant(np.float64(np.nan))
    return graph.add("Where", is_missing, nan, graph.cast(value, np.float64))


def _misfit(labels: list, dtype: Any) -> Any:
    """A number among labels that is none of a type of floats; None where there is none."""
    with np.errstate(over="ignore"):
        return next((x for x in labels if isinstance(x, NUMBERS) and float(dtype(x)) != x), None)


def _categories(graph: _Graph, cells: str, name: str, labels: list, are_numbers: bool) -> str:
    """Add a look-up of the numbers of categories: what is no key is unseen."""
    wrong = _misfit(labels, graph.dtype.type) if are_numbers else None
    if wrong is not None:
        raise ValueError(
            f"Column {name!r} has the category {wrong!r}, which is no {graph.dtype.name}."
            + (" Give dtype='float64'." if graph.dtype == np.float32 else "")
        )
    if not are_numbers and not all(isinstance(label, str) for label in labels):
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"Column {name!r} has categories of {', '.join(kinds)}, which ONNX cannot hold: only "
            "strings, or only numbers."
        )
    if graph.missing in labels:
        raise ValueError(
            f"missing={graph.missing!r} is a category of column {name!r}. Give another string, "
            "which stands for missing values."
        )
    n, missing = len(labels), np.nan if are_numbers else graph.missing
    return graph.add(
        *("LabelEncoder", cells),
        domain=ML,
        keys_tensor=graph.tensor(
            np.array([*labels, missing], dtype=graph.dtype if are_numbers else object)
        ),
        values_tensor=graph.tensor(np.array([*range(1, n + 1), n + 2])),
        default_tensor=graph.tensor(np.array([n + 1])),
    )


def _hybrid(graph: _Graph, cells: str, name: str, labels: list) -> list[str]:
    """Add a column of numbers and categories; its features."""
    if re.fullmatch(NUMBER, graph.missing):
        raise ValueError(
            f"missing={graph.missing!r} is a number, and column {name!r} has numbers, too. Give "
            "another string, which stands for missing values."
        )
    n = len(labels)
    is_number = graph.add("RegexFullMatch", cells, pattern=NUMBER)
    nan = graph.constant(np.array("NaN", dtype=object))
    number = graph.cast(graph.add("Where", is_number, cells, nan), np.float64)
    category = _categories(graph, cells, name, labels, False)
    category = graph.add("Where", is_number, graph.constant(np.int64(n + 3)), category)
    found = [graph.cast(category, np.float64)]
    for known, unseen in ((1, 1), (1, -1), (-1, -1), (-1, 1)):  # as `places` numbers them
        fill = np.full(n + 4, np.copysign(np.inf, known))
        fill[n + 1 : n + 3] = np.copysign(np.inf, unseen), np.nan
        filled = graph.add("Gather", graph.constant(fill), category)
        found.append(graph.add("Where", is_number, number, filled))
    return found


def _add_trees(view: ModelNodes, graph: _Graph, matrix: str, places: np.ndarray) -> str:
    """Add the trees; raw predictions or means of values, float64 (n_rows, n_outputs).

    A runtime takes some rows through all trees of a node, then the next ones. Of large trees it
    would read all from memory for each few rows, so each of those is a node of its own.
    """
    trees = list(enumerate(view.trees))
    groups = [[number] for number, tree in trees if tree.n_nodes > LARGE]
    small = [number for number, tree in trees if tree.n_nodes <= LARGE]
    sums = (_add_sum(view, graph, matrix, places, group) for group in [*groups, small] if group)
    result = reduce(lambda total, part: graph.add("Add", total, part), sums)
    if view.start is not None:
        return graph.add("Add", result, graph.constant(view.start.astype(np.float64)))
    result = graph.add("Div", result, graph.constant(np.float64(len(view.trees))))
    if not _are_two_shares(view):
        return result
    first_share = graph.add("Sub", graph.constant(np.float64(1)), result)
    return graph.add("Concat", first_share, result, axis=1)


def _are_two_shares(view: ModelNodes) -> bool:
    """Whether leaves have the shares of two classes, of one target."""
    tree = view.trees[0].coded_tree
    return view.start is None and tree.n_values == 2 and view.n_targets == 1


def _add_sum(
    view: ModelNodes, graph: _Graph, matrix: str, places: np.ndarray, numbers: list[int]
) -> str:
    """Add some trees; the sum of their values.

    A leaf of ``TreeEnsemble`` adds one number to one target. Two shares add up to one, so the
    second is enough. Of more values, each tree says the number of the leaf, and they are looked up.
    """
    adds, n_values = view.start is not None, view.trees[0].n_values
    looks_up = n_values > 1 and not _are_two_shares(view)
    n_targets = len(numbers) if looks_up else view.n_outputs if adds else 1
    # the first leaves are of no tree: onnxruntime before 1.24 takes a root for a leaf if its
    # children, a node and a leaf, have the same number
    n_nodes, n_leaves = 0, 2
    roots, parts = [], []
    values, targets = [np.zeros((2, n_values if looks_up else 1))], [0, 0]
    for place, number in enumerate(numbers):
        tree = view.trees[number]
        parts.append(_nodes_of(tree, places, n_nodes, n_leaves))
        values.append(tree.value[tree.is_leaf][:, -values[0].shape[1] :])
        targets += [(place if looks_up else number) % n_targets] * len(values[-1])
        roots.append(n_nodes)
        n_nodes += len(parts[-1][0])
        n_leaves += len(values[-1])
    of_leaves = np.concatenate(values)
    inner: dict[str, Any] = {
        key: np.concatenate(arrays).astype(dtype)
        for (key, dtype), arrays in zip(INNER.items(), zip(*parts, strict=True), strict=True)
    }
    result = graph.add(
        *("TreeEnsemble", matrix),
        domain=ML,
        n_targets=n_targets,
        aggregate_function=SUM,
        post_transform=0,
        tree_roots=np.array(roots),
        leaf_targetids=np.array(targets),
        leaf_weights=graph.tensor(np.arange(0.0, n_leaves) if looks_up else of_leaves[:, 0]),
        **{k: x if x.dtype == np.int64 else graph.tensor(x) for k, x in inner.items() if len(x)},
    )
    if not looks_up:
        return result
    found = graph.add("Gather", graph.constant(of_leaves), graph.cast(result, np.int64))
    return graph.add("ReduceSum", found, graph.constant(np.array([1])), keepdims=0)


def _nodes_of(
    tree: TreeNodes, places: np.ndarray, first_node: int, first_leaf: int
) -> list[np.ndarray]:
    """What ``TreeEnsemble`` reads of the nodes of a tree that are no leaves, as `INNER` has it."""
    is_leaf, inner = tree.is_leaf, _preorder(tree)
    if len(inner) == 0:  # a root of which both children are the leaf
        return [np.array([x]) for x in (0, 0, 0.0, 0, first_leaf, 1, first_leaf, 1)] + [inner]
    first, second, swaps = tree.sides(inner)
    which = np.where(tree.is_set, 0, 1 + 2 * tree.is_above + tree.unseen_left)
    rank = np.cumsum(is_leaf) - 1
    rank[inner] = np.arange(len(inner))
    number = rank + np.where(is_leaf, first_leaf, first_node)
    return [
        MODES[tree.test[inner]],
        places[tree.column[inner], which[inner]],
        np.where(tree.is_set, 0, np.minimum(tree.threshold, GREATEST))[inner],
        tree.missing_left[inner] & ~swaps,
        *(number[first], is_leaf[first], number[second], is_leaf[second]),
        _sets(tree, inner, rank),
    ]


def _preorder(tree: TreeNodes) -> np.ndarray:
    """The inner nodes in preorder of `sides`: a reader may take the sets in the order of visits."""
    inner = np.flatnonzero(~tree.is_leaf)
    first, second, swaps = tree.sides(inner)
    if not swaps.any():
        return inner
    pairs = zip(second.tolist(), first.tolist(), strict=True)
    children = dict(zip(inner.tolist(), pairs, strict=True))
    found, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        if node in children:
            found.append(node)
            waiting.extend(children[node])
    return np.array(found)


def _sets(tree: TreeNodes, inner: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """The sets of a tree by the rank of nodes, each with NaN behind it."""
    nodes = [inner[tree.is_set[inner]]]
    codes = [np.full(len(nodes[0]), np.nan)]
    for _, here, members in tree.sets(inner):
        side = tree.missing_left[here]
        others = [tree.unseen_left[here] != side, np.zeros_like(side), side]  # codes behind n
        which, code = np.nonzero(np.column_stack([members, *others]))
        nodes.append(here[which])
        codes.append(code + 1.0)
    every, node = np.concatenate(codes), np.concatenate(nodes)
    return every[np.lexsort((every, rank[node]))]  # NaN is sorted last


def _add_outputs(view: ModelNodes, graph: _Graph, raw: str) -> None:
    """Add what is predicted, of each target."""
    tree, classes, adds = view.trees[0].coded_tree, view.classes, view.start is not None
    if view.n_targets == 1 or (classes is None and tree.is_regression):
        _add_predictions(graph, raw, view.link, classes, view.n_outputs, tree.is_regression)
        return
    first = 0
    every = list(map(len, classes)) if classes else tree.n_classes
    for k, (name, n_classes) in enumerate(zip(view.targets, every, strict=True)):
        n = 1 if adds and n_classes == 2 else n_classes
        link = {1: "identity", 2: "logit"}.get(n_classes, "softmax") if adds else "identity"
        own = graph.add("Gather", raw, graph.constant(np.arange(first, first + n)), axis=1)
        _add_predictions(graph, own, link, classes and classes[k], n, False, f"_{name}")
        first += n


def _add_predictions(
    graph: _Graph, raw: str, link: str, classes: Any, n: int, are_numbers: bool, name: str = ""
) -> None:
    """Add what is predicted of `n` raw predictions: the link, and the labels of the classes."""
    if link == "softmax":
        raw = graph.add("Softmax", raw, axis=1)
    elif link == "logit":
        # of both signs: 1 - share would lose what is small
        both, n = graph.add("Concat", graph.add("Neg", raw), raw, axis=1), 2
        raw = graph.add("Sigmoid", both)
    elif link == "log":
        raw = graph.add("Exp", raw)
    if classes is None:
        graph.output("prediction" if are_numbers else f"probabilities{name}", raw, float, n)
        return
    labels = _class_labels(classes)
    best = graph.add("ArgMax", raw, axis=1, keepdims=0)
    graph.output(f"label{name}", graph.add("Gather", graph.constant(labels), best), labels.dtype)
    graph.output(f"probabilities{name}", raw, float, n)


def _class_labels(classes: np.ndarray) -> np.ndarray:
    """Labels of classes as an array of ONNX."""
    labels = classes.tolist()
    kinds = sorted({"str" if isinstance(x, str) else type(x).__name__ for x in labels})
    dtype = LABELS.get(" ".join(kinds))
    if dtype is not None and not (dtype is np.int64 and max(labels) >= 2**63):
        return np.array(labels, dtype=dtype)
    raise TypeError(
        f"The classes are of {', '.join(kinds)}, which ONNX cannot hold: only strings, or only "
        "numbers of one type, whole ones below 2**63."
    )
