"""A command as it was given, and the one that may come next or was meant: words for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import Any

import click
from click.core import ParameterSource

from dtrees.cli.models import PARAMETER_OF, option_of

START = ("python", "-m", "dtrees")
TUNING = ("--tune", "--tune-simplest")
OF_CV_ALONE = (
    *("folds", "hash_folds", "scoring", "tune", "tune_simplest", "tune_nested", "pruning_table"),
    *("report", "force", "as_json"),
)


def cv_command(context: click.Context) -> str:
    """The command that was given."""
    return shlex.join([*START, "cv", *words_of(context)])


def fit_command(context: click.Context, parameters: Mapping[str, Any]) -> str:
    """The command `fit` for the same model, but for some parameters."""
    names = {PARAMETER_OF[name]: name for name in PARAMETER_OF if PARAMETER_OF[name] in parameters}
    words = words_of(context, without={*OF_CV_ALONE, *names.values()})
    for parameter, value in parameters.items():
        option = option_of(names[parameter])
        words += [option.replace("--", "--no-")] if value is False else [option, repr(value)]
    return shlex.join([*START, "fit", *words, "--out", "MODEL"])


def words_of(context: click.Context, without: Collection[str] = ()) -> list[str]:
    """Arguments and options that were given, but for some."""
    words: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        is_given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if not is_given or name in without:
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            words += map(str, value) if parameter.nargs == -1 else [str(value)]
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for one in value if isinstance(value, tuple) else [value]:
                words += [parameter.opts[0], str(one)]
    return words


class Commands(click.Group):
    """Commands that say of an option whose it is."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is named."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            told = None if error.ctx is None else self.told(error.option_name, error.ctx)
            if told is None:
                raise
            raise click.UsageError(told, error.ctx) from error

    def told(self, option: str, context: click.Context) -> str | None:
        """Words on which other commands have an option; None: no one has it."""
        takers = [
            name
            for name, command in self.commands.items()
            if any(option in (*each.opts, *each.secondary_opts) for each in command.params)
        ]
        if not takers:
            return None
        what = f"{context.info_name} has no {option}, only {' and '.join(takers)}."
        if option in TUNING and context.info_name == "fit":
            what += f" The last line of cv {option} is the command fit that saves its choice."
        return what


def stray_hint(word: str) -> str:
    """A hint where a word stands alone that belongs to an option; empty: to none."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    meant = []
    for parameter in context.command.params:
        given = context.params.get(str(parameter.name))
        if not (isinstance(parameter, click.Option) and isinstance(given, tuple) and given):
            continue
        option, last = parameter.opts[0], str(given[-1])
        takes_many = "," in (parameter.metavar or "")
        meant.append([option, f"{last},{word}"] if takes_many else [option, last, option, word])
    if not meant:
        return ""
    return f". An option takes one word: write {' or '.join(map(shlex.join, meant))}"
