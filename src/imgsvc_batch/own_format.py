"""The request of a picture that is replaced by its result."""

from __future__ import annotations

from imgsvc_core import (
    FORMATS,
    ImageInfo,
    Limits,
    Output,
    Spec,
    SpecError,
    TargetError,
    explain,
    parse,
    unparse,
)


def keep_smaller(spec: Spec) -> Spec:
    """Return a request that keeps the original's pixels if encoding them again saves nothing."""
    output = spec.output or Output()
    if output.keep_pixels or output.transcode:
        return spec
    document = unparse(spec)
    return parse({**document, "output": {**document.get("output", {}), "if_smaller": True}})


def in_own_format(spec: Spec, info: ImageInfo) -> Spec:
    """Return a request that names the format of its source, whatever the suffix of the file.

    Raises:
        TargetError: the result would have another format, or lack pages.
    """
    output = spec.output or Output()
    plan = explain(spec, info, limits=Limits.none())
    formats = list(dict.fromkeys(settings.format for settings in (*plan.save, *plan.save_exactly)))
    is_free = output.format is None and not output.transcode and FORMATS[info.format].writable
    if formats != [info.format] and not is_free:
        raise TargetError(
            f"In place a result must have the format of its source, {info.format}, got "
            f"{' or '.join(formats)}: write it to another file."
        )
    if info.more_pages:
        raise TargetError(
            "In place a result must have all pages and pictures of its source, got the first: write it to "
            "another file."
        )
    return _with_format(spec, info.format)


def _with_format(spec: Spec, format: str) -> Spec:
    """Return a request that names a format. What the format does not support is left out."""
    document = unparse(spec)
    output = {**document.get("output", {}), "format": format}
    while True:
        try:
            return parse({**document, "output": output})
        except SpecError as error:
            needless = {problem.path.removeprefix("output.") for problem in error.problems} & output.keys()
            if not needless:
                raise
            output = {name: value for name, value in output.items() if name not in needless}
