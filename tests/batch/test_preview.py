"""What a batch would do is what it does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import imgsvc_batch
from imgsvc_batch import Batch, Event
from imgsvc_batch.previewing import preview
from imgsvc_core.errors import ImgsvcError
from tests.batch.killing import kill
from tests.batch.pictures import SPEC
from tests.support import encoded, folders


@pytest.fixture
def source(tmp_path: Path) -> str:
    place = f"memory://{tmp_path.name}/in"
    fs = fsspec.filesystem("memory")
    for key in ("a.png", "below/b.png", "c.png"):
        fs.pipe_file(f"{place}/{key}", encoded.png().data)
    return place


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    with folders.read_only(tmp_path / "read_only") as folder:
        yield folder


def foretold(source: str, target: Path | str, **options: Any) -> dict[str, str]:
    """The problems of the inputs that would be worked on."""
    how = {name: options.pop(name) for name in ("resume", "retry") if name in options}
    planned = Batch(source=source, target=str(target), variants={"": SPEC}, **options)
    return {item.key: item.problem for item, wanted in preview(planned, **how) if wanted}


def happened(source: str, target: Path | str, **options: Any) -> dict[str, str]:
    told: list[Event] = []
    imgsvc_batch.run(source, target, {"": SPEC}, workers=1, on_event=told.append, **options)
    return {event.key: event.message for event in told}


@pytest.mark.parametrize("target", ["file", "file/below", "/proc/below", "bogus://bucket"])
def test_targets_that_are_refused(
    target: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ImgsvcError) as asked:
        foretold(source, target)
    with pytest.raises(ImgsvcError) as done:
        happened(source, target)
    assert asked.value.message == done.value.message
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("below", ["", "folder"])
def test_targets_that_are_only_to_be_read(below: str, source: str, read_only: Path) -> None:
    with pytest.raises(ImgsvcError) as asked:
        foretold(source, read_only / below)
    with pytest.raises(ImgsvcError) as done:
        happened(source, read_only / below)
    assert asked.value.message == done.value.message
    assert str(read_only) in done.value.message


def test_nothing_is_left_where_it_was_asked(source: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    before = target.stat().st_mtime_ns
    assert foretold(source, target) == dict.fromkeys(("a.png", "below/b.png", "c.png"), "")
    assert foretold(source, target / "folder")
    assert os.listdir(target) == []
    assert target.stat().st_mtime_ns == before


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.jpg").symlink_to("nowhere")
    os.mkfifo(source / "b.jpg")
    assert foretold(str(source), tmp_path / "out") == {
        "a.jpg": f"Source '{source}/a.jpg' cannot be read: No such file or directory.",
        "b.jpg": f"Source '{source}/b.jpg' is no file.",
    }


def test_what_stands_in_the_way_of_results(source: str, tmp_path: Path) -> None:
    """A file where a folder must be, and a folder where a file must be."""
    target = tmp_path / "out"
    (target / "c.webp").mkdir(parents=True)
    (target / "below").write_text("")
    problems = foretold(source, target, overwrite=True)
    assert problems == happened(source, target, overwrite=True)
    assert problems["a.png"] == ""
    assert problems["below/b.png"].endswith("Not a directory.")
    assert problems["c.png"].endswith("Is a directory.")


@pytest.mark.parametrize("overwrite", [True, False])
def test_links_in_the_place_of_results(overwrite: bool, source: str, tmp_path: Path) -> None:
    """They are files like others, wherever they lead: never followed, and replaced only with leave."""
    target = tmp_path / "out"
    (target / "below").mkdir(parents=True)
    (target / "a.webp").symlink_to("nowhere")
    (target / "c.webp").symlink_to("below")
    problems = foretold(source, target, overwrite=overwrite)
    failed = {key for key, message in happened(source, target, overwrite=overwrite).items() if message}
    assert {key for key, problem in problems.items() if problem} == failed
    assert failed == (set() if overwrite else {"a.png", "c.png"})


def test_a_link_in_the_place_of_a_result_that_was_there(source: str, tmp_path: Path) -> None:
    """It is no result of the same picture in another folder, which would be shared."""
    target, moved = tmp_path / "out", f"{source}/moved"
    happened(f"{source}/below", target)
    fsspec.filesystem("memory").mv(f"{source}/below", moved, recursive=True)
    assert foretold(moved, target) == {"b.png": ""}
    (target / "b.webp").unlink()
    (target / "b.webp").symlink_to("nowhere")
    assert "exists already" in foretold(moved, target)["b.png"]
    assert "exists already" in happened(moved, target)["b.png"]


@pytest.mark.parametrize("store", ["folder", "memory"])
def test_names_that_lead_out_of_the_target(store: str, source: str, tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe_file(f"{source}/photo", encoded.jpeg().data)
    target = str(tmp_path / "out") if store == "folder" else f"memory://{tmp_path.name}/out"
    options = {"template": "{ext}../{stem}.{format}", "manifest": tmp_path / "manifest.sqlite"}
    problems = foretold(f"{source}/photo*", target, **options)
    assert problems == happened(f"{source}/photo*", target, **options)
    assert problems == {
        "photo": "Target '../photo.webp' cannot be written: it is not below the folder of the results.",
    }


def test_names_without_a_format_are_known_whatever_the_format(source: str, tmp_path: Path) -> None:
    (tmp_path / "a.result").write_text("precious")
    planned = Batch(
        source=source, target=tmp_path, variants={"": {"resize": {"width": 9}}}, template="{stem}.result"
    )
    problems = {item.key: item.problem for item, _ in preview(planned)}
    assert [key for key, problem in problems.items() if "exists already" in problem] == ["a.png"]


@pytest.mark.parametrize(
    ("template", "present"),
    [("{stem}-{width}", "a-1"), ("{stem}-{height}", "a-1"), ("{stem}{digest}", "a")],
)
def test_names_that_only_pixels_tell_are_not_known_ahead(
    template: str, present: str, source: str, tmp_path: Path
) -> None:
    (tmp_path / f"{present}.webp").touch()
    assert set(foretold(source, tmp_path, template=f"{template}.{{format}}").values()) == {""}


def test_the_place_of_the_manifest_is_none_for_results(source: str, tmp_path: Path) -> None:
    options = {"template": "{stem}.sqlite", "manifest": tmp_path / "out" / "a.sqlite", "overwrite": True}
    problems = foretold(source, tmp_path / "out", **options)
    assert problems == happened(source, tmp_path / "out", **options)
    assert [key for key, problem in problems.items() if "batch's manifest" in problem] == ["a.png"]


@pytest.mark.parametrize("resume", [True, False])
def test_what_a_killed_batch_wrote_stands_in_nobodys_way(resume: bool, source: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    kill(source, target, SPEC)
    assert (target / "a.webp").exists()
    asked = foretold(source, target, resume=resume)
    assert asked == happened(source, target, resume=resume)
    assert set(asked.values()) == {""}
