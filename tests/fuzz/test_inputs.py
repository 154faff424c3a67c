"""The input fuzzer: a short run, and that it finds what is planted."""

import pytest

from tests.fuzz.inputs import case_of, findings, main

SEED = 0
CASES = 75


def test_nothing_is_found():
    found = [
        (f"--seed {SEED} --only {number}", what) for number, what in findings(SEED, range(CASES))
    ]
    assert found == []


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("plant", "kind", "said"),
    [
        ("rounding", "64-bit integers in a array", "not told apart"),
        ("trust", "damaged sparse csc", "SIG"),
        ("wait", "dates in a frame", "it was silent"),
        ("spin", "dates in a frame", "more time of the processor"),
        ("hunger", "dates in a frame", "MemoryError"),
    ],
)
def test_what_is_planted_is_found(plant, kind, said):
    numbers = [n for n in range(3000) if case_of(SEED, n).drawn.kind.startswith(kind)]
    limits = {"wait": {"patience": 2.0}, "spin": {"seconds": 1.0}}.get(plant, {})
    numbers = numbers[: 1 if limits else 12]
    found = [what for _, what in findings(SEED, numbers, plant, **limits)]
    assert any(said in what for what in found), found


def test_a_case_is_told_by_its_number(capsys):
    assert str(case_of(3, 14)) == str(case_of(3, 14))
    assert main(["--seed", str(SEED), "--only", "3"]) == 0
    assert capsys.readouterr().out.endswith("nothing is wrong\n")
