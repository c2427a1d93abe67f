"""``imgsvc compare-urls``: compare the answers of another server and the service to the same URLs."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TextIO

import click

from imgsvc_cli import exit_codes, printing
from imgsvc_cli.comparing import Answer, Comparison, compare
from imgsvc_cli.options import as_json_option

_HEADING = ["old", "new", "DSSIM", "verdict", "URL"]


def _address(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise click.BadParameter(f"it must begin with http:// or https://, got '{value}'.")
    return value.rstrip("/")


@click.command("compare-urls")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--old", type=_address, required=True, metavar="URL", help="Address of the other server.")
@click.option(
    "--new",
    type=_address,
    required=True,
    metavar="URL",
    help="Address of the service with the dialect, such as https://img.example.org/imgproxy.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 99),
    default=0.1,
    show_default=True,
    help="Largest DSSIM of pictures that count as the same.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="How many URLs are compared at the same time.",
)
@click.option(
    "--accept",
    default="*/*",
    show_default=True,
    metavar="TEXT",
    help="Header Accept of the requests, such as image/avif,image/webp,*/* of browsers.",
)
@as_json_option
def compare_urls(
    file: TextIO, old: str, new: str, threshold: float, jobs: int, accept: str, as_json: bool
) -> int:
    """Compare the answers of another server and of the service to the same URLs.

    FILE has a URL or a path below --old on each line; - is standard input. DSSIM is 0 for equal pictures.

    Example: imgsvc compare-urls urls.txt --old https://old.example.org --new
    https://img.example.org/imgproxy
    """
    paths = [_path(line.strip(), old) for line in file if line.strip() and not line.startswith("#")]
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(partial(compare, old=old, new=new, accept=accept), paths))
    if as_json:
        for item in found:
            printing.echo_json(_document(item, threshold))
    else:
        click.echo(printing.table([_HEADING, *(_row(item, threshold) for item in found)]))
        counts = Counter(item.verdict(threshold) for item in found)
        click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "no URLs")
    return 0 if all(item.verdict(threshold) == "same" for item in found) else exit_codes.SOME_FAILED


def _path(line: str, old: str) -> str:
    path = line.removeprefix(old)
    if not path.startswith("/"):
        raise click.UsageError(f"Each line must be a path, or a URL below {old}, got '{line[:200]}'.")
    return path


def _row(item: Comparison, threshold: float) -> list[str]:
    dssim = "-" if item.dssim is None else f"{item.dssim:.4f}"
    return [_shown(item.old), _shown(item.new), dssim, item.verdict(threshold), item.path]


def _shown(answer: Answer) -> str:
    if answer.document is not None:
        return f"{answer.document.media_type} {printing.size(answer.document.size)}"
    if answer.info is None:
        return (answer.problem or "")[:40]
    info = answer.info
    return f"{info.width}x{info.height} {info.format} {printing.size(info.bytes)}"


def _document(item: Comparison, threshold: float) -> dict[str, Any]:
    return {
        "path": item.path,
        "old": item.old.to_dict(),
        "new": item.new.to_dict(),
        "dssim": None if item.dssim is None else round(item.dssim, 6),
        "verdict": item.verdict(threshold),
    }
