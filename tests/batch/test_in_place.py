"""Batches in place: each file is the original or the result at any time."""

from __future__ import annotations

import hashlib
import io
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import pyvips
from PIL import Image

import imgsvc_batch
from imgsvc_batch import Batch, Event, Manifest, default_manifest, preview, run_in_place, write_report
from imgsvc_batch.own_format import in_own_format
from imgsvc_core import ImageInfo, Spec, SpecError, TargetError, inspect, process
from imgsvc_core.targets import replace_file
from tests.batch.pictures import results
from tests.support import encoded, forked_python, requires
from tests.support.forked_python import COMMAND
from tests.support.photos import as_vips, coffee

pytestmark = pytest.mark.usefixtures("shared_fork_server")

SMALL: dict[str, Any] = {"output": {"quality": 30}}


def photo(path: Path, quality: int = 92, *, width: int = 200) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = as_vips(coffee()).thumbnail_image(width)
    picture.write_to_file(f"{path}[Q={quality}]")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    photo(tmp_path / "in" / "one.jpg")
    photo(tmp_path / "in" / "sub" / "two.webp")
    return tmp_path / "in"


def events(*arguments: Any, **options: Any) -> dict[str, Event]:
    told: list[Event] = []
    run_in_place(*arguments, workers=1, on_event=told.append, **options)
    return {event.key: event for event in told}


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in results(folder)}


def test_results_take_the_places_of_their_inputs(folder: Path) -> None:
    before = contents(folder)
    summary = run_in_place(folder, SMALL, workers=1)
    after = contents(folder)
    assert (summary.done, summary.kept, summary.failed) == (2, 0, 0)
    assert after.keys() == before.keys()
    assert summary.bytes_in == sum(map(len, before.values()))
    assert summary.bytes_out == sum(map(len, after.values())) < summary.bytes_in
    assert {inspect(data).format for data in after.values()} == {"jpg", "webp"}
    assert inspect(after["one.jpg"]).quality == 30


def test_a_second_run_compresses_nothing_again(folder: Path) -> None:
    run_in_place(folder, SMALL, workers=1)
    once = contents(folder)
    assert run_in_place(folder, SMALL, workers=1).skipped == 2
    os.utime(folder / "one.jpg")  # another stamp, the same bytes
    assert [event.outcome for event in events(folder, SMALL).values()] == ["unchanged"]
    assert contents(folder) == once
    assert events(folder, SMALL) == {}, "it is read again"
    photo(folder / "one.jpg", 95)
    assert run_in_place(folder, SMALL, workers=1).done == 1


def test_what_would_be_larger_is_left_alone(tmp_path: Path) -> None:
    path = photo(tmp_path / "in" / "a.jpg", 10)
    run_in_place(path.parent, {"output": {"keep_pixels": True}}, workers=1)
    before = path.stat()
    summary = run_in_place(path.parent, {"output": {"quality": 95}}, workers=1)
    assert (summary.done, summary.kept) == (1, 1)
    assert summary.notes == {"Encoding it again saves nothing, so the pixels stay as they were.": 1}
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert run_in_place(path.parent, {"output": {"quality": 95}}, if_smaller=False, workers=1).kept == 0
    assert path.stat().st_size > before.st_size


def test_metadata_goes_as_asked_and_pixels_may_stay(tmp_path: Path) -> None:
    path = photo(tmp_path / "in" / "a.jpg")
    exif = Image.Exif()
    exif[0x8298], exif[0x010F] = "Held by Ann", "A maker"
    with Image.open(path) as opened:
        opened.save(path, quality=80, exif=exif.tobytes())
        pixels = opened.copy()
    only_metadata = {"output": {"keep_pixels": True, "metadata": "copyright"}}
    assert run_in_place(path.parent, only_metadata, workers=1).done == 1
    assert b"Ann" in path.read_bytes()
    assert b"maker" not in path.read_bytes()
    run_in_place(path.parent, {"output": {"keep_pixels": True}}, workers=1)
    assert b"Ann" not in path.read_bytes()
    with Image.open(path) as opened:
        assert opened.size == pixels.size
    assert inspect(path).quality == 80


def test_mode_owner_and_attributes_stay(folder: Path) -> None:
    path = folder / "one.jpg"
    path.chmod(0o640)
    os.utime(path, ns=(0, 0))
    try:
        os.setxattr(path, "user.rating", b"5")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    inode = path.stat().st_ino
    run_in_place(folder, SMALL, workers=1)
    assert path.stat().st_ino != inode
    assert path.stat().st_mode & 0o7777 == 0o640
    assert os.getxattr(path, "user.rating") == b"5"
    assert path.stat().st_mtime > 0  # other programs see that the content has changed


def test_links_are_passed_over_unless_they_are_named(folder: Path, tmp_path: Path) -> None:
    outside = photo(tmp_path / "outside.jpg")
    link = folder / "link.jpg"
    link.symlink_to(outside)
    before = outside.read_bytes()
    summary = run_in_place(folder, SMALL, workers=1)
    assert summary.passed_over["link"] == 1
    assert outside.read_bytes() == before
    run_in_place(link, SMALL, workers=1, manifest=tmp_path / "manifest.sqlite")
    assert link.is_symlink()
    assert inspect(outside).quality == 30


def test_hard_links_keep_the_original_and_are_told(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jpg"
    os.link(folder / "one.jpg", other)
    before = other.read_bytes()
    told = events(folder, SMALL)
    assert other.read_bytes() == before != (folder / "one.jpg").read_bytes()
    assert told["one.jpg"].notes == ("Its other hard links still lead to the original.",)
    assert not told["sub/two.webp"].notes


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_read_only_files_stay() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = photo(Path(name) / "a.jpg")
        path.chmod(0o444)
        before = path.read_bytes()
        staged = Path(name) / "staged"
        staged.write_bytes(b"result")
        for place in (path, staged, Path(name)):
            os.chown(place, 65534, 65534)
        os.seteuid(65534)
        try:
            with pytest.raises(PermissionError):
                replace_file(path, staged)
            assert path.read_bytes() == before
            path.chmod(0o644)
            replace_file(path, staged)
            assert path.read_bytes() == b"result"
        finally:
            os.seteuid(0)


def test_each_file_keeps_its_format_whatever_its_suffix(folder: Path) -> None:
    (folder / "one.jpg").rename(folder / "one.png")
    as_vips(coffee()).tiffsave(str(folder / "three.tif"))
    Image.new("RGB", (9, 9)).save(folder / "four.bmp")
    summary = run_in_place(folder, SMALL, workers=1)
    assert summary.done == 3
    assert inspect(folder / "one.png").format == "jpg"
    assert inspect(folder / "three.tif").format == "tiff"
    assert summary.passed_over[".bmp"] == 1
    told = events(folder / "*.bmp", SMALL)["four.bmp"]
    assert told.error == "target_unwritable"
    assert told.message.startswith("In place a result must have the format of its source, bmp, got jpg")


def test_the_limits_of_a_batch_count_and_not_the_usual_ones() -> None:
    """The format is chosen without them; they are checked when the picture is processed."""
    large = ImageInfo(format="png", width=20_000, height=9, colorspace="srgb", bytes=9)
    output = in_own_format(Spec(), large).output
    assert output is not None
    assert output.format == "png"


def test_frames_stay(folder: Path) -> None:
    frames = [Image.new("RGB", (9, 9), color) for color in ("red", "lime", "blue")]
    frames[0].save(folder / "moves.png", save_all=True, append_images=frames[1:], duration=100)
    frames[0].save(folder / "moves.gif", save_all=True, append_images=frames[1:], duration=100)
    before = contents(folder)
    told = events(folder, {"adjust": {"invert": True}})
    for name in ("moves.png", "moves.gif"):
        assert told[name].outcome == "done"
        assert inspect(folder / name).frames == 3
        assert (folder / name).read_bytes() != before[name]


def several(color: str, path: Path, comment: bytes = b"") -> None:
    """Write two pictures into one file."""
    pages = [Image.new("RGB", (64, 48), color) for color in ("red", color)]
    pages[1].info["comment"] = comment
    if path.suffix == ".heic":
        requires.module("pillow_heif")
        from pillow_heif import from_pillow

        file = from_pillow(pages[0])
        file.add_from_pillow(pages[1])
        file.save(path)
    else:
        kind = "MPO" if path.suffix == ".jpg" else None
        pages[0].save(path, kind, save_all=True, append_images=pages[1:])


@pytest.mark.parametrize("name", ["pages.tif", "pages.jpg", "pages.heic"])
def test_pages_and_further_pictures_stay(folder: Path, name: str) -> None:
    path = folder / name
    several("lime", path)
    before = path.read_bytes()
    told = events(folder, SMALL)[name]
    assert told.message.startswith(
        "In place a result must have all pages and pictures of its source, got the"
    )
    assert path.read_bytes() == before
    assert process(path).notes == ("Only the first picture of the file is kept.",)


def test_further_pictures_that_stay_with_their_pixels_are_no_loss(tmp_path: Path) -> None:
    several("lime", tmp_path / "pages.jpg")
    for metadata, lost in {"keep": 0, "strip": 1}.items():
        kept = process(tmp_path / "pages.jpg", {"output": {"keep_pixels": True, "metadata": metadata}})
        assert Image.open(io.BytesIO(kept.data)).format == ("JPEG" if lost else "MPO")
        assert len(kept.notes) == lost


def test_frames_beside_a_picture_are_further_pictures() -> None:
    still = encoded.heic().data
    movie = (8).to_bytes(4, "big") + b"moov"
    assert not inspect(still).more_pages
    assert inspect(still + movie).more_pages


def test_previews_and_gain_maps_are_no_further_pictures(folder: Path) -> None:
    path = folder / "phone.jpg"
    several("gray", path, b'xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/"')
    assert not inspect(path).more_pages
    several("gray", path)
    assert inspect(path).more_pages
    data = bytearray(path.read_bytes())
    second = data.index(b"MPF\0") + 4 + 50 + 16  # the kind in the second entry of Pillow
    data[second : second + 4] = b"\2\0\1\0"
    path.write_bytes(data)
    assert not inspect(path).more_pages


def test_copies_of_pages_are_none(folder: Path) -> None:
    path = folder / "pages.tif"
    several("lime", path)
    assert inspect(path).more_pages
    Image.new("RGB", (2000, 2000), "red").save(path)
    with_copies = pyvips.Image.new_from_file(str(path))
    with_copies.tiffsave(str(path) + "f", pyramid=True, tile=True)
    assert not inspect(path).more_pages
    assert not inspect(str(path) + "f").more_pages


def test_a_file_that_changes_meanwhile_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from imgsvc_batch import in_place

    new = photo(folder.parent / "new.jpg", 77).read_bytes()
    replace = in_place.replace_file

    def late(path: Path, *arguments: Any, **options: Any) -> None:
        path.write_bytes(new)
        replace(path, *arguments, **options)

    monkeypatch.setattr(in_place, "replace_file", late)
    told = events(folder / "one.jpg", SMALL)["one.jpg"]
    assert told.message.endswith(
        "has changed while it was processed, so it stays as it is: process it again."
    )
    assert (folder / "one.jpg").read_bytes() == new
    assert results(folder) == ["one.jpg", "sub/two.webp"]
    monkeypatch.undo()
    assert events(folder / "one.jpg", SMALL)["one.jpg"].outcome == "done"


def test_a_folder_on_another_device_than_the_manifest(folder: Path) -> None:
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == folder.stat().st_dev:
        pytest.skip("there is no other device")
    manifest = shared / f"imgsvc-test-{os.getpid()}" / "manifest.sqlite"
    (folder / "one.jpg").chmod(0o640)
    try:
        summary = run_in_place(folder, SMALL, workers=1, manifest=manifest)
        assert (summary.done, summary.failed) == (2, 0)
        assert (folder / "one.jpg").stat().st_mode & 0o7777 == 0o640
        assert results(folder) == ["one.jpg", "sub/two.webp"]
        assert inspect(folder / "one.jpg").quality == 30
    finally:
        for path in manifest.parent.iterdir():
            path.unlink()
        manifest.parent.rmdir()


def test_a_full_disk_leaves_the_original(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from imgsvc_core.targets import writing

    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    before = contents(folder)
    monkeypatch.setattr(writing.os, "replace", full)
    told = events(folder, SMALL)
    assert {event.message.rpartition(": ")[2] for event in told.values()} == {"No space left on device."}
    assert contents(folder) == before
    assert not list(folder.glob(".imgsvc-batch-*"))


@pytest.mark.parametrize(
    ("options", "path", "told"),
    [
        ({"target": "out"}, "target", "must not be given in place"),
        ({"template": "{stem}.{ext}"}, "template", "must not be given in place"),
        ({"overwrite": True}, "overwrite", "must not be given in place"),
        ({"variants": {"a": {}, "b": {}}}, "variants", "must be one request in place, got a, b"),
        ({"variants": {"": {"output": {"format": "webp"}}}}, "output.format", "where files keep their"),
        ({"variants": {"": {"output": {"transcode": True}}}}, "output.transcode", "where files keep"),
        ({"source": "zip://*.jpg::a.zip"}, "source", "or objects of a bucket by a plain URL in place"),
        ({"source": "s3://bucket/x", "cluster": "tcp://a:1"}, "cluster", "must not be given with objects"),
    ],
)
def test_what_cannot_be_asked_for(tmp_path: Path, options: dict[str, Any], path: str, told: str) -> None:
    given = {"source": tmp_path, "variants": {"": {}}, **options}
    with pytest.raises(SpecError, match=told) as raised:
        Batch(in_place=True, **given)
    assert path in [problem.path for problem in raised.value.problems]


def test_a_target_is_needed_otherwise(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'target' parameter must be a path or a URL, got None"):
        Batch(source=tmp_path, variants={"": {}})
    with pytest.raises(SpecError, match="results can also be in_place of the source"):
        Batch(source=tmp_path, target=tmp_path, variants={"": {}})


def test_several_sources(folder: Path, tmp_path: Path) -> None:
    other = photo(tmp_path / "other" / "three.jpg")
    batch = Batch(source=[folder, other], in_place=True, variants={"": SMALL})
    assert batch.target == str(tmp_path)
    summary = run_in_place([folder, other], SMALL, workers=1)
    assert (summary.done, summary.failed) == (3, 0)
    assert inspect(other).quality == inspect(folder / "one.jpg").quality == 30
    assert run_in_place([folder, other], SMALL, workers=1).skipped == 3


def test_a_dry_run_changes_nothing(folder: Path) -> None:
    before = contents(folder)
    batch = Batch(source=folder, in_place=True, variants={"": SMALL})
    found = [(item.key, item.problem, wanted) for item, wanted in preview(batch)]
    assert sorted(found) == [("one.jpg", "", True), ("sub/two.webp", "", True)]
    assert contents(folder) == before


def test_the_report_compares_sizes_with_the_originals(folder: Path, tmp_path: Path) -> None:
    before = sum(map(len, contents(folder).values()))
    run_in_place(folder, SMALL, workers=1)
    with Manifest(default_manifest(folder), reading=True) as manifest:
        totals = manifest.totals()
        write_report(manifest, str(folder), tmp_path / "report.html", workers=1)
    assert (totals.done, totals.bytes_in) == (2, before)
    assert totals.bytes_out == sum(map(len, contents(folder).values()))
    page = (tmp_path / "report.html").read_text()
    assert page.count("<img alt") == 2
    assert "cannot be read" not in page


KILLED = """
import os, signal, sys
import imgsvc_batch
from imgsvc_batch import in_place

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[1] == "before":
    in_place.replace_file = die
else:
    replace = in_place.replace_file
    in_place.replace_file = lambda *given, **options: (replace(*given, **options), die())
imgsvc_batch.run_in_place("in", {"output": {"quality": 30}}, workers=1)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_batch_repeats_nothing(folder: Path, moment: str) -> None:
    (folder / "sub" / "two.webp").unlink()
    original = (folder / "one.jpg").read_bytes()
    ended = forked_python.run("-c", KILLED, moment, folder=folder.parent)
    assert ended.returncode == -signal.SIGKILL
    left = (folder / "one.jpg").read_bytes()
    assert (left == original) == (moment == "before")
    summary = run_in_place(folder, SMALL, workers=1, resume=True)
    assert (summary.done, summary.skipped) == ((1, 0) if moment == "before" else (0, 1))
    assert moment == "before" or (folder / "one.jpg").read_bytes() == left
    with Manifest(default_manifest(folder), reading=True) as manifest:
        assert manifest.totals().bytes_in == len(original)
    assert results(folder) == ["one.jpg"]
    assert not list(folder.glob(".imgsvc-batch-*"))


def waiting_for(folder: Path, originals: dict[str, bytes]) -> list[str]:
    """Return the names of the files that are not replaced yet."""
    return [name for name, data in originals.items() if (folder / name).read_bytes() == data]


def test_kills_at_random_moments_leave_every_file_whole(tmp_path: Path) -> None:
    """Killed again and again, every file is its original or the result of its original, never one of both."""
    source = tmp_path / "in"
    originals = {
        photo(source / f"{number}.jpg", 70 + number, width=100 + number).name: b"" for number in range(16)
    }
    originals = {name: (source / name).read_bytes() for name in originals}
    once = tmp_path / "once"
    imgsvc_batch.run(source, once, {"": SMALL}, workers=1)
    made = {name: (once / name).read_bytes() for name in originals}
    arguments = [*COMMAND, "batch", str(source), "--in-place", "--quality", "30", "--resume"]
    chance = random.Random(7)
    replaced: set[int] = set()
    for _ in range(5):
        process = forked_python.start(*arguments)
        wanted = len(made) - len(waiting_for(source, originals)) + chance.randint(0, 3)
        while process.poll() is None and len(made) - len(waiting_for(source, originals)) < wanted:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.wait()
        now = {name: (source / name).read_bytes() for name in originals}
        assert all(now[name] in (originals[name], made[name]) for name in originals)
        replaced.add(sum(now[name] == made[name] for name in originals))
    ended = forked_python.run(*arguments)
    assert ended.returncode == 0, ended.stderr
    assert {name: (source / name).read_bytes() for name in originals} == made
    assert len(replaced) > 1  # some kills were in the middle
    assert results(source) == sorted(originals)


def test_the_digest_of_a_result_is_known(folder: Path) -> None:
    told = events(folder, SMALL)["one.jpg"]
    with Manifest(default_manifest(folder), reading=True) as manifest:
        batch = Batch(source=folder, in_place=True, variants={"": SMALL})
        known = {item.key: manifest.find(item) for item, _ in preview(batch)}["one.jpg"]
    assert known is not None
    assert known.digest == hashlib.sha256((folder / "one.jpg").read_bytes()).hexdigest() != told.digest


def test_a_place_that_cannot_be_replaced_in_one_step(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be replaced in one step"):
        run_in_place("http://127.0.0.1:9/a", SMALL, manifest=tmp_path / "manifest.sqlite")
