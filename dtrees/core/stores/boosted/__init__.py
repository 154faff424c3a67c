"""Rows of one tree of a boosted model, leaf after leaf, with a histogram of every open leaf.

All columns are searched at every node, the table has few codes a column, and the same rows grow
hundreds of trees. So the codes are held row by row once more, and a node costs one pass over the
rows of its smaller child:

    order     | rows of leaf 0 | rows of leaf 1 | rows of leaf 2 |      uint32, ascending in a leaf
    row       gradient | hessian                 8 bytes
              codes of all columns               a byte each, side by side
    open leaf histogram of all columns           (rows << shift | hessian, gradient) a code

    `_column_blocks`   codes by row, which columns a thread takes together, and which share a byte
    `_gradient_scan`   the search of ordered columns, straight from the cells
    `_boosted_store`   count, subtract, search and partition; what a sparse column can gain at most

Columns of more than 8 bits are blocks of their own, read by column.
"""
