"""Rows that are elsewhere: a block holds some, splits them by the last tests and counts them.

    round    tests of the last level ──▶ block 0, 1, 2 ...  ──▶ sums of histograms ──▶ next tests

Sums are integers, so it does not matter how many blocks there are, or which answered first. The
smaller child of a node is counted; the larger one is the parent less the smaller.
"""
