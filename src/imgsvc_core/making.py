"""The way of a request: open, look, compile, load, render, encode."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import attrs
import pyvips

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core._runtime.process_memory import naming_shortage
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import ImgsvcError, SourceError, SpecError, UnsupportedOperation
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.memory import Computed, computed
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.saving import Encoded
from imgsvc_core.formats.sink import write_all
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.limits import Limits, check_memory, check_threads, limits_or
from imgsvc_core.pixels.colorspace import told_by_pixels
from imgsvc_core.pixels.render import render
from imgsvc_core.plan import Plan, Seen, compile_plan, redacts_faces, wants_faces
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.geometry import Box
from imgsvc_core.plan.memory import decoded_bound
from imgsvc_core.plan.plan import decodings
from imgsvc_core.plan.seen import NOTHING_SEEN
from imgsvc_core.sources.kept_pixels import loaded
from imgsvc_core.sources.opening import Opened, is_quick, open_source
from imgsvc_core.sources.receiving import Source, is_at_hand, open_bytes, received
from imgsvc_core.spec import Redact, Spec, Trim
from imgsvc_core.targets.encoding import digested, encode, of_original
from imgsvc_core.targets.result import Finished, Result, Timing
from imgsvc_core.targets.writing import Target, is_file, name_of, open_target, stamp_in_place, suffix_of

if TYPE_CHECKING:
    from imgsvc_core.pixels.watermarks import ReceivedWatermarks, Watermarks
    from imgsvc_core.targets.pending import Pending

_DEFAULT_LIMITS = Limits()
_FEW_PIXELS = 1 << 18
"""So many pixels of usual files are decoded and reduced in some milliseconds."""


@attrs.frozen(eq=False)
class Wanted:
    """A wanted result: the request, its target, and its name among variants.

    The ``file`` of a target is open during the work. ``suffix`` names the format, unless the request does.
    """

    spec: Spec
    target: Target | None = None
    file: BinaryIO | None = None
    suffix: str = ""
    variant: str | None = None


@frozen(kw_only=True)
class _Job:
    """The facts that all results of a source share: the source, and `ProcessOptions` with their defaults.

    Open files of the caller have been read.
    """

    source: Source
    limits: Limits
    watermarks: Mapping[str, Source]
    deadline: Deadline
    started: float
    name: str | None = None
    digest: bool = False
    accept: str | None = None
    threads: int | None = None


@frozen
class _Made:
    """An unfinished result: the encoded bytes or the pixels, and what is known of the source."""

    info: ImageInfo
    plan: Plan
    faces: tuple[Face, ...] | None
    picture: Encoded | Computed | Raster
    timing: Timing
    original: bytes | None = None
    layers: Mapping[str, Box] = attrs.field(factory=dict)


def make(
    source: Source,
    wanted: Sequence[Wanted],
    *,
    limits: Limits | None = None,
    watermarks: Watermarks | None = None,
    deadline: Deadline | None = None,
    **options: Any,
) -> list[Result[Any]]:
    """Make all results of a source, and write them to their targets.

    The options are `ProcessOptions`. Raises what `process` raises.
    """
    check_threads(options.get("threads"))
    limits = limits_or(limits, _DEFAULT_LIMITS)
    started, deadline = time.perf_counter(), deadline or Deadline(limits.seconds)
    source = received(source, limits, deadline, name=options.get("name"))
    opened = open_bytes(source, limits, name=options.get("name")) if is_at_hand(source) else source
    marks: dict[str, Source] = {}
    for one in wanted:
        if one.spec.pictures or one.spec.layer_pictures:
            from imgsvc_core.pixels.watermarks import receive_pictures

            with naming(one.variant):
                receive_pictures(marks, one.spec, watermarks, limits, deadline)
    job = _Job(source=opened, limits=limits, watermarks=marks, deadline=deadline, started=started, **options)
    with contextlib.ExitStack() as files:  # unfinished files are removed if the work fails or the time is up
        wanted = [one if one.target is None else _with_file(one, one.target, files, source) for one in wanted]
        made = _make_in_time(job, wanted)
        for one in wanted:
            if one.target is not None:
                _hand_over(made[one].picture, one.target, one.file)
    return [_result(job, one, made[one]) for one in wanted]


def _with_file(one: Wanted, target: Target, files: contextlib.ExitStack, source: Source) -> Wanted:
    """Open the file that becomes the target, if the target is a file."""
    if not is_file(target):
        return one
    opened = open_target(target, stamp=stamp_in_place(source, target))
    return attrs.evolve(one, file=files.enter_context(opened))


def _hand_over(encoded: Encoded | Computed | Raster, target: Target, file: BinaryIO | None) -> None:
    """Write encoded bytes to a target. No deadline applies, because a slow receiver is not a slow image."""
    assert isinstance(encoded, Encoded)
    if encoded.data is None:
        return
    if file is not None:
        write_all(file, encoded.data)
        return
    with open_target(target, FORMATS[encoded.info.format].media_type) as opened:
        write_all(opened, encoded.data)


def _make_in_time(job: _Job, wanted: Sequence[Wanted]) -> dict[Wanted, _Made]:
    """Make all results within the time limit: few pixels in the thread of the caller, others beside it."""
    if not (isinstance(job.source, ByteSource) and is_quick(job.source)):
        return job.deadline.run(lambda: _make_all(job, wanted, _open(job)))
    opened = _open(job)
    info = opened.info
    if info.width * info.height > _FEW_PIXELS or info.interlaced or any(map(_looks, wanted)):
        return job.deadline.run(_make_all, job, wanted, opened)
    plans = {one: _compile(job, one, info, NOTHING_SEEN) for one in wanted}
    few = all(plan.is_quick and one.target is None for one, plan in plans.items())
    run = job.deadline.run_here if few else job.deadline.run
    return run(_make_planned, job, opened, NOTHING_SEEN, plans)


def _looks(one: Wanted) -> bool:
    """Return True if a request may look at pixels before it is planned."""
    spec = one.spec
    return bool(spec.trim or spec.redact) or wants_faces(spec)


def _open(job: _Job) -> Opened:
    return open_source(
        job.source,
        job.limits,
        inlined_pixels=job.limits.source_pixels,
        name=job.name,
        digest=job.digest,
        threads=job.threads,
    )


def _make_all(job: _Job, wanted: Sequence[Wanted], opened: Opened) -> dict[Wanted, _Made]:
    """Look at pixels if sizes depend on them, compile the requests, and make all results."""
    seen = _look(job, opened, wanted)
    plans = {one: _compile(job, one, opened.info, seen) for one in wanted}
    return _make_planned(job, opened, seen, plans)


def _make_planned(job: _Job, opened: Opened, seen: Seen, plans: dict[Wanted, Plan]) -> dict[Wanted, _Made]:
    """Make the results of plans."""
    with naming_shortage(max((plan.memory for plan in plans.values()), default=0)):
        made: dict[Wanted, _Made] = {}
        started, kept = job.started, 0
        originals = {one: _original(opened, plan) for one, plan in plans.items() if plan.original is not None}
        for one, data in originals.items():
            if data is not None and plans[one].original == "always" and not plans[one].facts:
                made[one] = _kept(job, plans.pop(one), data)
        for settings, served in decodings(plans):
            needed = max(plan.memory for plan in served.values())
            image = loaded(opened, settings, (job.limits.memory_bytes or math.inf) - needed)
            if not isinstance(image, Raster):
                image = job.deadline.watch(image)
            told = info = told_by_pixels(opened.info, image)
            if info is not opened.info:  # the pixels are more reliable than the header
                again = {one: _compile(job, one, info, seen) for one in served}
                served = {one: attrs.evolve(plan, load=settings) for one, plan in again.items()}
                told = attrs.evolve(info, colorspace=opened.info.colorspace)
            if len(served) > 1 and isinstance(image, Raster):
                image.pixels.setflags(write=False)
            elif len(served) > 1:
                shared = decoded_bound(info, settings)
                check_memory(shared + max(plan.memory for plan in served.values()), job.limits)
                with translate_errors(info.format):
                    image = in_memory(image)
            for one, plan in served.items():
                with naming(one.variant):
                    check_memory(kept + plan.memory, job.limits)
                    made[one] = _make(job, one, plan, image, told, started, originals.get(one))
                kept += made[one].plan.kept
                started = time.perf_counter()
    return made


def _original(opened: Opened, plan: Plan) -> bytes | None:
    """Return the file of the source with the metadata of the result, or None if that cannot be done.

    It may be in another format.

    Raises:
        UnsupportedOperation: it must be done.
    """
    if opened.file is not None and plan.transcodes:
        return opened.file.transcoded()
    data = None if opened.file is None else opened.file.with_metadata(plan.save[0].metadata)
    if data is None and plan.original == "always":
        title = FORMATS[plan.info.format].title
        raise UnsupportedOperation(
            f"The metadata of this {title} image can go only with another encoding: leave out keep_pixels."
        )
    return data


def _kept(job: _Job, plan: Plan, data: bytes) -> _Made:
    """Return the result whose pixels are not decoded."""
    encoded = of_original(data)
    if job.digest:
        encoded = digested(encoded)
    now = time.perf_counter()
    return _Made(plan.info, plan, None, encoded, Timing.between(job.started, now, now, now))


def _look(job: _Job, opened: Opened, wanted: Sequence[Wanted]) -> Seen:
    """Look for the faces and borders on which the sizes of results depend."""
    every = any(redacts_faces(one.spec) for one in wanted)
    faces: tuple[tuple[Face, ...], ...] | None = None
    if every or any(wants_faces(one.spec) for one in wanted):
        from imgsvc_core.pixels.face_search import find_faces

        faces = find_faces(opened, job.limits, job.deadline, all_frames=every)
    hidden = tuple(face for frame in faces or () for face in frame) if every else None
    borders: dict[tuple[Trim, tuple[Redact, ...]], Box] = {}
    for one in wanted:
        trim, redact = one.spec.trim, one.spec.redact
        if trim is not None and trim.box is None and (trim, redact) not in borders:
            from imgsvc_core.pixels.border_search import find_border
            from imgsvc_core.plan.redaction import redaction_of

            with naming(one.variant):
                redaction = redaction_of(redact, opened.info, hidden)
            borders[trim, redact] = find_border(opened, trim, job.limits, job.deadline, redaction)
    first = None if faces is None else faces[0]
    return Seen(faces=first, faces_of_frames=hidden, borders=borders)


def _watermarks(job: _Job) -> ReceivedWatermarks:
    from imgsvc_core.pixels.watermarks import ReceivedWatermarks  # few requests lay pictures over another

    return ReceivedWatermarks(job.watermarks, job.limits, job.deadline)


def _compile(job: _Job, one: Wanted, info: ImageInfo, seen: Seen) -> Plan:
    with naming(one.variant):
        return compile_plan(
            one.spec,
            info,
            limits=job.limits,
            seen=seen,
            suffix=one.suffix or suffix_of(one.target),
            accept=job.accept,
            keeps_pixels=one.target is None,
        )


def _make(
    job: _Job,
    one: Wanted,
    plan: Plan,
    image: pyvips.Image | Raster,
    told: ImageInfo,
    started: float,
    original: bytes | None,
) -> _Made:
    """Render a decoded image. Encode it if there is a target, or compute its pixels."""
    loaded = time.perf_counter()
    with translate_errors(plan.info.format):
        rendered = render(image, plan, lambda *asked: _watermarks(job).picture(*asked, memory=plan.memory))
        image = rendered.image
        if not isinstance(image, Raster):
            image = job.deadline.watch(image)
        picture: Encoded | Computed | Raster
        if one.target is None:
            picture = computed(image, plan.save[0])
        elif not isinstance(image, Raster) and (plan.facts or not plan.is_encoded_once):
            image = in_memory(image)
    rendered_at = encoded_at = time.perf_counter()
    if one.target is not None:
        facts = _measured(plan, image)
        with translate_errors(plan.info.format):  # the image may be decoded while it is written
            encoded = encode(image, plan, one.file, digest=job.digest, original=original)
        picture = _with_facts(encoded, facts)
        encoded_at = time.perf_counter()
    timing = Timing.between(started, loaded, rendered_at, encoded_at)
    faces = plan.faces_in_result(rendered.regions)
    return _Made(told, plan, faces, picture, timing, original, rendered.boxes)


def _measured(plan: Plan, image: pyvips.Image | Computed | Raster) -> Mapping[str, Any]:
    """Return the facts of an image in memory that its plan asks for."""
    if not plan.facts:
        return {}
    from imgsvc_core.pixels.facts import measure  # few requests ask for facts

    with translate_errors(plan.info.format):
        picture = image.to_vips() if isinstance(image, Computed) else image
        return measure(picture, plan.facts, plan.background)


def _with_facts(encoded: Encoded, facts: Mapping[str, Any]) -> Encoded:
    return attrs.evolve(encoded, info=attrs.evolve(encoded.info, facts=facts)) if facts else encoded


def _result(job: _Job, one: Wanted, made: _Made) -> Result[Any]:
    encoding: Finished | Pending
    if isinstance(made.picture, Encoded):
        encoded = made.picture if one.target is None else attrs.evolve(made.picture, data=None)
        encoding = _finished(encoded, made.plan, made.timing, name=name_of(one.target))
        if one.target is None:
            encoding = attrs.evolve(encoding, decoded=False)
    else:
        from imgsvc_core.targets.pending import Pending  # a target gets its result at once

        later = partial(
            _encode_later, job.deadline, one.variant, made.plan, made.timing, job.digest, made.original
        )
        measure = partial(_measure_later, job.deadline, made.plan)
        output = one.spec.output
        named = one.suffix or (output is not None and (output.format or output.internal_format))
        convert = None if named else partial(_convert, job, output)
        encoding = Pending(made.picture, measure, later, made.timing, convert)
    layers = tuple(made.layers.values())
    return Result(input=made.info, faces=made.faces, layers=layers, plan=made.plan, encoding=encoding)


def _convert(job: _Job, output: Any, picture: Computed | Raster, target: Target) -> None:
    """Write the pixels of a result to a target, whose suffix names the format."""
    if output is not None:
        output = attrs.evolve(output, facts=())
    wanted = Wanted(Spec(output=output), target)
    make(picture.to_vips(), [wanted], deadline=job.deadline, limits=job.limits, threads=job.threads)


def _measure_later(deadline: Deadline, plan: Plan, picture: Computed | Raster) -> Mapping[str, Any]:
    """Measure the pixels of a result, in the time that is left."""
    return deadline.run(_measured, plan, picture) if plan.facts else {}


def _encode_later(
    deadline: Deadline,
    variant: str | None,
    plan: Plan,
    timing: Timing,
    digest: bool,
    original: bytes | None,
    picture: Computed | Raster,
    facts: Mapping[str, Any],
) -> Finished:
    """Encode the pixels of a result, in the time that is left."""
    started = time.perf_counter()
    with naming(variant):
        encoded = _with_facts(deadline.run(_encode, deadline, plan, picture, digest, original), facts)
    timing = attrs.evolve(timing, encode=round(1000 * (time.perf_counter() - started), 3))
    return _finished(encoded, plan, timing)


def _encode(
    deadline: Deadline, plan: Plan, picture: Computed | Raster, digest: bool, original: bytes | None
) -> Encoded:
    with naming_shortage(plan.memory):
        if isinstance(picture, Raster) and plan.is_encoded_once:
            return encode(picture, plan, digest=digest, original=original)
        image = deadline.watch(picture.to_vips())
        return encode(image, plan, digest=digest, original=original)


def _finished(encoded: Encoded, plan: Plan, timing: Timing, *, name: str = "") -> Finished:
    info = attrs.evolve(encoded.info, name=name) if name else encoded.info
    notes = (*plan.losses(info.format, more_pages=info.more_pages), *encoded.notes)
    return Finished(output=info, data=encoded.data, notes=notes, timing=timing)


def naming(variant: str | None) -> contextlib.AbstractContextManager[None]:
    """Name a variant in errors of its request. Errors of the source concern all variants."""
    return _naming_variant(variant) if variant else contextlib.nullcontext()


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
