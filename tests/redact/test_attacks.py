"""What is redacted cannot be won back: the attacker knows all but the secret, and learns nothing.

The attacker has the result, the request, this program, and the source with every candidate in the place of
the secret: font, size, place, ground, compression and all other pixels are known. Each candidate goes the
same way, and those whose result is nearest win. No deconvolution knows more than this.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageDraw

import imgsvc_core as imgsvc
from imgsvc_core.formats.boxes import first_box, make_box, read_boxes
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.heif.items import read_items
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.formats.webp.header import FIRST_CHUNK, WebpFrame, riff
from tests.support import requires
from tests.support.handmade import pillow
from tests.support.photos import Pixels, as_vips, coffee

WORDS = ("4711 0815", "4711 0816", "1111 1111", "MMMM MMMM", "iiii iiii", "Anna Berg", "B-XY 1234", "")
SIZE = 40  # pixels
PLACE = 37, 29
GROUND = np.ascontiguousarray(coffee()[60:180, 150:470])


def written(text: str, ground: Pixels = GROUND, place: tuple[int, int] = PLACE) -> Pixels:
    """A text of 40 pixels on a picture."""
    layer = {
        "text": {"text": text, "font": "Inter Bold", "size": SIZE, "color": "FFFFFF"},
        "x": place[0],
        "y": place[1],
    }
    request = {"layers": [layer]} if text else {}
    return np.asarray(imgsvc.process(ground, request).to_numpy())


@pytest.fixture(scope="module")
def candidates() -> dict[str, Pixels]:
    return {text: written(text) for text in WORDS}


def tight_box(candidates: dict[str, Pixels]) -> dict[str, int]:
    """The smallest box around all pixels in which the candidates differ."""
    stack = np.stack(list(candidates.values())).astype(int)
    rows, columns = np.ptp(stack, axis=0).max(-1).nonzero()
    left, top = int(columns.min()), int(rows.min())
    return {"x": left, "y": top, "width": int(columns.max()) + 1 - left, "height": int(rows.max()) + 1 - top}


def as_png(pixels: Pixels) -> bytes:
    return _file(pixels, "PNG")


def as_jpeg(pixels: Pixels) -> bytes:
    return _file(pixels, "JPEG", quality=85)


def as_sharp_jpeg(pixels: Pixels) -> bytes:
    return _file(pixels, "JPEG", quality=60, subsampling=0, progressive=True)


def as_gray_jpeg(pixels: Pixels) -> bytes:
    return _file(np.asarray(Image.fromarray(pixels).convert("L")), "JPEG", quality=80)


def as_printed_jpeg(pixels: Pixels) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).convert("CMYK").save(file, "JPEG", quality=80)
    return file.getvalue()


def as_jpeg_of(subsampling: str) -> Callable[[Pixels], bytes]:
    def store(pixels: Pixels) -> bytes:
        import imagecodecs

        return bytes(imagecodecs.jpeg8_encode(pixels, level=80, subsampling=subsampling))

    return store


def as_webp(pixels: Pixels) -> bytes:
    return _file(pixels, "WEBP", quality=80)


def as_avif(pixels: Pixels, quality: int = 60, effort: int = 1) -> bytes:
    return bytes(as_vips(pixels).write_to_buffer(".avif", Q=quality, effort=effort))


def as_heic(pixels: Pixels) -> bytes:
    requires.module("pillow_heif")
    return _made(pixels, "heic", 50)


def as_jp2(pixels: Pixels) -> bytes:
    return _made(pixels, "jp2", 60)


def as_jxl(pixels: Pixels) -> bytes:
    requires.module("imagecodecs")
    return _made(pixels, "jxl", 80)


def as_tiff_of(compression: str, color: str = "RGB", **options: Any) -> Callable[[Pixels], bytes]:
    def store(pixels: Pixels) -> bytes:
        tifffile = requires.module("tifffile")
        stored = np.asarray(Image.fromarray(pixels).convert("L")) if color == "L" else pixels
        photometric = {"L": "minisblack", "RGB": "rgb"}.get(color, color)
        file = io.BytesIO()
        tifffile.imwrite(file, stored, compression=compression, photometric=photometric, **options)
        return file.getvalue()

    return store


as_webp_in_tiff = as_tiff_of("webp", compressionargs={"level": 80, "lossless": False})
as_webp_in_strips = as_tiff_of("webp", rowsperstrip=31, compressionargs={"level": 80, "lossless": False})


def as_animated_webp(
    pixels: Pixels, *, first_lossless: bool = False, place: tuple[int, int] = (0, 0)
) -> bytes:
    """An animation whose second frame begins at a place, and has the words."""
    left, top = place
    height, width = pixels.shape[:2]
    blank = pillow(np.full_like(pixels, 40), "WEBP", lossless=first_lossless)
    shown = pillow(np.ascontiguousarray(pixels[top:, left:]), "WEBP", quality=80)
    frames = (
        (WebpFrame(0, 0, width, height, 50, 2), blank),
        (WebpFrame(left, top, width - left, height - top, 50, 2), shown),
    )
    canvas = b"\2\0\0\0" + b"".join((side - 1).to_bytes(3, "little") for side in (width, height))
    chunks = [(b"ANMF", frame.head + data[FIRST_CHUNK:]) for frame, data in frames]
    return riff([(b"VP8X", canvas), (b"ANIM", bytes(6)), *chunks])


def _made(pixels: Pixels, format: str, quality: int) -> bytes:
    data = imgsvc.process(pixels, {"output": {"format": format, "quality": quality}}).data
    assert data is not None
    return data


def as_turned_jpeg(pixels: Pixels) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return _file(np.ascontiguousarray(np.rot90(pixels)), "JPEG", quality=85, exif=exif.tobytes())


def as_turned_avif(pixels: Pixels) -> bytes:
    """An AVIF whose blocks begin at the right and lower edges, by a property that turns it by a half."""
    data = as_avif(np.ascontiguousarray(np.rot90(pixels, 2)), quality=30, effort=4)
    reader = HeaderReader(ByteSource(data), "AVIF")
    items = read_items(reader)
    container = first_box(reader, items.boxes[b"iprp"], b"ipco")
    uses = first_box(reader, items.boxes[b"iprp"], b"ipma")
    assert container is not None
    assert uses is not None
    count = len(list(read_boxes(reader, container.start, container.end)))
    turn = make_box(b"irot", b"\2")
    place = uses.start + 10  # of the number of properties of the only item
    listed = data[container.start : container.end] + turn
    used = bytearray(data[uses.start : uses.end])
    used[place - uses.start] += 1
    used.append(0x80 | count + 1)
    properties = make_box(b"iprp", make_box(b"ipco", listed) + make_box(b"ipma", bytes(used)))
    meta = next(box for box in read_boxes(reader, 0, reader.size) if box.kind == b"meta")
    old = items.boxes[b"iprp"]
    changed = make_box(b"meta", data[meta.start : old.begin] + properties + data[old.end : meta.end])
    coded = data.index(b"mdat") + 4
    moved = coded + len(changed) - (meta.end - meta.begin)
    changed = changed.replace(coded.to_bytes(4, "big"), moved.to_bytes(4, "big"))
    return data[: meta.begin] + changed + data[meta.end :]


def _file(pixels: Pixels, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format, **options)
    return file.getvalue()


def results(
    candidates: dict[str, Pixels], store: Callable[[Pixels], bytes], request: Any
) -> dict[str, bytes]:
    return {text: imgsvc.process(store(pixels), request).data for text, pixels in candidates.items()}


def ranks(made: dict[str, bytes]) -> list[int]:
    """How many other candidates look no less like the result of each secret than the secret itself."""
    pixels = {text: np.asarray(Image.open(io.BytesIO(data))).astype(float) for text, data in made.items()}
    found = []
    for secret, seen in pixels.items():
        distances = {text: float(((other - seen) ** 2).sum()) for text, other in pixels.items()}
        found.append(sum(value <= distances[secret] for text, value in distances.items() if text != secret))
    return found


@pytest.mark.parametrize("store", [as_png, as_jpeg, as_sharp_jpeg, as_turned_jpeg])
@pytest.mark.parametrize("mode", ["color", "pixels", "blur"])
def test_a_look_up_of_all_candidates_tells_none_apart(
    mode: str, store: Callable[[Pixels], bytes], candidates: dict[str, Pixels]
) -> None:
    request = {
        "redact": [{**tight_box(candidates), "mode": mode}],
        "trim": {"threshold": 10},
        "auto": {"enhance": True},
        "resize": {"width": 250},
        "output": {"format": "png"},
    }
    made = results(candidates, store, request)
    assert ranks(made) == [len(WORDS) - 1] * len(WORDS)
    assert len(set(made.values())) == 1


STORES_IN_BLOCKS = [
    as_gray_jpeg, as_printed_jpeg, *map(as_jpeg_of, ("422", "440", "411")),
    as_tiff_of("jpeg", subsampling=(1, 1)), as_tiff_of("jpeg", "L"),
    *(as_tiff_of("jpeg", "ycbcr", subsampling=steps) for steps in ((2, 1), (2, 2), (4, 1))),
]  # fmt: skip


@pytest.mark.parametrize("store", STORES_IN_BLOCKS)
def test_all_kinds_of_blocks_are_covered(
    store: Callable[[Pixels], bytes], candidates: dict[str, Pixels]
) -> None:
    request = {"redact": [tight_box(candidates)], "output": {"format": "png"}}
    assert len(set(results(candidates, store, request).values())) == 1


@pytest.mark.parametrize("store", [as_webp, as_avif, as_heic, as_jp2])
def test_coding_the_result_again_with_each_candidate_finds_few(
    store: Callable[[Pixels], bytes], candidates: dict[str, Pixels]
) -> None:
    """Formats that predict blocks from others leave traces of a secret elsewhere.

    To read them one would need the pixels from before the coding. With those of the result as ground, the
    coding of each candidate is as far away as that of the secret.
    """
    request = {"redact": [{**tight_box(candidates), "mode": "pixels"}]}
    found = []
    for secret in WORDS[:-1]:
        source = store(candidates[secret])
        bare, seen = (np.asarray(imgsvc.process(source, asked).to_numpy()) for asked in ({}, request))
        outside = (seen == bare).all(-1)
        ground = np.ascontiguousarray(seen)
        distances = {}
        for text in WORDS[:-1]:
            again = np.asarray(imgsvc.process(store(written(text, ground)), {}).to_numpy()).astype(int)
            distances[text] = int(((again - seen)[outside] ** 2).sum())
        found.append(min(distances, key=distances.__getitem__) == secret)
    assert sum(found) <= 2  # of 7; by chance it is 1


def on_paper(top: int = 129) -> dict[str, Pixels]:
    """Words of a document: what surrounds them is known from before the coding."""
    paper = np.full((320, 640, 3), 40, np.uint8)
    return {text: written(text, paper, (187, top)) for text in WORDS[:5]}


def without_traces(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Let boxes be as tight as they are asked for."""
    row = FORMATS[imgsvc.inspect(data).format]
    monkeypatch.setattr(row, "traces", classmethod(lambda cls, info: (1, 0)))


@pytest.mark.parametrize("store", [as_webp, as_webp_in_tiff, as_avif, as_heic, as_jxl])
def test_on_a_plain_ground_that_is_known_no_traces_are_left(
    store: Callable[[Pixels], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = on_paper()
    request = {"redact": [tight_box(candidates)], "output": {"format": "png"}}
    assert len(set(results(candidates, store, request).values())) == 1
    without_traces(monkeypatch, store(GROUND))
    assert ranks(results(candidates, store, request)) == [0] * len(candidates)


@pytest.mark.parametrize(
    "store",
    [
        partial(as_animated_webp, first_lossless=True),
        partial(as_animated_webp, place=(14, 12)),
        as_webp_in_strips,
    ],
)
def test_traces_end_within_the_box_wherever_blocks_begin(store: Callable[[Pixels], bytes]) -> None:
    for top in (120, 137):  # the last line of the words is the first one of a block
        candidates = on_paper(top)
        request = {"redact": [tight_box(candidates)], "output": {"format": "apng"}}
        assert len(set(results(candidates, store, request).values())) == 1


def test_traces_end_within_the_box_of_a_turned_picture() -> None:
    for top in (129, 137):
        paper = np.full((300, 430, 3), 40, np.uint8)
        candidates = {text: written(text, paper, (97, top)) for text in WORDS[:5]}
        request = {"redact": [tight_box(candidates)], "output": {"format": "png"}}
        assert len(set(results(candidates, as_turned_avif, request).values())) == 1


def test_wavelets_leave_faint_traces_beside_a_box(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = on_paper()
    request = {"redact": [tight_box(candidates)], "output": {"format": "png"}}

    def spread() -> int:
        made = results(candidates, as_jp2, request).values()
        pixels = [np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) for data in made]
        return int(np.ptp(np.stack(pixels).astype(int), axis=0).max())

    assert spread() <= 2
    without_traces(monkeypatch, as_jp2(GROUND))
    assert spread() > 20


def test_the_look_up_finds_every_word_behind_cells_of_its_own_pixels(candidates: dict[str, Pixels]) -> None:
    """Eight cells along a text are unreadable to people, and tell all of the candidates apart."""
    box = tight_box(candidates)
    made = {}
    for text, pixels in candidates.items():
        covered = Image.fromarray(pixels)
        place = box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]
        cells = covered.crop(place).resize((8, 2), Image.Resampling.BOX)
        covered.paste(cells.resize((box["width"], box["height"]), Image.Resampling.NEAREST), place)
        made[text] = as_png(np.asarray(covered))
    assert ranks(made) == [0] * len(WORDS)


def test_traces_beside_a_tight_box_would_tell_words_apart(
    candidates: dict[str, Pixels], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of a JPEG spread them, so boxes cover whole blocks."""
    request = {"redact": [tight_box(candidates)], "output": {"format": "png"}}
    assert len(set(results(candidates, as_jpeg, request).values())) == 1
    without_traces(monkeypatch, as_jpeg(GROUND))
    assert ranks(results(candidates, as_jpeg, request)) == [0] * len(WORDS)


INSIDE = arrays(np.uint8, (30, 50, 3))


@given(INSIDE, INSIDE, st.sampled_from(["color", "pixels", "blur"]), st.booleans())
@settings(max_examples=40)
def test_whatever_is_in_the_boxes_the_result_is_the_same(
    first: Pixels, second: Pixels, mode: str, beside: bool
) -> None:
    """Two boxes side by side: neither takes colors from the other."""
    entries = [{"x": 40, "y": 35, "width": 50, "height": 30, "mode": mode}]
    if beside:
        entries = [{**entries[0], "width": 21}, {**entries[0], "x": 61, "width": 29, "mode": "pixels"}]
    made = []
    for inside in (first, second):
        pixels = GROUND.copy()
        pixels[35:65, 40:90] = inside
        made.append(imgsvc.process(pixels, {"redact": entries}).to_numpy())
    np.testing.assert_array_equal(*made)


def test_nothing_is_won_from_many_frames_with_a_moving_ground() -> None:
    """A text that stands still while all around it moves has many samples, and shows in none of them."""

    def film(text: str) -> bytes:
        frames = []
        for shift in range(6):
            picture = Image.fromarray(np.roll(GROUND, 7 * shift, axis=1))
            ImageDraw.Draw(picture).text(PLACE, text, font_size=SIZE, fill="white")
            frames.append(picture)
        file = io.BytesIO()
        frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], lossless=True, duration=50)
        return file.getvalue()

    films = [film(text) for text in WORDS[:3]]
    for mode in ("pixels", "blur", "color"):
        box = {"x": 30, "y": 25, "width": 220, "height": 55, "mode": mode}
        request = {"redact": [box], "output": {"lossless": True, "effort": 1}}
        made = [imgsvc.process(data, request) for data in films]
        assert made[0].output.frames == 6
        assert len({result.data for result in made}) == 1
    assert films[0] != films[1]
