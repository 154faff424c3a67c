"""Errors, and warnings, with a name of their own.

Everything else that goes wrong at the front door is a plain ValueError or TypeError, as in
scikit-learn; the classes here derive from those, so nobody has to know them.
"""


class UnseenCategoryError(ValueError):
    """A category at prediction that was not there at fit, with ``handle_unknown="error"``."""


class StatisticsOverflowError(ValueError, OverflowError):
    """Weights, targets or a table that the integer statistics cannot hold."""


class ModelFileError(ValueError):
    """A model file that is damaged, of a newer version, or none at all."""


class TableTooLargeError(MemoryError):
    """A table whose codes, or a growth from it, do not fit this process or the workers."""


class NotSharedWarning(UserWarning):
    """A search whose candidates are fitted one by one, at many times the price."""


class ClusterError(RuntimeError):
    """A Dask cluster that cannot be used, or does not end the work: whatever the reason.

    Attributes
    ----------
    estimator : object or None
        The fit so far, whose ``resume()`` goes on where it ended, with or without a cluster; None
        where nothing was grown.
    """

    estimator = None


class NoAnswerError(ClusterError):
    """A Dask cluster, or all of its workers, that have not answered in time."""


class WorkerLostError(ClusterError):
    """Workers that die again and again, are all gone or paused, or cannot do what is asked for."""


class SchedulerLostError(ClusterError):
    """A scheduler whose connection is lost for good."""
