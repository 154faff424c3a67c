"""Trees of several training sets on several threads: upper nodes first, and subtrees as they come.

One thread grows the upper nodes and leaves the subtrees below them in a queue (`work_queue`), where
the other threads find them at once. Large nodes are searched by all, in blocks of columns.
"""
from functools import partial

from libc.stdint cimport int64_t, uint64_t

from dtrees.core.stores.shared._shared_nodes cimport work_of
from dtrees.core.grow._arena cimport Arena
from dtrees.core.grow._shared_growth cimport SharedGrowth
from dtrees.core.grow._training_sets cimport TrainingSets

from dtrees.core.grow.work_queue import WorkQueue

cdef enum:
    TASKS = 4               # subtrees for each thread
    BLOCKS = 3              # of columns for each thread
    OFFLOADED = 48             # times the entries of a subtree that is worth a task


def grow_together(TrainingSets sets, Arena arena, run, int n_threads, cancelled, tuning,
                  int64_t depth=0, uint64_t path=0):
    """Grow the tree of each set.

    Parameters
    ----------
    sets : TrainingSets
    arena : Arena
    run : Runner
    n_threads : int
        Decides only how the work is divided.
    cancelled : callable () -> bool
    tuning : Tuning
        `task_entries` decides which tables one thread grows, `level_entries` which nodes it
        searches.
    depth, path : int, default=0
        Of the node that has all rows.

    Returns
    -------
    list of list of PartialTree
        By set: pieces, as those of `LevelWiseBuilder.grow`. Empty when the growth was cancelled.
    """
    cdef SharedGrowth top = SharedGrowth(sets, arena)
    cdef int64_t n_columns = sets.n_dense + sets.n_stored // (sets.dataset.n_rows + 1)  # of a row
    cdef SharedGrowth worker
    idle = []
    top.open_root(depth, path)
    if n_threads == 1 or work_of(top.store.top) * n_columns < OFFLOADED * tuning.task_entries:
        found = top.grow(cancelled)
    else:
        top.most_offloaded = work_of(top.store.top) // (TASKS * n_threads)
        if not sets.params_of[0].draws:
            top.least_divided = tuning.level_entries
        queue = WorkQueue()
        upper = partial(grow_upper, top, cancelled, queue, BLOCKS * n_threads, idle)
        found = run([upper, *[queue.help] * (n_threads - 1)])[0]
    if found is None or cancelled():
        return []
    pieces = [[subtree] for subtree in found]
    for subtrees in top.left:  # each after those that were offloaded before it
        for s, subtree in subtrees:
            pieces[s].append(subtree)
    for worker in [top, *idle]:
        sets.n_bounded += worker.store.n_bounded
        sets.n_alive += worker.store.n_alive
        sets.n_shared_nodes += worker.n_shared_nodes
        sets.n_shared_rows += worker.n_shared_rows
        sets.n_known_nodes += worker.n_known_nodes
        arena.give_back(worker.memory)
    return pieces


def grow_upper(SharedGrowth top, cancelled, queue, int n_blocks, list idle):
    """What is above the subtrees that are left to whoever helps; then help."""
    try:
        found = top.grow(cancelled, queue, n_blocks, idle)
    finally:
        queue.close()
    queue.help()
    return found
