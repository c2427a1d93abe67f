"""Batches from bucket to bucket, at a server that speaks S3."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec
import pytest
import pyvips

import imgsvc_batch
from imgsvc_batch import Event, Summary
from imgsvc_batch.inputs import PassedOver, find
from imgsvc_batch.results import check_path
from imgsvc_core import inspect
from imgsvc_core.errors import SourceUnreachable, TargetError
from imgsvc_core.sources.url_messages import reason_of
from tests.batch.pictures import SPEC
from tests.stores.s3_server import BUCKET, FOREIGN_BUCKET, S3Server
from tests.support import encoded, forked_python
from tests.support.photos import as_vips, coffee

pytestmark = pytest.mark.usefixtures("shared_fork_server")

PAGE = 1000  # objects that S3 lists at a time


@pytest.fixture(scope="module")
def worker_modules() -> Sequence[str]:
    return ("s3fs",)


@pytest.fixture
def server(s3_environment: S3Server) -> S3Server:
    return s3_environment


@pytest.fixture
def folder(server: S3Server, tmp_path: Path) -> str:
    """A folder of its own in the bucket, with three pictures."""
    name = re.sub(r"\W", "", tmp_path.name)
    for key, kind in {
        "a/one.jpg": encoded.jpeg(),
        "two.png": encoded.png(),
        "three.webp": encoded.webp(),
    }.items():
        put(server, f"{name}/in/{key}", kind.data)
    return name


def put(server: S3Server, key: str, data: bytes) -> None:
    server.client.put_object(Bucket=BUCKET, Key=key, Body=data)


def keys(server: S3Server, prefix: str) -> list[str]:
    found = server.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
    return [item["Key"].removeprefix(prefix) for item in found]


def go(folder: str, tmp_path: Path, *, source: str = "in", **options: Any) -> Summary:
    places = f"s3://{BUCKET}/{folder}/{source}", f"s3://{BUCKET}/{folder}/out"
    manifest = tmp_path / "manifest.sqlite"
    return imgsvc_batch.run(*places, {"": SPEC}, workers=1, manifest=manifest, **options)


def test_from_bucket_to_bucket(server: S3Server, folder: str, tmp_path: Path) -> None:
    summary = go(folder, tmp_path)
    assert (summary.done, summary.failed) == (3, 0)
    assert keys(server, f"{folder}/out/") == ["a/one.webp", "three.webp", "two.webp"]
    kept = server.read(f"{folder}/out/a/one.webp")
    assert kept is not None
    assert pyvips.Image.new_from_buffer(kept.data, "").width == 24
    assert kept.content_type == "image/webp"


def test_what_has_not_changed_is_known_by_its_etag(server: S3Server, folder: str, tmp_path: Path) -> None:
    go(folder, tmp_path)
    put(server, f"{folder}/in/two.png", encoded.png().data)  # again, with the same bytes and ETag
    put(server, f"{folder}/in/three.webp", encoded.webp_lossless().data)
    summary = go(folder, tmp_path)
    assert (summary.done, summary.skipped) == (1, 2)


def test_objects_of_others_stay(server: S3Server, folder: str, tmp_path: Path) -> None:
    put(server, f"{folder}/out/two.webp", b"precious")
    told: list[Event] = []
    summary = go(folder, tmp_path, on_event=told.append)
    assert (summary.done, summary.failed) == (2, 1)
    assert [event.error for event in told if event.outcome == "failed"] == ["name_collision"]
    assert server.client.get_object(Bucket=BUCKET, Key=f"{folder}/out/two.webp")["Body"].read() == b"precious"
    assert go(folder, tmp_path, overwrite=True).done == 1


def test_what_a_killed_batch_wrote_is_its_own(server: S3Server, folder: str, tmp_path: Path) -> None:
    """Though no manifest knows it: the same specs make the same objects, and other specs need leave."""
    go(folder, tmp_path)
    for file in tmp_path.glob("manifest*"):  # as if it was killed before it could remember anything
        file.unlink()
    summary = go(folder, tmp_path)
    assert (summary.done, summary.failed) == (3, 0)
    for file in tmp_path.glob("manifest*"):
        file.unlink()
    places = f"s3://{BUCKET}/{folder}/in", f"s3://{BUCKET}/{folder}/out"
    other = {"": {**SPEC, "resize": {"width": 30}}}
    options: dict[str, Any] = {"workers": 1, "manifest": tmp_path / "manifest.sqlite"}
    assert imgsvc_batch.run(*places, other, **options).failed == 3
    assert imgsvc_batch.run(*places, other, overwrite=True, **options).done == 3
    kept = server.read(f"{folder}/out/two.webp")
    assert kept is not None
    assert pyvips.Image.new_from_buffer(kept.data, "").width == 30


def test_variants_that_collide_leave_no_object(server: S3Server, folder: str, tmp_path: Path) -> None:
    put(server, f"{folder}/out/two-b.webp", b"precious")
    places = f"s3://{BUCKET}/{folder}/in/two.png", f"s3://{BUCKET}/{folder}/out"
    options: dict[str, Any] = {"workers": 1, "manifest": tmp_path / "manifest.sqlite"}
    assert imgsvc_batch.run(*places, {"a": SPEC, "b": SPEC}, **options).failed == 1
    assert keys(server, f"{folder}/out/") == ["two-b.webp"]


def test_names_that_collide_are_told_though_others_may_be_replaced(
    server: S3Server, folder: str, tmp_path: Path
) -> None:
    """Neither of the two counts as done where one may have been written over the other."""
    put(server, f"{folder}/in/two.gif", encoded.gif().data)
    summary = go(folder, tmp_path, overwrite=True, template="{stem}-{width}.{format}")
    assert (summary.failed, summary.total) == (1, 4)
    again = go(folder, tmp_path, overwrite=True, template="{stem}-{width}.{format}")
    assert (again.failed, again.skipped) == (1, 2)


def test_another_source_does_not_take_the_names_of_the_first(
    server: S3Server, folder: str, tmp_path: Path
) -> None:
    assert go(folder, tmp_path).done == 3
    put(server, f"{folder}/in2/two.png", encoded.png_gray().data)
    before = server.read(f"{folder}/out/two.webp")
    other = go(folder, tmp_path, source="in2")
    assert (other.done, other.failed) == (0, 1)
    assert server.read(f"{folder}/out/two.webp") == before
    assert go(folder, tmp_path).skipped == 3


def test_patterns_and_single_objects(folder: str, tmp_path: Path) -> None:
    assert go(folder, tmp_path, source="in/**/*.jpg").done == 1
    assert go(folder, tmp_path, source="in/two.png").done == 1


@pytest.mark.parametrize("path", ["../escaped.webp", "a/../../escaped.webp"])
def test_names_that_lead_out_of_the_target(path: str) -> None:
    with pytest.raises(TargetError, match="not below"):
        check_path(path)


@pytest.mark.parametrize("pattern", ["", "/*.png"])
def test_results_may_go_above_their_source(
    server: S3Server, folder: str, tmp_path: Path, pattern: str
) -> None:
    place = f"s3://{BUCKET}/{folder}"
    summary = imgsvc_batch.run(
        f"{place}/in{pattern}", place, {"": SPEC}, workers=1, manifest=tmp_path / "manifest.sqlite"
    )
    assert (summary.done, summary.failed) == (1 if pattern else 3, 0)
    assert "two.webp" in keys(server, f"{folder}/")


def test_results_below_their_source_are_no_inputs(server: S3Server, folder: str, tmp_path: Path) -> None:
    place = f"s3://{BUCKET}/{folder}"
    for done in (3, 0):
        summary = imgsvc_batch.run(
            place, f"{place}/in/out", {"": SPEC}, workers=1, manifest=tmp_path / "manifest.sqlite"
        )
        assert (summary.total, summary.done) == (3, done)


def test_objects_that_stand_for_folders_are_no_inputs(server: S3Server, folder: str, tmp_path: Path) -> None:
    put(server, f"{folder}/in/", b"")
    put(server, f"{folder}/in/a/", b"")
    put(server, f"{folder}/in/b.png/", b"")
    put(server, f"{folder}/in/torn.png", b"")
    for retry in (False, True, True):
        told: list[Event] = []
        summary = go(folder, tmp_path, source="in/**", retry=retry, on_event=told.append)
        assert (summary.total, summary.failed, summary.skipped) == (4, 1, 3 if retry else 0)
        assert [event.key for event in told if event.outcome == "failed"] == ["torn.png"]


def test_a_slash_in_front_belongs_to_the_key(server: S3Server, folder: str, tmp_path: Path) -> None:
    put(server, f"{folder}/in//lead.png", encoded.png().data)
    put(server, f"{folder}/in/b//double.png", encoded.png().data)
    assert go(folder, tmp_path).done == 5
    assert {"lead.webp", "b/double.webp"} <= set(keys(server, f"{folder}/out/"))
    summary = imgsvc_batch.run(f"s3://{BUCKET}/{folder}/in", tmp_path / "out", {"": SPEC}, workers=1)
    assert (summary.done, summary.failed) == (5, 0)
    assert (tmp_path / "out" / "lead.webp").exists()


def test_listings_have_many_pages(server: S3Server, folder: str) -> None:
    fs = fsspec.filesystem("s3", skip_instance_cache=True)
    fs.pipe({f"{BUCKET}/{folder}/many/{number:05}.png": b"x" for number in range(PAGE + 3)})
    assert len(keys(server, f"{folder}/many/")) == PAGE
    found = [item.key for item in find(f"s3://{BUCKET}/{folder}/many")]
    assert found == [f"{number:05}.png" for number in range(PAGE + 3)]
    few = PassedOver()
    wanted = f"s3://{BUCKET}/{folder}/many/0100*.png"
    assert [item.key for item in find(wanted, passed_over=few)] == ["01000.png", "01001.png", "01002.png"]
    assert not few  # no others were listed
    assert list(find(f"s3://{BUCKET}/{folder}/many/9*.png")) == []


def test_buckets_that_cannot_be_read_or_written(server: S3Server, folder: str, tmp_path: Path) -> None:
    for place in ("nowhere-at-all", FOREIGN_BUCKET):
        with pytest.raises(SourceUnreachable, match=r"cannot be listed: \w"):
            imgsvc_batch.run(f"s3://{place}", tmp_path / "out", {"": SPEC}, workers=1)
    with pytest.raises(SourceUnreachable, match="holds nothing"):
        go(folder, tmp_path, source="empty")
    mistyped = f"s3://{BUCKET}-mistyped/out"
    places = f"s3://{BUCKET}/{folder}/in", mistyped
    wrong: list[Event] = []
    imgsvc_batch.run(
        *places, {"": SPEC}, workers=1, manifest=tmp_path / "mistyped.sqlite", on_event=wrong.append
    )
    assert {event.error for event in wrong} == {"target_unwritable"}
    assert "NoSuchBucket" in wrong[0].message
    assert "None" not in wrong[0].message
    made = [item["Name"] for item in server.client.list_buckets()["Buckets"]]
    assert f"{BUCKET}-mistyped" not in made
    told: list[Event] = []
    target = f"s3://{FOREIGN_BUCKET}/out"
    source = f"s3://{BUCKET}/{folder}/in"
    manifest = tmp_path / "foreign.sqlite"
    imgsvc_batch.run(source, target, {"": SPEC}, workers=1, manifest=manifest, on_event=told.append)
    assert {event.error for event in told} == {"target_unwritable"}
    assert target in told[0].message


@pytest.mark.parametrize("said", [None, "", "the store said: None"])
def test_a_store_that_gives_no_reason_has_one_in_its_cause(said: str | None) -> None:
    error = PermissionError(said)
    error.__cause__ = ValueError("the bucket is\nelsewhere")
    assert reason_of(error) == ("the store said" if said else "the bucket is elsewhere")
    assert reason_of(OSError()) == "OSError"
    assert reason_of(KeyError("There is no item named 'a.jpg'")) == "There is no item named 'a.jpg'"
    assert "invalid start byte" in reason_of(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"))


def test_objects_in_place(server: S3Server, folder: str, tmp_path: Path) -> None:
    """An object is replaced by one put, which keeps its headers, and only once."""
    key, source = f"{folder}/in/a/one.jpg", f"s3://{BUCKET}/{folder}/in"
    kept = {"CacheControl": "max-age=60", "Metadata": {"by": "ann"}, "ContentDisposition": "inline"}
    server.client.put_object(Bucket=BUCKET, Key=key, Body=photo(92), ContentType="image/jpeg", **kept)
    options: dict[str, Any] = {"workers": 1, "manifest": tmp_path / "manifest.sqlite"}
    request = {"output": {"quality": 30}}
    summary = imgsvc_batch.run_in_place(source, request, **options)
    assert (summary.done, summary.failed) == (3, 0)
    assert keys(server, f"{folder}/in/") == ["a/one.jpg", "three.webp", "two.png"]
    found = server.client.get_object(Bucket=BUCKET, Key=key)
    assert {name: found[name] for name in kept} == kept
    assert found["ContentType"] == "image/jpeg"
    assert inspect(found["Body"].read()).quality == 30
    assert imgsvc_batch.run_in_place(source, request, **options).skipped == 3
    assert server.client.head_object(Bucket=BUCKET, Key=key)["LastModified"] == found["LastModified"]
    assert not list(tmp_path.glob(".imgsvc-batch-*"))


def test_an_object_that_is_best_as_it_is_is_not_put(server: S3Server, folder: str, tmp_path: Path) -> None:
    key, source = f"{folder}/in/small.jpg", f"s3://{BUCKET}/{folder}/in/small.jpg"
    put(server, key, photo(20))
    before = server.client.head_object(Bucket=BUCKET, Key=key)["LastModified"]
    request = {"output": {"quality": 95, "metadata": "keep"}}
    summary = imgsvc_batch.run_in_place(source, request, workers=1, manifest=tmp_path / "manifest.sqlite")
    assert (summary.done, summary.kept) == (1, 1)
    assert server.client.head_object(Bucket=BUCKET, Key=key)["LastModified"] == before


def test_a_killed_batch_puts_no_object_twice(server: S3Server, folder: str, tmp_path: Path) -> None:
    """The digest of a result is in the manifest before the object is put."""
    key, source = f"{folder}/in/a/one.jpg", f"s3://{BUCKET}/{folder}/in/a/one.jpg"
    put(server, key, photo(92))
    script = (
        "import os, signal, imgsvc_batch\n"
        "from imgsvc_batch import in_place\n"
        "put = in_place.replace_object\n"
        "def die(*given, **options):\n"
        "    put(*given, **options)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "in_place.replace_object = die\n"
        "request = {'output': {'quality': 30}}\n"
        f"imgsvc_batch.run_in_place({source!r}, request, workers=1, manifest='m.sqlite')\n"
    )
    ended = forked_python.run("-c", script, folder=tmp_path)
    assert ended.returncode == -signal.SIGKILL
    found = server.read(key)
    assert found is not None
    assert inspect(found.data).quality == 30
    request = {"output": {"quality": 30}}
    summary = imgsvc_batch.run_in_place(
        source, request, workers=1, manifest=tmp_path / "m.sqlite", resume=True
    )
    assert (summary.done, summary.skipped) == (0, 1)
    again = server.read(key)
    assert again is not None
    assert again.data == found.data


def photo(quality: int) -> bytes:
    return bytes(as_vips(coffee()).thumbnail_image(200).write_to_buffer(f".jpg[Q={quality}]"))
