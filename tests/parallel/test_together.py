"""Models that grow at the same time tell the members of an epoch what they would tell alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dtrees.parallel.together import OfModel, Together
from tests.members import together


def history(number, lag, members):
    """What a model hears that tells numbers of its own, in an order of its own, a few times."""
    heard, n = [], 4 + number
    for step in range(n):
        own = np.arange(n) * (members.rank + step)
        if (step + lag * number) % 3 == 0:
            members.sum(own)
            heard.append(own.tolist())
        elif (step + lag * number) % 3 == 1:
            largest = own + 0.5
            members.largest(largest)
            heard.append(largest.tolist())
        else:
            ends = [n * (part + 1) // members.n_parts for part in range(members.n_parts)]
            part = members.scatter(own.copy(), ends)
            best = np.array([part.sum(), members.rank])
            members.join(best, keep_larger)
            heard.append((part.tolist(), best.tolist()))
    return heard


def keep_larger(own, others):
    np.maximum(own, others, out=own)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_members", [2, 3, 4])
def test_they_hear_what_they_would_hear_alone(n_members, n_threads, lag):
    def alone(members):
        found = {number: history(number, lag, members) for number in range(4)}
        n_calls = members.n_calls
        found[4] = history(4, lag, members)
        return found, members.n_calls - n_calls

    def at_once(members):
        models = Together(members, n_threads)
        of_models = {number: OfModel(models, number) for number in range(5)}
        works = {number: partial(history, number, lag, own) for number, own in of_models.items()}
        first, n_calls = models.run(works), members.n_calls
        return first, models.run({number: works[number] for number in (3, 1)}), n_calls

    expected = together([alone] * n_members)
    found = together([at_once] * n_members)
    for (of_member, n_alone), (first, again, n_calls) in zip(expected, found, strict=True):
        assert first == of_member
        assert again == {number: of_member[number] for number in (3, 1)}
        assert n_calls == n_alone or lag > 0  # of the one that asks most often


def test_an_error_of_one_ends_all():
    def fails(members):
        models = Together(members, 2)

        def work(number):
            own = OfModel(models, number)
            own.sum(np.zeros(1, dtype=np.int64))
            if number == 1:
                raise OSError("of one")
            own.sum(np.zeros(1, dtype=np.int64))

        with pytest.raises(OSError, match="of one"):
            models.run({number: partial(work, number) for number in range(3)})
        return True

    assert together([fails] * 2) == [True, True]
