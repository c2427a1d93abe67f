"""Parameters of requests and fields of results, as the tables of the interface have them."""

from __future__ import annotations

from typing import Any

EDGES = ["top-left", "top", "top-right", "right", "bottom-right", "bottom", "bottom-left", "left"]

FILTERS: dict[str, dict[str, Any]] = {
    "duotone": {"light": "fc0", "dark": "112233"},
    "blur": {"mode": "gaussian", "value": 10.5},
    "sepia": {"value": 60},
    "pixellate": {"value": 20},
    "monochrome": {"value": 50, "color": "ff336699"},
    "vignette": {"value": 50, "radius": 40},
    "halftone": {"value": 100},
    "isolate": {"color": "f00", "threshold": 0.5},
}
ADJUSTMENTS: dict[str, tuple[float, float]] = {
    "brightness": (-100, 100), "saturation": (-100, 100), "contrast": (-100, 100), "exposure": (-100, 100),
    "vibrance": (-100, 100), "gamma": (-100, 100), "hue": (-180, 180), "highlight": (-100, 0),
    "shadow": (0, 100), "sharpen": (-100, 100), "unsharp": (0, 100), "temperature": (0, 100),
    "opacity": (0.0, 1.0), "tint": (0, 100),
}  # fmt: skip

IMAGE_FIELDS: dict[str, tuple[type, ...]] = {
    "name": (str,), "format": (str,), "width": (int,), "height": (int,), "colorspace": (str,),
    "interlaced": (bool,), "depth": (int,), "bytes": (int,), "frames": (int,), "alpha": (bool,),
    "orientation": (int,), "sha256": (str,),
}  # fmt: skip
JPEG_FIELDS: dict[str, tuple[type, ...]] = {"subsample": (str,), "quality": (int,)}
"""Fields of formats that have them; they are left out for others."""
STORED_FIELDS = {**IMAGE_FIELDS, "url": (str,)}
TEMPORARY_FIELDS = {**STORED_FIELDS, "expires_at": (str,)}
