"""Writes URLs of pictures, and the HTML that shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from urllib.parse import quote

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import invalid
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from imgsvc_core.spec.density import at_density, at_width, with_upscale
from imgsvc_core.spec.merging import Document
from imgsvc_core.spec.options import options_of, request_of, text_of
from imgsvc_core.spec.parsing import unparse_operation
from imgsvc_core.spec.presets import PRESET
from imgsvc_core.spec.request import Request, Spec, parse_partial, unparse
from imgsvc_core.spec.request import parse as parse_request
from imgsvc_urls.candidates import size_of, within
from imgsvc_urls.delivery import Delivery
from imgsvc_urls.parsing import read_options
from imgsvc_urls.signatures import KEY_ID, UNSIGNED, sign
from imgsvc_urls.sources import source_of, write_source

ROOT = "/1.0/image"
"""Where the paths of pictures begin."""

INFO_ROOT = "/1.0/info"
"""Where the same paths begin that tell of a picture instead."""

Value: TypeAlias = str | float | datetime | Sequence[str] | None

WIDTHS = (320, 640, 1280)
PREFERRED_FORMATS = ("avif", "webp", "jpg")
ANIMATED_FORMATS = ("webp", "gif")

_BASE = re.compile(r"(https?://[^/?#\s]+)?(/[^?#\s]*)?")
_MIN_SECRET = 16  # characters


@attrs.frozen
class Signer:
    """Writes URLs of pictures for a service.

    >>> signer = Signer("https://img.example.org", "k1", "a secret of a signing key")
    >>> signer.url("photos/shoe.jpg", resize="800x").removeprefix("https://img.example.org")
    '/1.0/image/k1.xApba_N2ueQzU3khbMT84dnkII3zmrEZ6pOQ5ye7zpc/resize:800x/photos/shoe.jpg'

    Args:
        base: address of the service, or empty for URLs without a host.
        key_id: id of the signing key; without one, URLs are unsigned.
        secret: secret of the signing key.
        in_base64: write the URLs of sources in base64url, for proxies that change percent-encoded slashes.
    """

    base: str
    key_id: str | None = None
    secret: str | bytes | None = attrs.field(default=None, repr=False)
    in_base64: bool = False

    def __attrs_post_init__(self) -> None:
        if not _BASE.fullmatch(self.base):
            expected = "must be a URL such as https://img.example.org without a query"
            raise invalid("base", f"The address of the service {expected}, got {shown(self.base)}")
        if (self.key_id is None) != (self.secret is None):
            raise invalid("secret", "A signing key must have both an id and a secret, got one")
        if self.key_id is not None and not KEY_ID.fullmatch(self.key_id):
            expected = "must be up to 64 letters, digits, - and _"
            raise invalid("key_id", f"The id of a signing key {expected}, got {shown(self.key_id)}")
        if self.secret is not None and len(self.secret) < _MIN_SECRET:
            message = f"The secret of a signing key must have at least {_MIN_SECRET} characters, got fewer"
            raise invalid("secret", message)

    def url(self, source: str, request: Request | None = None, /, **options: Value) -> str:
        """Return the URL of a picture.

        Args:
            source: a URL, or the name of an origin and a path below it, such as ``photos/shoe.jpg``.
            request: what to do with the picture; options win over it.
            options: the flags of the command with underscores, such as ``resize="800x600"`` or
                ``resize_background="fff"``, and ``preset`` (a name or several), ``dpr``, ``expires`` (Unix
                time or a `datetime` with a time zone), ``version``, ``filename`` and ``download``.

        Raises:
            SpecError: with what is wrong with the request.
        """
        return self._written(source, _asked(request, options))

    def info(self, source: str, request: Request | None = None, /, **options: Value) -> str:
        """Return the URL that tells about the picture of `url`, with the facts that ``facts`` names.

        >>> Signer("").info("photos/shoe.jpg", facts=["palette", "lqip"])
        '/1.0/info/unsigned/facts:palette%2Clqip/photos/shoe.jpg'
        """
        return self._written(source, _asked(request, options), root=INFO_ROOT)

    def srcset(
        self,
        source: str,
        request: Request | None = None,
        /,
        *,
        widths: Sequence[int] = WIDTHS,
        densities: Sequence[float] | None = None,
        info: ImageInfo | None = None,
        **options: Value,
    ) -> str:
        """Return the value of ``srcset``: URLs for several widths, or for several pixel densities.

        A width includes padding and border. If the request has a width, all its sizes
        in pixels are multiplied with it, except in the crop. Sizes of presets stay as they are. No URL
        enlarges its source.

        Args:
            source: as in `url`.
            request: as in `url`.
            widths: widths in pixels.
            densities: pixel densities, such as 1 and 2, instead of widths.
            info: the facts of the source, as `imgsvc_core.inspect` returns them. In place of what would
                enlarge it, there is the largest that does not.
            options: as in `url`.

        Raises:
            SpecError: with what is wrong with the request.
        """
        asked = _asked(request, options)
        if densities is None:
            _check_some("widths", widths)
            found = {f"{width}w": _at_width(asked, width) for width in _widths(asked, widths, info)}
        else:
            _check_some("densities", densities)
            found = _at_densities(asked, densities, info)
        return ", ".join(f"{self._written(source, item)} {size}" for size, item in found.items())

    def picture(
        self,
        source: str,
        request: Request | None = None,
        /,
        *,
        alt: str,
        widths: Sequence[int] = WIDTHS,
        densities: Sequence[float] | None = None,
        sizes: str = "100vw",
        formats: Sequence[str] = PREFERRED_FORMATS,
        attributes: Mapping[str, str] | None = None,
        info: ImageInfo | None = None,
        **options: Value,
    ) -> str:
        """Return a ``<picture>`` element, from which the browser chooses format and size.

        It has the width and height of the request's result, so that a page does not move when the picture
        arrives, if the request or ``info`` tells them.

        Args:
            source: as in `url`.
            request: as in `url`.
            alt: what the picture shows, for people who do not see it.
            widths: as in `srcset`.
            densities: as in `srcset`.
            sizes: how wide the picture is on the page, for ``widths``.
            formats: formats in place of the request's, the preferred one first; ``<img>`` has the last, which
                may be ``auto``. For animations, give ``ANIMATED_FORMATS``: WebP and GIF.
            attributes: more attributes of ``<img>``, such as ``{"loading": "lazy"}``.
            info: as in `srcset`.
            options: as in `url`.

        Raises:
            SpecError: with what is wrong with the request.
        """
        if not formats or not set(formats) <= {*OUTPUT_NAMES, "auto"} or "auto" in formats[:-1]:
            message = f"The formats must be some of {', '.join(OUTPUT_NAMES)}, got {shown(list(formats))}"
            raise invalid("formats", message)
        described = {} if densities is not None else {"sizes": sizes}
        srcsets = {
            name: self.srcset(
                source, request, widths=widths, densities=densities, info=info, **{**options, "format": name}
            )
            for name in formats
        }
        *others, last = srcsets
        sources = [
            _tag("source", {"type": FORMATS[name].media_type, "srcset": srcsets[name], **described})
            for name in others
        ]
        largest = srcsets[last].rpartition(", ")[2].partition(" ")[0]
        described |= _size(_asked(request, options), info)
        image = {"src": largest, "srcset": srcsets[last], **described, "alt": alt, **(attributes or {})}
        return "\n".join(["<picture>", *sources, _tag("img", image), "</picture>"])

    def _written(self, source: str, asked: _Asked, *, root: str = ROOT) -> str:
        """Return the URL of a source and what is asked of it."""
        options = [(PRESET, name) for name in asked.presets]
        options += [*options_of(asked.request).items(), *asked.delivery.items()]
        segments = [f"{name}:{_quoted(name, value)}" for name, value in options]
        segments.append(write_source(source_of(source), in_base64=self.in_base64))
        text = "/" + "/".join(segments)
        signature = UNSIGNED if self.secret is None else f"{self.key_id}.{sign(self.secret, text)}"
        return f"{self.base.rstrip('/')}{root}/{signature}{text}"


@attrs.frozen
class _Asked:
    """A checked request as a JSON document, names of presets, and the texts of the delivery's options."""

    request: Document
    presets: tuple[str, ...]
    delivery: Mapping[str, str]


def _asked(request: Request | None, options: Mapping[str, Value]) -> _Asked:
    texts, presets, delivery = read_options(list(_texts(options)))
    base = request if request is None or isinstance(request, Mapping) else unparse(parse_request(request))
    return _Asked(_checked(request_of(texts, base), presets), presets, _texts_of(delivery))


def _checked(document: Document, presets: Sequence[str]) -> Document:
    """Return a request in its JSON form. Beside presets it may be incomplete."""
    return parse_partial(document, "The request") if presets else unparse(parse_request(document))


def _check_some(name: str, sizes: Sequence[float]) -> None:
    if not len(sizes):
        raise invalid(name, f"The {name} must be one or more numbers, got none")


def _widths(asked: _Asked, widths: Sequence[int], info: ImageInfo | None) -> Sequence[int]:
    """Return the widths that do not enlarge a source, as far as that is known."""
    if info is None:
        return widths
    spec = Spec() if asked.presets else parse_request(asked.request)
    return within(info, widths, lambda width: at_width(spec, width))


def _at_densities(asked: _Asked, densities: Sequence[float], info: ImageInfo | None) -> dict[str, _Asked]:
    """Return what is asked at pixel densities that do not enlarge a source, as far as that is known.

    A source that suffices for none of them is delivered once, in its own size.
    """
    for density in densities:
        Delivery(dpr=density)
    if info is not None and not asked.presets:
        spec = with_upscale(parse_request(asked.request), upscale=False)
        hundredths = [round(100 * density) for density in densities]
        found = within(info, hundredths, lambda number: at_density(spec, number / 100))
        if max(found) < min(100, *hundredths) and (size := size_of(parse_request(asked.request), info)):
            return {"1x": _at_width(asked, size.width)}
        densities = [number / 100 for number in found]
    return {f"{text_of(density)}x": _with_dpr(asked, density) for density in densities}


def _size(asked: _Asked, info: ImageInfo | None) -> dict[str, str]:
    """Return the attributes of the size of a picture, as far as it is known."""
    size = None if asked.presets else size_of(parse_request(asked.request), info)
    return {} if size is None else {"width": str(size.width), "height": str(size.height)}


def _at_width(asked: _Asked, width: int) -> _Asked:
    if asked.presets:
        sizes = {"resize-width": text_of(width), "resize-upscale": "0"}
        document = _checked(request_of(sizes, asked.request), asked.presets)
    else:
        document = unparse(with_upscale(at_width(parse_request(asked.request), width), upscale=False))
    delivery = {name: text for name, text in asked.delivery.items() if name != "dpr"}
    return _Asked(document, asked.presets, delivery)


def _with_dpr(asked: _Asked, density: float) -> _Asked:
    wanted = Delivery(dpr=None if density == 1 else density)
    document = asked.request
    if not asked.presets:
        document = unparse(with_upscale(parse_request(document), upscale=False))
    return _Asked(document, asked.presets, {**asked.delivery, **_texts_of(wanted)})


def _texts(options: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """Yield options as in a URL."""
    for argument, value in options.items():
        name = argument.replace("_", "-")
        values: Sequence[Any] = value if isinstance(value, list | tuple) and name == PRESET else [value]
        for item in values:
            if isinstance(item, datetime):
                yield name, str(_unix_time(name, item))
            elif item is not None:
                yield name, text_of(item)


def _unix_time(name: str, time: datetime) -> int:
    if time.tzinfo is None:
        raise invalid(name, f"Option '{name}' must be a time with a time zone, got {time.isoformat()}")
    return int(time.timestamp())


def _texts_of(delivery: Delivery) -> dict[str, str]:
    """Return the options of a delivery that do not have their defaults."""
    return {name: text_of(value) for name, value in unparse_operation(delivery).items()}


def _quoted(name: str, value: str) -> str:
    try:
        return quote(value, safe=":")
    except UnicodeEncodeError:
        raise invalid(name, f"Option '{name}' must be Unicode text, got {value!a}") from None


def _tag(name: str, attributes: Mapping[str, str]) -> str:
    from html import escape

    written = [f'{key}="{escape(value)}"' for key, value in attributes.items()]
    return f"<{' '.join([name, *written])}>"
