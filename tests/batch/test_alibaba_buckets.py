"""Batches between buckets of Alibaba, at a stand-in that verifies signatures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
import pyvips

import imgsvc_batch
from imgsvc_batch import Event
from imgsvc_core.errors import SourceUnreachable
from tests.batch.pictures import SPEC
from tests.stores.servers import oss
from tests.support import encoded, requires

_KEY, _SECRET = "LTAIKEYOFTHEUSER", "canary/secret+of=the+user"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[oss.Server]:
    """A bucket with a hundred and fifty small pictures in a folder, which are several pages of a listing."""
    requires.module("ossfs")
    with oss.server(keys={_KEY: _SECRET}, buckets={"cats": False}, region="eu-central-1") as running:
        for number in range(150):
            running.objects["cats", f"in/{number % 3}/{number}.png"] = oss.Stored(encoded.png().data, {})
        configure(monkeypatch, key=_KEY, secret=_SECRET, endpoint=running.url)
        yield running


def configure(monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Give settings of fsspec to this process and those it starts."""
    for name, value in settings.items():
        monkeypatch.setenv(f"FSSPEC_OSS_{name.upper()}", value)
    monkeypatch.setitem(fsspec.config.conf, "oss", settings)


def test_from_bucket_to_bucket(server: oss.Server, tmp_path: Path) -> None:
    server.objects["cats", "in/broken.png"] = oss.Stored(b"broken", {})
    told: list[Event] = []
    options = {"manifest": tmp_path / "manifest.sqlite", "on_event": told.append, "workers": 2}
    summary = imgsvc_batch.run("oss://cats/in", "oss://cats/out", {"": SPEC}, **options)
    assert (summary.done, summary.failed) == (150, 1), told[:2]
    assert [event.error for event in told if event.outcome == "failed"] == ["unsupported_format"]
    made = {name: kept for (_, name), kept in server.objects.items() if name.startswith("out/")}
    assert len(made) == 150
    assert pyvips.Image.new_from_buffer(made["out/0/0.webp"].data, "").width == 24
    again = imgsvc_batch.run("oss://cats/in", "oss://cats/out", {"": SPEC}, **options)
    assert (again.done, again.skipped) == (0, 150)


def test_what_cannot_be_listed_is_told(
    server: oss.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, key=_KEY, secret="another", endpoint=server.url)
    with pytest.raises(SourceUnreachable, match="oss://cats/in"):
        imgsvc_batch.run("oss://cats/in", tmp_path / "out", {"": SPEC})
