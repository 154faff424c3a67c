"""Which rows a training set has, and how often.

    k folds and all rows      a cell per fold; set i has the cells but i, the last has all
    bags of a forest          a count per row and tree, drawn from hash(seed, tree, key of the row)
    any k sets                a bit mask per row; rows of the same mask are a cell

A row is counted into its *cell*; the statistics of a *set* are sums over cells. A draw depends on
the row's key alone, so neither chunks nor threads nor a worker that is lost change it. Overlapping
sets: [CV] 2.2.1; cells of folds: [CV] 2.2.2.
"""
