"""The `imgsvc` command: its subcommands, and the exit code of a run."""

from __future__ import annotations

import errno
import os
import signal
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

import imgsvc_core as imgsvc
from imgsvc_cli import INTERRUPTED, exit_codes, printing
from imgsvc_core.errors import ImgsvcError, MachineFailed, TargetError, machine_failure

_USAGE = 2
_COMMANDS = (
    "accounts", "batch", "cache", "compare", "compare-urls", "completion", "db", "docs", "explain", "formats",
    "inspect", "keyfiles", "keys", "playground", "presets", "process", "schema", "serve", "signing-keys",
    "url", "webhooks",
)  # fmt: skip
"""The subcommands; each is in a module of its name."""


class _Commands(click.Group):
    """A group that imports a subcommand when it is asked for, and ends when nobody reads its output."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return 128 + signal.SIGPIPE

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"imgsvc_cli.commands.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches  # few names are wrong

            alike = get_close_matches(name, _COMMANDS, 1)
            meant = f"did you mean '{alike[0]}'?" if alike else f"expected one of {', '.join(_COMMANDS)}."
            raise click.UsageError(f"There is no command '{name}': {meant}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExit codes:\n" + exit_codes.exit_code_help(),
)
@click.version_option(imgsvc.__version__, prog_name="imgsvc")
def cli() -> None:
    """Transform pictures: resize, crop, adjust, filter, watermark and convert them."""


def run(arguments: Sequence[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    try:
        code = cli.main(args=list(arguments), prog_name="imgsvc", standalone_mode=False)
    except ImgsvcError as error:
        printing.echo_error(error, as_json="--json" in arguments)
        return exit_codes.exit_code(error)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        printing.echo_usage(error)
        return _USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("imgsvc: interrupted", err=True)
        return INTERRUPTED
    except OSError as error:
        if _is_from_printing(error):
            return _report_unwritable_output(error)
        lost = MachineFailed("The current folder no longer exists: change to another one.")
        failure = machine_failure(error.errno) if _is_in_folder() else lost
        if failure is None:
            raise
        printing.echo_error(failure, as_json="--json" in arguments)
        return exit_codes.exit_code(failure)
    return code if isinstance(code, int) else 0


def _is_in_folder() -> bool:
    """Return False if the current folder was deleted: relative paths mean nothing then."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _is_from_printing(error: OSError) -> bool:
    """Return True if printing failed, rather than a socket or file of the command's work."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__") == click.echo.__module__


def _report_unwritable_output(error: OSError) -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still buffered
    failure = TargetError(f"Standard output cannot be written: {os.strerror(error.errno or errno.EIO)}.")
    printing.echo_error(failure)
    return exit_codes.exit_code(failure)
