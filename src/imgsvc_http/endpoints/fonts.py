"""The fonts that texts may use, with samples of them."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import OrderedDict
from functools import cache
from http import HTTPStatus
from pathlib import Path

import attrs

from imgsvc_core import fonts
from imgsvc_http.answering.conditions import is_known
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.json_schema import FILE, path_parameter
from imgsvc_http.answering.responses import Response
from imgsvc_http.call import Call
from imgsvc_http.routing import Route
from imgsvc_http.workers.tasks import Sample

_NO_SOURCE = Path("/dev/null")
_MOST_SAMPLES = 500
_MOST_LETTERS = 8
_LATIN = "Hamburgefonts"
_WORDS = (
    "أبجد هوز", "Հայերեն", "বাংলা", "नमस्ते", "አማርኛ", "ქართული", "ગુજરાતી", "ਪੰਜਾਬੀ", "שלום", "ಕನ್ನಡ",
    "ខ្មែរ", "ລາວ", "മലയാളം", "မြန်မာ", "ଓଡ଼ିଆ", "සිංහල", "தமிழ்", "తెలుగు", "ไทย", "ひらがな 永國",
    "한국어", "🍂🎈🚲",
)  # fmt: skip
"""Words in the scripts of the world."""


@attrs.frozen(kw_only=True)
class Fonts:
    """The families that texts may name."""

    families: tuple[str, ...]


async def families(call: Call) -> Fonts:
    """Return the families of the fonts that texts may use."""
    return Fonts(families=tuple(sorted(fonts.catalog().families.values())))


async def sample(call: Call) -> Response:
    """Return a sample of a family in its own script, black on white. It is drawn once in a process."""
    family = fonts.catalog().families.get(call.request.match_info["family"].lower())
    if family is None:
        raise refusal("not_found", what="font family")
    data = _SAMPLES.get(family)
    if data is None:
        task = Sample(family=family, text=_sample_text(family), limits=call.services.settings.limits)
        workers = call.services.pipeline.workers
        data = (await workers.run(task, _NO_SOURCE, account=call.account)).data
        _SAMPLES[family] = data
        if len(_SAMPLES) > _MOST_SAMPLES:
            _SAMPLES.popitem(last=False)
    etag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"Cache-Control": "private, no-cache", "ETag": etag, "X-Content-Type-Options": "nosniff"}
    if is_known(call.request, etag):
        return Response(HTTPStatus.NOT_MODIFIED, headers, b"")
    return Response(HTTPStatus.OK, {**headers, "Content-Type": "image/png"}, data)


_SAMPLES: OrderedDict[str, bytes] = OrderedDict()
"""Samples by family. A process reads the fonts once, so they stay as they are."""


@cache
def _sample_text(family: str) -> str:
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


ROUTES = (
    Route(
        "GET",
        "/playground/fonts.json",
        families,
        "Fonts of texts",
        "Playground",
        answer=Fonts,
        scope="process",
    ),
    Route(
        "GET",
        "/playground/fonts/{family}",
        sample,
        "A sample of a font",
        "Playground",
        parameters=(path_parameter("family", "A family of fonts."),),
        replies={200: ("The sample.", {"image/png": FILE})},
        failures=(404,),
        scope="process",
        is_queued=True,
    ),
)
