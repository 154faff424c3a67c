"""Pipelines and other models of scikit-learn around ours come back, and nothing else is made."""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
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
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

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
ONE_STEP = make_pipeline(StandardScaler(), clone(TREE)).fit(X, Y)


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
    "columns by type": (
        make_pipeline(
            make_column_transformer(
                (StandardScaler(), make_column_selector(dtype_include=np.number)),
                (OneHotEncoder(), make_column_selector(dtype_exclude=[np.floating, int])),
            ),
            TREE,
        ),
        MIXED,
        Y,
    ),
    "columns of pandas": (make_pipeline(COLUMNS, FOREST).set_output(transform="default"), MIXED, Y),
    "categories of ours": (Pipeline([("none", "passthrough"), ("model", BOOSTED)]), MIXED, Y),
    "targets": (make_pipeline(TargetEncoder(), TREE), MIXED[["b"]], Y),
    "imputed": (make_pipeline(SimpleImputer(), SelectKBest(k=2), FOREST), X, Y),
    "text": (make_pipeline(TfidfVectorizer(token_pattern=r"\w"), FOREST), MIXED["b"], Y),
    "ufunc": (make_pipeline(FunctionTransformer(np.abs), TREE), X, Y),
    "sigmoid": (CalibratedClassifierCV(BOOSTED, cv=3), X, Y),
    "isotonic": (CalibratedClassifierCV(FOREST, method="isotonic", cv=3, ensemble=False), X, Y),
    "frozen": (CalibratedClassifierCV(FrozenEstimator(clone(FOREST).fit(X, Y)), cv=3), X, Y),
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


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", MODELS)
def test_models_of_scikit_learn(name):
    model, table, y = MODELS[name]
    model = clone(model).fit(table, y)  # steps are those of other models, too
    loaded = there_and_back(model)
    mine, theirs = (re.sub("0x[0-9a-f]+", "", repr(each)) for each in (loaded, model))
    assert mine == theirs
    for method in ("predict", "predict_proba"):
        if hasattr(model, method):
            theirs, ours = getattr(model, method)(table), getattr(loaded, method)(table)
            np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize(
    "types", [[object, "category"], [np.signedinteger, np.unsignedinteger], pd.CategoricalDtype()]
)
def test_selectors_of_types(types):
    table = MIXED.assign(b=MIXED["b"].astype("category"), c=(9 * X[:, 1]).astype(np.int16))
    chosen = make_column_transformer((OrdinalEncoder(), make_column_selector(dtype_include=types)))
    model = make_pipeline(chosen, clone(TREE)).fit(table, Y)
    loaded = there_and_back(model)
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    assert loaded[0].transformers[0][2](table) == model[0].transformers_[0][2]


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
    assert skops.get_untrusted_types(file=path) == ["dtrees.export.skops_files.SavedEstimator"]
    theirs = skops.load(path, trusted=["dtrees.export.skops_files.SavedEstimator"])
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
        r"holds a lambda, or .* \(.*lambda.*\) in its parameter 'functiontransformer__func'\. Take "
        "steps of scikit-learn": make_pipeline(FunctionTransformer(lambda values: values), TREE),
        r"Int64Dtype in its parameter 'columntransformer__transformers', which a": make_pipeline(
            make_column_transformer(
                (SimpleImputer(), make_column_selector(dtype_exclude=pd.Int64Dtype()))
            ),
            clone(TREE),
        ),
        r"The model holds sklearn\.tree\._tree\.Tree": StackingClassifier(
            [("a", TREE)], TheirForest(2)
        ),
    }
    for message, model in cases.items():
        with pytest.raises(TypeError, match=message):
            save(model.fit(MIXED[["a", "c"]], Y), path)
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
    with pytest.raises(ModelFileError, match=r"model' needs skops.io, which is not installed: pip"):
        load(path)
    monkeypatch.undo()
    monkeypatch.setattr("skops.__version__", "0.15.2")
    with pytest.raises(
        ImportError, match=r"needs skops 0\.16 or newer: pip install 'dask-dtrees\["
    ):
        save(ONE_STEP, path)
    with pytest.raises(ModelFileError, match=r"needs skops 0\.16 or newer"):
        load(path)
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    assert f'"skops>={skops_files.OLDEST_SKOPS}"' in pyproject.read_text()


def test_folders_of_caches_are_not_in_files(tmp_path):
    """`fit` opens the pickles that it finds in such a folder."""
    cached = Pipeline(ONE_STEP.steps, memory=str(tmp_path))
    model = VotingClassifier([("a", cached), ("b", TREE)]).fit(X, Y)
    loaded = there_and_back(model)
    assert model.estimators_[0].memory == str(tmp_path)
    assert loaded.estimators[0][1].memory is None
    assert loaded.estimators_[0].memory is None
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    text = node("str", JsonNode={"content": json.dumps(str(tmp_path))})
    array = {"type": "numpy", "file": "a.npy", "content": "null"}
    as_array = node("str_", "numpy", NdArrayNode=array)
    for memory in (text, as_array):
        file = forged(
            lambda schema, memory=memory: put(schema, "memory", memory),
            {"a.npy": member_of(np.str_(tmp_path))},
        )
        with pytest.raises(ModelFileError, match=r"Pipeline\(memory=\.\.\.\), which is not safe"):
            load(file)
    state = node("str", JsonNode={"content": json.dumps({"memory": str(tmp_path)})})
    with pytest.raises(ModelFileError, match="not safe to load"):
        load(forged(lambda schema: schema | {"content": state}))


# ---------------------------------------------------------------------------------------------
# files that are not what they should be


def forged(change, members=(), model=ONE_STEP):
    """The file of a model, with another schema and more members."""
    source, target = io.BytesIO(in_memory(model)), io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "schema.json":
                data = json.dumps(change(json.loads(data))).encode()
            new.writestr(name, data)
        for name, data in dict(members).items():
            new.writestr(name, data)
    return io.BytesIO(target.getvalue())


def node(name, module="builtins", id=None, **loader):
    """An object in a schema."""
    ((loader, rest),) = loader.items()
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": id} | rest


NONE = node("str", JsonNode={"content": "null"})


def put(schema, name, value):
    """The schema with an attribute of the pipeline."""
    schema["content"]["content"][name] = value
    return schema


def member_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


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
            lambda schema, module=module, name=name: replaced('"SavedEstimator"', json.dumps(name))(
                replaced('"dtrees.export.skops_files"', json.dumps(module))(schema)
            )
        )
        with pytest.raises(ModelFileError, match="which is not safe to load") as error:
            load(file)
        assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize("protocol", [0, 1, 99, "2", True])
def test_protocols_whose_loaders_are_not_known_are_refused(protocol):
    with pytest.raises(
        ModelFileError, match=f"protocol {protocol} of skops; this dtrees reads prot"
    ):
        load(forged(lambda schema: schema | {"protocol": protocol}))
    assert load(forged(lambda schema: schema | {"_skops_version": "0.17.3"}))


@pytest.mark.parametrize(
    "again", [lambda k: {"__id__": k}, lambda k: node("str", id=k, JsonNode={"content": "1"})]
)
def test_objects_that_hold_one_twice_are_written_twice(again):
    """Otherwise a few lines would be a billion objects."""
    inner = node("str", id=1, JsonNode={"content": "1"})
    for k in range(2, 12):
        inner = node("list", id=k, ListNode={"content": [inner, again(k - 1)]})
    with pytest.raises(ModelFileError, match="is damaged"):
        load(forged(lambda schema: put(schema, "verbose", inner)))


def test_little_that_makes_much():
    zeros = node("bytes", BytesNode={"file": "zeros"})
    many = node("list", ListNode={"content": [zeros] * 9})
    with pytest.raises(ModelFileError, match="what its members make is larger than the file"):
        load(forged(lambda schema: put(schema, "verbose", many), {"zeros": bytes(10**5)}))

    text = node("str", JsonNode={"content": '"DecisionTreeClassifier"'})
    model = node("bytes", id=7, BytesNode={"file": "model"})
    tuple_ = node("tuple", id=8, TupleNode={"content": [text, NONE, model]})
    trees = [
        node("SavedEstimator", skops_files.__name__, id=n, ConstructorFromReduceNode={
            "content": tuple_
        })
        for n in range(10, 60)
    ]  # fmt: skip
    many = node("list", ListNode={"content": trees})
    with pytest.raises(ModelFileError, match="what its members make is larger than the file"):
        load(forged(lambda schema: put(schema, "v", many), {"model": in_memory(TREE.fit(X, Y))}))

    for name, number in (("void", 10**6), ("bytes_", 10**6), ("float64", np.zeros(3))):
        scalar = node(name, "numpy", NdArrayNode={"type": "numpy", "file": "n"})
        file = forged(lambda schema, n=scalar: put(schema, "verbose", n), {"n": member_of(number)})
        with pytest.raises(ModelFileError, match=f"n is no {name}"):
            load(file)

    shape = node("tuple", TupleNode={"content": [NONE, NONE]})
    table = node("ndarray", "numpy", NdArrayNode={"type": "json", "content": [], "shape": shape})
    sparse = node("spmatrix", "scipy.sparse._matrix", SparseMatrixNode={"type": "scipy"})
    for thing, message in ((table, "a table of objects"), (sparse, "spmatrix")):
        with pytest.raises(ModelFileError, match=f"{message}, which is not safe to load"):
            load(forged(lambda schema, thing=thing: put(schema, "verbose", thing)))
    steps = [("s", StandardScaler()), ("t", TREE)]
    model = Pipeline(steps).fit(X, Y)
    model[0].mine_ = csr_array(np.eye(3))
    with pytest.raises(TypeError, match=r"scipy.*csr_array in its parameter 's', which a safe"):
        in_memory(model)


def test_functions_are_not_called():
    where = "sklearn.feature_selection._mutual_info"
    rest = {"content": NONE, "__reduce__": {"args": NONE}}
    for loader in ("ConstructorFromReduceNode", "LossNode", "ListNode", "DictNode", "TypeNode"):
        call = node("mutual_info_regression", where, **{loader: rest})
        with pytest.raises(ModelFileError, match="mutual_info_regression, which is not safe"):
            load(forged(lambda schema, call=call: put(schema, "verbose", call)))
    for loader in ("ObjectNode", "FunctionNode", "ConstructorFromReduceNode"):
        call = node("number", "numpy", **{loader: rest})
        with pytest.raises(ModelFileError, match=r"numpy\.number, which is not safe"):
            load(forged(lambda schema, call=call: put(schema, "verbose", call)))
    call = node("Generator", "numpy.random", ConstructorFromReduceNode=rest)
    with pytest.raises(ModelFileError, match=r"numpy\.random\.Generator, which is not safe"):
        load(forged(lambda schema: put(schema, "verbose", call)))


def test_words_of_schemas_are_words_of_texts():
    """A vocabulary may hold any of them, for a text on such files."""
    words = ["__id__", "__loader__", "__class__", "file", "content", "memory", "key_types"]
    vectorizer = TfidfVectorizer(token_pattern=r"\w+", vocabulary=words)
    model = make_pipeline(vectorizer, TREE).fit(words * 9, [0, 1, 1, 0, 1, 0, 1] * 9)
    assert there_and_back(model)[0].vocabulary_ == model[0].vocabulary_


def held(name, parameters, content):
    """A SavedEstimator that has made no estimator."""
    found = object.__new__(skops_files.SavedEstimator)
    vars(found).update(name=name, parameters=parameters, content=content)
    return found


def saved(name, parameters, content):
    return skops.dumps(make_pipeline(held(name, parameters, content)))


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
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("schema.json", b"{}")
    packed.seek(0)
    with pytest.raises(ModelFileError, match="its members are compressed"):
        load(packed)
    for schema in ([], {}, "x", {"protocol": 2}):
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
