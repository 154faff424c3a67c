"""From rows to trees: the order in which nodes are grown, and how their records become a tree.

    grower.grow ──▶ source, forest ──▶ depth first | shared | rounds
                                            │
                       node: search, enough gain?, split the rows, open two children, write the test

Every order grows the same tree: a node depends on its rows and the key of its path alone. Work is
divided into slices, between which signals and cancellation are looked at.
"""
