"""Rows of small pictures that show what parameters do, rendered while the documentation is built."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import imgsvc_core as imgsvc

TOP = Path(__file__).parents[2]
PICTURES = TOP / "examples" / "pictures"
FOLDER = TOP / "docs" / "_static" / "strips"
Request = Mapping[str, Any]

PORTRAIT = {"crop": {"mode": "rect", "width": 320, "height": 240, "x": 60, "y": 20}, "resize": {"width": 200}}
COFFEE = {"resize": {"width": 200}}


@attrs.frozen
class Strip:
    """Pictures that differ in one or two parameters."""

    source: str
    shown: Sequence[tuple[str, Request]]
    """Caption and request of each picture."""
    always: Request = attrs.field(factory=dict)
    """What all requests of the strip have in common."""


def _varied(key: str, values: Iterable[Request]) -> list[tuple[str, Request]]:
    return [(_listed(value), {key: value}) for value in values]


def _listed(values: Request) -> str:
    return "\n".join(f"{name} {_word(value)}" for name, value in values.items())


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filters(name: str, source: str, always: Request, *values: Request) -> Strip:
    shown = [(_listed(value), {"filter": {name: value}}) for value in values]
    return Strip(source, shown, always)


def _adjustment(param: imgsvc.Param) -> Strip:
    shown = [(f"{param.name} {_word(value)}", {"adjust": {param.name: value}}) for value in _spread(param)]
    return Strip("portrait.jpg", shown, PORTRAIT)


def _spread(param: imgsvc.Param) -> list[Any]:
    """Return five values from the least to the largest."""
    schema = param.kind.schema()
    if schema["type"] == "boolean":
        return [False, True]
    low, high = schema["minimum"], schema["maximum"]
    values = [low + (high - low) * quarter / 4 for quarter in range(5)]
    return [round(value) for value in values] if schema["type"] == "integer" else values


AMOUNTS = [{"value": value} for value in (5, 15, 30, 60, 100)]
DUOTONES = (("ffffff", "000000"), ("ffd9a0", "1b1464"), ("ffb199", "003b46"), ("e8ff8b", "3d0c45"))
_BOX = {"width": 180, "height": 120}
_GRAVITIES = ("top-left", "top", "center", "bottom", "bottom-right")

STRIPS: dict[str, Strip] = {
    "showcase": Strip(
        "portrait.jpg",
        [
            ("the original", {}),
            (
                "crop to the face\nmask ellipse",
                {"crop": {"mode": "face", "padding": 0.6}, "mask": {"shape": "ellipse"}},
            ),
            (
                "temperature 70\nvignette 70",
                {
                    "adjust": {"temperature": 70, "contrast": 12},
                    "filter": {"vignette": {"value": 70, "radius": 35}},
                },
            ),
            ("duotone", {"filter": {"duotone": {"light": "ffe2b8", "dark": "120a52"}}}),
            ("halftone 40", {"filter": {"halftone": {"value": 40}}}),
            (
                "watermark\nborder, rounded",
                {
                    "watermark": {"id": "logo", "gravity": "bottom-right", "padding": 8, "width": 48},
                    "border": {"size": 6, "color": "2a2440", "radius": 20},
                },
            ),
        ],
        {"resize": {"width": 220, "height": 220, "mode": "fit", "gravity": "top"}},
    ),
    "flip": Strip(
        "portrait.jpg",
        _varied("flip", [{"horizontal": False}, {"horizontal": True}, {"vertical": True}]),
        PORTRAIT,
    ),
    "rotate": Strip(
        "emblem.png",
        _varied(
            "rotate", [{"angle": 90}, {"angle": -20}, {"angle": 20}, {"angle": 20, "background": "ffd9a0"}]
        ),
        {"resize": {"width": 140}},
    ),
    "crop": Strip(
        "portrait.jpg",
        _varied(
            "crop",
            [
                {"width": 300, "height": 200, "gravity": "top"},
                {"mode": "ratio", "ratio": "1:1"},
                {"mode": "ratio", "ratio": "16:9", "gravity": "top"},
                {"mode": "face"},
                {"mode": "smart", "width": 300, "height": 300},
            ],
        ),
        {"resize": {"width": 160}},
    ),
    "resize": Strip(
        "portrait.jpg",
        _varied(
            "resize",
            [
                {**_BOX, "mode": "auto"},
                {**_BOX, "mode": "fit"},
                {**_BOX, "mode": "fit", "gravity": "face"},
                {**_BOX, "mode": "fill", "background": "ffd9a0"},
                {**_BOX, "mode": "stretch"},
            ],
        ),
    ),
    "scale": Strip(
        "coffee.heic",
        _varied("scale", [{"size": 0.1}, {"size": 0.25}, {"size": 0.25, "ratio": 1}]),
    ),
    "auto": Strip(
        "dark.png", _varied("auto", [{"enhance": False}, {"enhance": True}]), {"resize": {"width": 240}}
    ),
    "mask": Strip(
        "portrait.jpg",
        _varied(
            "mask",
            [
                {"shape": "rounded", "radius": 12},
                {"shape": "rounded", "radius": 48},
                {"shape": "ellipse"},
                {"shape": "ellipse", "background": "ffd9a0"},
            ],
        ),
        PORTRAIT,
    ),
    "padding": Strip(
        "portrait.jpg",
        _varied(
            "padding",
            [
                {"size": 10, "background": "1b1464"},
                {"top": 30, "bottom": 10, "background": "ffd9a0"},
                {"size": 10, "right": 40, "background": "003b46"},
            ],
        ),
        PORTRAIT,
    ),
    "border": Strip(
        "portrait.jpg",
        _varied(
            "border",
            [
                {"size": 2},
                {"size": 8, "color": "ffb199"},
                {"size": 8, "color": "1b1464", "radius": 24},
                {"size": 8, "color": "1b1464", "radius": 24, "background": "ffd9a0"},
            ],
        ),
        PORTRAIT,
    ),
    "watermark": Strip(
        "coffee.heic",
        [
            (_listed(value) or "no more", {"watermark": {"id": "logo", **value}})
            for value in (
                {"width": 60},
                {"width": 60, "gravity": "bottom-right", "padding": 8},
                {"width": 60, "x": 10, "y": 10},
                {"width": 60, "opacity": 0.4},
                {"fit": True},
            )
        ],
        COFFEE,
    ),
    "output": Strip(
        "portrait.jpg",
        [
            (f"quality {quality}\n{{kilobytes}} kB", {"output": {"format": "webp", "quality": quality}})
            for quality in (95, 80, 50, 20, 5)
        ],
        PORTRAIT,
    ),
    **{f"adjust.{name}": _adjustment(param) for name, param in imgsvc.params(imgsvc.Adjust).items()},
    "filter.isolate": _filters(
        "isolate",
        "coffee.heic",
        COFFEE,
        *[{"color": "b5322a", "threshold": x} for x in (0, 0.05, 0.1, 0.3, 0.6)],
    ),
    "filter.monochrome": _filters(
        "monochrome", "coffee.heic", COFFEE, *[{"color": "4fa3ff", **amount} for amount in AMOUNTS]
    ),
    "filter.sepia": _filters("sepia", "coffee.heic", COFFEE, *AMOUNTS),
    "filter.duotone": _filters(
        "duotone", "portrait.jpg", PORTRAIT, *[{"light": light, "dark": dark} for light, dark in DUOTONES]
    ),
    "filter.blur": _filters(
        "blur",
        "portrait.jpg",
        PORTRAIT,
        *[{"mode": "gaussian", "value": value} for value in (15, 60)],
        *[{"mode": "motion", "angle": angle, "value": 60} for angle in (0, 45)],
        *[{"mode": "zoom", "value": value} for value in (30, 100)],
    ),
    "filter.pixellate": _filters("pixellate", "portrait.jpg", PORTRAIT, *AMOUNTS),
    "filter.vignette": _filters(
        "vignette",
        "coffee.heic",
        COFFEE,
        *[
            {"value": value, "radius": radius}
            for value, radius in ((30, 30), (60, 30), (100, 30), (100, 0), (100, 60))
        ],
    ),
    "filter.halftone": _filters(
        "halftone", "portrait.jpg", PORTRAIT, *[{"value": value} for value in (30, 45, 60, 80, 100)]
    ),
}


def figures(name: str) -> str:
    """Render a strip and return it as HTML; ``STATIC`` stands for the way to the folder of static files."""
    strip = STRIPS[name]
    cells = [
        _figure(name, number, caption, {**strip.always, **request})
        for number, (caption, request) in enumerate(strip.shown)
    ]
    return '<div class="strip">\n' + "\n".join(cells) + "\n</div>"


def _figure(name: str, number: int, caption: str, request: Request) -> str:
    result = imgsvc.process(
        _source(STRIPS[name].source),
        {"output": {"format": "webp", "quality": 85}, **request},
        watermarks={"logo": PICTURES / "logo.svg"},
    )
    assert result.data is not None
    FOLDER.mkdir(parents=True, exist_ok=True)
    target = FOLDER / f"{name}-{number}.webp"
    target.write_bytes(result.data)
    width, height = result.output.width, result.output.height
    text = caption.format(kilobytes=f"{result.output.bytes / 1000:.1f}")
    lines = "<br>".join(html.escape(line) for line in text.split("\n"))
    alt = html.escape(f"{name}: {text}".replace("\n", ", "), quote=True)
    return (
        f'<figure><img src="STATIC/strips/{target.name}" width="{width}" height="{height}" alt="{alt}" '
        f'loading="lazy"><figcaption>{lines}</figcaption></figure>'
    )


def _source(name: str) -> Path | bytes:
    if name != "dark.png":
        return PICTURES / name
    dark = imgsvc.process(
        PICTURES / "portrait.jpg",
        {
            "adjust": {"exposure": -55, "temperature": 35, "contrast": -20},
            **PORTRAIT,
            "output": {"format": "png"},
        },
    )
    assert dark.data is not None
    return dark.data


if __name__ == "__main__":
    for name in STRIPS:
        figures(name)
    sys.exit()
