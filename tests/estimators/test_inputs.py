"""The same tree, whatever holds the columns, the target and the weights."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor

rng = np.random.default_rng(0)
X = rng.integers(-3, 4, size=(120, 4)).astype(np.float64)
LABELS = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
NUMBERS = X[:, 0] * X[:, 1]
WEIGHTS = rng.integers(0, 4, 120)

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

TABLES = {
    "float32": X.astype(np.float32),
    "fortran": np.asfortranarray(X),
    "int8": X.astype(np.int8),
    "strided": np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "big endian": X.astype(">f8"),
    "read only": np.frombuffer(X.tobytes()).reshape(X.shape),
    "objects": X.astype(object),
    "list": X.tolist(),
    "pandas": pd.DataFrame(X, columns=list("abcd")),
    "pandas nullable": pd.DataFrame(X, columns=list("abcd")).convert_dtypes(),
    "polars": polars.DataFrame(dict(zip("abcd", X.T, strict=True))),
    "arrow": pyarrow.table(dict(zip("abcd", X.T, strict=True))),
    "csr": scipy.sparse.csr_array(X),
    "csc": scipy.sparse.csc_matrix(X),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", TABLES)
def test_tables(name, n_jobs):
    table = TABLES[name]
    expected = DecisionTreeClassifier().fit(X, LABELS)
    tree = DecisionTreeClassifier(n_jobs=n_jobs).fit(table, LABELS)
    assert tree.tree_.model.equals(expected.tree_.model)
    assert_array_equal(tree.predict(table), expected.predict(X))
    assert_array_equal(tree.apply(table), expected.apply(X))
    if hasattr(table, "columns"):
        names = getattr(table, "column_names", table.columns)
        assert_array_equal(tree.feature_names_in_, list(names))


@pytest.mark.parametrize(
    "hold",
    [
        list,
        pd.Series,
        polars.Series,
        pyarrow.array,
        lambda v: pd.Series(v).convert_dtypes(),
        lambda v: pd.Series(v, index=range(200, 80, -1)),
        lambda v: pd.Series(v, dtype=object),
    ],
    ids=["list", "pandas", "polars", "arrow", "nullable", "index", "objects"],
)
def test_targets_and_weights(hold):
    expected = DecisionTreeClassifier().fit(X, LABELS, WEIGHTS)
    tree = DecisionTreeClassifier().fit(X, hold(LABELS.tolist()), hold(WEIGHTS.tolist()))
    assert tree.tree_.model.equals(expected.tree_.model)
    assert_array_equal(tree.classes_, expected.classes_)
    expected = DecisionTreeRegressor().fit(X, NUMBERS, WEIGHTS)
    tree = DecisionTreeRegressor().fit(X, hold(NUMBERS.tolist()), hold(WEIGHTS.tolist()))
    assert tree.tree_.model.equals(expected.tree_.model)


def test_categorical_labels():
    tree = DecisionTreeClassifier().fit(X, pd.Series(pd.Categorical(LABELS)))
    assert_array_equal(tree.classes_, ["no", "yes"])


def test_columns_named_as_categories():
    frame = pd.DataFrame(X, columns=list("abcd"))
    y = (X[:, 0] % 2).astype(int)
    ordered = DecisionTreeClassifier(max_depth=1).fit(frame, y)
    assert ordered.score(frame, y) < 1
    for columns in (["a"], [0], [True, False, False, False], np.array([0])):
        tree = DecisionTreeClassifier(max_depth=1, categorical_features=columns).fit(frame, y)
        assert tree.score(frame, y) == 1
        assert np.isnan(tree.tree_.model.threshold[0])


def test_cuts_at_quantiles():
    values = np.random.default_rng(1).normal(size=(5000, 1))
    y = np.sin(3 * values[:, 0])
    exact = DecisionTreeRegressor().fit(values, y)
    cut = DecisionTreeRegressor(max_bins=64, random_state=0).fit(values, y)
    assert exact.get_n_leaves() == 5000
    assert cut.get_n_leaves() == 64
    assert cut.score(values, y) > 0.98


def test_rows_and_threads_do_not_matter():
    order = np.random.default_rng(2).permutation(len(X))
    tree = DecisionTreeRegressor(n_jobs=2).fit(X[order], NUMBERS[order], WEIGHTS[order])
    expected = DecisionTreeRegressor().fit(X, NUMBERS, WEIGHTS)
    assert tree.tree_.model.equals(expected.tree_.model)


@pytest.mark.parametrize("max_features", [1, 2, "sqrt", 0.5])
def test_draws_are_those_of_the_seed(max_features):
    def grow(seed, n_jobs=1):
        tree = DecisionTreeRegressor(max_features=max_features, random_state=seed, n_jobs=n_jobs)
        return tree.fit(values, y).tree_.model

    values = np.random.default_rng(3).normal(size=(300, 6))
    y = values.sum(axis=1)
    assert grow(0).equals(grow(0))
    assert grow(0).equals(grow(0, n_jobs=2))
    assert not grow(0).equals(grow(1))
    assert not grow(None).equals(grow(None))
    state = np.random.RandomState(0)
    assert not grow(state).equals(grow(state))
