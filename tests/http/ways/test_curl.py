"""Pictures by URL as people try them in a shell: signed by the command, and got with curl."""

from __future__ import annotations

import os
import subprocess
from email import message_from_string
from email.message import Message
from pathlib import Path

from PIL import Image

from imgsvc_urls import Signer
from tests.http.service_process import Service
from tests.support import requires
from tests.support.commands import run_command


def _curl(service: Service, url: str, *arguments: str) -> tuple[int, Message]:
    """Status and headers of what curl gets."""
    command = [
        requires.program("curl"),
        "-s",
        "--path-as-is",
        "--cacert",
        str(service.certificate),
        "-D",
        "-",
    ]
    done = subprocess.run([*command, *arguments, url], check=True, capture_output=True, text=True)
    first, _, rest = done.stdout.partition("\n")
    return int(first.split()[1]), message_from_string(rest)


def _signed_by_command(service: Service, signer: Signer, *arguments: str) -> str:
    environment = os.environ | {"IMGSVC_SIGNING_SECRET": str(signer.secret)}
    command = ("url", "--base", service.url, "--key", str(signer.key_id))
    return run_command(*command, *arguments, environment=environment).strip()


def test_a_url_of_the_command_is_got_with_curl(delivering: Service, signer: Signer, tmp_path: Path) -> None:
    url = _signed_by_command(delivering, signer, "photos/photo.jpg", "--resize", "44x", "--format", "auto")
    webp = tmp_path / "a.webp"
    status, headers = _curl(delivering, url, "-H", "Accept: image/webp", "-o", str(webp))
    assert (status, headers["Content-Type"], headers["Vary"]) == (200, "image/webp", "Accept")
    with Image.open(webp) as picture:
        assert (picture.format, picture.size[0]) == ("WEBP", 44)
    status, again = _curl(
        delivering, url, "-H", "Accept: image/webp", "-H", f"If-None-Match: {headers['ETag']}"
    )
    assert (status, again["ETag"]) == (304, headers["ETag"])
    status, head = _curl(delivering, url, "-I", "-o", os.devnull, "-H", "Accept: image/webp")
    assert (status, head["Content-Length"]) == (200, str(webp.stat().st_size))
    status, part = _curl(delivering, url, "-r", "0-3", "-o", str(tmp_path / "part"))
    assert (status, part["Content-Length"]) == (206, "4")


def test_a_path_that_would_leave_its_origin(delivering: Service, signer: Signer, tmp_path: Path) -> None:
    url = signer.url("photos/photo.jpg")
    root = url.partition("/photos")[0]
    for path in ("/photos/../secret.jpg", "/photos/%2e%2e/secret.jpg", "/photos/..%2fsecret.jpg"):
        status, _ = _curl(delivering, f"{delivering.url}{root}{path}", "-o", str(tmp_path / "none"))
        assert status == 403  # its signature is that of another path
