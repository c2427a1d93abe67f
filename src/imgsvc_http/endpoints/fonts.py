"""The fonts that texts may use, with samples of them."""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from pathlib import Path
from typing import Any

import attrs
from cachetools import LRUCache

from imgsvc_core import fonts
from imgsvc_http.answering.conditions import is_known
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.responses import Response
from imgsvc_http.call import Call
from imgsvc_http.routing import Route
from imgsvc_http.workers.font_samples import FontSample

_NO_SOURCE = Path("/dev/null")
_MOST_SAMPLES = 500


@attrs.frozen(kw_only=True)
class Fonts:
    """The families that texts may name."""

    families: tuple[str, ...]


async def families(call: Call) -> Fonts:
    """Return the families of the fonts that texts may use."""
    return Fonts(families=tuple(sorted(fonts.catalog().families.values())))


async def sample(call: Call) -> Response:
    """Return a sample of a family in its own script, black on white. It is drawn once in a process."""
    family = fonts.catalog().family(call.request.match_info["family"])
    if family is None:
        raise refusal("not_found", what="font family")
    data = _SAMPLES.get(family)
    if data is None:
        task = FontSample(family=family, limits=call.services.settings.limits)
        workers = call.services.pipeline.workers
        data = (await workers.run(task, _NO_SOURCE, account=call.account)).data
        _SAMPLES[family] = data
    etag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"Cache-Control": "private, no-cache", "ETag": etag, "X-Content-Type-Options": "nosniff"}
    if is_known(call.request, etag):
        return Response(HTTPStatus.NOT_MODIFIED, headers, b"")
    return Response(HTTPStatus.OK, {**headers, "Content-Type": "image/png"}, data)


_SAMPLES: LRUCache[str, bytes] = LRUCache(_MOST_SAMPLES)
"""Samples by family. A process reads the fonts once, so they stay as they are."""


_KNOWN: dict[str, Any] = {"tag": "Playground", "scope": "process"}
ROUTES = (
    Route("GET", "/playground/fonts.json", families, "Fonts of texts", answer=Fonts, **_KNOWN),
    Route("GET", "/playground/fonts/{family}", sample, "A sample of a font", is_queued=True, **_KNOWN),
)
