"""A web server of pictures, which counts what is asked of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs


@attrs.define
class Page:
    """What the server answers at a path, after some seconds, and not before it is released."""

    body: bytes = b""
    headers: Mapping[str, str] = attrs.field(factory=dict)
    status: int = 200
    seconds: float = 0
    released: threading.Event | None = None


@attrs.define
class WebOrigin:
    """Its URL, its pages by path, and what was asked: status and path, and the headers by path."""

    url: str = ""
    pages: dict[str, Page] = attrs.field(factory=dict)
    log: list[str] = attrs.field(factory=list)
    asked: dict[str, Mapping[str, str]] = attrs.field(factory=dict)


@contextlib.contextmanager
def web_origin() -> Iterator[WebOrigin]:
    origin = WebOrigin()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = origin.pages.get(self.path, Page(b"nothing here", status=404))
            etag = page.headers.get("ETag")
            status = 304 if etag is not None and self.headers["If-None-Match"] == etag else page.status
            origin.log.append(f"{status} {self.path}")
            origin.asked[self.path] = self.headers
            time.sleep(page.seconds)
            if page.released is not None:
                page.released.wait(60)
            self.send_response(status)
            for name, value in page.headers.items():
                self.send_header(name, value)
            body = b"" if status == 304 else page.body
            if "Content-Length" not in page.headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # of who did not wait
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
    origin.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield origin
    finally:
        server.shutdown()
        server.server_close()
