"""The tables and figures of the papers, measured again; a page each.

figures      what the papers report, as numbers with their places
tables       their data sets, as far as they can be had; keel reads some from a package
sides        the algorithms of [CV] by our means
levels       which sets are together at which level, from finished trees
drawing      what the pictures have in common

cv_table     [CV] table 1
cv_phases    [CV] figures 9 to 11; cv_sizes: 12 and 13
cv_bagging   [CV] figures 15 to 17
sf_tables    [SF] tables 5 to 7; sf_labels: its label split, by the prototype label_split
sp_depth     [SP] figures 2 and 4; sp_density: 6; storage: their sides
stumps       AdaBoost over stumps on text
"""

from benchmarks.papers import (
    cv_bagging,
    cv_phases,
    cv_sizes,
    cv_table,
    sf_labels,
    sf_tables,
    sp_density,
    sp_depth,
    stumps,
)

CASES = [
    *cv_table.CASES,
    *cv_phases.CASES,
    *cv_sizes.CASES,
    *cv_bagging.CASES,
    *sf_tables.CASES,
    *sf_labels.CASES,
    *sp_depth.CASES,
    *sp_density.CASES,
    *stumps.CASES,
]
