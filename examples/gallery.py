"""Every adjustment and every filter at several values: ``python -m examples.gallery [folder]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

import imgsvc_core as imgsvc
from examples.sheets import Cell, save, sheet

PICTURES = Path(__file__).parent / "pictures"
SMALL = {"crop": {"mode": "ratio", "ratio": "4:3", "gravity": "top"}, "resize": {"width": 336, "height": 252}}
SHOWN = {"width": 168, "height": 126}

AMOUNTS = [{"value": value} for value in (5, 15, 30, 60, 100)]
DUOTONES = (("fff", "000"), ("ffd9a0", "1b1464"), ("ffb199", "003b46"), ("e8ff8b", "3d0c45"), ("112", "fec"))

FILTER_ROWS: tuple[tuple[str, Sequence[dict[str, Any]]], ...] = (
    ("isolate", [{"color": "b5322a", "threshold": value} for value in (0, 0.05, 0.1, 0.3, 0.6)]),
    ("monochrome", [{"color": "4fa3ff", **amount} for amount in AMOUNTS]),
    ("sepia", AMOUNTS),
    ("duotone", [{"light": light, "dark": dark} for light, dark in DUOTONES]),
    ("blur", [{"mode": "gaussian", **amount} for amount in AMOUNTS]),
    ("blur", [{"mode": "motion", "angle": 30, **amount} for amount in AMOUNTS]),
    ("blur", [{"mode": "zoom", **amount} for amount in AMOUNTS]),
    ("pixellate", AMOUNTS),
    ("vignette", [{"radius": 30, **amount} for amount in AMOUNTS]),
    ("halftone", AMOUNTS),
)


def main(folder: str = "docs/images") -> int:
    save(adjustments(), Path(folder) / "adjustments.jpg")
    save(filters(), Path(folder) / "filters.jpg")
    return 0


def adjustments() -> Image.Image:
    """One row for each adjustment, over its declared range."""
    rows = [
        [_cell("portrait.jpg", {"adjust": {name: value}}, name, str(value)) for value in _values(param)]
        for name, param in imgsvc.params(imgsvc.Adjust).items()
    ]
    return sheet(rows, **SHOWN)


def filters() -> Image.Image:
    """One row for each filter and each way to use it, from little to much."""
    rows = [
        [_cell("coffee.heic", {"filter": {name: settings}}, name, _listed(settings)) for settings in row]
        for name, row in FILTER_ROWS
    ]
    return sheet(rows, **SHOWN)


def _values(param: imgsvc.Param) -> list[Any]:
    schema = param.kind.schema()
    if schema["type"] == "boolean":
        return [False, True]
    low, high = schema["minimum"], schema["maximum"]
    values = [low + (high - low) * quarter / 4 for quarter in range(5)]
    return [round(value) for value in values] if schema["type"] == "integer" else values


def _cell(picture: str, request: dict[str, Any], title: str, caption: str) -> Cell:
    result = imgsvc.process(PICTURES / picture, {**SMALL, **request, "output": {"format": "png"}})
    assert result.data is not None
    return Cell(result.data, title, caption)


def _listed(settings: dict[str, Any]) -> str:
    return " ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in settings.values())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
