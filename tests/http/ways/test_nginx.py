"""nginx caches pictures in front of the service, with the configuration of the documentation."""

from __future__ import annotations

import getpass
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import attrs
import pytest

from imgsvc_urls import Signer
from tests.http.service_process import Service, running
from tests.http.ways.conftest import signer_for
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded, requires
from tests.support.servers import free_port
from tests.test_proxy_page import proxy

PAGE = (Path(__file__).parents[3] / "docs" / "howto" / "cdn.md").read_text(encoding="utf-8")
_SECONDS = 60  # machines that run tests may be busy


@attrs.frozen
class Front:
    """nginx, the service behind it, and what signs URLs for both."""

    service: Service
    signer: Signer

    def get(self, url: str, **headers: str) -> Message:
        """Return the headers of an answer, with ``Status`` for its status."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(url, headers=given)
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=_SECONDS) as answer:
                found, found["Status"] = answer.headers, str(answer.status)
        except urllib.error.HTTPError as error:
            found, found["Status"] = error.headers, str(error.code)
        return found

    def until(self, state: str, url: str, **headers: str) -> Message:
        """Get until the cache of nginx says so."""
        deadline = time.monotonic() + _SECONDS
        while (found := self.get(url, **headers))["X-Cache"] != state:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found

    @property
    def tls(self) -> ssl.SSLContext:
        return self.service.tls

    def answered(self, status: int) -> int:
        """How often the service has answered with a status, by its log."""
        log = (self.service.state.parent / f"{self.service.state.name}.log").read_text()
        return log.count(f"GET /1.0/image/{{path}} {status} ")

    def wait_for(self, status: int, times: int) -> None:
        """Wait until the service has answered with a status so often: it logs after it answers."""
        deadline = time.monotonic() + _SECONDS
        while self.answered(status) < times:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture(scope="module")
def front(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    nginx, folder = requires.program("nginx", "/usr/sbin/nginx"), tmp_path_factory.mktemp("nginx")
    with free_port() as port, free_port() as own:
        settings = {
            "server.port": own,
            "server.base_url": f"https://localhost:{port}",
            "server.trusted_proxies": "127.0.0.1/32",
            "delivery.origins": json.dumps({"photos": f"file://{photos}", "web": f"{web.url}/"}),
            "delivery.max_age": 2,
            "delivery.gateway_statuses": True,
            "cache.stale_seconds": 0,
            "cache.stale_error_seconds": 0,
            "fetch.private_allowed": "127.0.0.1",
        }
        with running(folder / "state", settings) as service:
            (folder / "nginx.conf").write_text(_configuration(folder, service, port, own))
            url = f"https://localhost:{port}"
            with proxy([nginx, "-c", folder / "nginx.conf"], f"{url}/1.0/image/", service.tls):
                yield Front(service, attrs.evolve(signer_for(service), base=url))


def _configuration(folder: Path, service: Service, port: int, own: int) -> str:
    block = re.search(r"```nginx\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    text = block[1]
    for old, new in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "img.example.org": "localhost",
        "/etc/ssl/pictures.pem": str(service.certificate),
        "/etc/ssl/pictures.key": str(service.state / "localhost.key"),
        "127.0.0.1:8443": f"127.0.0.1:{own}",
        "/var/cache/nginx/pictures": str(folder / "cache"),
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    return (
        f"daemon off; user {getpass.getuser()}; pid {folder}/nginx.pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off;\nclient_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n"
        f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n{text} }}"
    )


def test_hits_and_revalidation(front: Front) -> None:
    url = front.signer.url("photos/photo.jpg", resize="40x", format="webp")
    first = front.get(url)
    assert (first["Status"], first["X-Cache"], first["Content-Type"]) == ("200", "MISS", "image/webp")
    hit = front.until("HIT", url)
    assert (hit["ETag"], hit["Content-Length"]) == (first["ETag"], first["Content-Length"])
    again = front.until("REVALIDATED", url)
    assert (again["Status"], again["ETag"]) == ("200", first["ETag"])
    front.wait_for(304, times=1)


def test_each_format_is_cached_by_itself(front: Front) -> None:
    url = front.signer.url("photos/photo.jpg", resize="41x", format="auto")
    kinds = {"image/webp,*/*": "image/webp", "*/*": "image/jpeg"}
    for accept, kind in kinds.items():
        assert front.get(url, Accept=accept)["Content-Type"] == kind
    for accept, kind in kinds.items():
        hit = front.until("HIT", url, Accept=accept)
        assert (hit["Content-Type"], hit["Vary"]) == (kind, "Accept")


def test_errors_are_not_cached(front: Front) -> None:
    url = front.signer.url("photos/photo.jpg", resize="42x").replace("42x", "43x")
    before = front.answered(403)
    assert [front.get(url)["Status"] for _ in range(2)] == ["403", "403"]
    front.wait_for(403, times=before + 2)


def test_a_browser_that_has_the_picture_gets_304_from_nginx(front: Front) -> None:
    url = front.signer.url("photos/photo.jpg", resize="44x")
    etag = front.get(url)["ETag"]
    assert front.get(url, If_None_Match=etag)["Status"] == "304"


def test_what_nginx_kept_is_answered_while_the_source_fails(front: Front, web: WebOrigin) -> None:
    web.pages["/failing.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": "no-cache"})
    url = front.signer.url("web/failing.jpg", resize="28x")
    etag = front.until("HIT", url)["ETag"]
    web.pages["/failing.jpg"] = Page(status=500)
    stale = front.until("STALE", url)
    assert (stale["Status"], stale["ETag"]) == ("200", etag)
    front.wait_for(502, times=1)


def test_what_a_source_forbids_to_keep_nginx_does_not_keep(front: Front, web: WebOrigin) -> None:
    for directive in ("private", "no-store"):
        web.pages[f"/{directive}.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": directive})
        url = front.signer.url(f"web/{directive}.jpg", resize="28x")
        assert [front.get(url)["X-Cache"] for _ in range(2)] == ["MISS", "MISS"]
        assert web.log.count(f"200 /{directive}.jpg") == 2
