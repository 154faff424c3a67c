"""Pictures of SHAP values: what stands in them."""

import doctest
import sys

import dask.dataframe as dd
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy.sparse import csr_array

from dtrees import RandomForestClassifier, RandomForestRegressor
from dtrees.inspection import (
    plot_beeswarm,
    plot_shap_dependence,
    plot_waterfall,
    shap_plots,
    shap_values,
)
from dtrees.inspection.shap_plots import MOST_TICKS, _shares, _swarm

mpl.use("agg")

N = 120
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "x": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
        "$kind_{a}$": RNG.choice([*"abcdefghij", None], N),
        "day": np.datetime64("2020-01-01") + RNG.integers(0, 300, N).astype("m8[D]"),
        "span": RNG.integers(0, 90, N).astype("m8[s]"),
        "whole": RNG.integers(0, 3, N),
        "nothing": np.nan,
    }
)
TARGET = TABLE["x"].fillna(0) + TABLE["whole"] + TABLE["$kind_{a}$"].isin(["a", "c"])
MODEL = RandomForestRegressor(4, random_state=0).fit(TABLE, TARGET)
FOUND = shap_values(MODEL, TABLE, interactions=True)
CLASSES = shap_values(
    RandomForestClassifier(4, random_state=0).fit(TABLE, np.digitize(TARGET, [0, 1])), TABLE
)


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def drawn(ax):
    """A figure that can be drawn has no error in its text."""
    ax.figure.canvas.draw()
    return ax


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_the_examples():
    results = doctest.testmod(shap_plots)
    assert results.attempted > 10
    assert results.failed == 0


class TestWaterfall:
    def test_bars_go_from_the_base_value_to_the_prediction(self):
        row = 7
        ax = drawn(plot_waterfall(FOUND, row))
        bars = ax.patches
        assert len(bars) == len(TABLE.columns)
        sizes = [bar.get_width() for bar in bars]
        np.testing.assert_allclose(np.sort(sizes), np.sort(FOUND.values[row]), atol=1e-12)
        assert bars[0].get_x() == FOUND.base_values[row]
        end = bars[-1].get_x() + bars[-1].get_width()
        assert end == pytest.approx(MODEL.predict(TABLE)[row])
        assert (np.diff(np.abs(sizes)) >= 0).all()
        largest = np.abs(FOUND.values[row]).argmax()
        assert ticks(ax.yaxis)[-1].startswith(f"{TABLE.columns[largest]} = ")

    def test_the_smallest_are_one_bar(self):
        ax = plot_waterfall(FOUND, 3, max_display=3)
        assert len(ax.patches) == 3
        assert ticks(ax.yaxis)[0] == "4 other columns"
        sizes = [bar.get_width() for bar in ax.patches]
        assert sum(sizes) == pytest.approx(FOUND.values[3].sum())
        assert len(plot_waterfall(FOUND, 3, max_display=1).patches) == 1

    def test_the_axis_has_a_unit(self):
        label = drawn(plot_waterfall(FOUND, 7)).get_xlabel()
        assert label.startswith("prediction (units of y)\nfrom ")
        label = plot_waterfall(CLASSES, 7, output="2").get_xlabel()
        assert label.startswith("class 2 (probability)\nfrom ")

    def test_the_title_has_the_row_of_several(self):
        assert plot_waterfall(FOUND).get_title(loc="left") == f"row 0 of {N}"
        assert plot_waterfall(FOUND[7]).get_title(loc="left") == ""

    def test_long_numbers_stay_inside(self):
        large = shap_values(
            RandomForestRegressor(2, random_state=0).fit(TABLE, 1e9 * TARGET), TABLE
        )
        ax = drawn(plot_waterfall(large, 7))
        right = ax.get_window_extent().x1
        assert all(text.get_window_extent().x1 < right for text in ax.texts)

    def test_cells_are_written(self):
        row = int(np.flatnonzero(TABLE["x"].isna())[0])
        names = ticks(plot_waterfall(FOUND, row).yaxis)
        assert "x = missing" in names
        assert f"whole = {TABLE['whole'][row]}" in names
        assert f"day = {TABLE['day'][row].date()}" in names

    @pytest.mark.parametrize("column", ["day", "span"])
    def test_times_are_written(self, column):
        frame = TABLE[[column]]
        found = shap_values(RandomForestRegressor(2, random_state=0).fit(frame, TARGET), frame)
        assert found.data.dtype.kind in "Mm"
        (shown,) = ticks(plot_waterfall(found, 0).yaxis)
        cell = TABLE[column][0]
        text = str(cell.date()) if column == "day" else str(cell.to_pytimedelta())
        assert shown == f"{column} = {text}"

    def test_a_prediction_of_zero_is_written_as_zero(self):
        rows = np.flatnonzero(abs(CLASSES.base_values + CLASSES.values.sum(axis=1))[:, 1] < 1e-12)
        for row in rows[:5].tolist():
            label = plot_waterfall(CLASSES, row, output="1").get_xlabel()
            assert label.endswith(", to 0")
        assert len(rows) > 0

    def test_a_row_without_anything_to_say(self):
        found = shap_values(MODEL, TABLE[:1], background=TABLE[:1])
        ax = drawn(plot_waterfall(found))
        assert {text.get_text() for text in ax.texts} == {"+0"}
        assert all(bar.get_width() == 0 for bar in ax.patches)


class TestBeeswarm:
    def test_columns_in_the_order_of_their_mean(self):
        ax = drawn(plot_beeswarm(FOUND, max_display=4))
        order = np.argsort(-np.abs(FOUND.values).mean(axis=0))[:4]
        assert ticks(ax.yaxis)[::-1] == [TABLE.columns[j] for j in order]

    def test_every_row_is_a_point(self):
        ax = plot_beeswarm(FOUND)
        points = np.concatenate([found.get_offsets() for found in ax.collections])
        assert len(points) == N * len(TABLE.columns)
        np.testing.assert_allclose(np.sort(points[:, 0]), np.sort(FOUND.values.ravel()))
        rows = points[:, 1].round()
        assert (np.bincount(rows.astype(int)) == N).all()

    def test_the_axis_has_a_unit(self):
        assert plot_beeswarm(FOUND).get_xlabel() == "SHAP value (units of y)"
        label = plot_beeswarm(CLASSES, output=0).get_xlabel()
        assert label == "SHAP value, class 0 (probability)"

    def test_points_of_a_bin_lie_beside_each_other(self):
        away = _swarm(np.array([0.0, 5.0, 5.0, 5.0, 9.0]))
        assert away[0] == away[4] == 0
        assert len(set(away[1:4])) == 3
        assert np.abs(_swarm(np.zeros(1000))).max() <= 0.5
        assert _swarm(np.zeros(1)) == 0


class TestDependence:
    def test_points(self):
        ax = drawn(plot_shap_dependence(FOUND, "whole", color="x"))
        points = np.concatenate([found.get_offsets() for found in ax.collections])
        expected = np.column_stack([TABLE["whole"], FOUND.values[:, 4]])
        np.testing.assert_allclose(np.sort(points, axis=0), np.sort(expected, axis=0))
        assert ax.get_xlabel() == "whole"

    def test_the_strongest_interaction_is_the_colour(self):
        ax = plot_shap_dependence(FOUND, "x")
        strength = np.abs(FOUND.interactions[:, 0]).mean(axis=0)[1:]
        strongest = TABLE.columns[1 + strength.argmax()]
        named = [other.get_ylabel() for other in ax.figure.axes]
        named += [ax.get_legend().get_title().get_text()] if ax.get_legend() else []
        assert strongest in named

    def test_missing_cells_stand_apart(self):
        ax = drawn(plot_shap_dependence(shap_values(MODEL, TABLE), "x"))
        places = ax.collections[0].get_offsets()[:, 0]
        missing = TABLE["x"].isna().to_numpy()
        assert len(set(places[missing])) == 1
        assert places[missing].max() < places[~missing].min()

    def test_ticks_beside_missing_cells_keep_their_power_of_ten(self):
        frame = 1e9 * TABLE[["x"]]
        found = shap_values(RandomForestRegressor(2, random_state=0).fit(frame, TARGET), frame)
        axis = drawn(plot_shap_dependence(found, "x")).xaxis
        assert axis.get_offset_text().get_text() == "1e9"
        assert ticks(axis)[0] == "missing"
        assert all(abs(float(tick.replace("−", "-"))) < 5 for tick in ticks(axis)[1:])

    def test_categories_have_ticks_and_colours(self):
        kind = "$kind_{a}$"
        ax = drawn(plot_shap_dependence(FOUND, kind, color=kind))
        assert ticks(ax.xaxis) == ["missing", *"abcdefghij"]
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert len(labels) == 8
        assert labels[-1] == "others"
        assert labels[:-1] == sorted(labels[:-1])

    def test_words_and_missing_cells_have_ticks_beside_numbers(self):
        both = np.where(np.arange(N) % 3, TABLE["whole"].astype(str), "never").astype(object)
        both[:5] = None
        frame = pd.DataFrame({"both": both, "span": TABLE["span"]})
        found = shap_values(RandomForestRegressor(2, random_state=0).fit(frame, TARGET), frame)
        assert found.kinds == ("hybrid", "time")
        ax = drawn(plot_shap_dependence(found, "both"))
        names = ticks(ax.xaxis)
        assert names[0] == "missing"
        assert names[-1] == "never"
        assert float(names[1]) == 0
        assert float(names[-2]) == 2
        assert plot_shap_dependence(found, "span").get_xlabel() == "span (minutes)"

    def test_some_of_many_categories_are_named(self):
        frame = pd.DataFrame({"zip": [f"Z{i % 60:03d}" for i in range(N)]})
        found = shap_values(RandomForestRegressor(2, random_state=0).fit(frame, TARGET), frame)
        names = ticks(drawn(plot_shap_dependence(found, "zip")).xaxis)
        assert len(names) <= MOST_TICKS
        assert names[:2] == ["Z000", "Z003"]

    @pytest.mark.parametrize("categories", [["zip"], None])
    def test_numbers_that_are_categories(self, categories):
        frame = pd.DataFrame({"zip": RNG.integers(5, 11, N)})
        model = RandomForestRegressor(2, random_state=0, categorical_features=categories)
        found = shap_values(model.fit(frame, TARGET), frame)
        names = ticks(drawn(plot_shap_dependence(found, "zip")).xaxis)
        assert (names == ["5", "6", "7", "8", "9", "10"]) == (categories is not None)

    @pytest.mark.one_of(6)
    @pytest.mark.parametrize("column", TABLE.columns)
    @pytest.mark.parametrize("color", [None, "day", "nothing"])
    def test_every_kind_of_column(self, column, color):
        ax = drawn(plot_shap_dependence(FOUND, column, color=color))
        points = np.concatenate([points.get_offsets() for points in ax.collections])
        assert sorted(points[:, 1]) == sorted(FOUND.values[:, TABLE.columns.get_loc(column)])


def test_colours():
    shares = _shares(np.array([*range(101), np.nan]))
    assert shares[0] == shares[5] == 0
    assert shares[50] == 0.5
    assert shares[95] == shares[100] == 1
    assert np.isnan(shares[101])
    assert _shares(np.array([3.0, np.nan]))[0] == 0.5
    rare = _shares(np.array([0.0] * 99 + [1.0]))
    assert rare[0] == 0
    assert rare[-1] == 1


@pytest.mark.parametrize(
    "plot", [plot_waterfall, plot_beeswarm, lambda *a, **k: plot_shap_dependence(*a, "x", **k)]
)
class TestAll:
    def test_axes_that_are_given(self, plot):
        ax = pyplot.figure().add_subplot()
        assert plot(FOUND, ax=ax) is ax

    def test_outputs(self, plot):
        with pytest.raises(ValueError, match="several outputs"):
            plot(CLASSES)
        one, other = plot(CLASSES, output=1), plot(CLASSES, output="1")
        assert "1" in one.get_xlabel() + one.get_ylabel()
        assert one.get_xlim() == other.get_xlim()

    @pytest.mark.one_of(3)
    def test_lazy_explanations_are_computed(self, plot):
        lazy = shap_values(MODEL, dd.from_pandas(TABLE, npartitions=2))
        assert drawn(plot(lazy)).get_ylim() == plot(FOUND).get_ylim()

    def test_without_matplotlib(self, plot, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(ImportError, match=r"pip install 'dask-dtrees\[plot\]'"):
            plot(FOUND)


def test_sparse_tables():
    table = np.nan_to_num(TABLE[["x", "whole"]].to_numpy())
    model = RandomForestRegressor(4, random_state=0).fit(table, TARGET)
    drawn_of = []
    for rows in table, csr_array(table):
        found = shap_values(model, rows)
        axes = [
            plot_waterfall(found),
            plot_beeswarm(found),
            plot_shap_dependence(found, 1, color=0),
        ]
        drawn_of.append(
            [
                [text.get_text() for text in axes[0].get_yticklabels()],
                axes[1].collections[1].get_array().tolist(),
                axes[2].collections[0].get_offsets().tolist(),
            ]
        )
    assert drawn_of[0] == drawn_of[1]


def test_columns_and_rows_that_are_not_there():
    with pytest.raises(ValueError, match="color: there is no column 'z'"):
        plot_shap_dependence(FOUND, 0, color="z")
    with pytest.raises(ValueError, match="column: there is no column 6"):
        plot_shap_dependence(FOUND, 6)
    with pytest.raises(ValueError, match="no row 120"):
        plot_waterfall(FOUND, 120)


@pytest.mark.filterwarnings("ignore:X has several columns")
def test_columns_of_one_name_are_taken_by_number():
    frame = TABLE[["x", "whole", "x"]]
    found = shap_values(RandomForestRegressor(2, random_state=0).fit(frame, TARGET), frame)
    for options in {"column": "x"}, {"column": 1, "color": "x"}:
        with pytest.raises(ValueError, match=r"2 columns 'x'\. Give the number of one: 0, 2"):
            plot_shap_dependence(found, **options)
    assert plot_shap_dependence(found, 2).get_xlabel() == "x"
