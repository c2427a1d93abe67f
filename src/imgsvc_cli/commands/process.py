"""``imgsvc process``: apply a request to some pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import imgsvc_core as imgsvc
from imgsvc_cli import exit_codes, printing
from imgsvc_cli.completion import FileOrUrl
from imgsvc_cli.flags import SectionedCommand, request_flags
from imgsvc_cli.json_files import read_json
from imgsvc_cli.options import as_json_option, limits_option, spec_option
from imgsvc_cli.requests import preset_option, read_request
from imgsvc_cli.service_settings import config_option
from imgsvc_core.errors import ImgsvcError

if TYPE_CHECKING:
    from imgsvc_cli.jobs import Job
    from imgsvc_cli.stores import StoreTarget


@request_flags
@click.command(cls=SectionedCommand)
@click.argument("sources", nargs=-1, required=True, type=FileOrUrl(), metavar="SOURCE...")
@click.option(
    "-o",
    "--output",
    "target",
    type=FileOrUrl(),
    metavar="TARGET",
    help="File, folder, URL, or - for standard output; its suffix names the format. "
    "By default a file beside the source whose name ends in -out.",
)
@click.option("--force", is_flag=True, help="Replace the source itself, or a file beside it.")
@click.option(
    "--in-place",
    is_flag=True,
    help="Replace each source by its result, with --if-smaller unless --no-if-smaller is given.",
)
@click.option(
    "--store",
    type=FileOrUrl(),
    metavar="FILE",
    help="Object store that the result goes to instead, as a JSON file; credentials that it leaves out are "
    "taken from IMGSVC_STORE_KEY, IMGSVC_STORE_SECRET and the like.",
)
@click.option(
    "--store-endpoint",
    "endpoints",
    multiple=True,
    metavar="NAME=URL",
    help="Address that replaces a provider's, such as aws=https://minio.example.org; can be repeated.",
)
@spec_option
@preset_option
@config_option
@limits_option
@as_json_option
def process(
    sources: tuple[str, ...],
    target: str | None,
    force: bool,
    in_place: bool,
    store: str | None,
    endpoints: tuple[str, ...],
    spec: str | None,
    presets: tuple[str, ...],
    config: Path | None,
    limits: imgsvc.Limits,
    as_json: bool,
    **flags: Any,
) -> int:
    """Process files, URLs, or - for standard input.

    Example: imgsvc process photo.heic -o out.webp --resize 800x600 --mode fit
    """
    from imgsvc_cli.jobs import plan_jobs, watermark_place
    from imgsvc_cli.library_output import library_output_hidden
    from imgsvc_cli.signals import exit_on_signals
    from imgsvc_core._runtime.libvips import guard

    for setting in (exit_on_signals(), library_output_hidden()):
        click.get_current_context().with_resource(setting)
    if store is not None and target is not None:
        raise click.UsageError("Give either --store or -o.")
    store_target = None if store is None else _store_target(store, endpoints)
    if in_place and (store is not None or target is not None):
        raise click.UsageError(f"Give either --in-place or {'--store' if target is None else '-o'}.")
    request = read_request(flags, spec, presets, config)
    if in_place and flags["if_smaller"] is None:
        from imgsvc_batch.own_format import keep_smaller

        request = keep_smaller(request)
    for id in request.pictures:
        watermark_place(id, request.path_of_picture(id))
    jobs = plan_jobs(sources, target, request, force=force, in_place=in_place, store=store_target)
    guard()
    return _run_jobs(jobs, request, limits, as_json=as_json)


def _run_jobs(jobs: list[Job], request: imgsvc.Spec, limits: imgsvc.Limits, *, as_json: bool) -> int:
    """Run jobs one after the other, and return the exit code of the first that failed."""
    from imgsvc_cli.jobs import run_job
    from imgsvc_cli.progress import progress
    from imgsvc_core.sources import shown_url

    def report(error: ImgsvcError) -> None:
        name = shown_url(job.source) if as_json else job.shown
        is_named = any(name.lower() in line.lower() for line in printing.error_lines(error))
        subject = name if as_json or len(jobs) > 1 or not is_named else ""
        printing.echo_error(error, subject=subject, as_json=as_json)

    code = 0
    for index, job in enumerate(jobs):
        try:
            with progress(job.label, done=index, total=len(jobs)):
                done = run_job(job, request, limits)
        except ImgsvcError as error:
            code = code or exit_codes.exit_code(error)
            report(error)
            continue
        if as_json:
            import json

            told = json.dumps({"success": True, **done.to_dict()})
        else:
            told = printing.line(job.summary(done))
        click.echo(told, err=job.piped)
        if not as_json:
            for note in (*done.result.notes, *done.notes):
                printing.echo_line(f"{job.label}: {note}", err=True)
    return code


def _store_target(name: str, endpoints: tuple[str, ...]) -> StoreTarget:
    from imgsvc_cli.stores import StoreTarget

    return StoreTarget.of(read_json("--store", name), os.environ, endpoints)
