"""Where the rows of open nodes live. A store counts rows and parts them between two children.

    presorted   every column's entries move with the node         all columns are searched
    sampled     a list of rows; columns are read when drawn       few columns of many
    shared      rows with cell and mask                           several training sets at once
    blocks      rows elsewhere, on threads or workers             one round per level
    boosted     blocks of columns with gradients of rows          leaves, best first

The stores differ by what they have measured to be cheap; the node step above them (`grow`) does
not know which one it has. `_partition` says which side of a test a code is on, for all of them.
"""
