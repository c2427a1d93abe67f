"""JSON files that options name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from imgsvc_cli.standard_streams import read_input
from imgsvc_core._runtime.jsontext import check_depth, without_repeats
from imgsvc_core.errors import Problem, SourceError, SpecError, os_reason


def read_json(option: str, name: str) -> dict[str, Any]:
    """Return the JSON object in a file, or on standard input for ``-``.

    Raises:
        SpecError: the file cannot be read, or does not hold a JSON object.
    """
    try:
        data = read_input() if name == "-" else Path(name).read_bytes()
        text = data.decode("utf-8-sig")
        found = json.loads(text, object_pairs_hook=without_repeats)
        check_depth(text)
    except (OSError, ValueError, RecursionError, SourceError) as error:
        reason = os_reason(error)
        message = f"Option '{option}' must name a JSON file, got '{name}': {reason}"
        raise SpecError([Problem("", message)]) from error
    if not isinstance(found, dict):
        raise SpecError([Problem("", f"The document in '{name}' must be a JSON object")])
    return found
