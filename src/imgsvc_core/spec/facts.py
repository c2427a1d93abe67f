"""The facts of pixels that a request can ask for. Each class holds name, meaning and JSON Schema of one.

Everything that lists facts is made from these classes: the parameter ``output.facts``, its flag and its
option, the JSON Schema of answers, and the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict, get_args

FactName = Literal["blurhash", "thumbhash", "palette", "dominant", "lqip", "phash", "sharpness", "gray"]

MOST_COLORS = 6
"""Colors of a palette."""

MOST_LETTERS = 400
"""Characters of a data URI."""

_COLOR: Mapping[str, Any] = {"type": "string", "pattern": "^#[0-9a-f]{6}$"}


class Fact:
    """A fact of pixels.

    The first paragraph of a class's docstring says what it is, the others how it is computed. ``pixels`` is
    the function that computes it, as ``module:function`` in `imgsvc_core.pixels.facts`.
    """

    name: ClassVar[FactName]
    schema: ClassVar[Mapping[str, Any]]
    pixels: ClassVar[str]


class PaletteColor(TypedDict):
    """A color of a palette: ``#rrggbb``, and its share of the picture, as a part of 1."""

    color: str
    share: float


class Blurhash(Fact):
    """A blurred placeholder in 28 characters, which scripts decode.

    BlurHash (https://blurha.sh) of 4 x 3 components, or 3 x 4 if the picture is taller than wide.
    Transparent pixels lie on ``output.background``.
    """

    name = "blurhash"
    schema: ClassVar = {"type": "string", "pattern": "^[0-9A-Za-z#$%*+,.:;=?@^_{|}~\\[\\]-]{28}$"}
    pixels = "hashes:blurhash"


class Thumbhash(Fact):
    """A blurred placeholder with transparency and aspect ratio, as bytes in base64.

    ThumbHash (https://evanw.github.io/thumbhash/), at most 25 bytes. It is sharper than a BlurHash.
    """

    name = "thumbhash"
    schema: ClassVar = {"type": "string", "contentEncoding": "base64", "maxLength": 36}
    pixels = "hashes:thumbhash"


class Palette(Fact):
    """The main colors with their shares of the picture, the largest first.

    k-means in Oklab with at most 6 colors; shares are parts of 1, rounded to 3 digits. A pixel counts by its
    alpha, so the palette of an invisible picture is empty. Colors nearer than 0.06 in Oklab are one,
    and a group of less than 1 % belongs to the nearest. A color that most pixels of its group have is told
    exactly; any other is the mean of its group.
    """

    name = "palette"
    schema: ClassVar = {
        "type": "array",
        "maxItems": MOST_COLORS,
        "items": {
            "type": "object",
            "properties": {"color": _COLOR, "share": {"type": "number", "minimum": 0, "maximum": 1}},
            "required": ["color", "share"],
        },
    }
    pixels = "palette:palette"


class Dominant(Fact):
    """The color with the largest share: the first of the palette. Null if all pixels are invisible.

    It is the same as the first color of ``palette``.
    """

    name = "dominant"
    schema: ClassVar = {"anyOf": [_COLOR, {"type": "null"}]}
    pixels = "palette:dominant"


class Lqip(Fact):
    """A tiny picture as a data URI of at most 400 characters, for ``<img src>`` and CSS.

    A lossy WebP, with transparency. Its longer side has at most 24 pixels: as many as fit.
    """

    name = "lqip"
    schema: ClassVar = {"type": "string", "pattern": "^data:image/webp;base64,", "maxLength": MOST_LETTERS}
    pixels = "placeholder:lqip"


class Phash(Fact):
    """A perceptual hash of 64 bits in hexadecimal: similar pictures differ in few bits.

    A bit for each of the 8 x 8 lowest frequencies, row by row, which is 1 above their median. They come from
    the discrete cosine transform of 32 x 32 gray pixels, as in ``imagehash.phash``. Transparent pixels lie
    on ``output.background``.
    """

    name = "phash"
    schema: ClassVar = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
    pixels = "hashes:phash"


class Sharpness(Fact):
    """How much fine detail there is: 0 without any; a blurred photograph has a lower value than a sharp one.

    The variance of the Laplacian (4 neighbors, edges repeated) of luma (Rec. 601) from 0 to 255, in squared
    levels, as OpenCV users compute it to find blurred photographs. Transparent pixels lie on
    ``output.background``.
    """

    name = "sharpness"
    schema: ClassVar = {"type": "number", "minimum": 0}
    pixels = "measures:sharpness"


class Gray(Fact):
    """True if no pixel shows a color.

    Red, green and blue of each pixel differ by at most 4 of 255 levels, as after lossy encoding of a gray
    picture. Invisible pixels do not count.
    """

    name = "gray"
    schema: ClassVar = {"type": "boolean"}
    pixels = "measures:gray"


FACTS: Mapping[FactName, type[Fact]] = {fact.name: fact for fact in Fact.__subclasses__()}
"""All facts by name, in the order in which results have them."""

assert tuple(FACTS) == get_args(FactName)


def facts_schema() -> dict[str, Any]:
    """Return the JSON Schema of an object of facts.

    >>> facts_schema()["properties"]["gray"]["type"]
    'boolean'
    """
    properties = {
        name: {**fact.schema, "description": meaning(fact).partition("\n\n")[0]}
        for name, fact in FACTS.items()
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def meaning(fact: type[Fact]) -> str:
    """Return the docstring of a fact with a paragraph on each line."""
    from inspect import cleandoc

    paragraphs = cleandoc(fact.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
