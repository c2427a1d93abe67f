"""``imgsvc url``: URLs of pictures for pages."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import click

import imgsvc_core as imgsvc
from imgsvc_cli.flags import SectionedCommand, parameter_flag, request_document, request_flags
from imgsvc_cli.options import read_spec, spec_option
from imgsvc_cli.source_info import read_info
from imgsvc_core.spec.options import digits
from imgsvc_urls import Delivery, Signer

_SECRET = "IMGSVC_SIGNING_SECRET"
_FORMATS = [name for name, format in imgsvc.FORMATS.items() if format.writable]


def _delivery_flags(command: click.Command) -> click.Command:
    command.params += [
        parameter_flag(name, param, "Delivery") for name, param in imgsvc.params(Delivery).items()
    ]
    return command


def _list_of(
    read: Callable[[str], Any], example: str
) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the callback of a flag whose value is a list, separated by commas."""

    def parse(_context: click.Context, flag: click.Parameter, text: str | None) -> list[Any] | None:
        if text is None:
            return None
        try:
            return [read(item) for item in text.split(",")]
        except ValueError:
            raise click.UsageError(
                f"{flag.opts[0]} must be a list such as {example}, got '{text}'."
            ) from None

    return parse


def _width(text: str) -> int:
    width = digits(text)
    if width is None:
        raise ValueError(text)
    return width


@_delivery_flags
@partial(request_flags, watermark_files=False)
@click.command(cls=SectionedCommand)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--base", metavar="URL", default="", help="Address of the service; without it, paths are printed."
)
@click.option(
    "--key",
    metavar="ID",
    help=f"Id of the signing key, whose secret is in the environment variable {_SECRET}; "
    "without it, URLs are unsigned.",
)
@click.option(
    "--preset", "presets", multiple=True, metavar="NAME", help="Preset to begin with; may be repeated."
)
@click.option("--info", "as_info", is_flag=True, help="Print the URL of the picture's facts.")
@click.option("--srcset", "as_srcset", is_flag=True, help="Print the value of srcset for several widths.")
@click.option("--picture", "alt", metavar="ALT", help="Print a <picture> element with this text for its alt.")
@click.option(
    "--widths",
    metavar="LIST",
    callback=_list_of(_width, "320,640"),
    help="Widths for --srcset and --picture. [default 320,640,1280]",
)
@click.option(
    "--densities",
    metavar="LIST",
    callback=_list_of(float, "1,2"),
    help="Pixel densities for --srcset and --picture, instead of widths.",
)
@click.option("--sizes", metavar="TEXT", help="How wide --picture is on the page. [default 100vw]")
@click.option(
    "--formats",
    metavar="LIST",
    callback=_list_of(str, "avif,webp,jpg"),
    help="Formats for --picture, in place of --format, the preferred one first, of "
    f"{', '.join(_FORMATS)}. For animations, give webp,gif. [default avif,webp,jpg]",
)
@click.option("--base64", "in_base64", is_flag=True, help="Write URLs of sources in base64url.")
@spec_option
def url(
    sources: tuple[str, ...],
    base: str,
    key: str | None,
    presets: tuple[str, ...],
    as_info: bool,
    as_srcset: bool,
    alt: str | None,
    widths: list[int] | None,
    densities: list[float] | None,
    sizes: str | None,
    formats: list[str] | None,
    in_base64: bool,
    spec: str | None,
    **flags: Any,
) -> None:
    """Print URLs at which the service answers processed pictures.

    A SOURCE is a URL, or the name of an origin and a path below it, such as photos/shoe.jpg. For --srcset and
    --picture its size is read, if it is a URL or the settings have its origin.

    Example: imgsvc url photos/shoe.jpg --base https://img.example.org --resize 800x600
    """
    if as_info + as_srcset + (alt is not None) > 1:
        raise click.UsageError("Give one of --info, --srcset and --picture.")
    if widths is not None and densities is not None:
        raise click.UsageError("Give either --widths or --densities.")
    several = {"widths": widths, "densities": densities}
    of_picture = {"sizes": sizes, "formats": formats}
    unused = {} if alt is not None else of_picture if as_srcset else {**several, **of_picture}
    for name, value in unused.items():
        if value is not None:
            needed = "--picture" if name in of_picture else "--srcset or --picture"
            raise click.UsageError(f"--{name} needs {needed}.")
    signer = Signer(base, key, _secret(key), in_base64)
    request = request_document(flags, read_spec(spec))
    delivery = {name: flags[name] for name in imgsvc.params(Delivery)}
    one: Callable[..., str] = signer.info if as_info else signer.url
    write = _writer(signer, as_srcset, alt, {**several, **of_picture}) or one
    for source in sources:
        info = {} if write is one else {"info": read_info(source)}
        click.echo(write(source, request, preset=presets, **delivery, **info))


def _writer(
    signer: Signer, as_srcset: bool, alt: str | None, arguments: dict[str, Any]
) -> Callable[..., str] | None:
    """Return what makes several URLs for a source, if several are asked for."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if alt is not None:
        return partial(signer.picture, alt=alt, **given)
    return partial(signer.srcset, **given) if as_srcset else None


def _secret(key: str | None) -> str | None:
    if key is None:
        return None
    secret = os.environ.get(_SECRET, "").rstrip("\r\n")
    if not secret:
        raise click.UsageError(f"--key needs the secret of the key in the environment variable {_SECRET}.")
    return secret
