"""Raw tables to codes and back.

tables            any table in memory as typed columns
sparse_positions  damaged sparse matrices are refused before they are converted
times             dates and time spans of any type as numbers; dates in text
labels            columns that are not numbers by their type
column_types      ordered, categorical or hybrid columns; checks by those of the fit
sampling          which rows cuts are read from
dense_columns     codes of dense tables, a tile at a time
sparse_columns    stored values to codes
summaries         what a codebook knows of a table, mergeable
codebook          fit, check, encode and decode; thresholds
coded             the coded table, and a number that tells its rows
target            y and the weights as integers
group_keys        labels of groups as keys that do not depend on other labels
"""

from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target

__all__ = ["CodeBook", "CodedMatrix", "Target"]
