"""Raw tables to codes and back.

tables            any table in memory as typed columns (array_columns, frame_columns)
sparse_positions  damaged sparse matrices are refused before they are converted
times             dates and time spans of any type as numbers
labels            columns that are not numbers by their type
column_types      which columns are ordered, categorical or hybrid
ordered           numbers to codes, a tile at a time (tiles, code_store)
sparse_columns    stored values to codes
dense_columns     codes of dense tables
sampling          which rows cuts are read from
summaries         what a codebook knows of a table, mergeable (ordered_summary, sparse_summary)
codebook          encode, check and fit; code_meanings: decode, thresholds
category_warnings drift, columns of ids, dates in text
input_validation  names, infinities, and types of the fit
coded             the coded table
row_digest        a number that tells the rows of a coded table
target            y and the weights as integers (class_codes, weights)
group_keys        labels of groups as keys that do not depend on other labels
"""

from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target

__all__ = ["CodeBook", "CodedMatrix", "Target"]
