"""Animations: every frame, every delay and the number of plays, read and written exactly."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core._runtime.deadline import Deadline
from imgsvc_core.errors import CorruptImage, ImageTooLarge, TimeLimitExceeded
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.changes import changed_area
from imgsvc_core.formats.gif.writing import in_hundredths
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import LoadSettings, SaveSettings
from imgsvc_core.limits import Limits, check_source
from tests.support import photos
from tests.support.decoded import decode
from tests.support.encoded import frames, photo, transparent
from tests.support.handmade import (
    ApngFrame,
    apng_by_hand,
    gif_codes,
    pillow,
    png_chunk,
    png_header,
    png_scanlines,
    vips,
)
from tests.support.perceptual import distance
from tests.support.photos import Pixels

_ANIMATED = ["apng", "gif", "webp"]


def strip(pictures: Pixels, delays: list[int] | None = None, plays: int | None = None) -> pyvips.Image:
    image = vips(pictures.reshape(-1, *pictures.shape[2:]))
    image.set_type(pyvips.GValue.gint_type, "page-height", pictures.shape[1])
    if delays is not None:
        image.set_type(pyvips.GValue.array_int_type, "delay", delays)
    if plays is not None:
        image.set_type(pyvips.GValue.gint_type, "loop", plays)
    return image


def write(image: pyvips.Image, format: str, **options: Any) -> bytes:
    data = save(image, SaveSettings(format=format, **options)).data
    assert data is not None
    return data


def read(data: bytes, *, all_frames: bool = True) -> pyvips.Image:
    source = ByteSource(data)
    return load(probe(source), LoadSettings(all_frames=all_frames, sequential=False))


@pytest.mark.parametrize("screen", [(200, 100), (640, 480), (2048, 65), (3000, 70)])
@pytest.mark.parametrize("disposal", [1, 2, 3])
def test_gif_frames_lie_on_the_whole_screen(screen: tuple[int, int], disposal: int) -> None:
    pictures = [Image.new("RGBA", (96, 64), (250, 0, 0, 0)) for _ in range(3)]
    for index, picture in enumerate(pictures):
        picture.paste((0, 0, 250, 255), (20 * index, 10, 20 * index + 30, 40))
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=70, disposal=disposal)
    small = file.getvalue()
    large = small[:6] + struct.pack("<HH", *screen) + small[10:]
    expected, found = read(small), read(large)
    assert (found.width, found.get_page_height(), found.get("delay")) == (*screen, [70, 70, 70])
    for index in range(3):
        frame = found.crop(0, index * screen[1], *screen).numpy()
        assert np.array_equal(frame[:64, :96], expected.crop(0, 64 * index, 96, 64).numpy())
        assert np.count_nonzero(frame[..., 3]) == np.count_nonzero(frame[:64, :96, 3]) > 0
    still = load(probe(ByteSource(large)))
    assert np.array_equal(still.numpy(), found.crop(0, 0, *screen).numpy())
    opaque = io.BytesIO()
    Image.fromarray(photo()).save(opaque, "GIF")
    painted = read(opaque.getvalue()[:6] + struct.pack("<HH", *screen) + opaque.getvalue()[10:])
    height, width = photo().shape[:2]
    assert (painted.width, painted.height, painted.bands) == (*screen, 4)
    opacity = painted.numpy()[..., 3]
    assert opacity[:height, :width].all()
    assert np.count_nonzero(opacity) == height * width


@pytest.mark.parametrize(
    ("screen", "size"), [((0, 0), (20, 10)), ((0, 30), (20, 30)), ((30, 0), (30, 10)), ((5, 50), (20, 50))]
)
def test_a_gif_is_as_large_as_its_screen_and_its_first_frame(
    screen: tuple[int, int], size: tuple[int, int]
) -> None:
    """As in Pillow."""
    whole = pillow(np.zeros((10, 20), np.uint8), "GIF")
    data = whole[:6] + struct.pack("<HH", *screen) + whole[10:]
    info = imgsvc.inspect(data)
    assert (info.width, info.height) == Image.open(io.BytesIO(data)).size == size


_SCREEN = (0, 0, 8, 6)


@pytest.mark.parametrize(
    ("parts", "transparent"),
    [
        ([((2, 2, 4, 3), 0)], True),
        ([(_SCREEN, 0)], False),
        ([((0, 0, 9, 9), 0)], False),
        ([(_SCREEN, 0), ((3, 3, 2, 2), 0), ((0, 0, 1, 1), 0)], False),
        ([(_SCREEN, 2), (_SCREEN, 2), (_SCREEN, 2)], False),
        ([(_SCREEN, 3), (_SCREEN, 3), ((3, 3, 2, 2), 0)], True),
        ([((2, 2, 4, 3), 0), (_SCREEN, 0)], True),
        ([(_SCREEN, 3), ((3, 3, 2, 2), 0)], True),
        ([(_SCREEN, 1), ((3, 3, 2, 2), 3), ((0, 0, 1, 1), 0)], False),
        ([(_SCREEN, 2), ((2, 2, 4, 3), 0)], True),
        ([(_SCREEN, 1), ((1, 1, 4, 3), 2), ((0, 0, 2, 2), 0)], True),
        ([(_SCREEN, 1), ((1, 1, 3, 3), 2), ((1, 1, 4, 4), 0)], False),
        ([(_SCREEN, 1), ((6, 4, 9, 9), 2), ((6, 4, 2, 2), 0)], False),
        ([(_SCREEN, 1), ((6, 4, 9, 9), 2), ((5, 5, 2, 9), 0)], True),
        ([(_SCREEN, 2), (_SCREEN, 3), ((3, 3, 2, 2), 0)], True),
        ([(_SCREEN, 2), (_SCREEN, 4), ((3, 3, 2, 2), 2), ((0, 0, 1, 1), 1)], True),
        ([(_SCREEN, 2), ((2, 2, 4, 3), 2, "clear"), ((3, 3, 2, 2), 0)], True),
        ([(_SCREEN, 1, "clear"), ((2, 2, 4, 3), 2), ((3, 3, 2, 2), 0)], True),
        ([((0, 0, 9, 7), 2), ((8, 6, 1, 1), 0)], True),
    ],
)
def test_gif_shows_the_empty_screen_as_transparent(parts: list[Any], transparent: bool) -> None:
    """Frames of opaque colors, but for "clear" ones, on a screen of 8 x 6 pixels, as browsers show them."""
    size = (max(8, parts[0][0][2]), max(6, parts[0][0][3]))
    body = [
        b"GIF89a",
        struct.pack("<HHBBB", 8, 6, 0xF1, 0, 0),
        bytes((9, 9, 9, 250, 0, 0, 0, 99, 0, 0, 0, 250)),
    ]
    canvas = np.zeros((size[1], size[0], 4), np.uint8)
    shown = []
    for color, ((left, top, width, height), disposal, *clear) in enumerate(parts):
        body.append(struct.pack("<BBBBHBB", 0x21, 0xF9, 4, disposal << 2 | len(clear), 10, color, 0))
        body.append(struct.pack("<BHHHHB", 0x2C, left, top, width, height, 0))
        body.append(gif_codes([color] * (width * height), 2))
        before, area = canvas.copy(), (slice(top, top + height), slice(left, left + width))
        if not clear:
            canvas[area] = (*body[2][3 * color : 3 * color + 3], 255)
        shown.append(canvas.copy())
        if disposal in (3, 4):
            canvas = before
        elif disposal == 2:
            canvas[area] = 0
    data = b"".join((*body, b"\x3b"))
    assert probe(ByteSource(data)).info.alpha == transparent
    expected = np.stack(shown)[..., : 4 if transparent else 3].reshape(-1, size[0], 4 if transparent else 3)
    assert np.array_equal(read(data).numpy(), expected)


def _gif(screen: tuple[int, int], palette: bytes, frames: list[dict[str, Any]]) -> bytes:
    """A GIF of frames that say what differs from a frame that covers the screen, one below the other."""
    parts = [
        b"GIF89a",
        struct.pack("<HHBBB", *screen, 0x80 | _power(palette) if palette else 0, 0, 0),
        palette,
    ]
    for frame in frames:
        area, own = frame.get("area", (0, 0, *screen)), frame.get("palette", b"")
        transparent = frame.get("transparent")
        flags = frame.get("disposal", 1) << 2 | (transparent is not None)
        parts.append(struct.pack("<BBBBHBB", 0x21, 0xF9, 4, flags, 10, transparent or 0, 0))
        local = 0x80 | _power(own) if own else 0
        parts.append(struct.pack("<BHHHHB", 0x2C, *area, local | frame.get("interlaced", 0) << 6))
        parts += own, gif_codes(frame["pixels"], 4)
    return b"".join((*parts, b"\x3b"))


def _power(palette: bytes) -> int:
    return (len(palette) // 3).bit_length() - 2


@st.composite
def _gifs(draw: st.DrawFn) -> bytes:
    """A GIF whose first frame covers a small screen, of frames that libvips shows as browsers do."""
    width, height = draw(st.integers(1, 9)), draw(st.integers(1, 20))
    palettes = st.one_of(
        st.binary(min_size=48, max_size=48),
        st.binary(min_size=16, max_size=16).map(lambda grays: bytes(np.repeat(list(grays), 3).tolist())),
    )
    frames = []
    for number in range(draw(st.integers(1, 4))):
        left = draw(st.integers(0, width - 1)) if number else 0
        top = draw(st.integers(0, height - 1)) if number else 0
        size = (width, height)
        if number:
            size = (draw(st.integers(1, width - left)), draw(st.integers(1, height - top)))
        count = size[0] * size[1]
        frames.append(
            {
                "area": (left, top, *size),
                "palette": draw(st.one_of(st.just(b""), palettes)),
                "transparent": draw(st.one_of(st.none(), st.integers(0, 15))),
                "disposal": draw(st.sampled_from((0, 1, 3))) if number else 1,
                "interlaced": draw(st.booleans()),
                "pixels": draw(st.binary(min_size=count, max_size=count)).translate(_FOUR_BITS),
            }
        )  # fmt: skip
    return _gif((width, height), draw(palettes), frames)


_FOUR_BITS = bytes(value & 15 for value in range(256))


@given(_gifs())
@settings(max_examples=150)
def test_gif_frames_lie_upon_each_other(data: bytes) -> None:
    """libvips composes them by a program of others. It keeps an alpha that no pixel uses."""
    expected = pyvips.Image.gifload_buffer(data, n=-1)
    assert np.array_equal(_rgba(read(data)), _rgba(expected))
    assert np.array_equal(_rgba(read(data, all_frames=False)), _rgba(expected)[: expected.get_page_height()])


def _rgba(image: pyvips.Image) -> Any:
    image = image.colourspace("srgb")
    return (image if image.hasalpha() else image.addalpha()).numpy()


def test_gif_colors_that_a_palette_lacks_are_black() -> None:
    data = _gif((2, 1), bytes((9, 8, 7, 250, 0, 0)), [{"pixels": [1, 5]}])
    assert read(data).numpy().tolist() == [[[250, 0, 0], [0, 0, 0]]]


def test_gif_that_breaks_off_between_frames_shows_its_first_one() -> None:
    data = _gif((2, 1), bytes(range(48)), [{"pixels": [1, 5]}, {"pixels": [2, 3]}])
    for end in range(data.rindex(b"\x21\xf9") + 2, data.rindex(b"\x2c")):
        source = ByteSource(data[:end])
        assert load(probe(source)).numpy().tolist() == [[[3, 4, 5], [15, 16, 17]]]


def test_gif_may_lack_the_byte_that_ends_it() -> None:
    data = _gif((2, 1), bytes(range(48)), [{"pixels": [1, 5]}, {"pixels": [2, 3]}])
    assert data.endswith(b";")
    assert np.array_equal(read(data[:-1]).numpy(), read(data).numpy())


def test_gif_frame_larger_than_the_screen_is_refused_by_its_own_size() -> None:
    """The decoder makes all of its pixels, whatever the screen shows of them."""
    bomb = {"area": (0, 0, 20_000, 20_000), "pixels": [0]}
    data = _gif((4, 4), bytes(48), [{"pixels": [0] * 16}, bomb])
    info = probe(ByteSource(data)).info
    assert (info.width, info.height, info.decoded_pixels) == (4, 4, 400_000_000)
    with pytest.raises(ImageTooLarge, match="is made of 400,000,000"):
        check_source(info, Limits())


@pytest.mark.parametrize("format", _ANIMATED)
@pytest.mark.parametrize("plays", [0, 1, 2, 7])
def test_plays_survive(format: str, plays: int) -> None:
    data = write(strip(frames(), [100] * 4, plays), format)
    assert decode(format, data)[2] == plays
    assert probe(ByteSource(data)).info.plays == plays
    assert read(data).get("loop") == plays


@pytest.mark.parametrize("format", ["gif", "webp"])
@pytest.mark.parametrize("plays", [65_535, 65_536, 65_537, 70_000])
def test_more_plays_than_a_format_counts_are_as_many_as_it_can(format: str, plays: int) -> None:
    result = imgsvc.process(strip(frames(), [100] * 4, plays), {"output": {"format": format}})
    assert (decode(format, result.data)[2], result.output.plays) == (65_535, 65_535)


@pytest.mark.parametrize("format", _ANIMATED)
def test_equal_frames_stay_frames_of_their_own(format: str) -> None:
    pictures = frames()[[0, 0, 1, 1, 1, 0]]
    delays = [40, 50, 60, 70, 80, 90]
    data = write(strip(pictures, delays, 0), format)
    shown, found, _ = decode(format, data)
    assert found == tuple(delays)
    assert len(shown) == 6
    assert all(distance(a, b) < 0.04 for a, b in zip(shown, pictures, strict=True))
    assert tuple(read(data).get("delay")) == tuple(delays)


@pytest.mark.parametrize("format", _ANIMATED)
def test_no_timing_means_a_tenth_of_a_second_for_ever(format: str) -> None:
    _, delays, plays = decode(format, write(strip(frames()), format))
    assert delays == (100,) * 4
    assert plays == 0


@pytest.mark.parametrize("format", _ANIMATED)
def test_frames_without_a_time_have_that_of_the_last_one_with_it(format: str) -> None:
    assert decode(format, write(strip(frames(), [40, 70]), format))[1] == (40, 70, 70, 70)


@pytest.mark.parametrize("format", ["apng", "webp"])
@given(delays=st.lists(st.integers(0, 65_000), min_size=2, max_size=5))
@settings(max_examples=15)
def test_delays_are_exact(format: str, delays: list[int]) -> None:
    pictures = np.repeat(frames(1), len(delays), axis=0)
    data = write(strip(pictures, delays, 0), format)
    assert probe(ByteSource(data)).info.delays == tuple(delays)
    assert tuple(read(data).get("delay")) == tuple(delays)


_DELAYS = st.lists(st.one_of(st.integers(0, 60), st.integers(0, 5000)), min_size=1, max_size=50)


@given(_DELAYS)
def test_gif_delays_do_not_drift(delays: list[int]) -> None:
    stored = in_hundredths(delays)
    assert all(delay % 10 == 0 and delay >= 0 for delay in stored.values())
    assert abs(sum(stored.values()) - sum(delays)) <= 25
    for number in (number for number in stored if number + 1 in stored and number + 1 < len(delays) - 1):
        ends = sum(delay for other, delay in stored.items() if other <= number)
        assert abs(ends - sum(delays[: number + 1])) <= 15
    if all(delay % 10 == 0 for delay in delays):
        assert list(stored.values()) == delays


@given(_DELAYS)
def test_gif_frames_are_never_short_enough_to_be_slowed_down(delays: list[int]) -> None:
    """Browsers show delays of at most 10 ms for 100 ms, which only frames may have that had it before."""
    stored = in_hundredths(delays)
    assert all(shown >= 20 for number, shown in stored.items() if delays[number] > 10)
    assert all(number in stored for number, delay in enumerate(delays) if delay >= 25)
    assert len(delays) - 1 in stored


@pytest.mark.parametrize(
    ("delay", "count"),
    [(16, 10), (11, 7), (12, 7), (15, 9), (17, 10), (19, 12), (20, 12), (33, 12), (10, 12), (0, 12)],
)
def test_frames_too_short_for_gif_are_left_out(delay: int, count: int) -> None:
    stored = in_hundredths([delay] * 12)
    assert len(stored) == count
    assert 11 in stored, "the last frame stays visible"
    assert abs(sum(stored.values()) - 12 * delay) < 20


def test_delays_beyond_sixteen_bits_keep_what_fits() -> None:
    data = write(strip(frames(4), [70_000, 700_000, 7_000_000, 2_000_000_000], 1), "apng")
    assert probe(ByteSource(data)).info.delays == (70_000, 700_000, 7_000_000, 65_535_000)


@pytest.mark.parametrize("format", ["apng", "webp"])
@given(data=st.data())
@settings(max_examples=15)
def test_any_frames_come_back_exactly(format: str, data: st.DataObject) -> None:
    """Noise, holes and repetitions: only the changed rectangle is stored, and nothing may show of that."""
    count, height, width = data.draw(st.tuples(st.integers(2, 4), st.integers(1, 12), st.integers(1, 12)))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pictures = np.repeat(random.integers(0, 256, (1, height, width, 4), np.uint8), count, axis=0)
    for picture in pictures[1:]:
        top, left = random.integers(0, height), random.integers(0, width)
        area = picture[top : top + random.integers(0, 8), left : left + random.integers(0, 8)]
        area[...] = random.integers(0, 256, area.shape, np.uint8)
    encoded = write(strip(pictures, [50] * count, 0), format, lossless=format == "webp")
    shown = read(encoded).numpy().reshape(pictures.shape)
    visible = pictures[..., 3:] > 0
    assert np.array_equal(shown[..., 3], pictures[..., 3])
    assert np.array_equal(shown * visible, pictures * visible)


@pytest.mark.parametrize("format", ["apng", "webp"])
def test_only_what_changes_is_stored(format: str) -> None:
    still = len(write(vips(photo()), format))
    blinking = np.repeat(photo()[None], 20, axis=0)
    blinking[1::2, 20:30, 20:30] = 255
    assert len(write(strip(blinking, [50] * 20, 0), format)) < 3 * still


@pytest.mark.parametrize("effort", [0, 9])
def test_webp_is_no_larger_than_that_of_the_library(effort: int) -> None:
    pictures = np.stack(photos.moving_frames(6, 160, 120))
    ours = write(strip(pictures, [50] * 6, 0), "webp", effort=effort)
    image = strip(pictures, [50] * 6, 0)
    theirs = image.webpsave_buffer(Q=80, effort=6 if effort else 0, keep="none")
    assert len(ours) <= len(theirs)


@pytest.mark.parametrize("shown", [(0, 0), (0, 1, 1), (0, 0, 1)])
def test_webp_of_equal_opaque_frames_says_that_it_has_alpha(shown: tuple[int, ...]) -> None:
    """An empty frame stands for one that equals the frame before."""
    colors = np.array([(200, 10, 10), (10, 10, 200)], np.uint8)
    pictures = np.broadcast_to(colors[list(shown), None, None], (len(shown), 16, 20, 3))
    data = write(strip(pictures.copy(), [50] * len(shown), 0), "webp", lossless=True)
    has_alpha = 0x10
    assert data[data.index(b"VP8X") + 8] & has_alpha
    assert data.count(b"ANMF") == len(shown)


@pytest.mark.parametrize("opaque", [True, False])
def test_webp_keeps_equal_frames_whose_area_is_cleared(opaque: bool) -> None:
    """A square that jumps over a transparent or blue ground, and rests after each jump."""
    pictures = np.zeros((12, 60, 80, 4), np.uint8)
    if opaque:
        pictures[:] = (0, 0, 255, 255)
    for index, picture in enumerate(pictures):
        left = 11 * (index // 3)
        picture[left : left + 20, left : left + 20] = (200, 30 * index // 3, 10, 255)
    pictures = pictures[[0, 0, 0, 3, 3, 6, 9, 9, 9, 9]]
    delays = [10, 5, 700, 20, 30, 0, 40, 50, 60, 16_000]
    data = write(strip(pictures, delays, 3), "webp", lossless=True)
    shown, found, plays = decode("webp", data)
    assert (found, plays) == (tuple(delays), 3)
    visible = pictures[..., 3:] > 0
    for frames_of_it in (shown, read(data).numpy().reshape(pictures.shape)):
        assert np.array_equal(frames_of_it[..., 3], pictures[..., 3])  # nothing stays where a frame was
        assert np.array_equal(frames_of_it * visible, pictures * visible)


def _webp_by_hand(parts: list[tuple[tuple[int, int, int, int], int]], *, flags: int = 2) -> bytes:
    """An animation of 20 x 16 pixels: opaque frames, each of an area and cleared afterwards if told so."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)

    def three(*numbers: int) -> bytes:
        return b"".join(number.to_bytes(3, "little") for number in numbers)

    body = chunk(b"VP8X", bytes((flags, 0, 0, 0)) + three(19, 15)) + chunk(b"ANIM", struct.pack("<IH", 0, 0))
    for (left, top, width, height), cleared in parts:
        picture = pillow(Image.new("RGB", (width, height), (250, 0, 0)), "WEBP", lossless=True)[12:]
        head = three(left // 2, top // 2, width - 1, height - 1, 100) + bytes((cleared,))
        body += chunk(b"ANMF", head + picture)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


_WHOLE, _PART = (0, 0, 20, 16), (4, 4, 8, 8)


@pytest.mark.parametrize(
    ("parts", "transparent"),
    [
        ([(_WHOLE, 0), (_PART, 0)], False),
        ([(_WHOLE, 0), (_PART, 1)], False),
        ([(_PART, 0), (_WHOLE, 0)], True),
        ([(_WHOLE, 1), (_PART, 0)], True),
        ([(_PART, 0)], True),
    ],
)
def test_webp_shows_the_empty_canvas_as_transparent(parts: list[Any], transparent: bool) -> None:
    data = _webp_by_hand(parts)
    assert probe(ByteSource(data)).info.alpha == transparent
    shown = read(data)
    assert shown.hasalpha() == transparent
    assert not transparent or shown[3].min() == 0
    assert read(data, all_frames=False).hasalpha() == transparent


@pytest.mark.parametrize("covered", [True, False])
def test_webp_of_opaque_frames_says_that_its_canvas_shows(covered: bool) -> None:
    """The encoder leaves out what is transparent around a frame, so that no frame has alpha."""
    pictures = np.zeros((3, 32, 40, 4), np.uint8)
    pictures[0] = (0, 200, 0, 255) if covered else 0
    for index, picture in enumerate(pictures):
        picture[8:16, 4 * index : 4 * index + 8] = (250, 0, 0, 255)
    data = write(strip(pictures, [100, 100, 100]), "webp", lossless=True)
    with Image.open(io.BytesIO(data)) as animation:
        assert animation.mode == "RGBA"
        for index, picture in enumerate(pictures):
            animation.seek(index)
            assert np.array_equal(np.asarray(animation), picture)


def test_sixteen_bits_move_too() -> None:
    pictures = photos.deep(frames(3)) - 123
    image = read(write(strip(pictures, [50] * 3, 0), "apng"))
    assert image.interpretation == "rgb16"
    assert np.array_equal(image.numpy().reshape(pictures.shape), pictures)


def test_gray_frames_stay_gray() -> None:
    pictures = frames(3)[..., 1]
    image = read(write(strip(pictures, [50] * 3, 0), "apng"))
    assert image.interpretation == "b-w"
    assert np.array_equal(image.numpy().reshape(pictures.shape), pictures)


def test_a_strip_of_one_frame_is_a_still() -> None:
    for format in _ANIMATED:
        data = write(vips(photo()), format)
        assert probe(ByteSource(data)).info.frames == 1


@pytest.mark.parametrize("options", [{}, {"colors": 16}, {"encoding": "progressive"}], ids=str)
def test_a_gif_of_one_frame_does_not_repeat(options: dict[str, Any]) -> None:
    """Others take it for an animation otherwise."""
    result = imgsvc.process(vips(photo()), {"output": {"format": "gif", **options}})
    assert b"NETSCAPE" not in result.data


# Animated PNG as others write it


def test_a_default_image_is_not_part_of_the_animation() -> None:
    parts = [ApngFrame(pixels=picture) for picture in frames(3)]
    default = np.full_like(frames(1)[0], 99)
    image = read(apng_by_hand(parts, default=default))
    assert np.array_equal(image.numpy().reshape(3, 64, 96, 4), frames(3))


def test_a_smaller_first_frame_leaves_the_rest_transparent() -> None:
    base = ApngFrame(pixels=frames(1)[0][:32, :48], left=8, top=4)
    data = apng_by_hand([base, ApngFrame(pixels=frames(2)[1])], default=frames(1)[0])
    first = read(data, all_frames=False).numpy()
    assert first[..., 3].sum() == 32 * 48 * 255
    assert np.array_equal(first[4:36, 8:56], frames(1)[0][:32, :48])


@pytest.mark.parametrize("disposal", [1, 2])
def test_an_opaque_first_frame_that_goes_leaves_nothing(disposal: int) -> None:
    """Before it, there was nothing that could be restored."""
    first, patch = photo(), photo()[:10, :12]
    parts = [ApngFrame(pixels=first, disposal=disposal), ApngFrame(pixels=patch, left=5, top=6)]
    shown = read(apng_by_hand(parts)).numpy().reshape(2, *first.shape[:2], 4)
    expected = np.zeros_like(shown[1])
    expected[6:16, 5:17, :3], expected[6:16, 5:17, 3] = patch, 255
    assert np.array_equal(shown[1], expected)
    assert np.array_equal(shown[0, ..., :3], first)
    assert (shown[0, ..., 3] == 255).all()


def test_every_disposal_agrees_with_a_browser_like_reference() -> None:
    """Restoring the frame before, after blending: what other readers get wrong."""
    patch = np.full((10, 10, 4), (0, 255, 0, 100), np.uint8)
    parts = [ApngFrame(pixels=transparent())]
    parts += [ApngFrame(pixels=patch, left=x, top=20, disposal=2, blend=1) for x in (0, 30, 60)]
    shown = read(apng_by_hand(parts)).numpy().reshape(4, 64, 96, 4)
    for index, left in enumerate((0, 30, 60), start=1):
        untouched = np.ones((64, 96), bool)
        untouched[20:30, left : left + 10] = False
        assert np.array_equal(shown[index][untouched], transparent()[untouched])
        assert not np.array_equal(shown[index], transparent())


def test_a_late_animation_header_is_ignored() -> None:
    data = apng_by_hand([ApngFrame(pixels=picture) for picture in frames(2)], plays=4)
    after_first = data.index(b"fdAT") - 4
    second = png_chunk(b"acTL", struct.pack(">II", 9, 9))
    image = read(data[:after_first] + second + data[after_first:])
    assert image.get("n-pages") == 2
    assert image.get("loop") == 4


def test_data_of_a_frame_before_its_place_is_damage() -> None:
    data = apng_by_hand([ApngFrame(pixels=picture) for picture in frames(2)])
    place = data.index(b"fcTL") - 4
    data = data[:place] + png_chunk(b"fdAT", bytes(4)) + data[place:]
    with pytest.raises(CorruptImage, match="data of a frame before its first frame"):
        probe(ByteSource(data))


@pytest.mark.parametrize("second", [(2, 4), (9, 9), (0, 0)])
def test_with_two_animation_headers_it_is_a_still(second: tuple[int, int]) -> None:
    """As the PNG specification recommends for errors in the animation: the default image is shown."""
    default = np.full_like(frames(1)[0], 99)
    data = apng_by_hand([ApngFrame(pixels=picture) for picture in frames(2)], default=default)
    data = data[:33] + png_chunk(b"acTL", struct.pack(">II", *second)) + data[33:]
    assert (probe(ByteSource(data)).info.format, probe(ByteSource(data)).info.frames) == ("png", 1)
    assert np.array_equal(read(data).numpy(), default)


@pytest.mark.parametrize(
    "header",
    [
        struct.pack(">II", 0, 0),
        struct.pack(">II", 1 << 31, 0),
        struct.pack(">II", 2, 1 << 31),
        b"",
        bytes(12),
    ],
    ids=["no frames", "too many frames", "too many plays", "empty", "too long"],
)
def test_with_an_impossible_animation_header_it_is_a_still(header: bytes) -> None:
    """As browsers do, Chromium for one."""
    default = np.full_like(frames(1)[0], 99)
    data = apng_by_hand([ApngFrame(pixels=picture) for picture in frames(2)], default=default)
    valid = png_chunk(b"acTL", struct.pack(">II", 2, 0))
    assert data.count(valid) == 1
    data = data.replace(valid, png_chunk(b"acTL", header))
    assert (probe(ByteSource(data)).info.format, probe(ByteSource(data)).info.frames) == ("png", 1)
    assert np.array_equal(read(data).numpy(), default)


@pytest.mark.parametrize("damage", ["sequence", "outside", "missing", "checksum"])
def test_wrong_structure_is_refused(damage: str) -> None:
    picture = frames(1)[0]
    control = struct.pack(">IIIIIHHBB", 1 if damage == "sequence" else 0, 96, 64, 0, 0, 1, 10, 0, 0)
    if damage == "outside":
        control = struct.pack(">IIIIIHHBB", 0, 96, 64, 1, 0, 1, 10, 0, 0)
    chunks = [
        png_chunk(b"IHDR", png_header(picture)),
        png_chunk(b"acTL", struct.pack(">II", 2 if damage == "missing" else 1, 0)),
        png_chunk(b"fcTL", control),
        png_chunk(b"IDAT", png_scanlines(picture)),
        png_chunk(b"IEND", b""),
    ]
    if damage == "checksum":
        chunks[3] = chunks[3][:-1] + bytes((chunks[3][-1] ^ 1,))
    with pytest.raises(CorruptImage):
        read(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def test_written_files_open_as_plain_png() -> None:
    data = write(strip(frames(), [50] * 4, 0), "apng")
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.format == "PNG"
        assert np.array_equal(np.asarray(picture.convert("RGBA")), frames()[0])


# What differs


@given(st.integers(0, 2**32))
def test_changed_area_is_the_smallest_rectangle(seed: int) -> None:
    random = np.random.default_rng(seed)
    before = random.integers(0, 256, (random.integers(1, 20), random.integers(1, 20), 3), np.uint8)
    after = before.copy()
    for _ in range(random.integers(0, 4)):
        after[
            random.integers(0, before.shape[0]), random.integers(0, before.shape[1]), random.integers(3)
        ] += 1
    left, top, width, height = changed_area(vips(before), vips(after))
    rows, columns = np.nonzero((before != after).any(axis=2))
    if len(rows):
        assert (left, top) == (columns.min(), rows.min())
        assert (left + width, top + height) == (columns.max() + 1, rows.max() + 1)
    else:
        assert (left, top, width, height) == (0, 0, 1, 1)


def test_frames_of_an_apng_do_not_drift() -> None:
    """A sixtieth of a second is 16.67 ms: rounded each for itself, ten seconds would be 200 ms too long."""
    frame = ApngFrame(pixels=np.zeros((1, 1, 4), np.uint8), delay=(1, 60))
    delays = probe(ByteSource(apng_by_hand([frame] * 600))).info.delays
    assert sum(delays) == 10_000
    assert set(delays) == {16, 17}


@pytest.mark.parametrize(
    ("format", "work"),
    [("apng", "read"), ("gif", "read"), ("avif", "read"), ("apng", "write"), ("avif", "write")],
)
def test_work_on_frame_after_frame_ends_when_the_time_is_up(format: str, work: str) -> None:
    """What is one call of a codec goes on in its thread."""
    pictures = strip(frames())
    data, deadline, ended = write(pictures, format), Deadline(None), []

    def late() -> None:
        deadline.stop()
        try:
            if work == "read":
                load(probe(ByteSource(data)), LoadSettings(all_frames=True, sequential=False))
            else:
                write(pictures, format)
        except TimeLimitExceeded:
            ended.append(format)
            raise

    with pytest.raises(TimeLimitExceeded):
        deadline.run(late)
    assert ended == [format]
