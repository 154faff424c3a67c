"""Trees as one array per attribute, and apart again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import BaggingRegressor, RandomForestClassifier
from dtrees.core.model.flat import Shape, flatten, split_trees
from dtrees.core.model.tree import UNITS, Tree

WORDS = np.array(list("abcdefgh") * 40, dtype=object)
X = np.column_stack([WORDS, np.linspace(0, 1, 320).astype(object)])
Y = (np.arange(320) * 7 % 11).astype(float)


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(3, random_state=0), BaggingRegressor(3, random_state=0)],
    ids=["classes", "means"],
)
@pytest.mark.parametrize("n_trees", [1, 3])
def test_there_and_back(model, n_trees):
    trees = model.fit(X, Y > 5 if "Classifier" in type(model).__name__ else Y).forest_.trees
    arrays, facts = flatten(trees[:n_trees])
    assert set(arrays) == {*trees[0].arrays(), "n_nodes", "n_words", *UNITS}
    assert facts == {"n_columns": 2, "criterion": trees[0].criterion}
    assert len(arrays["subset_words"]) > 0
    n_nodes, n_words = arrays.pop("n_nodes"), arrays.pop("n_words")
    units = {name: arrays.pop(name) for name in UNITS}
    words = arrays.pop("subset_words")
    found = split_trees(arrays, words, n_nodes, n_words, units=units, **facts)
    assert all(isinstance(tree, Tree) for tree in found)
    assert [a.equals(b) for a, b in zip(trees, found, strict=False)] == [True] * n_trees


@pytest.mark.parametrize("largest", [1, 2**31])
def test_trees_of_stretches_are_those_of_arrays(largest):
    """Locked, and with counts that are as wide as they have to be in each of them."""
    trees = RandomForestClassifier(2, random_state=0).fit(X, Y > 5).forest_.trees
    arrays, facts = flatten(trees)
    n_nodes, n_words = arrays.pop("n_nodes"), arrays.pop("n_words")
    units = {name: arrays.pop(name) for name in UNITS}
    words = arrays.pop("subset_words")
    if largest > 1:
        arrays["statistics"] = arrays["statistics"].astype(np.int64)
        arrays["statistics"][0] = largest
    found = split_trees(arrays, words, n_nodes, n_words, units=units, **facts)
    assert [tree.statistics.dtype for tree in found] == [
        np.int32 if largest == 1 else np.int64,
        np.int32,
    ]
    for tree in found:
        made = Tree(**{name: np.array(array) for name, array in tree.arrays().items()}, **facts)
        assert made.equals(tree)
        assert not any(array.flags.writeable for array in tree.arrays().values())
    assert arrays["code"].flags.writeable  # what was given is as it was


@given(st.lists(st.booleans(), min_size=1, max_size=14), st.integers(1, 4))
def test_bits_are_a_shape_or_an_error(bits, n_trees):
    is_inner = np.array(bits)
    sizes = [len(part) for part in np.array_split(is_inner, min(n_trees, len(bits)))]

    def end_of(node, stop):
        if node >= stop:
            raise ValueError
        if not bits[node]:
            return node + 1
        right[node] = end_of(node + 1, stop)
        return end_of(right[node], stop)

    right: dict[int, int] = {}
    start, fine = 0, True
    for size in sizes:
        try:
            fine &= end_of(start, start + size) == start + size
        except ValueError:
            fine = False
        start += size
    if not fine:
        with pytest.raises(ValueError, match="preorder"):
            Shape(is_inner, np.array(sizes))
        return
    shape = Shape(is_inner, np.array(sizes))
    assert dict(zip(shape.inner.tolist(), shape.right.tolist(), strict=True)) == right
