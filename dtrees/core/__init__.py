"""Codes to trees, in one process. Nine folders, each of which imports from those above it only.

    data         columns of codes, rules, fixed-point numbers
    membership   training sets as cells and bags
    histogram    what a row adds to a cell; add, subtract, read
    search       the best split of a node
    stores       where rows live: presorted, sampled, shared, blocks, boosted
    losses       what boosted models minimise: gradients, hessians, steps of leaves
    model        trees, packing, pruning
    grow         the node step and the orders of growth
    predict      rows down trees

`grow.source` grows a tree from rows, `grow.shared` those of several sets. `model.tree` is what has
grown.
"""
