"""What is counted of workers that go."""

import os
import signal
import sys

import pytest

from dtrees.parallel.fit_statistics import FitStatistics
from tests.parallel.clusters import digest
from tests.parallel.faults import pids
from tests.parallel.test_replicated import forest, grow_replicated, growth_of, table


def lost(*looks):
    """What is counted after some looks: addresses, and how many the scheduler has seen go."""
    stats = FitStatistics()
    for look in looks:
        stats.see_workers(*look)
    return stats.counts["lost_workers"]


class TestLostWorkers:
    def test_by_address(self):
        assert lost(["ab"], ["ab"]) == 0
        assert lost(["ab"], ["bc"], ["c"], ["cd"]) == 2

    def test_those_that_were_never_seen(self):
        assert lost(["ab", 7], ["ab", 7]) == 0
        assert lost(["ab", 7], ["ad", 10]) == 3  # b, and c, d' in between

    def test_nobody_is_counted_twice(self):
        assert lost(["abc", 7], ["ab"], ["a"], ["a", 9]) == 2
        assert lost(["abc", 7], ["ab"], ["ad", 9], ["ad", 9], ["a", 10]) == 3

    def test_those_before_the_first_look(self):
        assert lost(["ab", 100]) == 0
        assert lost(["ab"], ["a"], ["a", 100], ["a", 101]) == 2

    def test_events_that_are_forgotten(self):
        """The scheduler keeps a number of them; what was counted stays."""
        assert lost(["abc", 7], ["ab"], ["ab", 0]) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_all_deaths_of_a_fit(processes):
    """Three, of workers that were started again in between."""
    growth = growth_of(forest(), *table(6_000))
    expected = digest([growth.tree(number) for number in range(40)])
    pids(processes, 2)
    killed = []

    def kill(number, tree):
        if len(killed) < 3:
            victim = pids(processes, 2)[0]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
            while victim in pids(processes, 2):  # until the scheduler knows: the fit may be over
                pass

    stats = FitStatistics()
    trees = grow_replicated(
        growth, range(40), processes, units_per_task=1, on_tree=kill, stats=stats
    )
    assert digest(trees) == expected
    assert len(set(killed)) == 3
    assert stats.counts["lost_workers"] == 3
