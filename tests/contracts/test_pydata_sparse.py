"""Arrays of the package ``sparse`` are tables as those of SciPy are, in all public functions."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from distributed import Client
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from dtrees import (
    BaggingClassifier,
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    estimate_cost,
)
from dtrees.coding.tables import read_table
from dtrees.model_selection import (
    GridSearchCV,
    boosting_curve,
    cost_complexity_cv,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    nested_standard_error,
    tuned_size,
    validation_surface,
)
from tests.parallel.clusters import connect

sparse = pytest.importorskip("sparse")

RNG = np.random.default_rng(0)
TABLE = np.where(RNG.random((120, 8)) < 0.3, RNG.integers(1, 9, (120, 8)), 0.0)
Y = (TABLE[:, 0] + TABLE[:, 1] > 2).astype(int)
KINDS = ("COO", "GCXS", "DOK")
TREE = DecisionTreeClassifier(random_state=0)
FOREST = RandomForestClassifier(3, random_state=0)
BOOSTED = GradientBoostingClassifier(max_iter=3)
PIPELINE = make_pipeline(MaxAbsScaler(), TREE)
DEPTHS = {"max_depth": [1, 2, 3]}


def lazily(kind):
    return da.from_array(TABLE, chunks=(50, 8)).map_blocks(getattr(sparse, kind).from_numpy)


def predicted(model):
    def answers(X):
        model.fit(X, Y)
        found = model.predict_proba(X), model.predict(X)[:, None]
        return np.hstack([*map(np.asarray, found), np.full((120, 1), model.score(X, Y))])

    return answers


def searched(estimator, grid):
    def answers(X):
        search = GridSearchCV(estimator, grid, cv=3).fit(X, Y)
        return np.hstack([search.cv_results_["mean_test_score"], search.predict(TABLE)])

    return answers


def few(X):
    """Five rows of the table, of its type: numba takes ten seconds to compile `X[:5]`."""
    return getattr(type(X), "from_numpy", type(X))(TABLE[:5])


WORK = {
    "tree": predicted(TREE),
    "leaves": lambda X: np.asarray(TREE.fit(X, Y).apply(X)),
    "forest": predicted(FOREST),
    "extra trees": predicted(ExtraTreesClassifier(3, random_state=0)),
    "bagging": predicted(BaggingClassifier(n_estimators=3, random_state=0)),
    "boosted": predicted(BOOSTED),
    "cross_validate": lambda X: cross_validate(FOREST, X, Y, cv=3)["test_score"],
    "cross_val_score": lambda X: cross_val_score(TREE, X, Y, cv=3),
    "cross_val_predict": lambda X: cross_val_predict(BOOSTED, X, Y, cv=3),
    "search": searched(TREE, DEPTHS),
    "nested": lambda X: cross_val_score(GridSearchCV(TREE, DEPTHS, cv=2), X, Y, cv=3),
    "surface": lambda X: validation_surface(TREE, X, Y, cv=3).scores,
    "pruning": lambda X: cost_complexity_cv(TREE, X, Y, cv=3).errors,
    "curve": lambda X: boosting_curve(BOOSTED, X, Y, cv=3).scores,
    "size": lambda X: tuned_size(TREE, X, Y, 3).chosen.scores,
    "error": lambda X: [
        nested_standard_error(TREE, X, Y, cv=3, n_repeats=2, random_state=0).standard_error
    ],
}
IN_MEMORY = {
    "cost": lambda X: [estimate_cost(FOREST, X).code_bytes],
    "shown": lambda X: BOOSTED.fit(X, Y, X_val=X, y_val=Y).predict_proba(X),
    "begun": lambda X: BOOSTED.fit(X, Y, init_score=Y).predict_proba(X, init_score=Y),
    "scored": lambda X: BOOSTED.fit(X, Y, eval_set=[(few(X), Y[:5])])._curves["valid_0"]["loss"],
    "staged": lambda X: np.hstack(list(BOOSTED.fit(X, Y).staged_predict_proba(X))),
    "path": lambda X: TREE.fit(X, Y).decision_path(X).toarray(),
    "pipeline": lambda X: cross_validate(PIPELINE, X, Y, cv=3)["test_score"],
    "search of a pipeline": searched(PIPELINE, {"decisiontreeclassifier__max_depth": [1, 2]}),
}


@pytest.mark.one_of(8)
@pytest.mark.parametrize("work", WORK | IN_MEMORY)
def test_they_are_as_those_of_scipy(work):
    answers = (WORK | IN_MEMORY)[work]
    expected = answers(scipy.sparse.csr_array(TABLE))
    for kind in KINDS:
        np.testing.assert_array_equal(answers(getattr(sparse, kind).from_numpy(TABLE)), expected)
    if work in WORK:
        np.testing.assert_array_equal(answers(lazily("COO")), expected)


def test_cells_are_read_as_they_are():
    for kind in KINDS:
        given = getattr(sparse, kind).from_numpy(TABLE.astype(np.float32))
        assert read_table(given).sparse.dtype == np.float32
        np.testing.assert_array_equal(read_table(given).sparse.toarray(), TABLE)


@pytest.mark.long
@pytest.mark.rest
def test_blocks_on_two_workers():
    whole = scipy.sparse.csr_array(TABLE)
    with connect(2, 1, True) as cluster, Client(cluster):
        for regime in ("replicated", "partitioned"):
            forest = RandomForestClassifier(3, random_state=0, regime=regime)
            expected = clone(forest).set_params(regime="local").fit(whole, Y).predict_proba(whole)
            for kind in KINDS[:2]:  # numba takes seconds to compile what Dask asks of GCXS
                forest.fit(lazily(kind), Y)
                assert forest.fit_report_["regime"] == regime
                np.testing.assert_array_equal(forest.predict_proba(lazily("COO")), expected)


def test_those_that_are_no_table():
    with pytest.raises(ValueError, match=r"fill value of 1\.0; it must be 0\. Give X\.todense"):
        TREE.fit(sparse.COO.from_numpy(TABLE + 1, fill_value=1.0), Y)
    with pytest.raises(ValueError, match="Expected 2D array, got a sparse array"):
        TREE.fit(sparse.COO.from_numpy(Y), Y)


@pytest.mark.parametrize("table", ["sparse", "frame"])
def test_a_pipeline_over_a_collection_that_has_no_rows_is_refused_at_once(table):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")

    def fail(block):
        raise AssertionError("computed")

    scipys = da.from_array(TABLE, chunks=(50, 8)).map_blocks(scipy.sparse.csr_array)
    X = scipys.map_blocks(fail, meta=scipys._meta, dtype=float)
    if table == "frame":
        frame = pd.DataFrame(TABLE, columns=list("abcdefgh"))
        X = dd.from_pandas(frame, npartitions=3).map_partitions(fail, meta=frame.iloc[:0])
    search = GridSearchCV(PIPELINE, {"decisiontreeclassifier__max_depth": [1, 2]}, cv=3)
    why = "sparse blocks" if table == "sparse" else "no row numbers"
    for work in (
        lambda: search.fit(X, Y),
        lambda: cross_validate(PIPELINE, X, Y, cv=3),
        lambda: cross_val_score(PIPELINE, X, Y, cv=3),
        lambda: cross_val_predict(PIPELINE, X, Y, cv=3),
        lambda: cross_validate(search, X, Y, cv=3),
    ):
        with pytest.raises(TypeError, match=f"{why}.* in place of a pipeline, its last step"):
            work()
