"""A loss of the user's own, as boosting sees it: what its methods return is judged.

What such a loss has to do stands in `dtrees.losses.Loss`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dtrees.core.losses._sums import mean_in_any_order
from dtrees.core.losses.losses import shares_of_classes

NAME = "given"


@dataclass(frozen=True)
class OwnLoss:
    """A loss that has methods instead of a name.

    Parameters
    ----------
    own : dtrees.losses.Loss
        Equal ones are of one class.
    largest_gradient, largest_hessian : float
        Of all rows, before an iteration.
    """

    own: Any = field(compare=False)
    largest_gradient: float = field(default=0.0, compare=False)
    largest_hessian: float = field(default=0.0, compare=False)
    kind_of_own: type = field(init=False)
    level: None = None
    beyond: None = None
    largest_step: float = field(default=math.inf, init=False, compare=False)
    kind: int = field(init=False)

    def __post_init__(self) -> None:
        from dtrees.core.losses._derivatives import KINDS

        object.__setattr__(self, "kind_of_own", type(self.own))
        object.__setattr__(self, "kind", KINDS[NAME])

    @property
    def name(self) -> str:
        """Of its class."""
        return type(self.own).__name__

    def check(self, y: np.ndarray) -> None:
        """Let the loss refuse targets."""
        self.own.check_target(_read_only(y))

    def initial(self, y: np.ndarray, weight: np.ndarray | None, n_values: int) -> np.ndarray:
        """Raw predictions that a model begins with, float64 (n_values,)."""
        found = np.asarray(self.own.initial(_read_only(y), weight), dtype=np.float64)
        if found.shape not in ((), (n_values,)) or not np.isfinite(found).all():
            raise ValueError(
                f"{self.name}.initial must return a finite number"
                + (f", or {n_values} of them" if n_values > 1 else "")
                + f". Got {found!r}."
            )
        return np.broadcast_to(found, (n_values,)).copy()

    def with_width(self, y: np.ndarray, raw: Any, weight: np.ndarray | None) -> OwnLoss:
        """Itself."""
        return self

    def derivatives(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians, both float64 (n_values, n_rows), as `raw`."""
        asked = _as_asked(raw.T)
        found = self.own.gradient_and_hessian(_read_only(y), asked)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ValueError(
                f"{self.name}.gradient_and_hessian must return two arrays, gradients and hessians. "
                f"Got {type(found).__name__}."
            )
        gradient, hessian = (
            self._checked(part, asked.shape, what)
            for part, what in zip(found, ("gradients", "hessians"), strict=True)
        )
        if hessian.min() < 0:
            raise ValueError(
                f"{self.name}.gradient_and_hessian must return hessians that are not negative. "
                f"The least is {hessian.min():g}."
            )
        rows_first = (len(y), len(raw))
        return (
            np.ascontiguousarray(gradient.reshape(rows_first).T),
            np.ascontiguousarray(hessian.reshape(rows_first).T),
        )

    def _checked(self, part: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
        found = np.asarray(part)
        if found.shape != shape or found.dtype.kind not in "fiu":
            raise ValueError(
                f"{self.name} must return {what} as numbers of shape {shape}. "
                f"Got {found.dtype} of shape {found.shape}."
            )
        if not np.isfinite(found).all():
            raise ValueError(
                f"{self.name} must return finite {what}. "
                f"{int((~np.isfinite(found)).sum())} of them are NaN or infinite."
            )
        return found.astype(np.float64)

    def measured(self, gradient: np.ndarray, hessian: np.ndarray, weight: float) -> OwnLoss:
        """The same loss, with the largest derivatives; ValueError where weights overflow them."""
        largest = float(np.abs(gradient).max()), float(hessian.max())
        if not math.isfinite(max(largest) * weight):
            raise ValueError(f"Derivatives of {self.name} times the weights are infinite.")
        return replace(self, largest_gradient=largest[0], largest_hessian=largest[1])

    def step(self, residuals: np.ndarray, weight: np.ndarray | None) -> float:
        """It has no steps but Newton's."""
        raise NotImplementedError

    def mean(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> float:
        """The mean loss of rows; see `dtrees.core.losses.losses.Loss.mean`."""
        values = self._checked(self.own.of_rows(_read_only(y), _as_asked(raw)), y.shape, "losses")
        return float(mean_in_any_order(values, weight))

    def means(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The mean losses of several raw predictions of the same rows, as of `Loss.means`."""
        return np.array([self.mean(y, one.T, weight) for one in raw])

    def predictions(self, raw: np.ndarray) -> np.ndarray:
        """Numbers of raw predictions, both float64 (n_rows,)."""
        found = self.own.inverse_link(_read_only(raw))
        return self._checked(raw if found is None else found, raw.shape, "predictions")

    def shares(self, raw: np.ndarray) -> np.ndarray:
        """Shares of classes; see `dtrees.core.losses.losses.shares_of_classes`."""
        asked = _as_asked(raw)
        found = self.own.inverse_link(asked)
        if found is None:
            return shares_of_classes(raw)
        shares = self._checked(found, asked.shape, "shares")
        return np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares


def _read_only(values: np.ndarray) -> np.ndarray:
    view = values.view()
    view.flags.writeable = False
    return view


def _as_asked(raw: np.ndarray) -> np.ndarray:
    """Raw predictions (n_rows, n_values) as users get them: one value is no column."""
    return _read_only(np.ascontiguousarray(raw[:, 0] if raw.shape[1] == 1 else raw))
