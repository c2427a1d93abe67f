"""Inputs and targets that a machine of strangers holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest

import imgsvc_batch
import imgsvc_core
from imgsvc_batch import Event, Summary
from imgsvc_core.errors import SourceError, SourceUnreachable, SpecError
from tests.batch.pictures import SPEC, fill, results
from tests.support import encoded, requires

pytestmark = pytest.mark.usefixtures("shared_fork_server")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    fill(tmp_path / "in", 3)
    return tmp_path / "in"


def go(source: Path | str, target: Path | str, **options: Any) -> tuple[Summary, dict[str, Event]]:
    told: list[Event] = []
    variants = options.pop("variants", {"": SPEC})
    summary = imgsvc_batch.run(source, target, variants, workers=1, on_event=told.append, **options)
    return summary, {event.key: event for event in told if event.outcome == "failed"}


def test_a_name_that_is_no_text(source: Path, tmp_path: Path) -> None:
    (source / os.fsdecode(b"caf\xe9.jpg")).write_bytes(encoded.jpeg().data)
    summary, failed = go(source, tmp_path / "out")
    assert (summary.done, summary.failed) == (3, 1)
    assert "not UTF-8" in failed["caf\\xe9.jpg"].message


def test_names_that_shells_fear(source: Path, tmp_path: Path) -> None:
    names = ["-rf.JPG", "two\nlines.jpg", "per%20cent & [brackets] {stem}.jpg", "日本.jpg", "'quotes'\".jpg"]
    for name in names:
        (source / name).write_bytes(encoded.jpeg().data)
    summary, failed = go(source, tmp_path / "out")
    assert (summary.done, failed) == (3 + len(names), {})
    assert {f"{name[:-4]}.webp" for name in names} <= set(results(tmp_path / "out"))


def test_a_folder_whose_name_looks_like_a_pattern(source: Path, tmp_path: Path) -> None:
    source.rename(tmp_path / "in [2026]")
    assert go(tmp_path / "in [2026]", tmp_path / "out")[0].done == 3


def test_pipes_and_sockets_are_no_pictures(source: Path, tmp_path: Path) -> None:
    os.mkfifo(source / "pipe.jpg")
    (source / "zero.jpg").symlink_to("/dev/zero")
    summary, failed = go(source, tmp_path / "out")
    assert (summary.done, summary.failed) == (3, 2)
    assert {event.message.rpartition(" is ")[2] for event in failed.values()} == {"no file."}


def test_a_link_to_a_folder_is_not_followed(source: Path, tmp_path: Path) -> None:
    (source / "loop").symlink_to(source)
    (source / "loop.jpg").symlink_to(source)
    assert go(source, tmp_path / "out")[0].total == 3


@pytest.mark.parametrize("pattern", ["", "/*", "/*.jpg"])
def test_a_link_that_leads_nowhere_hides_no_other(pattern: str, source: Path, tmp_path: Path) -> None:
    (source / "ring.jpg").symlink_to("ring.jpg")
    for number in range(20):
        (source / f"more{number}.jpg").write_bytes(encoded.jpeg().data)
    summary, failed = go(f"{source}{pattern}", tmp_path / "out")
    assert list(failed) == ["ring.jpg"]
    assert "symbolic links" in failed["ring.jpg"].message
    assert summary.done >= 20


def test_results_are_no_inputs(source: Path) -> None:
    with pytest.raises(SpecError, match="another folder"):
        go(source, f"{source}/")
    with pytest.raises(SpecError, match="another folder"):
        go(f"{source}/*.jpg", source)


def test_what_is_forbidden_is_told_for_each(source: Path, tmp_path: Path) -> None:
    setpriv = requires.program("setpriv")  # also root has to be let into a folder, then
    target = tmp_path / "out"
    (source / "secret").mkdir()
    (source / "secret" / "hidden.jpg").write_bytes(encoded.jpeg().data)
    (source / "secret").chmod(0)
    (source / "photo00001.png").chmod(0)
    (target / "sub").mkdir(parents=True)
    (target / "sub").chmod(0o500)
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(SPEC))
    command = [
        sys.executable,
        "-m",
        "imgsvc_cli",
        "batch",
        str(source),
        str(target),
        "--spec",
        str(spec),
        "--json",
    ]
    if os.geteuid() == 0:
        command = [setpriv, "--bounding-set=-all", "--inh-caps=-all", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    told = {
        event["key"]: (event["error"], event["message"])
        for event in events
        if event.get("outcome") == "failed"
    }
    assert {key: error for key, (error, _) in told.items()} == {
        "secret/": "source_unreachable",
        "photo00001.png": "source_unreachable",
        "sub/photo00000.jpg": "target_unwritable",
    }
    assert all("Permission denied" in message for _, message in told.values())
    assert results(target) == ["photo00002.webp"]


def test_watermarks_are_there_before_anything_begins(source: Path, tmp_path: Path) -> None:
    variants = {"": {**SPEC, "watermark": {"id": "logo"}}}
    with pytest.raises(SpecError, match="must be one of the given watermarks, got 'logo'"):
        go(source, tmp_path / "out", variants=variants)
    with pytest.raises(SourceUnreachable, match=r"logo\.png"):
        go(source, tmp_path / "out", variants=variants, watermarks={"logo": str(tmp_path / "logo.png")})
    for broken in (b"no picture", encoded.png().data[:-200]):
        (tmp_path / "logo.png").write_bytes(broken)
        with pytest.raises(SourceError, match=r"^Watermark 'logo': "):
            go(source, tmp_path / "out", variants=variants, watermarks={"logo": str(tmp_path / "logo.png")})
    assert not (tmp_path / "out").exists()
    (tmp_path / "logo.png").write_bytes(encoded.png().data)
    marked, _ = go(
        source, tmp_path / "out", variants=variants, watermarks={"logo": str(tmp_path / "logo.png")}
    )
    assert marked.done == 3
    (tmp_path / "logo.png").write_bytes(encoded.png_gray().data)
    again, _ = go(
        source, tmp_path / "out", variants=variants, watermarks={"logo": str(tmp_path / "logo.png")}
    )
    assert again.done == 3  # another mark is other work


def test_file_urls_are_plain_paths(tmp_path: Path) -> None:
    for folder, name in (("a%20b", "literal"), ("a b", "decoded")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.png").write_bytes(encoded.png().data)
    place = f"file://{tmp_path}/a%20b"
    with fsspec.open(f"{place}/literal.png", "rb") as file:  # as fsspec has it
        assert file.read() == encoded.png().data
    assert imgsvc_core.process(f"{place}/literal.png").output.format == "png"
    for source in (place, f"{place}/literal.png", f"{place}/*.png"):
        summary, _ = go(source, f"file://{tmp_path}/to%20here", force=True)
        assert summary.done == 1
    assert results(tmp_path / "to%20here") == ["literal.webp"]


class Refusing(BaseHTTPRequestHandler):
    """A store that does nothing for anybody."""

    def do_GET(self) -> None:
        self.send_response(409)  # which gcsfs logs with all its calls
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_libraries_do_not_write_what_they_raise(tmp_path: Path) -> None:
    requires.module("gcsfs")
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    command = ["batch", "gs://nowhere/in", str(tmp_path / "out"), "--spec", str(tmp_path / "spec.json")]
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        refused = {
            "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{server.server_port}",
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        }
        done = subprocess.run(
            [sys.executable, "-m", "imgsvc_cli", *command],
            capture_output=True, text=True, timeout=120, env=os.environ | refused,
        )  # fmt: skip
        server.shutdown()
    assert done.returncode
    said = [line for line in done.stderr.splitlines() if " failed, " not in line]  # but for the progress
    assert len(said) == 1, done.stderr
    assert said[0].startswith("imgsvc: Source 'gs://nowhere/in' cannot be listed")


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden"])
def test_variants_whose_names_would_leave_the_target(name: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="names without"):
        go(source, tmp_path / "out", variants={name: SPEC})
