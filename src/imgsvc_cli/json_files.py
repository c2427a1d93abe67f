"""JSON files that options name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from imgsvc_cli.standard_streams import read_input
from imgsvc_core._runtime.jsontext import check_depth, shown, without_repeats
from imgsvc_core.errors import SourceError, invalid, os_reason

_J = TypeVar("_J", dict[str, Any], list[Any])


def read_json(option: str, name: str, kind: type[_J] = dict) -> _J:  # type: ignore[assignment]
    """Return the JSON object or array in a file, or on standard input for ``-``.

    Raises:
        SpecError: the file cannot be read, or does not hold a value of this kind.
    """
    import json

    try:
        data = read_input() if name == "-" else Path(name).read_bytes()
        text = data.decode("utf-8-sig")
        found = json.loads(text, object_pairs_hook=without_repeats)
        check_depth(text)
    except (OSError, ValueError, RecursionError, SourceError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else os_reason(error)
        raise invalid("", f"Option '{option}' must name a JSON file, got '{name}': {reason}") from error
    if not isinstance(found, kind):
        words = "a JSON object" if kind is dict else "a JSON array"
        raise invalid("", f"The document in '{name}' must be {words}", f"got {shown(found)}")
    return found
