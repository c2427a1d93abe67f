"""Wildcards in beginnings of URLs never leave their place."""

from __future__ import annotations

import pytest

from imgsvc_urls.dialects.wildcards import climbs, url_pattern


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://example.org/", "https://example.org/a.jpg"),
        ("https://*.example.org/", "https://img.example.org/a.jpg"),
        ("https://*.example.org/", "https://a.b-c.example.org/a.jpg"),
        ("https://*/", "https://example.org:8443/a.jpg"),
        ("http*://example.org/", "https://example.org/a.jpg"),
        ("https://example.org/*/public/", "https://example.org/shop-1/public/a.jpg"),
        ("https://*.example.org/img-*/", "https://a.example.org/img-7/a.jpg"),
        ("s3://*/public/", "s3://bucket.1/public/a.jpg"),
        ("mine:*-", "mine:a-b"),
        ("https://example.org/a.b/", "https://example.org/a.b/c"),
    ],
)
def test_matches(pattern: str, url: str) -> None:
    assert url_pattern(pattern).match(url)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://example.org/", "https://exampleXorg/a.jpg"),
        ("https://example.org/", "xhttps://example.org/a.jpg"),
        ("https://*.example.org/", "https://example.org/a.jpg"),
        ("https://*.example.org/", "https://evil.net/.example.org/"),
        ("https://*.example.org/", "https://evil.net?.example.org/"),
        ("https://*.example.org/", "https://evil.net#.example.org/"),
        ("https://*.example.org/", "https://evil.net\\.example.org/"),
        ("https://*.example.org/", "https://evil.net:80.example.org/"),
        ("https://*.example.org/", "https://user@evil.net:80@.example.org/"),
        ("https://*.example.org/", "https://evil.net%2f.example.org/"),
        ("https://*.example.org/", "https://evil.net\uff0f.example.org/"),
        ("https://example.*/", "https://example.evil@evil.net/"),
        ("https://example.org/*/public/", "https://example.org/a/b/public/a.jpg"),
        ("https://example.org/*/public/", "https://example.org/a?/public/a.jpg"),
        ("https://example.org/*/public/", "https://example.org/a#/public/a.jpg"),
    ],
)
def test_crosses_nothing(pattern: str, url: str) -> None:
    assert not url_pattern(pattern).match(url)


def test_wildcards_are_groups_in_their_order() -> None:
    found = url_pattern("old*://*.x/*/").match("older://img.x/shoes/a.jpg")
    assert found is not None
    assert found.groups() == ("er", "img", "shoes")


@pytest.mark.parametrize(
    "path", ["../a", "a/../b", "a/..", "%2e%2e/a", "a/..%2fb", "%252e%252e%252fa", "..\\a"]
)
def test_climbing_is_found_however_it_is_encoded(path: str) -> None:
    assert climbs(f"https://example.org/{path}")


@pytest.mark.parametrize("path", ["a..b", "..a", "a/100%25.jpg", "a.../b"])
def test_dots_in_names_do_not_climb(path: str) -> None:
    assert not climbs(f"https://example.org/{path}")
