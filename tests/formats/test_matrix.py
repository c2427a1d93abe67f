"""Every input format and variant to every output format, judged on what can be seen."""

from __future__ import annotations

import functools

import attrs
import numpy as np
import pytest
import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.metadata import blob
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import LoadSettings, SaveSettings
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from tests.support.decoded import decode
from tests.support.encoded import VARIANTS, Encoded, as_srgb, encoded
from tests.support.perceptual import distance
from tests.support.photos import Pixels

# What the default quality of each target may cost on this small picture; formats without one are exact.
_LOSS = {"jpg": 0.022, "jp2": 0.02, "gif": 0.045, "webp": 0.02, "heic": 0.027, "avif": 0.024}
_WITH_QUALITY = 0.022
_ROUNDING = 0.002


@functools.cache
def _source(name: str) -> tuple[Encoded, ImageInfo, pyvips.Image]:
    variant = encoded(name)
    source = ByteSource(variant.data)
    picture = probe(source)
    info = picture.info
    image = load(picture, LoadSettings(all_frames=True, sequential=False))
    return variant, info, as_srgb(image.copy_memory())


@pytest.mark.parametrize("name", VARIANTS)
def test_reading_gives_what_the_file_shows(name: str) -> None:
    variant, info, image = _source(name)
    expected = variant.pixels.reshape(-1, *variant.pixels.shape[2:]) if variant.animated else variant.pixels
    assert info.format == variant.format
    assert image.numpy().dtype == expected.dtype
    assert image.numpy().shape == expected.shape
    assert distance(image, expected) <= variant.tolerance
    if variant.tolerance == 0 and variant.space == "srgb":
        assert np.array_equal(image.numpy(), expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_reading_gives_the_facts_of_the_file(name: str) -> None:
    variant, info, image = _source(name)
    assert image.hasalpha() == variant.alpha == info.alpha
    assert info.orientation == variant.orientation
    assert (image.width, image.get_page_height()) == (info.width, info.height)
    if variant.profile is not None:
        assert blob(image, PROFILE) == variant.profile
    if variant.animated:
        assert tuple(image.get("delay")) == variant.delays == info.delays
        assert image.get("loop") == variant.plays == info.plays
        assert image.height // image.get_page_height() == len(variant.pixels) == info.frames
    else:
        assert not image.get_typeof("page-height")


@pytest.mark.parametrize("target", OUTPUT_NAMES)
@pytest.mark.parametrize("name", VARIANTS)
def test_conversion_keeps_the_picture(name: str, target: str) -> None:
    variant, info, image = _source(name)
    row = FORMATS[target]
    still = variant.animated and not row.animation
    if still:
        image = image.crop(0, 0, info.width, info.height)
        image.remove("page-height")
    if image.hasalpha() and not row.alpha:
        image = image.flatten(background=[65535 if image.format == "ushort" else 255] * (image.bands - 1))
        image = image.copy(interpretation=image.interpretation)
    # The pixels that go into the writer: what reading costs is another test's matter.
    expected = image.numpy().copy()

    result = save(image, SaveSettings(format=target))
    assert result.data is not None
    pixels, delays, plays = decode(target, result.data)

    if variant.animated and row.animation:
        assert len(pixels) == len(variant.pixels)
        assert plays == variant.plays
        _assert_timing(target, delays, variant.delays)
        pixels = pixels.reshape(-1, *pixels.shape[2:])
    else:
        assert pixels.shape[:2] == (info.height, info.width)
    _assert_looks_alike(target, pixels, expected)
    facts = probe(ByteSource(result.data)).info
    _assert_told(result.info, facts)
    assert facts.profile == ("profile" in row.metadata and blob(image, PROFILE) is not None)
    if image.hasalpha() and target not in ("gif", "webp", "apng", "avif"):
        assert facts.alpha
    deep = expected.dtype == np.uint16 and not (target == "avif" and variant.animated)
    bilevel = target in ("png", "apng") and not image.hasalpha() and len(np.unique(expected)) == 2
    assert facts.depth == (1 if bilevel else min(row.depth, 16) if deep else 8)


def _assert_told(told: ImageInfo, stored: ImageInfo) -> None:
    """Encoders tell what the header says, but for what decoders need, and transparent colors of no pixel."""
    expected = attrs.evolve(stored, quality=told.quality, contents=None, decoded_pixels=None)
    if told.format == "gif" and stored.alpha:
        expected = attrs.evolve(expected, alpha=told.alpha)
    assert told == expected


def _assert_timing(target: str, delays: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if target == "gif":  # hundredths of a second, each frame ending as near to its time as they allow
        assert np.abs(np.cumsum(delays) - np.cumsum(expected)).max() <= 5
    else:
        assert delays == expected


def _assert_looks_alike(target: str, pixels: Pixels, expected: Pixels) -> None:
    if target == "gif" and expected.ndim == 3 and expected.shape[2] in (2, 4):
        # GIF knows transparent and opaque only.
        expected = expected.copy()
        white = np.iinfo(expected.dtype).max
        expected[..., -1] = np.where(expected[..., -1] >= white / 2, white, 0)
    rounded = _ROUNDING if expected.dtype == np.uint16 and pixels.dtype == np.uint8 else 0.0
    loss = _LOSS.get(target, 0.0 if FORMATS[target].quality is None else _WITH_QUALITY)
    assert distance(pixels, expected) <= loss + rounded
    if loss + rounded == 0:
        bands = expected.shape[2] if expected.ndim == 3 else 1
        exact = pixels.reshape(*pixels.shape[:2], -1)[:, :, :bands]
        assert np.array_equal(exact, expected.reshape(*expected.shape[:2], -1))
