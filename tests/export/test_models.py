"""Model files: what is saved comes back, bit for bit, and anything else is an error."""

from __future__ import annotations

import doctest
import gzip
import io
import json
import pickle
import tempfile
import warnings
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV

import dtrees
from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.coding.codebook import CodeBook
from dtrees.estimators.fitted_sets import trees_of
from dtrees.exceptions import ModelFileError
from dtrees.export import load, models, save
from dtrees.export.archive import Archive, write
from dtrees.model_selection import cross_validate
from tests.estimators.test_forests import mixed_table

ESTIMATORS = [
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
]
LAYOUTS = ["compact", "flat"]


def made(kind, **parameters):
    """An estimator of a few trees."""
    if "GradientBoosting" in kind.__name__:
        parameters.setdefault("max_iter", 4)
    elif "Tree" not in kind.__name__ or "Extra" in kind.__name__:
        parameters.setdefault("n_estimators", 4)
    return kind(random_state=0, **parameters)


def noisy(n_rows=400):
    X, y = mixed_table(n_rows)
    return X, (y + (np.random.default_rng(5).random(n_rows) < 0.2)).astype(int)


def there_and_back(model, folder, **options):
    path = folder / "model.dtrees"
    save(model, path, layout=options.pop("layout", "compact"))
    return load(path, **options)


def assert_equal(a, b):
    """Two values are the same, with their types."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype == object:
            for mine, theirs in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
                assert_equal(mine, theirs)
        else:
            assert a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        assert_equal(list(a.items()), list(b.items()))
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for mine, theirs in zip(a, b, strict=True):
            assert_equal(mine, theirs)
    else:
        assert a == b or (a != a and b != b)


def assert_same_book(a: CodeBook, b: CodeBook):
    mine, theirs = vars(a), vars(b)
    assert mine.keys() == theirs.keys()
    for name in mine.keys() - {"_numbers"}:
        assert_equal(mine[name], theirs[name])
    assert (a.low is a.high) == (b.low is b.high)


def assert_same(a, b):
    """Two estimators are the same, bit for bit."""
    assert type(a) is type(b)
    for mine, theirs in zip(trees_of(a), trees_of(b), strict=True):
        assert mine.equals(theirs)
        assert (mine.unit, mine.offset) == (theirs.unit, theirs.offset)
    assert_equal(a.get_params(), b.get_params())
    own = {"tree_", "forest_", "codebook_", "_estimators", "_fit_report"}
    assert vars(a).keys() - own == vars(b).keys() - own
    for name in vars(a).keys() - own:
        assert_equal(vars(a)[name], vars(b)[name])
    if hasattr(a, "forest_"):
        assert_same_book(a.codebook_, b.codebook_)
    else:
        assert_same_book(a.tree_.codebook, b.tree_.codebook)
        assert_equal(a.tree_.saw_missing, b.tree_.saw_missing)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_estimator(kind, layout, mmap, tmp_path):
    X, y = noisy()
    model = made(kind).fit(X, y)
    again = there_and_back(model, tmp_path, layout=layout, mmap=mmap)
    assert_same(model, again)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    np.testing.assert_array_equal(model.apply(X), again.apply(X))
    np.testing.assert_array_equal(model.feature_importances_, again.feature_importances_)
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    if hasattr(model, "estimators_"):
        one, other = (np.ravel(each.estimators_)[1] for each in (model, again))
        np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("handle_unknown", ["missing", "majority", "error"])
def test_categories_that_were_not_there(handle_unknown, tmp_path):
    X, y = noisy()
    model = made(RandomForestClassifier, handle_unknown=handle_unknown, max_bins=None).fit(X, y)
    again = there_and_back(model, tmp_path)
    assert_same(model, again)
    other = X.assign(letter="new", x=np.nan)
    if handle_unknown == "error":
        with pytest.raises(ValueError, match="none of its values was there at fit"):
            again.predict(other)
        with pytest.raises(ValueError, match="unknown category"):
            again.predict(X.assign(letter=["new", *X["letter"][1:]]))
    else:
        with pytest.warns(UserWarning, match="none of its values was there at fit"):
            expected = model.predict_proba(other)
        with pytest.warns(UserWarning, match="none of its values was there at fit"):
            np.testing.assert_array_equal(expected, again.predict_proba(other))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_and_plain_tables(layout, tmp_path):
    rng = np.random.default_rng(0)
    sparse = sp.random(300, 40, 0.2, format="csr", random_state=0, dtype=np.float32)
    y = np.asarray(sparse.sum(axis=1)).ravel() + rng.normal(size=300)
    for X in (sparse, sparse.toarray(), np.asfortranarray(sparse.toarray().astype(float))):
        for kind in (RandomForestRegressor, DecisionTreeRegressor):
            model = made(kind).fit(X, y)
            again = there_and_back(model, tmp_path, layout=layout, mmap=True)
            assert_same(model, again)
            np.testing.assert_array_equal(model.predict(X), again.predict(X))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestRegressor])
def test_a_leaf(kind, layout, tmp_path):
    model = made(kind, min_samples_split=100).fit([[1.0], [2.0]], [0, 1])
    again = there_and_back(model, tmp_path, layout=layout)
    assert_same(model, again)
    assert_equal(model.predict([[5.0]]), again.predict([[5.0]]))


LABELS = [
    np.array(["no", "yes", "perhaps"]),
    np.array(["no", "yes", "perhaps"], dtype=object),
    np.array(["", "ä", "\udc80", "'\"\\\n\0x"], dtype=object),
    np.array([3, -1, 2**40]),
    np.array([3, 1, 200], dtype=np.uint8),
    np.array([2, 1], dtype=">i4"),
    np.array([False, True]),
    np.array([2.0, -1.0]),
    np.array([0, 1], dtype=np.float32),
    np.array(["2024-05-01", "1999-01-01"], dtype="M8[D]"),
    np.array([2**70, -5], dtype=object),
]


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: f"{labels.dtype}-{len(labels)}")
def test_class_labels_of_any_type(labels, tmp_path):
    rng = np.random.default_rng(0)
    y = labels[rng.integers(0, len(labels), 60)]
    X = rng.normal(size=(60, 2))
    model = RandomForestClassifier(3, random_state=0).fit(X, y)
    again = there_and_back(model, tmp_path)
    assert_same(model, again)
    assert_equal(model.predict(X), again.predict(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_weight": {0: 1.5, np.int64(1): 2}, "max_features": 0.5},
        {"categorical_features": np.array([False, True, False, True]), "max_depth": np.int8(3)},
        {"categorical_features": ["letter", "k"], "max_bins": None, "n_jobs": 2},
        {"categorical_features": (1, 3), "max_samples": np.float32(0.5)},
        {"bootstrap": False, "criterion": "entropy", "warm_start": True},
        {"oob_score": True, "n_estimators": 30, "random_state": np.uint32(7)},
        {"monotonic_cst": [1, 0, 0, 0], "interaction_cst": "pairwise"},
        {"monotonic_cst": {"x": 1}, "interaction_cst": [{"x", "k"}, frozenset(["letter"])]},
        {"monotonic_cst": np.array([-1, 0, 0, 0]), "interaction_cst": np.eye(2, 2, dtype=int)},
    ],
)
def test_parameters_keep_their_types(parameters, tmp_path):
    X, y = noisy()
    if "categorical_features" in parameters:
        X = X.drop(columns="hybrid").assign(other=1.0)
        if not isinstance(parameters["categorical_features"], list):
            X = X[["x", "letter", "other", "k"]]
    forest = RandomForestClassifier(**{"n_estimators": 3, "random_state": 0, **parameters})
    forest.fit(X, y > 0)
    again = there_and_back(forest, tmp_path)
    assert_same(forest, again)
    assert_equal(forest.predict(X), again.predict(X))


def test_warm_start_goes_on_after_loading(tmp_path):
    X, y = noisy()
    forest = RandomForestRegressor(3, warm_start=True).fit(X, y)
    again = there_and_back(forest, tmp_path).set_params(n_estimators=6).fit(X, y)
    assert_same(forest.set_params(n_estimators=6).fit(X, y), again)


@pytest.mark.parametrize("kind", [RandomForestRegressor, GradientBoostingRegressor])
def test_warm_start_with_another_table(kind, tmp_path):
    """Trees that are kept have codes that the new table lacks."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    limit = "max_iter" if kind is GradientBoostingRegressor else "n_estimators"
    model = made(kind, warm_start=True).fit(X, X[:, 0])
    model.set_params(**{limit: 6}).fit(X.round(), X[:, 0])
    again = there_and_back(model, tmp_path)
    assert_same(model, again)
    assert_equal(model.predict(X), again.predict(X))


class OnlyWrites:
    """A stream that can be written to, and nothing else, such as one of a socket."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += bytes(data)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_file_objects_hold_the_bytes_of_a_file(layout, tmp_path):
    X, y = noisy()
    model = made(RandomForestClassifier).fit(X, y)
    save(model, tmp_path / "a", layout=layout)
    expected = (tmp_path / "a").read_bytes()
    memory, stream, behind = io.BytesIO(), OnlyWrites(), io.BytesIO(b"head")
    behind.seek(4)
    for file in (memory, stream, behind):
        save(model, file, layout=layout)
    assert memory.getvalue() == stream.data == behind.getvalue()[4:] == expected
    for file in (memory, behind):
        file.seek(len(file.getvalue()) - len(expected))
        assert_same(model, load(file))
    with gzip.open(tmp_path / "a.gz", "wb") as packed:
        save(model, packed, layout=layout)
    with gzip.open(tmp_path / "a.gz") as packed:
        assert_same(model, load(packed))


def test_file_objects_of_fsspec():
    fsspec = pytest.importorskip("fsspec")
    model = made(DecisionTreeClassifier).fit(*noisy())
    with fsspec.open("memory://model.dtrees", "wb") as file:
        save(model, file)
    with fsspec.open("memory://model.dtrees", "rb") as file:
        assert_same(model, load(file))


def test_file_objects_that_are_refused(tmp_path, monkeypatch):
    model = made(DecisionTreeClassifier).fit(*noisy())
    with pytest.raises(ValueError, match="mmap=True needs the path of a file"):
        load(io.BytesIO(), mmap=True)
    with pytest.raises(ModelFileError, match="'BytesIO' is not a model file of dtrees: it is empt"):
        load(io.BytesIO())
    for call in (lambda file: save(model, file), load):
        with pytest.raises(
            TypeError, match=r"a file of bytes with the method '(write|read)'\. Got"
        ):
            call(io.StringIO())
    (tmp_path / "text").write_text("text")
    with tempfile.NamedTemporaryFile("w+") as text, pytest.raises(TypeError, match="opened with"):
        load(text)
    with (tmp_path / "text").open("rb") as file, pytest.raises(ModelFileError, match="text' is no"):
        load(file)
    nothing = OnlyWrites()
    monkeypatch.setattr(models, "VERSION", 0)
    with pytest.raises(ModelFileError, match="Nothing was written"):
        save(model, nothing)
    assert nothing.data == b""


def test_parameters_that_no_file_can_hold_are_left_out(tmp_path):
    X, y = noisy()
    forest = RandomForestClassifier(
        30, oob_score=accuracy_score, random_state=np.random.RandomState(3)
    ).fit(X, y)
    path = tmp_path / "model.dtrees"
    with pytest.warns(UserWarning, match="is left out") as caught:
        save(forest, path)
    assert sorted(str(w.message).split("'")[1] for w in caught) == ["oob_score", "random_state"]
    assert all(w.filename == __file__ for w in caught)
    again = load(path)
    assert again.oob_score is False
    assert again.random_state is None
    assert_equal(forest.oob_decision_function_, again.oob_decision_function_)
    assert_equal(forest.predict_proba(X), again.predict_proba(X))


def test_what_is_no_fitted_estimator_of_ours(tmp_path):
    path = tmp_path / "model.dtrees"
    with pytest.raises(NotFittedError):
        save(RandomForestClassifier(), path)
    with pytest.raises(NotFittedError):
        save(DecisionTreeClassifier(), path)

    class Own(DecisionTreeClassifier):
        pass

    for model in (Own(), 3, DecisionTreeClassifier):
        with pytest.raises(
            TypeError, match="The 'model' parameter of save must be one of AdaBoostClassifier"
        ):
            save(model, path)
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=2)
    search.fit([[1.0], [2.0]] * 2, [0, 1] * 2)
    with pytest.raises(TypeError, match=r"Got .*GridSearchCV instead\. Save its best_estimator_\."):
        save(search, path)
    found = cross_validate(DecisionTreeClassifier(), [[1.0], [2.0]] * 2, [0, 1] * 2, cv=2)
    with pytest.raises(TypeError, match=r"Got .*CrossValidation instead\. Save its final_estim"):
        save(found, path)
    with pytest.raises(ValueError, match="The 'layout' parameter of save must be"):
        save(DecisionTreeClassifier().fit([[1.0]], [1]), path, layout="other")
    assert not path.exists()


def test_the_example():
    results = doctest.testmod(models)
    assert results.attempted > 5
    assert results.failed == 0


def test_every_public_estimator_is_in_the_list():
    kinds = ("Classifier", "Regressor", "Forest")
    names = {getattr(dtrees, each).__name__ for each in dtrees.__all__ if each.endswith(kinds)}
    assert names == set(models.ESTIMATORS)
    known = {"_fit_bags", "_fit_report", "_fit_seed", "_saw_missing", "_initial", "_fit_loss"}
    known |= {"_fit_rows", "_fit_weighs"}
    for name in names:
        model = made(getattr(dtrees, name)).fit(*noisy(60))
        private = {key for key in vars(model) if key.startswith("_")}
        assert private <= known, "attributes that a file does not hold"


# ---------------------------------------------------------------------------------------------
# the file


def test_the_same_model_gives_the_same_bytes(tmp_path):
    X, y = noisy()
    first = made(RandomForestClassifier).fit(X, y)
    save(first, tmp_path / "a")
    save(made(RandomForestClassifier, n_jobs=None).fit(X, y), tmp_path / "b")
    save(load(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


def test_other_programs_can_read_it(tmp_path):
    X, y = noisy()
    model = made(RandomForestRegressor).fit(X, y)
    save(model, tmp_path / "a.dtrees", layout="flat")
    with zipfile.ZipFile(tmp_path / "a.dtrees") as archive:
        assert archive.testzip() is None
        document = json.loads(archive.read("model.json"))
    assert document["format"] == "dtrees model"
    assert document["version"] == 1
    assert document["written_by"] == dtrees.__version__
    with np.load(tmp_path / "a.dtrees", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(
            arrays["trees/threshold"], np.concatenate([t.threshold for t in model.forest_.trees])
        )


def test_sizes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10)).astype(np.float32)
    y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=len(X))
    for kind, target, theirs in (
        (RandomForestClassifier, y > 0, 80),  # bytes per node of scikit-learn's arrays
        (RandomForestRegressor, y, 72),
    ):
        model = made(kind, max_features=0.3).fit(X, target)
        save(model, tmp_path / "model")
        n_nodes = sum(tree.node_count for tree in trees_of(model))
        assert (tmp_path / "model").stat().st_size < n_nodes * theirs / 6
        assert len(pickle.dumps(model)) < n_nodes * theirs / 4


def test_a_file_of_version_1(tmp_path):
    """Written once, by the first version of the format: it stays readable."""
    path = Path(__file__).parent / "version_1.dtrees"
    model = load(path)
    X = pd.DataFrame(
        {
            "number": [-1.0, 0.3, 2.0, np.nan],
            "word": ["a", "b", "new", None],
            "both": [1, "x", 2.5, "y"],
        }
    )
    assert model.predict(X).tolist() == ["yes", "yes", "no", "no"]
    assert model.get_params()["class_weight"] == {"no": 1.5}
    assert model.feature_names_in_.tolist() == list(X)
    again = Archive(path, False)
    save(model, tmp_path / "copy")
    copied = Archive(tmp_path / "copy", False)
    own = ("written_by", "parameters")  # parameters may have come since
    assert {k: v for k, v in again.document.items() if k not in own} == {
        k: v for k, v in copied.document.items() if k not in own
    }
    assert again.document["parameters"].items() <= copied.document["parameters"].items()
    for name, array in again.arrays().items():
        assert_equal(array, copied.arrays()[name])


# ---------------------------------------------------------------------------------------------
# files that are not what they should be


def small_file(folder, layout):
    rng = np.random.default_rng(0)
    letters = pd.Categorical(rng.choice(list("abc"), 40))
    X = pd.DataFrame({"x": rng.normal(size=40), "c": letters})
    X.loc[::7, "x"] = np.nan
    y = np.where(rng.random(40) < 0.3, "p", np.where(X["c"] == "a", "q", "r"))
    model = RandomForestClassifier(2, max_depth=3, random_state=0).fit(X, y)
    save(model, folder / "model", layout=layout)
    return model, X


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("layout", "step"),
    [("compact", 7), ("flat", 31), *(pytest.param(x, 1, marks=pytest.mark.long) for x in LAYOUTS)],
)
def test_every_byte_that_is_flipped(layout, step, tmp_path):
    """An error, or the same model: some bytes mean nothing (times, padding)."""
    model, X = small_file(tmp_path, layout)
    good = (tmp_path / "model").read_bytes()
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 8, len(good))
    found_right = 0
    for at in range(0, len(good), step):
        data = bytearray(good)
        data[at] ^= 1 << int(bits[at])
        (tmp_path / "bad").write_bytes(data)
        try:
            again = load(tmp_path / "bad", mmap=bool(at % 2))
        except ModelFileError:
            continue
        found_right += 1
        assert_same(model, again)
    assert 0 < found_right < len(good) / 2
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_length_that_is_cut_off(layout, tmp_path):
    small_file(tmp_path, layout)
    good = (tmp_path / "model").read_bytes()
    for length in [*range(100), *range(100, len(good), 11), *range(len(good) - 99, len(good))]:
        (tmp_path / "bad").write_bytes(good[:length])
        with pytest.raises(ModelFileError, match=r"damaged|no.* model file"):
            load(tmp_path / "bad", mmap=bool(length % 2))


def rewritten(folder, change, layout="compact", made=small_file):
    """A file with right checksums in which something was changed."""
    made(folder, layout)
    archive = Archive(folder / "model", False)
    document, arrays = archive.document, archive.arrays()
    change(document, arrays)
    write(folder / "bad", document, arrays)
    return folder / "bad"


def test_a_file_of_a_newer_version(tmp_path):
    def change(document, arrays):
        document.update(version=2, written_by="9.1", trees="something new")
        arrays.clear()

    match = r"has version 2 of the format, written by dtrees 9.1; this is dtrees .* up to 1\."
    with pytest.raises(ModelFileError, match=match):
        load(rewritten(tmp_path, change))


def set_in(*path, to):
    """A change of the document."""

    def change(document, arrays):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = to

    return change


def array_in(name, change_of):
    def change(document, arrays):
        arrays[name] = change_of(arrays[name])

    return change


def added(to):
    return lambda array: (array + to).astype(array.dtype)


def without(name):
    return lambda document, arrays: arrays.pop(name)


def two_trees_as_one(document, arrays):
    document.update(estimator="DecisionTreeClassifier", parameters={})
    for name in ("_fit_bags", "_fit_rows", "_fit_seed"):
        del document["attributes"][name]


DOCUMENTS = {
    "format": (set_in("format", to="dtrees"), "is not a model file"),
    "version": (set_in("version", to="1"), "version is '1'"),
    "version 0": (set_in("version", to=0), "version is 0"),
    "estimator": (set_in("estimator", to="export_text"), "estimator 'export_text', which dtrees"),
    "estimator of another kind": (
        set_in("estimator", to="RandomForestRegressor"),
        "'class_weight' of Rand",
    ),
    "a tree as a forest": (
        set_in("estimator", to="DecisionTreeClassifier"),
        "parameter 'bootstrap'",
    ),
    "a parameter": (set_in("parameters", "fit", to=1), "does not know; it was written by"),
    "no estimator": (lambda document, arrays: document.pop("estimator"), "KeyError"),
    "a list as estimator": (set_in("estimator", to=["a"]), "estimator"),
    "an attribute": (set_in("attributes", "predict", to=1), "attribute 'predict'"),
    "a regressor without parameters": (
        lambda document, arrays: document.update(estimator="BaggingRegressor", parameters={}),
        "attribute 'classes_' of BaggingRegressor",
    ),
    "a forest as a tree": (
        lambda document, arrays: document.update(estimator="DecisionTreeClassifier", parameters={}),
        "attribute '_fit_bags'",
    ),
    "two trees as one": (two_trees_as_one, "too many values"),
    "a hidden attribute": (set_in("attributes", "__class__", to=1), "attribute"),
    "a value": (set_in("parameters", "class_weight", to={"pickle": "1"}), "KeyError"),
    "a scalar of objects": (
        set_in("parameters", "class_weight", to={"scalar": ["O", "00" * 8]}),
        "arrays of 'O' are not stored",
    ),
    "an array of objects": (
        set_in("parameters", "class_weight", to={"array": ["O", [1], "00" * 8]}),
        "arrays of 'O' are not stored",
    ),
    "two keys": (set_in("parameters", "class_weight", to={"tuple": [], "dict": []}), "damaged"),
    "a shape": (set_in("parameters", "class_weight", to={"array": ["<i8", [2], "00"]}), "damaged"),
    "n_features": (set_in("attributes", "n_features_in_", to=3), "n_features_in_"),
    "classes": (set_in("attributes", "classes_", to=["a", "b", "c"]), "classes_"),
    "names": (set_in("attributes", "feature_names_in_", to=["a", "b"]), "feature_names_in_"),
    "columns": (set_in("codebook", "n_columns", to=3), "integers"),
    "no columns": (set_in("codebook", "n_columns", to=0), "number of columns"),
    "handle_unknown": (set_in("codebook", "handle_unknown", to="what"), "handle_unknown"),
    "book names": (set_in("codebook", "feature_names", to=["a"]), "names"),
    "no categories": (set_in("codebook", "categories", to=[]), "categories"),
    "layout": (set_in("trees", "layout", to="new"), "layout"),
    "criterion": (set_in("trees", "criterion", to="new"), "criterion"),
    "other criterion": (set_in("trees", "criterion", to="squared_error"), "damaged"),
    "tree columns": (set_in("trees", "n_columns", to=7), "number of columns"),
    "statistics": (set_in("trees", "n_statistics", to=2), "weight|classes_"),
    "many statistics": (set_in("trees", "n_statistics", to=10**12), "statistics"),
    "a list": (lambda document, arrays: document.update(trees=[1]), "damaged"),
    "no book": (lambda document, arrays: document.pop("codebook"), "KeyError"),
    "no array": (without("trees/is_inner"), "KeyError"),
    "no codes": (without("codebook/n_codes"), "KeyError"),
    "codes": (array_in("codebook/n_codes", added(200)), "numbers of"),
    "units": (array_in("codebook/units", added(100)), "units"),
    "exact": (array_in("codebook/exact", lambda a: a.astype(np.uint8)), "exact"),
    "missing": (array_in("codebook/saw_missing", lambda a: a[1:]), "missing"),
    "features": (array_in("trees/feature", added(2)), "column"),
    "swapped features": (array_in("trees/feature", lambda a: 1 - a), "test of a node|subset"),
    "two dimensions": (array_in("trees/n_nodes", lambda a: a[None]), "n_nodes"),
    "booleans": (array_in("trees/is_inner", lambda a: a.astype(bool)), "is_inner"),
    "nan": (array_in("trees/threshold", lambda a: a * np.nan), "threshold"),
    "code": (array_in("trees/code", lambda a: a + np.int64(2**20)), "code of a node"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_file_that_was_made_to_deceive(name, tmp_path):
    change, message = DOCUMENTS[name]
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(tmp_path, change))


FLAT = {
    "left": (array_in("trees/children_left", added(1)), "left children"),
    "right": (array_in("trees/children_right", lambda a: np.where(a > 0, a - 1, a)), "right"),
    "leaf": (array_in("trees/children_right", lambda a: np.where(a < 0, 0, a)), "leaf"),
    "feature": (array_in("trees/feature", lambda a: np.where(a >= 0, 2, a)), "column"),
    "negative": (array_in("trees/feature", lambda a: np.where(a >= 0, -1, a)), "column"),
    "leaf column": (array_in("trees/feature", lambda a: np.where(a < 0, 0, a)), "leaf"),
    "test": (array_in("trees/test", lambda a: np.where(a > 0, 4, a).astype(a.dtype)), "test"),
    "missing": (array_in("trees/missing_go_to_left", added(2)), "missing"),
    "subset": (array_in("trees/subset_offset", added(10**9)), "subset"),
    "no subset": (array_in("trees/subset_offset", lambda a: a * 0 - 1), "subset"),
    "words": (array_in("trees/subset_words", lambda a: a[1:]), "subset|number of words"),
    "n_words": (array_in("trees/n_words", added(2**50)), "words"),
    "negative words": (array_in("trees/n_words", lambda a: -a), "words"),
    "n_nodes": (array_in("trees/n_nodes", added(1)), "length"),
    "node of another tree": (
        array_in("trees/n_nodes", lambda a: a + np.array([2, -2])),
        "preorder",
    ),
    "length": (array_in("trees/gain", lambda a: a[1:]), "length of gain"),
    "type": (array_in("trees/gain", lambda a: a.astype(np.float32)), "array gain"),
    "dimensions": (array_in("trees/statistics", lambda a: a[:, 0]), "array statistics"),
    "width": (array_in("trees/statistics", lambda a: np.ascontiguousarray(a[:, 1:])), "classes_"),
    "units": (array_in("trees/unit", lambda a: a[1:]), "number of trees"),
    "weight of nothing": (
        array_in("trees/weight_unit", lambda a: a * np.nan),
        "unit of the weights",
    ),
    "negative weight": (array_in("trees/weight_unit", lambda a: -a), "unit of the weights"),
    "one tree": (array_in("trees/n_nodes", lambda a: a[:0]), "number of trees"),
    "missing array": (without("trees/statistics"), "KeyError"),
}


def file_of_several(folder, layout, numbers=False):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, (60, 2))
    kind = RandomForestRegressor if numbers else RandomForestClassifier
    model = kind(2, max_depth=3, random_state=0).fit(X, y)
    save(model, folder / "model", layout=layout)
    return model, X


OF_SEVERAL = {
    "sums": (set_in("trees", "n_classes", to=[3, 2]), "classes of several"),
    "halves": (set_in("trees", "n_classes", to=[1.5, 4.5]), "classes of several"),
    "none": (set_in("trees", "n_classes", to=[6, 0]), "classes of several"),
    "no list": (set_in("trees", "n_classes", to=6), "classes of several"),
    "one": (set_in("trees", "n_classes", to=[6]), "classes of several"),
    "others": (set_in("trees", "n_classes", to=[2, 4]), "differ in weight|n_classes_"),
    "left out": (lambda document, arrays: document["trees"].pop("n_classes"), "the statistics"),
    "labels": (set_in("attributes", "classes_", to=[1]), "classes_"),
    "labels of one": (lambda document, arrays: document["attributes"]["classes_"].pop(), "classes"),
    "their number": (set_in("attributes", "n_classes_", to=[3, 4]), "n_classes_"),
    "outputs": (set_in("attributes", "n_outputs_", to=1), "the statistics"),
    "no outputs": (set_in("attributes", "n_outputs_", to=[2]), "the statistics"),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_files_of_several_targets_that_were_made_to_deceive(name, layout, tmp_path):
    change, message = OF_SEVERAL[name]
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(tmp_path, change, layout, file_of_several))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["unit", "offset"])
def test_units_of_several_targets(name, layout, tmp_path):
    made = partial(file_of_several, numbers=True)
    with pytest.raises(ModelFileError, match=r"unit for every tree|number of trees"):
        load(rewritten(tmp_path, array_in(f"trees/{name}", lambda a: a[1:]), layout, made))


@pytest.mark.parametrize("name", FLAT)
def test_a_flat_file_that_was_made_to_deceive(name, tmp_path):
    change, message = FLAT[name]
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(tmp_path, change, "flat"))


def test_what_would_not_load_is_not_saved(tmp_path):
    path = tmp_path / "tree.dtrees"
    X = pd.DataFrame({"a": list("abab")})
    save(DecisionTreeClassifier().fit(X, [0, 1, 0, 1]), path)
    before = path.read_bytes()
    broken = DecisionTreeClassifier().fit(X, [0, 1, 0, 1])
    broken.tree_.codebook.categories[0][:] = "a"
    with pytest.raises(ModelFileError, match=r"not saved.*the categories cannot be"):
        save(broken, path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["tree.dtrees"]


def comes_back(model, path, table):
    """Save and load a model, and compare parameters and predictions."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(model, path)
    loaded = load(path)
    given, found = model.get_params(), loaded.get_params()
    assert given.keys() == found.keys()
    for name, value in given.items():
        assert type(found[name]) is type(value), name
        np.testing.assert_equal(found[name], value, err_msg=name)
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    return loaded


def test_parameters_that_older_files_lack_are_what_fitted_them(tmp_path, monkeypatch):
    X, y = np.arange(60.0)[:, None], np.arange(60) % 7
    model = GradientBoostingRegressor(max_iter=2).fit(X, y)
    parts = model._parts()
    later = models.ADDED_LATER.keys()
    kept = {name: value for name, value in parts.parameters.items() if name not in later}
    monkeypatch.setattr(model, "_parts", lambda: replace(parts, parameters=kept), raising=False)
    save(model, tmp_path / "old.dtrees")
    found = load(tmp_path / "old.dtrees").get_params()
    assert len(kept) < len(found)
    known = models.ADDED_LATER | {"keep_rows": None}  # which is of trees and forests
    assert {name: found.get(name) for name in models.ADDED_LATER} == known


def test_every_parameter_of_a_boosted_model_comes_back(tmp_path):
    parameters = {
        "loss": "huber",
        "quantile": 0.25,
        "alpha": 0.8,
        "power": 1.2,
        "learning_rate": 0.2,
        "max_iter": 4,
        "max_leaf_nodes": 5,
        "max_depth": 3,
        "min_samples_leaf": 2,
        "min_child_weight": 0.5,
        "min_split_gain": 0.01,
        "l2_regularization": 1.5,
        "l1_regularization": 0.1,
        "max_delta_step": 0.7,
        "path_smooth": 2.0,
        "multi_strategy": "multi_output_tree",
        "subsample": 0.7,
        "oob_score": True,
        "init": "zero",
        "min_samples_split": 5,
        "colsample_bytree": 0.9,
        "feature_weights": {"b": 2.0},
        "max_features": 0.6,
        "max_bins": 15,
        "categorical_features": ["d"],
        "monotonic_cst": {"a": 1},
        "interaction_cst": [{"a", "b"}, {"c", "d"}],
        "handle_unknown": "majority",
        "category_penalty": 0.5,
        "early_stopping": True,
        "scoring": "r2",
        "validation_fraction": 0.3,
        "n_iter_no_change": 3,
        "tol": 1e-3,
        "use_best_model": False,
        "warm_start": True,
        "verbose": -1,
        "regime": "local",
        "random_state": 7,
        "n_jobs": 2,
    }
    assert parameters.keys() == GradientBoostingRegressor().get_params().keys()
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd")).round(1)
    y = (table["a"] + table["b"]).to_numpy()
    model = GradientBoostingRegressor(**parameters).fit(table, y)
    loaded = comes_back(model, tmp_path / "m.dtrees", table)
    both = [each.set_params(max_iter=6).fit(table, y) for each in (model, loaded)]
    np.testing.assert_array_equal(*(each.predict(table) for each in both))
    np.testing.assert_array_equal(*(each.validation_score_ for each in both))
