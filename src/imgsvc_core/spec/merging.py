"""Merge parameters into the JSON document of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imgsvc_core.spec.filters import FILTERS

Document = dict[str, Any]

_FILTER_KEYS = frozenset(item.key for item in FILTERS)


def merge(request: Document, key: str, part: Mapping[str, Any] | list[Any]) -> None:
    """Merge parameters into the operation or filter of a request; the new values win. A list of layers
    replaces another one, and so does a background with a kind or a color.

    Mistakes in the request are left to the parser. Only ``request`` itself is changed, and not the values in
    it.
    """
    if key not in _FILTER_KEYS:
        combined = _background if key == "background" else _merged
        request[key] = combined(request.get(key), part)
        return
    old_name = request.get("filter") is None and request.get("stylize") is not None
    place = "stylize" if old_name else "filter"
    filters = {} if request.get(place) is None else request[place]
    if isinstance(filters, Mapping):
        request[place] = {**filters, key: _merged(filters.get(key), part)}
    elif isinstance(filters, list):
        index = next((n for n, item in enumerate(filters) if isinstance(item, Mapping) and key in item), None)
        if index is None:
            request[place] = [*filters, {key: part}]
        else:
            changed = {**filters[index], key: _merged(filters[index][key], part)}
            request[place] = [*filters[:index], changed, *filters[index + 1 :]]


def _background(present: Any, part: Any) -> Any:
    """Return a background with other parameters, or another one if they tell of which kind."""
    if "kind" in part or "color" in part:
        return part
    return _merged({"color": present} if isinstance(present, str) else present, part)


def _merged(present: Any, part: Any) -> Any:
    if present is None or not isinstance(part, Mapping):
        return part
    return {**present, **part} if isinstance(present, Mapping) else present
