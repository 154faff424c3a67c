"""Pieces of dtrees alone, without an opponent, for the work on them: ``-m benchmarks kernels``.

encode      a table to codes, and another table by the same book
grow        codes to a tree
predict     raw rows to leaves, by storage
"""

from benchmarks.kernels import encode, grow, predict

CASES = [*encode.CASES, *grow.CASES, *predict.CASES]
