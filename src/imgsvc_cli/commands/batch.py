"""``imgsvc batch``: process many pictures at once, and report the results."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
from click.shell_completion import CompletionItem

from imgsvc_cli import exit_codes, printing
from imgsvc_cli.batch_display import display, nothing_found, show_plan, show_summary
from imgsvc_cli.completion import FileOrUrl
from imgsvc_cli.flags import SectionedCommand, request_flags
from imgsvc_cli.json_files import read_json
from imgsvc_cli.options import limits_option, read_spec, spec_option
from imgsvc_cli.requests import merged_document, preset_option
from imgsvc_cli.service_settings import config_option
from imgsvc_core.errors import SourceUnreachable, invalid
from imgsvc_core.sources import is_url

if TYPE_CHECKING:
    from imgsvc_batch import Batch
    from imgsvc_core import Spec

_OPTIONS = ("template", "workers", "cluster", "limits", "force", "overwrite")
_MANIFEST = click.option(
    "--manifest", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="SQLite file that records every outcome. "
    "[default: .imgsvc-batch.sqlite in the target; for a URL, a file here]",
)  # fmt: skip


class _RunByDefault(click.Group):
    """A group that runs ``run`` if the first argument is not the name of a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, and the sources that ``run`` may begin with."""
        sources = [] if incomplete.startswith("-") else [CompletionItem(incomplete, type="file")]
        return sources + super().shell_complete(ctx, incomplete)


@click.group(cls=_RunByDefault)
def batch() -> None:
    """Process folders and buckets full of pictures.

    imgsvc batch SOURCE TARGET --spec spec.json is short for imgsvc batch run.
    """


@partial(request_flags, without={"watermark"})
@batch.command(cls=SectionedCommand)
@click.argument("places", nargs=-1, type=FileOrUrl(), metavar="SOURCE... TARGET")
@click.option(
    "--in-place",
    is_flag=True,
    help="Replace each picture of SOURCE... by its result, with --if-smaller unless --no-if-smaller is "
    "given. There is no TARGET.",
)
@spec_option
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME=FILE",
    help="A named request, which flags override; may be repeated.",
)
@preset_option
@config_option
@click.option(
    "--name", "template", metavar="TEMPLATE", help="Names of results, such as {stem}-{variant}.{format}."
)
@_MANIFEST
@click.option("--workers", type=click.IntRange(1), help="Processes. [default: one for each core]")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler to work at, such as tcp://host:8786.")
@click.option(
    "--watermark",
    "watermarks",
    multiple=True,
    metavar="FILE|ID=FILE",
    help="Picture to lay over results, or one that requests name by an id; may be repeated.",
)
@limits_option
@click.option(
    "--resume",
    is_flag=True,
    help="Continue an interrupted batch: inputs that failed and have not changed are skipped.",
)
@click.option("--retry", is_flag=True, help="Process only inputs that failed.")
@click.option("--force", is_flag=True, help="Process unchanged inputs again.")
@click.option("--overwrite", is_flag=True, help="Replace files in the target that are not from this batch.")
@click.option("--dry-run", is_flag=True, help="Only show what would happen.")
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write an HTML page."
)
@click.option("--quiet", is_flag=True, help="Print failures only.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
def run(
    places: tuple[str, ...],
    in_place: bool,
    spec: str | None,
    variants: tuple[str, ...],
    presets: tuple[str, ...],
    config: Path | None,
    manifest: Path | None,
    report: Path | None,
    watermarks: tuple[str, ...],
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Process every picture of SOURCE... into TARGET: folders, patterns, files or URLs.

    Example: imgsvc batch photos small --resize 300x300 --format webp
    """
    from imgsvc_batch import Batch

    options = {name: given.pop(name) for name in _OPTIONS}
    how = {name: given.pop(name) for name in ("resume", "retry")}
    _silence_libraries(cluster=options["cluster"] is not None)
    sources, target = _places(places, in_place)
    pictures = _watermarks(watermarks, given)
    specs = _specs(spec, variants, presets, config, given, may_be_empty=in_place)
    batch = Batch(
        source=sources,
        target=target,
        in_place=in_place,
        variants=_in_place(specs, presets, given) if in_place else specs,
        watermarks=pictures | _watermark_files(specs, pictures),
        manifest=manifest,
        **options,
    )
    if batch.watermarks:
        from imgsvc_core._runtime.libvips import guard

        guard()  # they are decoded in this process
    if dry_run:
        from imgsvc_batch import preview

        show_plan(preview(batch, **how), as_json)
        return 0
    return _process(batch, sources, report, how, quiet=quiet, as_json=as_json)


def _process(
    batch: Batch,
    sources: tuple[str, ...],
    report: Path | None,
    how: dict[str, bool],
    *,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run a batch, tell what became of it, and return the exit code."""
    from imgsvc_batch import run_batch
    from imgsvc_batch.report import check_report
    from imgsvc_cli.signals import cancel_on_signals
    from imgsvc_core._runtime.forkserver import forking_this_process

    if report is not None:
        check_report(report, batch.target, batch.manifest_path)
    with (
        cancel_on_signals() as interrupts,
        display(as_json, quiet) as (on_event, on_progress),
        forking_this_process(),
    ):
        summary = run_batch(batch, on_event=on_event, on_progress=on_progress, stop=interrupts.stop, **how)
    if as_json or (not quiet and (summary.total or summary.interrupted)):
        show_summary(summary, batch.manifest_path, as_json, batch.in_place)
    if summary.interrupted:
        return 128 + (interrupts.received or signal.SIGINT)
    if report is not None:
        _write_report(batch, report)
    if not summary.total:
        raise SourceUnreachable(nothing_found(sources, summary))
    return exit_codes.SOME_FAILED if summary.has_failures else 0


def _places(places: tuple[str, ...], in_place: bool) -> tuple[tuple[str, ...], str | None]:
    """Return the sources and the target, which is the last place unless results go in place."""
    if not places:
        raise click.UsageError("Missing argument 'SOURCE...'.")
    if in_place:
        return places, None
    if len(places) == 1:
        raise click.UsageError("Missing argument 'TARGET'; with --in-place the results replace SOURCE.")
    return places[:-1], places[-1]


def _in_place(
    documents: Mapping[str, Any], presets: tuple[str, ...], flags: Mapping[str, Any]
) -> dict[str, Spec]:
    """Return the requests of a batch in place."""
    from imgsvc_batch.own_format import keep_smaller
    from imgsvc_core.spec.presets import parse_merged

    specs = {name: parse_merged(document, presets) for name, document in documents.items()}
    if flags["if_smaller"] is not None:
        return specs
    return {name: keep_smaller(spec) for name, spec in specs.items()}


def _write_report(batch: Batch, report: Path) -> None:
    from imgsvc_batch import Manifest, write_report
    from imgsvc_cli.signals import exit_on_signals

    with exit_on_signals(), Manifest(batch.manifest_path, reading=True) as kept:
        write_report(kept, batch.target, report, limits=batch.limits, workers=batch.workers)


@batch.command("report")
@click.argument("target", required=False, type=FileOrUrl())
@_MANIFEST
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write an HTML page.",
)
@click.option("--failures", is_flag=True, help="List every input that failed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(target: str | None, manifest: Path | None, page: Path | None, failures: bool, as_json: bool) -> int:
    """Show the results of a batch: numbers, and the reasons for failures."""
    from imgsvc_batch import Manifest, default_manifest, write_report
    from imgsvc_cli.signals import exit_on_signals

    path = manifest or default_manifest(target or ".")
    if not os.path.exists(path):
        message = f"Manifest '{path}' does not exist: give the target of a batch, or its manifest."
        raise invalid("manifest", message)
    with Manifest(path, reading=True) as kept:
        if page is not None:
            with exit_on_signals():
                write_report(kept, kept.target() or target or ".", page)
        totals, reasons = kept.totals(), kept.reasons()
        if as_json:
            found = {"totals": attrs.asdict(totals), "reasons": [attrs.asdict(item) for item in reasons]}
            if failures:
                found["failures"] = [
                    {"key": key, "error": error, "message": message}
                    for key, error, message in kept.failures()
                ]
            click.echo(json.dumps(found))
            return 0
        click.echo(
            f"{totals.inputs:,} inputs: {totals.done:,} done, {totals.failed:,} failed; "
            f"{printing.size(totals.bytes_in)} became {printing.size(totals.bytes_out)}."
        )
        for reason in reasons:
            some = ", ".join(reason.keys) + (", ..." if reason.count > len(reason.keys) else "")
            printing.echo_line(f"{reason.count:>8,}  {reason.error}: {reason.message}")
            printing.echo_line(f"          {some}")
        if failures:
            for key, error, message in kept.failures():
                printing.echo_line(f"{key}: {error}: {message}")
    return 0


def _silence_libraries(*, cluster: bool) -> None:
    """Keep libraries from logging errors that they also raise. The command reports these itself."""
    from imgsvc_core._runtime.logs import silence

    silence()
    if cluster:
        with contextlib.suppress(ImportError):
            import dask.config

            dask.config.set({"logging": {"distributed": "critical", "distributed.client": "critical"}})


def _specs(
    spec: str | None,
    variants: tuple[str, ...],
    presets: tuple[str, ...],
    config: Path | None,
    flags: Mapping[str, Any],
    *,
    may_be_empty: bool,
) -> dict[str, Any]:
    """Return the requests by the names of variants."""
    named = _named("--variant", variants)
    if spec is not None and named:
        raise click.UsageError("Give either --spec or --variant.")
    is_empty = spec is None and not (named or presets or any(value is not None for value in flags.values()))
    if is_empty and not may_be_empty:
        raise click.UsageError("Say what to do, such as --resize 300x300; or give --spec or --variant.")
    bases: dict[str, dict[str, Any] | None] = {"": read_spec(spec)}
    if named:
        bases = {name: read_json("--variant", file) for name, file in named.items()}
    return {name: merged_document(flags, base, presets, config) for name, base in bases.items()}


def _watermarks(values: tuple[str, ...], flags: dict[str, Any]) -> dict[str, str]:
    """Return the pictures of ``ID=FILE`` by id. A value without an id is the watermark of the request."""
    from imgsvc_cli.jobs import why_no_picture

    files = [value for value in values if "=" not in value or not why_no_picture(value)]
    if len(files) > 1:
        raise click.UsageError(
            f"Option '--watermark' must name one picture, got '{files[0]}' and '{files[1]}'."
        )
    flags["watermark"] = files[0] if files else None
    if files and (fault := why_no_picture(files[0])):
        raise click.UsageError(f"Option '--watermark' must be FILE or ID=FILE, '{files[0]}' {fault}.")
    return _named("--watermark", tuple(value for value in values if value not in files))


def _watermark_files(specs: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, str]:
    """Return the ids of watermarks that are paths or URLs. Each one is its own picture."""
    ids = {spec["watermark"].get("id") for spec in specs.values() if isinstance(spec.get("watermark"), dict)}
    listed = [spec["layers"] for spec in specs.values() if isinstance(spec.get("layers"), list)]
    pictures = [layer.get("picture") for layers in listed for layer in layers if isinstance(layer, dict)]
    ids |= {picture.get("id") for picture in pictures if isinstance(picture, dict)}
    files = (id for id in ids - set(named) if isinstance(id, str))
    return {id: id for id in files if is_url(id) or os.path.isfile(id)}


def _named(option: str, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [item.partition("=") for item in given]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise click.UsageError(f"Option '{option}' must be NAME=FILE, got '{name}{equals}{value}'.")
    names = [name for name, _, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"Option '{option}' must give each name once, got '{twice}' twice.")
    return {name: value for name, _, value in pairs}
