"""Animated AVIF: frames, times, plays, alpha and metadata, and damage."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.plan.encoding import choose_formats
from imgsvc_core.spec import Output
from tests.support import libavif
from tests.support.encoded import encoded, frames, gray, transparent
from tests.support.handmade import pillow
from tests.support.photos import as_vips, moving_frames

AVIF: dict[str, Any] = {"output": {"format": "avif", "quality": 90}}
PLACE = b"WGS-84 by hand"
_ACCEPT = "image/avif,image/webp,image/*,*/*;q=0.8"


def webp(pictures: Any, delays: list[int], plays: int = 0, **options: Any) -> bytes:
    first, *rest = (Image.fromarray(picture) for picture in pictures)
    return pillow(
        first, "WEBP", save_all=True, append_images=rest, duration=delays, loop=plays, lossless=True,
        minimize_size=False, **options,
    )  # fmt: skip


def apng(pictures: Any, delays: list[int], plays: int = 0, **options: Any) -> bytes:
    first, *rest = (Image.fromarray(picture) for picture in pictures)
    return pillow(first, "PNG", save_all=True, append_images=rest, duration=delays, loop=plays, **options)


def pixels_of(data: bytes) -> Any:
    image = load(probe(ByteSource(data)), LoadSettings(all_frames=True, sequential=False))
    assert isinstance(image, pyvips.Image)
    pixels = image.numpy()
    return pixels.reshape(-1, imgsvc.inspect(data).height, *pixels.shape[1:])


@pytest.mark.parametrize("plays", [0, 3])
def test_results_do_not_tell_when_they_were_made(plays: int) -> None:
    data = imgsvc.process(apng(frames(), [100] * 4, plays), AVIF).data
    for kind in (b"mvhd", b"tkhd", b"mdhd"):
        start = data.index(kind) + 8
        assert data[start - 4] == 1  # numbers of 8 bytes
        assert data[start : start + 16] == bytes(16)


@given(
    delays=st.lists(st.integers(1, 60_000), min_size=2, max_size=6),
    plays=st.integers(0, 900),
    alpha=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_times_are_those_that_libavif_tells(delays: list[int], plays: int, alpha: bool) -> None:
    pictures = np.stack([transparent()[:24, :32] for _ in delays])
    pictures[..., 0] += np.arange(len(delays), dtype=np.uint8)[:, None, None] * 40
    source = apng(pictures if alpha else pictures[..., :3], delays, plays)
    result = imgsvc.process(source, AVIF)
    assert libavif.times(result.data) == (tuple(delays), plays, alpha)
    found = imgsvc.inspect(result.data)
    for facts in (result.output, found):
        assert (facts.delays, facts.plays, facts.frames) == (tuple(delays), plays, len(delays))
        assert (facts.alpha, facts.width, facts.height) == (alpha, 32, 24)


@pytest.mark.parametrize("plays", [65_535, 65_536, 2**31 - 1])
def test_more_plays_than_other_formats_count_are_as_many_as_those(plays: int) -> None:
    longest = 2**31 - 1  # with so many plays, how long all last is beyond the field for it
    pictures = moving_frames(3, 32, 24)
    source = as_vips(np.concatenate(pictures)).copy()
    source.set_type(pyvips.GValue.gint_type, "page-height", 24)
    source.set_type(pyvips.GValue.array_int_type, "delay", [longest, longest, 40])
    source.set_type(pyvips.GValue.gint_type, "loop", plays)
    result = imgsvc.process(source, AVIF)
    assert libavif.times(result.data) == ((longest, longest, 40), 65_535, False)
    assert (result.output.plays, imgsvc.inspect(result.data).plays) == (65_535, 65_535)


@pytest.mark.parametrize("delays", [[0, 0, 0], [0, 40, 0], [40, 0, 40]])
def test_frames_without_a_time_are_shown_for_the_shortest_one(delays: list[int]) -> None:
    result = imgsvc.process(webp(moving_frames(3, 32, 24), delays), AVIF)
    shown = tuple(max(1, delay) for delay in delays)
    assert len(pixels_of(result.data)) == 3
    assert libavif.times(result.data) == (shown, 0, False)
    assert result.output.delays == shown


def test_facts_are_those_of_other_writers() -> None:
    made = encoded("avif_animated")
    found = imgsvc.inspect(made.data)
    assert libavif.times(made.data) == (found.delays, found.plays, found.alpha)


@pytest.mark.parametrize("bands", [1, 3, 4])
def test_frames_come_back(bands: int) -> None:
    pictures = frames(5)[..., :bands] if bands > 1 else np.stack([gray(), gray()[::-1], gray()[:, ::-1]])
    if bands == 4:
        pictures[..., 3] = transparent()[..., 3]
    source = apng(pictures, [50] * len(pictures))
    result = imgsvc.process(source, {"output": {"format": "avif", "quality": 97, "subsampling": "444"}})
    back, shown = pixels_of(result.data), pictures
    assert len(back) == len(pictures)
    if bands == 1:
        shown = np.repeat(pictures[..., None], 3, axis=3)
    visible = np.ones(shown.shape[:3], bool) if bands < 4 else shown[..., 3] > 250
    wrong = np.abs(back.astype(int) - shown)[visible].mean()
    assert wrong < 4
    if bands == 4:
        assert np.abs(back[..., 3].astype(int) - shown[..., 3]).mean() < 4


@pytest.mark.parametrize("stated", [1, 3])
def test_the_last_time_stands_for_all_that_follow(stated: int) -> None:
    first, *rest = (Image.fromarray(picture) for picture in frames())
    data = bytearray(pillow(first, "AVIF", save_all=True, append_images=rest, duration=70))
    place = data.index(b"stts") + 8
    runs, count = (int.from_bytes(data[start : start + 4], "big") for start in (place, place + 4))
    assert (runs, count) == (1, 4)
    data[place + 4 : place + 8] = stated.to_bytes(4, "big")
    delays, plays, alpha = libavif.times(bytes(data))
    found = imgsvc.inspect(bytes(data))
    assert (found.delays, found.plays, found.alpha, found.frames) == (delays, plays, alpha, 4)


def test_a_still_result_is_the_first_frame() -> None:
    data = encoded("avif_animated").data
    still = imgsvc.process(data, {"output": {"format": "png"}})
    assert still.output.frames == 1
    assert still.notes == ("Only the first of 4 frames is kept.",)
    assert np.abs(still.to_numpy().astype(int)[..., :3] - frames()[0][..., :3]).mean() < 4


def test_frames_need_no_still_picture() -> None:
    data = imgsvc.process(apng(frames(), [100, 200, 300, 400], 3), AVIF).data
    brands, boxes = data[:32], data[32:]
    without = brands.replace(b"avif", b"avis") + boxes.replace(b"meta", b"free", 1)
    assert np.array_equal(pixels_of(without), pixels_of(data))
    facts, of_still = imgsvc.inspect(without), imgsvc.inspect(data)
    assert attrs.evolve(facts, sha256=None, name="") == attrs.evolve(of_still, sha256=None, name="")
    single = bytearray(without)
    for kind, at in ((b"stsz", 12), (b"stts", 8), (b"stts", 12), (b"stsc", 16)):
        place = single.index(kind) + at
        single[place : place + 4] = (1).to_bytes(4, "big")
    assert np.array_equal(pixels_of(bytes(single)), pixels_of(data)[:1])
    with pytest.raises(imgsvc.UnsupportedFormat, match="it holds no picture"):
        imgsvc.inspect(pillow(Image.fromarray(frames()[0]), "AVIF").replace(b"meta", b"free", 1))


def test_operations_and_looks_apply_to_all_frames() -> None:
    source = webp(moving_frames(4, 90, 60), [40] * 4)
    result = imgsvc.process(source, {"resize": {"width": 45}, "output": {"format": "avif", "look": 60}})
    assert (result.output.width, result.output.height, result.output.frames) == (45, 30, 4)
    assert (result.output.look or 0) >= 60


def test_gray_animations_of_others_stay_gray() -> None:
    first, *rest = (Image.fromarray(picture) for picture in (gray(), gray()[::-1]))
    data = pillow(first, "AVIF", save_all=True, append_images=rest, duration=70, quality=90)
    assert imgsvc.inspect(data).colorspace == "gray"
    assert pixels_of(data).shape == (2, 64, 96)
    assert np.abs(pixels_of(data)[1].astype(int) - gray()[::-1]).mean() < 4


def test_what_a_client_accepts_decides() -> None:
    info = imgsvc.inspect(webp(moving_frames(3, 40, 30), [40] * 3))
    chosen = {
        accept: choose_formats(Output(format="auto"), info, accept=accept)[0][0].name
        for accept in (_ACCEPT, "image/webp,*/*", "image/avif", "*/*")
    }
    assert chosen == {_ACCEPT: "avif", "image/webp,*/*": "webp", "image/avif": "avif", "*/*": "gif"}
    lossless = choose_formats(Output(format="auto", lossless=True), info, accept=_ACCEPT)[0]
    assert [row.name for row in lossless] == ["webp"]
    result = imgsvc.process(
        webp(moving_frames(3, 40, 30), [40] * 3), {"output": {"format": "auto"}}, accept="image/avif"
    )
    assert (result.output.format, result.output.frames) == ("avif", 3)


def test_exact_animations_are_refused() -> None:
    source = webp(moving_frames(3, 40, 30), [40] * 3)
    with pytest.raises(imgsvc.UnsupportedOperation, match="Animated AVIF cannot be lossless"):
        _ = imgsvc.process(source, {"output": {"format": "avif", "lossless": True}}).data


@pytest.mark.parametrize("policy", ["strip", "copyright", "keep"])
def test_metadata_goes_without_touching_pixels(policy: str) -> None:
    exif = Image.Exif()
    exif[0x8298], exif[0x8825] = "Held by Ann", {1: "N", 18: PLACE.decode()}
    first, *rest = (Image.fromarray(picture) for picture in frames())
    data = pillow(first, "AVIF", save_all=True, append_images=rest, duration=70, exif=exif.tobytes())
    assert PLACE in data
    kept = imgsvc.process(data, {"output": {"keep_pixels": True, "metadata": policy}})
    assert (PLACE in kept.data, b"Held by Ann" in kept.data) == (policy == "keep", policy != "strip")
    assert np.array_equal(pixels_of(kept.data), pixels_of(data))
    again = imgsvc.process(data, {"output": {"format": "avif", "metadata": policy}}).data
    assert (PLACE in again, b"Held by Ann" in again) == (policy == "keep", policy != "strip")


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("more", [-1, 0, 1, 2**62])
def test_plays_are_those_that_libavif_counts(more: int, repeats: bool) -> None:
    """A track that lasts a little longer than its frames twice is played three times. FFmpeg states half of
    the longest time for one that plays for ever.
    """
    source = apng(moving_frames(2, 32, 24), [70, 90], 2)
    data = bytearray(imgsvc.process(source, {"output": {"format": "avif"}}).data)
    edits, track = data.index(b"elst") + 4, data.index(b"tkhd") + 4
    assert (data[edits], data[edits + 3], data[track]) == (1, 1, 1)  # numbers of 64 bits, and a flag
    once, lasts = (int.from_bytes(data[place : place + 8], "big") for place in (edits + 8, track + 28))
    assert lasts == 2 * once
    data[track + 28 : track + 36] = (lasts + more).to_bytes(8, "big")
    data[edits + 3] = repeats
    found = imgsvc.inspect(bytes(data))
    assert (found.delays, found.plays, found.alpha) == libavif.times(bytes(data))


@pytest.mark.parametrize(
    ("kind", "place", "content", "reason"),
    [
        (b"elst", 8, bytes(8), "its edit list is impossible"),
        (b"stts", 4, bytes(4), "it does not tell the times of its frames"),
        (b"stsz", 8, b"\xff" * 4, "it has 4,294,967,295 frames"),
    ],
)
def test_impossible_times_are_damage(kind: bytes, place: int, content: bytes, reason: str) -> None:
    source = apng(moving_frames(2, 32, 24), [70, 90], 2)
    data = bytearray(imgsvc.process(source, {"output": {"format": "avif"}}).data)
    start = data.index(kind) + 4 + place
    data[start : start + len(content)] = content
    with pytest.raises(imgsvc.CorruptImage, match=reason):
        imgsvc.inspect(bytes(data))


@pytest.mark.parametrize("track", [1, 9])
def test_transparency_is_that_of_the_shown_track(track: int) -> None:
    source = apng(np.stack([transparent(), transparent()[::-1]]), [70, 90], 2)
    data = bytearray(imgsvc.process(source, {"output": {"format": "avif"}}).data)
    told = data.rindex(b"auxl") + 4
    assert data[told : told + 4] == b"\0\0\0\1"
    data[told + 3] = track
    assert imgsvc.inspect(bytes(data)).alpha == libavif.times(bytes(data))[2] == (track == 1)


@pytest.mark.parametrize("kind", [b"udta", b"meta"])
def test_other_descriptions_of_movies_and_tracks_go_too(kind: bytes) -> None:
    """A box in the place of one that no frame needs: of the movie, and of its track."""
    source = apng(moving_frames(2, 32, 24), [70, 90], 2)
    data = imgsvc.process(source, {"output": {"format": "avif"}}).data
    for parent in (b"moov", b"trak")[: 1 if kind == b"meta" else 2]:
        box = (8 + 4 + len(PLACE)).to_bytes(4, "big") + kind + bytes(4) + PLACE
        described = _with_box(data, parent, box)
        assert np.array_equal(pixels_of(described), pixels_of(data))
        kept = imgsvc.process(described, {"output": {"keep_pixels": True}}).data
        assert PLACE in described
        assert PLACE not in kept
        assert np.array_equal(pixels_of(kept), pixels_of(data))


def _with_box(data: bytes, parent: bytes, box: bytes) -> bytes:
    """Return a file with a box at the end of the last box of a kind, and its data as far behind as before."""
    grown = bytearray(data)
    movie, inner = data.index(b"moov") - 4, data.rindex(parent) - 4
    end = inner + int.from_bytes(data[inner : inner + 4], "big")
    assert data.index(b"mdat") > end
    for place in {movie, inner}:
        size = int.from_bytes(data[place : place + 4], "big") + len(box)
        grown[place : place + 4] = size.to_bytes(4, "big")
    for mark in (place for place in range(movie, end) if data[place : place + 4] == b"stco"):
        for number in range(int.from_bytes(data[mark + 8 : mark + 12], "big")):
            place = mark + 12 + 4 * number
            moved = int.from_bytes(data[place : place + 4], "big") + len(box)
            grown[place : place + 4] = moved.to_bytes(4, "big")
    return bytes(grown[:end]) + box + bytes(grown[end:])


@pytest.mark.parametrize("kind", ["exif", "xmp"])
def test_metadata_that_only_a_track_lists_goes_too(kind: str) -> None:
    exif = Image.Exif()
    exif[0x8825] = {1: "N", 18: PLACE.decode()}
    blocks = {"exif": exif.tobytes(), "xmp": b"<x>" + PLACE + b"</x>"}
    first, *rest = (Image.fromarray(picture) for picture in frames())
    data = pillow(first, "AVIF", save_all=True, append_images=rest, duration=70, **{kind: blocks[kind]})
    name = {"exif": b"ExifExif\0", "xmp": b"mimeXMP\0"}[kind]
    data = data.replace(name, b"none" + name[4:], 1)
    assert data.index(b"none") < data.index(b"moov") < data.index(name)
    kept = imgsvc.process(data, {"output": {"keep_pixels": True}}).data
    assert PLACE in data
    assert PLACE not in kept
    assert np.array_equal(pixels_of(kept), pixels_of(data))


def test_damaged_animations_are_shown_or_refused() -> None:
    data = encoded("avif_animated").data
    head = data.index(b"mdat")
    draw = random.Random(7)
    refused = []
    for number in range(200):
        damaged = bytearray(data)
        end = head if number % 3 else len(data)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(8, end)] = draw.randrange(256)
        damaged = damaged[: None if number % 5 else draw.randrange(9, len(data))]
        try:
            _ = imgsvc.process(bytes(damaged), {"output": {"format": "png"}}).to_numpy()
            pixels_of(bytes(damaged))
        except imgsvc.ImgsvcError as error:
            refused.append(error.message)
    assert 20 < len(refused) < 180
    assert all(message.endswith(".") for message in refused)


def test_more_frames_than_limits_allow() -> None:
    with pytest.raises(imgsvc.ImageTooLarge):
        imgsvc.process(encoded("avif_animated").data, limits=imgsvc.Limits(frames=3))
