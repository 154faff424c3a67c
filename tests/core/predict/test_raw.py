"""Prediction: every way into the kernels gives the leaf of a slow walk on Python values."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from dtrees import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.coding import CodeBook
from dtrees.core.model.tree import (
    ABOVE,
    AT_MOST,
    IN_SUBSET,
    LEAF,
    NO_CHILD,
    NO_FEATURE,
    Forest,
    Tree,
)
from dtrees.core.predict import packed_forest, raw
from dtrees.exceptions import UnseenCategoryError
from dtrees.parallel import threaded
from dtrees.typing import serial

pandas = pytest.importorskip("pandas")

SEEDS = st.integers(0, 2**32 - 1)


def random_tree(book: CodeBook, n_leaves: int, seed: int, values: np.ndarray | None = None) -> Tree:
    """A tree with random tests that are possible on the columns of a codebook."""
    rng = np.random.default_rng(seed)
    usable = np.flatnonzero(book.n_codes > 0)
    nodes: list[dict] = []
    words: list[np.ndarray] = []

    def grow(leaves: int) -> int:
        me = len(nodes)
        node = {"feature": NO_FEATURE, "left": NO_CHILD, "right": NO_CHILD, "test": LEAF}
        node |= {"threshold": np.nan, "missing_left": 0, "subset": -1}
        node["weight"] = float(rng.integers(1, 50))
        nodes.append(node)
        if leaves == 1 or len(usable) == 0:
            return me
        j = int(rng.choice(usable))
        n_codes, n_ordered = int(book.n_codes[j]), int(book.n_ordered[j])
        tests = [AT_MOST] * (n_ordered > 0) + [IN_SUBSET] * (n_ordered < n_codes)
        node["test"] = int(rng.choice(tests + [ABOVE] * (0 < n_ordered < n_codes)))
        node["feature"], node["missing_left"] = j, int(rng.integers(2))
        if node["test"] == IN_SUBSET:
            bits = rng.random(64 * (n_codes // 64 + 1)) < 0.5
            bits[1 : n_ordered + 1] = rng.random() < 0.5
            bits[0] = node["missing_left"]
            node["subset"] = sum(map(len, words))
            words.append(np.packbits(bits, bitorder="little").view(np.uint64))
        else:
            known = book.low[book.offsets[j] : book.offsets[j + 1]].astype(float)
            node["threshold"] = float(rng.choice([*known, *(known - 0.25), np.inf]))
        here = int(rng.integers(1, leaves))
        node["left"] = grow(here)
        node["right"] = grow(leaves - here)
        return me

    grow(n_leaves)
    column = {name: np.array([node[name] for node in nodes]) for name in nodes[0]}
    n = len(nodes)
    weight = column["weight"].astype(np.int64)
    of_first = rng.integers(0, 2 * weight + 1)
    return Tree(
        feature=column["feature"].astype(np.int32),
        children_left=column["left"].astype(np.int32),
        children_right=column["right"].astype(np.int32),
        test=column["test"].astype(np.uint8),
        code=np.zeros(n, dtype=np.uint32),
        threshold=column["threshold"].astype(np.float64),
        missing_go_to_left=column["missing_left"].astype(np.uint8),
        subset_offset=column["subset"].astype(np.int64),
        subset_words=np.concatenate([np.empty(0, np.uint64), *words]),
        n_node_samples=np.ones(n, dtype=np.int64),
        statistics=np.column_stack([of_first, 2 * weight - of_first]),
        impurity=np.zeros(n),
        gain=np.zeros(n),
        n_columns=book.n_columns,
        criterion="gini",
    )


def slow_leaf(tree: Tree, book: CodeBook, row: list) -> int:
    """The leaf of one row of float, str or None; what the tests mean, by their words."""
    node = 0
    while tree.test[node] != LEAF:
        j = int(tree.feature[node])
        value = row[j]
        left = tree.children_left[node]
        right = tree.children_right[node]
        known = list(book.categories.get(j, ()))
        is_number = isinstance(value, (int, float)) and book.n_ordered[j] > 0
        is_new = not is_number and value not in known
        if value is None or value != value or (is_new and book.handle_unknown == "missing"):
            goes_left = bool(tree.missing_go_to_left[node])
        elif is_new:
            heavier = tree.weighted_n_node_samples[left] > tree.weighted_n_node_samples[right]
            goes_left = bool(heavier)
        elif tree.test[node] == AT_MOST:
            goes_left = is_number and value <= tree.threshold[node]
        elif tree.test[node] == ABOVE:
            goes_left = is_number and value > tree.threshold[node]
        else:
            code = 1 if is_number else int(book.n_ordered[j]) + 1 + known.index(value)
            word = tree.subset_words[tree.subset_offset[node] + code // 64]
            goes_left = bool(int(word) >> (code % 64) & 1)
        node = int(left if goes_left else right)
    return node


def slow_leaves(tree, book, rows) -> np.ndarray:
    return np.array([slow_leaf(tree, book, list(row)) for row in rows])


def numbers(n_rows: int, n_columns: int, seed: int, missing: float = 0.2) -> np.ndarray:
    """Small whole numbers, some missing, so that values fall on thresholds."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n_rows, n_columns)).astype(np.float64)
    X[rng.random(X.shape) < missing] = np.nan
    return X


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "read only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "byteswapped": lambda X: X.astype(X.dtype.newbyteorder("S")),
    "unaligned": lambda X: (
        np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(X.dtype).reshape(X.shape)
    ),
}


class TestNumbers:
    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "longdouble"])
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_every_layout(self, layout, dtype):
        X = numbers(300, 5, seed=1).astype(dtype)
        book, _ = CodeBook.fit_encode(X)
        tree = random_tree(book, 30, seed=2)
        laid = LAYOUTS[layout](X)
        expected = slow_leaves(tree, book, X.astype(float).tolist())
        np.testing.assert_array_equal(raw.apply(tree, book, laid), expected)

    @given(SEEDS, st.integers(1, 40), st.integers(1, 40))
    def test_any_size(self, seed, n_rows, n_leaves):
        X = numbers(n_rows, 3, seed)
        book, _ = CodeBook.fit_encode(X)
        tree = random_tree(book, n_leaves, seed)
        expected = slow_leaves(tree, book, X.tolist())
        np.testing.assert_array_equal(raw.apply(tree, book, X), expected)

    def test_float32_is_compared_in_float64(self):
        book, _ = CodeBook.fit_encode(np.array([[0.1], [0.2]], dtype=np.float32))
        tree = random_tree(book, 2, seed=0)
        tree = replace(tree, threshold=np.array([0.1, np.nan, np.nan]))
        # the float32 nearest to 0.1 is above the float64 0.1
        X = np.array([[0.1]])
        assert raw.apply(tree, book, X)[0] == 1
        assert raw.apply(tree, book, X.astype(np.float32))[0] == 2

    def test_dates_are_nanoseconds(self):
        days = pandas.date_range("2020-01-01", periods=50, freq="D").to_series()
        frame = pandas.DataFrame({"day": days.where(days.dt.day != 7)})
        book, _ = CodeBook.fit_encode(frame)
        tree = random_tree(book, 8, seed=7)
        rows = [[None if d != d else float(d.value)] for d in frame["day"]]
        expected = slow_leaves(tree, book, rows)
        np.testing.assert_array_equal(raw.apply(tree, book, frame), expected)
        seconds = frame.astype("datetime64[s]")
        np.testing.assert_array_equal(raw.apply(tree, book, seconds), expected)

    def test_against_scikit_learn(self):
        X, y = make_classification(2000, 12, n_informative=8, flip_y=0.2, random_state=0)
        X = X.astype(np.float32)
        fitted = DecisionTreeClassifier(random_state=0).fit(X, y)
        grown = fitted.tree_
        book, _ = CodeBook.fit_encode(X)
        inner = grown.children_left >= 0
        n = grown.node_count
        blank = random_tree(book, 1, seed=0)
        tree = replace(
            blank,
            feature=grown.feature.astype(np.int32),
            children_left=grown.children_left.astype(np.int32),
            children_right=grown.children_right.astype(np.int32),
            test=inner.astype(np.uint8),
            code=np.zeros(n, dtype=np.uint32),
            threshold=grown.threshold.copy(),
            missing_go_to_left=np.zeros(n, dtype=np.uint8),
            subset_offset=np.full(n, -1),
            n_node_samples=grown.n_node_samples.copy(),
            statistics=np.outer(grown.n_node_samples, [1, 1]),
        )
        rng = np.random.default_rng(1)
        rows = X + rng.normal(0, 0.3, X.shape).astype(np.float32)
        leaves = raw.apply(tree, book, rows)
        np.testing.assert_array_equal(leaves, fitted.apply(rows))
        ours, theirs = raw.decision_path(tree, leaves), fitted.decision_path(rows)
        assert ours.dtype == theirs.dtype
        assert ours.has_canonical_format
        np.testing.assert_array_equal(ours.indptr, theirs.indptr)
        np.testing.assert_array_equal(ours.indices, theirs.indices)


def mixed_frame(n_rows: int, seed: int, new: bool = False) -> tuple[object, list[list]]:
    """Ordered, categorical and hybrid columns; ``new``: with values that were not there at fit."""
    rng = np.random.default_rng(seed)
    letters = [f"c{i}" for i in range(90)]
    number = numbers(n_rows, 1, seed)[:, 0] + new * 0.2
    whole = rng.integers(0, 5, n_rows)
    town = rng.choice([*letters, *["unheard of"] * 9 * new], n_rows)
    kind = [None if rng.random() < 0.2 else str(k) for k in rng.choice(list("xyz"), n_rows)]
    hybrid = [
        None if k < 2 else f"h{k % 4}" if k < 8 else float(k) + new * 0.3
        for k in rng.integers(0, 16, n_rows)
    ]
    if new:
        hybrid = [value if rng.random() < 0.9 else "unheard of" for value in hybrid]
    frame = pandas.DataFrame(
        {
            "number": number,
            "town": town,
            "whole": whole,
            "kind": pandas.Categorical(kind, categories=["z", "nowhere", "x", "y"]),
            "hybrid": pandas.Series(hybrid, dtype=object),
        }
    )
    cells = [number.tolist(), town.tolist(), whole.astype(float).tolist(), kind, hybrid]
    return frame, [list(row) for row in zip(*cells, strict=True)]


class TestMixed:
    def test_numbers_as_categories(self):
        X = numbers(300, 3, seed=8, missing=0.1)
        book, _ = CodeBook.fit_encode(X, categorical_features=[1], handle_unknown="majority")
        tree = random_tree(book, 30, seed=9)
        other = X.copy()
        other[::7, 1] = 99.0
        seen = other.copy()
        seen[seen[:, 1] == -1, 1] = np.nan  # the code of no category
        expected = slow_leaves(tree, book, seen.tolist())
        np.testing.assert_array_equal(raw.apply(tree, book, other), expected)

    def test_unseen_is_an_error_in_columns_that_are_used(self):
        X = pandas.DataFrame({"a": list("xyxy"), "b": list("uvuv")})
        book, _ = CodeBook.fit_encode(X, handle_unknown="error")
        tree = random_tree(book, 2, seed=1)
        used, unused = (X.columns[k] for k in (tree.feature[0], 1 - tree.feature[0]))
        raw.apply(tree, book, X.assign(**{unused: ["new", *X[unused][1:]]}))
        with pytest.raises(UnseenCategoryError, match=f"'new' in column '{used}'"):
            raw.apply(tree, book, X.assign(**{used: ["new", *X[used][1:]]}))
        for name in (used, unused):  # none of the values is known
            with pytest.raises(UnseenCategoryError, match=f"Column '{name}' of X: none of its"):
                raw.apply(tree, book, X.assign(**{name: "new"}))
        # a category that the type knows and no row holds is not there
        known = pandas.Categorical(list("xyxy"), categories=list("xyzn"))
        raw.apply(tree, book, X.assign(a=known, b=list("uvuv")))


def test_decision_path_holds_all_ancestors():
    X = numbers(100, 3, seed=18)
    book, _ = CodeBook.fit_encode(X)
    tree = random_tree(book, 25, seed=19)
    leaves = raw.apply(tree, book, X)
    path = raw.decision_path(tree, leaves)
    assert path.shape == (100, tree.node_count)
    assert path.format == "csr"
    assert path.dtype == np.int64
    parent = {}
    for node in range(tree.node_count):
        parent[int(tree.children_left[node])] = parent[int(tree.children_right[node])] = node
    for row, leaf in enumerate(leaves):
        expected, node = [int(leaf)], int(leaf)
        while node:
            node = parent[node]
            expected.insert(0, node)
        assert path[[row]].indices.tolist() == expected


class TestBrokenTrees:
    """A tree may come from a file: a clear error, never a crash or an endless walk."""

    @pytest.fixture
    def fitted(self):
        frame, _ = mixed_frame(300, seed=20)
        book, _ = CodeBook.fit_encode(frame)
        tree = random_tree(book, 40, seed=21)
        raw.apply(tree, book, frame)
        return tree, book, frame

    def test_a_test_that_its_column_cannot_have(self, fitted):
        tree, book, frame = fitted
        flipped = tree.test.copy()
        flipped[tree.test == IN_SUBSET] = AT_MOST
        with pytest.raises(ValueError, match="not a number"):
            raw.apply(replace(tree, test=flipped), book, frame)

    def test_lengths(self, fitted):
        tree, book, frame = fitted
        with pytest.raises(ValueError, match="differ in length"):
            raw.apply(replace(tree, threshold=tree.threshold[:-1].copy()), book, frame)
        with pytest.raises(ValueError, match="5 columns, its codebook 1"):
            raw.apply(tree, CodeBook.fit_encode(frame[["number"]])[0], frame[["number"]])

    def test_dtypes(self, fitted):
        tree, book, frame = fitted
        with pytest.raises(ValueError, match="Buffer dtype mismatch"):
            raw.apply(replace(tree, feature=tree.feature.astype(np.int64)), book, frame)


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("pack", [raw.pack, packed_forest.pack_forest])
def test_a_packed_tree_is_forgotten_with_its_tree(pack):
    X = numbers(50, 3, seed=24)
    book, _ = CodeBook.fit_encode(X)
    tree = random_tree(book, 20, seed=25)
    assert pack(tree, book) is pack(tree, book)
    packed, gone = pack(tree, book), weakref.ref(tree)
    other = replace(book)
    assert pack(tree, other) is not packed
    del tree, packed
    gc.collect()
    assert gone() is None


def test_a_tree_that_is_too_large_to_pack_is_forgotten_too(monkeypatch):
    monkeypatch.setattr(packed_forest, "MOST_THRESHOLDS", 2)
    X = numbers(50, 3, seed=24)
    book, _ = CodeBook.fit_encode(X)
    tree = random_tree(book, 20, seed=25)
    assert packed_forest.pack_forest(tree, book) == (tree,)
    assert packed_forest.pack_forest(tree, book) == (tree,)
    gone = weakref.ref(tree)
    del tree
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("n_rows", [1, 300, 9_000])
def test_values_of_many_trees_block_by_block(n_rows):
    X, y = make_classification(max(n_rows, 200), random_state=0)
    X[::5, 2] = np.nan
    forest = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    X, seen = X[:n_rows], []

    def see(first, end, values):
        seen.append((first, end, values))

    for table, run in ((X, threaded(2)), (scipy.sparse.csr_array(np.nan_to_num(X)), threaded(1))):
        seen.clear()
        book = forest.codebook_
        raw.forest_blocks(forest.forest_, book, book.check(table), run, see)
        seen.sort(key=lambda each: each[0])
        assert [first for first, _, _ in seen] == [0, *(end for _, end, _ in seen[:-1])]
        expected = np.stack([tree.predict(table) for tree in forest.estimators_], axis=1)
        np.testing.assert_array_equal(np.concatenate([each for _, _, each in seen]), expected)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(7, random_state=0),
        RandomForestRegressor(7, random_state=0),
        GradientBoostingClassifier(max_iter=3, random_state=0),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_coded_or_not_the_same_answer(model, dtype, monkeypatch):
    X, y = make_classification(5_000, 30, n_informative=6, n_classes=3, random_state=0)
    X = X.astype(dtype)
    X[::5, 2] = np.nan
    fitted = model.fit(X[:500], y[:500])
    forest = fitted.forest_
    wide = raw.RawCells(fitted.codebook_, fitted.codebook_.check(X))
    answers = []
    for tests_of_code, is_wide in ((0, False), (1e9, True)):
        monkeypatch.setattr(raw, "TESTS_OF_CODE", tests_of_code)
        assert raw._walks_raw(forest, wide) == is_wide
        answers.append((fitted.predict(X), fitted.apply(X)))
        answers[-1] += (fitted.predict_proba(X),) if hasattr(fitted, "predict_proba") else ()
    for coded, uncoded in zip(*answers, strict=True):
        np.testing.assert_array_equal(coded, uncoded)


def test_few_trees_of_many_columns_are_walked_uncoded():
    X, y = make_classification(300, 60, n_informative=6, random_state=0)
    for table, is_wide in ((X, True), (X[:, :3], False), (scipy.sparse.csr_array(X), False)):
        fitted = RandomForestClassifier(10, random_state=0).fit(table, y)
        book = fitted.codebook_
        assert raw._walks_raw(fitted.forest_, raw.RawCells(book, book.check(table))) == is_wide


RNG = np.random.default_rng(0)
STEPS = RNG.normal(size=(700, 4))


def boosted(n_classes, table=STEPS, **limits):
    if n_classes == 0:
        return GradientBoostingRegressor(max_iter=4).fit(table, STEPS[:, 0] * STEPS[:, 1])
    y = np.floor(STEPS.sum(axis=1) + 5 * STEPS[:, 0] * STEPS[:, 3]).astype(int) % n_classes
    return GradientBoostingClassifier(max_iter=4, **limits).fit(table, y)


def sums_of_steps(model, table):
    """Raw predictions, tree by tree."""
    initial = model._initial
    leaves = raw.forest_apply(model.forest_, model.codebook_, table)
    found = np.repeat(initial[None, :], len(leaves), axis=0)
    for number, tree in enumerate(model.forest_.trees):
        found[:, number % len(initial)] += tree.value[leaves[:, number], 0]
    return found


def raw_of(model, table, run=serial):
    book = model.codebook_
    return raw.raw_predictions(model.forest_, model._initial, book, book.check(table), run)


@pytest.mark.parametrize("n_classes", [0, 2, 5])
def test_steps_of_leaves_are_added_up(n_classes):
    model = boosted(n_classes)
    wanted = sums_of_steps(model, STEPS)
    assert raw_of(model, STEPS).tobytes() == wanted.tobytes()
    few = np.vstack([raw_of(model, STEPS[i : i + 1]) for i in range(9)])
    assert few.tobytes() == wanted[:9].tobytes()
    table = model.codebook_.check(STEPS)
    stages = list(raw.staged_raw_predictions(model.forest_, model._initial, model.codebook_, table))
    assert len(stages) == 4
    assert stages[-1].tobytes() == wanted.tobytes()
    begun = raw.raw_predictions(Forest(()), model._initial, model.codebook_, table)
    np.testing.assert_array_equal(begun, np.repeat(model._initial[None, :], 700, axis=0))


def sparse_table():
    table = np.where(RNG.random(STEPS.shape) < 0.6, 0, STEPS)
    return scipy.sparse.csr_array(table)


def mixed_table():
    table = pandas.DataFrame(STEPS, columns=list("abcd"))
    table["e"] = pandas.Categorical(RNG.choice(["red", "blue", None, "green"], len(STEPS)))
    table["f"] = pandas.Categorical(RNG.integers(0, 99, len(STEPS)).astype(str))
    return table


@pytest.mark.parametrize("table", [STEPS, sparse_table(), mixed_table()], ids=type)
@pytest.mark.parametrize("most_slots", [99, 4, 2])
def test_steps_go_to_the_outputs_in_turn(table, most_slots, monkeypatch):
    """In one part, in some, or in trees that are too large."""
    monkeypatch.setattr(packed_forest, "MOST_SLOTS", most_slots)
    model = boosted(5, table, max_leaf_nodes=4)
    parts = packed_forest.pack_forest(model.forest_, model.codebook_)
    assert (len(parts) == 1) == (most_slots == 99)
    assert any(isinstance(part, Tree) for part in parts) == (most_slots == 2)
    wanted = sums_of_steps(model, table)
    assert raw_of(model, table).tobytes() == wanted.tobytes()
    for n in (1, 3, 20):
        assert raw_of(model, table[:n]).tobytes() == wanted[:n].tobytes()


def test_rows_are_coded_once(monkeypatch):
    calls = []
    code_numbers = packed_forest.code_numbers
    monkeypatch.setattr(
        packed_forest, "code_numbers", lambda *given: calls.append(1) or code_numbers(*given)
    )
    model = boosted(5)
    found = raw_of(model, STEPS)
    assert len(calls) == 1
    tall = raw_of(model, np.vstack([STEPS] * 12), threaded(2))
    assert len(tall) > 2 * raw.FOREST_ROWS
    assert tall.tobytes() == np.vstack([found] * 12).tobytes()
