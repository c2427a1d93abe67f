"""What the page on formats says of them is so."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.metadata import EXIF, IPTC, PROFILE, XMP
from imgsvc_core.codecs.probe import probe
from imgsvc_core.codecs.readers import load
from tests.codecs.test_metadata import _write

_PAGE = (Path(__file__).parents[2] / "docs/formats.md").read_text()
_COLUMNS = (EXIF, XMP, IPTC, PROFILE)


def _told() -> dict[str, list[bool]]:
    """What the table says that a result holds."""
    table = _PAGE.partition("| result |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {
        name.strip("` "): [cell == "yes" for cell in cells]
        for names, *cells in rows
        for name in names.split(",")
    }


@pytest.mark.parametrize("format", [row.name for row in imgsvc.FORMATS.values() if row.writable])
@pytest.mark.parametrize("policy", ["copyright", "keep"])
def test_results_hold_the_metadata_that_the_page_tells(format: str, policy: str) -> None:
    photograph = _write("jpg", "keep")
    data = imgsvc.process(photograph, {"output": {"format": format, "metadata": policy}}).data
    assert data is not None
    source = ByteSource(data)
    image = load(source, probe(source))
    assert [bool(image.get_typeof(name)) for name in _COLUMNS] == _told()[format]
    assert (b"Held by Ann" in data) == _told()[format][0]


@pytest.mark.parametrize(
    ("format", "longest"), [("gif", 655_350), ("webp", 16_777_215), ("apng", 60_000_000)]
)
def test_the_longest_delay_stands_for_longer_ones(format: str, longest: int) -> None:
    file = io.BytesIO()
    first, second = (Image.new("RGB", (8, 8), color) for color in ("red", "blue"))
    first.save(file, "PNG", save_all=True, append_images=[second], duration=[60_000_000, 40])
    data = imgsvc.process(file.getvalue(), {"output": {"format": format}}).data
    assert imgsvc.inspect(data).delays == (longest, 40)
