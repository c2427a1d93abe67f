"""The way of a request: parse, open, look, compile, load, render, encode."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, TypedDict, Unpack, overload

import attrs
import pyvips

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core._runtime.failing import without_pictures
from imgsvc_core._runtime.process_memory import naming_shortage
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import ImgsvcError, SourceError, SpecError
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.saving import Encoded, save
from imgsvc_core.formats.sink import write_all
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.limits import Limits, check_memory, check_threads, limits_or
from imgsvc_core.pixels.border_search import find_border
from imgsvc_core.pixels.colorspace import told_by_pixels
from imgsvc_core.pixels.face_search import find_faces
from imgsvc_core.pixels.render import render
from imgsvc_core.pixels.watermarks import ReceivedWatermarks, Watermarks, receive_watermark
from imgsvc_core.plan import Plan, Seen, compile_plan, wants_faces
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.geometry import Box
from imgsvc_core.plan.memory import decoded_bound
from imgsvc_core.plan.plan import decodings
from imgsvc_core.plan.seen import Sides
from imgsvc_core.sources.opening import Opened, open_source
from imgsvc_core.sources.receiving import Source, received
from imgsvc_core.spec import Request, Spec, Trim, parse
from imgsvc_core.spec.thumbor_filters import NinePatch
from imgsvc_core.targets.encoding import encode_best
from imgsvc_core.targets.result import Result, Timing
from imgsvc_core.targets.writing import Target, check_target, is_file, name_of, open_target, suffix_of

_DEFAULT_LIMITS = Limits()


class ProcessOptions(TypedDict, total=False):
    """The keyword arguments of `process` and `process_variants`, which explain them."""

    limits: Limits | None
    watermarks: Watermarks | None
    name: str | None
    digest: bool
    accept: str | None
    threads: int | None


@overload
def process(
    source: Source,
    spec: Request | None = None,
    target: None = None,
    **options: Unpack[ProcessOptions],
) -> Result[bytes]: ...
@overload
def process(
    source: Source,
    spec: Request | None,
    target: Target,
    **options: Unpack[ProcessOptions],
) -> Result[None]: ...
@overload
def process(
    source: Source,
    spec: Request | None = None,
    *,
    target: Target,
    **options: Unpack[ProcessOptions],
) -> Result[None]: ...
@without_pictures
def process(
    source: Source,
    spec: Request | None = None,
    target: Target | None = None,
    **options: Unpack[ProcessOptions],
) -> Result[Any]:
    """Process one image as a request asks.

    Args:
        source: a path, an fsspec URL, encoded bytes, a binary file object, a Pillow image, a pyvips image, or
            a numpy array of height x width (x channels) in ``uint8``, ``uint16``, ``bool`` or floats from 0
            to 1.
        spec: the request: as `Spec`, as one operation such as ``Resize(width=300)``, as a list of operations
            in the order of application, or as JSON values; nothing for a plain conversion.
        target: a path, an fsspec URL or a binary file object; without one the bytes are in ``Result.data``.
            A path or URL is written whole or not at all, and its suffix names the format unless the request
            does.
        limits: how much work the image may cause; `Limits()` by default.
        watermarks: the watermark images by id, or a function from id to image.
        name: the file name of the source to report if it has none.
        digest: whether to compute ``sha256`` of source and result.
        accept: an HTTP ``Accept`` header, for the output format ``auto``.
        threads: how many threads libvips may use for this image; all cores by default.

    Raises:
        TypeError: the source is of a type that cannot be read.
        SpecError: the request is wrong.
        SourceError: the source cannot be read or is no image.
        LimitExceeded: the work would go beyond the limits.
        UnsupportedOperation: the image or the format cannot do what is asked.
        MissingDependency: an optional package is needed.
        EncodingFailed, TargetError: the result cannot be written.
    """
    if target is not None:
        check_target(target)
    [result] = _run(source, [_Wanted(parse({} if spec is None else spec), target)], **options)
    return result


@without_pictures
def process_variants(
    source: Source, variants: Mapping[str, Request], **options: Unpack[ProcessOptions]
) -> dict[str, Result[bytes]]:
    """Process one image as several requests ask. The image is decoded once for all of them.

    Args:
        source: as in `process`.
        variants: requests by name.
        options: as in `process`. ``limits`` hold for each variant, but ``seconds`` for all variants
            together.

    Return the results by name, their bytes in ``Result.data``. Raises what `process` raises.
    """
    wanted = [_Wanted(parse(spec), variant=variant) for variant, spec in variants.items()]
    return dict(zip(variants, _run(source, wanted, **options), strict=True))


@attrs.frozen(eq=False)
class _Wanted:
    """A wanted result: the request, its target, and its name among variants.

    The ``file`` of a target is open during the work.
    """

    spec: Spec
    target: Target | None = None
    file: BinaryIO | None = None
    variant: str | None = None


@frozen(kw_only=True)
class _Job:
    """The facts that all results of a source share: the source, and `ProcessOptions` with their defaults.

    Open files of the caller have been read.
    """

    source: Source
    limits: Limits
    watermarks: ReceivedWatermarks
    deadline: Deadline
    started: float
    name: str | None = None
    digest: bool = False
    accept: str | None = None
    threads: int | None = None


@frozen
class _Made:
    """An unfinished result: the encoded bytes, and what is known of the source."""

    info: ImageInfo
    plan: Plan
    faces: tuple[Face, ...] | None
    encoded: Encoded
    timing: Timing


def _run(
    source: Source,
    wanted: Sequence[_Wanted],
    *,
    limits: Limits | None = None,
    watermarks: Watermarks | None = None,
    **options: Any,
) -> list[Result[Any]]:
    """Make all results of a source, and write them to their targets."""
    check_threads(options.get("threads"))
    limits = limits_or(limits, _DEFAULT_LIMITS)
    started, deadline = time.perf_counter(), Deadline(limits.seconds)
    source = received(source, limits, deadline, name=options.get("name"))
    marks: dict[str, Source] = {}
    for one in wanted:
        for id in one.spec.pictures:
            if id not in marks:
                with _naming(one):
                    marks[id] = receive_watermark(id, watermarks, limits, deadline)
    job = _Job(
        source=source,
        limits=limits,
        watermarks=ReceivedWatermarks(marks, limits, deadline),
        deadline=deadline,
        started=started,
        **options,
    )
    with contextlib.ExitStack() as files:  # unfinished files are removed if the work fails or the time is up
        wanted = [one if one.target is None else _with_file(one, one.target, files) for one in wanted]
        made = deadline.run(_make_all, job, wanted)
        for one in wanted:
            if one.target is not None:
                _hand_over(made[one].encoded, one.target, one.file)
    return [_result(job, one, made[one]) for one in wanted]


def _with_file(one: _Wanted, target: Target, files: contextlib.ExitStack) -> _Wanted:
    """Open the file that becomes the target, if the target is a file."""
    return attrs.evolve(one, file=files.enter_context(open_target(target))) if is_file(target) else one


def _hand_over(encoded: Encoded, target: Target, file: BinaryIO | None) -> None:
    """Write encoded bytes to a target. No deadline applies, because a slow receiver is not a slow image."""
    if encoded.data is None:
        return
    if file is not None:
        write_all(file, encoded.data)
        return
    with open_target(target, FORMATS[encoded.info.format].media_type) as opened:
        write_all(opened, encoded.data)


def _make_all(job: _Job, wanted: Sequence[_Wanted]) -> dict[_Wanted, _Made]:
    """Open the source, look at pixels if sizes depend on them, compile the requests, and make all results."""
    opened = open_source(
        job.source,
        job.limits,
        inlined_pixels=job.limits.source_pixels,
        name=job.name,
        digest=job.digest,
        threads=job.threads,
    )
    seen = _look(job, opened, wanted)
    plans = {one: _compile(job, one, opened.info, seen) for one in wanted}
    with naming_shortage(max((plan.memory for plan in plans.values()), default=0)):
        made: dict[_Wanted, _Made] = {}
        started = job.started
        for settings, served in decodings(plans):
            image = opened.load(settings)
            if not isinstance(image, Raster):
                image = job.deadline.watch(image)
            told = info = told_by_pixels(opened.info, image)
            if info is not opened.info:  # the pixels are more reliable than the header
                again = {one: _compile(job, one, info, seen) for one in served}
                served = {one: attrs.evolve(plan, load=settings) for one, plan in again.items()}
                told = attrs.evolve(info, colorspace=opened.info.colorspace)
            if len(served) > 1 and not isinstance(image, Raster):
                shared = decoded_bound(info, settings)
                check_memory(shared + max(plan.memory for plan in served.values()), job.limits)
                with translate_errors(info.format):
                    image = in_memory(image)
            for one, plan in served.items():
                with _naming(one):
                    made[one] = _make(job, one, plan, image, told, started)
                started = time.perf_counter()
    return made


def _look(job: _Job, opened: Opened, wanted: Sequence[_Wanted]) -> Seen:
    """Look for the faces and borders on which the sizes of results depend."""
    faces: tuple[Face, ...] | None = None
    borders: dict[Trim, Box] = {}
    frames: dict[str, Sides] = {}
    for one in wanted:
        trim = one.spec.trim
        if faces is None and wants_faces(one.spec):
            faces = find_faces(opened, job.limits, job.deadline)
        if trim is not None and trim.box is None and trim not in borders:
            borders[trim] = find_border(opened, trim, job.limits, job.deadline)
        for item in one.spec.filter:
            if isinstance(item, NinePatch) and item.id not in frames:
                with _naming(one):
                    frames[item.id] = job.watermarks.sides(item.id)
    return Seen(faces=faces, borders=borders, frames=frames)


def _compile(job: _Job, one: _Wanted, info: ImageInfo, seen: Seen) -> Plan:
    with _naming(one):
        suffix = "" if one.target is None else suffix_of(one.target)
        return compile_plan(one.spec, info, limits=job.limits, seen=seen, suffix=suffix, accept=job.accept)


def _make(
    job: _Job, one: _Wanted, plan: Plan, image: pyvips.Image | Raster, told: ImageInfo, started: float
) -> _Made:
    """Render and encode a decoded image."""
    loaded = time.perf_counter()
    with translate_errors(plan.info.format):
        rendered = render(image, plan, partial(job.watermarks.picture, memory=plan.memory))
    image, facts = _measured(rendered.image, plan) if plan.facts else (rendered.image, {})
    rendered_at = time.perf_counter()
    if not isinstance(image, Raster):
        image = job.deadline.watch(image)
    if len(plan.save) > 1 or plan.save_exactly:
        encoded = encode_best(image, plan.save, plan.save_exactly)
    else:
        encoded = save(image, plan.save[0], one.file, digest=job.digest)
    if facts:
        encoded = attrs.evolve(encoded, info=attrs.evolve(encoded.info, facts=facts))
    timing = Timing.between(started, loaded, rendered_at, time.perf_counter())
    return _Made(told, plan, plan.faces_in_result(rendered.regions), encoded, timing)


def _measured(image: pyvips.Image | Raster, plan: Plan) -> tuple[pyvips.Image | Raster, dict[str, Any]]:
    """Return a rendered image in memory, and the facts of its pixels."""
    from imgsvc_core.pixels.facts import measure  # few requests ask for facts

    with translate_errors(plan.info.format):
        if not isinstance(image, Raster):
            image = in_memory(image)
        return image, measure(image, plan.facts, plan.background)


def _result(job: _Job, one: _Wanted, made: _Made) -> Result[Any]:
    output, data = made.encoded.info, made.encoded.data
    if one.target is not None:
        output = attrs.evolve(output, name=name_of(one.target))
    if job.digest and data is not None:
        import hashlib  # loads OpenSSL

        output = attrs.evolve(output, sha256=hashlib.sha256(data).hexdigest())
    return Result(
        input=made.info,
        output=output,
        data=data if one.target is None else None,
        faces=made.faces,
        timing=made.timing,
        notes=(*made.plan.losses(output.format), *made.encoded.notes),
        plan=made.plan,
    )


def _naming(one: _Wanted) -> contextlib.AbstractContextManager[None]:
    """Name a variant in errors of its request. Errors of the source concern all variants."""
    return _naming_variant(one.variant) if one.variant else contextlib.nullcontext()


@contextlib.contextmanager
def _naming_variant(variant: str) -> Iterator[None]:
    try:
        yield
    except SourceError:
        raise
    except SpecError as error:
        raise SpecError(
            attrs.evolve(problem, expected=f"Variant '{variant}': {problem.expected}")
            for problem in error.problems
        ) from error
    except ImgsvcError as error:
        error.begin_with(f"Variant '{variant}'")
        raise
