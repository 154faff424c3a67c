"""Where work runs: the only floor that imports Dask.

Everything below takes a `Runner` (`dtrees.typing`) as an argument and does not know what carries
its tasks.
"""

from dtrees.parallel.local import LocalRunner, effective_n_jobs, threaded

__all__ = ["LocalRunner", "effective_n_jobs", "threaded"]
