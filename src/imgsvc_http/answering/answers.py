"""The JSON bodies of answers as classes; `unstructured` gives their JSON, `schema_of` their JSON Schema.

A field with a default is left out while it has that default. Every body also has ``success`` and ``code``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import cattrs
from cattrs.gen import make_dict_unstructure_fn

import imgsvc_core
from imgsvc_core import FORMATS, Face, ImageInfo
from imgsvc_core.spec import facts_schema


def documented(doc: str, *, schema: dict[str, Any] | None = None, default: Any = attrs.NOTHING) -> Any:
    """Declare a field with its documentation, and more of its JSON Schema than its type says."""
    return attrs.field(default=default, metadata={"doc": doc, "schema": schema or {}})


def _fact(name: str, default: Any = attrs.NOTHING, *, schema: dict[str, Any] | None = None) -> Any:
    """Declare a fact of a picture, documented as the library does."""
    doc = attrs.fields_dict(ImageInfo)[name].metadata["doc"]
    return documented(doc, default=default, schema=schema)


_ID = {"format": "uuid"}
_AT_LEAST_0 = {"minimum": 0}
_URI = {"format": "uri"}


_LOSSY_HAVE_QUALITY: dict[str, Any] = {
    "if": {
        "properties": {"format": {"enum": [row.name for row in FORMATS.values() if row.quality is not None]}}
    },
    "then": {"required": ["quality", "subsample"]},
    "else": {"properties": {"quality": False, "subsample": False}},
}


@attrs.frozen(kw_only=True)
class Image:
    """The facts of a picture. Of a source, ``subsample`` and ``quality`` are there if its file tells them."""

    name: str = _fact("name")
    format: str = _fact("format")
    width: int = _fact("width")
    height: int = _fact("height")
    colorspace: str = _fact("colorspace")
    interlaced: bool = _fact("interlaced")
    subsample: str | None = _fact("subsample", None, schema={"pattern": "^4:[0-4]:[0-4]$"})
    depth: int = _fact("depth")
    quality: int | None = _fact("quality", None, schema={"minimum": 1, "maximum": 100})
    look: float | None = _fact("look", None, schema={"maximum": 100})
    bytes: int = _fact("bytes")
    frames: int = _fact("frames")
    alpha: bool = _fact("alpha")
    orientation: int = _fact("orientation")
    sha256: str = _fact("sha256")


@attrs.frozen(kw_only=True)
class ResultImage(Image):
    """The facts of a result, and where it is; with ``quality`` and ``subsample`` if its format has them."""

    url: str = documented("Where the result is.", schema=_URI)
    expires_at: datetime | None = documented("When it is deleted from temporary storage.", default=None)
    faces: tuple[Face, ...] | None = documented("The faces, if the request asked for them.", default=None)
    facts: dict[str, Any] | None = documented(
        "The facts of its pixels that the request asked for.", schema=facts_schema(), default=None
    )


@attrs.frozen(kw_only=True)
class Shown:
    """The picture of a URL, which is not encoded to tell of it."""

    width: int = _fact("width")
    height: int = _fact("height")
    frames: int = _fact("frames")
    facts: dict[str, Any] = documented(
        "The facts of its pixels that the URL asks for.", schema=facts_schema()
    )


@attrs.frozen(kw_only=True)
class Info:
    """What a URL of a picture tells about it."""

    input: Image = documented("The source.")
    output: Shown = documented("The picture.")


@attrs.frozen(kw_only=True)
class Timing:
    """How long each part took, in milliseconds."""

    fetch: float = documented("Fetching the source.", schema=_AT_LEAST_0)
    decode: float = documented("Decoding the source.", schema=_AT_LEAST_0)
    process: float = documented("Applying the operations.", schema=_AT_LEAST_0)
    encode: float = documented("Encoding the result, and what runs at the same time.", schema=_AT_LEAST_0)
    store: float = documented("Storing the result.", schema=_AT_LEAST_0)


@attrs.frozen(kw_only=True)
class PlanStep:
    """A step of the plan that a request was compiled to, with the size of a frame after it."""

    phase: str = documented("The phase that it belongs to.")
    text: str = documented("What is done.")
    why: str = documented("Why it is done; empty if the request says it all.")
    width: int
    height: int


@attrs.frozen(kw_only=True)
class LayerBox:
    """Where a layer lies on the result, in pixels. Parts outside of it are cut off."""

    left: int
    top: int
    width: int
    height: int


@attrs.frozen(kw_only=True)
class Result:
    """The result of a processing request."""

    id: str = documented("Id of the request.", schema=_ID)
    input: Image
    output: ResultImage = documented("The result.", schema=_LOSSY_HAVE_QUALITY)
    timing: Timing
    notes: tuple[str, ...] = documented(
        "Losses because of the format of the result (frames, transparency, colors), and ignored fields.",
        default=(),
    )
    plan: tuple[PlanStep, ...] | None = documented(
        "How the request was carried out, if it asked for that.", default=None
    )
    layers: tuple[LayerBox, ...] | None = documented(
        "Where its layers lie, if it has some and asked for the plan.", default=None
    )


@attrs.frozen(kw_only=True)
class Preview(Result):
    """The result of a request that is not stored."""

    output: Image = documented("The result.", schema=_LOSSY_HAVE_QUALITY)  # type: ignore[assignment]


_IGNORED = "Form field '{}' is unknown: parameters belong into the JSON of the field 'data'."
_OF_IMAGES = tuple(attrs.fields_dict(Image))
BRIEF = ("format", "width", "height", "bytes")
"""Facts of a result that the list of recent requests tells."""


def told(
    result: imgsvc_core.Result,
    output: Mapping[str, Any],
    plan: Sequence[Mapping[str, Any]] | None,
    ignored: Sequence[str] = (),
) -> tuple[str, str]:
    """Return what a worker knows of the JSON of a `Result`: up to the URL, and after the timing.

    ``ignored`` are the names of unknown fields of the form with the source.
    """
    images = [_image(result.input.to_dict()), _image(output)]
    if result.faces is not None:
        images[1]["faces"] = [attrs.asdict(face) for face in result.faces]
    if result.output.facts:
        images[1]["facts"] = result.output.facts
    source, made = map(_json, images)
    found = (*result.notes, *map(_IGNORED.format, ignored))
    notes = f',"notes":{_json(found)}' if found else ""
    steps = f',"plan":{_json(plan)}' if plan is not None else ""
    boxes = f',"layers":{_json([box._asdict() for box in result.layers])}' if steps and result.layers else ""
    return f'"input":{source},"output":{made[:-1]}', f"{notes}{steps}{boxes}"


def info_body(source: ImageInfo, shown: Shown) -> bytes:
    """Return the JSON of an `Info` with ``success`` and ``code``."""
    told = {"input": _image(source.to_dict()), "output": attrs.asdict(shown)}
    return _json({"success": True, "code": 200, **told}).encode("ascii")


def _image(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: facts[name] for name in _OF_IMAGES if facts[name] is not None}


def result_text(
    id_: str, told: tuple[str, str], url: str | None, expires_at: datetime | None, timing: Mapping[str, float]
) -> str:
    """Return the JSON of a `Result` with ``success`` and ``code``. The JSON of the worker stays as it is.

    Args:
        id_: the id of the request.
        told: as `told` gives it.
        url: where the result is, if it was stored.
        expires_at: when it expires.
        timing: the milliseconds of each part.
    """
    before, after = told
    until = "" if expires_at is None else f',"expires_at":"{timestamp(expires_at)}"'
    place = "" if url is None else f',"url":{_json(url)}{until}'
    head = f'{{"success":true,"code":200,"id":"{id_}"'
    return f'{head},{before}{place}}},"timing":{_json(timing)}{after}}}'


_json = json.JSONEncoder(separators=(",", ":")).encode


@attrs.frozen(kw_only=True)
class Accepted:
    """An asynchronous request that is kept durably."""

    id: str = documented("Id of the request.", schema=_ID)


@attrs.frozen(kw_only=True)
class Deleted:
    """The id of what was deleted."""

    id: str = documented("Its id.")


@attrs.frozen(kw_only=True)
class WrongParameter:
    """A wrong parameter of a request."""

    path: str = documented("Where it is, such as adjust.brightness.")
    message: str = documented("What was expected, and what came.")


@attrs.frozen(kw_only=True)
class Failure:
    """An error."""

    id: str = documented("Id of the request.", schema=_ID)
    error: str = documented("Stable name of the kind of error.")
    message: str = documented(
        "What is wrong, and what to do about it; of wrong parameters, what the first must be."
    )
    errors: tuple[WrongParameter, ...] = documented("Every wrong parameter.", default=())


def timestamp(moment: datetime) -> str:
    """Return a moment as answers give it: UTC, ISO 8601 with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_CONVERTER = cattrs.Converter()
_CONVERTER.register_unstructure_hook(datetime, timestamp)
_CONVERTER.register_unstructure_hook_factory(
    attrs.has, lambda cls: make_dict_unstructure_fn(cls, _CONVERTER, _cattrs_omit_if_default=True)
)


def unstructured(answer: attrs.AttrsInstance) -> dict[str, Any]:
    """Return the JSON of an answer, without ``success`` and ``code``."""
    document: dict[str, Any] = _CONVERTER.unstructure(answer)
    return document
