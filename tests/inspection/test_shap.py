"""SHAP values: of all subsets, sums, laws of games, and the same wherever rows come from."""

import doctest
import gc
import pickle
import sys
import tracemalloc
import weakref

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError

import dtrees
from dtrees import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.inspection import shap, shap_values
from dtrees.inspection.shap import Explainer
from tests.export.examples import examples, fitted, raw_by_nodes
from tests.export.subsets import Oracle, cells

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
dd = pytest.importorskip("dask.dataframe")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
X[RNG.random(X.shape) < 0.1] = np.nan
SIGNAL = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
LABELS = np.array(["low", "mid", "high"])[np.digitize(SIGNAL, [-0.5, 0.7])]
SMALL = {"n_estimators": 5, "random_state": 0, "max_leaf_nodes": 12}
FOREST = RandomForestClassifier(**SMALL).fit(X, LABELS)


def in_full(found):
    """Values with the axis of outputs."""
    return found.values if found.values.ndim == 3 else found.values[..., None]


def weight_of(oracle):
    """Of a tree in the model."""
    return 1 if oracle.view.start is not None else 1 / len(oracle.trees)


def test_the_example():
    results = doctest.testmod(shap)
    assert results.attempted > 5
    assert results.failed == 0


class TestValues:
    @given(examples())
    def test_sums_are_predictions(self, example):
        found = shap_values(example.model, example.rows)
        total = found.base_values + found.values.sum(axis=1)
        expected = raw_by_nodes(example.model, example.rows)
        total = total.reshape(expected.shape)
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-9)
        assert found.interactions is None
        assert found.feature_names == tuple(example.X.columns)

    @given(examples())
    def test_all_subsets(self, example):
        rows = example.rows[:2]
        found = shap_values(example.model, rows)
        oracle = Oracle(example.model)
        weight = weight_of(oracle)
        expected = [weight * oracle.shap(row, rows.shape[1]) for row in cells(rows)]
        np.testing.assert_allclose(in_full(found), expected, rtol=1e-9, atol=1e-12)
        base = weight * oracle.payout(cells(rows)[0], ())
        base += 0 if oracle.view.start is None else oracle.view.start
        np.testing.assert_allclose(np.ravel(found.base_values[0]), base, rtol=1e-9, atol=1e-9)

    @given(examples())
    def test_a_background(self, example):
        rows, background = example.rows[:2], example.X[:3]
        found = shap_values(example.model, rows, background=background)
        oracle = Oracle(example.model)
        others, weight = cells(background), weight_of(oracle)
        expected = [weight * oracle.shap(row, rows.shape[1], others) for row in cells(rows)]
        np.testing.assert_allclose(in_full(found), expected, rtol=1e-9, atol=1e-12)
        mean = raw_by_nodes(example.model, background).mean(axis=0)
        np.testing.assert_allclose(np.ravel(found.base_values[0]), mean, rtol=1e-9, atol=1e-9)

    @given(examples())
    def test_interactions(self, example):
        rows = example.rows[:2]
        found = shap_values(example.model, rows, interactions=True)
        oracle = Oracle(example.model)
        expected = [oracle.interactions(row, rows.shape[1]) for row in cells(rows)]
        expected = weight_of(oracle) * np.array(expected)
        np.testing.assert_allclose(
            found.interactions.reshape(expected.shape), expected, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            found.interactions.sum(axis=2), found.values, rtol=1e-9, atol=1e-12
        )
        alone = shap_values(example.model, rows)
        np.testing.assert_array_equal(found.values, alone.values)

    def test_one_class_and_one_row(self):
        tree = DecisionTreeClassifier().fit(X, np.zeros(len(X)))
        found = shap_values(tree, X[:1])
        assert not found.values.any()
        assert found.base_values.tolist() == [1.0]

    def test_targets_far_from_zero_cancel_nothing(self):
        near = DecisionTreeRegressor(max_depth=3).fit(X, SIGNAL)
        far = DecisionTreeRegressor(max_depth=3).fit(X, SIGNAL + 2.0**30)
        np.testing.assert_allclose(
            shap_values(far, X).values, shap_values(near, X).values, atol=1e-6
        )

    def test_targets_of_a_tree_view(self):
        tree = DecisionTreeClassifier(max_depth=3).fit(X, LABELS)
        found, view = shap_values(tree, X), shap_values(tree.tree_, X)
        np.testing.assert_array_equal(found.values, view.values)
        assert found.output_names == ("high", "low", "mid")
        assert view.output_names == ("0", "1", "2")


class TestLaws:
    @given(st.integers(0, 2**16))
    def test_a_column_that_no_tree_tests_adds_nothing(self, seed):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(60, 3))
        table[:, 1] = 7
        model = RandomForestRegressor(3, random_state=0).fit(table, rng.normal(size=60))
        for background in None, table[:4]:
            found = shap_values(model, table, background=background)
            assert not found.values[:, 1].any()

    @given(st.integers(0, 2**16))
    def test_columns_of_equal_roles_add_the_same(self, seed):
        """Whatever tree says so: it is exact on a grid, of a target that is symmetric."""
        one, other = np.mgrid[:4, :4]
        grid = np.column_stack([one.ravel(), other.ravel()])
        half = np.random.default_rng(seed).normal(size=(4, 4))
        tree = DecisionTreeRegressor(random_state=seed).fit(grid, (half + half.T).ravel())
        found = shap_values(tree, grid, background=grid).values
        mirrored = shap_values(tree, grid[:, ::-1], background=grid).values[:, ::-1]
        np.testing.assert_allclose(found, mirrored, atol=1e-12)

    @given(st.integers(0, 2**16), st.booleans())
    def test_values_of_a_forest_are_the_mean_of_those_of_its_trees(self, seed, has_background):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(60, 3))
        forest = RandomForestClassifier(4, random_state=seed).fit(table, rng.integers(0, 3, 60))
        background = table[:5] if has_background else None
        found = shap_values(forest, table, background=background)
        trees = [shap_values(tree, table, background=background) for tree in forest]
        mean = np.mean([tree.values for tree in trees], axis=0)
        np.testing.assert_allclose(found.values, mean, rtol=1e-9, atol=1e-12)
        assert found.values.sum(axis=2) == pytest.approx(0, abs=1e-12)

    def test_a_row_that_is_the_background_has_nothing_to_explain(self):
        found = shap_values(FOREST, X[:1], background=X[:1])
        assert not found.values.any()


class TestSameBits:
    """However many threads and blocks, and of whatever a table is made."""

    @pytest.mark.parametrize("options", [{}, {"background": X[:7]}, {"interactions": True}])
    def test_threads_and_rows(self, options):
        many = np.tile(X, (5, 1))
        whole = shap_values(FOREST, many, **options)
        one = RandomForestClassifier(**SMALL, n_jobs=1).fit(X, LABELS)
        np.testing.assert_array_equal(shap_values(one, many, **options).values, whole.values)
        np.testing.assert_array_equal(whole.values[:200], whole.values[-200:])
        parts = [shap_values(FOREST, X[i : i + 30], **options).values for i in range(0, 200, 30)]
        np.testing.assert_array_equal(np.concatenate(parts), whole.values[:200])

    @pytest.mark.parametrize("options", [{}, {"background": X[:7]}, {"interactions": True}])
    def test_sparse_and_dense(self, options):
        found = shap_values(FOREST, scipy.sparse.csr_array(X), **options)
        expected = shap_values(FOREST, X, **options)
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.data.toarray(), expected.data)
        np.testing.assert_array_equal(found[5:9].data.toarray(), expected.data[5:9])

    def test_frames(self):
        frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(LABELS), "c": X[:, 2]})
        model = GradientBoostingRegressor(max_iter=3, early_stopping=False).fit(frame, SIGNAL)
        found = shap_values(model, frame)
        other = shap_values(model, pl.from_pandas(frame))
        np.testing.assert_array_equal(found.values, other.values)
        assert found.data.shape == (200, 3)
        assert found.data[:, 1].tolist() == other.data[:, 1].tolist() == LABELS.tolist()

    def test_times_of_other_libraries(self):
        frame = pd.DataFrame({"a": np.arange(200), "day": pd.to_datetime(np.arange(200), unit="D")})
        model = DecisionTreeRegressor(max_depth=4).fit(frame, SIGNAL)
        expected = shap_values(model, frame)
        assert expected.kinds == ("number", "time")
        for table in pl.from_pandas(frame), pa.Table.from_pandas(frame):
            found = shap_values(model, table, background=table)
            assert found.data.tolist() == expected.data.tolist()


class TestLazily:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("options", [{}, {"background": X[:7]}, {"interactions": True}])
    @pytest.mark.parametrize("n_outputs", [1, 3])
    def test_arrays(self, options, n_outputs):
        model = FOREST if n_outputs == 3 else RandomForestRegressor(**SMALL).fit(X, SIGNAL)
        lazy = da.from_array(X, chunks=(70, 3))
        expected = shap_values(model, X, **options)
        found = shap_values(model, lazy, **options)
        assert found.values.shape == expected.values.shape
        values, pairs = dask.compute(found.values, found.interactions, scheduler="sync")
        np.testing.assert_array_equal(values, expected.values)
        np.testing.assert_array_equal(found.base_values, expected.base_values[0])
        assert np.isscalar(found.base_values) == (n_outputs == 1)
        if "interactions" in options:
            assert found.interactions.shape == expected.interactions.shape
            np.testing.assert_array_equal(pairs, expected.interactions)
        total = found.base_values + found.values.sum(axis=1)
        assert total.compute(scheduler="sync").shape == expected.base_values.shape

        computed = found.compute()
        np.testing.assert_array_equal(computed.values, expected.values)
        np.testing.assert_array_equal(computed.base_values, expected.base_values)
        np.testing.assert_array_equal(found[3].data, X[3:4])
        assert computed.compute() is computed

    @pytest.mark.parametrize("n_outputs", [1, 3])
    def test_data_frames(self, n_outputs):
        frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(LABELS), "c": X[:, 2]})
        if n_outputs == 3:
            model = BaggingClassifier(3, random_state=0).fit(frame, LABELS)
        else:
            model = GradientBoostingRegressor(max_iter=3, early_stopping=False).fit(frame, SIGNAL)
        lazy = dd.from_pandas(frame, npartitions=3)
        expected = shap_values(model, frame)
        found = shap_values(model, lazy)
        values = found.values.compute(scheduler="sync")
        np.testing.assert_array_equal(values, expected.values)
        assert found.feature_names == ("a", "b", "c")

    def test_a_background_of_dask_is_computed(self):
        expected = shap_values(FOREST, X[:5], background=X[:7])
        found = shap_values(FOREST, X[:5], background=da.from_array(X[:7], chunks=(3, 4)))
        np.testing.assert_array_equal(found.values, expected.values)

    def test_an_explainer_can_be_pickled(self):
        explainer = pickle.loads(pickle.dumps(Explainer.of(FOREST, background=X[:7])))
        found = explainer.of_block("values", X)
        expected = shap_values(FOREST, X, background=X[:7])
        np.testing.assert_array_equal(found, expected.values)


def test_contributions_of_a_wide_table_are_held_once():
    rows = np.arange(300)
    wide = scipy.sparse.csr_array((rows + 1.0, (rows, np.full(300, 3))), (300, 20_000))
    model = DecisionTreeRegressor(max_depth=3).fit(wide, np.arange(300))
    model.predict_contributions(wide)
    tracemalloc.start()
    found = model.predict_contributions(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * found.nbytes
    np.testing.assert_allclose(found.sum(axis=1), model.predict(wide), rtol=1e-9, atol=1e-9)


class TestRemembered:
    """Trees are made ready once for a model."""

    def test_by_model(self):
        model = RandomForestClassifier(**SMALL).fit(X, LABELS)
        known = Explainer.of(model)
        assert Explainer.of(model) is known
        assert Explainer.of(model, background=X[:3]).trees is known.trees
        gone = weakref.ref(known)
        del known
        model.fit(X, LABELS)
        gc.collect()
        assert gone() is None
        start = GradientBoostingRegressor(max_iter=2, warm_start=True, early_stopping=False)
        start.fit(X, SIGNAL)
        two = start.predict_contributions(X)
        start.set_params(max_iter=4).fit(X, SIGNAL)
        assert not np.array_equal(two, start.predict_contributions(X))

    def test_no_model_is_kept_alive(self):
        model = DecisionTreeRegressor().fit(X, SIGNAL)
        forest = RandomForestRegressor(**SMALL).fit(X, SIGNAL)
        gone = [weakref.ref(part) for part in (model, model.tree_.model, forest.forest_.trees[0])]
        for explained in (model, model.tree_, forest):
            shap_values(explained, X[:2])
        del model, forest, explained
        gc.collect()
        assert [part() for part in gone] == [None] * 3

    def test_by_worker(self):
        explainer = Explainer.of(FOREST)
        opened = pickle.loads(pickle.dumps(explainer))
        for ours, theirs in zip(opened.trees, explainer.trees, strict=True):
            assert ours.tree.feature.tolist() == theirs.tree.feature.tolist()
            np.testing.assert_array_equal(ours.values, theirs.values)


class TestExplanation:
    def test_its_print_is_short(self):
        example = fitted("RandomForest", ["number", "category"], n_classes=3)
        found = shap_values(example.model, example.rows)
        assert repr(found) == "Explanation(60 rows, 2 columns, 3 outputs)"

    def test_rows(self):
        found = shap_values(FOREST, X, interactions=True)
        assert len(found) == 200
        some = found[10:20]
        assert len(some) == 10
        assert len(found[-1]) == 1
        np.testing.assert_array_equal(some.values, found.values[10:20])
        np.testing.assert_array_equal(some.base_values, found.base_values[10:20])
        np.testing.assert_array_equal(some.data, X[10:20])
        np.testing.assert_array_equal(
            found[X[:, 0] > 0].interactions[:, 0, 0], found.interactions[X[:, 0] > 0, 0, 0]
        )

    def test_outputs(self):
        found = shap_values(FOREST, X, interactions=True)
        mid = found.of_output("mid")
        np.testing.assert_array_equal(mid.values, found.values[..., 2])
        np.testing.assert_array_equal(mid.base_values, found.base_values[:, 2])
        np.testing.assert_array_equal(mid.interactions, found.interactions[..., 2])
        assert mid.output_names == ("mid",)
        assert mid.of_output(0) is mid
        assert found.unit == mid.unit == found[:3].unit == "probability"
        np.testing.assert_array_equal(found.of_output(2).values, mid.values)
        for output in "none", 3:
            with pytest.raises(ValueError, match=r"no output .* Give one of 'high', 'low', 'mid'"):
                found.of_output(output)

    @pytest.mark.parametrize("labels", [[1, 2, 3], [1.0, 2.0, 3.0], [-1, 7, 1]])
    def test_numbers_are_labels_where_labels_are_numbers(self, labels):
        classes = np.array(labels)[np.unique(LABELS, return_inverse=True)[1]]
        found = shap_values(DecisionTreeClassifier(max_depth=3).fit(X, classes), X)
        for place, label in enumerate(sorted(labels)):
            one = found.of_output(int(label))
            np.testing.assert_array_equal(one.values, found.values[..., place])
            assert one.output_names == (str(label),)
        with pytest.raises(ValueError, match="no output 0"):
            found.of_output(0)

    def test_the_other_of_two_classes_is_no_output(self):
        boosted = GradientBoostingClassifier(max_iter=2, early_stopping=False)
        found = shap_values(boosted.fit(X, (SIGNAL > 0).astype(int)), X)
        assert found.of_output(1) is found
        with pytest.raises(ValueError, match=r"no output 0\. Give one of '1'"):
            found.of_output(0)

    @pytest.mark.parametrize("index", [..., (0, 1), (slice(None), "x"), "x", (..., 1)])
    def test_rows_are_the_only_index(self, index):
        with pytest.raises(TypeError, match="of_output"):
            shap_values(FOREST, X)[index]

    @pytest.mark.parametrize(
        ("model", "y", "unit"),
        [
            (DecisionTreeRegressor(), SIGNAL, "units of y"),
            (DecisionTreeClassifier(), LABELS, "probability"),
            (GradientBoostingRegressor(max_iter=2), SIGNAL, "units of y"),
            (GradientBoostingRegressor(max_iter=2, loss="poisson"), SIGNAL**2, "logarithm of y"),
            (GradientBoostingClassifier(max_iter=2), SIGNAL > 0, "log odds"),
            (GradientBoostingClassifier(max_iter=2), LABELS, "raw prediction"),
            (GradientBoostingClassifier(max_iter=2), np.zeros(len(X)), "probability"),
        ],
    )
    def test_units(self, model, y, unit):
        assert shap_values(model.fit(X, y), X[:2]).unit == unit
        if isinstance(model, DecisionTreeClassifier | DecisionTreeRegressor):
            assert shap_values(model.tree_, X[:2]).unit == unit

    def test_names_of_outputs(self):
        two = SIGNAL > 0
        boosted = GradientBoostingClassifier(max_iter=2, early_stopping=False).fit(X, two)
        assert shap_values(boosted, X).output_names == ("True",)
        boosted = GradientBoostingClassifier(max_iter=2, early_stopping=False).fit(X, LABELS)
        assert shap_values(boosted, X).output_names == ("high", "low", "mid")
        tree = DecisionTreeRegressor().fit(X, SIGNAL)
        assert shap_values(tree, X).output_names == ("prediction",)


class TestLibraryShap:
    """Its values of scikit-learn's trees of the same structure, and its pictures."""

    @pytest.fixture
    def library(self):
        return pytest.importorskip("shap")

    @pytest.mark.parametrize("n_classes", [0, 2, 3])
    def test_values(self, library, n_classes):
        rng = np.random.default_rng(n_classes)
        table = rng.integers(0, 9, (150, 4)).astype(np.float32)
        y = table[:, 0] * table[:, 1] + table[:, 2] + 0.01 * rng.normal(size=150)
        if n_classes:
            y = pd.qcut(y, n_classes, labels=False)
        kind = "DecisionTreeClassifier" if n_classes else "DecisionTreeRegressor"
        limits = {"min_samples_leaf": 12, "random_state": 0}
        ours = getattr(dtrees, kind)(**limits).fit(table, y)
        theirs = getattr(sklearn.tree, kind)(**limits).fit(table, y)
        np.testing.assert_array_equal(ours.tree_.feature, theirs.tree_.feature)
        explainer = library.TreeExplainer(theirs)
        found = shap_values(ours, table, interactions=True)
        np.testing.assert_allclose(found.values, explainer.shap_values(table), atol=1e-9)
        pairs = explainer.shap_interaction_values(table)
        np.testing.assert_allclose(found.interactions, pairs, atol=1e-9)
        np.testing.assert_allclose(found.base_values[0], np.squeeze(explainer.expected_value))
        background = table[:20]
        explainer = library.TreeExplainer(theirs, background)
        found = shap_values(ours, table, background=background)
        np.testing.assert_allclose(found.values, explainer.shap_values(table), atol=1e-4)

    def test_pictures(self, library):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("agg")
        found = shap_values(FOREST, X).to_shap()
        assert isinstance(found, library.Explanation)
        assert found.shape == (200, 4, 3)
        library.plots.beeswarm(found[:, :, 2], show=False)
        library.plots.waterfall(found[0, :, 1], show=False)
        matplotlib.pyplot.close("all")
        frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(LABELS), "c": X[:, 2]})
        model = GradientBoostingRegressor(max_iter=3, early_stopping=False).fit(frame, SIGNAL)
        found = shap_values(model, dd.from_pandas(frame, npartitions=2)).to_shap()
        library.plots.beeswarm(found, show=False)
        library.plots.waterfall(found[3], show=False)
        library.plots.bar(found, show=False)
        sparse = shap_values(FOREST, scipy.sparse.csr_array(X))
        library.plots.beeswarm(sparse.of_output("mid").to_shap(), show=False)
        matplotlib.pyplot.close("all")

    def test_pictures_of_all_kinds_of_columns(self, library):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("agg")
        frame = pd.DataFrame(
            {
                "day": pd.to_datetime(np.arange(200), unit="D"),
                "span": pd.to_timedelta(np.arange(200), unit="h"),
                "number": np.arange(200.0),
                "flag": pd.array(SIGNAL > 0, dtype="boolean"),
                "word": np.where(RNG.random(200) < 0.1, None, LABELS),
                "zip": pd.Categorical(RNG.integers(5, 9, 200)),
                "both": np.where(RNG.random(200) < 0.1, "never", "7"),
            }
        )
        frame.iloc[0] = None
        model = GradientBoostingRegressor(max_iter=3, early_stopping=False).fit(frame, SIGNAL)
        found = shap_values(model, frame)
        theirs = found.to_shap()
        assert theirs.data.dtype == np.float64
        assert theirs.display_data[1].tolist()[:2] == ["1970-01-02", "1:00:00"]
        assert set(theirs.display_data[:, 3]) == {"True", "False", "missing"}
        assert np.isnan(theirs.display_data[0, 2])
        for name in frame:
            library.plots.scatter(theirs[:, name], color=theirs, show=False)
        for row in range(5):
            library.plots.force(theirs[row], matplotlib=True, show=False)
        for plot, shown in (
            (library.plots.waterfall, theirs[0]),
            (library.plots.heatmap, theirs),
            (library.plots.beeswarm, theirs),
        ):
            matplotlib.pyplot.close("all")
            plot(shown, show=False)
        matplotlib.pyplot.close("all")

    def test_it_is_not_needed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "shap", None)
        with pytest.raises(ImportError, match="pip install shap"):
            shap_values(FOREST, X).to_shap()


class TestErrors:
    def test_models(self):
        with pytest.raises(NotFittedError):
            shap_values(RandomForestRegressor(), X)
        tree = DecisionTreeRegressor().fit(X, SIGNAL)
        with pytest.raises(TypeError, match="tree on codes"):
            shap_values(tree.tree_.model, X)
        with pytest.raises(TypeError, match="boosted model of dtrees"):
            shap_values("tree", X)
        calibrated = CalibratedClassifierCV(DecisionTreeClassifier(), cv=2).fit(X, LABELS)
        with pytest.raises(TypeError, match="Give the estimator of one of its calibrated"):
            shap_values(calibrated, X)

    def test_arguments(self):
        with pytest.raises(ValueError, match="give no background"):
            shap_values(FOREST, X, background=X, interactions=True)
        with pytest.raises(ValueError, match="expecting 4 features"):
            shap_values(FOREST, X[:, :2])
        with pytest.raises(ValueError, match="expecting 4 features"):
            shap_values(FOREST, X, background=X[:, :2])
        with pytest.raises(ValueError, match="expecting 4 features"):
            shap_values(FOREST, da.from_array(X[:, :2]))
        with pytest.raises(ValueError, match="interactions"):
            shap_values(FOREST, X, interactions="all")

    def test_interactions_that_do_not_fit(self):
        wide = scipy.sparse.csr_array(
            (np.arange(200.0), (np.arange(200), np.zeros(200, int))), (200, 10**6)
        )
        tree = DecisionTreeRegressor(max_depth=2).fit(wide, np.arange(200))
        with pytest.raises(ValueError, match=r"1,490,116 GiB, .* fewer rows"):
            shap_values(tree, wide, interactions=True)
