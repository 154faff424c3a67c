"""Files that were made to hurt: they are refused at once, and never cost more than they weigh."""

from __future__ import annotations

import io
import json
import traceback
import zipfile

import numpy as np
import pandas as pd
import pytest

from dtrees import GradientBoostingClassifier, RandomForestClassifier
from dtrees.core.model import packing
from dtrees.core.model.flat import DTYPES
from dtrees.exceptions import ModelFileError
from dtrees.export import load, save
from tests.export.test_models import rewritten, set_in
from tests.fuzz.children import Ending, in_child


def small_model(**parameters):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60), "c": rng.choice(list("abc"), 60)})
    X["c"] = X["c"].astype("category")
    y = (rng.random(60) < 0.3) ^ (X["c"] == "a").to_numpy()
    return RandomForestClassifier(2, random_state=0, **parameters).fit(X, y), X


SEED = small_model()[0]._fit_seed


def small_model_file(folder, layout):
    save(small_model()[0], folder / "model", layout=layout)


def changed(folder, change, layout="compact"):
    return rewritten(folder, change, layout, small_model_file)


def attempt(path):
    try:
        load(path)
    except ModelFileError:
        yield "refused"


def refused(path, match=None):
    """What `load` says, once a process with limits of time and memory has survived it."""
    assert in_child(attempt, path, seconds=20, megabytes=600) == Ending(["refused"], "")
    with pytest.raises(ModelFileError, match=match) as error:
        load(path)
    return str(error.value)


# ---------------------------------------------------------------------------------------------
# values


LONG = "x" * 1_000_000


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), LONG),
        (("estimator",), LONG),
        (("parameters", LONG), 1),
        (("parameters", "criterion"), LONG),
        (("parameters", "n_jobs"), [1] * 1_000_000),
        (("attributes", "max_features_"), LONG),
        (("attributes", "_fit_seed"), [1] * 1_000_000),
        (("attributes", "_fit_bags"), LONG),
        (("codebook", "handle_unknown"), LONG),
        (("trees", "layout"), LONG),
        (("trees", "criterion"), LONG),
    ],
    ids=lambda given: given[-1][:20] if isinstance(given, tuple) else "",
)
def test_errors_do_not_repeat_long_names(path, value, tmp_path):
    assert_short(changed(tmp_path, set_in(*path, to=value)))


def test_errors_do_not_repeat_a_long_version(tmp_path):
    of_later = {"written_by": LONG, "version": 99}
    assert_short(changed(tmp_path, lambda document, arrays: document.update(of_later)))


def assert_short(path):
    """What is said of a file that is refused."""
    with pytest.raises(ModelFileError) as error:
        load(path)
    shown = "".join(traceback.TracebackException.from_exception(error.value).format())
    assert len(shown) < 20_000


def document_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read("model.json")


def with_document(data, text):
    """The same file with another document, and its checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, inside in members:
            archive.writestr(zipfile.ZipInfo(name), text if name == "model.json" else inside)
    return made.getvalue()


# ---------------------------------------------------------------------------------------------
# parameters and attributes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", {"decimal": "1e6"}),
        ("n_jobs", 1.5),
        ("n_jobs", "2"),
        ("max_depth", 0),
        ("max_depth", {"fraction": [1, 3]}),
        ("n_estimators", 0),
        ("n_estimators", {"float": "inf"}),
        ("min_samples_leaf", {"float": "nan"}),
        ("ccp_alpha", -1.0),
        ("criterion", "squared_error"),
        ("random_state", 2**40),
        ("handle_unknown", None),
        ("bootstrap", 1),
        ("regime", "elsewhere"),
        ("class_weight", 3),
    ],
)
def test_parameters_are_checked(name, value, tmp_path):
    path = changed(tmp_path, set_in("parameters", name, to=value))
    assert f"{name!r} parameter of RandomForestClassifier must be" in refused(path)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_features_", "many"),
        ("max_features_", 10**9),
        ("n_outputs_", 2),
        ("n_features_in_", 2.0),
        ("n_classes_", True),
        ("_date_orders", "day"),
        ("_date_orders", {"array": ["<f8", [1], "00" * 8]}),
        ("_date_orders", {"array": ["|u1", [9], "00" * 9]}),
        ("_date_orders", {"array": ["|u1", [2], "0103"]}),
        ("_date_orders", {"array": ["|u1", [2], "0200"]}),  # of numbers
        ("classes_", {"array": ["|b1", [2, 1], "0001"]}),
        ("classes_", {"objects": [[2], [[], []]]}),
        ("classes_", {"objects": [[2], ["a", "a"]]}),
        ("_fit_seed", -1),
        ("_fit_seed", {"decimal": "7"}),
        ("_fit_bags", 3),
        ("_fit_bags", "x"),
        ("_fit_bags", ""),
        ("_fit_bags", f"0 0x1.0000000000000p+0 60 {'0' * 32}"),  # the bags of another seed
        ("_fit_bags", f"{SEED} 0x1.0000000000000p+2 60 {'0' * 32}"),  # four rows for each
        ("_fit_bags", f"{SEED} 0x0.0000000000000p+0 60 {'0' * 32}"),
        ("_fit_bags", f"{SEED} 0x1.0000000000000p+9999 60 {'0' * 32}"),
        ("_fit_bags", f"{SEED} 1.0 60 {'0' * 32}"),
        ("_fit_bags", f"{SEED} 0x1.0000000000000p+0 0 {'0' * 32}"),
        ("_fit_bags", f"{SEED} 0x1.0000000000000p+0 60 {'0' * 31}"),
        ("_fit_rows", 0),
        ("_fit_rows", 2**40),
        ("_fit_facts", [1]),
        ("oob_score_", "good"),
        ("oob_scores_", {"array": ["<f8", [3], "00" * 24]}),
        ("oob_decision_function_", {"array": ["<f8", [1, 3], "00" * 24]}),
        ("oob_decision_function_", {"array": ["<i8", [1, 2], "00" * 16]}),
    ],
)
def test_attributes_are_checked(name, value, tmp_path):
    assert name in refused(changed(tmp_path, set_in("attributes", name, to=value)))


@pytest.mark.parametrize("name", ["n_outputs_", "max_features_", "_fit_seed", "n_classes_"])
def test_attributes_that_are_missing(name, tmp_path):
    assert name in refused(
        changed(tmp_path, lambda document, arrays: document["attributes"].pop(name))
    )


def boosted_file(folder, layout):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    model = GradientBoostingClassifier(max_iter=2, early_stopping=True, random_state=0)
    save(model.fit(X, y), folder / "model", layout=layout)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_fit_loss", {"dict": [["name", "squared_error"], ["level", None]]}),
        ("_fit_loss", {"dict": [["name", LONG], ["level", None]]}),
        ("_fit_loss", {"dict": [["name", "log_loss"], ["level", 0.5]]}),
        ("_fit_loss", "log_loss"),
        ("_initial", {"array": ["<f8", [1], "00" * 8]}),
        ("_initial", {"array": ["<f8", [3], "ff" * 24]}),
        ("n_trees_per_iteration_", 1),
        ("do_early_stopping_", 1),
        ("validation_score_", {"array": ["<f8", [2], "00" * 16]}),
        ("train_score_", {"array": ["<i8", [0], ""]}),
        ("classes_", {"array": ["<i8", [2], "00" * 8 + "01" * 8]}),
        ("n_classes_", 2),
    ],
)
@pytest.mark.one_of(2)
def test_attributes_of_boosted_models_are_checked(name, value, tmp_path):
    change = set_in("attributes", name, to=value)
    assert name in refused(rewritten(tmp_path, change, made=boosted_file))


@pytest.mark.parametrize("criterion", ["gini", "poisson"])
def test_boosted_trees_are_of_numbers(criterion, tmp_path):
    change = set_in("trees", "criterion", to=criterion)
    refused(rewritten(tmp_path, change, made=boosted_file), match="criterion|not those of|damaged")


def test_attributes_that_nobody_knows(tmp_path):
    path = changed(tmp_path, set_in("attributes", "note_", to="a"))
    assert "has the attribute 'note_'" in refused(path)


def test_save_refuses_what_load_would(tmp_path):
    model, _ = small_model()
    model.set_params(max_depth=-1)
    with pytest.raises(
        ValueError, match=r"'max_depth' parameter of RandomForestClassifier must be"
    ):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", ["1e999", "-1", '"7"', "null", "9" * 4000, "true"])
def test_a_checkpoint_of_a_seed_that_is_none(seed, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    RandomForestClassifier(2).fit(X, y, checkpoint=tmp_path / "fit")
    path = tmp_path / "fit" / "checkpoint.json"
    document = json.loads(path.read_text())
    document["facts"]["seed"] = "SEED"
    path.write_text(json.dumps(document).replace('"SEED"', seed))
    with pytest.raises(ModelFileError, match="is damaged: its seed is"):
        RandomForestClassifier(2).fit(X, y, checkpoint=tmp_path / "fit")


# ---------------------------------------------------------------------------------------------
# arrays


@pytest.mark.parametrize("name", DTYPES)
def test_flat_arrays_of_another_type(name, tmp_path):
    def change(document, arrays):
        array = arrays[f"trees/{name}"]
        other = np.float32 if array.dtype == np.float64 else np.float64
        with np.errstate(all="ignore"):
            arrays[f"trees/{name}"] = array.astype(other)

    assert "the" in refused(changed(tmp_path, change, "flat"), match=r"the array|the subsets")


@pytest.mark.parametrize("name", DTYPES)
def test_trees_of_other_types_are_not_packed(name):
    (tree, *_) = small_model()[0].forest_.trees
    other = np.float32 if getattr(tree, name).dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        fields = {**vars(tree), name: getattr(tree, name).astype(other)}
    strange = object.__new__(type(tree))
    vars(strange).update(fields)
    assert packing.pack([tree]) is not None
    assert packing.pack([strange]) is None


@pytest.mark.parametrize("name", ["codebook/exact", "codebook/saw_missing"])
def test_booleans_that_are_neither(name, tmp_path):
    def change(document, arrays):
        arrays[name] = np.full(len(arrays[name]), 7, dtype=np.uint8).view(bool)

    assert "neither" in refused(changed(tmp_path, change))


def test_members_that_nothing_refers_to(tmp_path):
    for name in ("trees/more", "codebook/low.escapes", "values/7", "other/x", "x"):

        def change(document, arrays, name=name):
            arrays[name] = np.arange(3)

        assert repr(f"{name}.npy") in refused(changed(tmp_path, change))


def test_statistics_that_are_not_there_take_no_memory(tmp_path):
    """65,535 sums for each of 400,000 leaves would be 200 GB."""

    def change(document, arrays):
        n_nodes = 800_001
        inner = np.zeros(n_nodes, dtype=bool)
        inner[: n_nodes - 1 : 2] = True
        arrays["trees/n_nodes"] = np.array([n_nodes])
        arrays["trees/is_inner"] = np.packbits(inner)
        document["trees"]["n_statistics"] = 65_535

    refused(changed(tmp_path, change))
