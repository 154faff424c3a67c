"""Pipelines and other models of scikit-learn around ours come back, and nothing else is made."""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import RandomForestClassifier as TheirForest
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler, TargetEncoder

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from dtrees.exceptions import ModelFileError
from dtrees.export import load, save, skops_files
from tests.export.examples import examples

skops = pytest.importorskip("skops.io")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
MIXED = pd.DataFrame({"a": X[:, 0], "b": RNG.choice(list("pqr"), 90), "c": X[:, 1]})
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
FOREST = RandomForestClassifier(3, random_state=0)
BOOSTED = GradientBoostingClassifier(max_iter=3, min_samples_leaf=3, random_state=0)
COLUMNS = ColumnTransformer(
    [("o", OneHotEncoder(), ["b"]), ("n", StandardScaler(), make_column_selector("a"))],
    remainder="passthrough",
)
ONE_STEP = make_pipeline(StandardScaler(), TREE).fit(X, Y)


def in_memory(model, **options):
    file = io.BytesIO()
    save(model, file, **options)
    return file.getvalue()


def there_and_back(model, **options):
    return load(io.BytesIO(in_memory(model, **options)))


def twice(values):
    return 2 * values


MODELS = {
    "pipeline": (make_pipeline(StandardScaler(), TREE), X, Y),
    "columns": (make_pipeline(COLUMNS, FOREST), MIXED, Y),
    "columns of pandas": (make_pipeline(COLUMNS, FOREST).set_output(transform="default"), MIXED, Y),
    "categories of ours": (Pipeline([("none", "passthrough"), ("model", BOOSTED)]), MIXED, Y),
    "targets": (make_pipeline(TargetEncoder(), TREE), MIXED[["b"]], Y),
    "imputed": (make_pipeline(SimpleImputer(), SelectKBest(k=2), FOREST), X, Y),
    "text": (make_pipeline(TfidfVectorizer(token_pattern=r"\w"), FOREST), MIXED["b"], Y),
    "ufunc": (make_pipeline(FunctionTransformer(np.abs), TREE), X, Y),
    "sigmoid": (CalibratedClassifierCV(BOOSTED, cv=3), X, Y),
    "isotonic": (CalibratedClassifierCV(FOREST, method="isotonic", cv=3, ensemble=False), X, Y),
    "frozen": (CalibratedClassifierCV(FrozenEstimator(FOREST.fit(X, Y)), cv=3), X, Y),
    "pipeline in it": (CalibratedClassifierCV(make_pipeline(COLUMNS, TREE), cv=3), MIXED, Y),
    "vote": (VotingClassifier([("a", TREE), ("b", BOOSTED)], voting="soft"), X, Y),
    "stack": (StackingClassifier([("a", TREE), ("b", BOOSTED)], LogisticRegression()), X, Y),
    "one or the rest": (OneVsRestClassifier(TREE), X, np.arange(90) % 3),
    "two targets": (MultiOutputClassifier(TREE), X, np.c_[Y, Y[::-1]]),
    "target": (
        TransformedTargetRegressor(DecisionTreeRegressor(), func=np.log1p, inverse_func=np.expm1),
        X,
        Y,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_scikit_learn(name):
    model, table, y = MODELS[name]
    model.fit(table, y)
    loaded = there_and_back(model)
    mine, theirs = (re.sub("0x[0-9a-f]+", "", repr(each)) for each in (loaded, model))
    assert mine == theirs
    for method in ("predict", "predict_proba"):
        if hasattr(model, method):
            theirs, ours = getattr(model, method)(table), getattr(loaded, method)(table)
            np.testing.assert_array_equal(theirs, ours)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples())
def test_every_estimator_is_a_step(example):
    model = Pipeline([("same", FunctionTransformer()), ("model", example.model)])
    loaded = there_and_back(model, layout="flat")
    assert type(loaded[-1]) is type(example.model)
    np.testing.assert_array_equal(loaded.predict(example.rows), model.predict(example.rows))


def test_files_are_those_of_skops(tmp_path):
    path = tmp_path / "model.dtrees"
    for _ in range(2):  # the second one replaces the first
        save(ONE_STEP, path)
    assert list(tmp_path.iterdir()) == [path]
    np.testing.assert_array_equal(load(path).predict(X), ONE_STEP.predict(X))
    assert skops.get_untrusted_types(file=path) == ["dtrees.export.skops_files.Saved"]
    theirs = skops.load(path, trusted=["dtrees.export.skops_files.Saved"])
    np.testing.assert_array_equal(theirs.predict(X), ONE_STEP.predict(X))
    with pytest.raises(ValueError, match="holds a model of scikit-learn, not ours alone"):
        load(path, mmap=True)


def test_one_model_in_two_places_stays_one():
    tree = DecisionTreeClassifier(max_depth=2).fit(X, Y)
    steps = [(name, FrozenEstimator(tree)) for name in "ab"]
    voted = there_and_back(VotingClassifier(steps).fit(X, Y))
    a, b = voted.estimators
    assert a[1].estimator is b[1].estimator


def test_a_loaded_pipeline_is_fitted_again():
    loaded = there_and_back(ONE_STEP).set_params(decisiontreeclassifier__max_depth=1)
    assert loaded.fit(X, Y)[-1].get_depth() == 1


def test_what_is_refused(tmp_path):
    path = tmp_path / "model"
    with pytest.raises(NotFittedError):
        save(make_pipeline(StandardScaler(), clone(TREE)), path)
    theirs = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    with pytest.raises(TypeError, match=r"with a fitted one of them inside\. Got .*Pipeline inste"):
        save(theirs, path)
    cases = {
        r"__main__|test_skops_files\.twice": make_pipeline(FunctionTransformer(twice), TREE),
        "cannot be saved: Can't": make_pipeline(FunctionTransformer(lambda values: values), TREE),
        r"StackingClassifier holds sklearn\.tree\._tree\.Tree": StackingClassifier(
            [("a", TREE)], TheirForest(2)
        ),
    }
    for message, model in cases.items():
        with pytest.raises(TypeError, match=message):
            save(model.fit(X, Y), path)
    search = GridSearchCV(make_pipeline(TREE), {"decisiontreeclassifier__max_depth": [1]}, cv=2)
    with pytest.raises(TypeError, match="Save its best_estimator_"):
        save(search.fit(X, Y), path)
    save(search.best_estimator_, path)
    assert load(path)[0].max_depth == 1


def test_without_skops(monkeypatch, tmp_path):
    path = tmp_path / "model"
    save(ONE_STEP, path)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'dask-dtrees\[skops\]'"):
        save(ONE_STEP, path)
    with pytest.raises(ModelFileError, match=r"model' needs skops, which is not installed: pip"):
        load(path)


# ---------------------------------------------------------------------------------------------
# files that are not what they should be


def forged(change, model=ONE_STEP):
    """The file of a model, with another schema."""
    source, target = io.BytesIO(in_memory(model)), io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "schema.json":
                data = json.dumps(change(json.loads(data))).encode()
            new.writestr(name, data)
    return io.BytesIO(target.getvalue())


def replaced(old, new):
    return lambda schema: json.loads(json.dumps(schema).replace(old, new))


def test_types_that_run_something_are_refused():
    for module, name in (
        ("os", "system"),
        ("subprocess", "Popen"),
        ("dtrees.export.models", "save"),
        ("dtrees.export.archive", "write_file"),
        ("sklearn.datasets._base", "urlretrieve"),
        ("sklearn.tree._tree", "Tree"),
        ("dtrees.core.model.tree", "Tree"),
        ("dtrees.estimators.trees", "DecisionTreeClassifier"),
    ):
        file = forged(
            lambda schema, module=module, name=name: replaced('"Saved"', json.dumps(name))(
                replaced('"dtrees.export.skops_files"', json.dumps(module))(schema)
            )
        )
        with pytest.raises(ModelFileError, match="none of the types that are safe to load"):
            load(file)


def saved(name, parameters, content):
    return skops.dumps(make_pipeline(skops_files._saved(name, parameters, content)))


def test_models_inside_that_are_not_ours():
    inner = in_memory(TREE.fit(X, Y))
    assert load(io.BytesIO(saved("any", {}, inner)))[0].predict(X).tolist() == (
        TREE.predict(X).tolist()
    )
    assert load(io.BytesIO(saved("DecisionTreeClassifier", {"max_depth": 4}, None)))[0].max_depth
    for name, parameters, content, message in (
        ("DecisionTreeClassifier", {}, in_memory(ONE_STEP), "zip archive without model.json"),
        ("DecisionTreeClassifier", {}, inner[:-30], "damaged"),
        ("DecisionTreeClassifier", {}, b"", "it is empty"),
        ("GridSearchCV", {}, None, "no estimator 'GridSearchCV'"),
        ("DecisionTreeClassifier", {"depth": 1}, None, "damaged: TypeError"),
        (["DecisionTreeClassifier"], {}, None, "no estimator"),
    ):
        with pytest.raises(ModelFileError, match=message):
            load(io.BytesIO(saved(name, parameters, content)))


def test_files_that_are_no_models():
    for thing in ([1, 2], {"a": 1}, np.arange(3)):
        with pytest.raises(ModelFileError, match="it holds no model"):
            load(io.BytesIO(skops.dumps(thing)))
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 10**7)
    bomb.seek(0)
    with pytest.raises(ModelFileError, match="its members are larger than the file"):
        load(bomb)
    for schema in ([], {}, {"protocol": 99}, {"protocol": True}, "x", {"protocol": 2}):
        with pytest.raises(ModelFileError, match="is damaged"):
            load(forged(lambda _, schema=schema: schema))


def test_every_byte_that_is_flipped():
    """An error, or the same model."""
    good = in_memory(ONE_STEP)
    bits = np.random.default_rng(0).integers(0, 8, len(good))
    expected, n_wrong = ONE_STEP.predict_proba(X[:9]), 0
    for at in range(0, len(good), 97):
        bad = bytearray(good)
        bad[at] ^= 1 << bits[at]
        try:
            loaded = load(io.BytesIO(bytes(bad)))
        except ModelFileError:
            n_wrong += 1
        else:
            np.testing.assert_array_equal(loaded.predict_proba(X[:9]), expected)
    assert n_wrong > 100
    for length in range(0, len(good), 371):
        with pytest.raises(ModelFileError):
            load(io.BytesIO(good[:length]))
