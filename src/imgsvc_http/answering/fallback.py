"""The picture that is shown instead of an error."""

from __future__ import annotations

from pathlib import Path

import attrs

import imgsvc_core
from imgsvc_core import FORMATS
from imgsvc_core.errors import SourceError
from imgsvc_http.settings.problems import wrong_setting


@attrs.frozen
class Fallback:
    """A picture and its media type."""

    body: bytes = attrs.field(repr=False)
    content_type: str


def load_fallback(file: Path | None) -> Fallback | None:
    """Return the picture of a file, if there is one; raise `SpecError` if it is no picture."""
    if file is None:
        return None
    try:
        body = file.read_bytes()
        row = FORMATS[imgsvc_core.inspect(body).format]
    except (OSError, SourceError) as error:
        expected = f"must be the file of a picture, got '{file}': {error}"
        raise wrong_setting("delivery.fallback", expected) from error
    return Fallback(body, row.media_type)
