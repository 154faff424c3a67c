"""The fuzzer of model files, in short; `make fuzz-models` runs it for long."""

import pytest

from tests.fuzz.model_files import ENDINGS, case_of, good_files, main, run

SEED = 0


@pytest.fixture(scope="module")
def files():
    return good_files()


def test_no_file_hurts(capsys):
    code = main(["--seed", str(SEED), "--cases", "150"])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "150 cases" in said
    n_refused, n_used = (int(said.split(f" {what}")[0].split()[-1]) for what in ENDINGS)
    assert n_refused > 50
    assert n_used > 5


def changes_an_array(change, data):
    return change == "with_arrays"


def holds_a_huge_number(change, data):
    return b'"1e999999999"' in data


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("plant", "concerns", "said"),
    [("trees", changes_an_array, "use: "), ("numbers", holds_a_huge_number, "it took more")],
)
def test_a_check_that_is_taken_away_is_found(plant, concerns, said, files, tmp_path):
    numbers = [n for n in range(400) if concerns(*case_of(SEED, n, files)[:2])]
    assert len(numbers) >= 3
    without = dict(run(SEED, numbers, tmp_path, seconds=3))
    assert set(without.values()) <= set(ENDINGS)
    outcomes = (what for _, what in run(SEED, numbers, tmp_path, plant, seconds=3))
    assert any(said in what or "it was ended by" in what for what in outcomes)


def test_cases_can_be_seen_again(files, capsys):
    again = good_files()
    for number in range(20):
        assert case_of(3, number, files)[:2] == case_of(3, number, again)[:2]
    assert main(["--seed", "3", "--case", "7"]) == 0
    assert capsys.readouterr().out.startswith(f"--seed 3 --case 7, {case_of(3, 7, files)[0]}: ")
