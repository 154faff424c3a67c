"""From a file to a problem: a table, its target, and what the target asks for.

files     CSV and Parquet to a DataFrame
problem   columns and target of a DataFrame; classification or regression
"""

from dtrees.io.files import read_table
from dtrees.io.problem import Problem, problem_of

__all__ = ["Problem", "problem_of", "read_table"]


def __dir__() -> list[str]:
    return sorted(__all__)
