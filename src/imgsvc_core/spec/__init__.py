"""Requests as frozen classes, one per operation, parsed from JSON and written back to it."""

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
from imgsvc_core.spec.internal import restore
from imgsvc_core.spec.layers import MOST_LAYERS, Gradient, Layer, Length, Picture, Shape
from imgsvc_core.spec.output import Output
from imgsvc_core.spec.redact import Redact
from imgsvc_core.spec.request import LISTS, OPERATIONS, Request, Spec, parse, request_schema, unparse
from imgsvc_core.spec.watermark import Watermark

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
__all__ += [*adjust.__all__, *filters.__all__, *frame.__all__, *geometry.__all__]
