"""A server that takes objects in parts, as S3, OSS and Azure do, and answers some requests as told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import attrs
from aiohttp import web

from tests.stores.servers.applications import serving
from tests.stores.servers.failing import TOKENS

Odd = Callable[[str], web.Response | float | None]

_UPLOAD = "<InitiateMultipartUploadResult><UploadId>77</UploadId></InitiateMultipartUploadResult>"
_WHOLE = "<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>"


@attrs.define
class Parts:
    """What it was asked: ``begin``, ``part``, ``complete``, ``abort``, ``tag``, or another's method.

    ``odd`` gives the answer to such a word, or for how many seconds there is none; nothing where all is well.
    """

    odd: Odd = attrs.field(default=lambda _: None)
    asked: list[str] = attrs.field(factory=list)
    error_of_status: list[str] = attrs.field(factory=list)
    headers: list[dict[str, str]] = attrs.field(factory=list, repr=False)

    async def handle(self, request: web.Request) -> web.Response:
        await request.read()
        if request.path.endswith(TOKENS):
            return web.json_response({"access_token": "token", "expires_in": 3600})
        word = _word(request)
        self.asked.append(word)
        self.headers.append(dict(request.headers))
        odd = self.odd(word)
        if isinstance(odd, web.Response):
            return odd
        await asyncio.sleep(odd or 0)
        self.error_of_status.append(word)
        match word:
            case "begin":
                return web.Response(text=_UPLOAD, content_type="application/xml")
            case "complete":
                return web.Response(status=201, text=_WHOLE, content_type="application/xml")
            case "abort":
                return web.Response(status=204)
            case _:
                return web.Response(status=201, headers={"ETag": '"1"'})


def _word(request: web.Request) -> str:
    query = request.query
    if query.get("comp") in ("block", "blocklist"):  # Azure's
        return "part" if query["comp"] == "block" else "complete"
    match request.method, "uploads" in query, "uploadId" in query:
        case "POST", True, _:
            return "begin"
        case "PUT", _, True:
            return "part"
        case "POST", _, True:
            return "complete"
        case "DELETE", _, True:
            return "abort"
        case method, _, _:
            return "tag" if "tagging" in query else method.lower()


@contextlib.contextmanager
def parts(odd: Odd | None = None) -> Iterator[tuple[str, Parts]]:
    """A running server, and what it was asked."""
    made = Parts(odd) if odd else Parts()
    with serving(lambda app: app.router.add_route("*", "/{path:.*}", made.handle)) as url:
        yield url, made


def failure(status: int, code: str = "SlowDown") -> web.Response:
    """An answer that says no as S3 does."""
    text = f"<Error><Code>{code}</Code><Message>So it is.</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml")
