"""JPEG 2000: by libvips if it has the codec, else by imagecodecs (deep pictures) or Pillow."""

from __future__ import annotations

import io
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import encoder
from imgsvc_core.formats.boxes import first_box, make_box, read_boxes
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.jp2.codestream import encode_by_tiles
from imgsvc_core.formats.jp2.header import read_header
from imgsvc_core.formats.metadata import blob, keep_profile
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.vips import to_array, to_depth


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write 8 or 16 bits; without imagecodecs, deep pictures are rounded to 8."""
    facts: SavedFacts = {"channels": image.bands, "subsample": None if image.bands < 3 else "4:4:4"}
    if availability.writer_backend("jp2") == "libvips":
        options = {"Q": settings.quality, "lossless": settings.lossless}
        memory = Sink()
        memory.save(image, "jp2k", keep=keep_profile(image), **options)
        sink.write(memory.data)
        return {**facts, "levels": read_header(HeaderReader(ByteSource(memory.data), "JPEG 2000"))[0].levels}
    deep = image.format == "ushort" and find_spec("imagecodecs") is not None
    pixels = to_array(image if deep else to_depth(image, 8))
    encode = _encode_deep if deep else _encode_by_pillow
    boxes, codestream = encode_by_tiles(pixels, partial(encode, settings=settings))
    profile = blob(image, PROFILE)
    sink.write(b"".join((_with_profile(boxes, profile) if profile else boxes, *codestream)))
    main = HeaderReader(ByteSource(codestream[1]), "JPEG 2000")
    return {**facts, "depth": 16 if deep else 8, "levels": read_header(main)[0].levels}


def decibels(quality: int) -> float:
    """Return the signal-to-noise ratio of a quality: 38 dB at 80, which looks as good as JPEG."""
    return 18 + quality / 4


def _encode_by_pillow(pixels: Any, settings: SaveSettings) -> bytes:
    """Encode 8 bits. The transform between colors (mct) halves the size; Pillow omits it by default."""
    from PIL import Image

    picture = Image.fromarray(_without_single_band(pixels))
    options: dict[str, Any] = {"irreversible": not settings.lossless, "mct": int(pixels.shape[2] >= 3)}
    if not settings.lossless:
        assert settings.quality is not None
        options |= {"quality_mode": "dB", "quality_layers": [decibels(settings.quality)]}
    encoded = io.BytesIO()
    with encoder("jp2"):
        picture.save(encoded, "JPEG2000", no_jp2=False, **options)
    return encoded.getvalue()


def _encode_deep(pixels: Any, settings: SaveSettings) -> bytes:
    import imagecodecs

    assert settings.quality is not None
    level = 0 if settings.lossless else round(decibels(settings.quality))
    mct = pixels.shape[2] >= 3
    with encoder("jp2"):
        encoded = imagecodecs.jpeg2k_encode(
            _without_single_band(pixels),
            level=level,
            codecformat="jp2",
            reversible=settings.lossless,
            mct=mct,
        )
    return bytes(encoded)


def _without_single_band(pixels: Any) -> Any:
    import numpy as np

    return np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def _with_profile(boxes: bytes, profile: bytes) -> bytes:
    """Replace the enumerated color space of the header by an ICC profile (ISO/IEC 15444-1, annex I)."""
    reader = HeaderReader(ByteSource(boxes), "JPEG 2000")
    header = next(box for box in read_boxes(reader, 0, reader.size) if box.kind == b"jp2h")
    color = first_box(reader, header, b"colr")
    assert color is not None
    inner = (
        boxes[header.start : color.begin],
        make_box(b"colr", b"\2\0\0" + profile),
        boxes[color.end : header.end],
    )
    return boxes[: header.begin] + make_box(b"jp2h", b"".join(inner)) + boxes[header.end :]
