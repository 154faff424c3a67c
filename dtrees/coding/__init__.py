"""Raw tables to codes and back.

tables      the front door: any table in memory as typed columns
sparse_places  damaged sparse matrices are refused before anybody converts them
times       dates and time spans of any type as numbers
labels      columns that are not numbers by their type
kinds       which columns are ordered, categorical or hybrid
ordered     numbers to codes, dense and sparse
sampling    which rows cuts are read from
summaries   what a codebook knows of a column, mergeable
codebook    what every code means: encode, decode, thresholds
advice      what a user should hear of a column: it drifted, it is an id
admission   what a table has to meet: names, no infinities
coded       the coded table
row_digest  a number that tells the rows of a coded table
target      y and the weights as integers
weights     weights of rows and of classes in fixed point
group_keys  labels of groups as keys that do not depend on other labels
"""

from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target

__all__ = ["CodeBook", "CodedMatrix", "Target"]
