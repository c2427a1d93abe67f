"""The whole way: a source, a request, a result."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pyvips

from imgsvc_core import faces as face_detection
from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.boundary import translate_errors
from imgsvc_core.codecs.probe import probe
from imgsvc_core.codecs.readers import load
from imgsvc_core.codecs.settings import LoadSettings, SaveSettings
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.codecs.writers import Encoded, save
from imgsvc_core.codecs.writers.sink import write_all
from imgsvc_core.deadline import Watch, deadline
from imgsvc_core.errors import (
    BudgetUnreachable,
    ImgsvcError,
    LimitExceeded,
    OutputTooLarge,
    Problem,
    SourceError,
    SpecError,
    TimeLimitExceeded,
)
from imgsvc_core.faces import Face
from imgsvc_core.failing import without_pictures
from imgsvc_core.info import ImageInfo
from imgsvc_core.limits import Limits, check_source, check_threads, limits_or
from imgsvc_core.pixels import colorspace, geometry
from imgsvc_core.pixels.render import Rendered, render
from imgsvc_core.plan import Plan, compile_plan, wants_faces
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.loading import scale_for
from imgsvc_core.plan.placement import watermark_size
from imgsvc_core.result import Result, Timing
from imgsvc_core.sources import Source, as_image, describe, open_bytes
from imgsvc_core.spec import Resize, Spec, Watermark, parse
from imgsvc_core.targets import Target, check_target, is_file, name_of, suffix_of, writing

Watermarks = Mapping[str, Source] | Callable[[str], Source]
"""Watermark pictures by id, or a function that gives them."""

_USUAL_LIMITS = Limits()
_FACE_SIDE = 640  # pixels of the longer side of the copy that faces are looked for in


@without_pictures
def process(
    source: Source,
    spec: Spec | Mapping[str, Any] | None = None,
    target: Target = None,
    *,
    limits: Limits | None = None,
    watermarks: Watermarks | None = None,
    name: str | None = None,
    digest: bool = False,
    accept: str | None = None,
    threads: int | None = None,
) -> Result:
    """Do what a request asks for to one picture.

    Args:
        source: a path, encoded bytes, a binary file object, an fsspec URL, a numpy array (height x width
            x channels, ``uint8`` or ``uint16``) or a pyvips image.
        spec: the request, as `Spec` or as JSON values; nothing for a plain conversion.
        target: a path, an fsspec URL or a binary file object; without one the bytes are in ``Result.data``.
            A path or URL is written whole or not at all, and its suffix names the format where the request
            does not.
        limits: how much work the picture may cause; `Limits()` by default.
        watermarks: the pictures of watermarks by id, or a function from id to picture.
        name: the file name of the source to report, where it has none.
        digest: whether to compute ``sha256`` of source and result.
        accept: an HTTP ``Accept`` header, for the output format ``auto``.
        threads: how many threads libvips may use for this picture; all cores by default.

    Raises:
        SpecError: the request is wrong.
        SourceError: the source cannot be read or is no image.
        LimitExceeded: the work would go beyond the limits.
        UnsupportedOperation: the picture or the format cannot do what is asked.
        MissingDependency: an optional package is needed.
        EncodingFailed, TargetError: the result cannot be written.
    """
    started = time.perf_counter()
    check_target(target)
    check_threads(threads)
    request, limits = parse({} if spec is None else spec), limits_or(limits, _USUAL_LIMITS)
    opened = _Opened.of(source, limits, name, digest=digest)
    with deadline(limits.seconds) as watch:
        found = opened.find_faces(watch) if wants_faces(request) else None
        plan = compile_plan(
            request, opened.info, limits=limits, faces=found or (), suffix=suffix_of(target), accept=accept
        )
        image = watch.over(opened.load(plan.load), threads)
        loaded = time.perf_counter()
        with translate_errors(opened.info.format):
            rendered = render(image, plan, _marks(watermarks, limits, watch))
        processed = time.perf_counter()
        encoded = _write(watch.over(rendered.image), plan, target, watch)
    finished = time.perf_counter()
    timing = Timing(
        decode=_ms(loaded - started), process=_ms(processed - loaded), encode=_ms(finished - processed)
    )
    faces = _shown_faces(found, plan, rendered)
    return _result(opened, plan, faces, encoded, timing, target=target, digest=digest)


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
) -> dict[str, Result]:
    """Do what several requests ask for to one picture, which is decoded once for all of them.

    Args:
        source: as in `process`.
        variants: requests by name.
        limits: how much work each of them may cause; ``seconds`` are for all of them together.
        watermarks: the pictures of watermarks by id, or a function from id to picture.
        name: the file name of the source to report, where it has none.
        digest: whether to compute ``sha256`` of source and results.
        threads: how many threads libvips may use; all cores by default.

    Returns the results by name, their bytes in ``Result.data``. Raises what `process` raises.
    """
    started = time.perf_counter()
    check_threads(threads)
    requests = {key: parse(value) for key, value in variants.items()}
    limits = limits_or(limits, _USUAL_LIMITS)
    opened = _Opened.of(source, limits, name, digest=digest)
    results: dict[str, Result] = {}
    with deadline(limits.seconds) as watch:
        found = opened.find_faces(watch) if any(map(wants_faces, requests.values())) else None
        plans = {}
        for key, request in requests.items():
            with _naming(key):
                plans[key] = compile_plan(request, opened.info, limits=limits, faces=found or ())
        for chosen in _decoded_alike(plans):
            settings = next(iter(chosen.values())).load
            if len(chosen) > 1:
                scale = max(plan.load.scale for plan in chosen.values())
                settings = attrs.evolve(settings, scale=scale, sequential=True)
                chosen = {key: attrs.evolve(plan, load=settings) for key, plan in chosen.items()}
            image = watch.over(opened.load(settings), threads)
            if len(chosen) > 1:
                with translate_errors(opened.info.format):
                    image = image.copy_memory()
            for key, plan in chosen.items():
                loaded = time.perf_counter()
                with _naming(key):
                    with translate_errors(opened.info.format):
                        rendered = render(image, plan, _marks(watermarks, limits, watch))
                    rendered_at = time.perf_counter()
                    encoded = _write(watch.over(rendered.image), plan, None, watch)
                timing = Timing(
                    decode=_ms(loaded - started),
                    process=_ms(rendered_at - loaded),
                    encode=_ms(time.perf_counter() - rendered_at),
                )
                faces = _shown_faces(found, plan, rendered)
                results[key] = _result(opened, plan, faces, encoded, timing, target=None, digest=digest)
                started = time.perf_counter()
    return {key: results[key] for key in variants}


@contextlib.contextmanager
def _naming(variant: str) -> Iterator[None]:
    """Name the variant in what is wrong with its request; a fault of the source is common to all."""
    try:
        yield
    except SourceError:
        raise
    except SpecError as error:
        if not variant:
            raise
        raise SpecError(
            attrs.evolve(problem, message=f"Variant '{variant}': {problem.message}")
            for problem in error.problems
        ) from error
    except ImgsvcError as error:
        if variant:
            error.begin_with(f"Variant '{variant}'")
        raise


def _decoded_alike(plans: Mapping[str, Plan]) -> list[dict[str, Plan]]:
    """Plans in groups that one decoded picture can serve.

    What was decoded small can be decoded larger; but a drawing that is enlarged suits only its own plan.
    """
    groups: dict[tuple[bool, float], dict[str, Plan]] = {}
    for key, plan in plans.items():
        groups.setdefault((plan.load.all_frames, max(1.0, plan.load.scale)), {})[key] = plan
    return list(groups.values())


@attrs.frozen
class _Opened:
    """A source whose facts are known: encoded bytes, or a picture in memory."""

    info: ImageInfo
    data: ByteSource | None
    picture: pyvips.Image | None

    @classmethod
    def of(cls, source: Source, limits: Limits, name: str | None, *, digest: bool = False) -> _Opened:
        picture = as_image(source)
        if picture is not None:
            picture = colorspace.from_memory(picture)
            info = describe(picture, name=name)
            check_source(info, attrs.evolve(limits, source_bytes=None))
            return cls(info, None, picture)
        data = open_bytes(source, limits, name=name)
        info = probe(data, most_inlined=limits.source_pixels)
        check_source(info, limits)
        return cls(attrs.evolve(info, sha256=data.sha256()) if digest else info, data, None)

    def load(self, settings: LoadSettings) -> pyvips.Image:
        """The picture as an object that is nobody else's."""
        if self.picture is not None:
            return self.picture.copy()
        assert self.data is not None
        return load(self.data, self.info, settings)

    def find_faces(self, watch: Watch) -> tuple[Face, ...]:
        """The faces in the first frame, in pixels of the upright picture."""
        info = self.info
        scale = scale_for(info, max(1.0, max(info.width, info.height) / _FACE_SIDE), all_frames=False)
        with translate_errors(info.format):
            image = watch.over(self.load(LoadSettings(scale=scale, sequential=True)))
            image = image.crop(0, 0, image.width, image.get_page_height())
            upright = geometry.turn(colorspace.to_srgb(image, info.rgb_space).copy_memory(), info.orientation)
            found = face_detection.detect(upright)
        across = info.upright_size[0] / upright.width
        down = info.upright_size[1] / upright.height
        return tuple(face_detection.scaled(face, across, down) for face in found)


def _shown_faces(found: tuple[Face, ...] | None, plan: Plan, rendered: Rendered) -> tuple[Face, ...] | None:
    return None if found is None else plan.faces_in_result(rendered.regions)


def _result(
    opened: _Opened,
    plan: Plan,
    faces: tuple[Face, ...] | None,
    encoded: _Written,
    timing: Timing,
    *,
    target: Target,
    digest: bool,
) -> Result:
    describe = partial(_describe, quality=encoded.quality, name=name_of(target), digest=digest)
    return Result(
        input=opened.info,
        output=describe(encoded.source) if encoded.data is None else partial(describe, encoded.data),
        data=encoded.data,
        faces=faces,
        timing=timing,
        plan=plan,
    )


def _describe(encoded: ByteSource | bytes, *, quality: int | None, name: str, digest: bool) -> ImageInfo:
    source = ByteSource(encoded) if isinstance(encoded, bytes) else encoded
    sha256 = source.sha256() if digest else None
    return attrs.evolve(probe(source), quality=quality, name=name, sha256=sha256)


@attrs.frozen
class _Written:
    source: ByteSource
    data: bytes | None
    quality: int | None


def _write(image: pyvips.Image, plan: Plan, target: Target, watch: Watch) -> _Written:
    if len(plan.save) > 1:
        image = image.copy_memory()
    if is_file(target) and len(plan.save) == 1:
        with writing(target) as file:
            quality = save(image, plan.save[0], file).quality
            watch.check()
        return _Written(ByteSource(Path(target)), None, quality)
    best = _best(image, plan.save)
    assert best.data is not None
    watch.check()
    if target is not None:
        watch.end()  # a slow receiver is no slow picture
        with writing(target) as file:
            write_all(file, best.data)
    return _Written(ByteSource(best.data), None if target is not None else best.data, best.quality)


def _best(image: pyvips.Image, candidates: Iterable[SaveSettings]) -> Encoded:
    """The encoding that gives up the least of its quality to fit, of several the smallest.

    What a format cannot hold is no failure while another one can.
    """
    fitting: list[tuple[int, int, Encoded]] = []
    refusals: list[BudgetUnreachable | OutputTooLarge] = []
    for settings in candidates:
        try:
            encoded = save(image, settings)
        except (BudgetUnreachable, OutputTooLarge) as refusal:
            refusals.append(refusal)
        else:
            fitting.append((_given_up(settings, encoded), encoded.size, encoded))
    if not fitting:
        raise min(refusals, key=lambda refusal: getattr(refusal, "smallest", math.inf))
    return min(fitting, key=lambda found: found[:2])[2]


def _given_up(settings: SaveSettings, encoded: Encoded) -> int:
    """By how much the quality is lower than the one that is asked for."""
    asked = FORMATS[settings.format].quality if settings.quality is None else settings.quality
    return 0 if asked is None or encoded.quality is None else asked - encoded.quality


def _marks(
    watermarks: Watermarks | None, limits: Limits, watch: Watch
) -> Callable[[Watermark, Size], pyvips.Image]:
    """How to get the picture of a watermark for a picture of a size."""

    def picture(watermark: Watermark, size: Size) -> pyvips.Image:
        source = _resolve(watermarks, watermark.id)
        with naming_mark(watermark.id):
            opened = _Opened.of(source, limits, None)
            wanted = watermark_size(opened.info.upright_size, size, watermark)
            request = Spec(resize=Resize(width=wanted[0], height=wanted[1], mode="stretch"))
            plan = compile_plan(request, attrs.evolve(opened.info, frames=1), suffix=".png")
            with translate_errors(opened.info.format):
                return render(watch.over(opened.load(plan.load)), plan, _no_marks).image.copy_memory()

    return picture


@contextlib.contextmanager
def naming_mark(id: str) -> Iterator[None]:
    """Name the watermark in what is wrong with its picture, which nobody is to look for in the source."""
    try:
        yield
    except TimeLimitExceeded:
        raise
    except (SourceError, LimitExceeded) as error:
        error.begin_with(f"Watermark '{id}'")
        raise


def _resolve(watermarks: Watermarks | None, id: str) -> Source:
    try:
        source = watermarks(id) if callable(watermarks) else (watermarks or {})[id]
    except KeyError:
        source = None
    if source is None:
        raise SpecError(
            [Problem("watermark.id", f"Watermark 'id' parameter must be a known watermark, got '{id}'")]
        )
    return source


def _no_marks(watermark: Watermark, size: Size) -> pyvips.Image:
    raise AssertionError(watermark)


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)
