"""What a growth is given: columns of codes, rules, and numbers as integers.

    coded matrix ──▶ Column  Column  Column ...    codes of 8, 16 or 32 bits, or a sparse list
    GrowthRules  ──▶ least rows, least weight, depth ...   shares of a training set made numbers
    Scale        ──▶ y and weights as int64               sums are exact, in any order

A kernel sees a column as a pointer, a width and a number of codes; it never sees values. Weights
and targets are fixed-point integers, so a sum has the same bits on any number of threads, workers
and chunks. `tuning` holds the numbers that decide how trees are grown and never which; `_cpu` says
whether a processor has registers of 256 bits.

Nothing here costs more than one pass over the codes.
"""
