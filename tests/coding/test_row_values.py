import numpy as np
import pytest

from dtrees.coding.row_values import row_values

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("values", [None, [1, "a"], (1, 2), 0.5, pd.DataFrame({"a": [1]})])
def test_what_is_no_column_stays(values):
    assert row_values(values) is values


def test_arrays_and_series_stay_themselves():
    for values in (np.arange(3), np.array(["a", None], dtype=object), pd.Series([1], index=[7])):
        assert row_values(values) is values


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [([1, 2], np.int64), ([True, False], bool), ([0.5, 2.0], float), ([np.int8(1)] * 2, np.int8)],
)
def test_objects_of_one_type_of_numbers_are_of_that_type(cells, dtype):
    values = np.array(cells, dtype=object)
    assert row_values(values).dtype == dtype
    series = row_values(pd.Series(values, index=[3, 4]))
    assert series.dtype == dtype
    assert series.index.tolist() == [3, 4]


@pytest.mark.parametrize("cells", [[1, None], [1, 2.5], ["a", "b"], [2**70, 1], []])
def test_other_objects_stay(cells):
    values = np.array(cells, dtype=object)
    assert row_values(values) is values


def test_strings_of_variable_width_are_objects():
    found = row_values(np.array(["a", "bc"], dtype=np.dtypes.StringDType()))
    assert found.dtype == object
    assert found.tolist() == ["a", "bc"]


def test_columns_of_pandas_are_arrays():
    for values in (pd.Index(["a", "b"]), pd.Categorical(["a", "b"])):
        found = row_values(values)
        assert type(found) is np.ndarray
        assert found.tolist() == ["a", "b"]
