"""For front ends: declare settings and fields of requests as operations declare their parameters."""

from imgsvc_core.spec.declare import (
    Operation,
    Param,
    below,
    declared,
    doc,
    operation_schema,
    or_null,
    param,
    params,
)
from imgsvc_core.spec.kinds import Boolean, Choice, Integer, Kind, Matching, Number, Text, Words
from imgsvc_core.spec.parsing import parse_operation, unknown_keys
from imgsvc_core.spec.parts import PartKind, PartsKind
from imgsvc_core.spec.request import parse_partial, request_object
from imgsvc_core.spec.rules import NotTogether

__all__ = [
    "Boolean",
    "Choice",
    "Integer",
    "Kind",
    "Matching",
    "NotTogether",
    "Number",
    "Operation",
    "Param",
    "PartKind",
    "PartsKind",
    "Text",
    "Words",
    "below",
    "declared",
    "doc",
    "operation_schema",
    "or_null",
    "param",
    "params",
    "parse_operation",
    "parse_partial",
    "request_object",
    "unknown_keys",
]
