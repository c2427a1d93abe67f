"""The scale of ``effort``, 0 (fast) to 9 (small), on the scale of each codec.

======  ==========  =====  ===  ====  =========  ====
effort  jpg         png    gif  webp  heic       avif
======  ==========  =====  ===  ====  =========  ====
0       plain       0      1    0     ultrafast  0
1       plain       1      2    1     superfast  1
2       plain       2      3    1     veryfast   2
3       optimized   3      4    2     faster     3
4       optimized   4      5    3     fast       4
5       optimized   5      6    3     medium     5
6       optimized   6      7    4     slow       6
7       trellis     7      8    5     slower     7
8       trellis     8      9    5     slower     8
9       exhaustive  9      10   6     veryslow   9
======  ==========  =====  ===  ====  =========  ====

The defaults are where more time stops to pay: plain for JPEG (progressive files are optimized anyway; for
baseline ones it saves 1 % at three times the time), 6 for PNG and WebP, 2 for GIF (6 takes four times as long
for 2 % less), 0 for HEIC, whose fastest preset also has the best picture at equal quality, 2 for AVIF.
JPEG 2000 and TIFF have no such setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_SCALES: Mapping[str, tuple[int | str, ...]] = MappingProxyType(
    {
        "jpg": (*["plain"] * 3, *["optimized"] * 4, *["trellis"] * 2, "exhaustive"),
        "png": tuple(range(10)),
        "apng": tuple(range(10)),
        "gif": tuple(range(1, 11)),
        "webp": (0, 1, 1, 2, 3, 3, 4, 5, 5, 6),
        "heic": (
            "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "slower",
            "veryslow",
        ),
        "avif": tuple(range(10)),
    }
)  # fmt: skip
_DEFAULTS: Mapping[str, int] = MappingProxyType(
    {"jpg": 0, "png": 6, "apng": 6, "gif": 2, "webp": 6, "heic": 0, "avif": 2}
)


def codec_effort(format: str, effort: int | None) -> int | str:
    """The effort, or the default one, as the codec of the format names it."""
    return _SCALES[format][_DEFAULTS[format] if effort is None else effort]
