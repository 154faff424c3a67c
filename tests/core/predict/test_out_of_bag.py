"""Sums over the trees whose bag lacks a row."""

from types import SimpleNamespace

import numpy as np
from sklearn.datasets import load_iris

from dtrees import RandomForestClassifier
from dtrees.coding import CodeBook
from dtrees.core.membership.resampling import Bags
from dtrees.core.predict.binned import CodedRows
from dtrees.core.predict.out_of_bag import OutOfBag

X, Y = load_iris(return_X_y=True)


def test_sums_are_those_of_a_loop_over_trees():
    forest = RandomForestClassifier(15, random_state=1, oob_score=True).fit(X, Y)
    bags = Bags(forest._fit_seed, 1.0, np.arange(len(Y), dtype=np.uint64))
    _, coded = CodeBook.fit_encode(X, max_bins=forest.max_bins)
    target = SimpleNamespace(n_classes=3, n_values=3)
    growth = SimpleNamespace(
        coded=coded, target=target, times=bags.multiplicity, rows_out=bags.rows_out
    )
    sums = OutOfBag(growth, CodedRows(coded))
    assert np.isnan(sums.mean()).all()
    total, votes = np.zeros((len(Y), 3)), np.zeros(len(Y))
    for i, tree in enumerate(forest):
        out = bags.multiplicity(i) == 0
        total[out] += tree.predict_proba(X[out])
        votes += out
        sums.add(tree.tree_.model, sums.votes_of(i, tree.tree_.model))
    np.testing.assert_array_equal(sums.votes, votes)
    np.testing.assert_array_equal(sums.total, total)
    np.testing.assert_array_equal(sums.mean(), total / votes[:, None])
    np.testing.assert_array_equal(forest.oob_decision_function_, sums.mean())
    assert forest.oob_score_ == np.mean(sums.mean().argmax(axis=1) == Y)


def test_trees_that_come_are_seen_in_their_order():
    forest = RandomForestClassifier(40, random_state=0).fit(X, Y)
    bags = Bags(forest._fit_seed, 1.0, np.arange(len(Y), dtype=np.uint64))
    _, coded = CodeBook.fit_encode(X, max_bins=forest.max_bins)
    growth = SimpleNamespace(
        coded=coded,
        target=SimpleNamespace(n_classes=3, n_values=3),
        times=bags.multiplicity,
        rows_out=bags.rows_out,
    )
    sums = OutOfBag(growth, CodedRows(coded))
    trees = forest.forest_.trees
    for i, (number, tree, votes) in enumerate(sums.seen((i, t, None) for i, t in enumerate(trees))):
        assert number == i
        assert tree is trees[i]
        np.testing.assert_array_equal(votes.leaves, sums.votes_of(i, tree).leaves)
    assert i == 39
