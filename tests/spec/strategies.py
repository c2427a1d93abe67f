"""Hypothesis strategies for requests, made from the declarations."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from imgsvc_core.errors import SpecError
from imgsvc_core.spec import (
    FILTERS,
    LISTS,
    OPERATIONS,
    Color,
    Layer,
    Operation,
    Param,
    Redact,
    Spec,
    params,
    unparse,
)
from imgsvc_core.spec.kinds import AspectRatio, Boolean, Choice, HexColor, Integer, Number, Text, Words
from imgsvc_core.spec.layers.text import Content
from imgsvc_core.spec.length import LengthKind
from imgsvc_core.spec.parts import PartKind, PartsKind


def values(param: Param) -> st.SearchStrategy[Any]:
    """Valid values of a parameter in their Python form."""
    match param.kind:
        case Integer(minimum=low, maximum=high):
            return st.integers(low, high)
        case Number(minimum=low, maximum=high):
            return st.floats(low, high)
        case Boolean():
            return st.booleans()
        case Choice(options=options):
            return st.sampled_from(options)
        case Words(options=options):
            return st.lists(st.sampled_from(options)).map(tuple)
        case Text(maximum=longest):
            return st.text(min_size=1, max_size=min(longest, 30))
        case HexColor(alpha=alpha):
            channel = st.integers(0, 255)
            return st.builds(Color, channel, channel, channel, channel if alpha else st.just(255))
        case AspectRatio():
            part = st.floats(0.0001, 100_000, exclude_max=True)
            return st.tuples(part, part)
        case LengthKind(minimum=low, maximum=high, least=least, most=most):
            percent = st.integers(1000 * least, 1000 * most).map(lambda share: f"{share / 1000}%")
            return st.integers(low, high) | percent
        case PartKind(operation=operation):
            return operations(operation)
        case PartsKind(operation=operation):
            return st.lists(operations(operation), min_size=1, max_size=2)
        case Content():
            return st.text("ab éя<&\n", max_size=12).map(lambda text: f"{text}x")
    raise AssertionError(param.kind)


@st.composite
def operations(draw: st.DrawFn, operation: type[Operation]) -> Operation:
    """Valid operations of a class."""
    chosen = {
        name: draw(values(param))
        for name, param in params(operation).items()
        if param.required or draw(st.booleans())
    }
    while True:
        try:
            return operation(**{params(operation)[name].attribute: item for name, item in chosen.items()})
        except SpecError as error:  # a rule between parameters: give what is missing, leave the others out
            (problem, *_) = error.problems
            if problem.path in chosen:
                del chosen[problem.path]
            else:
                chosen[problem.path] = draw(values(params(operation)[problem.path]))


def specs() -> st.SearchStrategy[Spec]:
    """Valid requests."""
    parts = {name: st.none() | operations(operation) for name, operation in OPERATIONS.items()}
    filters = st.lists(st.sampled_from(FILTERS).flatmap(operations), max_size=4)
    layers = st.lists(operations(Layer), max_size=3)
    redact = st.lists(operations(Redact), max_size=3)
    return st.builds(_spec, redact=redact, filter=filters, layers=layers, **parts)


def _spec(**parts: Any) -> Spec:
    """Return a request. Its pixels stay only if nothing is asked of them."""
    output = parts["output"]
    kept = output is not None and (output.keep_pixels or output.transcode)
    return Spec(**({"output": output} if kept else parts))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
"""Any JSON value, NaN and infinities included."""


@st.composite
def nearly_requests(draw: st.DrawFn) -> dict[str, Any]:
    """Objects with the right keys and any values."""
    request: dict[str, Any] = {}
    for name, operation in {**OPERATIONS, **{item.key: item for item in FILTERS}}.items():
        if not draw(st.booleans()):
            continue
        names = st.sampled_from(list(params(operation)))
        usual = st.sampled_from([0, 1, -1, 50, 1.5, "fit", "rect", "16:9", "fff", True, None])
        value = draw(st.dictionaries(names, usual | json_values, max_size=4) | json_values)
        if name in OPERATIONS:
            request[name] = value
        else:
            request.setdefault(draw(st.sampled_from(["filter", "stylize"])), {})[name] = value
    return request


@st.composite
def with_and_without_nulls(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Valid requests twice: with null for some parameters, filters and operations, and without those."""
    request = unparse(draw(specs()))
    nulls = {name: dict(part) for name, part in request.items() if name not in LISTS}
    for name, operation in OPERATIONS.items():
        absent = [item.name for item in params(operation).values() if item.name not in request.get(name, {})]
        if name in request:
            nulls[name] |= dict.fromkeys(
                draw(st.lists(st.sampled_from(absent), unique=True)) if absent else ()
            )
        elif draw(st.booleans()):
            nulls[name] = None
    for name, absent in (("layers", "padding"), ("redact", "color")):
        if name in request:
            nulls[name] = [{absent: None, **item} for item in request[name]]
    filters = [{**item, **draw(_null_filters(item))} for item in request.get("filter", ())]
    for item in filters:
        for key, part in item.items():
            absent = [name for name in params(_FILTERS[key]) if part is not None and name not in part]
            if absent and draw(st.booleans()):
                item[key] = {**part, **dict.fromkeys(absent)}
    if filters or draw(st.booleans()):
        nulls["filter"] = filters or None
    return nulls, request


_FILTERS = {item.key: item for item in FILTERS}


def _null_filters(item: dict[str, Any]) -> st.SearchStrategy[dict[str, None]]:
    others = [key for key in _FILTERS if key not in item]
    return st.lists(st.sampled_from(others), max_size=3, unique=True).map(dict.fromkeys)
