"""Command-line flags for every option of a request, generated from the declarations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import click

from imgsvc_cli.completion import FileOrUrl, offering
from imgsvc_cli.json_files import read_json
from imgsvc_core.spec import Resize
from imgsvc_core.spec.declaring import Boolean, Choice, Param, Words, doc, params
from imgsvc_core.spec.options import (
    LISTS_AS_JSON,
    OPTIONS,
    PARAMETER_OPTIONS,
    SHORTHANDS,
    ParameterOption,
    Shorthand,
    base64_of,
    request_of,
)

_MAX_METAVAR = 40
_OF_LISTS = {
    "redact": "Make what this JSON file lists unreadable.",
    "layers": "Lay what this JSON file lists over it.",
}
_OF_RESIZE = "--resize-"
_NEAR = 0.85  # of difflib: a letter of a short name is wrong, or two are exchanged


class Flag(click.Option):
    """An option that belongs to a section of the help."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help shows its flags operation by operation."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments. For an unknown flag that is near a parameter of resize, suggest that flag."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise _suggesting(error, {flag for param in self.params for flag in param.opts}) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options that are not flags first, then a section for each operation."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                section = param.section if isinstance(param, Flag) else "Options"
                sections.setdefault(section, []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records, col_max=28)


def _suggesting(error: click.NoSuchOption, flags: Collection[str]) -> click.NoSuchOption:
    """Return an error that suggests the flag of resize unless another is near: `--width` means it."""
    from difflib import get_close_matches

    name = error.option_name
    own = [flag for flag in flags if flag.startswith(_OF_RESIZE)]
    near = get_close_matches(_OF_RESIZE + name.lstrip("-"), own, 1, _NEAR)
    if not near or get_close_matches(name, flags, 1, _NEAR):
        return error
    return click.NoSuchOption(name, f"{error.message} Did you mean '{near[0]}'?", ctx=error.ctx)


def request_flags(
    command: click.Command, *, watermark_files: bool = True, without: Collection[str] = ()
) -> click.Command:
    """Give a command the shorthands, and a flag for every parameter, in the order of application.

    With ``watermark_files`` the id of a watermark is the path of a file. Shorthands that are in ``without``
    are left to the command.
    """
    for option in SHORTHANDS.values():
        if option.name not in without:
            is_file = option.name in LISTS_AS_JSON or (watermark_files and option.name == "watermark")
            command.params.append(_shorthand(option, is_file=is_file))
    command.params += map(_of_parameter, PARAMETER_OPTIONS.values())
    return command


def request_document(flags: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the request of some flags, merged into the request of a file.

    Raises:
        SpecError: a shorthand cannot be read.
    """
    found = {name: flags.get(name.replace("-", "_")) for name in OPTIONS}
    given = {name: value for name, value in found.items() if value is not None}
    return request_of(given, base, prefix="--")


def parameter_flag(name: str, param: Param, section: str) -> Flag:
    """Return the flag of a declared parameter."""
    if isinstance(param.kind, Boolean):
        return Flag([f"--{name}/--no-{name}"], default=None, help=param.doc, section=section)
    words = param.kind.options if isinstance(param.kind, Choice) else ()
    facts = [] if words else [param.kind.expectation]
    if isinstance(param.kind, Words):
        facts = [", ".join(param.kind.options)]
    if param.unit:
        facts.append(param.unit)
    if not param.required and param.default not in (None, ()):
        facts.append(f"default {param.kind.unparse(param.default)}")
    metavar = "|".join(words) or ("WORD,..." if isinstance(param.kind, Words) else "VALUE")
    return Flag(
        [f"--{name}"],
        metavar=metavar if len(metavar) < _MAX_METAVAR else "WORD",
        help=f"{param.doc} [{'; '.join(facts)}]" if facts else param.doc,
        section=section,
        shell_complete=offering(words) if words else None,
    )


def _of_parameter(option: ParameterOption) -> Flag:
    section = f"{option.operation.title}: {doc(option.operation).rstrip('.')}"
    return parameter_flag(option.name, option.param, section)


def _list_in(_context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Return the list of operations of a file as the value of its option."""
    return None if name is None else base64_of(read_json(f"--{option.name}", name, list))


def _shorthand(option: Shorthand, *, is_file: bool) -> Flag:
    kind = params(Resize)["gravity"].kind if option.name == "gravity" else None
    offered = kind.options if isinstance(kind, Choice) else filter(str.islower, option.metavar.split("|"))
    return Flag(
        [f"--{option.name}"],
        metavar="FILE" if is_file else option.metavar,
        help=_OF_LISTS.get(option.name, option.doc),
        section="Shorthands",
        callback=_list_in if option.name in LISTS_AS_JSON else None,
        type=FileOrUrl() if is_file else None,
        shell_complete=None if is_file else offering(offered),
    )
