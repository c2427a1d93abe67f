"""The example pictures of the playground."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from imgsvc_core import FORMATS

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "playground" / "examples", _PACKAGE.parents[1] / "examples" / "pictures")
"""Where they may be: in the wheel, or in a clone."""

MEDIA_TYPES = {suffix: row.media_type for row in FORMATS.values() for suffix in row.suffixes}
"""The media types of pictures by the suffixes of their files."""


@cache
def examples() -> Mapping[str, Path]:
    """Return the example pictures by name."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    files = sorted(folder.iterdir()) if folder else ()
    return {file.name: file for file in files if file.suffix in MEDIA_TYPES}
