"""Measurements of dtrees, side by side with scikit-learn. ``python -m benchmarks --help``.

cases       what a case is: work, opponents, and how much faster it has to be
measure     how seconds and bytes are measured
data        real data sets and random tables
fits        fits and predictions against scikit-learn, and the memory of fits
forests     forests against other libraries: seconds, bytes, clusters, curves
accuracy    how well forests predict, beside scikit-learn's
kernels     pieces of dtrees alone, for the work on them
report      the tables of results

A test sees that the scripts run, on tiny tables; no test measures time.
"""
