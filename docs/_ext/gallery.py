"""Layers that the gallery of the documentation shows: a picture and the request of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

Request = Mapping[str, Any]


@attrs.frozen
class Shown:
    """A source, what is done before its layers, and the layers."""

    caption: str
    source: str
    before: Request
    layers: list[Any]

    @property
    def request(self) -> Request:
        return {**self.before, "layers": self.layers}

    @property
    def code(self) -> str:
        """The request as a block of JSON, with a line for each short part."""
        return f"```json\n{_written(self.request)}\n```"


def _written(value: Any, indent: int = 0) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= 100 or not isinstance(value, dict | list):
        return line
    inner = " " * (indent + 2)
    if isinstance(value, list):
        parts = [_written(item, indent + 2) for item in value]
        opening, closing = "[", "]"
    else:
        parts = [f"{json.dumps(name)}: {_written(item, indent + 2)}" for name, item in value.items()]
        opening, closing = "{", "}"
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{' ' * indent}{closing}"


_WIDE: Request = {"resize": {"width": 600, "height": 315, "mode": "fit"}}
_PORTRAIT: Request = {"resize": {"width": 420, "height": 420, "mode": "fit", "gravity": "face"}}
_TITLE = "How to make coffee that tastes like a holiday"

GALLERY: Mapping[str, Shown] = {
    "card": Shown(
        "a gradient, two texts and a logo",
        "coffee.heic",
        _WIDE,
        [
            {"gradient": {"from": "00000000", "to": "e6000000"}},
            {
                "text": {"text": _TITLE, "font": "Inter Bold", "size": "11%", "color": "ffffff",
                         "line_height": 1.1, "lines": 2},
                "width": "80%", "gravity": "bottom-left", "x": 32, "y": 56,
            },
            {
                "text": {"text": "By Ada · 5 minutes", "font": "Inter Medium", "size": "5%",
                         "color": "ffd9a0"},
                "gravity": "bottom-left", "x": 32, "y": 28,
            },
            {"picture": {"id": "logo"}, "width": 55, "gravity": "top-right", "padding": 24},
        ],
    ),
    "sale": Shown(
        "a circle with a shadow, and a turned text",
        "portrait.jpg",
        _PORTRAIT,
        [
            {
                "shape": {"kind": "ellipse", "color": "ff3300"}, "width": "34%", "height": "34%",
                "gravity": "center", "x": "29%", "y": "-29%", "shadow": {"y": 4, "blur": 14},
            },
            {
                "text": {"text": "−30 %", "font": "Inter Black", "size": "9.5%", "color": "ffffff",
                         "align": "center"},
                "width": "34%", "height": "34%", "gravity": "center", "x": "29%", "y": "-29%",
                "rotation": -12,
            },
        ],
    ),
    "quote": Shown(
        "two colors multiplied, and a text that fits",
        "portrait.jpg",
        _PORTRAIT,
        [
            {"gradient": {"from": "1b1464", "to": "ff3300", "angle": 45}, "blend": "multiply"},
            {
                "text": {
                    "spans": [
                        {"text": "Measure twice, "},
                        {"text": "cut once.", "font": "Inter Black", "color": "ffd9a0"},
                    ],
                    "font": "Inter Light", "size": 200, "fit": True, "color": "ffffff",
                },
                "width": "84%", "height": "36%", "gravity": "bottom-left", "padding": "7%",
            },
        ],
    ),
    "draft": Shown(
        "a text that is repeated",
        "coffee.heic",
        _WIDE,
        [
            {
                "text": {"text": "DRAFT", "font": "Inter Black", "size": "11%", "color": "ffffff"},
                "rotation": -25, "opacity": 0.7, "blend": "overlay",
                "repeat": {"spacing": "6%", "stagger": 0.5},
            },
        ],
    ),
    "subtitle": Shown(
        "a text in a box",
        "coffee.heic",
        _WIDE,
        [
            {
                "text": {"text": "– One more cup?\n– In a minute.", "font": "Inter Medium", "size": "7%",
                         "color": "ffffff", "align": "center",
                         "background": {"color": "b0000000", "padding": "40%", "radius": "35%"}},
                "gravity": "bottom", "padding": "11%",
            },
        ],
    ),
    "poster": Shown(
        "colors from a gradient, and texts in five scripts",
        "portrait.jpg",
        {**_PORTRAIT, "adjust": {"saturation": -100}},
        [
            {"gradient": {"from": "ffb199", "to": "3300ff", "angle": 200}, "blend": "color"},
            {
                "text": {"text": "ORBIT", "font": "Inter Black", "size": "29%", "color": "ffffff",
                         "letter_spacing": "-3%"},
                "gravity": "bottom",
            },
            {
                "shape": {"kind": "line", "color": "ffffff", "thickness": 2}, "width": "88%",
                "gravity": "top", "y": "6%",
            },
            {
                "text": {"text": "صباح الخير   おはよう   सुप्रभात   שלום", "font": "Noto Sans", "size": "5%",
                         "color": "ffffff"},
                "gravity": "top", "y": "8%",
            },
        ],
    ),
}  # fmt: skip
"""What layers are good for, by name."""
