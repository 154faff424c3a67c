"""Fits of Dask collections: the model is that of the table in memory, however it is cut."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone, is_classifier

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
from dtrees.coding import CodeBook
from dtrees.exceptions import ClusterError, TableTooLargeError
from dtrees.model_selection import (
    GridSearchCV,
    HashKFold,
    cost_complexity_cv,
    cross_validate,
    tuned_size,
    validation_surface,
)
from dtrees.parallel import admitted, encode_partitions
from tests.parallel.clusters import connect, digest, noted, ours

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
ReadParquet = pytest.importorskip("dask.dataframe.dask_expr.io.parquet").ReadParquet


N_ROWS = 600
# the last one is more than a half, and split where it is more than a worker's share
UNEVEN = tuple(np.diff([0, *sorted(np.random.default_rng(3).integers(0, 40, 63) * 7), N_ROWS]))
STORAGE = {"dense": lambda table: table.toarray(), "csc": sp.csc_matrix}
LAYOUTS = {"1": (N_ROWS,), "2": (250, 350), "7": (90,) * 6 + (60,), "64": UNEVEN}


def numbers():
    """Numbers, most columns of more values than codes, some of them missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5)).round(2)
    X[:, 1] = rng.integers(0, 9, N_ROWS)
    y = (X[:, 0] + X[:, 1] / 4 + rng.normal(size=N_ROWS) > 1).astype(int) + (X[:, 2] > 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


X, Y = numbers()
WEIGHTS = np.random.default_rng(1).choice([0, 0.5, 1, 2.25], size=N_ROWS)
SPARSE = sp.csr_array(np.where(np.random.default_rng(2).random(X.shape) < 0.4, X, 0))


def mixed():
    """A frame with a column of every kind."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"], index=np.arange(N_ROWS) * 2 + 7)
    frame["single"] = X[:, 2].astype(np.float32)
    frame["flag"] = X[:, 3] > 0
    frame["whole"] = pd.array(rng.integers(0, 300, N_ROWS), dtype="Int64")
    frame.loc[frame.index[::11], "whole"] = pd.NA
    frame["arrow"] = pd.array(rng.integers(0, 5, N_ROWS), dtype="int8[pyarrow]")
    frame.loc[frame.index[400:410], "arrow"] = pd.NA
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(N_ROWS) % 50, unit="D")
    frame["kind"] = pd.Categorical(rng.choice(["p", "q", "r", "s"], N_ROWS))
    frame["word"] = rng.choice([f"w{i}" for i in range(40)], N_ROWS)
    frame["text"] = pd.Series(
        rng.choice(["1", "2.5", "u", None], N_ROWS), frame.index, dtype=object
    )
    return frame


FRAME = mixed()


def cut(table, layout="7", columns=None):
    """A table as a Dask array of partitions of these sizes."""
    chunks = LAYOUTS[layout] if isinstance(layout, str) else layout
    if sp.issparse(table):
        return cut(table.toarray(), layout).map_blocks(sp.csr_array)
    array = da.from_array(table, chunks=-1)
    return array.rechunk((chunks, *((columns or -1,) if array.ndim == 2 else ())))


def parted(frame, layout="7"):
    """A data frame as partitions of these sizes, each with the categories that it has."""
    ends = np.cumsum(LAYOUTS[layout])
    parts = [frame.iloc[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def part(rows):
        rows = rows.copy()
        for name in rows.select_dtypes("category"):
            rows[name] = rows[name].cat.remove_unused_categories()
        return rows

    meta = frame.iloc[:0].copy()
    for name in meta.select_dtypes("category"):
        meta[name] = dd.utils.clear_known_categories(meta[name])
    lazy = [dask.delayed(part(rows)) for rows in parts]
    return dd.from_delayed(lazy, meta=meta, verify_meta=False)


@contextmanager
def on(client):
    """A cluster in force. Not by the client in the configuration, which workers are sent."""
    with client.as_current(), dask.config.set(scheduler="dask.distributed"):
        yield


def all_trees(model):
    """The trees of a model, or of all models of a cross-validation."""
    if isinstance(model, Folds):
        models = [*model.found["estimator"], model.found["final_estimator"]]
        return [tree for fitted in models for tree in all_trees(fitted)]
    return model.forest_.trees if hasattr(model, "forest_") else [model.tree_.model]


def hash_of(model):
    """One hash of all arrays of all trees, and of the scores of a cross-validation."""
    scores = model.found["test_score"].tolist() if isinstance(model, Folds) else ""
    return f"{digest(all_trees(model))}{scores}"


class Folds(BaseEstimator):
    """A cross-validation in the place of a model.

    Parameters
    ----------
    model : estimator
    n_folds : int, default=3
    """

    def __init__(self, model, n_folds=3):
        self.model, self.n_folds = model, n_folds

    def set_params(self, **parameters):
        """Those of the model."""
        self.model.set_params(**parameters)
        return self

    def fit(self, X, y, sample_weight=None):
        """Cross-validate."""
        self.found = cross_validate(
            self.model,
            X,
            y,
            cv=HashKFold(
                self.n_folds, stratify=is_classifier(self.model) and np.ndim(y) == 1, random_state=1
            ),
            params=None if sample_weight is None else {"sample_weight": sample_weight},
            return_estimator=True,
        )
        self.fit_report_ = self.found["final_estimator"].fit_report_  # of all, which grow together
        return self


TWO, NUMBERS = Y > 0, np.nan_to_num(Y + X[:, 4] ** 2)
FIVE = Y + 2 * (X[:, 3] > 0)
MODELS = {
    "tree": (DecisionTreeClassifier(), X, Y, None),
    "tree of numbers": (DecisionTreeRegressor(min_samples_leaf=3), X, NUMBERS, WEIGHTS),
    "leaves": (
        DecisionTreeRegressor(max_leaf_nodes=12, ccp_alpha=0.001, categorical_features=[1]),
        *(X, NUMBERS, None),
    ),
    "pruned": (DecisionTreeClassifier(criterion="entropy", ccp_alpha=0.002), X, Y, None),
    "drawn": (
        DecisionTreeClassifier(
            max_features=2, min_weight_fraction_leaf=0.05, min_samples_split=0.1
        ),
        *(X, Y, WEIGHTS),
    ),
    "balanced tree": (
        DecisionTreeClassifier(class_weight="balanced", categorical_features=[1]),
        *(X, Y, None),
    ),
    "dict": (DecisionTreeClassifier(class_weight={0: 2.0, 2: 0.3}), X, Y, WEIGHTS),
    "forest": (RandomForestClassifier(3, max_bins=32), X, Y, None),
    "weights": (RandomForestClassifier(2, max_bins=32), X, Y, WEIGHTS),
    "balanced": (RandomForestClassifier(3, class_weight="balanced"), X, Y, None),
    "balanced bags": (
        RandomForestClassifier(2, class_weight="balanced_subsample", criterion="entropy"),
        *(X, Y, WEIGHTS),
    ),
    "one tree": (RandomForestClassifier(1, max_leaf_nodes=9, max_bins=None), X, Y, None),
    "small bags": (RandomForestClassifier(9, max_samples=1), X, Y, WEIGHTS),
    "shares": (
        RandomForestRegressor(
            3, min_samples_leaf=0.01, min_weight_fraction_leaf=0.02, max_features=2
        ),
        *(X, NUMBERS, WEIGHTS),
    ),
    "deviance": (RandomForestRegressor(3, criterion="poisson"), X, NUMBERS, None),
    "absolute errors": (
        RandomForestRegressor(3, criterion="absolute_error"),
        *(X, NUMBERS, WEIGHTS),
    ),
    "bagging": (BaggingRegressor(3, ccp_alpha=0.01, max_leaf_nodes=12), X, NUMBERS, None),
    "cuts": (ExtraTreesRegressor(2, max_bins=32), X, 1.0 * Y, None),
    "balanced cuts": (
        ExtraTreesClassifier(3, class_weight="balanced_subsample"),
        *(X, Y, 4 * WEIGHTS),
    ),
    "sparse": (RandomForestClassifier(2, max_bins=8), SPARSE, Y, None),
    "sparse-exact": (DecisionTreeClassifier(), SPARSE, Y, WEIGHTS),
    "sparse numbers": (RandomForestRegressor(2, min_samples_leaf=3), SPARSE, NUMBERS, WEIGHTS),
    "sparse bagging": (BaggingClassifier(2), SPARSE, TWO, WEIGHTS),
    "sparse cuts": (ExtraTreesClassifier(2, bootstrap=True), SPARSE, TWO, None),
    "sparse cuts of numbers": (ExtraTreesRegressor(2, bootstrap=True), SPARSE, NUMBERS, None),
    "mixed": (RandomForestClassifier(3, max_bins=32), FRAME, Y, None),
    "mixed-exact": (DecisionTreeClassifier(), FRAME, np.array(["n", "y", "z"])[Y], None),
    "mixed deviance": (BaggingRegressor(3, criterion="poisson"), FRAME, NUMBERS, WEIGHTS),
}
CASES = {name: (case[0].set_params(random_state=5), *case[1:]) for name, case in MODELS.items()}
CASES |= {f"folds of {name}": (Folds(case[0]), *case[1:]) for name, case in CASES.items()}
ADA = {"max_depth": 3, "random_state": 5}
CASES |= {
    "reweighted": (AdaBoostClassifier(3, **ADA), X, Y, WEIGHTS),
    "reweighted, mixed": (AdaBoostClassifier(2, **ADA), FRAME, TWO, None),
    "reweighted, sparse": (AdaBoostClassifier(3, max_bins=8, **ADA), SPARSE, Y, None),
    "reweighted bags": (AdaBoostRegressor(3, **ADA), X, NUMBERS, WEIGHTS),
}
SEVERAL_NUMBERS = np.column_stack([NUMBERS, 1e5 * np.nan_to_num(X[:, 2]) + Y, 1e-6 * NUMBERS**2])
SEVERAL_CLASSES = np.column_stack([Y, TWO, FIVE])
SEVERAL_LABELS = np.column_stack([TWO, FIVE > 2, np.ones(len(Y)), Y > 0, FIVE == 1]).astype(int)
CASES |= {
    "several": (RandomForestRegressor(3, max_bins=32, random_state=5), X, SEVERAL_NUMBERS, None),
    "several, weights": (
        RandomForestClassifier(2, class_weight="balanced", random_state=5),
        *(X, SEVERAL_CLASSES, WEIGHTS),
    ),
    "several of a tree": (
        DecisionTreeRegressor(max_leaf_nodes=20, ccp_alpha=1e-3, random_state=5),
        *(FRAME, SEVERAL_NUMBERS, WEIGHTS),
    ),
    "several, mixed": (
        DecisionTreeClassifier(criterion="entropy", random_state=5),
        *(FRAME, SEVERAL_CLASSES, None),
    ),
    "several cuts": (ExtraTreesRegressor(2, random_state=5), X, SEVERAL_NUMBERS, WEIGHTS),
    "several, sparse": (BaggingClassifier(2, random_state=5), SPARSE, SEVERAL_CLASSES, WEIGHTS),
    "several, sparse numbers": (
        RandomForestRegressor(2, min_samples_leaf=3, random_state=5),
        *(SPARSE, SEVERAL_NUMBERS, None),
    ),
    "several deviances": (
        RandomForestRegressor(2, criterion="poisson", random_state=5),
        *(FRAME, np.maximum(SEVERAL_NUMBERS, 0), WEIGHTS),
    ),
    "several absolute errors": (
        RandomForestRegressor(2, criterion="absolute_error", random_state=5),
        *(FRAME, SEVERAL_NUMBERS, WEIGHTS),
    ),
    "several labels": (
        RandomForestClassifier(2, class_weight="balanced", random_state=5),
        *(X, SEVERAL_LABELS, WEIGHTS),
    ),
    "several labels of a tree": (
        DecisionTreeClassifier(max_leaf_nodes=20, random_state=5),
        *(FRAME, SEVERAL_LABELS, None),
    ),
    "several labels, cuts": (ExtraTreesClassifier(2, random_state=5), X, SEVERAL_LABELS, None),
    "several labels, sparse": (
        BaggingClassifier(2, random_state=5),
        *(SPARSE, SEVERAL_LABELS, WEIGHTS),
    ),
}
BOOSTED_FOLDS = ("boosted", "boosted medians", "boosted and stopped", "boosted, sparse")
BOOSTED = {"max_iter": 4, "max_leaf_nodes": 6, "min_samples_leaf": 3, "random_state": 5}
CASES |= {
    "boosted": (GradientBoostingClassifier(subsample=0.7, **BOOSTED), X, FIVE, WEIGHTS),
    "boosted medians": (GradientBoostingRegressor("absolute_error", **BOOSTED), X, NUMBERS, None),
    "boosted and stopped": (
        GradientBoostingRegressor(early_stopping=True, **BOOSTED),
        *(FRAME, NUMBERS, WEIGHTS),
    ),
    "boosted, sparse": (GradientBoostingClassifier(max_bins=8, **BOOSTED), SPARSE, TWO, None),
}
OTHER_FOLDS = (*BOOSTED_FOLDS, "several", "several deviances", "several labels of a tree")
CASES |= {f"folds of {name}": (Folds(CASES[name][0]), *CASES[name][1:]) for name in OTHER_FOLDS}


def laid_out(table, layout):
    """A table as a matrix of this kind, or in partitions of these sizes."""
    if layout in STORAGE:
        return STORAGE[layout](table)
    return parted(table, layout) if table is FRAME else cut(table, layout)


def fit(case, layout=None, **parameters):
    """A case's model, of a table that is laid out in this way.

    It is grown in the regime that ``dask.config`` asks for, if it does.
    """
    model, table, y, weight = CASES[case]
    if layout is not None:
        table = laid_out(table, layout)
    if layout in LAYOUTS:
        y, weight = cut(y, "2"), None if weight is None else cut(weight, "7")
    model = clone(model).set_params(**parameters).fit(table, y, weight)
    report, regime = model.fit_report_, dask.config.get("dtrees.regime", None)
    assert regime in (None, report["regime"])
    of_rounds = "boosted" not in case or report.get("messages")  # or they grow in one place
    in_one_place = "small bags" in case or "absolute errors" in case  # of a row, or of all rows
    if regime == "partitioned" and of_rounds and not in_one_place:
        assert report["rounds"] > 1
    return model


def fitted(case, layout=None):
    """The hash of a case's model."""
    return hash_of(fit(case, layout))


@functools.cache
def in_memory(case):
    """The hash of a case's model of the table in memory, which grows here."""
    with dask.config.set({"dtrees.regime": "local"}):
        return fitted(case)


@pytest.mark.one_of(14)
@pytest.mark.parametrize("max_bins", [None, 8, 300])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", ["float64", "float32", "int8", "bool", "sparse", "mixed"])
def test_book_and_codes_are_those_of_the_table(which, layout, max_bins):
    if which == "mixed":
        table, lazy = FRAME, parted(FRAME, layout)
    elif which == "sparse":
        full = X[:, :1].copy()  # stores every row, zeros as well
        full[::7] = 0
        stored = sp.csr_array(np.where(np.nan_to_num(full) == 0, 99, full))
        stored.data[stored.data == 99] = 0
        table = sp.csr_array(sp.hstack([SPARSE, stored, np.abs(stored)]))
        lazy = da.concatenate(
            [
                da.from_delayed(dask.delayed(table[a:b]), (b - a, table.shape[1]), meta=table[:0])
                for b, a in zip(
                    np.cumsum(LAYOUTS[layout]),
                    np.cumsum(LAYOUTS[layout]) - LAYOUTS[layout],
                    strict=True,
                )
            ]
        )
    else:
        table = np.nan_to_num(X * 10) if which in ("int8", "bool") else X
        table = table.astype(which)
        lazy = cut(table, layout)
    # few rows are sampled, and not all of them below the bound
    how = {"max_bins": max_bins, "sample_rows": 100, "seed": 3}
    book, coded = CodeBook.fit_encode(table, **how)
    (lazy,) = admitted(lazy, {})
    found, codes = encode_partitions(lazy, **how)
    assert_same_books(found, book)
    for name in ("n_codes", "n_ordered", "storage", "slot", "u8", "u16", "u32", "fill_code"):
        assert_array_equal(getattr(codes, name), getattr(coded, name), err_msg=name, strict=True)
    for name in ("sparse_indptr", "sparse_rows", "sparse_codes"):
        assert_array_equal(getattr(codes, name), getattr(coded, name), err_msg=name, strict=True)


def assert_same_books(found, book):
    for name in ("n_codes", "n_ordered", "offsets", "low", "high", "exact", "units"):
        assert_array_equal(getattr(found, name), getattr(book, name), err_msg=name, strict=True)
    assert_array_equal(found.feature_names, book.feature_names)
    assert found.categories.keys() == book.categories.keys()
    for j, labels in book.categories.items():
        assert_array_equal(found.categories[j], labels, strict=True)


class TestKindsOfColumns:
    """What a column is follows from all partitions, not from one."""

    def fit_parts(self, *parts, **how):
        frame = pd.concat(parts)
        meta = frame.iloc[:0]
        lazy = dd.from_delayed([dask.delayed(part) for part in parts], meta=meta, verify_meta=False)
        book, coded = CodeBook.fit_encode(frame, **how)
        found, codes = encode_partitions(admitted(lazy, {})[0], **how)
        assert_same_books(found, book)
        for j in range(book.n_columns):
            assert_array_equal(codes.column(j), coded.column(j), strict=True)
        return found

    @pytest.mark.parametrize("mask", ["from_dtype", [True]])
    @pytest.mark.parametrize("types", [("i1", "f4"), ("i1", "i8"), ("f8", "i4"), ("u2", "i2")])
    def test_numbers_of_several_types(self, types, mask):
        parts = [pd.DataFrame({"x": np.array([3, 1, 2, 9]).astype(kind)}) for kind in types]
        self.fit_parts(*parts, categorical_features=mask)

    def test_strings_in_one_partition_only(self):
        parts = [
            pd.DataFrame({"x": np.array(cells, dtype=object)})
            for cells in ([1, 2.5, 3], ["7", "a", None], [None, None, None])
        ]
        book = self.fit_parts(*parts)
        assert (book.n_ordered[0], book.n_codes[0]) == (4, 5)

    def test_a_category_that_one_partition_has_not(self):
        parts = [
            pd.DataFrame({"x": pd.Categorical(cells, categories=["a", "b"])})
            for cells in (["a", "b"], [None, None], ["a", None])
        ]
        assert self.fit_parts(*parts).n_ordered[0] == 0

    def test_all_missing(self):
        parts = [pd.DataFrame({"x": [np.nan, np.nan], "y": [1.0, 2.0]})] * 2
        assert self.fit_parts(*parts).n_codes.tolist() == [0, 2]

    def test_dates_in_the_place_of_numbers(self):
        days = pd.DataFrame({"x": pd.to_datetime(["2026-01-01", "2026-01-02"])})
        lazy = dd.from_delayed(
            [dask.delayed(days), dask.delayed(pd.DataFrame({"x": [1, 2]}))],
            meta=days.iloc[:0],
            verify_meta=False,
        )
        with pytest.raises(ValueError, match="Column 'x' of X holds dates or time spans in some"):
            DecisionTreeClassifier().fit(lazy, [0, 1, 0, 1])

    def test_sparse_beside_dense(self):
        dense = da.from_array(np.eye(4), chunks=(2, 4))
        both = da.concatenate([dense, dense.map_blocks(sp.csr_array)])
        with pytest.raises(ValueError, match="Some blocks of X are sparse"):
            DecisionTreeClassifier().fit(both, np.arange(8) % 2)

    def test_mostly_missing_columns_are_sampled_once_more(self):
        rng = np.random.default_rng(5)
        table = rng.normal(size=(N_ROWS, 2))
        table[rng.random(N_ROWS) < 0.8, 0] = np.nan
        for some in (table, sp.csr_array(table)):
            how = {"max_bins": 8, "sample_rows": 60, "seed": 0}
            found, _ = encode_partitions(admitted(cut(some, "7"), {})[0], **how)
            assert_same_books(found, CodeBook.fit_encode(some, **how)[0])


class TestAlignment:
    """Rows are told by their numbers; what has another number of rows is refused."""

    expected = hash_of(DecisionTreeClassifier().fit(X, Y, WEIGHTS))

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("y", ["1", "2", "64", "frame", "unknown", "numpy", "column"])
    @pytest.mark.parametrize("table", ["2", "64", "frame", "unknown", "numpy"])
    def test_any_pair(self, table, y):
        def lazily(values, how):
            if how == "frame":
                frame = pd.DataFrame(values) if values.ndim == 2 else pd.Series(values)
                return dd.from_pandas(frame, npartitions=5, sort=False)
            if how == "unknown":
                lazy = cut(values, "7")
                return lazy[cut(np.ones(N_ROWS, dtype=bool), "7")]
            return values if how == "numpy" else cut(values, how)

        labels = lazily(Y, "2")[:, None] if y == "column" else lazily(Y, y)
        weight = lazily(WEIGHTS, "7")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if y == "column" else "error")
            model = DecisionTreeClassifier().fit(lazily(X, table), labels, weight)
        assert hash_of(model) == self.expected

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("what", ["y", "sample_weight", "bootstrap_groups"])
    def test_other_lengths(self, what, known):
        values = {"y": Y, "sample_weight": WEIGHTS, "bootstrap_groups": Y}
        lazy = {name: cut(value, "2") for name, value in values.items()}
        short = lazy[what][: N_ROWS - 1]
        lazy[what] = short if known else short[short > -1]
        read = []

        def noted(block):
            read.append(len(block))
            return block

        model = RandomForestClassifier(2)
        with pytest.raises(ValueError, match=r"rows|shape") as error:
            model.fit(cut(X).map_blocks(noted, meta=X[:0]), **lazy)
        assert "600" in str(error.value)
        assert "599" in str(error.value)
        assert sum(read) <= (0 if known else 2 * N_ROWS)  # at once, or in two passes
        assert not hasattr(model, "forest_")

    def test_chunks_along_columns_are_joined_with_one_warning(self):
        lazy = cut(X, "7", columns=2)
        with pytest.warns(UserWarning, match="chunks along columns") as caught:
            model = DecisionTreeClassifier().fit(lazy, Y, WEIGHTS)
        assert len(caught) == 1
        assert hash_of(model) == self.expected

    def test_groups(self):
        forest = RandomForestClassifier(3, random_state=0)
        groups = np.arange(N_ROWS) // 5
        expected = hash_of(forest.fit(X, Y, bootstrap_groups=groups))
        assert hash_of(forest.fit(cut(X), Y, bootstrap_groups=cut(groups, "2"))) == expected

    def test_partitions_that_are_not_as_long_as_they_say(self):
        lying = da.from_delayed(dask.delayed(X), (N_ROWS - 1, 5), dtype=float)
        with pytest.raises(ValueError, match=r"has the shape \(600, 5\), where \(599, 5\)"):
            DecisionTreeClassifier().fit(lying, Y[1:])


class TestBadInput:
    def both(self, table, lazy, y=Y, lazy_y=Y, model=None):
        """The errors of the fit in memory and of the other."""
        model = DecisionTreeClassifier() if model is None else model
        errors = []
        for X_, y_ in ((table, y), (lazy, lazy_y)):
            with pytest.raises((ValueError, TypeError)) as error:
                model.fit(X_, y_)
            assert not hasattr(model, "n_features_in_")
            errors.append((type(error.value), str(error.value)))
        assert errors[0] == errors[1]

    def test_infinity(self):
        table = X.copy()
        table[[555, 3], [2, 4]] = np.inf
        self.both(table, cut(table, "64"))
        self.both(pd.DataFrame(table), dd.from_pandas(pd.DataFrame(table), npartitions=3))
        table = sp.csr_array(np.nan_to_num(table, nan=0, posinf=np.inf))
        self.both(table, cut(table))
        self.both(table, cut(table), model=RandomForestClassifier(2, max_bins=8))

    def test_garbage(self):
        cells = np.array([1, "a", None, {}] * 150, dtype=object)
        table = pd.DataFrame({"x": cells})
        with dask.config.set({"dataframe.convert-string": False}):
            self.both(table, dd.from_pandas(table, npartitions=3))

    def test_target(self):
        for bad in (np.nan, np.inf):
            y = Y.astype(float)
            y[599] = bad
            self.both(X, cut(X), y, cut(y, "64"))
            self.both(X, cut(X), y, cut(y, "64"), DecisionTreeRegressor())

    def test_no_rows(self):
        self.both(X[:0], cut(X)[:0], Y[:0], cut(Y)[:0])
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
            DecisionTreeClassifier().fit(cut(X)[cut(X)[:, 0] > 1e9], Y[:0])
        with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\)"):
            DecisionTreeClassifier().fit(cut(X)[:, :0], Y)

    def test_other_collections(self):
        model = DecisionTreeClassifier()
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
            model.fit(cut(Y), cut(Y))
        with pytest.raises(TypeError, match="Dask collection of type Series"):
            model.fit(dd.from_pandas(pd.Series(Y), npartitions=2), Y)
        with pytest.raises(ValueError, match="number of columns of X is not known"):
            model.fit(cut(X)[:, cut(X).sum(axis=0) > 0], Y)

    def test_categories_by_name(self):
        lazy = parted(FRAME)
        for how in (["nobody"], [99], [True]):
            model = DecisionTreeClassifier(categorical_features=how)
            self.both(FRAME, lazy, model=model)
        expected = DecisionTreeClassifier(categorical_features=["word", "kind", "b"])
        table = FRAME[["a", "b", "word", "kind", "flag"]]
        hashes = [hash_of(expected.fit(some, Y)) for some in (table, parted(table, "64"))]
        assert hashes[0] == hashes[1]
        sparse = DecisionTreeClassifier(categorical_features=[0])
        self.both(SPARSE, cut(SPARSE), model=sparse)


class TestModelSelection:
    def test_searches(self):
        grid = {"max_depth": [2, 4], "min_samples_leaf": [1, 5]}
        expected = GridSearchCV(DecisionTreeClassifier(), grid, cv=3).fit(X, Y)
        found = GridSearchCV(DecisionTreeClassifier(), grid, cv=3).fit(cut(X), cut(Y))
        name = "mean_test_score"
        assert_array_equal(found.cv_results_[name], expected.cv_results_[name])
        assert hash_of(found.best_estimator_) == hash_of(expected.best_estimator_)
        nested = [
            cross_validate(GridSearchCV(DecisionTreeClassifier(), grid, cv=2), table, Y, cv=2)
            for table in (X, cut(X))
        ]
        assert_array_equal(nested[0]["test_score"], nested[1]["test_score"])

    def test_scorers_that_ask_for_rows(self):
        def score(model, X, y):
            return model.score(X, y)

        with pytest.raises(TypeError, match="Rows of a Dask collection cannot be taken"):
            cross_validate(
                DecisionTreeClassifier(), cut(X), Y, cv=2, scoring=score, error_score="raise"
            )

    def test_errors(self):
        bad = np.where(np.arange(N_ROWS)[:, None] == 5, np.inf, X)
        with pytest.raises(ValueError, match="contains infinity"):
            cross_validate(DecisionTreeClassifier(), cut(bad), cut(Y), cv=3)

    @pytest.mark.parametrize("train", [[0, 0, 1], [], [0, N_ROWS]], ids=str)
    def test_sides_that_only_tables_in_memory_can_have(self, train):
        cv = [(np.array(train, dtype=int), np.arange(5, 9))]
        model = DecisionTreeClassifier()
        search = GridSearchCV(model, {"max_depth": [1, 2]}, cv=cv)
        for work in (
            lambda: search.fit(cut(X), cut(Y)),
            lambda: validation_surface(model, cut(X), cut(Y), cv=cv),
            lambda: cost_complexity_cv(model, cut(X), cut(Y), cv=cv),
        ):
            with pytest.raises(TypeError, match="side"):
                work()


class TestForests:
    def test_out_of_bag_and_warm_start(self):
        how = {"oob_score": True, "warm_start": True, "random_state": 0}
        models = []
        for table, y in ((X, Y), (cut(X), cut(Y))):
            model = RandomForestClassifier(20, **how).fit(table, y)
            models.append(model.set_params(n_estimators=25).fit(table, y))
        assert hash_of(models[0]) == hash_of(models[1])
        assert models[0].oob_score_ == models[1].oob_score_


class TestPlaces:
    def test_codes_that_do_not_fit_are_refused(self):
        with (
            dask.config.set({"dtrees.client-memory": "5 kB"}),
            pytest.raises(TableTooLargeError, match="600 x 5 cells, take"),
        ):
            DecisionTreeClassifier().fit(cut(X), Y)

    def test_raw_values_do_not_come_to_the_client(self, processes):
        """What is computed here is the book, the codes and y."""
        calls = []

        def here(block):
            calls.append(len(block))
            return block

        lazy = cut(X).map_blocks(here, meta=X[:0])
        with on(processes):
            model = DecisionTreeClassifier().fit(lazy, Y)
        assert calls == []
        assert hash_of(model) == hash_of(DecisionTreeClassifier().fit(X, Y))

    @pytest.mark.parametrize("unknown", [False, True])
    def test_every_pass_reads_once(self, unknown):
        read = []

        def block(rows):
            read.append(len(rows))
            return rows

        lazy = cut(X).map_blocks(block, meta=X[:0])
        if unknown:
            lazy = lazy[cut(np.ones(N_ROWS, dtype=bool))]
        DecisionTreeClassifier().fit(lazy, Y)
        assert len(read) == (3 if unknown else 2) * 7

    def test_lengths_of_files_without_their_columns(self, tmp_path):
        for number in range(5):  # some of which Dask joins where few columns are read
            FRAME.reset_index(drop=True).to_parquet(tmp_path / f"{number}.parquet")
        lazy = dd.read_parquet(tmp_path)
        (reads,) = lazy.index.simplify().expr.find_operations(ReadParquet)
        assert reads.operand("columns") == []
        model = RandomForestClassifier(2, random_state=0)
        both = pd.concat([FRAME] * 5)
        expected = hash_of(model.fit(both.drop(columns="flag"), both["flag"]))
        assert hash_of(model.fit(lazy.drop(columns="flag"), lazy["flag"])) == expected

    def test_interrupted(self, processes, tmp_path):
        def wait(block, path):
            open(os.path.join(path, uuid4().hex), "w").close()
            while os.path.exists(os.path.join(path, "gate")):
                time.sleep(0.01)
            return block

        def interrupt():
            end = time.monotonic() + 60
            while len(os.listdir(tmp_path)) < 2 and time.monotonic() < end:  # the gate, and a task
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        processes.wait_for_workers(2, timeout=60)
        (tmp_path / "gate").touch()
        lazy = cut(X).map_blocks(wait, str(tmp_path), meta=X[:0])
        model = DecisionTreeClassifier()
        try:
            with ThreadPoolExecutor(1) as pool, on(processes):
                pool.submit(interrupt)
                with pytest.raises(KeyboardInterrupt):
                    model.fit(lazy, cut(Y))
        finally:
            (tmp_path / "gate").unlink()
        assert not hasattr(model, "tree_")
        assert ours(processes) == []

    def test_a_closed_client(self):
        with connect(1, 1, False) as cluster:
            client = Client(cluster, set_as_default=False)
            client.close()
            with dask.config.set(scheduler=client), pytest.raises(ClusterError, match="closed"):
                DecisionTreeClassifier().fit(cut(X), Y)
            model = DecisionTreeClassifier()
            for work in (
                lambda: GridSearchCV(model, {"max_depth": [1, 2]}).fit(cut(X), Y),
                lambda: validation_surface(model, cut(X), Y),
                lambda: cost_complexity_cv(model, cut(X), Y),
                lambda: tuned_size(model, cut(X), Y, [(np.arange(300), np.arange(300, 600))]),
            ):
                with dask.config.set(scheduler=client), pytest.raises(ClusterError, match="closed"):
                    work()

    def test_an_asynchronous_client(self):
        async def fit():
            options = {"processes": False, "asynchronous": True, "dashboard_address": ":0"}
            async with Client(**options):
                with pytest.raises(ClusterError, match="asynchronous=True"):
                    DecisionTreeClassifier().fit(cut(X), Y)

        asyncio.run(fit())

    def test_nothing_is_left_after_an_error(self, processes):
        bad = cut(np.where(np.arange(N_ROWS)[:, None] == 5, np.inf, X), "64")
        with on(processes), pytest.raises(ValueError, match="infinity"):
            DecisionTreeClassifier().fit(bad, cut(Y))
        assert ours(processes) == []


class TestFaults:
    """Workers that die, or are all restarted, while they code."""

    expected = hash_of(DecisionTreeClassifier().fit(X, Y))

    def fit(self, processes, block, path):
        lazy = cut(X).map_blocks(block, str(path), meta=X[:0])
        processes.wait_for_workers(2, timeout=60)
        with on(processes):
            return DecisionTreeClassifier().fit(lazy, cut(Y))

    @pytest.mark.parametrize("passes", [1, 2])
    def test_a_worker_dies(self, processes, tmp_path, passes):
        def die_once(block, path):
            if noted(path) == 7 * passes - 2:
                os._exit(1)
            return block

        assert hash_of(self.fit(processes, die_once, tmp_path)) == self.expected
        assert len(os.listdir(tmp_path)) > 14  # some were computed once more

    def test_all_are_restarted(self, processes, tmp_path):
        def wait(block, path):
            open(os.path.join(path, uuid4().hex), "w").close()
            while os.path.exists(os.path.join(path, "gate")):
                time.sleep(0.01)
            return block

        (tmp_path / "gate").touch()
        with ThreadPoolExecutor(1) as pool:
            fit = pool.submit(self.fit, processes, wait, tmp_path)
            while len(os.listdir(tmp_path)) < 3:
                time.sleep(0.01)
            processes.restart()
            (tmp_path / "gate").unlink()
            assert hash_of(fit.result(60)) == self.expected


def allow_failures(number, dask_scheduler):
    """Set how often a task may be blamed; returns what it was."""
    before = dask_scheduler.allowed_failures
    dask_scheduler.allowed_failures = number
    return before
