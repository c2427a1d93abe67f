"""Pictures of all kinds that encoders meet, of at most .4 megapixels: photographs and drawings.

The photographs are those of the wheels of scikit-image and scikit-learn, whose documentation tells the origin
and the license of each. Everything else is drawn by code. Nothing is downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyvips
from PIL import Image, ImageDraw, ImageFont
from tests.support import photos
from tests.support.photos import Pixels

from benchmarks import kinds

LONGEST_SIDE = 640
_INKS = ((214, 39, 40), (31, 119, 180), (44, 160, 44), (255, 127, 14), (148, 103, 189), (20, 20, 20))
_LINES = (
    "The ferry leaves at noon, before the tide turns.", "Tickets: 14.50 each way, children under six free.",
    "Dogs travel on the upper deck only.", "In case of fog, ask at the harbor office (gate 3).",
)  # fmt: skip
_SPRITE = ("..1111..", ".122221.", "12322321", "12222221", "14222241", ".142241.", "..1441..", ".11..11.")
_SPRITE_INKS = ((92, 148, 252), (40, 20, 30), (232, 88, 40), (255, 255, 255), (252, 188, 60))


def stored(name: str, package: str = "skimage", folder: str = "data") -> Pixels:
    """Return a picture that a wheel carries, reduced to the longest side of the corpus."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("The photographs come with scikit-image and scikit-learn.")
    return _reduced(pyvips.Image.new_from_file(str(Path(spec.origin).parent / folder / name)))


def _reduced(image: pyvips.Image) -> Pixels:
    if max(image.width, image.height) > LONGEST_SIDE:
        image = image.thumbnail_image(LONGEST_SIDE)
    return photos.as_pixels(image)


def _part(name: str, left: int, top: int, side: int) -> Pixels:
    return photos.photo(name)[top : top + side, left : left + side]


def _terminal() -> Pixels:
    picture = Image.new("RGB", (640, 400), (12, 12, 12))
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(13)
    for row in range(22):
        draw.text((8, 6 + 17 * row), "user@host:~$", (22, 198, 12), font)
        draw.text((104, 6 + 17 * row), _LINES[row % 4], (204, 204, 204) if row % 3 else (249, 241, 165), font)
    return np.asarray(picture)


def _dialog() -> Pixels:
    picture = Image.new("RGB", (560, 400), (240, 240, 240))
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(14)
    draw.rectangle((0, 0, 560, 34), fill=(0, 120, 215))
    draw.text((12, 9), "Settings", "white", font)
    for row in range(6):
        top = 56 + 46 * row
        draw.text((24, top + 6), f"Option {row + 1}", (30, 30, 30), font)
        draw.rounded_rectangle((160, top, 530, top + 30), 4, fill="white", outline=(160, 160, 160))
        draw.text((170, top + 7), _LINES[row % 4], (70, 70, 70), font)
    for index, word in enumerate(("OK", "Cancel")):
        draw.rounded_rectangle((330 + 105 * index, 350, 425 + 105 * index, 384), 6, fill=_INKS[1 - index])
        draw.text((352 + 105 * index, 359), word, "white", font)
    return np.asarray(picture)


def _table() -> Pixels:
    picture = Image.new("RGB", (640, 420), "white")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(12)
    for row in range(21):
        if row % 2:
            draw.rectangle((0, 20 * row, 640, 20 * row + 20), fill=(235, 242, 250))
        for column in range(8):
            value = 1000 * math.sin(row * 8 + column)
            draw.text(
                (80 * column + 12, 20 * row + 3), f"{value:9.2f}", "red" if value < 0 else "black", font
            )
    for line in range(1, 8):
        draw.line((80 * line, 0, 80 * line, 420), (200, 200, 200))
    return np.asarray(picture)


def _text(ground: tuple[int, int, int], inks: tuple[tuple[int, int, int], ...], size: int) -> Pixels:
    picture = Image.new("RGB", (600, 400), ground)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size)
    for row in range(400 // (size + 6)):
        draw.text((12, 6 + row * (size + 6)), _LINES[row % 4], inks[row % len(inks)], font)
    return np.asarray(picture)


def _curves(smooth: int, inks: tuple[tuple[int, int, int], ...] = ((0, 0, 0),)) -> Pixels:
    """Return line art: a rosette of thin lines."""
    side = 480 * smooth
    picture = Image.new("RGB", (side, side), "white")
    draw = ImageDraw.Draw(picture)
    for ring in range(9):
        turns = np.linspace(0, 2 * np.pi, 900)
        radius = side * (0.08 + 0.04 * ring) * (1 + 0.18 * np.sin((ring + 3) * turns))
        points = np.stack([side / 2 + radius * np.cos(turns), side / 2 + radius * np.sin(turns)], 1)
        draw.line([tuple(point) for point in points.tolist()], inks[ring % len(inks)], smooth + (smooth > 1))
    return np.asarray(picture.reduce(smooth) if smooth > 1 else picture)


def _hatching() -> Pixels:
    rows, columns = np.mgrid[0:420, 0:560].astype(float)
    shade = 0.5 + 0.5 * np.sin(columns / 90) * np.cos(rows / 70)
    strokes = 0.5 + 0.5 * np.sin((columns + rows) * 1.1)
    gray = np.clip((strokes - shade) * 3 + 0.5, 0, 1)
    return np.repeat(np.rint(255 * gray).astype(np.uint8)[..., None], 3, axis=2)


def _sprites(factor: int) -> Pixels:
    sprite = np.array([["." if ink == "." else ink for ink in row] for row in _SPRITE])
    levels = np.where(sprite == ".", "0", sprite).astype(np.uint8)
    cells = [[np.roll(levels, row + column, axis=1) for column in range(8)] for row in range(6)]
    ground = np.array(_SPRITE_INKS, np.uint8)[np.block(cells)]
    return ground.repeat(factor, axis=0).repeat(factor, axis=1)


def _tiles() -> Pixels:
    """Return a landscape of pixel art: bands of dithered color in 24 colors."""
    rows, columns = np.mgrid[0:90, 0:120]
    height = 45 + 14 * np.sin(columns / 17) + 7 * np.sin(columns / 5.3)
    dither = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])[rows % 4, columns % 4]
    sky = np.clip((rows + dither / 8) // 8, 0, 11)
    land = 12 + np.clip((rows - height + dither / 4) // 5, 0, 11)
    levels = np.where(rows < height, sky, land).astype(int)
    inks = [(70 + 14 * i, 110 + 11 * i, 230 + 2 * i) for i in range(12)]
    inks += [(40 + 9 * i, 160 - 9 * i, 60 - 3 * i) for i in range(12)]
    return np.array(inks, np.uint8)[levels].repeat(5, axis=0).repeat(5, axis=1)


def _gradient(first: tuple[int, int, int], last: tuple[int, int, int], *, radial: bool = False) -> Pixels:
    rows, columns = np.mgrid[0:400, 0:600]
    place = np.hypot(columns - 300, rows - 200) / 361 if radial else (rows + columns) / 998
    colors = np.array(first) + place[..., None] * (np.array(last) - np.array(first))
    return np.rint(colors).astype(np.uint8)


def _mesh() -> Pixels:
    rows, columns = np.mgrid[0:400, 0:600].astype(float)
    waves = [np.sin(columns / 110 + shift) * np.cos(rows / 90 - 2 * shift) for shift in (0.0, 1.3, 2.9)]
    return np.rint(127.5 + 110 * np.stack(waves, axis=-1)).astype(np.uint8)


def _glow() -> Pixels:
    """Return a colored light that fades out: RGBA."""
    rows, columns = np.mgrid[0:360, 0:480]
    distance = np.hypot(columns - 240, rows - 180) / 180
    alpha = np.rint(255 * np.clip(1 - distance, 0, 1) ** 1.5).astype(np.uint8)
    return np.dstack([_gradient((255, 240, 120), (250, 60, 20), radial=True)[20:380, 60:540], alpha])


def _label() -> Pixels:
    """Return text on a transparent ground: RGBA."""
    picture = Image.new("RGBA", (600, 200), (0, 0, 0, 0))
    draw = ImageDraw.Draw(picture)
    draw.rounded_rectangle((10, 10, 590, 190), 30, fill=(20, 60, 120, 160))
    draw.text((50, 40), "Harbor Fair", (255, 255, 255, 255), ImageFont.load_default(70))
    draw.text((52, 130), _LINES[1], (255, 214, 90, 255), ImageFont.load_default(20))
    return np.asarray(picture)


def _flag() -> Pixels:
    rows, columns = np.mgrid[0:400, 0:600]
    inks = np.array([(0, 82, 147), (255, 255, 255), (206, 17, 38)], np.uint8)
    pixels = inks[columns // 200]
    pixels[np.hypot(columns - 300, rows - 200) < 70] = (254, 204, 0)
    return pixels


CORPUS: Mapping[str, Mapping[str, Callable[[], Pixels]]] = {
    "photographs": {
        **{name: partial(stored, file) for name, file in {
            "cat": "chelsea.png", "coffee": "coffee.png", "rocket": "rocket.jpg", "retina": "retina.jpg",
            "galaxies": "hubble_deep_field.jpg", "motorcycle": "motorcycle_left.png", "tissue": "ihc.png",
        }.items()},
        "flower": partial(stored, "flower.jpg", "sklearn", "datasets/images"),
        "temple": partial(stored, "china.jpg", "sklearn", "datasets/images"),
    },
    "portraits": {
        "astronaut": partial(stored, "astronaut.png"),
        "head": partial(_part, "astronaut", 96, 0, 256),
        "eyes of a cat": partial(_part, "cat", 60, 20, 256),
    },
    "graphics": {
        "chart": lambda: _reduced(photos.as_vips(kinds.chart())),
        "poster": partial(kinds.poster, 560, 560),
        "map": kinds.few_colors,
        "flag": _flag,
        "wheel": partial(photos.color_wheel, 480, 360),
    },
    "screenshots": {
        "editor": partial(kinds.editor, 640, 480), "page": partial(kinds.page, 800, 560),
        "terminal": _terminal, "dialog": _dialog, "table": _table,
    },
    "line art": {
        "rosette": partial(_curves, 4), "rough rosette": partial(_curves, 1),
        "colored rosette": partial(_curves, 4, _INKS), "hatching": _hatching,
    },
    "text": {
        "black on white": partial(_text, (255, 255, 255), ((0, 0, 0),), 15),
        "colored": partial(_text, (250, 246, 230), _INKS, 18),
        "light on dark": partial(_text, (24, 26, 36), ((230, 230, 230), (120, 200, 255)), 13),
        "scanned": partial(stored, "page.png"),
    },
    "pixel art": {
        "sprites": partial(_sprites, 8), "small sprites": partial(_sprites, 2), "landscape": _tiles,
    },
    "gradients": {
        "sky": partial(_gradient, (30, 60, 140), (255, 190, 140)),
        "spot": partial(_gradient, (255, 255, 240), (20, 10, 60), radial=True), "mesh": _mesh,
    },
    "alpha": {
        "cut-out": photos.cut_out, "emblem": partial(kinds.emblem, 400), "glow": _glow, "label": _label,
    },
    "gray": {
        name: partial(stored, f"{name}.png") for name in ("camera", "gravel", "moon", "coins", "clock_motion")
    },
}  # fmt: skip
"""Functions that make the pixels of each picture, by the kind and the name of it."""
