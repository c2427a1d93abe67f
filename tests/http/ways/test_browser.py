"""A real browser loads what pages ask for: the density and format that fit, and nothing twice."""

from __future__ import annotations

import base64
import hashlib
import io
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from PIL import Image

from imgsvc_urls import Signer
from tests.http.service_process import Service
from tests.http.ways.web_origin import Page, web_origin
from tests.support.browser import chromium

_WAIT_MS = 60_000  # machines that run tests may be busy


@attrs.frozen
class Loaded:
    """A picture that came over the network."""

    url: str
    content_type: str
    size: tuple[int, int]


@attrs.frozen
class Opened:
    """A page in the browser, and the pictures that were loaded for it."""

    page: Any
    loaded: list[Loaded]


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def browser(delivering: Service) -> Iterator[Any]:
    """Chromium, which trusts the certificate of the service."""
    trust = f"--ignore-certificate-errors-spki-list={_key_hash(delivering.certificate)}"
    with chromium(trust) as browser:
        yield browser


def _key_hash(file: Path) -> str:
    """The hash of a certificate's public key, as Chromium wants it."""
    key = x509.load_pem_x509_certificate(file.read_bytes()).public_key()
    data = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


@pytest.fixture
def show(browser: Any) -> Iterator[Open]:
    """Show a page with some HTML on a screen of some density."""
    contexts = []
    with web_origin() as site:

        def show(html: str, density: float) -> Opened:
            site.pages["/"] = Page(f"<!doctype html>{html}".encode(), {"Content-Type": "text/html"})
            context = browser.new_context(device_scale_factor=density, viewport={"width": 60, "height": 400})
            contexts.append(context)
            page, responses = context.new_page(), list[Any]()
            page.set_default_timeout(_WAIT_MS)
            page.on("response", lambda response: responses.append(response))
            page.goto(site.url, wait_until="load")
            page.wait_for_load_state("networkidle")
            return Opened(page, [_loaded(item) for item in responses if "/1.0/image/" in item.url])

        yield show
        for context in contexts:
            context.close()


def _loaded(response: Any) -> Loaded:
    with Image.open(io.BytesIO(response.body())) as picture:
        return Loaded(response.url, response.headers["content-type"], picture.size)


def _shown(opened: Opened) -> tuple[str, int]:
    """The URL that the browser chose for the picture, and its width in CSS pixels."""
    found = opened.page.evaluate(
        """() => { const image = document.querySelector("img");
        return [image.currentSrc, image.complete ? image.naturalWidth : 0]; }"""
    )
    return found[0], found[1]


def _requests(service: Service) -> int:
    """How many pictures were asked of the service, whose log has them in the order in which they ended."""
    log, probes = service.state.parent / f"{service.state.name}.log", "GET /healthz 200"
    before, deadline = log.read_text().count(probes), time.monotonic() + 60
    context = ssl.create_default_context(cafile=service.certificate)
    urllib.request.urlopen(f"{service.url}/healthz", context=context, timeout=60).close()
    while (text := log.read_text()).count(probes) == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return text.count("GET /1.0/image/")


@pytest.fixture
def at(delivering: Service, signer: Signer) -> Signer:
    return attrs.evolve(signer, base=delivering.url)


@pytest.mark.parametrize("density", [1, 2])
def test_a_picture_element_at_two_densities(
    show: Open, at: Signer, delivering: Service, density: int
) -> None:
    html = at.picture(
        "photos/photo.jpg", resize="30x", densities=(1, 2), formats=("avif", "webp", "jpg"), alt="A photo"
    )
    opened = show(html, density)
    url, width = _shown(opened)
    assert ("dpr:2" in url, width) == (density == 2, 30)
    assert opened.loaded == [Loaded(url, "image/avif", (30 * density, 20 * density))]
    asked = _requests(delivering)
    opened.page.reload(wait_until="load")
    assert _shown(opened) == (url, width)
    assert _requests(delivering) == asked


@pytest.mark.parametrize("density", [1, 2])
def test_srcset_at_two_densities(show: Open, at: Signer, delivering: Service, density: int) -> None:
    srcset = at.srcset("photos/photo.jpg", resize="30x", widths=(30, 60), format="webp")
    opened = show(f'<img srcset="{srcset}" sizes="30px" alt="A photo">', density)
    assert [item.size for item in opened.loaded] == [(30 * density, 20 * density)]
    asked = _requests(delivering)
    opened.page.reload(wait_until="load")
    assert _shown(opened)[1] == 30
    assert _requests(delivering) == asked


def test_the_browser_tells_which_formats_it_shows(show: Open, at: Signer) -> None:
    url = at.url("photos/photo.jpg", resize="31x", format="auto")
    opened = show(f'<img src="{url}" alt="A photo">', 1)
    assert [item.content_type for item in opened.loaded] == ["image/avif"]


def test_a_script_of_another_site_reads_a_picture_and_its_headers(show: Open, at: Signer) -> None:
    opened = show("<p>A page</p>", 1)
    url = at.url("photos/photo.jpg", resize="32x", dpr=2)
    found = opened.page.evaluate(
        """async url => {
            const response = await fetch(url, {headers: {"Range": "bytes=0-9"}});
            const body = await response.arrayBuffer();
            return [response.status, body.byteLength, response.headers.get("Content-DPR")];
        }""",
        url,
    )
    assert found == [206, 10, "2"]
