"""Facts of sources that URLs of pictures name, where this machine can read them."""

from __future__ import annotations

from urllib.parse import quote

import imgsvc_core as imgsvc
from imgsvc_cli import printing
from imgsvc_cli.service_settings import load_settings
from imgsvc_core.errors import ImgsvcError, MissingDependency
from imgsvc_core.sources import open_filesystem, reason_of, shown_url
from imgsvc_urls import OriginSource, UrlSource, source_of

_LIMITS = imgsvc.Limits(seconds=10)


def read_info(source: str) -> imgsvc.ImageInfo | None:
    """Return the facts of a source, or None if they are not known: no URL, nor in a known origin.

    If it cannot be read, tell so on standard error.

    Raises:
        SpecError: it is no source.
    """
    named = source_of(source)
    try:
        return _inspected(named)
    except ImgsvcError as error:
        printing.echo_line(
            f"{shown_url(source)} cannot be read, so its size is not known: {error.message}", err=True
        )
        return None


def _inspected(source: UrlSource | OriginSource) -> imgsvc.ImageInfo | None:
    if isinstance(source, UrlSource):
        return imgsvc.inspect(source.url, limits=_LIMITS) if "://" in source.url else None
    try:
        origin = load_settings().delivery.origins.get(source.origin)
    except MissingDependency:
        return None
    if origin is None:
        return None
    if origin.is_web:
        url, mark, query = origin.url.partition("?")
        return imgsvc.inspect(f"{url.rstrip('/')}/{quote(source.path)}{mark}{query}", limits=_LIMITS)
    try:
        files, folder = open_filesystem(origin.url, **origin.options)
        with files.open(f"{folder.rstrip('/')}/{source.path}") as file:
            return imgsvc.inspect(file, limits=_LIMITS)
    except ImgsvcError:
        raise
    except Exception as error:  # of the packages of stores, which have no base class in common
        raise imgsvc.SourceUnreachable(f"{reason_of(error, origin.url)}.") from error
