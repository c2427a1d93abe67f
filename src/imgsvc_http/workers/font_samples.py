"""Samples of the fonts that texts may use. To look for letters in a large font takes half a second."""

from __future__ import annotations

import unicodedata

import attrs

import imgsvc_core as imgsvc
from imgsvc_core import Limits, fonts
from imgsvc_core._runtime.tasks import TaskResult
from imgsvc_http.workers.tasks import plain_limits

_PAPER = b"""<svg xmlns="http://www.w3.org/2000/svg" width="480" height="56">
<path d="M0 0h480v56H0z" fill="#fff"/></svg>"""
_MOST_LETTERS = 8
_LATIN = "Hamburgefonts"
_WORDS = (
    "أبجد هوز", "Հայերեն", "বাংলা", "नमस्ते", "አማርኛ", "ქართული", "ગુજરાતી", "ਪੰਜਾਬੀ", "שלום", "ಕನ್ನಡ",
    "ខ្មែរ", "ລາວ", "മലയാളം", "မြန်မာ", "ଓଡ଼ିଆ", "සිංහල", "தமிழ்", "తెలుగు", "ไทย", "ひらがな 永國",
    "한국어", "🍂🎈🚲",
)  # fmt: skip
"""Words in the scripts of the world."""


@attrs.frozen(kw_only=True)
class FontSample:
    """Draw letters that a family of fonts has, black on white."""

    family: str
    limits: Limits = attrs.field(converter=plain_limits)

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return a PNG of the letters."""
        letters = _letters(self.family)
        text = {
            "text": letters,
            "font": self.family,
            "size": 30,
            "missing": "box",
            "lines": 1,
            "align": "left",
        }
        request = {
            "layers": [{"text": text, "gravity": "left", "width": "98%", "x": "1%"}],
            "output": {"format": "png", "colors": 16, "flatten": True},
        }
        drawn = imgsvc.process(_PAPER, request, limits=self.limits, digest=False, threads=threads)
        return TaskResult({}, drawn.data)


def _letters(family: str) -> str:
    """Return letters that a family has: Latin ones and those of another script, or its first ones."""
    ranges = fonts.catalog().ranges(family)

    def has(text: str) -> bool:
        letters = map(ord, text.replace(" ", ""))
        return all(any(first <= letter <= last for first, last in ranges) for letter in letters)

    words = [word for word in (_LATIN, *_WORDS) if has(word)][:2]
    return " ".join(words) or _first_letters(ranges)


def _first_letters(ranges: list[tuple[int, int]]) -> str:
    found = ""
    for first, last in ranges:
        letters = map(chr, range(first, min(last, first + _MOST_LETTERS) + 1))
        found += "".join(letter for letter in letters if unicodedata.category(letter)[0] in "LNPS")
    return found[:_MOST_LETTERS] or _LATIN
