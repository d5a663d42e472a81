"""The model's parameters as options of a command, made from the model's own table.

Nothing about a parameter is said twice: names, ranges, defaults and help come from
`streamclust.parameters`, so the command cannot drift from the constructor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from streamclust.errors import InvalidParameter
from streamclust.parameters import PARAMETERS, Parameter


def reader_of(parameter: Parameter) -> Callable[[Any], object]:
    """What turns the text of an option into the value of `parameter`.

    ``none`` is None where None is accepted. What the table refuses is a usage error.
    """

    def read(value: Any) -> object:
        if isinstance(value, str) and value.lower() == "none" and parameter.optional:
            return None
        try:
            match parameter.kind:
                case "int":
                    value = int(value)
                case "float":
                    value = float(value)
        except ValueError:
            raise click.BadParameter(f"{value!r}: accepted is {parameter.accepted}") from None
        try:
            parameter.check(value)
        except InvalidParameter as error:
            raise click.BadParameter(str(error)) from None
        return value

    return read


class ModelOption(click.Option):
    """An option that sets a parameter of the model."""


class RunCommand(click.Command):
    """A command whose help tells its own options apart from the model's."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write two lists: the options of the run, and the model's parameters."""
        for title, wanted in (("Options", False), ("Model parameters", True)):
            rows = [
                row
                for param in self.get_params(ctx)
                if isinstance(param, click.Option)
                and isinstance(param, ModelOption) is wanted
                and (row := param.get_help_record(ctx)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


def flag_of(parameter: Parameter) -> str:
    """The long option of a parameter."""
    return "--" + parameter.name.replace("_", "-")


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command one option per model parameter."""
    for parameter in reversed(list(PARAMETERS.values())):
        flag = flag_of(parameter)
        if parameter.kind == "bool":
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        command = click.option(
            flag,
            parameter.name,
            cls=ModelOption,
            type=bool if parameter.kind == "bool" else reader_of(parameter),
            default=parameter.default,
            show_default="none" if parameter.default is None else True,
            metavar=_metavar(parameter),
            help=parameter.help,
        )(command)
    return command


def given_parameters(ctx: click.Context) -> dict[str, object]:
    """The model parameters that the user has set, by name."""
    return {
        name: ctx.params[name]
        for name in PARAMETERS
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def _metavar(parameter: Parameter) -> str | None:
    if parameter.kind == "bool":
        return None
    words = list(parameter.options) or [parameter.kind.upper()]
    return "|".join([*words, *(["none"] if parameter.optional else [])])
