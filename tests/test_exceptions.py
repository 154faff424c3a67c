"""Errors with a name are also those that scikit-learn's users catch."""

import inspect
import pickle

import pytest

from dtrees import exceptions

OF_OURS = [each for _, each in inspect.getmembers(exceptions, inspect.isclass)]


@pytest.mark.parametrize("kind", OF_OURS, ids=lambda kind: kind.__name__)
def test_each_derives_from_a_plain_one_and_travels_between_processes(kind):
    plain = (ValueError, MemoryError, RuntimeError, UserWarning)
    assert issubclass(kind, plain)
    twin = pickle.loads(pickle.dumps(kind("words")))
    assert type(twin) is kind
    assert str(twin) == "words"


def test_what_is_caught_together():
    for kind in (exceptions.NoAnswerError, exceptions.WorkerLostError):
        assert issubclass(kind, exceptions.ClusterError)
    assert issubclass(exceptions.SchedulerLostError, exceptions.ClusterError)
    assert issubclass(exceptions.StatisticsOverflowError, OverflowError)


@pytest.mark.parametrize("kind", [exceptions.WorkerLostError, exceptions.SchedulerLostError])
def test_a_lost_cluster_has_no_estimator_unless_it_is_given_one(kind):
    error = kind("lost")
    assert error.estimator is None
    error.estimator = "a forest"
    assert kind("another").estimator is None
