"""The best split of one node: criterion, candidates, and ways to look through a column.

    sums of a side ──▶ permitted? ──▶ score ──▶ better than the best?     `_search`, `_criterion`

    `_entry_scan`   presorted entries, one row after the other          O(rows)
    `_number_scan`  entries with one number per row, several at a time; also `_two_class_scan`
    `_gradient_scan`  sums of gradients by code                         O(codes)
    `_intervals`    which stretches of many codes may hold the best boundary
    `_bins`         distinct codes with their sums                      O(codes)
    `_categories`   which categories go left, and what they pay         O(codes log codes)

A search moves rows or bins to a side, keeps integer sums and offers the boundary. Among equal
scores of a column the lowest code wins, among columns the lowest, or the one of the greatest hash
(`random_ties`). The order of the search decides nothing, so threads may share it.
"""
