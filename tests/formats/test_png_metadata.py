"""The author of a PNG is found wherever in the file he stands, and in the ways of older programs."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from tests.support.encoded import photo
from tests.support.handmade import pillow, png_chunk

_AUTHOR = 0x013B
_EXIF_PREFIX = b"Exif\0\0"
_XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    b'<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    b"<dc:creator><rdf:Seq><rdf:li>Ann</rdf:li></rdf:Seq></dc:creator>"
    b"</rdf:Description></rdf:RDF></x:xmpmeta>"
)
_IPTC = b"\x1c\x02\x50\0\x03Ann"
_RESOURCE = b"8BIM\x04\x04\0\0\0\0\0\x08" + _IPTC
_KEYWORD = b"XML:com.adobe.xmp\0"


def _exif(author: str = "Ann") -> bytes:
    block = Image.Exif()
    block[_AUTHOR] = author
    return block.tobytes().removeprefix(_EXIF_PREFIX)


def _raw_profile(name: bytes, block: bytes, chunk: bytes = b"zTXt") -> bytes:
    digits = block.hex().encode()
    lines = [digits[start : start + 72] for start in range(0, len(digits), 72)]
    text = b"\n%s\n%8d\n%s\n" % (name, len(block), b"\n".join(lines))
    content = b"\0" + zlib.compress(text) if chunk == b"zTXt" else text
    return png_chunk(chunk, b"Raw profile type " + name + b"\0" + content)


def _source(*chunks: bytes, after: bool, animated: bool = False) -> bytes:
    frames = {"save_all": True, "append_images": [Image.fromarray(255 - photo())]} if animated else {}
    data = pillow(photo(), "PNG", **frames)
    place = data.rindex(b"IEND") - 4 if after else 33
    return data[:place] + b"".join(chunks) + data[place:]


def _result(data: bytes, policy: str = "copyright") -> bytes:
    return imgsvc.process(data, {"output": {"format": "jpg", "metadata": policy}}).data


_BLOCKS = {
    "exif": png_chunk(b"eXIf", _exif()),
    "exif with prefix": png_chunk(b"eXIf", _EXIF_PREFIX + _exif()),
    "xmp": png_chunk(b"iTXt", _KEYWORD + bytes(4) + _XMP),
    "xmp in a language": png_chunk(b"iTXt", _KEYWORD + b"\0\0en\0XMP\0" + _XMP),
    "compressed xmp": png_chunk(b"iTXt", _KEYWORD + b"\1\0\0\0" + zlib.compress(_XMP)),
    "raw exif": _raw_profile(b"EXIF", _EXIF_PREFIX + _exif()),
    "raw text of exif": _raw_profile(b"exif", _EXIF_PREFIX + _exif(), b"tEXt"),
    "raw segment of exif": _raw_profile(b"APP1", _EXIF_PREFIX + _exif()),
    "raw segment of xmp": _raw_profile(b"APP1", b"http://ns.adobe.com/xap/1.0/\0" + _XMP),
    "raw xmp": _raw_profile(b"xmp", _XMP),
    "raw iptc": _raw_profile(b"iptc", _RESOURCE),
    "raw iptc of Photoshop": _raw_profile(b"iptc", b"Photoshop 3.0\0" + _RESOURCE),
    "raw iptc alone": _raw_profile(b"iptc", _IPTC),
}


@pytest.mark.parametrize("animated", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("block", _BLOCKS.values(), ids=_BLOCKS)
def test_the_author_is_kept(block: bytes, after: bool, animated: bool) -> None:
    source = _source(block, after=after, animated=animated)
    assert [b"Ann" in _result(source, policy) for policy in ("strip", "copyright", "keep")] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("output", [{}, {"colors": 4}])
@pytest.mark.parametrize(
    ("step", "expected"),
    [({"flip": {"vertical": True}}, (300, 150)), ({"rotate": {"angle": 90}}, (150, 300))],
    ids=["mirrored", "turned"],
)
def test_each_side_keeps_its_resolution(
    step: dict[str, Any], expected: tuple[int, int], output: dict[str, int]
) -> None:
    source = pillow(photo(), "PNG", dpi=(300, 150))
    made = imgsvc.process(source, {**step, "output": {"format": "png", **output}}).data
    with Image.open(io.BytesIO(made)) as picture:
        assert picture.info["dpi"] == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("steps", [{}, {"rotate": {"angle": 90}}], ids=["in arrays", "by libvips"])
def test_variants_of_one_decoding_keep_what_each_asks_for(steps: dict[str, Any]) -> None:
    source = _source(_BLOCKS["exif"], after=True)
    policies = ("strip", "copyright")
    variants = {policy: {**steps, "output": {"format": "jpg", "metadata": policy}} for policy in policies}
    results = imgsvc.process_variants(source, variants)
    assert [b"Ann" in results[policy].data for policy in policies] == [False, True]


def test_a_block_before_the_pixels_counts_more_than_one_after_them() -> None:
    data = _source(png_chunk(b"eXIf", _exif("Bo")), after=True)
    data = data[:33] + _BLOCKS["exif"] + data[33:]
    with Image.open(io.BytesIO(_result(data))) as picture:
        assert picture.getexif()[_AUTHOR].strip("\0") == "Ann"


@pytest.mark.parametrize(
    "damaged",
    [
        png_chunk(b"eXIf", b"")[:-1] + b"?",
        png_chunk(b"zTXt", b"Raw profile type exif\0\0no zlib"),
        png_chunk(b"tEXt", b"Raw profile type exif\0\nexif\n 2\nno digits\n"),
        png_chunk(b"tEXt", b"Raw profile type exif\0one line"),
        png_chunk(b"tEXt", b"Raw profile type fancy\0\nfancy\n 1\n00\n"),
        png_chunk(b"iTXt", _KEYWORD + b"\0"),
        png_chunk(b"iTXt", _KEYWORD + b"\1\0\0\0no zlib"),
    ],
)
def test_damaged_blocks_hide_no_others(damaged: bytes) -> None:
    assert b"Ann" in _result(_source(damaged, _BLOCKS["exif"], after=True))


def test_blocks_beyond_what_decoders_take_are_left_out() -> None:
    packed = _KEYWORD + b"\1\0\0\0" + zlib.compress(_XMP + b" " * 9_000_000)
    plain = _KEYWORD + bytes(4) + _XMP + b" " * 9_000_000
    for content in (packed, plain):
        assert b"Ann" not in _result(_source(png_chunk(b"iTXt", content), after=True))


def _turned(*, after: bool, animated: bool) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    block = png_chunk(b"eXIf", exif.tobytes().removeprefix(_EXIF_PREFIX))
    return _source(block, after=after, animated=animated)


@pytest.mark.parametrize("animated", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_an_orientation_counts_wherever_it_stands(after: bool, animated: bool) -> None:
    source = _turned(after=after, animated=animated)
    upright = np.rot90(photo(), -1)
    assert imgsvc.inspect(source).upright_size == (64, 96)
    shown = np.asarray(imgsvc.process(source).to_numpy())[..., :3].reshape(-1, 96, 64, 3)
    assert np.array_equal(shown[0], upright)


@pytest.mark.parametrize("policy", ["strip", "copyright"])
@pytest.mark.parametrize("animated", [False, True])
def test_an_orientation_after_the_pixels_stays_beside_pixels_that_stay(animated: bool, policy: str) -> None:
    source = _turned(after=True, animated=animated)
    result = imgsvc.process(source, {"output": {"keep_pixels": True, "metadata": policy}})
    file = imgsvc.inspect(result.data)
    assert (file.orientation, result.output.orientation) == (6, 6)
    assert file.upright_size == result.output.upright_size == (file.height, file.width)
    assert f"{file.height}x{file.width}, " in repr(result)
