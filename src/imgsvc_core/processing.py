"""The doors of the library: one image as one request asks, or as several, or its pixels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from imgsvc_core._runtime.failing import without_pictures
from imgsvc_core.errors import TargetError, invalid
from imgsvc_core.making import Wanted, make, naming
from imgsvc_core.sources.url_messages import shown_url
from imgsvc_core.spec import Request, Spec, parse
from imgsvc_core.targets.result import Result, Variants
from imgsvc_core.targets.writing import Target, check_target

if TYPE_CHECKING:
    import numpy.typing as npt

    from imgsvc_core._runtime.deadline import Deadline
    from imgsvc_core.limits import Limits
    from imgsvc_core.pixels.watermarks import Watermarks
    from imgsvc_core.sources.receiving import Source


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
    source: Source, spec: Request | None = None, target: None = None, **options: Unpack[ProcessOptions]
) -> Result[bytes]: ...
@overload
def process(
    source: Source, spec: Request | None, target: Target, **options: Unpack[ProcessOptions]
) -> Result[None]: ...
@overload
def process(
    source: Source, spec: Request | None = None, *, target: Target, **options: Unpack[ProcessOptions]
) -> Result[None]: ...
@without_pictures
def process(
    source: Source,
    spec: Request | None = None,
    target: Target | None = None,
    **options: Unpack[ProcessOptions],
) -> Result[Any]:
    """Process one image as a request asks.

    Without a target, the pixels are computed at once, and encoded when `Result.data`, `Result.save` or a fact
    of the encoded image is asked for. The encoder raises its errors then, and its time counts in the time
    limit. With a target, the image is encoded while it is computed, which takes less memory.

    Args:
        source: a path, an fsspec URL, encoded bytes, a binary file object, a result, a Pillow image, a pyvips
            image, or a numpy array of height x width (x channels) in ``uint8``, ``uint16``, ``bool`` or
            floats from 0 to 1.
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
    return process_until(None, source, spec, target, **options)


@without_pictures
def process_until(
    deadline: Deadline | None,
    source: Source,
    spec: Request | None = None,
    target: Target | None = None,
    *,
    suffix: str = "",
    **options: Unpack[ProcessOptions],
) -> Result[Any]:
    """Do what `process` does, in the time of a deadline, which another thread may interrupt.

    ``suffix`` is that of the file into which the caller writes what an open target gets.
    """
    wanted = Wanted(parse_for(target, spec), target, suffix=suffix)
    _check_options(options)
    [result] = make(source, [wanted], deadline=deadline, **options)
    return result


def parse_for(target: Target | None, spec: Request | None) -> Spec:
    """Return the spec of a request, and check its target."""
    if target is not None:
        check_target(target)
    elif isinstance(spec, str | os.PathLike):
        expected = "The request must be operations or a JSON object; pass a path of the result as 'target'"
        raise invalid("", expected, f"got '{shown_url(os.fspath(spec))}'")
    return parse({} if spec is None else spec)


@overload
def process_variants(
    source: Source, variants: Mapping[str, Request], targets: None = None, **options: Unpack[ProcessOptions]
) -> Variants[bytes]: ...
@overload
def process_variants(
    source: Source,
    variants: Mapping[str, Request],
    targets: str | Mapping[str, Target],
    **options: Unpack[ProcessOptions],
) -> Variants[None]: ...
@without_pictures
def process_variants(
    source: Source,
    variants: Mapping[str, Request],
    targets: str | Mapping[str, Target] | None = None,
    **options: Unpack[ProcessOptions],
) -> Variants[Any]:
    """Process one image as several requests ask. The image is decoded once for all of them.

    Args:
        source: as in `process`.
        variants: requests by name.
        targets: targets by name, or a path or URL in which ``{name}`` stands for the name of the variant,
            such as ``small/photo-{name}.webp``.
        options: as in `process`. ``limits`` hold for each variant, but ``seconds`` for all variants
            together.

    Return the results by name. Raises what `process` raises.
    """
    if not isinstance(variants, Mapping):
        raise TypeError(f"Variants must be a mapping of names and requests, got {type(variants).__name__}.")
    places, wanted = _targets(variants, targets), []
    for name, spec in variants.items():
        if not isinstance(name, str):
            raise TypeError(f"Names of variants must be texts, got {type(name).__name__}.")
        with naming(name):
            wanted.append(Wanted(parse(spec), places.get(name), variant=name))
    _check_options(options)
    return Variants(zip(variants, make(source, wanted, **options), strict=True))


def _targets(variants: Iterable[str], targets: str | Mapping[str, Target] | None) -> Mapping[str, Target]:
    """Return the target of each variant, or nothing.

    Raises:
        TargetError: a variant has no target, or two have the same.
    """
    names = tuple(variants)
    if targets is None:
        return {}
    if isinstance(targets, str):
        if "{name}" not in targets and len(names) > 1:
            raise TargetError(f"Target '{targets}' must hold '{{name}}' for {len(names)} variants.")
        return {name: targets.replace("{name}", name) for name in names}
    variant_at: dict[str | int, str] = {}
    for name in names:
        target = targets.get(name)
        if target is None:
            raise TargetError(f"Targets must have one for each variant, got none for '{name}'.")
        check_target(target)
        place = os.fspath(target) if isinstance(target, str | os.PathLike) else id(target)
        if (other := variant_at.setdefault(place, name)) != name:
            raise TargetError(f"Targets must differ, got the same one for '{other}' and '{name}'.")
    return targets


def to_numpy(
    source: Source, spec: Request | None = None, **options: Unpack[ProcessOptions]
) -> npt.NDArray[Any]:
    """Process one image and return its pixels without encoding them, in the form of `Result.to_numpy`.

    A worker process can send the array back: ``pool.submit(imgsvc.to_numpy, "a.jpg", spec)``.

    Raises what `process` raises.
    """
    return process(source, spec, **options).to_numpy()


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise `TypeError` for options that are unknown or of a wrong type."""
    known = ProcessOptions.__optional_keys__
    for name in options:
        if name not in known:
            raise TypeError(
                f"Options are {', '.join(sorted(known))}, got '{name}'; operations go into the request, "
                "as in process(source, Resize(width=300))."
            )
    for name in ("name", "accept"):
        if not isinstance(given := options.get(name), str | None):
            raise TypeError(f"Option '{name}' must be a text, got {type(given).__name__}.")
    marks = options.get("watermarks")
    if not (isinstance(marks, Mapping | None) or callable(marks)):
        raise TypeError(
            "Option 'watermarks' must be a mapping of pictures by id, or a function from id to picture, got "
            f"{type(marks).__name__}."
        )
