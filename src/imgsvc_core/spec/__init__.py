"""Requests as frozen classes, one per operation, parsed from JSON and written back to it."""

from typing import TYPE_CHECKING

from imgsvc_core._runtime.public_names import names_later
from imgsvc_core.spec import adjust, filters, frame, geometry
from imgsvc_core.spec.adjust import *
from imgsvc_core.spec.background import Background
from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Operation, Param, params
from imgsvc_core.spec.facts import FACTS, facts_schema
from imgsvc_core.spec.filters import *
from imgsvc_core.spec.frame import *
from imgsvc_core.spec.geometry import *
from imgsvc_core.spec.geometry import Orient
from imgsvc_core.spec.length import Length
from imgsvc_core.spec.output import Output
from imgsvc_core.spec.redact import Redact
from imgsvc_core.spec.request import (
    LISTS,
    MOST_LAYERS,
    OPERATIONS,
    Request,
    Spec,
    parse,
    request_schema,
    unparse,
)
from imgsvc_core.spec.watermark import Watermark

if TYPE_CHECKING:
    from imgsvc_core.spec.internal import restore
    from imgsvc_core.spec.layers import Gradient, Layer, Picture, Shape

# Few requests need them.
__getattr__ = names_later(
    __name__, {"internal": ("restore",), "layers": ("Gradient", "Layer", "Picture", "Shape")}
)

__all__ = [
    "FACTS",
    "LISTS",
    "MOST_LAYERS",
    "OPERATIONS",
    "Background",
    "Color",
    "Gradient",
    "Layer",
    "Length",
    "Operation",
    "Orient",
    "Output",
    "Param",
    "Picture",
    "Redact",
    "Request",
    "Shape",
    "Spec",
    "Watermark",
    "facts_schema",
    "params",
    "parse",
    "request_schema",
    "restore",
    "unparse",
]
__all__ += adjust.__all__
__all__ += filters.__all__
__all__ += frame.__all__
__all__ += geometry.__all__
