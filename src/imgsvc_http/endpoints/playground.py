"""The pages of the service, and what they need to know: the playground and the dashboard.

They are built from ``web/``. The controls of the playground are generated from the declarations of the core.
The dashboard needs nothing but the interface.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import attrs
from aiohttp import web

from imgsvc_core import ImageInfo, Spec, SpecError, parse
from imgsvc_core.errors import invalid
from imgsvc_http.answering.answers import documented
from imgsvc_http.answering.conditions import is_known
from imgsvc_http.answering.errors import refusal
from imgsvc_http.call import Call
from imgsvc_http.endpoints import fonts, previews
from imgsvc_http.endpoints.controls import Declarations, declared
from imgsvc_http.endpoints.examples import MEDIA_TYPES, examples
from imgsvc_http.routing import Route
from imgsvc_http.state import signing_keys
from imgsvc_http.state.scopes import ADMIN
from imgsvc_urls import ANIMATED_FORMATS, PREFERRED_FORMATS, Signer

_PAGE = Path(__file__).parents[1] / "playground"

_TYPES = {**MEDIA_TYPES, ".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_ABOUT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>imgsvc</title>
<p>This service processes pictures. Programs call it with an API key.
<a href="1.0/openapi.json">OpenAPI</a> describes its calls.</p>
"""
_SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


async def start(call: Call) -> web.StreamResponse:
    """Lead whoever opens the address of the service to the playground."""
    return web.Response(status=HTTPStatus.FOUND, headers={"Location": "playground"})


async def about(call: Call) -> web.StreamResponse:
    """Say what this is to whoever opens the address of a service without pages."""
    return web.Response(text=_ABOUT, headers=_SECURITY, content_type="text/html")


async def page(call: Call) -> web.StreamResponse:
    """Return the playground, which shows what requests do to a picture."""
    return _file(call, _PAGE / "index.html")


async def dashboard(call: Call) -> web.StreamResponse:
    """Return the dashboard, which shows what an account has used, asked and got."""
    return _file(call, _PAGE / "dashboard.html")


async def asset(call: Call) -> web.StreamResponse:
    """Return a script or style sheet of the pages."""
    return _file(call, _named(call, _assets()))


async def example(call: Call) -> web.StreamResponse:
    """Return an example picture."""
    return _file(call, _named(call, examples()))


async def declarations(call: Call) -> Declarations:
    """Describe the parameters of requests for the controls of the page."""
    return declared(call.app.names.metadata)


async def presets(call: Call) -> Presets:
    """Return the presets that requests of the account may name."""
    return Presets(dict(await call.services.presets.get(call.account) or {}))


async def urls(call: Call) -> Urls:
    """Return the URL of a source with a request, and HTML that shows it in several sizes and formats."""
    asked = await call.json()
    if not isinstance(asked, dict) or not isinstance(asked.get("source"), str):
        raise invalid("source", "The body must be an object with the 'source' and the 'request'")
    source, spec = asked["source"], parse(asked.get("request", {}))
    info = _facts_of(asked.get("facts"))
    signer = await _signer(call)
    url, signed = signer.url(source, spec), signer.key_id is not None
    try:
        picture = signer.picture(source, spec, alt="", formats=_picture_formats(spec, info), info=info)
    except SpecError as error:  # the URL is right, but its border leaves no room in a narrower picture
        return Urls(url=url, no_picture=error.message, signed=signed)
    return Urls(url=url, picture=picture, signed=signed)


def _facts_of(told: object) -> ImageInfo | None:
    """Return the facts of a source that the page tells, as far as URLs depend on them."""
    if told is None:
        return None
    names = "width", "height", "orientation", "frames"
    if not isinstance(told, dict) or any(type(told.get(name)) is not int or told[name] < 1 for name in names):
        raise invalid("facts", f"The 'facts' must be an object with the numbers {', '.join(names)}")
    return ImageInfo(format="gif", colorspace="srgb", bytes=0, **{name: told[name] for name in names})


def _picture_formats(spec: Spec, info: ImageInfo | None) -> Sequence[str]:
    """Return the format that is asked for, or those that hold what the source is."""
    format = spec.output and spec.output.format
    if format:
        return (format,)
    return ANIMATED_FORMATS if info and info.animated else PREFERRED_FORMATS


@attrs.frozen
class Presets:
    """Parts of requests by name."""

    presets: dict[str, Any]


@attrs.frozen(kw_only=True)
class Urls:
    """How a web page shows a picture."""

    url: str
    picture: str | None = documented("HTML that shows it in several sizes and formats.", default=None)
    no_picture: str | None = documented("Why there is no such HTML.", default=None)
    signed: bool


def routes(*, enabled: bool) -> tuple[Route, ...]:
    """Return the routes of the pages, or of the only one if they are not enabled.

    They are not part of the interface.
    """
    known: dict[str, Any] = {"tag": "Playground", "public": True}
    if not enabled:
        return (Route("GET", "/", about, "What this is", **known),)
    return (
        Route("GET", "/", start, "The playground", **known),
        Route("GET", "/playground", page, "The playground", **known),
        Route("GET", "/dashboard", dashboard, "The dashboard", **known),
        Route(
            "GET",
            "/playground/declarations.json",
            declarations,
            "Parameters of requests",
            **known,
            answer=Declarations,
        ),
        Route("GET", "/playground/presets.json", presets, "Presets", "Playground", Presets, scope="process"),
        Route("POST", "/playground/urls", urls, "URLs of a picture", "Playground", Urls, scope="process"),
        Route("GET", "/playground/examples/{name}", example, "An example picture", **known),
        *fonts.ROUTES,
        *previews.ROUTES,
        Route("GET", "/playground/{name}", asset, "A file of the page", **known),
    )


async def _signer(call: Call) -> Signer:
    """Return a signer with the newest signing key of the account.

    Signed URLs work longer than the API key may, so they are for keys with the scope admin; others get
    unsigned URLs.
    """
    services, principal = call.services, call.principal
    if ADMIN in principal.scopes:
        for key in reversed(await signing_keys.list_all(services.db, principal.account_id)):
            if found := await signing_keys.find(services.db, services.vault, key.id):
                return Signer(services.settings.server.public_url, key.id, found.secret)
    return Signer(services.settings.server.public_url)


@cache
def _assets() -> Mapping[str, Path]:
    return {file.name: file for file in _PAGE.iterdir() if file.suffix in (".js", ".css", ".svg")}


def _named(call: Call, files: Mapping[str, Path]) -> Path:
    file = files.get(call.request.match_info["name"])
    if file is None:
        raise refusal("not_found", what="file")
    return file


def _file(call: Call, file: Path) -> web.StreamResponse:
    data, etag = _content(file)
    # The ETag is weak, as it is the same for the compressed file.
    headers = {**_SECURITY, "Cache-Control": "no-cache", "ETag": f"W/{etag}", "Vary": "Accept-Encoding"}
    if is_known(call.request, etag):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    response = web.Response(body=data, headers=headers, content_type=_TYPES[file.suffix])
    if response.content_type.startswith("text/"):
        response.charset = "utf-8"
        response.enable_compression()
    return response


@cache
def _content(file: Path) -> tuple[bytes, str]:
    """Return the content of a file and its ETag."""
    data = file.read_bytes()
    return data, f'"{hashlib.sha256(data).hexdigest()[:32]}"'
