"""The way of a request: parse, open, compile, load, render, save."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, Unpack, overload

import attrs
import pyvips

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core._runtime.failing import without_pictures
from imgsvc_core._runtime.process_memory import naming_shortage
from imgsvc_core.errors import ImgsvcError, SourceError, SpecError
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.saving import Encoded, save
from imgsvc_core.formats.sink import write_all
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.limits import Limits, check_memory, check_threads, limits_or
from imgsvc_core.pixels.border_search import find_border
from imgsvc_core.pixels.face_search import find_faces
from imgsvc_core.pixels.render import render
from imgsvc_core.pixels.small import encode_at_once
from imgsvc_core.pixels.watermarks import Watermarks, receive_watermark, render_watermark
from imgsvc_core.plan import Plan, compile_plan, wants_faces
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.memory import decoded_bound
from imgsvc_core.plan.steps import LayWatermark
from imgsvc_core.plan.steps.effects import Sides
from imgsvc_core.plan.variants import decodings
from imgsvc_core.sources.opening import Opened, open_source
from imgsvc_core.sources.receiving import Source, received
from imgsvc_core.spec import Spec, Trim, Watermark, parse
from imgsvc_core.spec.effects import NinePatch
from imgsvc_core.targets.result import Result, Timing
from imgsvc_core.targets.saving import save_best
from imgsvc_core.targets.writing import Target, check_target, is_file, name_of, suffix_of, writing

_DEFAULT_LIMITS = Limits()


class ProcessOptions(TypedDict, total=False):
    """The keyword arguments of `process`, which says what they mean."""

    limits: Limits | None
    watermarks: Watermarks | None
    name: str | None
    digest: bool
    accept: str | None
    threads: int | None


@overload
def process(
    source: Source,
    spec: Spec | Mapping[str, Any] | None = None,
    target: None = None,
    **options: Unpack[ProcessOptions],
) -> Result[bytes]: ...
@overload
def process(
    source: Source,
    spec: Spec | Mapping[str, Any] | None,
    target: Target,
    **options: Unpack[ProcessOptions],
) -> Result[None]: ...
@overload
def process(
    source: Source,
    spec: Spec | Mapping[str, Any] | None = None,
    *,
    target: Target,
    **options: Unpack[ProcessOptions],
) -> Result[None]: ...
@without_pictures
def process(
    source: Source,
    spec: Spec | Mapping[str, Any] | None = None,
    target: Target | None = None,
    *,
    limits: Limits | None = None,
    watermarks: Watermarks | None = None,
    name: str | None = None,
    digest: bool = False,
    accept: str | None = None,
    threads: int | None = None,
) -> Result[Any]:
    """Do what a request asks for to one image.

    Args:
        source: a path, an fsspec URL, encoded bytes, a binary file object, a Pillow image, a pyvips image, or
            a numpy array of height x width (x channels) in ``uint8``, ``uint16``, ``bool`` or floats from 0
            to 1.
        spec: the request, as `Spec` or as JSON values; nothing for a plain conversion.
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
    requests = {"": {} if spec is None else spec}
    results = _run(
        source,
        requests,
        target,
        limits=limits,
        watermarks=watermarks,
        name=name,
        digest=digest,
        accept=accept,
        threads=threads,
    )
    return results[""]


@without_pictures
def process_variants(
    source: Source,
    variants: Mapping[str, Spec | Mapping[str, Any]],
    *,
    limits: Limits | None = None,
    watermarks: Watermarks | None = None,
    name: str | None = None,
    digest: bool = False,
    threads: int | None = None,
) -> dict[str, Result[bytes]]:
    """Do what several requests ask for to one image, which is decoded once for all of them.

    Args:
        source: as in `process`.
        variants: requests by name.
        limits: how much work each of them may cause; ``seconds`` are for all of them together.
        watermarks: the watermark images by id, or a function from id to image.
        name: the file name of the source to report if it has none.
        digest: whether to compute ``sha256`` of source and results.
        threads: how many threads libvips may use; all cores by default.

    Return the results by name, their bytes in ``Result.data``. Raises what `process` raises.
    """
    return _run(
        source, variants, limits=limits, watermarks=watermarks, name=name, digest=digest, threads=threads
    )


@attrs.frozen(kw_only=True)
class _Task:
    """What to do to one source. What belongs to the caller, such as open files, has been read."""

    source: Source
    requests: Mapping[str, Spec]
    watermarks: Mapping[str, Source]
    target: Target | None
    limits: Limits
    options: ProcessOptions
    deadline: Deadline
    started: float


@attrs.frozen
class _VariantResult:
    """What came of one request."""

    info: ImageInfo
    plan: Plan
    faces: tuple[Face, ...] | None
    encoded: Encoded
    timing: Timing


def _run(
    source: Source,
    requests: Mapping[str, Spec | Mapping[str, Any]],
    target: Target | None = None,
    **options: Unpack[ProcessOptions],
) -> dict[str, Result[Any]]:
    """Parse requests, do what they ask for, and put the results where they are to go."""
    check_target(target)
    check_threads(options.get("threads"))
    parsed = {key: parse(request) for key, request in requests.items()}
    limits = limits_or(options.get("limits"), _DEFAULT_LIMITS)
    started, deadline = time.perf_counter(), Deadline(limits.seconds)
    task = _Task(
        source=received(source, limits, deadline, name=options.get("name")),
        requests=parsed,
        watermarks=_received_watermarks(parsed, options.get("watermarks"), limits, deadline),
        target=target,
        limits=limits,
        options=options,
        deadline=deadline,
        started=started,
    )
    with contextlib.ExitStack() as stack:  # closed here: nothing is left of a target if the time is up

        def open_target() -> BinaryIO:
            assert target is not None
            return stack.enter_context(writing(target))

        made = deadline.run(_process_task, task, open_target)
    for one in made.values():
        if target is not None and one.encoded.data is not None:
            # After the deadline: a slow receiver is no slow image.
            with writing(target, FORMATS[one.encoded.format].media_type) as file:
                write_all(file, one.encoded.data)
    return {key: _result(task, made[key]) for key in parsed}


def _process_task(task: _Task, open_target: Callable[[], BinaryIO]) -> dict[str, _VariantResult]:
    """Open the source, compile the requests, and make the results."""
    limits, deadline = task.limits, task.deadline
    name, digest = task.options.get("name"), task.options.get("digest", False)
    opened = open_source(task.source, limits, inlined_pixels=limits.source_pixels, name=name, digest=digest)
    opened = attrs.evolve(opened, threads=task.options.get("threads"))
    wanted = any(map(wants_faces, task.requests.values()))
    found = find_faces(opened, limits, deadline) if wanted else None
    asked = (request.trim for request in task.requests.values())
    trims = {trim for trim in asked if trim is not None and trim.box is None}
    trimmed = {trim: find_border(opened, trim, limits, deadline) for trim in trims}
    plans = _compile(task, task.requests, opened.info, found, trimmed)
    with naming_shortage(max(plan.memory for plan in plans.values())):
        return _make(task, opened, plans, found, trimmed, open_target)


def _compile(
    task: _Task,
    keys: Iterable[str],
    info: ImageInfo,
    found: tuple[Face, ...] | None,
    trimmed: Mapping[Trim, Box],
) -> dict[str, Plan]:
    """Return the plans of some of the requests."""
    plans = {}
    for key in keys:
        with _naming_variant(key):
            request = task.requests[key]
            plans[key] = compile_plan(
                request,
                info,
                limits=task.limits,
                faces=found or (),
                trimmed=trimmed.get(request.trim) if request.trim else None,
                paddings=_paddings(task, request),
                suffix=suffix_of(task.target),
                accept=task.options.get("accept"),
            )
    return plans


def _paddings(task: _Task, request: Spec) -> dict[str, Sides]:
    """Return the spaces that the nine-patch frames of a request ask for."""
    frames = {item.id for item in request.filter if isinstance(item, NinePatch)}
    if not frames:
        return {}
    from imgsvc_core.pixels.nine_patch import padding

    picture = partial(render_watermark, task.watermarks, task.limits, task.deadline, 0)
    return {id: padding(picture(LayWatermark(Watermark(id=id)), Size(1, 1))) for id in frames}


def _make(
    task: _Task,
    opened: Opened,
    plans: Mapping[str, Plan],
    found: tuple[Face, ...] | None,
    trimmed: Mapping[Trim, Box],
    open_target: Callable[[], BinaryIO],
) -> dict[str, _VariantResult]:
    """Load, render and save; plans that decode in the same way share the decoded image."""
    limits, deadline = task.limits, task.deadline
    info, started = opened.info, task.started
    made = _make_at_once(opened, plans, found, started)
    for settings, served in decodings({key: plan for key, plan in plans.items() if key not in made}):
        image = deadline.watch(opened.load(settings))
        if image.hasalpha() and not opened.info.alpha:  # the pixels know better than the header
            info = attrs.evolve(opened.info, alpha=True)
            compiled = _compile(task, served, info, found, trimmed)
            served = {key: attrs.evolve(plan, load=settings) for key, plan in compiled.items()}
        if len(served) > 1:
            shared = decoded_bound(info, settings)
            check_memory(shared + max(plan.memory for plan in served.values()), limits)
            with translate_errors(info.format):
                image = in_memory(image)
        for key, plan in served.items():
            loaded = time.perf_counter()
            with _naming_variant(key):
                with translate_errors(info.format):
                    mark = partial(render_watermark, task.watermarks, limits, deadline, plan.memory)
                    rendered = render(image, plan, mark)
                rendered_at = time.perf_counter()
                encoded = _save(deadline.watch(rendered.image), plan, task.target, open_target)
            finished = time.perf_counter()
            timing = Timing(
                decode=_ms(loaded - started),
                process=_ms(rendered_at - loaded),
                encode=_ms(finished - rendered_at),
            )
            faces = None if found is None else plan.faces_in_result(rendered.regions)
            made[key] = _VariantResult(info, plan, faces, encoded, timing)
            started = finished
    return made


def _make_at_once(
    opened: Opened, plans: Mapping[str, Plan], found: tuple[Face, ...] | None, started: float
) -> dict[str, _VariantResult]:
    """Return the results of those plans that have a way of their own."""
    made: dict[str, _VariantResult] = {}
    if opened.encoded is None:
        return made
    for key, plan in plans.items():
        begun = time.perf_counter()
        encoded = encode_at_once(opened.encoded, plan, opened.threads)
        if encoded is not None:
            finished = time.perf_counter()
            timing = Timing(decode=_ms(begun - started), process=0.0, encode=_ms(finished - begun))
            faces = None if found is None else plan.faces_in_result(())
            made[key] = _VariantResult(opened.info, plan, faces, encoded, timing)
    return made


def _save(
    image: pyvips.Image, plan: Plan, target: Target | None, open_target: Callable[[], BinaryIO]
) -> Encoded:
    """Encode into memory, or straight into the target if that is a file."""
    if len(plan.save) > 1 or plan.save_exactly:
        return save_best(image, plan.save, plan.save_exactly)
    return save(image, plan.save[0], open_target() if is_file(target) else None)


def _result(task: _Task, made: _VariantResult) -> Result[Any]:
    data, target = made.encoded.data, task.target
    digest = task.options.get("digest", False)
    describe = partial(_describe, quality=made.encoded.quality, name=name_of(target), digest=digest)
    output: ImageInfo | Callable[[], ImageInfo]
    if data is None:
        assert is_file(target)
        output = describe(Path(target))
    else:
        output = partial(describe, data) if target is None else describe(data)
    return Result(
        input=made.info,
        output=output,
        data=data if target is None else None,
        faces=made.faces,
        timing=made.timing,
        notes=(*made.plan.losses(made.encoded.format), *made.encoded.notes),
        plan=made.plan,
    )


def _describe(encoded: bytes | Path, *, quality: int | None, name: str, digest: bool) -> ImageInfo:
    """Return the facts of a result from its header, which knows best what was written."""
    source = ByteSource(encoded)
    sha256 = source.sha256() if digest else None
    return attrs.evolve(probe(source).info, quality=quality, name=name, sha256=sha256)


def _received_watermarks(
    requests: Mapping[str, Spec], watermarks: Watermarks | None, limits: Limits, deadline: Deadline
) -> dict[str, Source]:
    """Return the watermarks that requests name, by id."""
    found: dict[str, Source] = {}
    for key, request in requests.items():
        for id in request.pictures:
            if id not in found:
                with _naming_variant(key):
                    found[id] = receive_watermark(id, watermarks, limits, deadline)
    return found


@contextlib.contextmanager
def _naming_variant(variant: str) -> Iterator[None]:
    """Name the variant in errors of its request. Errors of the source concern all variants."""
    try:
        yield
    except SourceError:
        raise
    except SpecError as error:
        if not variant:
            raise
        raise SpecError(
            attrs.evolve(problem, expected=f"Variant '{variant}': {problem.expected}")
            for problem in error.problems
        ) from error
    except ImgsvcError as error:
        if variant:
            error.begin_with(f"Variant '{variant}'")
        raise


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)
