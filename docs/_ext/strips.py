"""Rows of small pictures that show what parameters do, rendered while the documentation is built."""

from __future__ import annotations

import functools
import html
import itertools
import sys
from pathlib import Path

from shown import PICTURES, PORTRAIT, STRIPS, Request, Strip

import imgsvc_core as imgsvc

FOLDER = Path(__file__).parents[1] / "_static" / "strips"


def figures(name: str) -> str:
    """Render a strip and return it as HTML; ``STATIC`` stands for the way to the folder of static files.

    Raises:
        ValueError: two neighbors are the same picture, which shows nothing.
    """
    strip = STRIPS[name]
    results = [_made(strip, request) for _, request in strip.shown]
    if any(left.data == right.data for left, right in itertools.pairwise(results)):
        raise ValueError(f"two neighbors in the strip {name} are the same picture")
    cells = [
        _figure(name, number, caption, result)
        for number, ((caption, _), result) in enumerate(zip(strip.shown, results, strict=True))
    ]
    title = f'<p class="strip-title">{html.escape(strip.title)}</p>\n' if strip.title else ""
    return f'{title}<div class="strip">\n' + "\n".join(cells) + "\n</div>"


def _made(strip: Strip, request: Request) -> imgsvc.Result:
    return imgsvc.process(
        _source(strip.source),
        {"output": {"format": "webp", "quality": 85}, **strip.always, **request},
        watermarks={"logo": PICTURES / "logo.svg"},
    )


def _figure(name: str, number: int, caption: str, result: imgsvc.Result) -> str:
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
    return _drawn(name) if name in _DRAWN else PICTURES / name


_TWO: Request = {
    "padding": {"right": 300},
    "watermark": {"id": "portrait", "x": 400, "y": 128, "width": 300},
}
_DRAWN: dict[str, Request] = {
    "dark.png": {"adjust": {"exposure": -55, "temperature": 35, "contrast": -20}, **PORTRAIT},
    "two": _TWO,
    "framed": {
        "resize": {"width": 120},
        "padding": {"top": 20, "right": 30, "bottom": 10, "left": 5, "background": "e8c890"},
        "border": {"size": 12, "color": "ffd9a0"},
    },
}


@functools.cache
def _drawn(name: str) -> bytes:
    """Return the portrait made too dark, twice side by side, or in two frames."""
    portrait = PICTURES / "portrait.jpg"
    request = {**_DRAWN[name], "output": {"format": "png"}}
    made = imgsvc.process(portrait, request, watermarks={"portrait": portrait})
    assert made.data is not None
    return made.data


if __name__ == "__main__":
    for name in STRIPS:
        figures(name)
    sys.exit()
