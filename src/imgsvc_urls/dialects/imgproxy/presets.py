"""Presets of imgproxy: options under a name, from settings and from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import SpecError, invalid
from imgsvc_urls.dialects.imgproxy.options import Segment, read_options
from imgsvc_urls.errors import DialectError

Presets: TypeAlias = Mapping[str, list[Segment]]


def read_presets(
    texts: tuple[str, ...], file: str | None, *, between: str | None, separator: str, security: bool
) -> Presets:
    """Return presets by name; those of the file replace others.

    Args:
        texts: presets, each as ``name=option:argument/option:argument``.
        file: the path of a file with one preset on each line.
        between: what separates several presets in one text.
        separator: what separates an option and its arguments.
        security: whether presets may have options that change limits.

    Raises:
        SpecError: a preset is wrong, or the file cannot be read; the problem names the setting.
    """
    presets: dict[str, list[Segment]] = {}
    parts = [part for text in texts for part in (text.split(between) if between else [text])]
    for setting, lines in (("presets", parts), ("presets_path", _lines(file))):
        for line in lines:
            if not line.strip() or line.strip().startswith("#"):
                continue
            name, segments = _preset(setting, line.strip(), separator)
            presets[name] = segments
    for name in presets:
        try:
            read_options([("preset", [name])], presets, security=security)
        except DialectError as error:
            raise _wrong("presets", f"{name}: {error.message}") from error
    return presets


def _lines(file: str | None) -> Iterator[str]:
    if file is None:
        return
    try:
        yield from Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"'presets_path' must be a file with one preset on each line, got {shown(file)}: {reason}"
        raise invalid("presets_path", message) from error


def _preset(setting: str, text: str, separator: str) -> tuple[str, list[Segment]]:
    name, equals, value = text.partition("=")
    segments = [segment.split(separator) for segment in value.strip().split("/")]
    if not name.strip() or not equals or "=" in value or any(len(segment) < 2 for segment in segments):
        form = f"name=option{separator}argument/option{separator}argument"
        raise _wrong(setting, f"must be {form}, got {shown(text)}")
    return name.strip(), [(option, arguments) for option, *arguments in segments]


def _wrong(setting: str, problem: str) -> SpecError:
    return invalid(setting, f"A preset in '{setting}' {problem}")
