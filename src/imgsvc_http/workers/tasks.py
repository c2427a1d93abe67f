"""The work of a worker process on one picture. Nothing here knows of HTTP or the event loop."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import pickle
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import attrs

import imgsvc_core as imgsvc
from imgsvc_core import FORMATS, Format, ImageInfo, Limits, Spec
from imgsvc_core._runtime.tasks import Task, TaskResult
from imgsvc_http.answering.answers import BRIEF, Shown, info_body, told
from imgsvc_urls.dialects import ForeignUrl
from imgsvc_urls.dialects.translating import translate


class LimitedTask(Task, Protocol):
    """A task with limits."""

    @property
    def limits(self) -> Limits:
        """The limits of the work. Its worker is killed soon after ``seconds``."""


def plain_limits(limits: Limits) -> Limits:
    """Return limits of the library. To unpickle the limits of the service, a worker would import its
    settings."""
    return _copied(limits)


@functools.lru_cache
def _copied(limits: Limits) -> Limits:
    return Limits(**{name: getattr(limits, name) for name in attrs.fields_dict(Limits)})


# Many requests ask for the same, and pickling that takes most of the time of handing a small picture over.
_MOST_REMEMBERED = 16  # as one may be as large as a request


@functools.lru_cache(_MOST_REMEMBERED)
def _pickled(value: Spec | Limits) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


_unpickled = functools.lru_cache(_MOST_REMEMBERED)(pickle.loads)


def _process(spec: bytes, limits: bytes, more: dict[str, Any]) -> Process:
    return Process(spec=_unpickled(spec), limits=_unpickled(limits), **more)


@attrs.frozen(kw_only=True)
class Process:
    """Do what a spec asks for to the source.

    ``watermarks`` are the encoded pictures that the spec names, by id. ``target`` is the file that the result
    is written to, without its suffix. ``plan`` says whether to tell how it was done, and ``digest`` whether
    answers tell of source and result, with their SHA-256. ``ignored`` are the names of unknown fields of its
    form, which they tell, too.
    """

    name: str
    spec: Spec
    limits: Limits = attrs.field(converter=plain_limits)
    watermarks: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)
    accept: str | None = None
    target: str | None = None
    plan: bool = False
    digest: bool = True
    ignored: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        more: dict[str, Any] = {"name": self.name, "watermarks": self.watermarks, "accept": self.accept}
        more |= {"target": self.target, "plan": self.plan, "digest": self.digest, "ignored": self.ignored}
        return _process, (_pickled(self.spec), _pickled(self.limits), more)

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return the result: its ``media_type``, its ``name``, the ``timing``, and what answers tell of it.

        ``told`` is JSON text for `result_text`, and ``brief`` is for the list of recent requests. If there is
        a target, ``written`` is 0, or the number of the error of the system.
        """
        file = io.BytesIO()  # a target, so that the picture is encoded while it is computed
        result = imgsvc.process(
            source,
            self.spec,
            file,
            limits=self.limits,
            watermarks=self.watermarks,
            name=self.name,
            digest=self.digest,
            accept=self.accept,
            threads=threads,
        )
        data, row = file.getvalue(), FORMATS[result.output.format]
        name = f"{Path(self.name).stem or 'image'}{row.suffix}"
        facts: dict[str, Any] = {
            "media_type": row.media_type,
            "name": name,
            "timing": attrs.asdict(result.timing),
        }
        if self.digest:
            output = {**result.output.to_dict(), **_encoding(row, result.output), "name": name}
            facts["told"] = told(result, output, result.plan.lines() if self.plan else None, self.ignored)
            facts["brief"] = {"source": result.input.name, **{name: output[name] for name in BRIEF}}
        if self.target is not None:
            started = time.perf_counter()
            facts["written"] = _write(Path(f"{self.target}{row.suffix}"), data)
            facts["timing"]["store"] = round(1000 * (time.perf_counter() - started), 3)
        return TaskResult(facts, data)


_SHOWN_BY_BROWSERS = ("jpg", "png", "apng", "gif", "webp", "avif")
_REDUCED = {"format": "jpg", "quality": 70, "encoding": "baseline"}
_REDUCED_WITH_ALPHA = {"format": "webp", "quality": 75, "effort": 0}
_COPY = {"format": "png"}


@attrs.frozen
class _OfProcess:
    """Something else that is done by what a `Process` says."""

    process: Process

    @property
    def limits(self) -> Limits:
        """The limits of the work."""
        return self.process.limits


@attrs.frozen
class Preview(_OfProcess):
    """Do what a spec asks for, and give back what a browser shows of the result in a window.

    A still result that is larger than the ``window``, a width and a height, is reduced to it. The
    pixels of the source are kept, as the next preview is likely to be of the same one.
    """

    window: tuple[int, int]

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return the facts of the result as `Process` does, with the picture to show and its media type."""
        from imgsvc_core.sources.kept_pixels import keeping_pixels  # libvips

        with keeping_pixels():
            made = self.process.run(source, threads)
        result = imgsvc.inspect(made.data)
        width, height = self.window
        request: dict[str, Any]
        if not result.animated and (result.width > width or result.height > height):
            output = _REDUCED_WITH_ALPHA if result.alpha else _REDUCED
            request = {"resize": {"width": width, "height": height}, "output": output}
        elif result.format in _SHOWN_BY_BROWSERS:
            return made
        else:
            request = {"output": _COPY}
        shown = imgsvc.process(made.data, request, limits=self.limits, digest=False, threads=threads)
        media_type = FORMATS[shown.output.format].media_type
        return TaskResult({**made.facts, "media_type": media_type}, shown.data)


@attrs.frozen
class Scores(_OfProcess):
    """Tell the bytes and the look of what a spec asks for, or of files in the same format with other looks.

    There is no picture in its result.
    """

    looks: tuple[float, ...]

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return the ``points`` by their fields, the ``notes`` of the result, and the ``timing``."""
        from imgsvc_core.similarity.curve import curve, point_as_asked  # NumPy

        started, task = time.perf_counter(), self.process
        find = partial(curve, looks=self.looks) if self.looks else point_as_asked
        points, notes = find(
            source, task.spec, limits=task.limits, watermarks=task.watermarks, name=task.name, threads=threads
        )
        timing = {"process": round(1000 * (time.perf_counter() - started), 3)}
        return TaskResult({"points": [*map(attrs.asdict, points)], "notes": notes, "timing": timing})


def _write(path: Path, data: bytes) -> int:
    """Write a file or none. Return 0, or the number of the error."""
    try:
        path.write_bytes(data)
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        return error.errno or errno.EIO
    return 0


@attrs.frozen
class Describe(_OfProcess):
    """Tell of the picture that a spec asks for, without encoding it."""

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return the JSON of an `Info`, its ``media_type``, its ``name``, and the ``timing``."""
        started, asked = time.perf_counter(), self.process.name
        info = imgsvc.inspect(source, limits=self.limits, name=asked, digest=True)
        body = info_body(info, self._shown(source, info, threads))
        timing = {"process": round(1000 * (time.perf_counter() - started), 3)}
        name = f"{Path(asked).stem or 'image'}.json"
        return TaskResult({"media_type": "application/json", "name": name, "timing": timing}, body)

    def _shown(self, source: bytes, info: ImageInfo, threads: int) -> Shown:
        """Measure the source if it is the picture, since its pixels need not all be decoded for that."""
        task, spec = self.process, self.process.spec
        facts = spec.output.facts if spec.output else ()
        if spec == Spec(output=spec.output):
            plan = imgsvc.explain(spec, info, limits=self.limits)
            found = imgsvc.inspect(source, limits=self.limits, facts=facts).facts
        else:
            result = imgsvc.process(
                source,
                spec,
                limits=self.limits,
                watermarks=task.watermarks,
                accept=task.accept,
                threads=threads,
            )
            plan, found = result.plan, result.facts
        width, height = plan.size
        return Shown(width=width, height=height, frames=plan.frames, facts=dict(found))


@attrs.frozen(kw_only=True)
class Translate:
    """Turn a URL of another service into the request for the source.

    ``watermarks`` are the encoded pictures whose facts it needs, by id.
    """

    name: str
    url: ForeignUrl
    limits: Limits = attrs.field(converter=plain_limits)
    watermarks: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return the ``request`` as JSON, or the source or a document to deliver, and its ``media_type``."""
        spec = translate(self.url, source, limits=self.limits, name=self.name, watermarks=self.watermarks)
        if isinstance(spec, Spec):
            return TaskResult({"request": imgsvc.unparse(spec)})
        if spec is not None:
            name = f"{Path(self.name).stem or 'image'}.json"
            return TaskResult({"media_type": spec.media_type, "name": name}, spec.body)
        format_ = imgsvc.inspect(source, name=self.name, limits=self.limits).format
        facts = {"media_type": FORMATS[format_].media_type, "name": self.name}
        return TaskResult(facts, source)


@attrs.frozen(kw_only=True)
class Inspect:
    """Tell the facts of the source, and decode it small to see that it is whole."""

    name: str
    limits: Limits = attrs.field(converter=plain_limits)

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return the facts as `ImageInfo.to_dict` gives them."""
        info = imgsvc.inspect(source, name=self.name, digest=True)
        small = {"resize": {"width": 64, "height": 64, "upscale": False}}
        imgsvc.process(source, small, limits=self.limits, name=self.name, threads=threads)
        return TaskResult(info.to_dict())


def _encoding(row: type[Format], output: ImageInfo) -> dict[str, Any]:
    """Return quality and subsampling in the terms of the formats that have them, also without any loss."""
    if row.quality is None:
        return {"quality": None, "subsample": None}
    return {
        "quality": output.quality or 100,
        "subsample": output.subsample or ("4:0:0" if output.colorspace == "gray" else "4:4:4"),
    }
