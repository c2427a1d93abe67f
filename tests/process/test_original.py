"""Metadata goes without touching coded pixels, and the original stays if encoding it again saves nothing."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import attrs
import imagecodecs
import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats import table
from imgsvc_core.formats.boxes import make_box, read_boxes
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg.segments import make_segment
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.webp.header import FIRST_CHUNK, make_chunk, read_chunks, riff
from tests.formats.test_heif_limits import Item, extent, grid, heif
from tests.support import libjxl
from tests.support.encoded import profile
from tests.support.photos import Pixels, coffee, moving_frames

FORMATS = ("jpg", "jpg, progressive", "png", "webp", "webp, lossless", "jxl", "avif")
ARTIST, COPYRIGHT, GPS = 0x013B, 0x8298, 0x8825
PLACE = b"WGS-84 by hand"
XMP = (
    b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
    b"<rdf:Description xmlns:dc='http://purl.org/dc/elements/1.1/' dc:source='a secret place'/>"
    b"</rdf:RDF></x:xmpmeta>"
)
OPTIONS: dict[str, dict[str, Any]] = {
    "jpg": {"format": "JPEG", "quality": 40, "comment": b"a comment"},
    "jpg, progressive": {"format": "JPEG", "quality": 40, "progressive": True},
    "png": {"format": "PNG"},
    "webp": {"format": "WEBP", "quality": 40},
    "webp, lossless": {"format": "WEBP", "lossless": True},
    "avif": {"format": "AVIF", "quality": 40},
}


def file(format: str, orientation: int = 1, **options: Any) -> bytes:
    exif = Image.Exif()
    exif[0x0112], exif[ARTIST], exif[COPYRIGHT] = orientation, "Ann", "Held by Ann"
    exif[GPS] = {1: "N", 18: PLACE.decode()}
    data = io.BytesIO()
    pixels = coffee()[:120, :90]
    if format == "jxl":
        boxes = {b"Exif": bytes(4) + exif.tobytes()[6:], b"xml ": XMP, b"jumb": b"a comment"}
        given = {"boxes": {} if options else boxes, "orientation": orientation, "profile": profile()}
        return libjxl.encode(pixels, **given)
    picture = Image.fromarray(pixels)
    options = {"exif": exif.tobytes(), "xmp": XMP, "icc_profile": profile(), **OPTIONS[format], **options}
    picture.save(data, **options)
    return data.getvalue()


def decoded(data: bytes) -> tuple[Any, ...]:
    if imgsvc.inspect(data).format == "jxl":
        pixels = imagecodecs.jpegxl_decode(data, keeporientation=True)
        return *pixels.shape, pixels.tobytes()
    image = pyvips.Image.new_from_buffer(data, "", access="sequential")
    return image.width, image.height, image.interpretation, image.write_to_memory()


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("policy", ["strip", "copyright"])
@pytest.mark.parametrize("format", FORMATS)
def test_metadata_goes_and_pixels_stay(format: str, policy: str, orientation: int) -> None:
    data = file(format, orientation)
    assert PLACE in data
    result = imgsvc.process(data, {"output": {"keep_pixels": True, "metadata": policy}})
    assert decoded(result.data) == decoded(data)
    assert len(result.data) <= len(data)
    for secret in (PLACE, b"a secret place", b"a comment"):
        assert secret not in result.data
    assert (b"Ann" in result.data) == (policy == "copyright")
    before, after = imgsvc.inspect(data), imgsvc.inspect(result.data)
    assert (after.upright_size, after.orientation) == (before.upright_size, before.orientation)
    assert (after.profile, after.quality, after.bytes) == (True, before.quality, result.output.bytes)
    width, height = after.upright_size
    shown = attrs.evolve(after, contents=None, width=width, height=height, upright=True)
    assert result.output == shown
    upright = [imgsvc.process(one, {"output": {"format": "png"}}).to_numpy() for one in (data, result.data)]
    assert np.array_equal(*upright)


@pytest.mark.parametrize("mode", ["CMYK", "RGB"])
def test_colors_of_a_jpeg_stay_what_its_marker_says(mode: str) -> None:
    """Only Adobe's marker tells YCCK from CMYK, and RGB from YCbCr if channels have the usual numbers."""
    file = io.BytesIO()
    Image.fromarray(coffee()[:40, :40]).convert(mode).save(file, "JPEG", keep_rgb=True, comment=b"secret")
    data, marker = file.getvalue(), b"Adobe\0d\0\0\0\0"
    assert marker in data
    if mode == "CMYK":
        data = data.replace(marker + b"\0", marker + b"\2")
    for number, letter in enumerate((b"R", b"G", b"B"), start=1):
        data = data.replace(letter + b"\x11\0", bytes((number, 0x11, 0)))
    scan = data.index(b"\xff\xda")
    data = data[:scan] + data[scan:].replace(b"\3R\0G\0B\0", b"\3\1\0\2\0\3\0", 1)
    result = imgsvc.process(data, {"output": {"keep_pixels": True}})
    assert b"secret" not in result.data
    assert decoded(result.data) == decoded(data)


@pytest.mark.parametrize("policy", ["strip", "copyright"])
def test_webp_states_only_the_metadata_that_is_there(policy: str) -> None:
    data = imgsvc.process(file("webp"), {"output": {"keep_pixels": True, "metadata": policy}}).data
    flags = {b"ICCP": 0x20, b"EXIF": 0x08, b"XMP ": 0x04}
    assert data[20] == sum(flag for kind, flag in flags.items() if kind in data)


@pytest.mark.parametrize("format", FORMATS)
def test_all_metadata_may_stay(format: str) -> None:
    data = file(format)
    assert imgsvc.process(data, {"output": {"keep_pixels": True, "metadata": "keep"}}).data == data


def test_all_formats_that_keep_pixels_are_tried() -> None:
    tried = {name.partition(",")[0] for name in FORMATS} | {"heic", "apng"}
    assert {name for name, row in table.FORMATS.items() if row.rewrites} == tried


def test_animations_stay_as_they_are() -> None:
    frames = [Image.fromarray(frame) for frame in moving_frames(3, 60, 40)]
    for format, name in (("WEBP", "webp"), ("PNG", "apng")):
        data = io.BytesIO()
        exif = Image.Exif()
        exif[COPYRIGHT] = "Held by Ann"
        frames[0].save(
            data, format, save_all=True, append_images=frames[1:], duration=80, loop=2, exif=exif.tobytes()
        )
        result = imgsvc.process(data.getvalue(), {"output": {"keep_pixels": True}})
        assert b"Ann" not in result.data
        assert (result.output.format, result.output.frames, result.output.plays) == (name, 3, 2)
        shown = [imgsvc.process(one).to_numpy() for one in (data.getvalue(), result.data)]
        assert np.array_equal(*shown)


@pytest.mark.parametrize("start", [b"", b"\0\0\0\3"], ids=["", "of an impossible length"])
def test_what_follows_a_picture_goes(start: bytes) -> None:
    """Cameras put videos, depth and gain maps there."""
    for format in FORMATS:
        data = file(format, exif=b"", xmp=b"")
        result = imgsvc.process(data + start + b"the rest" * 9, {"output": {"keep_pixels": True}})
        assert b"the rest" not in result.data
        assert decoded(result.data) == decoded(data)


@pytest.mark.parametrize("policy", ["strip", "copyright"])
@pytest.mark.parametrize("format", ["heic", "avif"])
def test_boxes_beside_a_picture_go(format: str, policy: str) -> None:
    """Phones put motion video there, which tells the place, and others where a picture comes from (C2PA)."""
    data = imgsvc.process(coffee()[:120, :90], {"output": {"format": format}}).data
    coded = data.index(b"mdat") - 4
    stated = (coded + 8).to_bytes(4, "big")
    assert data.count(stated) == 1  # where the item begins
    for kind in (b"mpvd", b"sefd", b"uuid", b"free"):
        box = make_box(kind, PLACE)
        for end in (box, box * 2, box + b"the rest"):
            result = imgsvc.process(data + end, {"output": {"keep_pixels": True, "metadata": policy}})
            assert result.data == data
        moved = data[:coded].replace(stated, (coded + 8 + len(box)).to_bytes(4, "big")) + box + data[coded:]
        result = imgsvc.process(moved, {"output": {"keep_pixels": True, "metadata": policy}})
        assert PLACE not in result.data
        shown = [imgsvc.process(one, {"output": {"format": "png"}}).to_numpy() for one in (data, result.data)]
        assert np.array_equal(*shown)
        assert imgsvc.process(moved, {"output": {"keep_pixels": True, "metadata": "keep"}}).data == moved


@pytest.mark.parametrize("policy", ["strip", "copyright"])
@pytest.mark.parametrize("beside", ["thumbnail", "further picture", "depth", "transparency"])
def test_other_pictures_of_heic_go(beside: str, policy: str) -> None:
    """A thumbnail shows what was there before the picture was changed; its transparency is part of it."""
    import pillow_heif

    pixels = coffee()[:128, :192]
    alpha = np.tile(np.arange(192, dtype=np.uint8), (128, 1))
    if beside in ("depth", "transparency"):
        made = pillow_heif.from_bytes("RGBA", (192, 128), np.dstack([pixels, alpha]).tobytes())
    else:
        made = pillow_heif.from_bytes("RGB", (192, 128), pixels.tobytes())
    if beside == "further picture":
        made.add_from_pillow(Image.fromarray(pixels[::-1, :96]))
    file = io.BytesIO()
    made.save(file, thumbnails=[64] if beside == "thumbnail" else [])
    role = b"urn:mpeg:hevc:2015:auxid:"
    data = file.getvalue().replace(role + b"1", role + b"2") if beside == "depth" else file.getvalue()
    result = imgsvc.process(data, {"output": {"keep_pixels": True, "metadata": policy}}).data
    assert len(result) == len(data)
    assert (result == data) == (beside == "transparency")
    coded = data.index(b"mdat") + 4
    assert result[coded:].count(bytes(50)) > data[coded:].count(bytes(50)) or beside == "transparency"
    read = pillow_heif.open_heif(result)
    assert (len(read), read.info["thumbnails"], read.info["depth_images"]) == (1, [], [])
    assert not imgsvc.inspect(result).more_pages
    shown = [imgsvc.process(one, {"output": {"format": "png"}}).to_numpy() for one in (data, result)]
    assert np.array_equal(*shown)


def coded(pixels: Pixels) -> Item:
    """A picture of an AVIF, as an item of a file that is made by hand."""
    data = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(data, "AVIF")
    reader = HeaderReader(ByteSource(data.getvalue()), "avif")
    boxes = read_boxes(reader, 0, reader.size)
    content = {box.kind: reader.read(box.start, box.end - box.start) for box in boxes}
    settings = content[b"meta"].index(b"av1C") + 4
    return Item(
        b"av01",
        [extent(pixels.shape[1], pixels.shape[0]), (b"av1C", content[b"meta"][settings : settings + 4])],
        content[b"mdat"],
    )


def test_tiles_stay_and_other_pictures_beside_them_go() -> None:
    """Phones store photographs in tiles."""
    photo = coffee()
    tiles = [coded(photo[top : top + 64, left : left + 128]) for top in (0, 64) for left in (0, 128)]
    other = coded(photo[200:264, 200:328])
    whole = Item(b"grid", [extent(256, 128)], grid(2, 2, 256, 128))
    data = heif(whole, *tiles, other, parts={1: [2, 3, 4, 5]})
    result = imgsvc.process(data, {"output": {"keep_pixels": True}}).data
    assert all(tile.data in result for tile in tiles)
    assert other.data in data
    assert other.data not in result
    shown = [imgsvc.process(one).to_numpy() for one in (data, result)]
    assert np.array_equal(*shown)
    assert np.abs(shown[0].astype(int) - photo[:128, :256]).mean() < 5


def moving_avif() -> bytes:
    frames = [Image.fromarray(frame) for frame in moving_frames(3, 60, 40)]
    data = io.BytesIO()
    frames[0].save(data, "AVIF", save_all=True, append_images=frames[1:], duration=80)
    return data.getvalue()


def test_frames_of_avif_stay_and_their_times_of_making_go() -> None:
    data = moving_avif()
    result = imgsvc.process(data, {"output": {"keep_pixels": True}})
    assert (result.output.frames, len(result.data)) == (3, len(data))
    assert np.array_equal(*[imgsvc.process(one).to_numpy() for one in (data, result.data)])
    times = [slice(at + 8, at + 24) for kind in (b"mvhd", b"tkhd", b"mdhd") for at in [data.index(kind)]]
    assert all(any(data[time]) and not any(result.data[time]) for time in times)


def test_video_that_is_not_shown_goes() -> None:
    data = moving_avif()
    still = data.replace(b"ftypavis", b"ftypavif")
    assert imgsvc.inspect(still).frames == 1
    result = imgsvc.process(still, {"output": {"keep_pixels": True}}).data
    assert b"moov" not in result
    assert not imgsvc.inspect(result).more_pages
    with Image.open(io.BytesIO(result)) as read:
        assert read.size == (60, 40)
        read.load()
    shown = [imgsvc.process(one, {"output": {"format": "png"}}).to_numpy() for one in (still, result)]
    assert np.array_equal(*shown)


@pytest.mark.parametrize("policy", ["strip", "copyright"])
def test_data_of_makers_and_words_go_from_avif(policy: str) -> None:
    data = file("avif")
    assert data.count(b"mimeXMP\0") == data.count(b"nclx") == data.count(b"a secret place") == 1
    at = data.index(b"colrnclx")
    described = (
        data[:at] + word + b"secretly" + data[at + 12 :]  # in place of colors
        for word in (b"udes", b"altt", b"crtt", b"mdft")
    )
    for source in (data.replace(b"mimeXMP\0", b"uri XMP\0"), *described):
        result = imgsvc.process(source, {"output": {"keep_pixels": True, "metadata": policy}})
        assert b"secret" not in result.data
        assert len(result.data) == len(source)
        assert imgsvc.process(result.data).output.width == 90


@pytest.mark.parametrize("policy", ["strip", "copyright", "keep"])
def test_compressed_boxes_and_streams_without_boxes(policy: str) -> None:
    exif = Image.Exif()
    exif[COPYRIGHT], exif[GPS] = "Held by Ann", {1: "N", 18: PLACE.decode()}
    boxes = {b"Exif": bytes(4) + exif.tobytes()[6:] + PLACE * 9, b"xml ": XMP * 9}
    data = libjxl.encode(coffee()[:120, :90], distance=1.5, boxes=boxes, compressed_boxes=True)
    assert b"brob" in data
    assert PLACE not in data
    output = {"keep_pixels": True, "metadata": policy}
    result = imgsvc.process(data, {"output": output})
    assert decoded(result.data) == decoded(data)
    assert (b"brob" in result.data) == (policy == "keep")
    assert (b"Held by Ann" in result.data) == (policy == "copyright")
    stream = libjxl.encode(coffee()[:120, :90], distance=1.5)
    assert stream.startswith(b"\xff\x0a")
    assert imgsvc.process(stream, {"output": output}).data == stream


def _more_than_a_picture(kind: str) -> bytes:
    pixels = np.dstack((coffee()[:120, :90], coffee()[:120, :90, 0]))
    if kind == "depth":
        planes = np.ascontiguousarray(pixels.transpose(2, 0, 1)[:2])
        return bytes(imagecodecs.jpegxl_encode(planes, level=101, planar=True, photometric="gray"))
    return libjxl.encode(
        pixels, **{kind: b"My draft"}, **({"have_animation": 1} if kind == "layer_name" else {})
    )


@pytest.mark.parametrize("kind", ["depth", "layer_name", "alpha_name"])
def test_what_lies_in_the_stream_of_a_jpeg_xl_goes_by_encoding_it_again(kind: str) -> None:
    data = _more_than_a_picture(kind)
    for policy in ("strip", "copyright"):
        with pytest.raises(imgsvc.UnsupportedOperation, match="only with another encoding"):
            imgsvc.process(data, {"output": {"keep_pixels": True, "metadata": policy}})
        result = imgsvc.process(data, {"output": {"if_smaller": True, "lossless": True, "metadata": policy}})
        assert imgsvc.process(result.data, {"output": {"keep_pixels": True, "metadata": policy}}).data
    assert imgsvc.process(data, {"output": {"keep_pixels": True, "metadata": "keep"}}).data == data


@pytest.mark.parametrize("policy", ["strip", "copyright"])
def test_an_index_of_frames_stays(policy: str) -> None:
    data, index = file("jxl"), b"\0\0\0\x0cjxliIDX!"
    place = data.index(b"jxlp") - 4
    data = data[:place] + index + data[place:]
    result = imgsvc.process(data, {"output": {"keep_pixels": True, "metadata": policy}})
    assert index in result.data
    assert PLACE not in result.data
    assert decoded(result.data) == decoded(data)


@pytest.mark.parametrize("policy", ["strip", "copyright"])
def test_the_level_that_decoders_need_stays(policy: str) -> None:
    """Without the box, a file claims that decoders of level 5 are enough, which have no 16 bits exactly."""
    pixels = coffee()[:40, :30].astype(np.uint16) * 257
    data = imgsvc.process(pixels, {"output": {"format": "jxl", "lossless": True}}).data
    level = b"\0\0\0\x09jxll\x0a"
    assert level in data
    result = imgsvc.process(data, {"output": {"keep_pixels": True, "metadata": policy}})
    assert level in result.data
    assert decoded(result.data) == decoded(data)


def test_a_jpeg_xl_that_ends_early_is_damaged() -> None:
    data = libjxl.encode(coffee()[:120, :90], distance=1.5)
    with pytest.raises(imgsvc.CorruptImage, match="ends before"):
        imgsvc.process(data[:-40], {"output": {"keep_pixels": True}})


def test_segments_between_scans_of_a_jpeg_go() -> None:
    data = file("jpg, progressive")
    place = data.rindex(b"\xff\xda")
    secret = data[:place] + b"\xff\xfe\0\x0ea secret :) " + data[place:]
    result = imgsvc.process(secret, {"output": {"keep_pixels": True}})
    assert b"secret" not in result.data
    assert decoded(result.data) == decoded(data)


def test_nothing_hides_in_segments_that_stay() -> None:
    """A preview may show what was cut away from the picture."""
    stored = io.BytesIO()
    Image.fromarray(coffee()[:40, :40]).save(stored, "JPEG", quality=40)
    data = stored.getvalue()
    jfif = b"JFIF\0\1\1\1\0\x48\0\x48\2\1secret"
    adobe = b"Adobe\0\x64\0\0\0\0\1secret"
    segments = b"".join(make_segment(marker, content) for marker, content in ((0xE0, jfif), (0xEE, adobe)))
    for policy in ("strip", "copyright"):
        output = {"keep_pixels": True, "metadata": policy}
        kept = imgsvc.process(data[:2] + segments + data[20:], {"output": output}).data
        assert b"secret" not in kept
        assert kept.startswith(data[:6] + jfif[:12] + b"\0\0\xff\xee\0\x0e" + adobe[:12])
        assert decoded(kept) == decoded(data)


def test_frames_of_a_webp_keep_only_what_is_decoded() -> None:
    stored = io.BytesIO()
    first, *others = (Image.fromarray(frame) for frame in moving_frames(3, 61, 43))
    first.save(stored, "WEBP", save_all=True, append_images=others, quality=40)
    reader = HeaderReader(ByteSource(stored.getvalue()), "WebP")
    chunks = [(kind, reader.read(*place)) for kind, *place in read_chunks(reader, FIRST_CHUNK, reader.size)]
    hidden = make_chunk(b"TEXT", b"secret")
    source = riff([(kind, data + hidden * (kind == b"ANMF")) for kind, data in chunks])
    kept = imgsvc.process(source, {"output": {"keep_pixels": True}}).data
    assert source.count(b"secret") == 3
    assert kept == stored.getvalue()


def test_a_file_that_ends_early_is_damaged() -> None:
    for format in FORMATS[:4]:
        with pytest.raises(imgsvc.CorruptImage):
            imgsvc.process(file(format)[:-40], {"output": {"keep_pixels": True}})


def test_targets_digests_and_facts_are_those_of_the_file(tmp_path: Path) -> None:
    data, target = file("jpg"), tmp_path / "result.jpg"
    wanted = {"output": {"keep_pixels": True, "facts": ["dominant"]}}
    written = imgsvc.process(data, wanted, target, digest=True)
    alone = imgsvc.process(data, {"output": {"keep_pixels": True}}, digest=True)
    assert target.read_bytes() == alone.data
    assert written.output.sha256 == alone.output.sha256 == imgsvc.inspect(target, digest=True).sha256
    assert written.output.facts["dominant"]
    assert pickle.loads(pickle.dumps(alone)).data == alone.data
    with pytest.raises(TypeError, match="were not decoded"):
        alone.to_numpy()


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"resize": {"width": 9}}, "resize"),
        ({"filter": {"sepia": {"value": 9}}}, "filter"),
        ({"output": {"quality": 9}}, "output.quality"),
        ({"output": {"if_smaller": True}}, "output.if_smaller"),
    ],
)
def test_nothing_else_can_be_asked_for(request_: dict[str, Any], path: str) -> None:
    kept = {**request_, "output": {**request_.get("output", {}), "keep_pixels": True}}
    with pytest.raises(imgsvc.SpecError, match="must be left out when") as caught:
        imgsvc.parse(kept)
    assert [problem.path for problem in caught.value.problems] == [path]


def test_other_formats_are_refused(tmp_path: Path) -> None:
    kept = {"output": {"keep_pixels": True}}
    with pytest.raises(imgsvc.UnsupportedOperation, match="keeps the format jpg, the result is to be webp"):
        imgsvc.process(file("jpg"), kept, tmp_path / "result.webp")
    for source in (coffee(), pyvips.Image.black(9, 9).gifsave_buffer()):
        with pytest.raises(imgsvc.UnsupportedOperation, match="is for files of JPEG, PNG"):
            imgsvc.process(source, {"output": {**kept["output"], "format": "gif"}})


@pytest.mark.parametrize("format", FORMATS)
def test_the_original_stays_where_encoding_saves_nothing(format: str, tmp_path: Path) -> None:
    data, target = file(format), tmp_path / f"result.{format[:4].strip(',')}"
    smaller = (
        {"output": {"if_smaller": True, "quality": 90}}
        if format in ("jpg", "avif")
        else {"output": {"if_smaller": True}}
    )
    kept = imgsvc.process(data, {"output": {"keep_pixels": True}}).data
    again = imgsvc.process(data, {"output": {**smaller["output"], "if_smaller": False}}).data
    result = imgsvc.process(data, smaller)
    assert result.data == min(kept, again, key=len)
    assert PLACE not in result.data
    assert bool(result.notes) == (result.data == kept)
    assert imgsvc.process(data, smaller, target).output.bytes == len(result.data)
    assert target.read_bytes() == result.data


def test_the_original_stays_at_the_same_size() -> None:
    data = imgsvc.process(coffee(), {"output": {"format": "png"}}).data
    result = imgsvc.process(data, {"output": {"if_smaller": True}})
    assert (result.data, len(result.notes)) == (data, 1)


def test_a_format_whose_pixels_cannot_stay_tells_all_that_it_lost() -> None:
    colors = np.random.default_rng(3).integers(0, 255, (16, 16, 3), np.uint8)
    gif = io.BytesIO()
    Image.fromarray(colors).quantize(256, dither=Image.Dither.NONE).save(gif, "GIF")
    result = imgsvc.process(gif.getvalue(), {"output": {"if_smaller": True, "colors": 255}})
    assert len(result.data) >= len(gif.getvalue())
    assert result.notes == (
        "The colors are reduced to 255.",
        "The result is no smaller, but metadata of GIF goes only with another encoding.",
    )


def test_the_original_never_stays_after_a_change() -> None:
    data = file("jpg", quality=10)
    for change in ({"resize": {"width": 89}}, {"flip": {"horizontal": True}}, {"adjust": {"contrast": 1}}):
        result = imgsvc.process(data, {**change, "output": {"if_smaller": True, "quality": 95}})
        assert len(result.data) > len(data)
        assert not result.notes
    result = imgsvc.process(data, {"output": {"if_smaller": True, "format": "png"}})
    assert result.output.format == "png"


def test_the_original_never_stays_for_some_of_its_frames() -> None:
    first, *others = [Image.fromarray(frame) for frame in moving_frames(3, 60, 40)]
    file = io.BytesIO()
    first.save(file, "WEBP", save_all=True, append_images=others, quality=1)
    left: dict[str, dict[str, int]] = {
        "the first 2 of 3 frames are": {"frames": 2}, "the first of 3 frames is": {"frames": 1},
        "number 2 of 3 frames is": {"frame": 1},
    }  # fmt: skip
    for told, asked in left.items():
        output = imgsvc.Output(**asked, if_smaller=True, quality=100)
        result = imgsvc.process(file.getvalue(), imgsvc.Spec(output=output))
        assert result.notes == (f"Only {told} kept.",)
        assert imgsvc.inspect(result.data).frames == asked.get("frames", 1)


def test_plans_tell_what_stays() -> None:
    data = file("jpg")
    kept = imgsvc.explain({"output": {"keep_pixels": True}}, data)
    assert "JPEG, its coded pixels as they are, metadata: strip" in str(kept)
    assert "or the pixels of the original" in str(imgsvc.explain({"output": {"if_smaller": True}}, data))


@pytest.mark.parametrize("format", ["JPEG", "WEBP"])
@pytest.mark.parametrize(
    "output", [{"if_smaller": True, "quality": 95}, {"keep_pixels": True}, {"quality": 5}]
)
def test_results_tell_their_size_as_it_is_shown(output: dict[str, Any], format: str) -> None:
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, (30, 40, 3), np.uint8))
    exif, data = Image.Exif(), io.BytesIO()
    exif[0x0112] = 6
    picture.save(data, format, quality=40, exif=exif.tobytes())
    result = imgsvc.process(data.getvalue(), {"output": output})
    told = result.to_dict()["output"]
    assert (told["width"], told["height"]) == result.output.upright_size == (30, 40)
    assert "30x40" in repr(result)
    file = imgsvc.inspect(result.data)
    assert file.upright_size == (30, 40)
    assert told["orientation"] == file.orientation == (1 if output == {"quality": 5} else 6)
