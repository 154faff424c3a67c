"""Where a partial dependence asks: thresholds, an end that is easy to read, and all categories."""

import numpy as np
import pandas as pd
import pytest

from dtrees import DecisionTreeRegressor
from dtrees.inspection import partial_dependence
from tests.inspection.test_dependence import NUMBERS, RNG, F, N

DAYS = pd.Timestamp("1965-03-01") + pd.to_timedelta(np.arange(N) % 40, unit="D")


@pytest.mark.parametrize(
    ("column", "end"),
    [
        (DAYS, DAYS[39]),
        (DAYS[0] + pd.to_timedelta(np.arange(N) % 2, unit="D"), DAYS[1]),
        (DAYS[0] + pd.to_timedelta(np.arange(N) % 9, unit="s"), "1965-03-01T00:00:08"),
        (pd.Series(DAYS - DAYS[1]), pd.Timedelta(38, "D")),
        (pd.to_timedelta(-2 + np.arange(N) % 2, unit="s"), pd.Timedelta(-1, "s")),
        (DAYS + (pd.Timestamp("2262-04-11") - DAYS[39]), "2262-04-11"),
        (np.arange(N) % 2, 1),
        (1 + np.arange(N) % 2, 2),
        (2 * (np.arange(N) % 2) - 1.0, 1),
        (np.arange(N) % 2 * 0.25, 0.1375),
        (np.arange(N) % 3, 1.65),  # numbers of which nobody knows whether they are whole
        (np.arange(N) % 2 * 1e308, 5.5e307),
        (np.where(np.arange(N) % 2, 1.7e308, 1.6e308), np.finfo(np.float64).max),
    ],
)
def test_a_grid_ends_at_a_value_that_is_easy_to_read(column, end):
    frame = pd.DataFrame({"x": column})
    tree = DecisionTreeRegressor().fit(frame, np.arange(N) % 40 + F / 100)
    values = partial_dependence(tree, "x").values
    end = end if isinstance(end, int | float) else np.array([end]).astype(values.dtype)[0]
    assert values[-1] == pytest.approx(end) if isinstance(end, float) else values[-1] == end
    assert values[-2] < values[-1]


def test_a_grid_goes_beyond_a_threshold_of_zero():
    frame = pd.DataFrame({"x": np.array([-1.0, 1.0, 5.0])[np.arange(N) % 3]})
    found = partial_dependence(DecisionTreeRegressor().fit(frame, frame["x"] > 0), "x")
    assert found.values.tolist() == [0.0, 1.0]
    assert found.average.tolist() == [[0.0, 1.0]]


def test_a_grid_of_times_ends_where_times_end():
    last = pd.Timestamp.max.floor("us")
    frame = pd.DataFrame({"x": last - pd.to_timedelta(np.arange(N) % 3, unit="D")})
    tree = DecisionTreeRegressor().fit(frame, np.arange(N) % 3)
    values = partial_dependence(tree, "x").values
    assert not np.isnat(values).any()
    assert values[-2] < values[-1] <= pd.Timestamp.max


def test_few_numbers_are_taken_and_all_categories():
    model = DecisionTreeRegressor().fit(NUMBERS, F)
    assert len(partial_dependence(model, 0).values) <= 100
    found = partial_dependence(model, 0, resolution=7)
    assert len(found.values) == 7
    cuts = model.tree_.threshold[model.tree_.feature == 0]
    assert (found.values[0], found.values[-1] > cuts.max()) == (cuts.min(), True)
    alone = partial_dependence(DecisionTreeRegressor().fit(NUMBERS * 0, F), 0)
    assert alone.values.tolist() == [0.0]
    assert alone.average.tolist() == [[pytest.approx(F.mean())]]
    letters = pd.DataFrame({"c": pd.Categorical(RNG.integers(0, 200, N).astype(str))})
    many = partial_dependence(DecisionTreeRegressor().fit(letters, F), "c", resolution=2)
    assert len(many.values) == letters["c"].nunique()


def test_values_are_where_the_answer_changes():
    tree = DecisionTreeRegressor(max_leaf_nodes=6).fit(NUMBERS[:, :1], F)
    found = partial_dependence(tree, 0)
    (cuts,) = [np.sort(tree.tree_.threshold[tree.tree_.feature == 0])]
    assert found.values[:-1].tolist() == cuts.tolist()
    assert len(np.unique(found.average)) == 6
    between = (cuts[:-1] + cuts[1:]) / 2
    again = partial_dependence(tree, 0, values=between).average
    np.testing.assert_array_equal(again, found.average[:, 1:-1])
