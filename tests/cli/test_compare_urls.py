"""``imgsvc compare-urls`` tells what two servers answer to the same URLs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from imgsvc_cli.app import run
from tests.support.photos import as_vips, coffee

PICTURE = as_vips(coffee()).thumbnail_image(90)
JPEG: bytes = PICTURE.jpegsave_buffer(Q=90)
OTHER_JPEG: bytes = PICTURE.jpegsave_buffer(Q=80)
PNG: bytes = PICTURE.pngsave_buffer()
MIRRORED: bytes = PICTURE.fliphor().jpegsave_buffer(Q=90)
SMALL: bytes = PICTURE.resize(0.5).jpegsave_buffer(Q=90)
ANSWERS: dict[str, bytes | int] = {
    "/old/same": JPEG, "/new/same": OTHER_JPEG,
    "/old/size": JPEG, "/new/size": SMALL,
    "/old/format": JPEG, "/new/format": PNG,
    "/old/looks": JPEG, "/new/looks": MIRRORED,
    "/old/refused": JPEG, "/new/refused": 422,
    "/old/neither": 404, "/new/neither": 404,
    "/old/only": 500, "/new/only": JPEG,
    "/old/damaged": JPEG, "/new/damaged": JPEG[: len(JPEG) // 2],
    "/old/text": JPEG, "/new/text": b"no picture",
    "/old/meta": b'{"a": 1, "b": [2]}', "/new/meta": b'{"b":[2],"a":1.0}',
    "/old/facts": b'{"width": 4}', "/new/facts": b'{"width": 5}',
    "/old/kind": b"[]", "/new/kind": b"no",
    "/old/film.mp4": b"film", "/new/film.mp4": b"FILM",
    "/old/long.mp4": b"film", "/new/long.mp4": b"longer",
    "/old/film.mp4?type=video/webm": b"film", "/new/film.mp4?type=video/webm": b"film",
    "/old/accept image/png": PNG, "/new/accept image/png": PNG,
}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    """Answers what the table tells."""

    def do_GET(self) -> None:
        accepted = f" {self.headers['Accept']}" if self.path.endswith("accept") else ""
        answer = ANSWERS.get(f"{self.path}{accepted}", 404)
        self.send_response(answer if isinstance(answer, int) else 200)
        if ".mp4" in self.path:
            other = self.path.startswith("/new") and self.path.partition("?type=")[2]
            self.send_header("Content-Type", other or "video/mp4")
        self.end_headers()
        if isinstance(answer, bytes):
            self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def compare(server: str, folder: Path, *lines: str, more: tuple[str, ...] = ()) -> int:
    (folder / "urls.txt").write_text("\n".join(lines))
    file = str(folder / "urls.txt")
    return run(["compare-urls", file, "--old", f"{server}/old/", "--new", f"{server}/new", *more])


def test_each_kind_of_difference_is_told(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("same", "size", "format", "looks", "refused", "neither", "only", "text", "damaged")
    assert compare(server, tmp_path, *(f"/{name}" for name in names), more=("--json",)) == 7
    found = {item["path"][1:]: item for item in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {name: item["verdict"] for name, item in found.items()} == {
        "same": "same", "size": "other size", "format": "other format", "looks": "looks different",
        "refused": "refused", "neither": "same", "only": "only new", "text": "refused",
        "damaged": "refused",
    }  # fmt: skip
    assert found["same"]["old"] == {"format": "jpg", "width": 90, "height": 60, "bytes": len(JPEG)}
    assert 0 < found["same"]["dssim"] < 0.1 < found["looks"]["dssim"]
    assert found["refused"]["new"] == {"problem": "422"}
    assert "damaged" in found["damaged"]["new"]["problem"]


def test_documents_are_compared_by_what_they_say(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("meta", "facts", "kind", "film.mp4", "long.mp4", "film.mp4?type=video/webm")
    assert compare(server, tmp_path, *(f"/{name}" for name in names), more=("--json",)) == 7
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [item["verdict"] for item in found] == [
        "same",
        *2 * ["other document"],
        "same",
        *2 * ["other document"],
    ]
    assert found[3]["new"].items() >= {"media_type": "video/mp4", "bytes": 4}.items()
    assert compare(server, tmp_path, "/film.mp4") == 0
    assert "video/mp4 4" in capsys.readouterr().out


def test_both_servers_are_told_what_is_accepted(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--json", "--accept", "image/png")
    assert compare(server, tmp_path, "/accept", more=more) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["old"]["format"], found["new"]["format"]) == ("png", "png")


def test_the_report_is_a_table(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(server, tmp_path, "# ours", "", f"{server}/old/same") == 0
    heading, row, counts = capsys.readouterr().out.splitlines()
    assert heading.split() == ["old", "new", "DSSIM", "verdict", "URL"]
    assert row.split()[:2] == ["90x60", "jpg"]
    assert row.endswith("same     /same")
    assert counts == "1 same"


def test_servers_that_do_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("http://127.0.0.1:1", tmp_path, "/same") == 0
    assert "refused" in capsys.readouterr().out


def test_servers_that_do_not_speak_http(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Other(StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(b"220 ready\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        assert compare(f"http://127.0.0.1:{server.server_address[1]}", tmp_path, "/same") == 0
        server.shutdown()
    assert "220 ready" in capsys.readouterr().out


def test_wrong_lines_and_addresses(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(server, tmp_path, "https://other.example/a") == 2
    assert "Each line must be a path" in capsys.readouterr().err
    assert compare("file:///etc", tmp_path, "/passwd") == 2
    assert "must begin with http" in capsys.readouterr().err
