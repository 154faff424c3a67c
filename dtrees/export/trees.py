"""Trees in model files, and alone: what a long fit leaves behind on its way.

Trees alone are the same archive as that of `dtrees.export`, with the trees and nothing else::

    model.json              "format": "dtrees trees", "version", "trees", "sets"
    trees/<name>.npy        arrays of the trees

What the trees are of, the codebook among it, is known to whoever reads them. Each has the number
of the training set that it is of.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.core.data.criteria import CRITERIA, REGRESSION
from dtrees.core.model import packing
from dtrees.core.model.flat import DTYPES, TYPES, Shape, flatten, n_classes_of, split_trees
from dtrees.core.model.tree import (
    ABOVE,
    AT_MOST,
    IN_SUBSET,
    LEAF,
    NO_CHILD,
    NO_FEATURE,
    UNITS,
    Tree,
)
from dtrees.export.archive import Archive, Taken, write_to
from dtrees.export.books import expect

FORMAT = "dtrees trees"
VERSION = 1
LAYOUTS = ("compact", "flat")


def little(array: np.ndarray) -> np.ndarray:
    """An array's numbers in little-endian order."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def encode_trees(
    trees: tuple[Tree, ...], layout: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Trees as JSON and arrays; flat where they cannot be packed."""
    packed = packing.pack(trees) if layout == "compact" else None
    if packed is not None:
        arrays, facts = packed
        return {"layout": "compact", **facts}, arrays
    arrays, facts = flatten(trees)
    return {"layout": "flat", **facts}, arrays


def decode_trees(document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[Tree, ...]:
    """The trees behind a document and their arrays."""
    layout = document["layout"]
    expect(layout in LAYOUTS, "the layout of the trees")
    expect(document["criterion"] in CRITERIA, "the criterion")
    if layout == "compact":
        return packing.unpack(arrays, document)
    n_nodes, n_words = arrays["n_nodes"], arrays["n_words"]
    units = {name: arrays[name] for name in UNITS}
    n_statistics = arrays["statistics"].shape[-1]
    n_outputs = n_statistics - 1 if document["criterion"] in REGRESSION else 1
    n_classes = n_classes_of(document, n_statistics)
    for each in (n_nodes, n_words, units["weight_unit"]):
        expect(each.shape == n_nodes.shape == (len(n_nodes),), "the number of trees")
    for each in (units["unit"], units["offset"]):
        sizes = (len(n_nodes), n_outputs) if n_outputs > 1 else (len(n_nodes),)
        expect(each.shape == sizes, "the number of trees or outputs")
    expect(n_nodes.dtype == n_words.dtype == np.int64, "the number of nodes")
    expect(all(each.dtype == np.float64 for each in units.values()), "the units")
    weight_unit = units["weight_unit"]
    expect(bool((np.isfinite(weight_unit) & (weight_unit > 0)).all()), "the unit of the weights")
    expect(len(n_nodes) > 0 and 0 < n_nodes.min() <= n_nodes.max() < 2**31, "the number of nodes")
    all_of = {name: arrays[name] for name in DTYPES}
    words = all_of.pop("subset_words")
    expect(0 <= n_words.min() <= n_words.max() <= len(words), "the number of words")
    for name, array in all_of.items():
        width = 2 if name == "statistics" else 1
        expect(array.dtype in TYPES[name] and array.ndim == width, f"the array {name}")
        expect(len(array) == n_nodes.sum(), f"the length of {name}")
    expect(words.dtype == np.uint64 and words.shape == (int(n_words.sum()),), "the subsets")
    shape = Shape(all_of["test"] != LEAF, n_nodes)
    check_flat(all_of, shape, n_words)
    return split_trees(
        all_of,
        words,
        n_nodes,
        n_words,
        n_columns=int(document["n_columns"]),
        criterion=document["criterion"],
        units=units,
        n_classes=n_classes,
    )


def check_flat(all_of: Mapping[str, np.ndarray], shape: Shape, n_words: np.ndarray) -> None:
    """Whether arrays as they are in memory are those of trees."""
    inner, leaves = shape.inner, shape.leaves
    own = shape.start[shape.tree[inner]]
    left, right = all_of["children_left"], all_of["children_right"]
    expect(bool((left[inner] + own == inner + 1).all()), "the left children")
    expect(bool((right[inner] + own == shape.right).all()), "the right children")
    expect(bool((left[leaves] == NO_CHILD).all() and (right[leaves] == NO_CHILD).all()),
           "the children of a leaf")  # fmt: skip
    expect(bool((all_of["feature"][leaves] == NO_FEATURE).all()), "the column of a leaf")
    expect(int(all_of["test"].max()) <= IN_SUBSET, "the test of a node")
    expect(int(all_of["missing_go_to_left"].max()) <= 1, "the way of missing values")
    offset = all_of["subset_offset"]
    expect(bool((offset >= -1).all() and (offset < n_words[shape.tree]).all()),
           "where subsets begin")  # fmt: skip
    expect(bool(((offset >= 0) == (all_of["test"] == IN_SUBSET)).all()), "which nodes have subsets")


def check_trees(trees: tuple[Tree, ...], book: CodeBook) -> None:
    """Whether trees ask what a codebook's columns can answer."""
    for tree in trees:
        inner = np.flatnonzero(tree.test != LEAF)
        test, column, code = tree.test[inner], tree.feature[inner], tree.code[inner]
        expect(tree.n_columns == book.n_columns, "the number of columns")
        expect(bool(((column >= 0) & (column < book.n_columns)).all()), "the column of a node")
        n_ordered, n_codes = book.n_ordered[column], book.n_codes[column]
        compares = (test == AT_MOST) | (test == ABOVE)
        expect(bool((n_ordered[compares] > 0).all()), "the test of a node")
        # trees that a warm start has kept have codes of another table, which nobody looks up
        expect(bool(((code <= n_codes) | (n_codes == n_ordered)).all()), "the code of a node")
        expect(not np.isnan(tree.threshold[inner][compares]).any(), "the threshold of a node")
        expect(bool((n_codes > n_ordered)[~compares].all()), "the test of a node")
        needed = n_codes[~compares] // 64 + 1
        room = len(tree.subset_words) - tree.subset_offset[inner][~compares]
        expect(bool((needed <= room).all()), "the subset of a node")
        expect(tree.statistics.shape[1] == trees[0].statistics.shape[1], "the statistics")


def trees_to_bytes(units: Sequence[tuple[int, Tree]]) -> bytes:
    """Trees of one codebook, at least one, with the numbers of their sets; bytes of a file."""
    sets, trees = zip(*units, strict=True)
    facts, arrays = encode_trees(trees, "compact")
    document = {"format": FORMAT, "version": VERSION, "trees": facts, "sets": list(sets)}
    file = io.BytesIO()
    write_to(file, document, {f"trees/{name}": little(each) for name, each in arrays.items()})
    return file.getvalue()


def trees_of_bytes(data: bytes, name: str, book: CodeBook) -> list[tuple[int, Tree]]:
    """The trees that were written, bit for bit, with the numbers of their sets.

    Parameters
    ----------
    data : bytes
    name : str
        Of the file, for messages.
    book : CodeBook
        Whose columns the trees ask.

    Raises
    ------
    ModelFileError
        The bytes are damaged, of a newer version, or no trees.
    """
    archive = Archive(name, False, data)
    archive.expect_format(FORMAT, VERSION)
    with archive.reading():
        own = {
            key.removeprefix("trees/"): each.astype(each.dtype.newbyteorder("="), copy=False)
            for key, each in archive.arrays().items()
        }
        arrays = Taken(own)
        trees = decode_trees(archive.document["trees"], arrays)
        expect(not arrays.left(), "a member that is part of no tree")
        check_trees(trees, book)
        sets = archive.document["sets"]
        expect(isinstance(sets, list) and len(sets) == len(trees), "the number of sets")
        expect(all(type(each) is int and each >= 0 for each in sets), "the numbers of the sets")
    return list(zip(sets, trees, strict=True))
