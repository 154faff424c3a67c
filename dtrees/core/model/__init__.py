"""Grown trees: flat, frozen arrays, and the nested trees that stand inside them.

    Tree            one array per property, nodes in preorder          `tree`
    packed tree     2 to 11 bytes per node, for pickles and files      `packing`
    flat trees      their arrays one behind the other, for messages    `flat`
    pruned trees    weakest links, least gains, limits of size         `pruning`, `nested_trees`

A limit of size names a tree inside the grown one, so a grid of limits costs one growth ([SF] 3).
"""
