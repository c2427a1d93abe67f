"""The body of a processing request: the library's request, and what the service adds to it."""

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from imgsvc_core._runtime.jsontext import SOMETHING, shown
from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_core.limits import Limits
from imgsvc_core.spec import MOST_LAYERS, Spec, parse, unparse
from imgsvc_core.spec.declaring import (
    Integer,
    Number,
    below,
    doc,
    operation_schema,
    or_null,
    params,
    parse_operation,
    parse_partial,
    request_object,
    unknown_keys,
)
from imgsvc_core.spec.presets import PRESET, PRESET_NAME, parse_merged, preset_names, with_presets
from imgsvc_http.fetching.social import is_social
from imgsvc_http.receiving.request_options import CdnOptions, FetchOptions, ResponseOptions, WebhookOptions
from imgsvc_stores import StoreSpec, parse_store, store_schema

_MOST_VALUES = 500  # each may be wrong, and then takes a sentence of the answer
_MOST_LAYER_VALUES = 2000  # a text with all that may lie around it has 30
_MOST_HEADERS = 32
_SHORTEST = 0.001  # s; a shorter limit ends every request
_MOST_UNLIMITED = 2**53  # as exact in JSON as other integers
_T = TypeVar("_T")

_SERVICE_KEYS = ("limits", "response", "webhook", "store", "cdn")
_NO_PRESETS: Mapping[str, Mapping[str, Any]] = {}
_FETCH_KEYS = ("url", "headers")


_USUAL_RESPONSE, _USUAL_CDN = ResponseOptions(), CdnOptions()
_NOTHING = Spec()


@attrs.frozen(kw_only=True)
class ProcessingRequest:
    """A parsed processing request. An upload has no ``url``. With ``plan`` the answer tells the plan.

    ``permanent`` is True if the result may stay in the service's own storage, and ``is_binary`` if the answer
    is to be the picture itself.
    """

    url: str | None
    headers: Mapping[str, str] = attrs.field(repr=False)
    spec: Spec
    limits: Limits
    plan: bool
    webhook: WebhookOptions | None
    store: StoreSpec | None
    permanent: bool
    is_binary: bool


_HEADERS_SCHEMA = {
    "type": ["object", "null"],
    "description": "Headers that are sent along with the fetch.",
    "additionalProperties": {"type": ["string", "null"]},
    "maxProperties": _MOST_HEADERS,
}

PRESET_NAME_SCHEMA = {"type": "string", "pattern": f"^{PRESET_NAME.pattern}$"}
_PRESET_SCHEMA = {
    "description": "Presets to begin with: one name, or several. Later ones win.",
    "anyOf": [
        PRESET_NAME_SCHEMA,
        {"type": "array", "items": PRESET_NAME_SCHEMA, "uniqueItems": True},
        {"type": "null"},
    ],
}


def parse_request(
    document: object,
    limits: Limits,
    *,
    fetching: bool,
    binary_header: str = "",
    presets: Mapping[str, Mapping[str, Any]] = _NO_PRESETS,
) -> ProcessingRequest:
    """Parse the JSON document of a processing request.

    Args:
        document: JSON values.
        limits: the limits of the service, which the request can lower.
        fetching: whether the picture is fetched from ``url``; otherwise it was uploaded.
        binary_header: the name of the header that asks for the picture itself, if it was sent.
        presets: the presets of the service by name.

    Raises:
        SpecError: lists all problems, each with its path.
    """
    document = _checked_object(document)
    own = (*_FETCH_KEYS, *_SERVICE_KEYS) if fetching else _SERVICE_KEYS
    problems: list[Problem] = []
    url = _or_default(None, _url, document, problems) if fetching else None
    readers = {
        **({"headers": _headers} if fetching else {}),
        PRESET: lambda value: _known_presets(value, presets),
        "limits": lambda value: _lowered(limits, value),
        **_READERS,
    }
    parts: dict[str, Any] = {}
    for key, read in readers.items():
        if document.get(key) is not None:
            parts[key] = _or_default(None, read, document[key], problems)
    headers, names = parts.get("headers") or {}, parts.get(PRESET) or ()
    spec = _or_default(_NOTHING, lambda value: _spec(value, own, names, presets), document, problems)
    response, cdn = parts.get("response") or _USUAL_RESPONSE, parts.get("cdn") or _USUAL_CDN
    mode = response_mode(document)  # None unless it is given
    is_binary = bool(binary_header) or mode == "binary"
    goes_elsewhere = is_binary or document.get("store") is not None
    if headers and url is not None and is_social(url):
        message = "Fetch 'headers' parameter must not be given with a social profile picture"
        problems.append(Problem("headers", message))
    if cdn.push and goes_elsewhere:
        problems.append(_push_problem(document, is_binary=is_binary))
    if is_binary or mode is not None:
        problems += _mode_problems(document, mode, binary_header)
    if problems:
        raise SpecError(problems)
    return ProcessingRequest(
        url=url,
        headers=headers,
        spec=spec,
        limits=parts.get("limits") or limits,
        plan=response.plan,
        webhook=parts.get("webhook"),
        store=parts.get("store"),
        permanent=cdn.push is not False and not goes_elsewhere,
        is_binary=is_binary,
    )


def _push_problem(document: Mapping[str, Any], *, is_binary: bool) -> Problem:
    """Return the problem of a result that is to stay, and to go elsewhere."""
    store = ["'store'"] if document.get("store") is not None else []
    elsewhere = " or ".join(["a binary response", *store] if is_binary else store)
    return Problem("cdn.push", f"Cdn 'push' parameter must not be true together with {elsewhere}")


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "response": lambda value: parse_operation(ResponseOptions, value, path="response"),
    "cdn": lambda value: parse_operation(CdnOptions, value, path="cdn"),
    "webhook": lambda value: parse_operation(WebhookOptions, value, path="webhook"),
    "store": parse_store,
}
"""Parsers for the parts of a document that the service adds."""


def _checked_object(document: object) -> Mapping[str, Any]:
    """Return a document that is an object of not too many values.

    Raises:
        SpecError: it is another one.
    """
    if not isinstance(document, dict):
        got = "an array" if isinstance(document, list) else SOMETHING  # it may be a secret
        raise invalid("", "The request must be a JSON object", f"got {got}")
    layers = document.get("layers")
    if isinstance(layers, list) and len(layers) <= MOST_LAYERS:
        if _has_more_values(layers, _MOST_LAYER_VALUES):
            raise invalid("layers", f"Layer list must hold at most {_MOST_LAYER_VALUES} values", "got more")
        rest = {**document, "layers": None}
    else:
        rest = document
    if _has_more_values(rest, _MOST_VALUES):
        path = next((key for key, value in rest.items() if _has_more_values([value], _MOST_VALUES)), "")
        raise invalid(path, f"The request must hold at most {_MOST_VALUES} values", "got more")
    return document


def _or_default(default: _T, read: Callable[[Any], _T], value: object, problems: list[Problem]) -> _T:
    """Return what a part of a document says, or the default, with the problems added to the others."""
    try:
        return read(value)
    except SpecError as error:
        problems.extend(error.problems)
        return default


def _url(document: Mapping[str, Any]) -> str:
    given = {"url": document["url"]} if "url" in document else {}
    try:
        return parse_operation(FetchOptions, given, path="").url
    except SpecError as error:
        raise SpecError(attrs.evolve(problem, path="url") for problem in error.problems) from None


def _spec(
    document: Mapping[str, Any],
    own: Sequence[str],
    names: Sequence[str],
    presets: Mapping[str, Mapping[str, Any]],
) -> Spec:
    """Return what is to be done with the picture: that of the presets, and then that of the document."""
    known = (*own, PRESET)
    rest = {key: value for key, value in document.items() if key not in known}
    if document.get(PRESET) is None:
        return _parsed(_JSON.encode(rest), known)
    partial = parse_partial(rest, "The request", also_known=(*own, PRESET))
    return parse_merged(with_presets(names, presets, partial), names) if names else _NOTHING


_JSON = json.JSONEncoder(separators=(",", ":"))


@functools.lru_cache(256)  # many pictures are asked for in the same way
def _parsed(text: str, known: tuple[str, ...]) -> Spec:
    return parse(json.loads(text), also_known=known)


def without_presets(document: dict[str, Any], spec: Spec) -> dict[str, Any]:
    """Return a document with its whole request instead of presets, which other nodes may not have."""
    if document.get(PRESET) is None:
        return document
    own = {key: value for key, value in document.items() if key in (*_FETCH_KEYS, *_SERVICE_KEYS)}
    return {**own, **unparse(spec)}


def _known_presets(value: object, presets: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    names = preset_names(value)
    with_presets(names, presets, {})
    return names


def response_mode(document: object) -> object:
    """Return the ``response.mode`` of a document, even if the document is wrong in other ways."""
    response = document.get("response") if isinstance(document, dict) else None
    return response.get("mode") if isinstance(response, dict) else None


def _mode_problems(document: Mapping[str, Any], mode: object, header: str) -> Iterator[Problem]:
    """Yield what contradicts the mode of the response, which the document or a header gives."""
    if header and mode == "json":
        message = f"Response 'mode' parameter must not be json together with the header {header}"
        yield Problem("response.mode", f"{message}; leave one of them out")
    conflicts = [key for key in ("webhook", "store") if document.get(key) is not None]
    if conflicts and mode == "binary":
        message = "Response 'mode' parameter must not be binary together with " + " or ".join(conflicts)
        yield Problem("response.mode", message)
    elif conflicts and header:
        yield Problem(header, f"Header '{header}' must be left out together with " + " or ".join(conflicts))


def request_body_schema(*, fetching: bool) -> dict[str, Any]:
    """Return the JSON Schema of a processing request."""
    core = request_object()
    properties = {
        **({"url": params(FetchOptions)["url"].schema(), "headers": _HEADERS_SCHEMA} if fetching else {}),
        **core["properties"],
        PRESET: _PRESET_SCHEMA,
        "limits": or_null(limits_schema()),
        "response": or_null(operation_schema(ResponseOptions)),
        "webhook": or_null(operation_schema(WebhookOptions)),
        "store": or_null(store_schema()),
        "cdn": or_null(operation_schema(CdnOptions)),
    }
    schema = {"title": "Fetch request" if fetching else "Upload request", **core, "properties": properties}
    return {**schema, "required": ["url"]} if fetching else schema


def limits_schema() -> dict[str, Any]:
    """Return the JSON Schema of the limits that a request may lower."""
    return {
        "type": "object",
        "title": "Limits",
        "description": f"{doc(Limits).partition('.')[0]}. No limit can be larger than that of the service.",
        "properties": {
            field.name: {
                "type": ["number" if field.metadata["unit"] == "s" else "integer", "null"],
                "minimum": _SHORTEST if field.metadata["unit"] == "s" else 1,
                "description": f"{field.metadata['doc']} ({field.metadata['unit']})",
            }
            for field in attrs.fields(Limits)
        },
        "additionalProperties": False,
    }


def _has_more_values(document: object, most: int) -> bool:
    """Return True if a document holds more values, at any depth; look at no more than that many."""
    containers: list[Any] = [document]
    seen = 0
    while containers:
        inner = containers.pop()
        values = inner.values() if isinstance(inner, dict) else inner
        for value in values:
            seen += 1
            if seen > most:
                return True
            if isinstance(value, (dict, list)):  # a union takes longer
                containers.append(value)
    return False


def _lowered(service: Limits, value: object) -> Limits:
    """Return the limits of the service with those of a request in their place."""
    if not isinstance(value, Mapping):
        raise invalid("limits", "Limits must be an object of parameters", f"got {shown(value)}")
    fields = attrs.fields_dict(Limits)
    problems = unknown_keys("Limits", [str(name) for name in value if name not in fields], fields)
    given: dict[str, Any] = {}
    for name, item in value.items():
        if name not in fields or item is None:
            continue
        kind = _lower_than(getattr(service, name), fields[name].metadata["unit"])
        try:
            given[name] = kind.parse(item)
        except ValueError:
            expected = f"Limits '{name}' parameter must be {kind.expectation}"
            problems.append(Problem(name, expected, f"got {shown(item)}"))
    if problems:
        raise SpecError(below("limits", problems))
    return attrs.evolve(service, **given)


def _lower_than(limit: float | None, unit: str) -> Integer | Number:
    """Return what a request may give instead of a limit of the service; `None` is no limit."""
    if unit == "s":
        return Number(_SHORTEST, _MOST_UNLIMITED if limit is None else limit)
    return Integer(1, _MOST_UNLIMITED if limit is None else int(limit))


def _headers(value: object) -> dict[str, str]:
    if (
        not isinstance(value, Mapping)
        or len(value) > _MOST_HEADERS
        or not all(isinstance(name, str) and isinstance(item, str | None) for name, item in value.items())
    ):
        expected = f"Fetch 'headers' parameter must be object of at most {_MOST_HEADERS} strings"
        raise invalid("headers", expected, f"got {SOMETHING}")
    return {name: item for name, item in value.items() if item is not None}
