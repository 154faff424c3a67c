"""Rows down trees.

    raw table    ──▶ thresholds of one tree          `raw`
    raw table    ──▶ codes for all trees of a forest `packed_forest`
    coded rows   ──▶ codes of the growth             `binned`, `out_of_bag`

A walk keeps many rows in flight, so that a processor has other rows to go on with while one waits
for memory. Means over trees are sums of integers or in a fixed order: the same bits anywhere.
"""
