"""The page of the documentation's site that hosts show where no page is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import chromium

PAGE = Path(__file__).parent.parent / "docs" / "404.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/none.html", "/"),
        ("/howto/none.html", "/"),
        ("/imgsvc/none", "/imgsvc/"),
        ("/imgsvc/reference/http/none.html", "/imgsvc/"),
    ],
)
def test_links_lead_to_the_root_of_the_site_at_any_address(path: str, root: str, browser: Any) -> None:
    page = browser.new_page()
    html = PAGE.read_text(encoding="utf-8")
    page.route("**/*", lambda route: route.fulfill(status=404, content_type="text/html", body=html))
    page.goto(f"http://docs.example{path}")
    links = page.evaluate("[...document.links].map(link => link.pathname)")
    assert links == [f"{root}index.html", f"{root}search.html"]
