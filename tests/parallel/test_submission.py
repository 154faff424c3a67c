"""How tasks are submitted to a cluster."""

from concurrent.futures import CancelledError

import distributed
import pytest
from distributed import Client

from dtrees.parallel.submission import Call, LostResultsError, Submitter
from tests.parallel.clusters import connect, ours


def where(number, *_):
    return number, distributed.get_worker().address


def test_tasks_of_several_kinds_in_their_order():
    with connect(2, 1, False) as cluster, Client(cluster) as client:
        submitter = Submitter(client)
        submitter.begin()
        a, b = sorted(submitter.workers())
        sent = submitter.send("a-value", [7])
        calls = [
            Call("where", where, (0, [sent]), (b,)),
            Call("max", max, (sent,)),
            Call("where", where, (2, sent), (a,)),
            Call("where", where, (3, sent), (b,)),
        ]
        futures = submitter.submit(calls)
        assert client.gather(futures) == [(0, b), 7, (2, a), (3, b)]
        assert [key[0].split("-")[0] for key in (each.key for each in futures)] == [
            "where",
            "max",
            "where",
            "where",
        ]
        assert [set(at) for at in submitter.holders(futures[:1])] == [{b}]
        submitter.end()
        assert ours(client) == []


def test_what_a_report_always_has(here):
    submitter = Submitter(here)
    submitter.begin()
    assert submitter.stats.counts == {"lost_workers": 0, "retries": 0, "restarts": 0}


def test_values_are_sent_anew(here):
    submitter = Submitter(here)
    value = ["large"]
    sent = submitter.send("a-value", value)
    assert sent.result() == value
    calls = [(3, Call("t", max, (sent, 1, [2]))), (4, Call("t", max, (sent,)))]
    same = submitter.with_values_anew(calls, {}, frozenset())  # it can be had
    assert [call.arguments for _, call in same] == [call.arguments for _, call in calls]
    hanging = frozenset(here.nthreads())
    (found, again) = submitter.with_values_anew(calls, {}, hanging)
    assert (found[0], again[0]) == (3, 4)
    anew, *rest = found[1].arguments
    assert again[1].arguments == (anew,)
    assert rest == [1, [2]]
    assert anew.key != sent.key
    assert anew.result() == value
    submitter.end()
    assert ours(here) == []


def test_arguments_that_are_lost(here, monkeypatch):
    def lost(*_, **__):
        raise CancelledError

    monkeypatch.setattr(here, "map", lost)
    with pytest.raises(LostResultsError, match="lost with their workers"):
        Submitter(here).submit([Call("t", max, (1, 2))])


def test_names():
    assert str(Call("grow", max, ())) == "a task 'grow'"
    assert str(Call("grow", max, (), about="trees 0 to 4")) == "a task 'grow' (trees 0 to 4)"
