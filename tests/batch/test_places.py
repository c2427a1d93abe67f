"""Sources and targets that have several names, or lie within others."""

from __future__ import annotations

import os
import shutil
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest

import imgsvc_batch
from imgsvc_batch import Event, Summary
from imgsvc_batch.inputs import find
from imgsvc_batch.places import is_remote, join, relative, split_pattern
from imgsvc_core.errors import SpecError
from tests.batch.pictures import SPEC, results
from tests.support import encoded, requires

pytestmark = pytest.mark.usefixtures("shared_fork_server")


def go(source: Path | str, target: Path | str, folder: Path, **options: Any) -> tuple[Summary, list[str]]:
    told: list[Event] = []
    manifest = folder / "manifest.sqlite"
    summary = imgsvc_batch.run(
        source, target, {"": SPEC}, workers=1, manifest=manifest, on_event=told.append, **options
    )
    return summary, sorted(event.key for event in told if event.outcome == "done")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "pictures.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("one.png", encoded.png().data)
        file.writestr("below/two.jpg", encoded.jpeg().data)
    return path


@pytest.mark.parametrize(
    ("within_archive", "expected"),
    [
        ("", ["below/two.jpg", "one.png"]),
        ("*.png", ["one.png"]),
        ("**/*.jpg", ["below/two.jpg"]),
        ("below", ["two.jpg"]),
        ("one.png", ["one.png"]),
    ],
)
def test_what_is_in_an_archive(
    within_archive: str, expected: list[str], archive: Path, tmp_path: Path
) -> None:
    summary, done = go(f"zip://{within_archive}::{archive}", tmp_path / "out", tmp_path)
    assert (summary.failed, done) == (0, expected)
    assert len(results(tmp_path / "out")) == len(expected)


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize(
    ("within_archive", "expected"),
    [
        ("", ["one.png", "below/two.jpg"]),
        ("*.png", ["one.png"]),
        ("**/*.jpg", ["below/two.jpg"]),
        ("below", ["two.jpg"]),
    ],
)
def test_names_in_an_archive_may_begin_with_a_dot(
    within_archive: str, expected: list[str], kind: str, tmp_path: Path
) -> None:
    """As those in archives of a whole folder do."""
    path = tmp_path / f"pictures.{kind}"
    if kind == "tar":
        (tmp_path / "all" / "below").mkdir(parents=True)
        for name in ("one.png", "below/two.jpg"):
            (tmp_path / "all" / name).write_bytes(b"picture")
        shutil.make_archive(str(tmp_path / "pictures"), "tar", tmp_path / "all")
    else:
        with zipfile.ZipFile(path, "w") as file:
            for name in ("./", "./one.png", "./below/", "./below/two.jpg"):
                file.writestr(name, b"" if name.endswith("/") else b"picture")
    assert sorted(item.key for item in find(f"{kind}://{within_archive}::{path}")) == sorted(expected)


def test_members_of_an_archive_are_compared_by_their_bytes(archive: Path, tmp_path: Path) -> None:
    """No time of change and no tag is known of them."""
    assert go(f"zip://::{archive}", tmp_path / "out", tmp_path)[1] == ["below/two.jpg", "one.png"]
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("one.png", encoded.gif().data)
        file.writestr("below/two.jpg", encoded.jpeg().data)
    assert go(f"zip://::{archive}", tmp_path / "out", tmp_path)[1] == ["one.png"]


@pytest.mark.parametrize(("source", "target"), [("", "local://"), ("local://", ""), ("local://", "local://")])
def test_results_below_their_source_are_no_inputs(source: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "outer").mkdir()
    for name in ("one.png", "out.png", "outer/one.png"):  # the last two only begin as the target
        (tmp_path / "in" / name).write_bytes(encoded.png().data)
    for done in (3, 0):
        summary = go(f"{source}{tmp_path}/in", f"{target}{tmp_path}/in/out", tmp_path)[0]
        assert (summary.total, summary.done) == (3, done)


class Asked(BaseHTTPRequestHandler):
    """Has a picture for those who sign."""

    def do_GET(self) -> None:
        data = encoded.png().data if self.path == "/one.png?sign=1" else b""
        self.send_response(200 if data else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_query_is_no_pattern(tmp_path: Path) -> None:
    requires.module("aiohttp")
    with ThreadingHTTPServer(("127.0.0.1", 0), Asked) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        summary, _ = go(f"http://127.0.0.1:{server.server_port}/one.png?sign=1", tmp_path / "out", tmp_path)
        server.shutdown()
    assert (summary.done, results(tmp_path / "out")) == (1, ["one.webp"])


class Listed(Asked):
    """A page with links to a picture for those who sign, and to itself in another order."""

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        page = b'<a href="one.png?sign=1">one.png</a> <a href="?C=N">Name</a>'
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(page)


def test_links_of_pages_are_known_without_their_queries(tmp_path: Path) -> None:
    requires.module("aiohttp")
    with ThreadingHTTPServer(("127.0.0.1", 0), Listed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        source = f"http://127.0.0.1:{server.server_port}/*"
        first, keys = go(source, tmp_path / "out", tmp_path)
        again, _ = go(source, tmp_path / "out", tmp_path, resume=True)
        server.shutdown()
    assert (first.total, keys, again.skipped) == (1, ["one.png"], 1)


def test_secrets_of_a_url_are_in_no_event_and_report_and_the_manifest_is_private(tmp_path: Path) -> None:
    requires.module("aiohttp")
    told: list[Event] = []
    paths = [tmp_path / "manifest.sqlite", tmp_path / "report.html"]
    with ThreadingHTTPServer(("127.0.0.1", 0), Asked) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        source = f"http://user:password@127.0.0.1:{server.server_port}/one.png?sign=1"
        imgsvc_batch.run(source, tmp_path, {"": SPEC}, workers=1, manifest=paths[0], on_event=told.append)
        with imgsvc_batch.Manifest(paths[0], reading=True) as kept:
            imgsvc_batch.write_report(kept, str(tmp_path), paths[1], workers=1)
        server.shutdown()
    assert [(event.key, event.outcome) for event in told] == [("one.png", "done")]
    assert not any(secret in paths[1].read_text() for secret in ("password", "sign=1"))
    assert paths[0].stat().st_mode & 0o77 == 0


def test_results_in_memory_may_go_above_their_source(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/above/below/one.png", encoded.png().data)
    assert go("memory://above/below", "memory://above", tmp_path)[1] == ["one.png"]
    assert store.exists("/above/one.webp")


def test_a_place_is_known_by_all_its_names(tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe("/named/one.png", encoded.png().data)
    source = tmp_path / "in [2026]"
    source.mkdir()
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "around").symlink_to(tmp_path)
    names: list[tuple[Path | str, Path | str]] = [
        ("memory://named", "memory:///named"),
        ("simplecache::memory://named/*.png", "memory://named/"),
        (source, tmp_path / "link"),
        (f"{tmp_path}/around/*.png", tmp_path),
        (f"{tmp_path}/*.png", f"{tmp_path}/./"),
        (source, f"local://{source}"),
    ]
    for one, other in names:
        with pytest.raises(SpecError, match="another folder than the source"):
            go(one, other, tmp_path)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("s3://one/a", "s3a://one/a/b/", "b"),
        ("s3://one/a", "simplecache::s3://one/a", ""),
        ("s3://one/a", "s3://one/ab", None),
        ("s3://one/a/b", "s3://one/a", None),
        ("s3://one", "memory://one/a", None),
        ("sftp://here/one", "sftp://there/one/a", None),
        ("zip://a::one.zip", "zip://a::two.zip", None),
        ("unknown://one", "unknown://one/a", "a"),
        ("/one", "/one/a/b", "a/b"),
        ("/", "/one", "one"),
    ],
)
def test_which_place_lies_in_which(outer: str, inner: str, expected: str | None) -> None:
    assert relative(outer, inner) == expected


@pytest.mark.parametrize(
    ("source", "base", "pattern", "found"),
    [
        ("s3://one/a/*/b.png", "s3://one/a", "*/b.png", "s3://one/a/c/b.png"),
        ("memory:///*.png", "memory:///", "*.png", "memory:///c/b.png"),
        ("zip://*.png::one.zip", "zip://::one.zip", "*.png", "zip://c/b.png::one.zip"),
        ("zip://a/**::one[1].zip", "zip://a::one[1].zip", "**", "zip://a/c/b.png::one[1].zip"),
        ("filecache::s3://one/*", "filecache::s3://one", "*", "filecache::s3://one/c/b.png"),
    ],
)
def test_patterns_in_urls(source: str, base: str, pattern: str, found: str) -> None:
    assert split_pattern(source) == (base, pattern)
    assert join(base, "c/b.png") == found


def test_results_that_are_taken_back_take_no_room(tmp_path: Path) -> None:
    """One of two variants cannot be written, and other inputs wait for another try."""
    target = tmp_path / "out"
    target.mkdir()
    (target / "b").write_text("where a folder would have to be")
    fs, source = fsspec.filesystem("memory"), f"memory://{tmp_path.name}/in"
    fs.pipe_file(f"{source}/one.png", encoded.png().data)
    summary = imgsvc_batch.run(
        source,
        target,
        {"a": SPEC, "b": SPEC},
        template="{variant}/{stem}.{format}",
        manifest=tmp_path / "manifest.sqlite",
    )
    assert (summary.done, summary.failed) == (0, 1)
    assert [path.name for path in target.rglob("*") if path.is_file()] == ["b"]


@pytest.mark.parametrize(
    ("place", "remote"),
    [
        ("/photos", False),
        ("zip://::/photos.zip", False),
        ("tar://a/*.jpg::file:///photos.tar", False),
        ("zip://::s3://bucket/photos.zip", True),
        ("s3://bucket/photos", True),
        ("memory://photos", True),
    ],
)
def test_archives_are_where_their_file_is(place: str, remote: bool) -> None:
    assert is_remote(place) == remote


def test_folders_in_which_nothing_can_match_are_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{a}/{b}/{c}.png" for a in ("x1", "x2", "y") for b in ("p", "q") for c in ("1", "2")]
    for name in ("0.png", "x1/0.png", *names):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    listed: list[str] = []
    scan = os.scandir

    def note(path: str) -> Any:
        listed.append(os.path.relpath(path, tmp_path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", note)
    for pattern, found, folders in (
        ("*.png", {"0.png"}, {"."}),
        ("x*/q/1.png", {"x1/q/1.png", "x2/q/1.png"}, {".", "x1", "x2", "x1/q", "x2/q"}),
        ("x?/*.png", {"x1/0.png"}, {".", "x1", "x2"}),
        ("?/**/2.png", {"y/p/2.png", "y/q/2.png"}, {".", "y", "y/p", "y/q"}),
    ):
        listed.clear()
        assert {item.key for item in find(f"{tmp_path}/{pattern}")} == found
        assert set(listed) == folders
    listed.clear()
    assert {item.key for item in find(f"{tmp_path}/**/q/1.png")} == {"x1/q/1.png", "x2/q/1.png", "y/q/1.png"}
