"""Pictures of the kinds that encoders meet: photographs, drawings and screenshots.

The photographs are those of ``tests.support.photos``. Everything else is drawn here with Pillow and its own
font, so that every machine draws the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from tests.support import photos
from tests.support.photos import Pixels

_Color: TypeAlias = tuple[int, int, int]

_FINE = 4  # drawings are drawn this many times larger, then reduced: soft edges
_PALETTE: tuple[_Color, ...] = (
    (214, 39, 40), (31, 119, 180), (44, 160, 44), (255, 127, 14), (148, 103, 189), (23, 190, 207),
)  # fmt: skip
_WORDS = ("The", "ferry", "will", "leave", "at", "noon,", "before", "the", "tide", "turns", "east")
_CODE = (
    (("def ", "keyword"), ("thumbnail", "name"), ("(path: ", "plain"), ("Path", "type"), (") -> ", "plain"),
     ("bytes", "type"), (":", "plain")),
    (('    """Return a small WebP of the picture."""', "string"),),
    (("    spec", "plain"), (" = ", "operator"), ("parse", "name"), ('({"resize": {"width": ', "string"),
     ("320", "number"), ("}})", "string")),
    (("    # the decoder shrinks, so this is fast", "comment"),),
    (("    with ", "keyword"), ("open", "name"), ("(path, ", "plain"), ('"rb"', "string"), (") ", "plain"),
     ("as ", "keyword"), ("file:", "plain")),
    (("        return ", "keyword"), ("process", "name"), ("(file, spec).data", "plain")),
    (),
    (("for ", "keyword"), ("index ", "plain"), ("in ", "keyword"), ("range", "name"), ("(", "plain"),
     ("0", "number"), (", ", "plain"), ("4096", "number"), ("):", "plain")),
    (("    print", "name"), ('(f"frame {index} of {total}")', "string")),
)  # fmt: skip
_INKS: Mapping[str, _Color] = {
    "keyword": (255, 95, 135), "name": (97, 214, 255), "type": (120, 230, 120), "string": (255, 200, 90),
    "number": (190, 140, 255), "comment": (110, 120, 140), "plain": (230, 230, 230),
    "operator": (255, 120, 60),
}  # fmt: skip


def editor(width: int = 800, height: int = 600) -> Pixels:
    """A screenshot of program code: small colored text on a dark ground."""
    picture = Image.new("RGB", (width, height), (30, 32, 40))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(14)
    draw.rectangle((0, 0, 46, height), fill=(38, 40, 50))
    for line, top in enumerate(range(8, height - 16, 19)):
        draw.text((12, top), str(line + 1), (100, 105, 120), font)
        left = 56.0 + 9 * (line * 5 % 3)
        for text, ink in _CODE[line % len(_CODE)]:
            draw.text((left, top), text, _INKS[ink], font)
            left += draw.textlength(text, font)
    return np.asarray(picture).copy()


def page(width: int = 1000, height: int = 700) -> Pixels:
    """A screenshot of a web page: text, colored links and buttons, and a photograph among them."""
    picture = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(picture)
    small, large = ImageFont.load_default(13), ImageFont.load_default(30)
    draw.rectangle((0, 0, width, 56), fill=(22, 82, 160))
    draw.text((20, 12), "Harbor Gazette", "white", large)
    for index, title in enumerate(("News", "Weather", "Sport", "Shipping")):
        draw.text((width - 360 + 86 * index, 22), title, (255, 220, 80), small)
    photo = photos.as_vips(photos.coffee()).thumbnail_image(360).numpy()
    picture.paste(Image.fromarray(photo), (width - 390, 86))
    for row in range(32):
        left, top = 24.0, 90 + 17 * row
        limit = width - 410 if top < 86 + photo.shape[0] + 12 else width - 30
        for index in range(40):
            word = _WORDS[(index * 7 + row * 3) % len(_WORDS)] + " "
            length = draw.textlength(word, small)
            if left + length > limit:
                break
            ink = (200, 30, 30) if (index + row) % 11 == 0 else (20, 20, 20)
            draw.text((left, top), word, (0, 90, 200) if (index + row) % 9 == 0 else ink, small)
            left += length
    for index, title in enumerate(("Subscribe", "Share", "Report")):
        left = 24 + 130 * index
        draw.rounded_rectangle((left, height - 46, left + 112, height - 14), 8, fill=_PALETTE[index])
        draw.text((left + 18, height - 38), title, "white", small)
    return np.asarray(picture).copy()


def chart(width: int = 800, height: int = 500) -> Pixels:
    """A diagram with smooth colored curves, bars, a grid and labels, on white."""
    picture = Image.new("RGB", (width * _FINE, height * _FINE), "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(13 * _FINE)
    for line in range(11):
        top = _FINE * (30 + line * (height - 80) // 10)
        draw.line((50 * _FINE, top, (width - 20) * _FINE, top), (222, 222, 222), _FINE)
        draw.text((14 * _FINE, top - 8 * _FINE), str(100 - 10 * line), (60, 60, 60), font)
    for bar in range(24):
        left = 60 + bar * (width - 90) // 24
        top = height - 50 - int((height - 100) * (0.2 + 0.15 * math.sin(bar * 1.7) + 0.01 * bar))
        box = (left * _FINE, top * _FINE, (left + 16) * _FINE, (height - 50) * _FINE)
        draw.rectangle(box, fill=(200, 214, 235))
    for index, color in enumerate(_PALETTE):
        points = [
            (x * _FINE, _FINE * (height / 2 + 0.3 * height * math.sin(x / (60 + 17 * index) + index)))
            for x in range(55, width - 20, 3)
        ]
        draw.line(points, color, 2 * _FINE, joint="curve")
        draw.text((_FINE * (60 + 110 * index), _FINE * (height - 36)), f"series {index + 1}", color, font)
    return np.asarray(picture.reduce(_FINE)).copy()


def poster(width: int = 800, height: int = 800) -> Pixels:
    """An illustration of flat saturated shapes with soft edges and a smooth gradient."""
    side = (width * _FINE // 2, height * _FINE // 2)
    sky = np.linspace((255, 200, 120), (70, 60, 140), side[1])[:, None].repeat(side[0], axis=1)
    picture = Image.fromarray(np.rint(sky).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    unit = side[0] / 100
    for index, color in enumerate(_PALETTE):
        middle, radius = (18 * unit * index, (30 + 9 * (index % 3)) * unit), (14 - index) * unit
        x, y = middle
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)
        hill = [(x - 25 * unit, side[1]), (x, (58 + 4 * index) * unit), (x + 30 * unit, side[1])]
        draw.polygon(hill, fill=_PALETTE[index - 3])
    draw.text((8 * unit, 80 * unit), "Summer Fair", "white", ImageFont.load_default(14 * unit))
    return np.asarray(picture.reduce(_FINE // 2)).copy()


def emblem(side: int = 512) -> Pixels:
    """A logo with transparency: RGBA."""
    picture = Image.new("RGBA", (side * _FINE, side * _FINE), (0, 0, 0, 0))
    draw = ImageDraw.Draw(picture)
    unit = side * _FINE / 100
    draw.ellipse((5 * unit, 5 * unit, 95 * unit, 95 * unit), fill=(18, 94, 138))
    draw.ellipse((15 * unit, 15 * unit, 85 * unit, 85 * unit), fill=(250, 250, 245))
    draw.polygon([(50 * unit, 20 * unit), (75 * unit, 70 * unit), (25 * unit, 70 * unit)], fill=(222, 60, 40))
    draw.text((33 * unit, 44 * unit), "ACME", (18, 94, 138), ImageFont.load_default(13 * unit))
    return np.asarray(picture.reduce(_FINE)).copy()


def few_colors(width: int = 640, height: int = 480) -> Pixels:
    """A map in sixteen colors without soft edges, as indexed files hold them."""
    rows, columns = np.mgrid[0:height, 0:width]
    waves = sum(np.sin(columns / (31 + 7 * i) + i) * np.cos(rows / (23 + 9 * i) - i) for i in range(5))
    levels = np.clip((waves + 3) * 2.6, 0, 15).astype(np.uint8)
    colors = np.array([(20 + 15 * i, 90 + 10 * i % 140, 220 - 13 * i) for i in range(16)], np.uint8)
    return colors[levels]


def _photo(name: str) -> Callable[[], Pixels]:
    return lambda: photos.photo(name)


KINDS: Mapping[str, Mapping[str, Callable[[], Pixels]]] = {
    "photographs": {name: _photo(name) for name in photos.COLOR},
    "drawings": {"chart": chart, "poster": poster, "map": few_colors},
    "screenshots": {"editor": editor, "page": page},
}
