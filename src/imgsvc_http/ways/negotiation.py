"""Negotiation with browsers: formats by ``Accept``; density, width and quality by client hints.

Hints are rounded, so that caches hold few different answers.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import attrs
from multidict import MultiMapping

from imgsvc_core import Spec, parse, unparse
from imgsvc_core.errors import SpecError
from imgsvc_http.answering.header_fields import combined
from imgsvc_http.state.presets import Presets
from imgsvc_urls import PictureUrl
from imgsvc_urls.dialects.reading import accepted_formats

DPR, WIDTH, SAVE_DATA = "Sec-CH-DPR", "Sec-CH-Width", "Save-Data"

_MODERN = {"avif": True, "jxl": True, "webp": True}
_MAX_DPR, _DPR_STEP = 5, 0.5
_MAX_WIDTH, _WIDTH_STEP = 16_384, 64
_SAVING_QUALITY = 50


@attrs.frozen(kw_only=True)
class Negotiated:
    """A request as it is answered to one browser.

    Args:
        spec: the request.
        dpr: the pixel density of the answer.
        accept: the formats that the browser shows, if the format is negotiated.
        vary: the headers that all this depends on.
    """

    spec: Spec
    dpr: float
    accept: str | None
    vary: tuple[str, ...]


def negotiate(
    url: PictureUrl, presets: Presets, headers: MultiMapping[str], *, client_hints: bool
) -> Negotiated:
    """Return the request of a URL for a browser with these headers.

    Raises:
        SpecError: the request is wrong.
    """
    spec, dpr, vary = url.spec(presets), url.delivery.dpr or 1, list[str]()
    if client_hints:
        saves = headers.get(SAVE_DATA, "").strip().lower() == "on"
        vary.append(SAVE_DATA)
        if url.delivery.dpr is None:
            vary.append(DPR)
            dpr = 1 if saves else _rounded_up(headers.get(DPR, ""), _DPR_STEP, _MAX_DPR) or 1
            with contextlib.suppress(SpecError):  # of sizes that are too large at the density of the screen
                spec = url.spec(presets, dpr=dpr)
        if spec.resize is None and spec.scale is None:
            vary.append(WIDTH)
            width = _rounded_up(headers.get(WIDTH, ""), _WIDTH_STEP, _MAX_WIDTH)
            if width is not None:
                spec = _with(spec, "resize", {"width": int(width), "upscale": False})
        if saves:
            spec = _with_low_quality(spec)
    accept = None
    if spec.output is not None and spec.output.format == "auto":
        vary.insert(0, "Accept")
        accept = shown_formats(combined(headers, "Accept") or "")
    return Negotiated(spec=spec, dpr=dpr, accept=accept, vary=tuple(vary))


def shown_formats(accept: str) -> str:
    """Return an ``Accept`` header that has only the newer formats, if a browser shows them.

    >>> shown_formats("text/html, image/webp, */*;q=0.8")
    'image/webp,image/*'
    """
    wanted = accepted_formats(accept, _MODERN)
    # JPEG XL is only taken without AVIF.
    shown = [f"image/{name}" for name in wanted if not (name == "jxl" and "avif" in wanted)]
    return ",".join([*shown, "image/*"])


def _rounded_up(text: str, step: float, maximum: float) -> float | None:
    """Return the next multiple of a step, or None if the text is no number within the range."""
    try:
        value = float(text)
    except ValueError:
        return None
    return min(math.ceil(value / step) * step, maximum) if 0 < value <= 100_000 else None


def _with_low_quality(spec: Spec) -> Spec:
    """Return a request for a smaller file, unless it says how it is to be encoded."""
    output = spec.output
    if output is not None and (output.quality is not None or output.lossless or output.max_bytes is not None):
        return spec
    try:
        return _with(spec, "output", {"quality": _SAVING_QUALITY})
    except SpecError:  # the format has no quality, or the request asks for a look
        return spec


def _with(spec: Spec, operation: str, parameters: Mapping[str, Any]) -> Spec:
    """Return a request with some more parameters of an operation."""
    document = unparse(spec)
    return parse({**document, operation: {**document.get(operation, {}), **parameters}})
