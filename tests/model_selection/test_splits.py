"""Splits that are kept say what the splitter has said, and take the room of their test sides."""

import numpy as np
import pytest
import sklearn.model_selection as theirs

from dtrees.model_selection.splits import Splits, rows_of_side

N = 60
Y, GROUPS = np.arange(N) % 3, np.arange(N) % 7
SPLITTERS = {
    "leave-one-out": theirs.LeaveOneOut(),
    "folds": theirs.KFold(4, shuffle=True, random_state=0),
    "stratified": theirs.StratifiedKFold(5),
    "repeated": theirs.RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "groups": theirs.LeaveOneGroupOut(),
    "shuffled": theirs.ShuffleSplit(4, test_size=0.2, random_state=0),
    "time series": theirs.TimeSeriesSplit(4, gap=1),
}
PARTS = ("leave-one-out", "folds", "stratified", "repeated", "groups")


@pytest.mark.parametrize("name", SPLITTERS)
def test_kept_splits_are_those_of_the_splitter(name):
    groups = GROUPS if name == "groups" else None
    expected = list(SPLITTERS[name].split(np.zeros(N), Y, groups))
    splits = Splits(iter(expected), N)
    assert len(splits) == len(expected)
    for found in (list(splits), splits[:], [splits[i] for i in range(len(splits))]):
        for own, other in zip(found, expected, strict=True):
            for side, same in zip(own, other, strict=True):
                np.testing.assert_array_equal(side, same, strict=True)
    for given in (splits, expected):
        for side, place in (("train", 0), ("test", 1)):
            for number, split in enumerate(expected):
                found = rows_of_side(given, number, side)
                np.testing.assert_array_equal(found, split[place], strict=True)
    kept = [isinstance(split, np.ndarray) for split in splits._kept]
    assert kept == [name in PARTS] * len(expected)


def test_leave_one_out_keeps_a_number_for_each_row():
    splits = Splits(theirs.LeaveOneOut().split(np.zeros(N)), N)
    assert sum(test.nbytes for test in splits._kept) == 8 * N


ODD = [
    ([0, 1], [2]),
    (np.array([0, 1]), [2]),
    (np.array([True, True, False]), np.array([False, False, True])),
    (np.array([1, 0]), np.array([2])),
    (np.array([0, 1]), np.array([-1])),
    (np.array([0, 1]), np.array([3])),
    (np.array([0, 1]), np.array([1])),
    (np.array([0, 1], dtype=np.int32), np.array([2], dtype=np.int32)),
    (np.array([0.0, 1.0]), np.array([2.0])),
    (np.array([[0, 1]]), np.array([[2]])),
    [np.array([0, 1]), np.array([2])],
    (np.array([0]), np.array([1]), np.array([2])),
    "no split",
    None,
]


@pytest.mark.parametrize("split", ODD, ids=str)
def test_what_is_no_such_split_stays_what_it_is(split):
    assert Splits([split], 3)[0] is split
