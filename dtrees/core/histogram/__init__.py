"""What a row adds to a cell. A histogram has a cell per code; a new target is a new layout.

    row ──▶ weight, target ──encode──▶ words ──add──▶ cell ──decode──▶ rows, weight, targets

    `_layout`   how the sums of a cell lie in 64-bit words: encode, add, subtract, decode
    `_count`    rows of a column to the cells of their codes

Histograms of parts of the rows add up to the histogram of all of them, in any order. That is all
that chunks, folds and bags need. So only the smaller child of a node is counted, and the larger one
is the node less the smaller one, to the last bit ([SF] 2, Algorithm 2; [CV] 2.2.2).
"""
