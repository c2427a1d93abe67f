"""The commands."""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import imgsvc_core as imgsvc
from imgsvc_cli import INTERRUPTED, exit_codes, printing, standard_streams
from imgsvc_cli.commands import admin, batch, serve
from imgsvc_cli.completion import Place, offering
from imgsvc_cli.flags import Flag, document, request_flags, whole
from imgsvc_cli.json_files import read_json
from imgsvc_core.errors import ImgsvcError, TargetError

if TYPE_CHECKING:
    from imgsvc_cli.stores import Destination

_USAGE = 2


class Sections(click.Command):
    """A command whose help shows its flags operation by operation."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record:
                section = param.section if isinstance(param, Flag) else "Options"
                sections.setdefault(section, []).append(record)
        for section in sorted(sections, key=lambda name: name != "Options"):
            with formatter.section(section):
                formatter.write_dl(sections[section], col_max=28)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExit codes:\n" + exit_codes.exit_code_help(),
)
@click.version_option(imgsvc.__version__, prog_name="imgsvc")
def cli() -> None:
    """Transform pictures: resize, crop, adjust, filter, watermark and convert them."""


def _with_request_flags(command: click.Command) -> click.Command:
    command.params += request_flags()
    return command


_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_SPEC = click.option(
    "--spec",
    type=Place(),
    metavar="FILE",
    help="Request as a JSON file, or - for standard input; flags win.",
)


@_with_request_flags
@cli.command(cls=Sections)
@click.argument("sources", nargs=-1, required=True, type=Place(), metavar="SOURCE...")
@click.option(
    "-o",
    "--output",
    "target",
    type=Place(),
    metavar="TARGET",
    help="File, folder, URL, or - for standard output; its suffix names the format. "
    "By default a file beside the source whose name ends in -out.",
)
@click.option("--force", is_flag=True, help="Replace a file beside the source that exists already.")
@click.option(
    "--store",
    type=Place(),
    metavar="FILE",
    help="Object store that the result goes to instead, as a JSON file; credentials that it leaves out are "
    "taken from IMGSVC_STORE_KEY, IMGSVC_STORE_SECRET and the like.",
)
@_SPEC
@_AS_JSON
def process(
    sources: tuple[str, ...],
    target: str | None,
    force: bool,
    store: str | None,
    spec: str | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Process pictures: files, URLs, or - for standard input.

    Example: imgsvc process photo.heic -o out.webp --resize 800x600 --mode fit
    """
    from imgsvc_cli.jobs import Job, plan_jobs, run_job
    from imgsvc_cli.library_output import quiet
    from imgsvc_cli.progress import progress
    from imgsvc_cli.signals import end_on_overrun, end_on_signals
    from imgsvc_core.libvips import guard
    from imgsvc_core.urls import shown_url

    for setting in (end_on_signals(), quiet()):
        click.get_current_context().with_resource(setting)
    if store is not None and target is not None:
        raise click.UsageError("Give either --store or -o.")
    destination = _destination(store) if store is not None else None
    request = imgsvc.parse(document(flags, None if spec is None else read_json("--spec", spec)))
    jobs: list[Job] = plan_jobs(sources, target, request, force=force, store=destination)
    guard()

    def tell(error: ImgsvcError) -> None:
        if as_json:
            printing.echo_json({"source": job.source, **printing.error_dict(error)})
        else:
            printing.echo_error(error, subject=shown_url(job.source) if len(jobs) > 1 else "")

    def tell_last(error: ImgsvcError) -> None:
        tell(error)
        if left := len(jobs) - index - 1:
            click.echo(f"imgsvc: not processed after this: {left} of {len(jobs)} sources", err=True)

    worst = 0
    with end_on_overrun(tell_last):
        for index, job in enumerate(jobs):
            try:
                with progress(job.label, done=index, total=len(jobs)):
                    done = run_job(job, request)
            except ImgsvcError as error:
                worst = worst or exit_codes.exit_code(error)
                tell(error)
                continue
            if as_json:
                click.echo(json.dumps({"success": True, **done.to_dict()}), err=job.piped)
            else:
                click.echo(job.summary(done), err=job.piped)
    return worst


@cli.command()
@click.argument("sources", nargs=-1, required=True, type=Place(), metavar="SOURCE...")
@click.option("--digest", is_flag=True, help="Compute the SHA-256 of the file too.")
@_AS_JSON
def inspect(sources: tuple[str, ...], digest: bool, as_json: bool) -> int:
    """Show what the headers of pictures say, without decoding them."""
    worst = 0
    for source in sources:
        try:
            info = imgsvc.inspect(_opened(source), digest=digest, name=None if source != "-" else "-")
        except ImgsvcError as error:
            worst = worst or exit_codes.exit_code(error)
            if as_json:
                printing.echo_json({"source": source, **printing.error_dict(error)})
            else:
                printing.echo_error(error, subject=source if len(sources) > 1 else "")
            continue
        facts = info.to_dict()
        if as_json:
            printing.echo_json(facts)
        else:
            rows = [[name, _shown(value)] for name, value in facts.items() if value not in (None, [], "")]
            click.echo(printing.table(rows) + ("\n" if len(sources) > 1 else ""))
    return worst


@_with_request_flags
@cli.command(cls=Sections)
@click.argument("source", required=False, type=Place())
@click.option("--size", metavar="WxH", help="Explain for a picture of a size instead of a file.")
@click.option(
    "--source-format",
    metavar="NAME",
    default="jpg",
    help="Format of that picture. [default jpg]",
    shell_complete=offering(imgsvc.FORMATS),
)
@click.option("--target", metavar="NAME", default="", help="Name of the result, for its suffix.")
@_SPEC
@_AS_JSON
def explain(
    source: str | None,
    size: str | None,
    source_format: str,
    target: str,
    spec: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Show what would be done to a picture, in which order, and what is folded into what."""
    request = imgsvc.parse(document(flags, None if spec is None else read_json("--spec", spec)))
    if (source is None) == (size is None):
        raise click.UsageError("Give either a SOURCE or --size.")
    info = imgsvc.inspect(_opened(source)) if source is not None else _imagined(size or "", source_format)
    plan = imgsvc.explain(request, info, suffix=Path(target).suffix)
    if as_json:
        printing.echo_json(plan.to_dict())
    else:
        click.echo(str(plan))


@cli.command()
@_AS_JSON
def formats(as_json: bool) -> None:
    """List the formats, and what can be read and written here."""
    from imgsvc_core.codecs.availability import read_support, write_support

    rows: list[dict[str, Any]] = []
    for row in imgsvc.FORMATS.values():
        reading, writing = read_support(row.name), write_support(row.name)
        rows.append(
            {
                "name": row.name,
                "title": row.title,
                "suffixes": list(row.suffixes),
                "reads": reading.backend is not None,
                "writes": writing.backend is not None,
                "alpha": row.alpha,
                "animation": row.animation,
                "depth": row.depth,
                "extra": reading.extra or writing.extra,
            }
        )
    if as_json:
        printing.echo_json(rows)
        return
    head = ["format", "", "reads", "writes", "alpha", "animation", "bits", "needs"]
    lines = [
        [
            row["name"],
            row["title"],
            *(_yes(row[fact]) for fact in ("reads", "writes", "alpha", "animation")),
            str(row["depth"]),
            f"imgsvc[{row['extra']}]" if row["extra"] else "",
        ]
        for row in rows
    ]
    click.echo(printing.table([head, *lines]))


@cli.command()
def schema() -> None:
    """Print the JSON Schema of requests."""
    click.echo(json.dumps(imgsvc.request_schema(), indent=2))


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and flags in a shell.

    For bash: imgsvc completion bash > ~/.local/share/bash-completion/completions/imgsvc
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "imgsvc", "_IMGSVC_COMPLETE").source())


cli.add_command(batch.batch)
cli.add_command(serve.serve)
cli.add_command(admin.accounts)
cli.add_command(admin.keys)
cli.add_command(admin.keyfiles)


def run(arguments: Sequence[str]) -> int:
    """The command with these arguments; its exit code."""
    try:
        code = cli.main(args=list(arguments), prog_name="imgsvc", standalone_mode=False)
    except ImgsvcError as error:
        if "--json" in arguments:
            printing.echo_json(printing.error_dict(error))
        else:
            printing.echo_error(error)
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
        sys.stderr.close()  # whoever read our output has gone
        return 0
    except OSError as error:
        if not _is_of_printing(error):
            raise
        return _unprintable(error)
    return code if isinstance(code, int) else 0


def _is_of_printing(error: OSError) -> bool:
    """Whether it was met by what prints words, as errors of sockets and files are not."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__") == click.echo.__module__


def _unprintable(error: OSError) -> int:
    """Tell that standard output takes nothing, and what is left for it nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    failure = TargetError(f"Standard output cannot be written: {os.strerror(error.errno or errno.EIO)}.")
    printing.echo_error(failure)
    return exit_codes.exit_code(failure)


def _opened(source: str) -> Any:
    return standard_streams.read_input() if source == "-" else source


def _destination(name: str) -> Destination:
    from imgsvc_cli.stores import Destination

    return Destination.of(read_json("--store", name), os.environ)


def _imagined(size: str, format: str) -> imgsvc.ImageInfo:
    width, height = map(whole, size.partition("x")[::2])
    if not (width and height):
        raise click.UsageError(f"--size must be a size such as 4000x3000, got '{size}'.")
    if format not in imgsvc.FORMATS:
        raise click.UsageError(f"--source-format must be one of {', '.join(imgsvc.FORMATS)}, got '{format}'.")
    return imgsvc.ImageInfo(format=format, width=width, height=height, colorspace="srgb", bytes=0)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return _yes(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _yes(value: object) -> str:
    return "yes" if value else "no"
