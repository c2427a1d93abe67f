"""No way around the pixels: metadata, smaller copies, formats, originals, frames and measurements."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.errors import SpecError
from imgsvc_core.formats.metadata import wrap_iptc
from imgsvc_core.formats.table import OUTPUT_NAMES
from tests.process.pictures import pixels_of
from tests.support import encoded, requires
from tests.support.decoded import decode
from tests.support.encoded import Encoded
from tests.support.handmade import pillow
from tests.support.photos import Pixels, as_vips, astronaut, coffee

BOX = {"x": 16, "y": 16, "width": 48, "height": 32}
INSIDE = slice(16, 48), slice(16, 64)
SECRET = b"SECRET"


def exif_block() -> bytes:
    """What a camera says, and what would bring the picture back, marked by a word."""
    exif = Image.Exif()
    exif.update({0x010E: "SECRET in words", 0x010F: "Maker", 0x0110: "Model 5", 0x9C9B: b"SECRET title"})
    exif.update({0x013B: "Ann", 0x8298: "Held by Ann", 0x02BC: b"SECRET as XMP", 0xC4A5: b"SECRET print"})
    exif.get_ifd(0x8769).update(
        {0x9003: "2024:05:06 07:08:09", 0x8827: 400, 0x927C: SECRET * 40, 0x9286: b"ASCII\0\0\0SECRET",
         0xA433: "Lens " + 70 * "SECRET", 0xEA1C: SECRET}
    )  # fmt: skip
    exif.get_ifd(0x8825).update({1: "N", 2: (48.0, 8.0, 0.0), 0x1C: b"ASCII\0\0\0SECRET"})
    return exif.tobytes()


def baited() -> bytes:
    """A JPEG that tells its picture in every way besides pixels."""
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    xmp += (
        b'<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        b'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:p="http://ns.google.com/photos/1.0/image/" '
        b'p:Data="SECRET" xmp:Label="SECRET"><dc:description>SECRET</dc:description>'
        b"</rdf:Description></rdf:RDF></x:xmpmeta>"
    )
    caption, by = (
        b"\x1c\x02" + bytes([kind]) + struct.pack(">H", 6) + text
        for kind, text in ((120, SECRET), (80, b"Ann Ng"))
    )
    profile = bytearray(encoded.profile() + SECRET * 4)
    profile += bytes(-len(profile) % 4)
    profile[:4] = struct.pack(">I", len(profile))
    data = pillow(
        encoded.photo(),
        "JPEG",
        quality=95,
        exif=exif_block(),
        xmp=xmp,
        icc_profile=bytes(profile),
        comment=SECRET,
    )
    preview = b"JFXX\0\x10" + SECRET + pillow(encoded.photo(), "JPEG", quality=40)
    resource = wrap_iptc(caption + by) + b"8BIM" + struct.pack(">HHI", 0x040C, 0, 6) + SECRET
    extra = b"".join(
        struct.pack(">HH", marker, len(content) + 2) + content
        for marker, content in ((0xFFE0, preview), (0xFFED, resource), (0xFFE2, b"MPF\0" + SECRET))
    )
    return data[:2] + extra + data[2:] + pillow(encoded.photo(), "JPEG", comment=SECRET)  # and a gain map


@pytest.mark.parametrize("policy", ["strip", "copyright", "keep"])
@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_metadata_keeps_nothing_that_shows_or_tells_the_picture(format: str, policy: str) -> None:
    source = baited()
    assert source.count(SECRET) > 90
    output = {"format": format, "metadata": policy}
    data = imgsvc.process(source, {"redact": [BOX], "output": output}).data
    written = io.BytesIO()
    imgsvc.process(source, {"redact": [BOX], "output": output}, written)
    assert written.getvalue() == data
    plain = imgsvc.process(source, {"output": output}).data
    assert SECRET not in data
    if format in ("heic", "jxl"):
        return  # which Pillow cannot read
    with Image.open(io.BytesIO(data)) as picture:
        told = dict(picture.getexif()), dict(picture.getexif().get_ifd(0x8769))
        position = dict(picture.getexif().get_ifd(0x8825))
        packed = [value for value in picture.info.values() if isinstance(value, bytes | str)]
    assert SECRET not in repr((told, position, packed)).encode()
    assert data.count(b"\xff\xd8\xff") == (format == "jpg")
    if policy == "keep" and format in ("jpg", "png", "webp", "tiff"):
        assert SECRET in plain or format == "png"  # which packs it
        assert (told[0][0x0110], told[0][0x8298]) == ("Model 5", "Held by Ann")
        assert (told[1][0x9003], told[1][0x8827]) == ("2024:05:06 07:08:09", 400)
        assert position[1] == "N"
    elif policy == "strip":
        assert not (told[0].keys() & {0x0110, 0x8298})


def test_the_profile_is_libvips_own_and_colors_stay() -> None:
    source = baited()
    kept, plain = (imgsvc.process(source, request).data for request in ({"redact": [BOX]}, {}))
    mine = pyvips.Image.new_from_buffer(kept, "").get("icc-profile-data")
    assert mine == pyvips.Operation.call("profile_load", "srgb")
    assert mine != pyvips.Image.new_from_buffer(plain, "").get("icc-profile-data")
    difference = np.abs(pixels_of(kept).astype(int) - pixels_of(plain))[:, 80:]
    assert difference.mean() < 1


def two_sources(name: str) -> list[bytes]:
    """Two files that differ inside of the box alone, also in their palettes."""
    stripes = (encoded.photo() // 64 * 64, encoded.photo() // 64 * 64)
    for pixels, color in zip(stripes, ((250, 10, 3), (3, 200, 90)), strict=True):
        pixels[INSIDE] = color
        pixels[20:40:5, 20:60:3] = 255
    stripes[1][30:33, 20:60] = (9, 9, 99)
    palettes = [Image.fromarray(pixels).quantize(256, dither=Image.Dither.NONE) for pixels in stripes]
    if name == "palette":
        return [pillow(picture, "PNG") for picture in palettes]
    if name in ("gif", "gif_animated"):
        more = {"save_all": True, "append_images": None, "duration": 80}
        files = []
        for picture in palettes:
            more["append_images"] = [picture.transpose(Image.Transpose.ROTATE_180).rotate(180), picture]
            files.append(pillow(picture, "GIF", **(more if name == "gif_animated" else {})))
        return files
    options: dict[str, dict[str, Any]] = {
        "JPEG2000": {"irreversible": False, "mct": 1},
        "WEBP": {"lossless": True, "exact": True},
        "JPEG": {"quality": 90},
        "ICO": {"sizes": [(encoded.WIDTH, encoded.HEIGHT)]},
    }
    return [pillow(pixels, name, **options.get(name, {})) for pixels in stripes]


KINDS = ("PNG", "palette", "gif", "gif_animated", "WEBP", "TIFF", "BMP", "JPEG2000", "ICO", "JPEG")


@pytest.mark.parametrize("mode", ["color", "pixels"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_format_tells_what_was_inside(kind: str, mode: str) -> None:
    """The second request would give the file of the source back, the third also measures the pixels."""
    first, second = two_sources(kind)
    assert first != second
    entry = {**BOX, "mode": mode}
    facts = ["palette", "phash", "blurhash"]
    for output in ({"metadata": "keep"}, {"if_smaller": True}, {"facts": facts}, {"format": "auto"}):
        made = [imgsvc.process(source, {"redact": [entry], "output": output}) for source in (first, second)]
        assert made[0].data == made[1].data
        assert made[0].output == made[1].output
        assert made[0].data not in (first, second)


@pytest.mark.parametrize("name", sorted(encoded.VARIANTS))
def test_all_kinds_of_sources_are_covered(name: str) -> None:
    source = encoded.encoded(name)
    box = {"x": "25%", "y": "25%", "width": "50%", "height": "50%", "color": "FF00FF"}
    made = imgsvc.process(source.data, {"redact": [box], "output": {"format": "png"}})
    shown = pixels_of(made.data)
    height, width = shown.shape[:2]
    inner = shown[height // 4 : height * 3 // 4, width // 4 : width * 3 // 4, :3]
    assert (inner == (255, 0, 255)).all()


@pytest.mark.parametrize("source", [encoded.gif_animated(), encoded.apng(), encoded.webp_animated()])
def test_every_frame_is_covered_and_nothing_else(source: Encoded) -> None:
    request = {"redact": [{**BOX, "color": "00F"}], "output": {"format": "apng"}}
    plain = imgsvc.process(source.data, {"output": {"format": "apng"}})
    before, after = (
        decode("apng", made.data)[0][..., :3] for made in (plain, imgsvc.process(source.data, request))
    )
    assert after.shape == before.shape
    assert len(after) == len(source.pixels) > 1
    left, top, right, bottom = (15, 15, 65, 49) if source.format == "webp" else (16, 16, 64, 48)
    inside = np.zeros(before.shape[1:3], bool)
    inside[top:bottom, left:right] = True
    assert (after[:, 16:48, 16:64] == (0, 0, 255)).all()
    np.testing.assert_array_equal(after[:, ~inside], before[:, ~inside])


def test_a_trim_does_not_tell_how_far_a_hidden_text_reaches() -> None:
    box = {"x": 20, "y": 20, "width": 120, "height": 30}
    made = []
    for end in (40, 130):
        pixels = np.full((80, 200, 3), 255, np.uint8)
        pixels[25:45, 25:end] = 0
        request = {"redact": [{**box, "mode": "color", "color": "fff"}], "trim": {"threshold": 10}}
        made.append(imgsvc.process(encoded_png(pixels), request))
    assert made[0].data == made[1].data
    bare = imgsvc.process(encoded_png(pixels), {"trim": {"threshold": 10}})
    assert (bare.output.width, bare.output.height) == (105, 20)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_border_is_looked_for_in_the_covered_upright_picture(orientation: int) -> None:
    pixels = np.full((90, 60, 3), 255, np.uint8)
    pixels[20:50, 8:40] = coffee()[100:130, 200:232] // 2
    exif = Image.Exif()
    exif[0x0112] = orientation
    source = pillow(pixels, "PNG", exif=exif.tobytes())
    asked = {"redact": [{"x": 5, "y": 5, "width": 33, "height": 31, "color": "fff"}]}
    covered = imgsvc.process(source, {**asked, "output": {"format": "png"}}).data
    trim = {"trim": {"threshold": 10}, "output": {"format": "png"}}
    at_once, later = imgsvc.process(source, {**asked, **trim}), imgsvc.process(covered, trim)
    np.testing.assert_array_equal(pixels_of(at_once.data), pixels_of(later.data))
    assert at_once.output.width < 60


def test_variants_of_one_decoding_are_covered_each_as_it_says() -> None:
    source = encoded_png(coffee()[:80, :200])
    box = {"x": 20, "y": 20, "width": 120, "height": 30, "color": "F00"}
    trim = {"threshold": 250}
    made = imgsvc.process_variants(
        source, {"open": {"trim": trim}, "shut": {"redact": [box], "trim": {"threshold": 0, "color": "F00"}}}
    )
    assert made["shut"].output.width == 200
    assert tuple(pixels_of(made["shut"].data)[30, 60]) == (255, 0, 0)
    assert tuple(pixels_of(made["open"].data)[30, 60]) != (255, 0, 0)


def test_pixels_of_the_source_never_stay_beside_it() -> None:
    with pytest.raises(SpecError) as caught:
        imgsvc.process(encoded.jpeg().data, {"redact": [BOX], "output": {"keep_pixels": True}})
    assert [problem.path for problem in caught.value.problems] == ["redact"]


def encoded_png(pixels: Pixels) -> bytes:
    return bytes(as_vips(pixels).pngsave_buffer(compression=1))


def faces_in(data: bytes) -> int:
    found = imgsvc.process(data, {"crop": {"mode": "face"}}).faces
    return len(found or ())


@pytest.mark.parametrize("mode", ["color", "pixels", "blur"])
def test_faces_are_found_and_nobody_finds_them_again(mode: str) -> None:
    requires.module("cv2")
    portrait = encoded_png(astronaut())
    made = imgsvc.process(portrait, {"redact": [{"faces": True, "mode": mode}], "output": {"format": "png"}})
    assert faces_in(portrait) == 1
    assert faces_in(made.data) == 0
    [face] = made.faces
    changed = (pixels_of(made.data) != astronaut()).any(-1)
    rows, columns = changed.any(1).nonzero()[0], changed.any(0).nonzero()[0]
    assert columns.min() < face.left < face.left + face.width < columns.max()
    assert rows.min() < face.top < face.top + face.height < rows.max()
    assert len(rows) < 2 * face.height


def test_a_picture_without_faces_passes_only_if_told_so() -> None:
    requires.module("cv2")
    source, free = encoded_png(coffee()), {"faces": True, "if_found": True}
    with pytest.raises(SpecError) as caught:
        imgsvc.process(source, {"redact": [free, {"faces": True, "mode": "blur"}]})
    assert [problem.path for problem in caught.value.problems] == ["redact[1].faces"]
    made = imgsvc.process(source, {"redact": [free]})
    np.testing.assert_array_equal(pixels_of(made.data), coffee())
    same = imgsvc.process(made.data, {"redact": [free], "output": {"if_smaller": True}})
    assert not [note for note in same.notes if "stay as they were" in note]
    assert [
        note for note in imgsvc.process(made.data, {"output": {"if_smaller": True}}).notes if "stay" in note
    ]
    for request in ({"crop": {"mode": "face"}}, {}):  # which take a picture without faces as it is
        with pytest.raises(SpecError):
            imgsvc.process(source, {"redact": [{"faces": True}], **request})


def test_a_face_of_a_later_frame_is_covered_in_all_frames() -> None:
    requires.module("cv2")
    portrait = Image.fromarray(astronaut())
    file = io.BytesIO()
    frames = [Image.fromarray(coffee()).resize(portrait.size), portrait]
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], lossless=True, duration=100)
    request = {"redact": [{"faces": True}], "output": {"format": "apng"}}
    made = imgsvc.process(file.getvalue(), request)
    for before, after in zip(frames, decode("apng", made.data)[0], strict=True):
        changed = (np.asarray(before) != after[..., :3]).any(-1)
        assert changed[100:180, 190:250].all()
        assert changed.mean() < 0.2
    assert made.faces == ()


def test_the_detector_is_needed_only_for_faces(monkeypatch: pytest.MonkeyPatch) -> None:
    requires.module("cv2")
    monkeypatch.setattr("imgsvc_core.pixels.face_search.find_spec", lambda name: None)
    monkeypatch.setattr("imgsvc_core.pixels.face_search._model", imgsvc_core_model())
    source = encoded_png(astronaut())
    assert imgsvc.process(source, {"redact": [BOX]}).output.width == 512
    with pytest.raises(imgsvc.MissingDependency, match=r"imgsvc\[faces\]"):
        imgsvc.process(source, {"redact": [{"faces": True, "if_found": True}]})


def imgsvc_core_model() -> Any:
    from imgsvc_core.pixels import face_search

    return face_search._model.__wrapped__


def test_texts_of_png_sources_go() -> None:
    data = encoded.png().data
    text = b"Comment\0\0" + zlib.compress(SECRET)
    chunk = struct.pack(">I", len(text)) + b"zTXt" + text + struct.pack(">I", zlib.crc32(b"zTXt" + text))
    made = imgsvc.process(
        data[:33] + chunk + data[33:], {"redact": [BOX], "output": {"metadata": "keep"}}
    ).data
    assert b"zTXt" not in made
    assert b"tEXt" not in made
