"""Printed numbers, dates and categories can be told from each other."""

import numpy as np
import pandas as pd

from dtrees import DecisionTreeRegressor, export_text
from dtrees.inspection.formats import category_word, date_format, duration_format, number_format
from tests.inspection.tables import report


def test_words_that_would_be_misread():
    assert [category_word(w) for w in ("plain words", "", " a", "a, b", "{", 3, 2.5, True)] == [
        *("plain words", "''", "' a'", "'a, b'", "'{'", "3", "2.5", "True")
    ]


def test_dates():
    days = pd.date_range("2024-01-01", periods=4, freq="D")
    text = report(pd.DataFrame({"day": days}), [0, 0, 1, 1])
    assert "|--- day <= 2024-01-02 12:00\n" in text
    text = report(pd.DataFrame({"day": days[[0, 1, 3]]}), [0, 0, 1])
    assert "|--- day <= 2024-01-03\n" in text


def test_durations():
    spans = pd.to_timedelta([1, 2, 3, 4], unit="h")
    text = report(pd.DataFrame({"span": spans}), [0, 0, 1, 1])
    assert "|--- span <= 2:30:00\n" in text
    assert duration_format(np.zeros(1), 2)(1.5 * 86_400e9) == "1 day, 12:00:00"


def test_booleans():
    text = report(pd.DataFrame({"flag": [True, False] * 4}), [1, 0] * 4)
    assert text.splitlines()[::2] == ["|--- flag is False", "|--- flag is True"]


def test_thresholds_that_would_look_equal():
    def shown(*values, decimals=2):
        form = number_format(np.array(values), decimals)
        return [form(v) for v in values]

    assert shown(0.5, 1.25) == ["0.50", "1.25"]
    assert shown(1.0, 1.001) == ["1.000", "1.001"]
    assert shown(1.0001, 1.0002, decimals=1) == ["1.0001", "1.0002"]
    assert shown(-0.004) == ["-0.004"]
    assert shown(0.0) == shown(-0.0) == ["0.00"]
    assert shown(0.0616, 0.0005) == ["0.0616", "0.0005"]
    assert shown(3e-12, 4e-12) == ["3e-12", "4e-12"]
    assert shown(1e15, 1e15 + 1) == ["1000000000000000.00", "1000000000000001.00"]
    assert shown(1.0, np.nextafter(1.0, 2.0)) == ["1.0", "1.0000000000000002"]
    assert shown(0.49, np.nextafter(0.49, 1.0), 9.95) == ["0.49", "0.49000000000000005", "9.95"]
    x = np.array([0.001, 0.002, 0.003, 0.004])
    tree = DecisionTreeRegressor().fit(x[:, None], [1.0, 5.0, 2.0, 9.0])
    thresholds = {line.split()[-1] for line in export_text(tree).splitlines() if "<=" in line}
    assert thresholds == {"0.0015", "0.0025", "0.0035"}


def test_dates_that_would_look_equal():
    base = np.datetime64("2024-05-01T10:11:12.345", "ns").astype(np.int64)
    form = date_format(np.array([base, base + 1e9]), 2)
    assert form(base) == "2024-05-01 10:11:12"
    form = date_format(np.array([base, base + 1e6]), 2)
    assert form(base) == "2024-05-01 10:11:12.345"


def test_small_values_show_digits():
    tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [1e-6, 2.5e-6])
    assert "value: [0.00000100]" in export_text(tree)
    assert "value: [0.00000250]" in export_text(tree)
    tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [1e-12, 2.5e-12])
    assert "value: [2.5e-12]" in export_text(tree)
