"""Trees grown from partitions on a cluster: two workers of one thread each, on this machine.

against      forests beside Spark MLlib, xgboost.dask and lightgbm.dask (`opponents`)
ourselves    beside our own local regime: to a depth, to the end, cross-validated
rounds       rounds of a batch of trees, what a round costs, bytes that move beside PLANET's
large        data of ten times the memory of the cluster
members      messages, bytes, tasks and processor time of 1 to 16 members
constants    what the cost model (`dtrees.parallel.cost`) is fed with, measured
scaling      one and two workers measured, 4 to 1,024 by the model, as a picture
"""

from benchmarks.cluster import against, large, members, ourselves, rounds, scaling

CASES = [
    *against.CASES,
    *ourselves.CASES,
    *rounds.CASES,
    *large.CASES,
    *members.CASES,
    *scaling.CASES,
]
