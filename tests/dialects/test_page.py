"""The pages about dialects name every option, part and filter."""

from __future__ import annotations

import re
from pathlib import Path

from imgsvc_urls.dialects.imagor.drawing import IMPOSSIBLE, Drawing
from imgsvc_urls.dialects.imgproxy.options import TABLE
from imgsvc_urls.dialects.imgproxy.pro import PRO
from imgsvc_urls.dialects.ipx.modifiers import ALIASES, MODIFIERS
from imgsvc_urls.dialects.thumbor.filters import FILTERS

DOCS = Path(__file__).parents[2] / "docs" / "howto"


def _named(page: str, section: str) -> set[str]:
    table = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return {re.split(r"[:(]", name)[0] for name in re.findall(r"`(.+?)`", table)}


def test_every_option_of_imgproxy_is_on_the_page() -> None:
    pro = {names[0] for names, _ in PRO}
    assert {names[0] for names, _ in TABLE} - pro | {"preset"} <= _named("dialects.md", "imgproxy")
    assert pro <= _named("imgproxy.md", "Options of imgproxy Pro")


def test_every_filter_of_thumbor_is_on_the_page() -> None:
    assert {*FILTERS, "trim", "meta", "debug", "smart"} <= _named("dialects.md", "thumbor")


def test_every_modifier_of_ipx_is_on_the_page() -> None:
    assert {*MODIFIERS, *ALIASES} <= _named("ipx.md", "Modifiers")


def test_every_filter_of_imagor_is_on_the_page() -> None:
    drawn = {name.removeprefix("_add_") for name in vars(Drawing) if name.startswith("_add_")}
    assert {*drawn, *IMPOSSIBLE, "meta", "smart"} <= _named("imagor.md", "Parts and filters")
