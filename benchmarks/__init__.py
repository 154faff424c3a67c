"""Measurements of dtrees, side by side with scikit-learn. ``python -m benchmarks --help``.

cases       what a case is: work, opponents, and how much faster it has to be
measure     how seconds and bytes are measured
data        real data sets and random tables
fits        fits and predictions against scikit-learn, and the memory of fits
kernels     pieces of dtrees alone, for the work on them
report      the table of results

Nothing here is run by the tests, and no test measures time.
"""
