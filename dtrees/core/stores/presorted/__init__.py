"""Entries of each column in ascending order of code, which move with the node.

    column 0   [ code row | code row | ... ]       node A        [ A left | A right ]
    column 1   [ code row | code row | ... ]       partitioned ▶   [ A left | A right ]

A sort at the root serves the whole tree. A level costs O(entries). Small nodes are renumbered, and
their entries become 32 bits wide; dense columns of few codes have no entries and are counted.
"""
