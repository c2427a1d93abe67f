"""What can be said of a picture and a request without touching a pixel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from imgsvc_core.codecs.probe import probe
from imgsvc_core.info import ImageInfo
from imgsvc_core.limits import Limits, limits_or
from imgsvc_core.plan import Plan, compile_plan
from imgsvc_core.sources import Source, as_image, describe, open_bytes
from imgsvc_core.spec import Spec, parse


def inspect(
    source: Source, *, limits: Limits | None = None, name: str | None = None, digest: bool = False
) -> ImageInfo:
    """The facts of a picture from its header; no pixels are decoded.

    Args:
        source: a path, encoded bytes, a binary file object, an fsspec URL, a numpy array or a pyvips image.
        limits: what the source may have at most; only the number of bytes matters here, and the pixels of
            pictures that a drawing holds inlined.
        name: the file name to report, where the source has none.
        digest: whether to compute ``sha256``, which reads all bytes.

    Raises:
        SourceError: the source cannot be read or is no image.
        SourceTooLarge, ImageTooLarge: it has too many bytes, or a drawing holds too large pictures.
    """
    most = limits_or(limits, Limits.none())
    picture = as_image(source)
    if picture is not None:
        return describe(picture, name=name)
    data = open_bytes(source, most, name=name)
    info = probe(data, most_inlined=(limits or Limits()).source_pixels)
    return attrs.evolve(info, sha256=data.sha256()) if digest else info


def explain(
    spec: Spec | Mapping[str, Any], info: ImageInfo, *, limits: Limits | None = None, suffix: str = ""
) -> Plan:
    """The plan of a request for a source with these facts; ``print`` it to read it.

    ``suffix`` is that of the target's name. Faces are not looked for: places that depend on them are shown
    as they are without any.

    Raises:
        SpecError: the request is wrong, or the limits are none.
        OutputTooLarge: the result would have too many pixels.
    """
    return compile_plan(parse(spec), info, limits=limits_or(limits, Limits()), suffix=suffix)
