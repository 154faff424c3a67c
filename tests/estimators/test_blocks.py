"""Forests of blocks: each block has the trees of a forest that is fitted to it alone."""

import pickle

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dtrees import (
    BaggingRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    load,
    save,
)
from dtrees.coding.codebook import CodeBook
from dtrees.estimators.blocks import in_words_of, joined_book

pd = pytest.importorskip("pandas")

N = 400
RNG = np.random.default_rng(0)
WORDS = np.array([f"w{i:03}" for i in range(90)])  # more than one word of bits
FRAME = pd.DataFrame(
    {
        "number": RNG.normal(size=N),
        "word": RNG.choice(WORDS, N),
        "hybrid": np.where(RNG.random(N) < 0.5, RNG.integers(0, 9, N), RNG.choice(WORDS[:9], N)),
    }
).astype({"hybrid": object})
FRAME.loc[::11, "word"] = None
IS_ODD = FRAME["word"].str[-1:].isin(list("13579")).to_numpy()
Y = np.where(IS_ODD ^ (FRAME["number"] > 0), "x", np.where(FRAME["number"] > 1, "z", "y"))
NUMBERS = IS_ODD * 2.0 + FRAME["number"].to_numpy()
CLASSES = ["z", "y", "x"]
FIRST = (FRAME["word"] < "w060").to_numpy() & (np.arange(N) % 3 < 2)
SECOND = (FRAME["word"] > "w030").to_numpy() & (Y != "z")
BLOCKS = FIRST, SECOND


def blocks_of(model, y, blocks=BLOCKS, X=FRAME, **first):
    for number, rows in enumerate(blocks):
        model.partial_fit(X[rows], y[rows], **(first if number == 0 else {}))
    return model


def shares_of_all(model, X):
    """Shares of x, y, z, of which a block may lack some."""
    found = np.zeros((len(X), 3))
    found[:, np.isin(["x", "y", "z"], model.classes_)] = model.predict_proba(X)
    return found


@pytest.mark.one_of(2)
@pytest.mark.parametrize("handle_unknown", ["missing", "majority"])
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_trees_are_those_of_forests_of_the_blocks(kind, handle_unknown):
    how = {"n_estimators": 3, "handle_unknown": handle_unknown, "category_penalty": 0}
    how = how if kind is RandomForestClassifier else {**how, "category_penalty": None}
    how = {name: value for name, value in how.items() if value is not None}
    model = blocks_of(kind(random_state=5, **how), Y, classes=CLASSES)
    expected = [
        kind(random_state=seed, **how).fit(FRAME[rows], Y[rows])
        for seed, rows in zip((5, 8), BLOCKS, strict=True)
    ]
    assert_array_equal(model.classes_, ["x", "y", "z"])
    assert len(model) == model.n_estimators_ == 6
    of_trees = [tree for own in expected for tree in own]
    known = FRAME.copy()
    known.loc[3, "word"] = "new to all"
    for mine, own in zip(model, of_trees, strict=True):
        assert_array_equal(mine.apply(known), own.apply(known))
        assert_array_equal(mine.predict_proba(known), shares_of_all(own, known))
    assert_allclose(
        model.predict_proba(known), sum(shares_of_all(own, known) for own in expected) / 2
    )


@pytest.mark.parametrize("kind", [RandomForestRegressor, BaggingRegressor])
def test_numbers(kind):
    model = blocks_of(kind(4, random_state=0), NUMBERS)
    own = [
        kind(4, random_state=seed).fit(FRAME[rows], NUMBERS[rows])
        for seed, rows in zip((0, 4), BLOCKS, strict=True)
    ]
    assert_allclose(model.predict(FRAME), sum(each.predict(FRAME) for each in own) / 2)


@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_the_first_block_is_a_fit(seed):
    rows = FIRST
    model = RandomForestClassifier(3, random_state=seed)
    model.partial_fit(FRAME[rows], Y[rows], classes=CLASSES)
    fitted = RandomForestClassifier(3, random_state=seed).fit(FRAME[rows], Y[rows])
    for mine, own in zip(model.forest_.trees, fitted.forest_.trees, strict=True):
        assert mine.equals(own)
    blocks_of(fitted, Y, [SECOND])
    blocks_of(model, Y, [SECOND])
    assert_array_equal(model.predict_proba(FRAME), fitted.predict_proba(FRAME))


def test_blocks_of_other_categories_in_any_order():
    names = [list(blocks_of(RandomForestRegressor(2), NUMBERS, blocks).codebook_.categories[1])
             for blocks in (BLOCKS, BLOCKS[::-1])]  # fmt: skip
    assert names[0] == names[1] == sorted(FRAME["word"][FIRST | SECOND].dropna().unique())


def test_a_column_that_was_missing_is_that_of_a_later_block():
    for column in ("word", "hybrid", "number"):
        first = FRAME[FIRST].assign(**{column: None})
        model = RandomForestRegressor(3, random_state=0).partial_fit(first, NUMBERS[FIRST])
        model.partial_fit(FRAME[SECOND], NUMBERS[SECOND])
        own = RandomForestRegressor(3, random_state=3).fit(FRAME[SECOND], NUMBERS[SECOND])
        for mine, each in zip([*model][3:], own, strict=True):
            assert_array_equal(mine.predict(FRAME), each.predict(FRAME))


def test_numbers_of_other_types_and_strings_of_other_lengths():
    first = pd.DataFrame({"k": np.array(["a", "b"] * 20)})
    second = pd.DataFrame({"k": np.array(["long", "b"] * 20)})
    y = np.arange(40) % 2
    model = RandomForestRegressor(2, random_state=0).partial_fit(first.to_numpy(str), y)
    model.partial_fit(second.to_numpy(str), y)
    assert model.codebook_.categories[0].tolist() == ["a", "b", "long"]
    codes = pd.DataFrame({"k": pd.Categorical([1, 2] * 20)})
    words = pd.DataFrame({"k": pd.Categorical(["w", "v"] * 20)})
    model = RandomForestRegressor(2, random_state=0).partial_fit(codes, y).partial_fit(words, y)
    assert model.codebook_.categories[0].tolist() == [1, 2, "v", "w"]


def test_it_is_saved_and_pickled(tmp_path):
    model = blocks_of(RandomForestClassifier(3, random_state=0), Y, classes=CLASSES)
    save(model, tmp_path / "forest.dtrees")
    for again in load(tmp_path / "forest.dtrees"), pickle.loads(pickle.dumps(model)):
        assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))
        again.partial_fit(FRAME[SECOND], Y[SECOND])
        assert len(again) == 9
    assert_array_equal(model.feature_names_in_, FRAME.columns)
    with pytest.raises(AttributeError, match="estimators_samples_"):
        model.estimators_samples_  # noqa: B018


def test_several_targets():
    both = np.column_stack([Y, np.where(IS_ODD, "p", "q")])
    labels = [np.array(CLASSES), np.array(["q", "p", "never"])]
    model = RandomForestClassifier(3, random_state=0)
    for rows in BLOCKS:
        model.partial_fit(FRAME[rows], both[rows], classes=labels)
    assert [list(own) for own in model.classes_] == [["x", "y", "z"], ["never", "p", "q"]]
    assert model.n_classes_ == [3, 3]
    own = RandomForestClassifier(3, random_state=3).fit(FRAME[SECOND], both[SECOND])
    for mine, each in zip([*model][3:], own, strict=True):
        found, expected = mine.predict_proba(FRAME), each.predict_proba(FRAME)
        assert_array_equal(found[0], np.column_stack([expected[0], np.zeros(N)]))
        assert_array_equal(found[1], np.column_stack([np.zeros(N), expected[1]]))
    with pytest.raises(ValueError, match=r"y has 1 targets, and classes are those of 2"):
        model.partial_fit(FRAME, Y)
    numbers = RandomForestRegressor(2).partial_fit(FRAME, np.column_stack([NUMBERS, -NUMBERS]))
    with pytest.raises(ValueError, match="y had 2 targets, and has 1"):
        numbers.partial_fit(FRAME, NUMBERS)


def test_weights():
    weight = np.arange(N) % 3.0
    how = {"n_estimators": 3, "class_weight": {"z": 5.0}}
    model = RandomForestClassifier(random_state=0, **how)
    model.partial_fit(FRAME[SECOND], Y[SECOND], CLASSES, weight[SECOND])  # which has no z
    own = RandomForestClassifier(3, random_state=0)
    own.fit(FRAME[SECOND], Y[SECOND], weight[SECOND])
    assert_array_equal(model.predict_proba(FRAME), shares_of_all(own, FRAME))
    model.partial_fit(FRAME[FIRST], Y[FIRST], sample_weight=weight[FIRST])
    own = RandomForestClassifier(random_state=3, **how).fit(FRAME[FIRST], Y[FIRST], weight[FIRST])
    for mine, each in zip([*model][3:], own, strict=True):
        assert_array_equal(mine.predict_proba(FRAME), each.predict_proba(FRAME))
    with pytest.raises(ValueError, match="not in class_weight"):
        RandomForestClassifier(3, class_weight={"w": 1}).partial_fit(FRAME, Y, CLASSES)


def test_a_state_draws_for_each_block():
    X = FRAME[["number"]]
    states = np.random.RandomState(0), np.random.RandomState(0)
    model = RandomForestRegressor(2, random_state=states[0])
    model.partial_fit(X, NUMBERS).partial_fit(X, NUMBERS)
    own = RandomForestRegressor(2, random_state=states[1])
    expected = own.fit(X, NUMBERS).predict(X), own.fit(X, NUMBERS).predict(X)
    assert_allclose(model.predict(X), sum(expected) / 2)
    assert not np.allclose(*expected)


REFUSED = {
    "no classes": (lambda: RandomForestClassifier(), {}, "classes must be passed on the first"),
    "other labels": (
        lambda: RandomForestClassifier(),
        {"classes": ["x", "y"]},
        "y has labels that are not in classes: 'z'",
    ),
    "oob_score": (lambda: RandomForestClassifier(oob_score=True), {}, "unset oob_score"),
    "oob_tol": (lambda: RandomForestClassifier(oob_tol=0.0), {}, "unset oob_tol"),
    "keep_rows": (lambda: RandomForestRegressor(keep_rows=True), {}, "unset keep_rows"),
    "parameters": (lambda: RandomForestClassifier(-1), {}, "n_estimators"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_changes_nothing(case):
    make, given, said = REFUSED[case]
    model = make()
    before = vars(model).copy()
    with pytest.raises(ValueError, match=said):
        model.partial_fit(FRAME, Y if case != "keep_rows" else NUMBERS, **given)
    assert vars(model) == before


def test_other_blocks_are_refused():
    model = blocks_of(RandomForestClassifier(2, random_state=0), Y, [FIRST], classes=CLASSES)
    before = vars(model).copy()
    for X, y, given, said in (
        (FRAME, Y, {"classes": ["x", "y"]}, "not the same as on last call to partial_fit"),
        (FRAME[["number"]], Y, {}, "feature names should match"),
        (FRAME.assign(number="word"), Y, {}, "'number' of X has values of another type"),
        (FRAME.assign(word=1.0), Y, {}, "'word' of X has values of another type"),
        (FRAME.assign(hybrid=1.0), Y, {}, "'hybrid' of X has values of another type"),
        (FRAME.rename(columns={"word": "w"}), Y, {}, "feature names should match"),
    ):
        with pytest.raises(ValueError, match=said):
            model.partial_fit(X, y, **given)
        assert vars(model) == before
    model.fit(FRAME, Y)
    assert len(model) == 2


def test_labels_of_a_fit_are_the_classes():
    model = RandomForestClassifier(2, random_state=0).fit(FRAME, Y)
    model.partial_fit(FRAME[SECOND], Y[SECOND])
    with pytest.raises(ValueError, match="y has labels that are not in classes: 'v'"):
        model.partial_fit(FRAME, np.where(Y == "z", "v", Y))
    assert len(model) == 4


def test_blocks_of_a_collection():
    X = np.round(RNG.normal(size=(N, 3)), 1)
    lazy, y = da.from_array(X, chunks=(150, 3)), da.from_array(IS_ODD.astype(int), chunks=90)
    here, there = (RandomForestClassifier(3, random_state=0) for _ in range(2))
    for _ in range(2):
        here.partial_fit(X, IS_ODD.astype(int), classes=[0, 1, 2])
        there.partial_fit(lazy, y, classes=[0, 1, 2])
    assert_array_equal(here.predict_proba(X), there.predict_proba(X))
    assert here.predict_proba(X).shape == (N, 3)


def test_books_of_the_same_categories_leave_trees_as_they_are():
    book = CodeBook.fit_encode(FRAME)[0].without_values()
    joined = joined_book(book, book)
    assert {j: own.tolist() for j, own in joined.categories.items()} == {
        j: own.tolist() for j, own in book.categories.items()
    }
    assert_array_equal(joined.n_codes, book.n_codes)
    assert_array_equal(joined.low, book.low)
    trees = RandomForestRegressor(2).fit(FRAME, NUMBERS).forest_.trees
    assert all(map(lambda a, b: a is b, in_words_of(trees, book, joined, True), trees))
