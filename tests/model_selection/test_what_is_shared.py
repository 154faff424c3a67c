"""Growth is shared where the user guide says so: what ``fit_report_`` counts, table by table."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from dtrees import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.model_selection import GridSearchCV, cross_validate
from dtrees.parallel.fit_statistics import SHARED

RNG = np.random.default_rng(0)
N = 3_000
FEW = RNG.integers(0, 12, (N, 5)).astype(float)
MANY = RNG.normal(size=(N, 5))
GAPS = np.where(RNG.random(FEW.shape) < 0.1, np.nan, FEW)
ENTRIES = sp.csr_array(np.where(FEW > 8, FEW, 0.0))
WHOLE = RNG.integers(0, 3, N).astype(float)
SOME = (WHOLE > 0).astype(float)  # drawn like all rows, or not at all
HALVES = WHOLE / 2 + 0.5  # the same unit in every training side
FRACTIONS = np.linspace(0.1, 0.9, N)
NOISE = RNG.normal(size=N)


def classes_of(X):
    """Two classes, from two columns and some noise."""
    X = np.nan_to_num(X.toarray() if sp.issparse(X) else X)
    return (X[:, 0] + X[:, 1] / 2 + 0.1 * X[:, :2].std() * NOISE > np.median(X[:, 0])).astype(int)


TREE = {"max_depth": 4, "random_state": 0}
RISES = [1, 0, 0, 0, 0]
FOREST = {**TREE, "n_estimators": 3}
TOGETHER = {  # the lines of the table in docs/user_guide/validation.md
    "tree": (DecisionTreeClassifier(**TREE), FEW, None),
    "tree of numbers": (DecisionTreeRegressor(**TREE), FEW, None),
    "forest": (RandomForestClassifier(**FOREST), FEW, None),
    "forest of numbers": (RandomForestRegressor(**FOREST), FEW, None),
    "bagging": (BaggingClassifier(**FOREST), FEW, None),
    "forest, some rows": (RandomForestClassifier(**FOREST), FEW, SOME),
    "forest of numbers, some rows": (RandomForestRegressor(**FOREST), FEW, SOME),
    "bagging, some rows": (BaggingClassifier(**FOREST), FEW, SOME),
    "out-of-bag score": (
        RandomForestClassifier(25, max_depth=2, random_state=0, oob_score=True),
        *(FEW, None),
    ),
    "warm start": (RandomForestClassifier(**FOREST, warm_start=True), FEW, None),
    "whole weights": (DecisionTreeClassifier(**TREE), FEW, WHOLE),
    "fractional weights": (DecisionTreeClassifier(**TREE), FEW, HALVES),
    "missing values": (DecisionTreeClassifier(**TREE), GAPS, None),
    "categories": (DecisionTreeClassifier(**TREE, categorical_features=[0, 1]), FEW, None),
    "exact": (DecisionTreeClassifier(**TREE), MANY, None),
    "exact, of numbers": (DecisionTreeRegressor(**TREE), MANY, None),
    "entropy": (DecisionTreeClassifier(**TREE, criterion="entropy"), FEW, None),
    "poisson": (DecisionTreeRegressor(**TREE, criterion="poisson"), FEW, None),
    "class weights": (DecisionTreeClassifier(**TREE, class_weight={0: 1, 1: 2.5}), FEW, None),
    "balanced": (DecisionTreeClassifier(**TREE, class_weight="balanced"), FEW, None),
    "balanced fractions": (
        DecisionTreeClassifier(**TREE, class_weight="balanced"),
        *(FEW, FRACTIONS),
    ),
    "balanced forest": (ExtraTreesClassifier(**FOREST, class_weight="balanced"), FEW, None),
    "extra trees": (ExtraTreesClassifier(**FOREST), FEW, None),
    "extra trees of numbers": (ExtraTreesRegressor(**FOREST), FEW, None),
    "sparse": (DecisionTreeClassifier(**TREE), ENTRIES, None),
    "sparse, of numbers": (DecisionTreeRegressor(**TREE), ENTRIES, None),
    "sparse bags": (BaggingClassifier(**FOREST), ENTRIES, None),
    "sparse forest": (RandomForestClassifier(**FOREST), ENTRIES, None),
    "sparse, balanced": (DecisionTreeClassifier(**TREE, class_weight="balanced"), ENTRIES, None),
    "oob_tol": (RandomForestClassifier(21, max_depth=4, oob_tol=0.5, random_state=0), FEW, None),
    "sparse extra trees": (ExtraTreesClassifier(**FOREST), ENTRIES, None),
    "monotonic": (DecisionTreeClassifier(**TREE, monotonic_cst=RISES), FEW, None),
    "monotonic forest": (
        RandomForestRegressor(**FOREST, max_bins=255, monotonic_cst=RISES),
        *(MANY, None),
    ),
    "exact, entropy": (DecisionTreeClassifier(**TREE, criterion="entropy"), MANY, None),
    "exact, poisson": (DecisionTreeRegressor(**TREE, criterion="poisson"), MANY, None),
    "exact, whole weights": (DecisionTreeClassifier(**TREE), MANY, WHOLE),
    "exact, fractional weights": (DecisionTreeRegressor(**TREE), MANY, HALVES),
    "exact, balanced": (DecisionTreeClassifier(**TREE, class_weight="balanced"), MANY, None),
    "exact, two columns": (DecisionTreeClassifier(**TREE, interaction_cst="pairwise"), MANY, None),
    "sparse, two columns": (
        DecisionTreeClassifier(**TREE, interaction_cst="pairwise"),
        *(ENTRIES, None),
    ),
}

APART = {  # all sets from the root on, but in rounds
    "drawn from many codes": (ExtraTreesClassifier(**FOREST, max_bins=None), MANY, None),
    "exact, monotonic": (DecisionTreeClassifier(**TREE, monotonic_cst=RISES), MANY, None),
    "exact, monotonic, of numbers": (
        DecisionTreeRegressor(**TREE, monotonic_cst=RISES),
        *(MANY, None),
    ),
}


def shared(case, regime="local", n_jobs=1, lazily=False):
    """What the models of five folds and all rows have shared."""
    model, X, weight = case
    y = classes_of(X)
    model = model.set_params(n_jobs=n_jobs)
    params = None if weight is None else {"sample_weight": weight}
    if lazily:
        X, y = da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)
    with dask.config.set({"dtrees.regime": regime, "dtrees.gather-rows": 500}):
        found = cross_validate(model, X, y, cv=5, params=params, return_estimator=True)
    reports = [each.fit_report_ for each in (*found["estimator"], found["final_estimator"])]
    assert all(report == reports[0] for report in reports)
    return {name: reports[0][name] for name in SHARED}


class TestTheTableOfTheUserGuide:
    @pytest.mark.parametrize("name", TOGETHER)
    def test_what_grows_together(self, name):
        counts = shared(TOGETHER[name])
        n_trees = getattr(TOGETHER[name][0], "n_estimators", 1)
        assert counts["shared_nodes"] >= n_trees
        assert counts["shared_rows"] > 0.5 * N * n_trees  # of bags a part is there
        assert counts["alive_columns"] <= counts["bounded_columns"]
        assert (counts["bounded_columns"] > 0) == name.startswith("exact")

    @pytest.mark.parametrize("name", APART)
    def test_what_grows_apart(self, name):
        """Histograms of all codes would cost more, and there are no intervals."""
        assert shared(APART[name])["shared_nodes"] == 0

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("regime", ["local", "partitioned"])
    @pytest.mark.parametrize("name", ["tree", "forest", "exact", "sparse", "balanced forest"])
    def test_threads_count_the_same(self, name, regime):
        assert shared(TOGETHER[name], regime, 2) == shared(TOGETHER[name], regime)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize(
        "name",
        [
            *("tree", "forest", "whole weights", "balanced fractions", "extra trees", "sparse"),
            *("poisson", "monotonic", "exact, monotonic", "exact, two columns"),
            "monotonic forest",
        ],
    )
    def test_rounds(self, name):
        counts = shared((TOGETHER | APART)[name], "partitioned")
        assert counts["shared_nodes"] > 0
        assert counts["shared_rows"] > 0.5 * N

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("regime", ["local", "partitioned"])
    @pytest.mark.parametrize("name", ["tree", "forest"])
    def test_lazy_collections(self, name, regime):
        assert shared(TOGETHER[name], regime, lazily=True) == shared(TOGETHER[name], regime)


@pytest.mark.parametrize("regime", ["local", "partitioned"])
def test_sets_that_agree_share_all_of_the_tree(regime):
    """Counted twice: by the growth, and from the final model, whose inner nodes are all shared."""
    y = (FEW[:, 0] > 5) * 4 + (FEW[:, 1] > 7) * 2 + (FEW[:, 2] > 3)
    with dask.config.set({"dtrees.regime": regime, "dtrees.gather-rows": 2}):
        found = cross_validate(DecisionTreeClassifier(), FEW, y.astype(int), cv=3)
    model = found["final_estimator"]
    tree = model.tree_
    inner = tree.children_left >= 0
    assert inner.sum() == 7
    assert model.fit_report_["shared_nodes"] == inner.sum()
    assert model.fit_report_["shared_rows"] == tree.n_node_samples[inner].sum()


def test_searches():
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4]}, cv=3)
    report = search.fit(FEW, classes_of(FEW)).best_estimator_.fit_report_
    assert report["shared_nodes"] > 0
    nested = cross_validate(search, FEW, classes_of(FEW), cv=3)["final_estimator"]
    assert nested.best_estimator_.fit_report_["shared_rows"] >= N


def test_a_fit_shares_nothing_and_says_nothing():
    report = DecisionTreeClassifier(max_depth=2).fit(FEW, classes_of(FEW)).fit_report_
    assert not set(SHARED) & report.keys()
