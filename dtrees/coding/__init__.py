"""Raw tables to codes and back.

tables      the front door: any table in memory as typed columns
ordered     numbers to codes, dense and sparse
summaries   what a codebook knows of a column, mergeable
codebook    what every code means: encode, decode, thresholds
coded       the coded table
target      y and the weights as integers
"""

from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target

__all__ = ["CodeBook", "CodedMatrix", "Target"]
