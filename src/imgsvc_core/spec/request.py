"""The whole request: which operations, in which order, and how the result is encoded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.spec.adjust import Adjust, Auto
from imgsvc_core.spec.declare import Operation, shown
from imgsvc_core.spec.filters import Filter
from imgsvc_core.spec.frame import Border, Mask, Padding
from imgsvc_core.spec.geometry import Crop, Flip, Resize, Rotate, Scale
from imgsvc_core.spec.output import Output
from imgsvc_core.spec.watermark import Watermark

_O = TypeVar("_O", bound=Operation)


def _part(operation: type[_O]) -> _O | None:
    """A field that holds one operation or nothing."""

    def check(value: object) -> object:
        if value is None or isinstance(value, operation):
            return value
        if isinstance(value, Mapping):
            from imgsvc_core.spec.parsing import parse_operation

            return parse_operation(operation, value, path=operation.key)
        message = f"{operation.title} must be {operation.__name__} or a mapping, got {shown(value)}"
        raise SpecError([Problem(operation.key, message)])

    field: _O | None = attrs.field(default=None, converter=check, metadata={"operation": operation})
    return field


def _filters(value: Filter | Iterable[Filter] | None) -> tuple[Filter, ...]:
    if value is None:
        return ()
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    filters: tuple[Any, ...] = tuple(value) if several else (value,)  # type: ignore[arg-type]
    for item in filters:
        if not isinstance(item, Filter):
            message = f"Filter must be built from filter classes, got {shown(item)}"
            raise SpecError([Problem("filter", message)])
    return filters


@attrs.frozen(kw_only=True)
class Spec:
    """A request. The fields stand in the order of application, whatever order a JSON document has.

    Specs compare and hash by value. ``digest`` is the same for requests that ask for the same thing.
    """

    flip: Flip | None = _part(Flip)
    rotate: Rotate | None = _part(Rotate)
    crop: Crop | None = _part(Crop)
    resize: Resize | None = _part(Resize)
    scale: Scale | None = _part(Scale)
    auto: Auto | None = _part(Auto)
    adjust: Adjust | None = _part(Adjust)
    filter: tuple[Filter, ...] = attrs.field(default=(), converter=_filters)
    mask: Mask | None = _part(Mask)
    padding: Padding | None = _part(Padding)
    border: Border | None = _part(Border)
    watermark: Watermark | None = _part(Watermark)
    output: Output | None = _part(Output)

    def canonical(self) -> str:
        """The request as the shortest JSON text: no neutral operations, no defaults, keys sorted."""
        from imgsvc_core.spec.parsing import unparse

        return json.dumps(unparse(self.simplified()), sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form in hexadecimal: the key of a cache of results."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def simplified(self) -> Spec:
        """The same request without operations that change nothing."""
        neutral = [name for name, part in self.operations() if part.is_neutral]
        filters = tuple(item for item in self.filter if not item.is_neutral)
        if not neutral and filters == self.filter:
            return self
        return attrs.evolve(self, **dict.fromkeys(neutral), filter=filters)

    def operations(self) -> tuple[tuple[str, Operation], ...]:
        """Names and values of the operations that are there, in the order of application, filters aside."""
        parts: list[tuple[str, Any]] = [(name, getattr(self, name)) for name in OPERATIONS]
        return tuple((name, part) for name, part in parts if part is not None)


OPERATIONS: Mapping[str, type[Operation]] = {
    field.name: field.metadata["operation"] for field in attrs.fields(Spec) if "operation" in field.metadata
}
"""The operations of a request by key, filters aside, in the order of application."""

PHASES: tuple[str, ...] = (
    "orient",
    "flip",
    "rotate",
    "crop",
    "resize",
    "scale",
    "auto",
    "adjust",
    "filter",
    "mask",
    "padding",
    "border",
    "watermark",
    "opacity",
    "output",
)
"""The order in which a picture is worked on. Orientation and conversion to sRGB come first."""
