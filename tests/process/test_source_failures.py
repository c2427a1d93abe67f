"""What is told of sources that cannot be read, and what may be one."""

from __future__ import annotations

import array
import contextlib
import ctypes
import http.server
import io
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import imgsvc_batch
import imgsvc_core as imgsvc
from tests.support import encoded

PASSWORD, TOKEN = "hidden", "SECRET"


@pytest.fixture(scope="module")
def photo() -> bytes:
    return encoded.png().data


@contextlib.contextmanager
def _answering(status: int, body: bytes) -> Iterator[str]:
    """A server of one answer; the address of a picture there, with a password and a token."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_HEAD = do_GET  # noqa: N815 - the name that the server looks for

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
    try:
        yield f"http://user:{PASSWORD}@127.0.0.1:{server.server_port}/photo.png?token={TOKEN}"
    finally:
        server.shutdown()
        server.server_close()


def _failure(source: object) -> str:
    with pytest.raises(imgsvc.SourceUnreachable) as caught:
        imgsvc.inspect(source)
    assert PASSWORD not in caught.value.message
    assert TOKEN not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("scheme", ["http://", f"https://user:{PASSWORD}@"])
@pytest.mark.parametrize("query", ["", f"?token={TOKEN}"])
def test_a_server_that_is_not_there_is_told_with_the_reason_alone(scheme: str, query: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    message = _failure(f"{scheme}127.0.0.1:{port}/a.jpg{query}")
    assert message.startswith(
        f"Source '{scheme.partition('user')[0]}127.0.0.1:{port}/a.jpg' cannot be read: Conn"
    )
    assert message.count("a.jpg") == 1


def test_what_a_server_answers_is_the_reason() -> None:
    with _answering(403, b"") as url:
        assert _failure(url).endswith("/photo.png' cannot be read: 403 Forbidden.")


def test_the_name_of_a_picture_is_without_its_query(photo: bytes) -> None:
    with _answering(200, photo) as url:
        assert imgsvc.inspect(url).name == "photo.png"


@pytest.mark.parametrize("url", ["memory://nowhere/a.png", "file:///nowhere/a.png", "file:///nowhere/a*.png"])
def test_what_is_not_there_is_told_in_words(url: str) -> None:
    assert _failure(url) == f"Source '{url}' cannot be read: No such file or directory."


def test_secrets_stay_untold_where_a_package_repeats_them_by_themselves() -> None:
    assert PASSWORD not in _failure(f"s3://user:{PASSWORD}@bucket/a.png")


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{PASSWORD}@127.0.0.1:9/a.png?token={TOKEN}",
        f"ftp://user:{PASSWORD}@127.0.0.1:9/a.png",
        f"nosuch://user:{PASSWORD}@host/a.png?token={TOKEN}",
        f"s3://user:{PASSWORD}@bucket/a.png",
    ],
)
def test_targets_keep_secrets_too(url: str, photo: bytes) -> None:
    with pytest.raises(imgsvc.TargetError, match=r"^Target '\w+://[\w.:]+/a.png' ") as caught:
        imgsvc.process(photo, None, url)
    assert PASSWORD not in caught.value.message
    assert TOKEN not in caught.value.message
    assert "Error" not in caught.value.message


def test_a_target_in_the_place_of_a_request_keeps_secrets_too(photo: bytes) -> None:
    with pytest.raises(imgsvc.SpecError, match=r"got 's3://bucket/a\.png'") as caught:
        imgsvc.process(photo, f"s3://user:{PASSWORD}@bucket/a.png?token={TOKEN}")  # type: ignore[call-overload]
    assert PASSWORD not in caught.value.message


def test_the_name_of_a_file_object_may_be_a_url(photo: bytes) -> None:
    """As those of smart_open are."""

    class Named(io.BytesIO):
        name = f"https://user:{PASSWORD}@example.org/photo.png?token={TOKEN}"

    assert imgsvc.inspect(Named(photo)).name == "photo.png"
    with pytest.raises(imgsvc.UnsupportedFormat, match=r"Source 'photo\.png' is no image"):
        imgsvc.inspect(Named(b"something else"))


def test_file_objects_may_give_any_bytes(photo: bytes) -> None:
    class Reusing(io.BytesIO):
        """Gives the same buffer again and again, filled anew."""

        kept = bytearray(1000)

        def read(self, size: int | None = -1) -> memoryview:  # type: ignore[override]
            return memoryview(self.kept)[: self.readinto(self.kept)]

    class Mutable(io.BytesIO):
        def read(self, size: int | None = -1) -> bytearray:  # type: ignore[override]
            return bytearray(super().read(size))

    expected = imgsvc.inspect(photo, digest=True).sha256
    assert imgsvc.inspect(Mutable(photo), digest=True).sha256 == expected
    assert imgsvc.inspect(Reusing(photo), digest=True).sha256 == expected


def test_buffers_may_have_any_layout(photo: bytes) -> None:
    doubled = bytes(value for value in photo for _ in range(2))
    even = photo + bytes(-len(photo) % 2)
    expected = imgsvc.inspect(photo, digest=True).sha256
    assert imgsvc.inspect(memoryview(doubled)[::2], digest=True).sha256 == expected
    assert imgsvc.inspect(memoryview(array.array("H", even))).width == imgsvc.inspect(photo).width
    of_c = (ctypes.c_uint16 * (len(even) // 2)).from_buffer_copy(even)  # its format is "<H"
    assert imgsvc.inspect(memoryview(of_c)).width == imgsvc.inspect(photo).width


def test_a_file_that_does_not_wait_is_refused_rather_than_cut_short(photo: bytes) -> None:
    receiving, sending = os.pipe()
    try:
        os.set_blocking(receiving, False)
        os.write(sending, photo[:1000])
        with open(receiving, "rb", buffering=0) as file:
            assert _failure(file) == "Source file must wait for its bytes, got a non-blocking one."
    finally:
        os.close(sending)


def test_limits_that_are_none_are_refused(photo: bytes) -> None:
    limits: Any = {"source_bytes": 10}
    for attempt in (
        lambda: imgsvc.process(photo, limits=limits),
        lambda: imgsvc.inspect(photo, limits=limits),
        lambda: imgsvc.explain({}, imgsvc.inspect(photo), limits=limits),
    ):
        with pytest.raises(imgsvc.SpecError, match="Limits must be a Limits object, such as"):
            attempt()


@pytest.mark.parametrize(
    "place", ["nosuch://user:{}@host/in?token={}", "http://user:{}@127.0.0.1:9/in/?token={}"]
)
def test_batches_keep_secrets_too(place: str, tmp_path: Path) -> None:
    with pytest.raises(imgsvc.SourceUnreachable, match=r"^Source '\w+://[\w.:]+/in/?' cannot be ") as caught:
        imgsvc_batch.run(place.format(PASSWORD, TOKEN), tmp_path / "out", {"": {}}, workers=1)
    assert PASSWORD not in caught.value.message
    assert TOKEN not in caught.value.message
