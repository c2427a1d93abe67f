"""Facts about the URLs that were asked for last."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from imgsvc_http.cache import url_memory
from imgsvc_http.cache.url_memory import UrlMemory

pytestmark = pytest.mark.filterwarnings("ignore:Request.message is deprecated")


def request(path: str, **headers: str) -> web.Request:
    return make_mocked_request("GET", path, headers)


def test_a_url_is_known_by_the_headers_that_it_varies_by() -> None:
    known: UrlMemory[str] = UrlMemory()
    known.keep(request("/a", Accept="image/avif"), ("Accept",), "avif")
    known.keep(request("/a", Accept="image/webp"), ("Accept",), "webp")
    known.keep(request("/b"), (), "any")
    for _ in range(2):  # what was found is found again
        assert known.find(request("/a", Accept="image/avif")) == "avif"
        assert known.find(request("/a", Accept="image/webp")) == "webp"
        assert known.find(request("/a")) is None
        assert known.find(request("/b", Accept="image/webp")) == "any"
        assert known.find(request("/c")) is None


@pytest.mark.parametrize("vary", [(), ("Accept",)])
def test_what_was_used_longest_ago_is_forgotten(
    vary: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(url_memory, "_MOST", 2)
    known: UrlMemory[str] = UrlMemory()
    for path in ("/a", "/b"):
        known.keep(request(path), vary, path)
    known.find(request("/a"))
    known.keep(request("/c"), vary, "/c")
    assert [known.find(request(path)) for path in ("/a", "/b", "/c")] == ["/a", None, "/c"]


def test_long_urls_are_not_kept() -> None:
    known: UrlMemory[str] = UrlMemory()
    for length in (2000, 2001):
        known.keep(request("/" + "a" * (length - 1)), (), "kept")
    assert known.find(request("/" + "a" * 1999)) == "kept"
    assert known.find(request("/" + "a" * 2000)) is None
