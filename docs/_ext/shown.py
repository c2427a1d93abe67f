"""The rows of small pictures of the documentation: which requests they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from gallery import GALLERY

import imgsvc_core as imgsvc

PICTURES = Path(__file__).parents[2] / "examples" / "pictures"
Request = Mapping[str, Any]

# Widths of which five or six stand in one row of a page.
PORTRAIT = {"crop": {"mode": "rect", "width": 320, "height": 240, "x": 60, "y": 20}, "resize": {"width": 155}}
COFFEE = {"resize": {"width": 155}}
SIX = {"resize": {"width": 127}}
SMALL = {"resize": {"width": 140}}


@attrs.frozen
class Strip:
    """Pictures that differ in one or two parameters."""

    source: str
    shown: Sequence[tuple[str, Request]]
    """Caption and request of each picture."""
    always: Request = attrs.field(factory=dict)
    """What all requests of the strip have in common."""
    title: str = ""


def _varied(key: str, values: Iterable[Request]) -> list[tuple[str, Request]]:
    return [(_listed(value), {key: value}) for value in values]


def _listed(values: Request, end: str = "\n") -> str:
    return end.join(f"{name} {_word(value)}" for name, value in values.items())


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filters(name: str, source: str, always: Request, *values: Request) -> Strip:
    shown = [(_listed(value), {"filter": {name: value}}) for value in values]
    return Strip(source, shown, always)


def _parameters(
    operation: str, source: str, always: Request, shown: Mapping[str, tuple[Request, Sequence[Any] | None]]
) -> dict[str, Strip]:
    """Return one strip for each parameter: what goes with it, and its values, or None for a spread."""
    declared = imgsvc.params(imgsvc.OPERATIONS[operation])
    strips = {}
    for name, (beside, values) in shown.items():
        pictures = [
            (_word(value), {operation: {**beside, name: value}})
            for value in values or _spread(declared[name])
        ]
        told = {key: value for key, value in beside.items() if key != "id"}
        title = f"{name}, with {_listed(told, ', ')}" if told else name
        strips[f"{operation}.{name}"] = Strip(source, pictures, always, title)
    return strips


def _spread(param: imgsvc.Param) -> list[Any]:
    """Return all choices, or five values from the least to the largest."""
    schema = param.kind.schema()
    if "enum" in schema:
        return list(schema["enum"])
    if schema["type"] == "boolean":
        return [False, True]
    low, high = schema["minimum"], schema["maximum"]
    values = [low + (high - low) * quarter / 4 for quarter in range(5)]
    return [round(value) for value in values] if schema["type"] == "integer" else values


def _phases(source: str, request: Request) -> Strip:
    """Return a picture after each phase of a request; those before its resize are only made small."""
    shown, sofar = [], {}
    for number, (key, part) in enumerate(request.items(), 1):
        sofar = {**sofar, key: part}
        shown.append((f"{number}. {key}", sofar))
    return Strip(source, shown, {"resize": {"width": 120}}, "one request, phase by phase")


def _adjustments() -> dict[str, Strip]:
    names = imgsvc.params(imgsvc.Adjust)
    return _parameters("adjust", "portrait.jpg", PORTRAIT, {name: ({}, None) for name in names})


def _layers(shown: Iterable[tuple[str, Request]]) -> Strip:
    """Return one picture for each layer."""
    return Strip("coffee.heic", [(caption, {"layers": [layer]}) for caption, layer in shown], SIX)


_BADGE: Request = {"picture": {"id": "logo"}, "width": 48}
_DOT: Request = {"shape": {"kind": "ellipse", "color": "ff3300"}, "width": 24, "height": 24}
_RAMP: Request = {"gradient": {"from": "ff3300", "to": "3300ff", "angle": 90}, "height": "60%"}
_SQUARE: Request = {"gradient": {"from": "ffb199", "to": "ff3300"}, "width": 50, "height": 50}
_TINY: Request = {"picture": {"id": "logo"}, "width": 16, "opacity": 0.6}
_TEXTS: Sequence[tuple[str, Request, Request]] = (
    ("Inter 24", {"size": 24, "color": "ffffff"}, {}),
    ("Inter Black", {"size": 24, "color": "ffffff", "font": "Inter Black"}, {}),
    ("Noto Sans Italic", {"size": 24, "color": "ffffff", "font": "Noto Sans Italic"}, {}),
    ("letter_spacing 20%", {"size": 16, "color": "ffffff", "letter_spacing": "20%"}, {}),
    ("outline", {"size": 24, "color": "ffffff", "outline": {"width": 2, "color": "1b1464"}}, {}),
    ("shadow", {"size": 24, "color": "ffffff", "shadow": {"x": 2, "y": 2, "blur": 3, "color": "000000"}}, {}),
    (
        "background",
        {"size": 20, "color": "ffffff", "background": {"color": "ff3300", "padding": 6, "radius": 6}},
        {},
    ),
    ("rotation -20", {"size": 24, "color": "ffffff"}, {"rotation": -20}),
    ("blend overlay", {"size": 30, "color": "ffffff", "font": "Inter Black"}, {"blend": "overlay"}),
)
_LONG: Request = {
    "text": "Coffee in the morning, and a book in the evening light", "size": 16, "color": "ffffff",
    "font": "Inter Bold", "shadow": {"blur": 4, "color": "000000"},
}  # fmt: skip
_LINE: Request = {"kind": "line", "color": "ffffff"}
_HALF: Request = {"width": "60%", "height": "40%"}
_CARD: Sequence[Request] = (
    {"gradient": {"from": "00000000", "to": "e0000000"}},
    {"shape": {"kind": "ellipse", "color": "90ff3300"}, "width": "40%", "height": "60%", "gravity": "left"},
    {"gradient": {"from": "ffb199", "to": "ff3300", "angle": 90}, "width": "50%", "height": 8,
     "gravity": "bottom-left", "padding": 24},
    {"picture": {"id": "logo"}, "width": "16%", "gravity": "top-right", "padding": 24, "blend": "screen"},
    {"text": {"text": "Autumn in the mountains", "font": "Inter Bold", "size": "13%", "color": "ffffff"},
     "width": "60%", "gravity": "bottom-left", "x": 24, "y": 44},
    {"picture": {"id": "logo"}, "width": "12%", "gravity": "bottom-right", "padding": 24, "rotation": -15},
)  # fmt: skip
_SIDES = ("top-left", "top", "top-right", "right", "bottom-right", "bottom", "bottom-left", "left")
AMOUNTS = [{"value": value} for value in (5, 15, 30, 60, 100)]
DUOTONES = (("ffffff", "000000"), ("ffd9a0", "1b1464"), ("ffb199", "003b46"), ("e8ff8b", "3d0c45"))

STRIPS: dict[str, Strip] = {
    **{
        f"gallery.{name}": Strip(item.source, [(item.caption, item.request)])
        for name, item in GALLERY.items()
    },
    "first": Strip(
        "portrait.jpg",
        [
            ("portrait.jpg\n400 x 512", {"resize": {"height": 176}}),
            (
                "avatar.webp\n176 x 176",
                {
                    "crop": {"mode": "face"},
                    "resize": {"width": 176, "height": 176, "mode": "fit"},
                    "mask": {"shape": "ellipse"},
                },
            ),
        ],
    ),
    "gallery": Strip(
        "portrait.jpg",
        [
            (
                "temperature 70\nvignette 70",
                {
                    "adjust": {"temperature": 70, "contrast": 12},
                    "filter": {"vignette": {"value": 70, "radius": 35}},
                },
            ),
            ("duotone", {"filter": {"duotone": {"light": "ffe2b8", "dark": "120a52"}}}),
            ("halftone 40", {"filter": {"halftone": {"value": 40}}}),
            ("blur 30, gaussian", {"filter": {"blur": {"mode": "gaussian", "value": 30}}}),
            ("monochrome\n4fa3ff", {"filter": {"monochrome": {"color": "4fa3ff", "value": 60}}}),
            (
                "watermark\nborder, rounded",
                {
                    "watermark": {"id": "logo", "gravity": "bottom-right", "padding": 12, "width": 72},
                    "border": {"size": 10, "color": "2a2440", "radius": 32},
                },
            ),
        ],
        {"resize": {"width": 296, "height": 296, "mode": "fit", "gravity": "top"}},
    ),
    "gallery.coffee": Strip(
        "coffee.heic",
        [
            ("crop, smart", {}),
            ("isolate b5322a", {"filter": {"isolate": {"color": "b5322a", "threshold": 0.08}}}),
            ("pixellate 15", {"filter": {"pixellate": {"value": 15}}}),
            (
                "sepia 80\nmask, rounded",
                {"filter": {"sepia": {"value": 80}}, "mask": {"shape": "rounded", "radius": 48}},
            ),
        ],
        {"resize": {"width": 296, "height": 296, "mode": "fit", "gravity": "smart"}},
    ),
    "gallery.day": Strip(
        "day.gif",
        [
            ("GIF to WebP\nkeeps moving", {}),
            (
                "duotone\nmask, ellipse",
                {"filter": {"duotone": {"light": "ffb199", "dark": "13113c"}}, "mask": {"shape": "ellipse"}},
            ),
        ],
        {"resize": {"width": 160, "height": 160, "mode": "fit"}},
    ),
    "order": _phases(
        "portrait.jpg",
        {
            "rotate": {"angle": -8},
            "crop": {"mode": "face", "padding": 0.8},
            "resize": {"width": 120, "height": 120, "mode": "fit"},
            "adjust": {"exposure": 20, "saturation": -40},
            "filter": {"vignette": {"value": 70, "radius": 30}},
            "mask": {"shape": "rounded", "radius": 24},
            "padding": {"size": 6, "background": "ffd9a0"},
            "border": {"size": 2, "color": "1b1464"},
            "watermark": {"id": "logo", "gravity": "bottom-right", "padding": 12, "width": 36},
        },
    ),
    "alpha": Strip(
        "emblem.png",
        [
            ("converted to png", {"output": {"format": "png"}}),
            ("converted to jpg", {"output": {"format": "jpg"}}),
            (
                "jpg, with\nbackground ffd9a0",
                {"output": {"format": "jpg", "background": "ffd9a0"}},
            ),
            ("opacity 0.3", {"adjust": {"opacity": 0.3}}),
            ("pixellate 60", {"filter": {"pixellate": {"value": 60}}}),
        ],
        {"resize": {"width": 120}},
    ),
    "trim": Strip(
        "framed",
        [("the original", {}), *_varied("trim", [{"threshold": 10}])],
    ),
    **_parameters(
        "trim",
        "framed",
        {},
        {
            "threshold": ({}, [10, 30]),
            "color": ({"threshold": 10}, ["ffd9a0", "e8c890"]),
            "symmetric": ({"threshold": 30}, None),
        },
    ),
    "flip": Strip(
        "portrait.jpg",
        _varied("flip", [{"horizontal": False}, {"horizontal": True}, {"vertical": True}]),
        PORTRAIT,
    ),
    "rotate": Strip("emblem.png", _varied("rotate", [{"angle": x} for x in (-20, 20, 45, 90)]), SMALL),
    **_parameters(
        "rotate", "emblem.png", SMALL, {"background": ({"angle": 20}, ["ffd9a0", "1b1464", "80ffb199"])}
    ),
    "redact": Strip(
        "portrait.jpg",
        [
            (_listed(value), {"redact": [value]})
            for value in (
                {"faces": True, "mode": "color"},
                {"faces": True, "mode": "color", "color": "ffb199"},
                {"faces": True, "mode": "pixels"},
                {"faces": True, "mode": "blur"},
                {"x": "55%", "y": 0, "width": "45%", "height": "60%", "mode": "pixels"},
            )
        ],
        PORTRAIT,
    ),
    "crop": Strip(
        "portrait.jpg",
        _varied(
            "crop",
            [
                {"mode": "rect", "width": 300, "height": 300, "gravity": "top"},
                {"mode": "ratio", "ratio": "1:1", "gravity": "top"},
                {"mode": "face"},
                {"mode": "smart", "width": 300, "height": 300},
            ],
        ),
        {"resize": {"width": 160}},
    ),
    **_parameters(
        "crop",
        "portrait.jpg",
        {"resize": {"width": 110}},
        {
            "gravity": ({"width": 220, "height": 220}, [*_SIDES, "center", "face", "smart"]),
            "focus_x": ({"width": 220, "height": 220, "gravity": "focus", "focus_y": 0.3}, [0, 0.4, 0.5, 1]),
            "focus_y": ({"width": 220, "height": 220, "gravity": "focus", "focus_x": 0.5}, [0, 0.4, 0.6, 1]),
            "offset_x": ({"width": 220, "height": 220, "gravity": "left"}, [0, 60, 120]),
            "offset_y": ({"width": 220, "height": 220}, [-90, 0, 60]),
            "x": ({"width": 220, "height": 220, "y": 0}, [0, 60, 120, 180]),
            "y": ({"width": 220, "height": 220, "x": 60}, [0, 60, 120, 180]),
            "ratio": ({"mode": "ratio", "gravity": "top"}, ["1:1", "4:3", "16:9", "2:3", "9:16"]),
            "padding": ({"mode": "face"}, [0, 0.5, 1, 2, 5]),
        },
    ),
    **_parameters("crop", "two", {"resize": {"height": 130}}, {"faces": ({"mode": "face"}, None)}),
    "resize": Strip(
        "portrait.jpg",
        [
            (_listed({"mode": name, **more}), {"resize": {"width": 150, "height": 100, "mode": name, **more}})
            for name, more in (
                ("auto", {}),
                ("fit", {"gravity": "face"}),
                ("fill", {"background": "ffd9a0"}),
                ("stretch", {}),
            )
        ],
        title="mode, with width 150, height 100",
    ),
    **_parameters(
        "resize",
        "portrait.jpg",
        {},
        {
            "width": ({}, [40, 80, 160]),
            "height": ({}, [50, 100, 200]),
            "min_width": ({"width": 120, "height": 90}, [80, 120, 160]),
            "min_height": ({"width": 120, "height": 60}, [60, 80, 120]),
            "gravity": (
                {"width": 120, "height": 90, "mode": "fit"},
                ["top", "center", "bottom", "face", "smart"],
            ),
            "focus_x": (
                {"width": 60, "height": 120, "mode": "fit", "gravity": "focus", "focus_y": 0.5},
                [0, 0.4, 0.6, 1],
            ),
            "focus_y": (
                {"width": 120, "height": 60, "mode": "fit", "gravity": "focus", "focus_x": 0.5},
                [0, 0.3, 0.6, 1],
            ),
            "offset_x": (
                {"width": 150, "height": 100, "mode": "fill", "gravity": "left", "background": "ffd9a0"},
                [0, 20, 70],
            ),
            "offset_y": ({"width": 120, "height": 60, "mode": "fit", "gravity": "top"}, [0, 20, 40]),
            "background": (
                {"width": 150, "height": 100, "mode": "fill"},
                ["ffffff", "ffd9a0", "1b1464", "80ffb199"],
            ),
        },
    ),
    **_parameters(
        "resize",
        "portrait.jpg",
        {"crop": {"mode": "face"}},
        {"upscale": ({"width": 300}, None)},
    ),
    "scale": Strip("coffee.heic", _varied("scale", [{"size": size} for size in (0.05, 0.1, 0.2, 0.3)])),
    **_parameters("scale", "coffee.heic", {}, {"ratio": ({"size": 0.2}, [0.5, 1, 1.5])}),
    "auto": Strip(
        "dark.png", _varied("auto", [{"enhance": False}, {"enhance": True}]), {"resize": {"width": 240}}
    ),
    "mask": Strip(
        "portrait.jpg", _varied("mask", [{"shape": "ellipse"}, {"shape": "rounded", "radius": 24}]), PORTRAIT
    ),
    **_parameters(
        "mask",
        "portrait.jpg",
        PORTRAIT,
        {
            "radius": ({"shape": "rounded"}, [0, 8, 16, 32, 64]),
            "background": ({"shape": "ellipse"}, ["ffffff", "ffd9a0", "1b1464", "80ffb199"]),
        },
    ),
    "canvas": Strip(
        "portrait.jpg",
        _varied(
            "canvas",
            [
                {"width": 180, "height": 180, "background": "ffd9a0"},
                {"ratio": "16:9", "background": "ffd9a0"},
                {"height": 160, "gravity": "top", "background": "ffd9a0"},
            ],
        ),
        PORTRAIT,
    ),
    **_parameters(
        "canvas",
        "emblem.png",
        {"resize": {"width": 60}},
        {
            "width": ({"background": "ffd9a0"}, [80, 120, 160]),
            "height": ({"background": "ffd9a0"}, [80, 100, 120]),
            "ratio": ({"background": "ffd9a0"}, ["4:3", "16:9", "2:3"]),
            "gravity": ({"width": 100, "height": 100, "background": "ffd9a0"}, [*_SIDES, "center"]),
            "offset_x": ({"width": 120, "gravity": "left", "background": "ffd9a0"}, [0, 10, 60]),
            "offset_y": ({"height": 120, "gravity": "bottom", "background": "ffd9a0"}, [0, 10, 60]),
            "background": ({"ratio": "2:1"}, ["ffffff", "ffd9a0", "1b1464", "80ffb199"]),
        },
    ),
    "padding": Strip(
        "portrait.jpg",
        _varied(
            "padding",
            [
                {"size": 20, "background": "ffd9a0"},
                {"top": 20, "bottom": 20, "background": "ffd9a0"},
                {"left": 40, "right": 10, "background": "ffd9a0"},
                {"size": 10, "right": 40, "background": "1b1464"},
            ],
        ),
        PORTRAIT,
    ),
    "background": Strip(
        "portrait.jpg",
        [
            (_listed(value), {"background": value})
            for value in (
                {"kind": "blur"},
                {"kind": "average"},
                {"kind": "gradient", "from": "ffd9a0", "to": "1b1464"},
                {"kind": "color", "color": "ffd9a0"},
            )
        ],
        {"resize": {"height": 120}, "canvas": {"ratio": "4:3"}},
    ),
    **_parameters(
        "background",
        "portrait.jpg",
        {"resize": {"height": 120}, "canvas": {"ratio": "4:3"}},
        {
            "amount": ({"kind": "blur"}, [0, 10, 40, 100]),
            "angle": ({"kind": "gradient", "from": "ffd9a0", "to": "1b1464"}, [0, 90, 135]),
            "radial": ({"kind": "gradient", "from": "ffd9a0", "to": "1b1464"}, None),
        },
    ),
    "border": Strip("portrait.jpg", _varied("border", [{"size": size} for size in (1, 4, 16)]), PORTRAIT),
    **_parameters(
        "border",
        "portrait.jpg",
        PORTRAIT,
        {
            "color": ({"size": 8}, ["000000", "ffb199", "1b1464", "80003b46"]),
            "radius": ({"size": 8, "color": "1b1464"}, [0, 12, 24, 48]),
            "background": ({"size": 8, "color": "1b1464", "radius": 24}, ["ffffff", "ffd9a0", "80ffb199"]),
        },
    ),
    "watermark": Strip(
        "coffee.heic",
        [
            (_listed(value) or "no more", {"watermark": {"id": "logo", **value}})
            for value in (
                {"width": 48},
                {"width": 48, "gravity": "right", "padding": 8},
                {"width": 48, "x": 10, "y": 10},
                {"width": 48, "opacity": 0.4},
                {},
                {"fit": True},
            )
        ],
        SIX,
    ),
    **_parameters(
        "watermark",
        "coffee.heic",
        COFFEE,
        {
            "gravity": ({"id": "logo", "width": 40}, None),
            "padding": ({"id": "logo", "width": 40, "gravity": "top-left"}, [1, 8, 24]),
            "x": ({"id": "logo", "width": 40, "y": 20}, [-20, 0, 60, 140]),
            "y": ({"id": "logo", "width": 40, "x": 60}, [-20, 0, 40, 90]),
            "opacity": ({"id": "logo", "width": 80}, None),
            "scale": ({"id": "logo"}, [0.1, 0.2, 0.3, 0.4]),
            "width": ({"id": "logo"}, [20, 40, 80]),
            "height": ({"id": "logo"}, [20, 40, 80]),
            "fit": ({"id": "logo"}, None),
        },
    ),
    "layers": Strip("coffee.heic", [("six layers", {"layers": _CARD})], {"resize": {"width": 480}}),
    "layers.gravity": _layers(
        (f"gravity {gravity}\npadding 8", {**_DOT, "gravity": gravity, "padding": 8})
        for gravity in (*_SIDES, "center")
    ),
    "layers.x": _layers(
        (f"x {x}\ny {y}\ngravity {gravity or 'none'}", {**_DOT, "gravity": gravity, "x": x, "y": y})
        for gravity in (None, "bottom-right")
        for x, y in ((8, 8), (40, 8), ("50%", "25%"))
    ),
    "layers.blend": _layers(
        (mode, {**_RAMP, "blend": mode})
        for mode in imgsvc.params(imgsvc.Layer)["blend"].kind.schema()["enum"]
    ),
    "layers.rotation": _layers(
        [(f"rotation {angle}", {**_BADGE, "rotation": angle}) for angle in (0, 15, 90)]
        + [(f"opacity {opacity}", {**_BADGE, "opacity": opacity}) for opacity in (0.7, 0.3)]
    ),
    "layers.radius": _layers(
        [(f"radius {radius}", {**_SQUARE, "radius": radius}) for radius in (8, "50%")]
        + [
            (f"shadow, y {y}, blur {blur}", {**_SQUARE, "radius": 8, "shadow": {"y": y, "blur": blur}})
            for y, blur in ((4, 4), (6, 14))
        ]
        + [
            (
                f"repeat\nspacing {space}, stagger {stagger}",
                {**_TINY, "repeat": {"spacing": space, "stagger": stagger}},
            )
            for space, stagger in ((10, 0), (10, 0.5))
        ]
    ),
    "layers.text": _layers(
        (caption, {"text": {"text": "Autumn", **text}, **layer}) for caption, text, layer in _TEXTS
    ),
    "layers.text.lines": Strip(
        "coffee.heic",
        [
            (caption, {"layers": [{"text": {**_LONG, **text}, **layer}]})
            for caption, text, layer in (
                ("width 90%", {}, {"width": "90%"}),
                ("lines 2", {"lines": 2}, {"width": "90%"}),
                ("align center", {"align": "center"}, {"width": "90%"}),
                ("fit, height 30%", {"fit": True, "size": 60}, {"width": "90%", "height": "30%"}),
                ("line_height 1.6", {"line_height": 1.6, "lines": 3}, {"width": "90%"}),
            )
        ],
        COFFEE,
    ),
    "layers.shape": _layers(
        [
            (kind, {"shape": {"kind": kind, "color": "b0ff3300"}, **_HALF})
            for kind in ("rectangle", "ellipse", "line")
        ]
        + [
            (f"line, {side} 60%\nthickness 5", {"shape": {**_LINE, "thickness": 5}, side: "60%"})
            for side in ("width", "height")
        ]
    ),
    "layers.gradient": _layers(
        [
            (f"linear\nangle {angle}", {"gradient": {"from": "ff3300", "to": "003300ff", "angle": angle}})
            for angle in (180, 90, 45)
        ]
        + [("radial", {"gradient": {"kind": "radial", "from": "00000000", "to": "e0000000"}})]
    ),
    "output": Strip(
        "portrait.jpg",
        [
            (f"quality {quality}\n{{kilobytes}} kB", {"output": {"format": "webp", "quality": quality}})
            for quality in (95, 50, 20, 5)
        ],
        PORTRAIT,
    ),
    **_parameters(
        "output",
        "portrait.jpg",
        PORTRAIT,
        {
            "max_bytes": ({"format": "webp"}, [1400, 1800, 2600]),
            "colors": ({"format": "png"}, [2, 4, 16, 256]),
        },
    ),
    **_parameters(
        "output",
        "emblem.png",
        SMALL,
        {
            "flatten": ({"format": "png", "background": "ffd9a0"}, None),
            "background": ({"format": "jpg"}, ["FFFFFF", "ffd9a0"]),
        },
    ),
    **_adjustments(),
    "filter.isolate": _filters(
        "isolate",
        "coffee.heic",
        COFFEE,
        *[{"color": "b5322a", "threshold": x} for x in (0, 0.05, 0.1, 0.3, 0.6)],
        {"color": "c08a4a", "threshold": 0.1},
    ),
    "filter.monochrome": _filters(
        "monochrome",
        "coffee.heic",
        COFFEE,
        *[{"color": "4fa3ff", "value": value} for value in (10, 30, 60, 100)],
        *[{"color": color, "value": 60} for color in ("e0873c", "3f9b4f")],
    ),
    "filter.sepia": _filters("sepia", "coffee.heic", COFFEE, *AMOUNTS),
    "filter.duotone": _filters(
        "duotone", "portrait.jpg", PORTRAIT, *[{"light": light, "dark": dark} for light, dark in DUOTONES]
    ),
    "filter.blur": _filters(
        "blur",
        "portrait.jpg",
        {**PORTRAIT, **SIX},
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
