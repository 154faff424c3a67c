"""Training sets as mixes of cells.

Rows are counted once per *cell* (a fold, a bag); the statistics of a training set are a linear
combination of the statistics of the cells:

    plain fit            cells: one                 mix = [[1]]
    k folds + final      cells: the folds           mix = 1 - I, and a row of ones

so one grower serves all of them ([CV] 2.2.2: statistics that are sums subtract). A mix has one
row per *set* (a tree to grow) and one column per cell. What this version grows is the plain mix;
the shapes are those of the general one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Resampling:
    """Which rows, how often, in which training set.

    Attributes
    ----------
    cells : uint16 (n_rows,) or None
        The cell of every row; None when there is a single one.
    mix : int64 (n_sets, n_cells)
        How often a cell counts in a set.
    """

    cells: np.ndarray | None
    mix: np.ndarray

    @property
    def n_sets(self) -> int:
        """Number of trees that are grown."""
        return self.mix.shape[0]

    @property
    def n_cells(self) -> int:
        """Number of cells that rows are counted in."""
        return self.mix.shape[1]

    @property
    def is_plain(self) -> bool:
        """Whether this is one training set that holds every row once."""
        return self.mix.shape == (1, 1) and self.mix[0, 0] == 1

    def sets(self, cell_statistics: np.ndarray) -> np.ndarray:
        """Statistics of the sets from those of the cells.

        Parameters
        ----------
        cell_statistics : int64 (n_cells, ...)

        Returns
        -------
        int64 (n_sets, ...)
        """
        return np.tensordot(self.mix, cell_statistics, axes=1)


def plain() -> Resampling:
    """One training set with every row: the mix ``[[1]]``."""
    return Resampling(cells=None, mix=np.ones((1, 1), dtype=np.int64))
