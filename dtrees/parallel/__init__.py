"""Where work runs: the only floor that imports Dask.

Everything below takes a `Runner` (`dtrees.typing`) as an argument and does not know what carries
its tasks.
"""

from dtrees.parallel.client import REGIMES
from dtrees.parallel.local import LocalRunner, effective_n_jobs, threaded
from dtrees.parallel.regimes import grow_trees

__all__ = ["REGIMES", "LocalRunner", "effective_n_jobs", "grow_trees", "threaded"]
