"""From rows to trees: the order in which nodes are grown, and how their records become a tree.

    table --codebook--> codes ----+
    y, weights -------> target ---+--> rows (one place, or blocks)    resampling (cells, mix)
                                            |                             |
         rows in one place:   a whole tree by one call, no rounds <-------+      `source`, `shared`
         rows in blocks:      large nodes in rounds of merged histograms,        `rounds`
                              small ones gathered in one place, and finished by the same call

A node is finished where its rows are. With all rows in one process that is at the root, and there
is no round at all. Where rows are spread over chunks and workers, a node is spread only as long as
it is large ([SK] 3 has the rounds; the early end of them is ours).

Cross-validation does not change what a node is: rows are counted by cell, and the statistics of a
training set are a mix of cells (`dtrees.core.membership.resampling`). The trees of all sets are
grown together, in one place (`dtrees.core.grow.shared`) and in rounds.

Every order grows the same tree: a node depends on its rows and the key of its path alone. Work is
divided into slices, between which signals and cancellation are looked at.
"""
