"""Errors and notes: one line each, on standard error."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis.strategies import sampled_from, text

from dtrees.cli.errors import LONGEST, RequestError, notes, one_line, one_line_errors
from dtrees.exceptions import ClusterError
from tests.cli.asking import ask, check_refused, cv

pd = pytest.importorskip("pandas")


def test_long_messages_are_cut(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("x" * 100_000 + ",b\n1,2\n")
    result = ask("cv", path, "--target", "target")
    check_refused(result, "no column 'target' in the table")
    assert len(result.stderr) < 2 * LONGEST


def test_a_small_class_is_noted_in_one_line(table, tmp_path):
    table.loc[0, "class"] = "maybe"
    path = tmp_path / "small.csv"
    table.to_csv(path, index=False)
    result = cv(path, "--target", "class", "--folds", 3)
    assert result.exit_code == 0
    assert result.stderr == "Note: the smallest class has 1 row, not one for every fold.\n"


@settings(max_examples=max(15, settings.default.max_examples // 4))
@given(text(sampled_from("ab \n\r\t\0\x1b\x9b\u2028\u202e\ud800漢"), max_size=1_500))
def test_a_message_is_one_line_of_letters(message):
    line = one_line(message)
    assert len(line) <= LONGEST + len(" ... ")
    assert not any(letter in line for letter in "\n\r\x1b\0\u2028")


def test_a_long_message_keeps_its_ends():
    line = one_line("a" * LONGEST + "b" * LONGEST)
    assert line == "a" * (LONGEST // 2) + " ... " + "b" * (LONGEST // 2)
    assert one_line("a" * LONGEST) == "a" * LONGEST


@pytest.mark.parametrize("kind", [ValueError, TypeError, ImportError, ClusterError])
def test_what_is_refused_below_is_a_refused_request(kind):
    with pytest.raises(RequestError, match=r"^one line$") as caught, one_line_errors():
        raise kind("one\nline")
    assert caught.value.exit_code == 2
    assert isinstance(caught.value.__cause__, kind)


def test_other_errors_are_bugs_and_stay():
    with pytest.raises(ZeroDivisionError), one_line_errors():
        raise ZeroDivisionError


def test_a_hint_for_files_of_which_dask_guessed_a_column_wrong():
    with pytest.raises(RequestError, match="Write the table as Parquet"), one_line_errors():
        raise ValueError("Mismatched dtypes found in `pd.read_csv`")


def test_warnings_become_notes(capsys):
    with notes():
        warnings.warn("one\nline", UserWarning, stacklevel=1)
        assert capsys.readouterr().err == ""  # they come together, at the end
    assert capsys.readouterr().err == "Note: one line\n"
