"""Facts of animated AVIF by libavif itself, of which Pillow shows only a part."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path


class _Timing(ctypes.Structure):
    _fields_ = (
        ("timescale", ctypes.c_uint64),
        ("pts", ctypes.c_double),
        ("pts_in_timescales", ctypes.c_uint64),
        ("duration", ctypes.c_double),
        ("duration_in_timescales", ctypes.c_uint64),
    )


class _Decoder(ctypes.Structure):
    """The first fields of ``avifDecoder`` in libavif 1."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("codec", "threads", "source", "progressive", "incremental")),
        *((name, ctypes.c_int) for name in ("ignore_exif", "ignore_xmp")),
        *((name, ctypes.c_uint32) for name in ("most_pixels", "longest_side", "most_images", "strict")),
        ("image", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("index", "count", "state")),
        ("timing", _Timing),
        ("timescale", ctypes.c_uint64),
        ("duration", ctypes.c_double),
        ("duration_in_timescales", ctypes.c_uint64),
        ("repetitions", ctypes.c_int),
        ("alpha", ctypes.c_int),
    )


@cache
def _library() -> ctypes.CDLL:
    from PIL import features

    features.version_module("avif")  # loads the library
    maps = Path("/proc/self/maps").read_text().splitlines()
    library = ctypes.CDLL(next(line.split()[-1] for line in maps if "libavif-" in line))
    library.avifDecoderCreate.restype = ctypes.POINTER(_Decoder)
    return library


def times(data: bytes) -> tuple[tuple[int, ...], int, bool]:
    """Return the milliseconds of each frame, how often they play (0 for ever), and if there is alpha."""
    library = _library()
    decoder = library.avifDecoderCreate()
    assert library.avifDecoderSetIOMemory(decoder, data, ctypes.c_size_t(len(data))) == 0
    assert library.avifDecoderParse(decoder) == 0
    delays, timing = [], _Timing()
    for number in range(decoder.contents.count):
        assert library.avifDecoderNthImageTiming(decoder, number, ctypes.byref(timing)) == 0
        delays.append(round(1000 * timing.duration))
    plays, alpha = max(0, decoder.contents.repetitions + 1), bool(decoder.contents.alpha)
    library.avifDecoderDestroy(decoder)
    return tuple(delays), plays, alpha
