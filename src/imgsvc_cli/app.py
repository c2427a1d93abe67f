"""The `imgsvc` command: its subcommands, and the exit code of a run."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence

import click

import imgsvc_core as imgsvc
from imgsvc_cli import INTERRUPTED, exit_codes, printing
from imgsvc_cli.commands.accounts import accounts
from imgsvc_cli.commands.batch import batch
from imgsvc_cli.commands.cache import cache
from imgsvc_cli.commands.compare_urls import compare_urls
from imgsvc_cli.commands.completion import completion
from imgsvc_cli.commands.db import db
from imgsvc_cli.commands.docs import docs
from imgsvc_cli.commands.explain import explain
from imgsvc_cli.commands.formats import formats, schema
from imgsvc_cli.commands.inspect import inspect
from imgsvc_cli.commands.keyfiles import keyfiles
from imgsvc_cli.commands.keys import keys
from imgsvc_cli.commands.playground import playground
from imgsvc_cli.commands.presets import presets
from imgsvc_cli.commands.process import process
from imgsvc_cli.commands.serve import serve
from imgsvc_cli.commands.signing_keys import signing_keys
from imgsvc_cli.commands.url import url
from imgsvc_cli.commands.webhooks import webhooks
from imgsvc_core.errors import ImgsvcError, TargetError

_USAGE = 2


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExit codes:\n" + exit_codes.exit_code_help(),
)
@click.version_option(imgsvc.__version__, prog_name="imgsvc")
def cli() -> None:
    """Transform pictures: resize, crop, adjust, filter, watermark and convert them."""


for _command in (
    process, inspect, explain, formats, schema, batch, url, compare_urls, serve, playground, db, accounts,
    keys, signing_keys, presets, keyfiles, webhooks, cache, completion, docs,
):  # fmt: skip
    cli.add_command(_command)


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
        error.show()
        return _USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("imgsvc: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output is gone
        return 0
    except OSError as error:
        if not _is_from_printing(error):
            raise
        return _report_unwritable_output(error)
    return code if isinstance(code, int) else 0


def _is_from_printing(error: OSError) -> bool:
    """Return True if printing failed, rather than a socket or file of the command's work."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__") == click.echo.__module__


def _report_unwritable_output(error: OSError) -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still buffered
    failure = TargetError(f"Standard output cannot be written: {os.strerror(error.errno or errno.EIO)}.")
    printing.echo_error(failure)
    return exit_codes.exit_code(failure)
