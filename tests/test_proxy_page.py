"""The configurations of proxies in the documentation work as they stand, but for addresses and places."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import yaml

from imgsvc_http.endpoints.routes import ROUTES
from tests.http.calls import upload
from tests.http.service_process import Service, running
from tests.support import encoded, requires
from tests.support.servers import free_port

PAGE = (Path(__file__).parent.parent / "docs" / "howto" / "proxy.md").read_text(encoding="utf-8")


def block(label: str) -> str:
    """Return the fenced block of a tab."""
    found = re.search(rf":::\{{tab-item\}} {label}\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, label
    return found[1]


@contextlib.contextmanager
def behind(proxy_port: int, port: int, folder: Path) -> Iterator[Service]:
    """The service with the settings that the page names."""
    (networks,) = re.findall(r"trusted_proxies = \[(.+)\]", PAGE)
    settings = {
        "server.base_url": f"https://localhost:{proxy_port}",
        "server.port": port,
        "server.trusted_proxies": networks.replace('"', ""),
    }
    with running(folder / "state", settings) as service:
        yield service


@contextlib.contextmanager
def proxy(command: list[str | Path], url: str, tls: ssl.SSLContext) -> Iterator[None]:
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while not answers(url, tls):
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield
        finally:
            process.terminate()


def answers(url: str, tls: ssl.SSLContext) -> bool:
    try:
        urllib.request.urlopen(url, context=tls, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


async def check(service: Service, url: str) -> None:
    """An upload and its result pass, although the client forges headers."""
    forged = {"X-Forwarded-Proto": "http", "X-Forwarded-For": "203.0.113.7"}
    async with attrs.evolve(service, url=url).client(headers=forged) as client:
        reply = await upload(client, encoded.jpeg().data, {"resize": {"width": 20}})
        assert reply.status == 200
        assert reply.json["output"]["url"].startswith(f"{url}/")
        async with client.get(reply.json["output"]["url"]) as answer:
            assert answer.status == 200


def test_nginx(tmp_path: Path) -> None:
    nginx = requires.program("nginx", "/usr/sbin/nginx")
    with free_port() as port, free_port() as own, behind(port, own, tmp_path) as service:
        server = block("nginx")
        for old, new in {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "pictures.example.org": "localhost",
            "/etc/ssl/pictures.pem": str(service.certificate),
            "/etc/ssl/pictures.key": str(service.state / "localhost.key"),
            "127.0.0.1:8443": f"127.0.0.1:{own}",
        }.items():
            assert old in server, old
            server = server.replace(old, new)
        configuration = tmp_path / "nginx.conf"
        configuration.write_text(
            f"daemon off; user {getpass.getuser()}; pid {tmp_path}/nginx.pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off;\nclient_body_temp_path {tmp_path}/b; proxy_temp_path {tmp_path}/p;\n"
            f"fastcgi_temp_path {tmp_path}/f; uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;\n"
            f"{server} }}"
        )
        url = f"https://localhost:{port}"
        with proxy([nginx, "-c", configuration], f"{url}/healthz", service.tls):
            asyncio.run(check(service, url))


def test_caddy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caddy = requires.program("caddy")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    with free_port() as port, free_port() as own, behind(port, own, tmp_path) as service:
        site = block("Caddy")
        assert "pictures.example.org {" in site
        head = f"https://localhost:{port} {{\n    tls {service.certificate} {service.state / 'localhost.key'}"
        site = site.replace("pictures.example.org {", head)
        site = site.replace("127.0.0.1:8443", f"127.0.0.1:{own}")
        configuration = tmp_path / "Caddyfile"
        configuration.write_text(f"{{\n    admin off\n    auto_https disable_redirects\n}}\n{site}")
        url = f"https://localhost:{port}"
        command: list[str | Path] = [caddy, "run", "--adapter", "caddyfile", "--config", configuration]
        with proxy(command, f"{url}/healthz", service.tls):
            asyncio.run(check(service, url))


def test_the_parts_of_traefik_fit_together() -> None:
    parts = yaml.safe_load(block("Traefik"))["http"]
    (router,) = parts["routers"].values()
    service = parts["services"][router["service"]]["loadBalancer"]
    assert service["servers"] == [{"url": "http://127.0.0.1:8443"}]
    check = service["healthCheck"]
    assert check["path"] in {route.path for route in ROUTES}
    assert check["headers"] == {"X-Forwarded-Proto": "https"}
