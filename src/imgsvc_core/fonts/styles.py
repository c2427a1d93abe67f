"""Read a font as people write it: family, weight and style."""

from __future__ import annotations

from typing import NamedTuple

from imgsvc_core.fonts.catalog import Catalog

_WEIGHTS = {
    "thin": 100, "hairline": 100, "extralight": 200, "ultralight": 200, "light": 300, "regular": 400,
    "normal": 400, "book": 400, "medium": 500, "semibold": 600, "demibold": 600, "bold": 700,
    "extrabold": 800, "ultrabold": 800, "black": 900, "heavy": 900,
}  # fmt: skip
_SLANTS = ("italic", "oblique")
_USUAL = ("inter", "noto sans")
_PREFIXES = ("extra", "ultra", "semi", "demi")


class Font(NamedTuple):
    """A family, a weight from 1 to 1000, and whether it is italic."""

    family: str
    weight: int = 400
    italic: bool = False

    def __str__(self) -> str:
        return f"{self.family} {self.weight}{' Italic' * self.italic}"

    @classmethod
    def parse(cls, text: str | None, known: Catalog) -> Font | None:
        """Return a font of known families, or None if the family is not among them.

        >>> Font.parse("Inter Semi-Bold Italic", Catalog((), {"inter": "Inter"}, (), ()))
        Font(family='Inter', weight=600, italic=True)
        """
        if text is None:
            usual = next((known.families[name] for name in _USUAL if name in known.families), None)
            family = usual or next(iter(known.families.values()), None)
            return None if family is None else cls(family)
        words = text.split()
        weight, italic = 400, False
        for count in range(len(words), 0, -1):
            family = known.family(" ".join(words[:count]))
            if family is None:
                continue
            styles = " ".join(words[count:]).lower().replace("-", "")
            for prefix in _PREFIXES:
                styles = styles.replace(f"{prefix} ", prefix)
            for style in styles.split():
                if style in _SLANTS:
                    italic = True
                elif style in _WEIGHTS:
                    weight = _WEIGHTS[style]
                elif _is_weight(style):
                    weight = int(style)
                else:
                    return None
            return cls(family, weight, italic)
        return None


def _is_weight(text: str) -> bool:
    return len(text) <= 4 and text.isascii() and text.isdigit() and text[0] != "0" and int(text) <= 1000
