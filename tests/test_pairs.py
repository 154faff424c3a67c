"""A few mixes that meet every pair of values."""

from itertools import combinations

import pytest

from tests.pairs import parametrize_in_turn, parametrize_pairs, rest_of, some_of


@pytest.mark.parametrize(
    ("lengths", "most"), [((2, 2), 4), ((3, 4), 12), ((2, 2, 4, 4), 20), ((10, 3, 2, 3), 36)]
)
def test_any_two_values_meet(lengths, most):
    found = some_of(lengths)
    assert len(found) == len(set(found)) <= most
    for a, b in combinations(range(len(lengths)), 2):
        assert len({(mix[a], mix[b]) for mix in found}) == lengths[a] * lengths[b]


def test_the_others_are_long():
    mark = parametrize_pairs(letter="ab", digit=[1, 2, 3], more=(True, False))
    names, params = mark.args
    assert names == ["letter", "digit", "more"]
    assert {param.values for param in params if not param.marks} < {p.values for p in params}
    assert len(params) == 12
    assert sum(not param.marks for param in params) <= 7


def test_all_values_have_their_turn():
    mark = parametrize_in_turn(2, ("a, b", [(1, 2), (3, 4), (5, 6)]), ("c", "xyzuv"))
    names, params = mark.args
    assert names == "a, b,c"
    short = [param.values for param in params if not param.marks]
    assert short == [(1, 2, "x"), (1, 2, "y"), (3, 4, "y"), (3, 4, "z"), (5, 6, "z"), (5, 6, "u")]
    assert len(params) == 15


def test_the_others_bring_no_value():
    lists = [1], [2], [3], [4]
    mixes = [{"letter": each, "some": some, "more": True} for each in "ab" for some in lists]
    assert rest_of(mixes, 4) == [1, 4, 6, 7]
    assert rest_of(mixes, 1) == [1, 2, 3, 4, 5, 6, 7]
