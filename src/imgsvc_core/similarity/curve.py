"""How many bytes a result takes at each look, in one format."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import attrs

from imgsvc_core._runtime.deadline import Deadline, check_time
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.limits import Limits
from imgsvc_core.processing import ProcessOptions, process
from imgsvc_core.similarity.reference import Reference
from imgsvc_core.spec import Spec, unparse
from imgsvc_core.targets.look import gap, gaps, is_exact, lowest_quality, rounded_look
from imgsvc_core.targets.result import Result

_MOST_SCORED = 40_000_000  # pixels of all frames, which take some seconds
_LEAST_PROMISE = 30.0
_PROMISES = ("quality", "look", "lossless", "max_bytes", "if_smaller", "keep_pixels", "transcode")
_SHARE = 0.5  # of the distance to what is typical; all of it ends far off at other looks


@frozen(kw_only=True)
class Point:
    """A file of a result.

    Attributes:
        bytes: its size.
        look: its SSIMULACRA2, or None if that would take too long.
        quality: its quality, in formats that have one.
        encode: how long it took to encode, in milliseconds.
    """

    bytes: int
    look: float | None
    quality: int | None
    encode: float


Found = tuple[tuple[Point, ...], tuple[str, ...]]
"""Points, and sentences about the frames, transparency or colors that the format cannot hold."""


def point_as_asked(source: bytes, spec: Spec, **options: Unpack[ProcessOptions]) -> Found:
    """Return the file that a request asks for, and the notes of its result.

    Raises what `process` raises.
    """
    result = process(source, spec, **options)
    output = result.output
    look = output.look
    if look is None and _is_exact(result):
        look = 100.0
    elif look is None and _pixels(result) <= _MOST_SCORED:
        look = _deadline(options).run(Reference(result.to_vips()).score, result.data)
    point = Point(
        bytes=output.bytes,
        look=None if look is None else rounded_look(look),
        quality=output.quality,
        encode=result.timing.encode,
    )
    return (point,), result.notes


def curve(source: bytes, spec: Spec, *, looks: Sequence[float], **options: Unpack[ProcessOptions]) -> Found:
    """Return files that look about as good as asked for, in the order of ``looks``, and notes.

    Each has the quality that is typical for a look, moved towards where the points before it were. Quality,
    look and size that the request asks for do not matter. Looks that need the same quality have one point.

    Raises:
        UnsupportedOperation: the request names no format with a quality, or there are too many pixels.
        ImgsvcError: what `process` raises.
    """
    row = FORMATS.get(str(spec.output and spec.output.format))
    if row is None or row.quality is None:
        raise UnsupportedOperation("A curve is of one format that has a quality: name it in output.format.")
    document = unparse(spec)
    output = {name: value for name, value in document["output"].items() if name not in _PROMISES}
    output["look"] = max(_LEAST_PROMISE, *looks)  # so that the plan counts the memory of scoring
    result = process(source, {**document, "output": output}, **options)
    if _pixels(result) > _MOST_SCORED:
        raise UnsupportedOperation(
            f"A curve takes at most {_MOST_SCORED // 10**6} megapixels in all frames, got "
            f"{math.ceil(_pixels(result) / 10**6)}; resize the picture."
        )
    return _deadline(options).run(tuple, _points(result, looks)), tuple(result.plan.losses(row.name))


def _points(result: Result[bytes], looks: Sequence[float]) -> Iterator[Point]:
    settings = attrs.evolve(result.plan.save[0], look=None)
    typical = gaps(FORMATS[settings.format].looks)
    image = result.to_vips()
    reference = Reference(image)
    known: dict[int, float] = {}
    for look in looks:
        check_time()
        quality = _guess(typical, look, known)
        if quality in known:
            continue
        started = time.perf_counter()
        encoded = save(image, attrs.evolve(settings, quality=quality))
        took = round(1000 * (time.perf_counter() - started), 3)
        assert encoded.data is not None
        known[quality] = reference.score(encoded.data)
        yield Point(bytes=encoded.info.bytes, look=rounded_look(known[quality]), quality=quality, encode=took)


def _guess(typical: Sequence[float], look: float, known: Mapping[int, float]) -> int:
    """Return a quality that may have a look, by the nearest of the known looks by quality."""
    wanted = gap(look)
    if known:
        near = min(known, key=lambda quality: abs(known[quality] - look))
        wanted -= _SHARE * (gap(known[near]) - typical[near])
    return lowest_quality(typical, wanted)


def _is_exact(result: Result[bytes]) -> bool:
    """Return True if a result is known to have every pixel, or to be the source."""
    (settings, *others) = result.plan.save
    if result.plan.original == "always":
        return True
    exact = is_exact(FORMATS[settings.format], settings)
    return exact and not others and not result.plan.save_exactly


def _pixels(result: Result[Any]) -> int:
    return result.plan.size.width * result.plan.size.height * result.plan.frames


def _deadline(options: ProcessOptions) -> Deadline:
    return Deadline((options.get("limits") or Limits()).seconds)
