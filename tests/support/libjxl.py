"""JPEG XL files by libjxl itself, of which the binding shows only a part."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.photos import Pixels


class _BasicInfo(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("container", "xsize", "ysize", "bits", "exponent_bits")),
        ("intensity_target", ctypes.c_float),
        ("min_nits", ctypes.c_float),
        ("relative", ctypes.c_uint32),
        ("linear_below", ctypes.c_float),
        *(
            (name, ctypes.c_uint32)
            for name in (
                "uses_original_profile", "have_preview", "have_animation", "orientation", "colors", "extra",
                "alpha_bits", "alpha_exponent_bits", "alpha_premultiplied", "preview_xsize", "preview_ysize",
                "rate", "divisor", "plays", "have_timecodes", "intrinsic_xsize", "intrinsic_ysize",
            )
        ),
        ("padding", ctypes.c_uint8 * 100),
    )  # fmt: skip


class _PixelFormat(ctypes.Structure):
    _fields_ = (
        ("channels", ctypes.c_uint32),
        ("kind", ctypes.c_int),
        ("endianness", ctypes.c_int),
        ("align", ctypes.c_size_t),
    )


class _BlendInfo(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("mode", "source", "alpha", "clamp"))


class _FrameHeader(ctypes.Structure):
    _fields_ = (
        ("duration", ctypes.c_uint32),
        ("timecode", ctypes.c_uint32),
        ("name_length", ctypes.c_uint32),
        ("is_last", ctypes.c_int),
        ("have_crop", ctypes.c_int),
        ("left", ctypes.c_int32),
        ("top", ctypes.c_int32),
        ("xsize", ctypes.c_uint32),
        ("ysize", ctypes.c_uint32),
        ("blend", _BlendInfo),
        ("save_as_reference", ctypes.c_uint32),
    )


class _ColorEncoding(ctypes.Structure):
    _fields_ = (
        ("space", ctypes.c_int),
        ("white", ctypes.c_int),
        ("white_point", ctypes.c_double * 2),
        ("primaries", ctypes.c_int),
        ("red", ctypes.c_double * 2),
        ("green", ctypes.c_double * 2),
        ("blue", ctypes.c_double * 2),
        ("transfer", ctypes.c_int),
        ("gamma", ctypes.c_double),
        ("intent", ctypes.c_int),
    )


class _ExtraChannel(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("kind", "bits", "exponent_bits", "shift", "name_length")),
        ("premultiplied", ctypes.c_uint32),
        ("spot", ctypes.c_float * 4),
        ("filter", ctypes.c_uint32),
    )


@cache
def _library() -> ctypes.CDLL:
    import imagecodecs

    imagecodecs.jpegxl_version()  # loads the libraries that it needs
    maps = Path("/proc/self/maps").read_text().splitlines()
    path = next(line.split()[-1] for line in maps if "/libjxl-" in line or line.endswith("/libjxl.so"))
    library = ctypes.CDLL(path)
    library.JxlEncoderCreate.restype = library.JxlEncoderFrameSettingsCreate.restype = ctypes.c_void_p
    return library


def encode(
    pixels: Pixels | Sequence[Pixels],
    *,
    distance: float | None = None,
    profile: bytes | None = None,
    space: Mapping[str, Any] | None = None,
    boxes: Mapping[bytes, bytes] | None = None,
    compressed_boxes: bool = False,
    durations: Sequence[int] = (),
    crops: Sequence[tuple[int, int] | None] = (),
    blended: bool = True,
    options: Mapping[int, int] | None = None,
    layer_name: bytes = b"",
    alpha_name: bytes = b"",
    **facts: int,
) -> bytes:
    """Encode pictures of (height, width, bands), without loss unless a distance is given.

    ``facts`` are those of the header; ``space`` is a color encoding by its numbers; ``options`` are those of
    frames by number. ``crops`` are the places of frames, which are ``blended`` over those before or replace
    them. ``layer_name`` is that of all frames.
    """
    library = _library()
    pictures = [pixels] if isinstance(pixels, np.ndarray) else list(pixels)
    first = pictures[0]
    height, width, bands = first.shape
    bits = facts.pop("bits", 8 * first.dtype.itemsize)
    encoder = ctypes.c_void_p(library.JxlEncoderCreate(None))
    info = _BasicInfo()
    library.JxlEncoderInitBasicInfo(ctypes.byref(info))
    alpha = bands in (2, 4)
    info.xsize, info.ysize, info.bits, info.colors = width, height, bits, bands - alpha
    info.exponent_bits = 8 if first.dtype == np.float32 else 0
    info.extra, info.alpha_bits, info.alpha_exponent_bits = alpha, bits * alpha, info.exponent_bits * alpha
    info.uses_original_profile = distance is None
    for name, value in facts.items():
        setattr(info, name, value)

    def done(status: int) -> None:
        assert status == 0, library.JxlEncoderGetError(encoder)

    if boxes:
        done(library.JxlEncoderUseBoxes(encoder))
    done(library.JxlEncoderSetBasicInfo(encoder, ctypes.byref(info)))
    if info.alpha_premultiplied:
        channel = _ExtraChannel()
        library.JxlEncoderInitExtraChannelInfo(0, ctypes.byref(channel))
        channel.premultiplied = 1
        done(library.JxlEncoderSetExtraChannelInfo(encoder, ctypes.c_size_t(0), ctypes.byref(channel)))
    if alpha_name:
        size = ctypes.c_size_t(len(alpha_name))
        done(library.JxlEncoderSetExtraChannelName(encoder, ctypes.c_size_t(0), alpha_name, size))
    if profile is not None:
        done(library.JxlEncoderSetICCProfile(encoder, profile, ctypes.c_size_t(len(profile))))
    else:
        color = _ColorEncoding()
        library.JxlColorEncodingSetToSRGB(ctypes.byref(color), int(bands < 3))
        for name, value in (space or {}).items():
            setattr(color, name, value)
        done(library.JxlEncoderSetColorEncoding(encoder, ctypes.byref(color)))
    for kind, content in (boxes or {}).items():
        size = ctypes.c_size_t(len(content))
        done(library.JxlEncoderAddBox(encoder, kind, content, size, int(compressed_boxes)))
    if boxes:
        library.JxlEncoderCloseBoxes(encoder)
    kind = {np.dtype(np.uint8): 2, np.dtype(np.uint16): 3, np.dtype(np.float32): 0}[first.dtype]
    for number, picture in enumerate(pictures):
        settings = ctypes.c_void_p(library.JxlEncoderFrameSettingsCreate(encoder, None))
        done(library.JxlEncoderSetFrameLossless(settings, int(distance is None)))
        if distance is not None:
            done(library.JxlEncoderSetFrameDistance(settings, ctypes.c_float(distance)))
        for option, value in (options or {}).items():
            done(library.JxlEncoderFrameSettingsSetOption(settings, option, ctypes.c_int64(value)))
        if durations:
            frame = _FrameHeader()
            library.JxlEncoderInitFrameHeader(ctypes.byref(frame))
            frame.duration = durations[number]
            if crops and crops[number] is not None:
                frame.have_crop = 1
                frame.left, frame.top = crops[number]
                frame.ysize, frame.xsize = picture.shape[:2]
                frame.blend.mode, frame.blend.source = 2 * blended, 1
            if crops:
                frame.save_as_reference = 1
            done(library.JxlEncoderSetFrameHeader(settings, ctypes.byref(frame)))
        if layer_name:
            done(library.JxlEncoderSetFrameName(settings, layer_name))
        layout = _PixelFormat(bands, kind, 0, 0)
        data = np.ascontiguousarray(picture).tobytes()
        size = ctypes.c_size_t(len(data))
        done(library.JxlEncoderAddImageFrame(settings, ctypes.byref(layout), data, size))
    library.JxlEncoderCloseInput(encoder)
    room = ctypes.create_string_buffer(1 << 24)
    place, left = ctypes.c_void_p(ctypes.addressof(room)), ctypes.c_size_t(len(room))
    done(library.JxlEncoderProcessOutput(encoder, ctypes.byref(place), ctypes.byref(left)))
    library.JxlEncoderDestroy(encoder)
    return room.raw[: len(room) - left.value]


def times(data: bytes) -> tuple[tuple[int, ...], int | None]:
    """Return the milliseconds of each frame, and how often an animation plays, as the library tells them."""
    library = _library()
    library.JxlDecoderCreate.restype = ctypes.c_void_p
    decoder = ctypes.c_void_p(library.JxlDecoderCreate(None))
    assert library.JxlDecoderSubscribeEvents(decoder, 0x40 | 0x400) == 0
    assert library.JxlDecoderSetInput(decoder, data, ctypes.c_size_t(len(data))) == 0
    library.JxlDecoderCloseInput(decoder)
    info, frame, delays = _BasicInfo(), _FrameHeader(), []
    while status := library.JxlDecoderProcessInput(decoder):
        assert status in (0x40, 0x400), status
        if status == 0x40:
            assert library.JxlDecoderGetBasicInfo(decoder, ctypes.byref(info)) == 0
        else:
            assert library.JxlDecoderGetFrameHeader(decoder, ctypes.byref(frame)) == 0
            if info.have_animation:
                delays.append(round(frame.duration * 1000 * info.divisor / info.rate))
    library.JxlDecoderDestroy(decoder)
    return tuple(delays), info.plays if info.have_animation else None
