"""The request of a command: presets, the file that ``--spec`` names, and flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import imgsvc_core as imgsvc
from imgsvc_cli.flags import request_document
from imgsvc_cli.options import read_spec
from imgsvc_core.errors import invalid, os_reason
from imgsvc_core.spec.declaring import parse_partial
from imgsvc_core.spec.presets import parse_merged, parse_presets, with_presets

preset_option = click.option(
    "--preset",
    "presets",
    multiple=True,
    metavar="NAME",
    help="Preset of the settings file to begin with; may be repeated, and later ones win.",
)


def read_request(
    flags: Mapping[str, Any], spec: str | None, presets: Sequence[str], config: Path | None
) -> imgsvc.Spec:
    """Return the request of presets, of the file that ``--spec`` names, and of flags; later ones win.

    Args:
        flags: the flags of the request.
        spec: the value of ``--spec``.
        presets: names of presets.
        config: the settings file; by default the one that ``IMGSVC_CONFIG`` names.

    Raises:
        SpecError: with what is wrong with them.
    """
    return parse_merged(merged_document(flags, read_spec(spec), presets, config), presets)


def merged_document(
    flags: Mapping[str, Any], base: dict[str, Any] | None, presets: Sequence[str], config: Path | None
) -> dict[str, Any]:
    """Return the document of a request: ``base`` completes presets, and flags win over both.

    Raises:
        SpecError: a preset or a shorthand is wrong, or the settings cannot be read.
    """
    known = _presets(config) if presets or config else {}
    if presets:
        base = with_presets(presets, known, parse_partial(base or {}, "The request"))
    return request_document(flags, base)


def _presets(config: Path | None) -> Mapping[str, Mapping[str, Any]]:
    named = os.environ.get("IMGSVC_CONFIG")
    file = config or (Path(named) if named else None)
    if file is None:
        message = "Option '--preset' needs a settings file: name it with --config"
        raise invalid("", message)
    import tomllib

    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"The settings file '{file}' must be readable TOML: {os_reason(error)}"
        raise invalid("", message) from error
    return parse_presets(document.get("presets", {}))
