"""Models side by side: every job once, helpers at the end, the bits of models that grow alone."""

import threading

import numpy as np
import pytest

from dtrees.coding import CodeBook
from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow.boosting import BoostedRows, Growing, boost
from dtrees.core.grow.lockstep import Crew, Model, boost_together
from dtrees.core.losses.losses import NUMBERS
from dtrees.parallel import LocalRunner
from dtrees.typing import serial

LOSS = NUMBERS["squared_error"]


def table(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    book, coded = CodeBook.fit_encode(X, max_bins=16)
    return book, coded, X[:, 0] * X[:, 1] + rng.normal(size=n)


def model_of(coded, y, number):
    chosen = np.flatnonzero(np.arange(len(y)) % 3 != number).astype(np.uint32)
    growing = Growing(LOSS, np.zeros(1), BoostingRules(min_samples_leaf=5), 0.1, 4 + number)
    return Model(BoostedRows(coded, y, None, 1.0, chosen), growing)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_models_have_the_bits_of_models_that_grow_alone(n_threads):
    book, coded, y = table()
    found = {}

    def job(number):
        return lambda grow: found.update({number: grow(model_of(coded, y, number))})

    run = LocalRunner(n_threads) if n_threads > 1 else serial
    boost_together(coded, [job(number) for number in range(3)], book.thresholds, run, n_threads)
    for number, trees in found.items():
        model = model_of(coded, y, number)
        alone = boost(model.rows, model.growing, book.thresholds, serial)
        assert len(trees) == 4 + number
        assert [tree.value.tobytes() for tree in trees] == [tree.value.tobytes() for tree in alone]
    assert sorted(found) == [0, 1, 2]


def test_a_watch_ends_its_own_model():
    book, coded, y = table()
    heard, found = [], []

    def watched(grow):
        model = model_of(coded, y, 0)
        found.append(grow(Model(model.rows, model.growing, lambda trees, raw: heard.append(1))))

    def stopped(grow):
        model = model_of(coded, y, 1)
        found.append(grow(Model(model.rows, model.growing, lambda trees, raw: True)))

    boost_together(coded, [watched, stopped], book.thresholds, serial)
    assert [len(trees) for trees in found] == [4, 1]
    assert len(heard) == 4


def test_nothing_grows_once_it_is_cancelled():
    book, coded, y = table()
    found = []
    jobs = [lambda grow: found.append(grow(model_of(coded, y, 0)))]
    boost_together(coded, jobs, book.thresholds, serial, cancelled=lambda: True)
    assert found == [[]]


class TestCrew:
    def test_every_job_is_done_once_in_order(self):
        crew, done = Crew(4), []
        crew.work(lambda number, team: done.append(number))
        assert done == [0, 1, 2, 3]
        assert crew.n_helped == 0

    def test_who_finds_no_job_helps(self):
        crew, begun = Crew(1), threading.Event()

        def lead(number, team):
            begun.set()
            for _ in range(10**8):  # until the other thread has come
                if crew.n_helped > 0:
                    return

        leader = threading.Thread(target=crew.work, args=(lead,))
        leader.start()
        assert begun.wait(60)
        crew.work(lead)  # no job is left: helps, and comes back when the team is closed
        leader.join(60)
        assert not leader.is_alive()
        assert crew.n_helped == 1

    def test_an_error_sends_the_helpers_away(self):
        crew = Crew(2)

        def lead(number, team):
            raise MemoryError

        with pytest.raises(MemoryError):
            crew.work(lead)
        crew.dismiss()
        crew.work(lead)  # nothing is left to do
