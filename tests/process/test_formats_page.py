"""What the page on formats says of them is so."""

from __future__ import annotations

import io

import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.metadata import EXIF, IPTC, XMP
from imgsvc_core.formats.probe import probe
from tests.formats.test_metadata import _write

_FIELDS = {"exif": EXIF, "xmp": XMP, "iptc": IPTC, "profile": PROFILE}


@pytest.mark.parametrize("format", [row.name for row in imgsvc.FORMATS.values() if row.writable])
@pytest.mark.parametrize("policy", ["copyright", "keep"])
def test_results_hold_the_metadata_that_the_table_tells(format: str, policy: str) -> None:
    photograph = _write("jpg", "keep")
    data = imgsvc.process(photograph, {"output": {"format": format, "metadata": policy}}).data
    assert data is not None
    source = ByteSource(data)
    image = load(probe(source))
    told = imgsvc.FORMATS[format].metadata
    assert {kind for kind, field in _FIELDS.items() if image.get_typeof(field)} == set(told)
    assert (b"Held by Ann" in data) == ("exif" in told)


@pytest.mark.parametrize(
    ("format", "longest"), [("gif", 655_350), ("webp", 16_777_215), ("apng", 60_000_000)]
)
def test_the_longest_delay_stands_for_longer_ones(format: str, longest: int) -> None:
    file = io.BytesIO()
    first, second = (Image.new("RGB", (8, 8), color) for color in ("red", "blue"))
    first.save(file, "PNG", save_all=True, append_images=[second], duration=[60_000_000, 40])
    data = imgsvc.process(file.getvalue(), {"output": {"format": format}}).data
    assert imgsvc.inspect(data).delays == (longest, 40)
