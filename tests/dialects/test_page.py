"""The page about dialects names every option, part and filter."""

from __future__ import annotations

import re
from pathlib import Path

from imgsvc_core.dialects.imgproxy.options import TABLE
from imgsvc_core.dialects.thumbor.filters import FILTERS

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "dialects.md").read_text(encoding="utf-8")


def _named(section: str) -> set[str]:
    table = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return {re.split(r"[:(]", name)[0] for name in re.findall(r"`(.+?)`", table)}


def test_every_option_of_imgproxy_is_on_the_page() -> None:
    assert {names[0] for names, _ in TABLE} | {"preset"} <= _named("imgproxy")


def test_every_filter_of_thumbor_is_on_the_page() -> None:
    assert {*FILTERS, "trim", "meta", "debug", "smart"} <= _named("thumbor")
