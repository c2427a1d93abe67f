"""Requests as frozen classes, one per operation, parsed from JSON and written back to it."""

from imgsvc_core.spec.adjust import Adjust, Auto
from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Operation, Param, params
from imgsvc_core.spec.filters import (
    FILTERS,
    Blur,
    Duotone,
    Filter,
    Halftone,
    Isolate,
    Monochrome,
    Pixellate,
    Sepia,
    Vignette,
)
from imgsvc_core.spec.frame import Border, Canvas, Mask, Padding
from imgsvc_core.spec.geometry import Crop, Flip, Orient, Resize, Rotate, Scale, Trim
from imgsvc_core.spec.internal import restore
from imgsvc_core.spec.output import Output
from imgsvc_core.spec.request import OPERATIONS, Spec, parse, request_schema, unparse
from imgsvc_core.spec.watermark import Watermark

__all__ = [
    "FILTERS",
    "OPERATIONS",
    "Adjust",
    "Auto",
    "Blur",
    "Border",
    "Canvas",
    "Color",
    "Crop",
    "Duotone",
    "Filter",
    "Flip",
    "Halftone",
    "Isolate",
    "Mask",
    "Monochrome",
    "Operation",
    "Orient",
    "Output",
    "Padding",
    "Param",
    "Pixellate",
    "Resize",
    "Rotate",
    "Scale",
    "Sepia",
    "Spec",
    "Trim",
    "Vignette",
    "Watermark",
    "params",
    "parse",
    "request_schema",
    "restore",
    "unparse",
]
