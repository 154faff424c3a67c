"""Callbacks, which listen to the fit of a forest or a boosted model, and may stop it.

A callback is called in the thread that has called ``fit``, and hears of the trees in the order of
their numbers, wherever they grow. So what it sees, and the tree at which it stops the fit, does not
depend on threads or workers::

    fit ──▶ on_fit_begin ──▶ on_tree_end(0) ──▶ on_tree_end(1) ──▶ ... ──▶ on_fit_end
                                  │ True
                                  └──▶ trees 0 .. this one are kept

Other trees grow while a callback works; those that are there already when it stops are dropped. On
threads they are few, as growth waits for a callback that is slower.

Of a boosted model callbacks hear iteration by iteration (`Callback.on_iteration_end`): nothing
grows while they work.

A `Bar` counts trees without a fit: those of all models of a cross-validation.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.constraints import Having, IntegerIn, Nothing, checked
from dtrees.core.model.tree import Tree

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

__all__ = ["BoostingFit", "Callback", "ForestFit", "ProgressBar"]

LINES = 10  # of a log, where there is no bar

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class ForestFit:
    """The fit of a forest that callbacks listen to; to be read only.

    Attributes
    ----------
    estimator : object
        The forest. Until `Callback.on_fit_end` it is as it was before the fit.
    numbers : range
        Of the trees that are to be grown. With ``warm_start`` it begins behind the trees that are
        there.
    trees : list of dtrees.core.model.tree.Tree
        The trees so far, with those that were there before.
    oob_scores : list of float
        Out-of-bag scores of the first 1, 2, ... of these trees; empty without ``oob_tol``.
    error : BaseException or None
        What ended the fit, in `Callback.on_fit_end`; None when it went well or was stopped.
    """

    estimator: Any
    numbers: range
    trees: list[Tree]
    make: Callable[[Tree], Any] = field(repr=False)
    oob_scores: list[float] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def n_grown(self) -> int:
        """Number of trees that this fit has added so far."""
        return len(self.trees) - self.numbers.start

    @checked(number=(IntegerIn(0),))
    def tree(self, number: int) -> Any:
        """A tree as a fitted estimator, as ``forest[number]`` gives it; made at every call.

        Raises
        ------
        ValueError
            `number` is negative, or no tree of this number has grown.
        """
        if number >= len(self.trees):
            raise ValueError(
                f"number must be below {len(self.trees)}, the trees so far. Got {number} instead."
            )
        return self.make(self.trees[number])


@dataclass(eq=False)
class BoostingFit:
    """The fit of a boosted model that callbacks listen to; to be read only.

    Attributes
    ----------
    estimator : object
        The model. Until `Callback.on_fit_end` it is as it was before the fit.
    numbers : range
        Of the iterations that are to be grown. With ``warm_start`` it begins behind those that are
        there.
    trees : list of dtrees.core.model.tree.Tree
        The trees so far, iteration by iteration, with those that were there before.
    scores : list of float
        Of the held-out rows after 0, 1, 2, ... iterations (of the training rows with
        ``validation_fraction=None``). Higher is better. Empty without early stopping.
    error : BaseException or None
        What ended the fit, in `Callback.on_fit_end`; None when it went well or was stopped.
    """

    estimator: Any
    numbers: range
    trees: list[Tree]
    n_values: int = field(repr=False, default=1)  # trees of an iteration
    scores: list[float] = field(default_factory=list)
    error: BaseException | None = None
    measure: Callable[[], float] = field(repr=False, default=lambda: math.nan)
    curves: Callable[[], dict[str, dict[str, list[float]]]] = field(repr=False, default=dict)

    @property
    def n_grown(self) -> int:
        """Number of iterations that this fit has added so far."""
        return len(self.trees) // self.n_values - self.numbers.start

    def training_score(self) -> float:
        """Minus the mean loss of the training rows after the last iteration.

        It is computed at every call: O(rows).
        """
        return self.measure()

    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """What the model will have as ``evals_result_``, up to this iteration."""
        return self.curves()


Fit = ForestFit | BoostingFit


class Callback:
    """Base class of what listens to the fit of a forest or a boosted model.

    Give objects of a class of your own to ``fit(X, y, callbacks=[...])``, and define the methods
    that you need. What a method raises ends the fit; the estimator is then as it was before, and
    nothing is left on a cluster.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import RandomForestClassifier
    >>> from dtrees.callbacks import Callback
    >>> class Large(Callback):
    ...     def on_fit_begin(self, fit):
    ...         self.nodes = 0
    ...
    ...     def on_tree_end(self, fit, number):
    ...         self.nodes += fit.tree(number).tree_.node_count
    ...         return self.nodes > 100  # enough
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(100, random_state=0).fit(X, y, callbacks=[Large()])
    >>> forest.n_estimators_ < 100
    True
    """

    def on_fit_begin(self, fit: Any) -> None:
        """Hear that the table is coded and trees will be grown.

        Parameters
        ----------
        fit : ForestFit or BoostingFit
            The same object in all calls of one fit.
        """

    def on_tree_end(self, fit: ForestFit, number: int) -> bool | None:
        """Hear of a tree, in the order of the numbers.

        Parameters
        ----------
        fit : ForestFit
            Its last tree is this one.
        number : int

        Returns
        -------
        bool or None
            True, and nothing else, stops the fit: the trees up to this one are the forest. Every
            callback hears of this tree, whoever stops.
        """
        return None

    def on_iteration_end(self, fit: BoostingFit, number: int) -> bool | None:
        """Hear of an iteration of a boosted model.

        Parameters
        ----------
        fit : BoostingFit
            Its last trees are those of this iteration.
        number : int

        Returns
        -------
        bool or None
            True, and nothing else, stops the fit: the model has the iterations up to this one.
        """
        return None

    def on_fit_end(self, fit: Any) -> None:
        """Hear that the fit is over; always called when `on_fit_begin` has returned.

        The estimator is fitted, or ``fit.error`` says what went wrong. Callbacks are called in
        the reverse of their order here, as ``with`` blocks are left.

        Parameters
        ----------
        fit : ForestFit or BoostingFit
        """


def check_callbacks(callbacks: Any) -> list[Callback]:
    """The callbacks as a list.

    Raises
    ------
    TypeError
        They are no sequence of callbacks.
    """
    rule = "callbacks must be a sequence of dtrees.callbacks.Callback objects or None"
    if not isinstance(callbacks, Sequence):
        raise TypeError(f"{rule}, got {callbacks!r}. Put it in a list.")
    for callback in callbacks:
        if not isinstance(callback, Callback):
            hint = f" Did you mean {callback.__name__}()?" if isinstance(callback, type) else ""
            if type(callback).__module__.partition(".")[0] in ("lightgbm", "xgboost"):
                hint = (
                    " To end a fit early, set n_iter_no_change (boosting) or oob_tol (forests); to "
                    "see it, verbose=1. Curves are in evals_result_."
                )
            raise TypeError(f"{rule}, got {callback!r} in it.{hint}")
    return list(callbacks)


@contextmanager
def listening(fit: Fit, callbacks: Sequence[Callback]) -> Iterator[None]:
    """Tell callbacks that a fit begins, and those that have begun that it ends.

    What has been set on the estimator is taken back where the block fails, or a callback does.
    """
    before = dict(vars(fit.estimator))

    def end(
        callback: Callback,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        fit.error = error
        callback.on_fit_end(fit)

    try:
        with ExitStack() as stack:
            for callback in callbacks:
                callback.on_fit_begin(fit)
                stack.push(partial(end, callback))
            yield
    except BaseException:
        vars(fit.estimator).clear()
        vars(fit.estimator).update(before)
        raise


def told(answers: Sequence[Any]) -> bool:
    """Tell whether one of the answers of callbacks, all of which are asked, stops the fit."""
    return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)


class Bar:
    """A bar of the trees grown, in a terminal or a notebook, or lines of a log without rich.

    A context; nothing is drawn before the first tree is expected.

    Parameters
    ----------
    console : rich.console.Console or None, default=None
        Where to draw. None: the standard error stream, or the notebook.
    transient : bool, default=False
        Whether a bar that has ended is wiped out.
    """

    def __init__(self, console: Console | None = None, *, transient: bool = False) -> None:
        self._console, self._transient = console, transient
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._total = self._grown = 0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end(None if kind is None else "failed")

    def expect(self, n_trees: int) -> None:
        """Make the bar longer by trees that are to come; show it, if it is not there."""
        self._total += n_trees
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=self._total)
        elif self._total == n_trees:
            self._begin()

    def advance(self, n_trees: int = 1, score: str = "") -> None:
        """Draw the bar longer by trees that have come."""
        before, self._grown = self._grown, self._grown + n_trees
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, advance=n_trees, score=score)
        elif self._grown * LINES // self._total > before * LINES // self._total:
            logger.info("%d of %d trees grown %s", self._grown, self._total, score)

    def end(self, word: str | None = None) -> None:
        """Leave the bar as it is; `word` says how it ended, if not well."""
        if self._progress is None or self._task is None:
            return
        if word is not None:
            self._progress.update(self._task, description=word)
        self._progress.stop()
        self._progress = self._task = None

    def _begin(self) -> None:
        if find_spec("rich") is None:
            logger.warning(
                "verbose=1 shows a bar where rich is installed (pip install rich). It is not, so "
                "progress is logged by 'dtrees.callbacks' at level INFO."
            )
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[score]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True) if self._console is None else self._console,
            refresh_per_second=4,
            transient=self._transient,
            redirect_stdout=False,  # what a program prints goes where it has always gone
        )
        self._task = self._progress.add_task("growing trees", total=self._total, score="")
        self._progress.start()


class ProgressBar(Callback):
    """A bar of the trees grown, in a terminal or a notebook; what ``verbose=1`` shows.

    Of a boosted model it counts iterations, and shows the score of the held-out rows.

    Drawn by rich, on the standard error stream. Notebooks need ipywidgets, too. Where rich is not
    installed, ten lines are logged instead (``logging.getLogger("dtrees.callbacks")``, level INFO).

    Parameters
    ----------
    console : rich.console.Console or None, default=None
        Where to draw. None: the standard error stream, or the notebook.
    """

    @checked(console=(Having("print"), Nothing()))
    def __init__(self, console: Console | None = None) -> None:
        self._console = console

    def on_fit_begin(self, fit: Fit) -> None:
        """Show an empty bar."""
        self._bar = Bar(self._console)
        self._bar.expect(len(fit.numbers))

    def on_tree_end(self, fit: ForestFit, number: int) -> None:
        """Draw the bar a tree longer."""
        self._bar.advance(1, f"OOB {fit.oob_scores[-1]:.4f}" if fit.oob_scores else "")

    def on_iteration_end(self, fit: BoostingFit, number: int) -> None:
        """Draw the bar an iteration longer."""
        self._bar.advance(1, f"score {fit.scores[-1]:.4g}" if fit.scores else "")

    def on_fit_end(self, fit: Fit) -> None:
        """Leave the bar as it is."""
        if fit.error is not None:
            self._bar.end("failed")
        else:
            self._bar.end("stopped" if fit.n_grown < len(fit.numbers) else None)
