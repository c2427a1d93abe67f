"""Paths that say something wrong get a clear sentence for each mistake."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core import ImgsvcError, SpecError
from imgsvc_core.spec import parse as parse_request
from imgsvc_urls import Delivery, OriginSource, UrlSource, parse


def messages(text: str) -> list[str]:
    """What is wrong with a path."""
    with pytest.raises(SpecError) as caught:
        parse(text).spec()
    return [problem.message for problem in caught.value.problems]


def test_order_of_options_does_not_matter() -> None:
    first = parse("/resize:800x600/mode:fit/gravity:face/quality:70/dpr:2/photos/a.jpg")
    second = parse("/dpr:2/gravity:face/quality:70/mode:fit/resize:800x600/photos/a.jpg")
    assert first == second
    assert first.spec() == second.spec()


def test_values_are_percent_decoded_once() -> None:
    assert parse("/watermark:a%2Fb%253A/photos/a").options == {"watermark": "a/b%3A"}
    assert parse("/crop:16:9/photos/a").spec() == parse("/crop%3A16%3A9/photos/a").spec()


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("/plain/https%3A%2F%2Fexample.org%2Fa.jpg%3Fb", UrlSource("https://example.org/a.jpg?b")),
        ("/photos//a//b.jpg/", OriginSource("photos", "/a//b.jpg/")),
        ("/plain/https://example.org/a%20b.jpg", UrlSource("https://example.org/a b.jpg")),
        ("/b64/aHR0cHM6Ly9leGFtcGxlLm9yZy9hLmpwZw", UrlSource("https://example.org/a.jpg")),
        ("/b64/aHR0cHM6Ly9leGFtcGxlLm9yZy9hLmpwZw==", UrlSource("https://example.org/a.jpg")),
        ("/photos/2026/a:b%20c.jpg", OriginSource("photos", "2026/a:b c.jpg")),
        ("/photos/..a/b..", OriginSource("photos", "..a/b..")),
    ],
)
def test_sources(text: str, source: UrlSource | OriginSource) -> None:
    assert parse(text).source == source
    assert parse("/resize:8x" + text).source == source


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/resise:8x/photos/a", "There is no option 'resise'; did you mean 'resize'?"),
        ("/Resize:8x/photos/a", "There is no option 'Resize'; did you mean 'resize'?"),
        ("/resize:8x/resize:8x/photos/a", "Option 'resize' must be given once, got it 2 times"),
        ("/dpr:2/dpr:2/photos/a", "Option 'dpr' must be given once, got it 2 times"),
        ("/preset:a/preset:a/photos/a", "Preset 'a' must be given once, got it 2 times"),
        (
            "/resize:800/photos/a",
            "Option 'resize' must be a size such as 800x600, 800x or x600, got '800'",
        ),
        (
            "/quality:101/photos/a",
            "Output 'quality' parameter must be integer within 1 to 100 range, got 101",
        ),
        (
            "/quality:nan/photos/a",
            "Output 'quality' parameter must be integer within 1 to 100 range, got NaN",
        ),
        (
            "/mode:auto/photos/a",
            "Resize needs at least one of 'width', 'height', 'min_width' and 'min_height', got none",
        ),
        ("/dpr:5.1/photos/a", "URL 'dpr' parameter must be float within 0.1 to 5 range, got 5.1"),
        (
            "/expires:soon/photos/a",
            "URL 'expires' parameter must be integer within 0 to 253402300799 range, got \"soon\"",
        ),
        ("/download:yes/photos/a", "URL 'download' parameter must be boolean, true or false, got \"yes\""),
        (
            "/filename:..%2Fa/photos/a",
            "URL 'filename' parameter must be file name of 1 to 200 characters, without slashes, "
            'got "../a"',
        ),
        (
            "/preset:A%20b/photos/a",
            "The name of a preset must be 1 to 63 lower-case letters, digits, - and _, the first a letter "
            'or digit, got "A b"',
        ),
        ("/preset:card/photos/a", "There is no preset 'card'; none is defined"),
        ("/download/photos/a", "Option 'download' must be written download:value, got no value"),
        ("/resize%253A8x/photos/a", 'Options must be percent-encoded once, got "resize%253A8x"'),
        ("/watermark:%ff/photos/a", 'The URL must be percent-encoded UTF-8, got "watermark:%ff"'),
    ],
)
def test_wrong_options(text: str, message: str) -> None:
    assert messages(text) == [message]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "or the name of an origin and a path"),
        ("/", "or the name of an origin and a path"),
        ("/resize:8x", "or the name of an origin and a path"),
        ("/resize:8x/", "or the name of an origin and a path"),
        ("//photos/a", "or the name of an origin and a path"),
        ("/Photos/a", "or the name of an origin and a path"),
        ("/photos", "must be a path below the origin 'photos'"),
        ("/photos/", "must be a path below the origin 'photos'"),
        ("/photos//../a", "must be a path below the origin 'photos'"),
        ("/photos/../a", "must be a path below the origin 'photos'"),
        ("/photos/a/..", "must be a path below the origin 'photos'"),
        ("/photos/./a", "must be a path below the origin 'photos'"),
        ("/photos/%2e%2E/a", "must be a path below the origin 'photos'"),
        ("/photos/%252e%252e/a", "must be a path below the origin 'photos'"),
        ("/photos/a%252F..%252Fb", "must be a path below the origin 'photos'"),
        ("/photos/..%5Ca", "must be a path below the origin 'photos'"),
        ("/photos/a%00.jpg", "must be a path below the origin 'photos'"),
        ("/photos/a%0Ab", "must be a path below the origin 'photos'"),
        ("/photos/..%2Fa", "must have plain slashes below the origin 'photos'"),
        ("/photos/a%2fb", "must have plain slashes below the origin 'photos'"),
        ("/plain/", "must be a URL such as https://example.org/a.jpg"),
        ("/plain/a.jpg", "must be a URL such as https://example.org/a.jpg"),
        (
            "/plain/https%3A%2F%2Fa%0Ab",
            'must be a URL of Unicode text without control characters, got "https',
        ),
        ("/plain/https%253A%252F%252Fexample.org", "it is percent-encoded twice"),
        ("/b64/", "must be base64url of a URL in UTF-8 after b64/"),
        ("/b64/a+b", "must be base64url of a URL in UTF-8 after b64/"),
        ("/b64/a", "must be base64url of a URL in UTF-8 after b64/"),
        ("/b64/_w", "must be base64url of a URL in UTF-8 after b64/"),
        ("/b64/YS5qcGc", "must be a URL such as https://example.org/a.jpg"),
        ("/plain/https://example.org/a?b=c", "must be percent-encoded: write % as %25"),
        ("/photos/a#b", "must be percent-encoded: write % as %25"),
        ("/photos/ä", "must be percent-encoded: write % as %25"),
        ("/photos/a b", "must be percent-encoded: write % as %25"),
        ("/photos/100%", "must be percent-encoded: write % as %25"),
        ("/photos/%ff", "must be percent-encoded UTF-8"),
        ("/photos/" + "a/../" * 4000, "must be a path below the origin 'photos'"),
    ],
)
def test_wrong_sources_are_told_in_one_sentence(text: str, words: str) -> None:
    (message,) = messages(text)
    assert words in message
    assert len(message) < 300


def test_all_problems_are_told_at_once() -> None:
    assert messages("/resise:8x/dpr:9/preset:x/preset:x/Photos/a") == [
        "There is no option 'resise'; did you mean 'resize'?",
        "Preset 'x' must be given once, got it 2 times",
        "URL 'dpr' parameter must be float within 0.1 to 5 range, got 9",
        "The source of the URL must be plain/URL, b64/URL in base64url, or the name of an origin and a path, "
        'got "Photos"; names of origins are lower case, and not those of options',
    ]


def test_very_many_unknown_options_cost_little() -> None:
    text = "".join(f"/option{number}:x" for number in range(5000)) + "/photos/a"
    found = messages(text)
    assert len(found) == 5000
    assert sum("did you mean" in message for message in found) <= 3


@given(
    st.lists(
        st.sampled_from(["resize:8x", "plain", "b64", "photos", "..", "%2e", "%", "a:b", ""]) | st.text()
    )
)
def test_any_path_is_a_url_or_a_problem(segments: list[str]) -> None:
    try:
        found: object = parse("/" + "/".join(segments)).delivery
    except ImgsvcError as error:
        found = error
    assert isinstance(found, Delivery | SpecError)


def test_the_request_is_given_as_a_document_too() -> None:
    document = parse("/resize:800x/sepia:60/photos/a").request()
    assert document == {"resize": {"width": 800}, "filter": {"sepia": {"value": 60}}}
    assert parse("/resize:800x/sepia:60/photos/a").spec() == parse_request(document)


def test_libvips_is_not_needed() -> None:
    code = """if True:
        import sys
        for name in ("pyvips", "numpy", "PIL", "aiohttp"):
            sys.modules[name] = None  # importing it fails
        from imgsvc_urls import Signer, parse, verify
        signer = Signer("", "k1", "a secret of a signing key")
        path = signer.url("photos/a.jpg", resize="80x").removeprefix("/1.0/image")
        assert signer.picture("photos/a.jpg", alt="")
        print(parse(verify(path, {"k1": "a secret of a signing key"})).spec().resize.width)
    """
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "80\n"
