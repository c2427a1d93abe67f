"""A batch does everything once, whatever happens meanwhile, and says what it did."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import attrs
import fsspec
import pytest
import pyvips

import imgsvc_batch
from imgsvc_batch import Event, Manifest, Progress, Summary, Template, executors
from imgsvc_batch.executors import ProcessExecutor
from imgsvc_batch.inputs import Input
from imgsvc_batch.results import write_object
from imgsvc_batch.signals import Interrupts
from imgsvc_core.errors import MissingDependency, NameCollision, SourceUnreachable, SpecError, TargetError
from tests.batch.pictures import SPEC, VARIANTS, fill, results
from tests.support import encoded, folders

pytestmark = pytest.mark.usefixtures("shared_fork_server")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    fill(tmp_path / "in", 6)
    return tmp_path / "in"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out"


def go(source: Path | str, target: Path | str, **options: Any) -> Summary:
    variants = options.pop("variants", {"": SPEC})
    return imgsvc_batch.run(source, target, variants, workers=options.pop("workers", 1), **options)


def counts(summary: Summary) -> tuple[int, int, int]:
    return summary.done, summary.failed, summary.skipped


def test_every_picture_becomes_a_result_in_the_same_folder(source: Path, target: Path) -> None:
    assert counts(go(source, target)) == (6, 0, 0)
    assert results(target) == [
        "photo00001.webp", "photo00002.webp", "photo00004.webp", "photo00005.webp",
        "sub/photo00000.webp", "sub/photo00003.webp",
    ]  # fmt: skip
    assert pyvips.Image.new_from_file(str(target / "photo00001.webp")).width == 24


def test_variants_are_what_single_requests_give(source: Path, target: Path) -> None:
    import imgsvc_core as imgsvc
    from tests.support.perceptual import distance

    assert counts(go(source, target, variants=VARIANTS)) == (6, 0, 0)
    assert len(results(target)) == 18
    for name, spec in VARIANTS.items():
        alone = imgsvc.process(source / "photo00001.png", spec)
        assert alone.data is not None
        written = target / f"photo00001-{name}.{alone.output.format}"
        ours, single = pyvips.Image.new_from_file(str(written)), pyvips.Image.new_from_buffer(alone.data, "")
        assert (ours.width, ours.height) == (single.width, single.height)
        assert distance(ours, single) < 0.02


def test_unchanged_inputs_are_skipped_and_changed_ones_done(source: Path, target: Path) -> None:
    go(source, target)
    assert counts(go(source, target)) == (0, 0, 6)
    (source / "photo00001.png").write_bytes(encoded.png_gray().data)
    os.utime(source / "photo00002.webp", (1, 1))  # touched, but the same
    assert counts(go(source, target)) == (1, 0, 5)
    assert counts(go(source, target)) == (0, 0, 6)
    assert counts(go(source, target, force=True)) == (6, 0, 0)
    assert counts(
        go(source, target, variants={"": {"resize": {"width": 30}, "output": {"format": "webp"}}})
    ) == (6, 0, 0)


def test_broken_inputs_fail_alone_and_can_be_retried(source: Path, target: Path) -> None:
    broken = {
        "empty.png": b"", "text.jpg": b"no picture", "torn.jpg": encoded.jpeg().data[:500],
        "torn.png": encoded.png().data[:300],
    }  # fmt: skip
    for name, data in broken.items():
        (source / name).write_bytes(data)
    for name in ("it's one.gif", "it's two's.gif"):
        (source / name).write_text("no picture")
    (source / "folder.jpg").mkdir()
    (source / "nowhere.jpg").symlink_to(source / "missing")
    told: list[Event] = []
    assert counts(go(source, target, on_event=told.append)) == (6, 7, 0)
    failed = {event.key: event.error for event in told if event.outcome == "failed"}
    assert failed == {
        "empty.png": "empty_source", "text.jpg": "unsupported_format", "torn.jpg": "corrupt_image",
        "torn.png": "corrupt_image", "nowhere.jpg": "source_unreachable",
        "it's one.gif": "unsupported_format", "it's two's.gif": "unsupported_format",
    }  # fmt: skip
    assert len(results(target)) == 6
    with Manifest(target / ".imgsvc-batch.sqlite") as manifest:
        reasons = [(reason.error, reason.count, reason.keys) for reason in manifest.reasons()]
    assert [count for _, count, _ in reasons] == [3, 1, 1, 1, 1]
    assert ("corrupt_image", 1, ("torn.jpg",)) in reasons  # a JPEG is damaged in another way than a PNG
    assert ("corrupt_image", 1, ("torn.png",)) in reasons
    assert ("unsupported_format", 3, ("it's one.gif", "it's two's.gif", "text.jpg")) in reasons
    (source / "text.jpg").write_bytes(encoded.jpeg().data)
    assert counts(go(source, target, retry=True)) == (1, 6, 6)
    assert "text.webp" in results(target)


def test_names_that_collide_fail_and_nothing_is_overwritten(source: Path, target: Path) -> None:
    (source / "photo00001.jpg").write_bytes(encoded.jpeg().data)
    told: list[Event] = []
    assert counts(go(source, target, on_event=told.append)) == (6, 1, 0)
    (failure,) = [event for event in told if event.outcome == "failed"]
    assert failure.error == "name_collision"
    assert "has the name of the result of 'photo00001." in failure.message
    assert counts(go(source, target)) == (0, 1, 6)


def test_files_of_others_in_the_target_stay(source: Path, target: Path) -> None:
    target.mkdir()
    (target / "photo00001.webp").write_text("precious")
    assert counts(go(source, target)) == (5, 1, 0)
    assert (target / "photo00001.webp").read_text() == "precious"
    assert counts(go(source, target, overwrite=True)) == (1, 0, 5)
    assert (target / "photo00001.webp").read_bytes() != b"precious"


def test_a_variant_that_cannot_be_written_leaves_no_other(source: Path, target: Path) -> None:
    target.mkdir()
    (target / "photo00001-card.jpg").write_text("precious")
    assert counts(go(source, target, variants=VARIANTS)) == (5, 1, 0)
    assert [name for name in results(target) if "00001" in name] == ["photo00001-card.jpg"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_results_without_a_place_are_not_kept_until_the_end(
    overwrite: bool, source: Path, target: Path
) -> None:
    """The place is taken by a folder, which nothing replaces."""
    (target / "photo00001-card.jpg" / "in the way").mkdir(parents=True)
    left = []

    def look(event: Event) -> None:
        (staging,) = target.glob(".imgsvc-batch-*/")
        left.append((event.outcome, os.listdir(staging)))

    only = source / "photo00001.png"
    go(only, target, variants=VARIANTS, overwrite=overwrite, on_event=look)
    assert left == [("failed", [])]


@pytest.fixture
def forbidden(target: Path) -> Iterator[Path]:
    """A folder of the target that cannot be written to."""
    with folders.read_only(target / "sub") as folder:
        yield folder


def test_a_variant_that_cannot_be_replaced_costs_no_earlier_result(source: Path, target: Path) -> None:
    go(source, target, variants=VARIANTS)
    (target / "photo00001-hero.png").unlink()
    (target / "photo00001-hero.png" / "in the way").mkdir(parents=True)
    (source / "photo00001.png").write_bytes(encoded.png_gray().data)
    assert counts(go(source, target, variants=VARIANTS)) == (0, 1, 5)
    assert (target / "photo00001-thumb.webp").exists()
    assert (target / "photo00001-card.jpg").exists()


def test_a_link_to_the_same_picture_is_not_replaced(source: Path, target: Path) -> None:
    go(source, target)
    other = target.with_name("other")
    other.mkdir()
    (other / "photo00001.webp").symlink_to(target / "photo00001.webp")
    (other / "photo00002.webp").write_bytes((target / "photo00002.webp").read_bytes())
    assert counts(go(source, other)) == (5, 1, 0)
    assert (other / "photo00001.webp").is_symlink()


def test_a_target_without_permission_is_told_per_file(source: Path, target: Path, forbidden: Path) -> None:
    told: list[Event] = []
    assert counts(go(source, target, on_event=told.append)) == (4, 2, 0)
    assert {event.error for event in told if event.outcome == "failed"} == {"target_unwritable"}
    assert results(forbidden) == []


def test_the_manifest_knows_each_input(source: Path, target: Path) -> None:
    go(source, target)
    data = (source / "photo00001.png").read_bytes()
    with Manifest(target / ".imgsvc-batch.sqlite") as manifest:
        known = manifest.find(Input(key="photo00001.png", location=str(source / "photo00001.png")))
        assert known is not None
        assert (known.digest, known.size) == (hashlib.sha256(data).hexdigest(), len(data))
        ((key, location, size, outputs),) = manifest.done(most=1)
    assert size == (source / key).stat().st_size == Path(location).stat().st_size
    assert [(target / output.path).stat().st_size for output in outputs] == [
        output.bytes for output in outputs
    ]


def test_a_target_below_the_source_is_no_input(source: Path) -> None:
    assert counts(go(source, source / "small")) == (6, 0, 0)
    assert counts(go(source, source / "small")) == (0, 0, 6)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("*.png", 2), ("**/*.jpg", 2), ("sub/*", 2), ("photo0000[12].*", 2), ("nothing*", 0)],
)
def test_patterns(pattern: str, expected: int, source: Path, target: Path) -> None:
    assert go(f"{source}/{pattern}", target).done == expected


@pytest.mark.parametrize("pattern", ["*", "**/*.jpg", "?_*", "*/*"])
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
def test_wildcards_match_no_hidden_files(packed: bool, pattern: str, tmp_path: Path, target: Path) -> None:
    source = tmp_path / "in"
    (source / "sub" / ".trash").mkdir(parents=True)
    for name in ("._photo.jpg", ".hidden.jpg", "sub/._photo.jpg", "sub/.trash/old.jpg"):
        (source / name).write_bytes(b"no picture")
    for name in ("a_photo.jpg", "sub/b_photo.jpg"):
        (source / name).write_bytes(encoded.jpeg().data)
    if packed:
        shutil.make_archive(str(tmp_path / "all"), "zip", source)
    place = f"zip://{pattern}::{tmp_path}/all.zip" if packed else f"{source}/{pattern}"
    summary = go(place, target)
    assert (summary.done, summary.failed) == (2 if pattern.startswith("**") else 1, 0)
    assert summary.passed_over["hidden"] >= 2


def test_a_pattern_with_a_dot_matches_hidden_files(tmp_path: Path, target: Path) -> None:
    (tmp_path / ".photo.jpg").write_bytes(encoded.jpeg().data)
    assert go(f"{tmp_path}/.p*.jpg", target).done == 1


def test_a_single_file(source: Path, target: Path) -> None:
    assert go(source / "photo00001.png", target).done == 1
    assert results(target) == ["photo00001.webp"]


def test_buckets_on_both_sides(tmp_path: Path) -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/bucket-in/a/one.jpg", encoded.jpeg().data)
    fs.pipe_file("/bucket-in/two.png", encoded.png().data)
    target = tmp_path.as_uri() + "/out"
    manifest = tmp_path / "memory.sqlite"
    assert counts(go("memory://bucket-in", "memory://bucket-out", manifest=manifest)) == (2, 0, 0)
    assert sorted(fs.find("/bucket-out")) == ["/bucket-out/a/one.webp", "/bucket-out/two.webp"]
    with pytest.raises(SpecError, match="'cluster' parameter must not be given with places in 'memory://'"):
        go("memory://bucket-in", target, cluster="tcp://127.0.0.1:9")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.jpg").write_bytes(encoded.jpeg().data)
    local = tmp_path.as_uri() + "/in"
    assert counts(go(local, target, manifest=tmp_path / "local.sqlite")) == (1, 0, 0)
    assert counts(go(local, target, manifest=tmp_path / "local.sqlite")) == (0, 0, 1)
    assert results(tmp_path / "out") == ["one.webp"]


def test_names_that_would_be_chains_of_places_are_refused(tmp_path: Path) -> None:
    fs = fsspec.filesystem("memory")
    for name in ("a::b.png", "a::b::c.png", "fine.png"):
        fs.pipe_file(f"/bucket-chains/{name}", encoded.png().data)
    told: list[Event] = []
    manifest = tmp_path / "memory.sqlite"
    summary = go("memory://bucket-chains", tmp_path / "out", manifest=manifest, on_event=told.append)
    assert counts(summary) == (1, 2, 0)
    failed = [event.message for event in told if event.outcome == "failed"]
    assert [message.endswith("holds '::': rename the object.") for message in failed] == [True, True]


def test_a_target_below_the_source_of_a_bucket_is_no_input(tmp_path: Path) -> None:
    fs = fsspec.filesystem("memory")
    for name in ("one.png", "out.png", "outer/one.png"):  # the last two only begin as the target
        fs.pipe_file(f"/bucket-around/{name}", encoded.png().data)
    manifest = tmp_path / "memory.sqlite"
    for expected in ((3, 0, 0), (0, 0, 3)):
        assert (
            counts(go("memory://bucket-around", "memory://bucket-around/out", manifest=manifest)) == expected
        )


def test_names_by_a_template(source: Path, target: Path) -> None:
    name = Template("{variant}/{stem}_{width}x{height}_{digest}.{format}")
    go(source / "photo00001.png", target, template=name, variants={"small": SPEC})
    (path,) = results(target)
    assert path.startswith("small/photo00001_24x16_")
    assert len(path.split("_")[2]) == len("0123456789abcdef.webp")


@pytest.mark.parametrize("text", ["{stem", "{size}", "same.jpg", "/{stem}", "../{stem}", "{stem.x}", "{0}"])
def test_wrong_templates_are_refused_before_any_work(text: str) -> None:
    with pytest.raises(SpecError, match="Batch 'template' parameter must be a template"):
        Template(text)


@pytest.mark.parametrize(
    ("variants", "path"),
    [({}, "variants"), ({"a": {"resize": {"width": 0}}}, "a.resize.width"), ({"a": {"x": 1}}, "a.x")],
)
def test_wrong_specs_are_refused_before_any_work(
    variants: dict[str, Any], path: str, source: Path, target: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        go(source, target, variants=variants)
    assert caught.value.problems[0].path == path
    assert not target.exists()


def test_mistakes_in_several_variants_name_theirs(source: Path, target: Path) -> None:
    wrong = {"resize": {"width": 0}}
    with pytest.raises(SpecError) as caught:
        go(source, target, variants={"a": wrong, "b": wrong, "c": {"watermark": {"id": "logo"}}})
    told = [problem.message for problem in caught.value.problems]
    assert [message.partition(":")[0] for message in told] == ["Variant 'a'", "Variant 'b'"]
    with pytest.raises(SpecError, match="Variant 'c': Watermark 'id'"):
        go(source, target, variants={"a": SPEC, "c": {"watermark": {"id": "logo"}}})


def test_a_variant_that_cannot_be_made_is_named(source: Path, target: Path) -> None:
    told: list[Event] = []
    outside = {"crop": {"x": 5000, "y": 0, "width": 10, "height": 10}}
    go(source / "photo00001.png", target, variants={"a": SPEC, "b": outside}, on_event=told.append)
    assert [event.message.partition(" and ")[0] for event in told] == ["Variant 'b': Crop 'x'"]
    go(source / "photo00001.png", target / "only", variants={"": outside}, on_event=told.append)
    assert told[-1].message.startswith("Crop 'x'")
    (source / "torn.png").write_bytes(encoded.png().data[:300])
    go(source / "torn.png", target, variants={"a": SPEC, "b": SPEC}, on_event=told.append)
    assert "Variant" not in told[-1].message


def test_variants_need_names_of_their_own(source: Path, target: Path) -> None:
    with pytest.raises(SpecError, match="variant"):
        go(source, target, variants=VARIANTS, template=Template("{stem}.{format}"))


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match="neither a folder"):
        go(tmp_path / "nothing", tmp_path / "out")
    with pytest.raises(SourceUnreachable):
        go("memory://nothing-here-at-all", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(TargetError, match="cannot be made"):
        go(tmp_path, tmp_path / "file")


def test_a_store_without_its_package_names_the_extra(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(MissingDependency, match=r"pip install 'imgsvc\[s3\]'"):
        go(source, "s3://bucket/results", manifest=target / "manifest.sqlite")


def test_one_batch_at_a_time(source: Path, target: Path) -> None:
    go(source, target)
    with (
        Manifest(target / ".imgsvc-batch.sqlite"),
        pytest.raises(TargetError, match="a batch that is running uses it"),
    ):
        go(source, target)


def test_progress_adds_up(source: Path, target: Path) -> None:
    seen: list[Progress] = []
    go(source, target, on_progress=seen.append)
    assert all(now.done >= before.done for before, now in pairwise(seen))
    last = seen[-1]
    assert (last.total, last.listed, last.done) == (6, True, 6)
    assert last.bytes_in == sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    assert last.bytes_out == sum((target / name).stat().st_size for name in results(target))
    assert last.rate > 0


def test_progress_is_told_a_few_times_a_second(source: Path, target: Path) -> None:
    picture = next(path for path in source.rglob("*.png"))
    for number in range(300):
        shutil.copy(picture, source / f"copy{number}.png")
    seen: list[Progress] = []
    summary = go(source, target, on_progress=seen.append, workers=2)
    assert len(seen) < 2 + 6 * summary.seconds


def test_nothing_is_written_when_asked_what_would_be(source: Path, target: Path) -> None:
    from imgsvc_batch import Batch
    from imgsvc_batch.previewing import preview

    planned = Batch(source=str(source), target=str(target), variants={"": SPEC})
    assert [wanted for _, wanted in preview(planned)] == [True] * 6
    assert not target.exists()
    go(source, target)
    assert [wanted for _, wanted in preview(planned)] == [False] * 6


def test_workers_have_ended_before_their_folder_is_removed(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that still writes into it would keep it there."""
    stop, seen = ProcessExecutor.stop, []

    def stop_and_look(executor: ProcessExecutor) -> None:
        stop(executor)
        seen.append(len(list(target.glob(".imgsvc-batch-*"))))

    monkeypatch.setattr(ProcessExecutor, "stop", stop_and_look)
    go(source, target)
    assert seen == [1]
    assert not list(target.glob(".imgsvc-batch-*"))


def test_no_threads_are_left(source: Path, target: Path) -> None:
    before = threading.active_count()
    go(source, target)
    assert threading.active_count() <= before


def test_paths_and_templates_may_be_text(tmp_path: Path) -> None:
    fill(tmp_path / "in", 1)
    options = {"manifest": str(tmp_path / "kept.sqlite"), "template": "small/{stem}.{format}", "workers": 1}
    assert imgsvc_batch.run(str(tmp_path / "in"), str(tmp_path / "out"), {"": SPEC}, **options).done == 1
    assert (tmp_path / "kept.sqlite").exists()
    assert [path.parent.name for path in (tmp_path / "out").rglob("*.webp")] == ["small"]


def test_each_target_has_a_memory_of_its_own(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fs = fsspec.filesystem("memory")
    for name in ("first", "second"):
        target = f"memory://{tmp_path.name}/{name}"
        assert counts(go(source, target)) == (6, 0, 0)
        assert len(fs.find(target)) == 6
    assert len(list(tmp_path.glob("imgsvc-batch-*.sqlite"))) == 2


@pytest.mark.parametrize(
    "spec",
    [
        {"crop": {"width": 64, "height": 64}},
        {"crop": {"mode": "smart", "width": 64, "height": 64}},
        {"flip": {"horizontal": True}},
        {"padding": {"size": 10}},
        {"resize": {"width": 40}},
    ],
)
def test_a_drawing_is_as_large_as_each_variant_alone(spec: dict[str, Any], tmp_path: Path) -> None:
    import imgsvc_core as imgsvc

    head = b'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="80">'
    drawing = head + b'<rect width="50" height="80"/></svg>'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "drawing.svg").write_bytes(drawing)
    spec = {**spec, "output": {"format": "png"}}
    large = {"resize": {"width": 300}, "output": {"format": "png"}}
    go(tmp_path / "in", tmp_path / "out", variants={"large": large, "other": spec})
    written = pyvips.Image.new_from_file(str(tmp_path / "out" / "drawing-other.png"))
    data = imgsvc.process(drawing, spec).data
    assert data is not None
    alone = pyvips.Image.new_from_buffer(data, "")
    assert (written.width, written.height) == (alone.width, alone.height)
    assert (written - alone).abs().max() == 0


def test_copies_of_one_picture_share_a_result_named_by_its_digest(tmp_path: Path) -> None:
    fill(tmp_path / "in", 3)
    (tmp_path / "in" / "copy.png").write_bytes((tmp_path / "in" / "photo00001.png").read_bytes())
    template = "{digest}.{format}"
    assert counts(go(tmp_path / "in", tmp_path / "out", template=template)) == (4, 0, 0)
    assert counts(go(tmp_path / "in", tmp_path / "out", template=template)) == (0, 0, 4)
    assert len({Path(name).name for name in results(tmp_path / "out")}) == 3


def test_results_that_are_gone_are_made_again(source: Path, target: Path) -> None:
    go(source, target)
    (target / "photo00001.webp").unlink()
    assert counts(go(source, target)) == (1, 0, 5)
    assert (target / "photo00001.webp").exists()


def test_another_folders_picture_of_the_same_date_is_another(tmp_path: Path) -> None:
    for name, kind in {"a": encoded.png(), "b": encoded.png()}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_bytes(kind.data)
        os.utime(tmp_path / name / "x.png", (1, 1))
    assert counts(go(tmp_path / "a", tmp_path / "out")) == (1, 0, 0)
    assert counts(go(tmp_path / "b", tmp_path / "out")) == (1, 0, 0)  # the same result, and no collision


def test_widths_tell_variants_apart(source: Path, target: Path) -> None:
    variants = {name: {"resize": {"width": width}} for name, width in {"s": 20, "m": 40}.items()}
    assert counts(go(source, target, variants=variants, template="{stem}-{width}.{format}")) == (6, 0, 0)
    assert len(results(target)) == 12


@pytest.mark.parametrize(
    ("place", "ending", "scheme"),
    [
        *(("out/.kept.sqlite", ending, "") for ending in ("", "-wal", "-shm", "-journal", ".lock")),
        ("link/.kept.sqlite", "", ""),
        ("link/.link.sqlite", "", ""),
        ("link/.link.sqlite", "-wal", "local://"),
    ],
)
def test_the_manifest_is_never_replaced(
    place: str, ending: str, scheme: str, source: Path, target: Path
) -> None:
    """Whatever links lead to it, and whatever leave there is to replace files."""
    target.mkdir()
    (target.parent / "link").symlink_to(target)
    (target / ".link.sqlite").symlink_to(".kept.sqlite")
    for name in (".kept", ".link"):
        (source / f"{name}.jpg").write_bytes(encoded.jpeg().data)
    told: dict[str, Event] = {}
    summary = go(
        f"{source}/.*.jpg",
        f"{scheme}{target}",
        template=f"{{stem}}.sqlite{ending}",
        manifest=target.parent / place,
        overwrite=True,
        on_event=lambda event: told.update({event.key: event}),
    )
    spared = {name for name in (".kept.jpg", ".link.jpg") if told[name].outcome == "failed"}
    assert spared == ({".kept.jpg", ".link.jpg"} if "link.sqlite" in place else {".kept.jpg"})
    assert all("is a file of the batch's manifest" in told[name].message for name in spared)
    assert summary.failed == len(spared)
    with Manifest(target.parent / place, reading=True) as manifest:
        assert manifest.totals().failed == len(spared)


@pytest.mark.parametrize("store", ["folder", "memory"])
@pytest.mark.parametrize("overwrite", [True, False])
def test_variants_of_one_name_share_what_is_the_same_and_fail_otherwise(
    overwrite: bool, store: str, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for name, height in {"square": 100, "wide": 50}.items():
        pyvips.Image.gaussnoise(100, height).cast("uchar").pngsave(str(tmp_path / "in" / f"{name}.png"))
    place = str(target) if store == "folder" else f"memory://{tmp_path.name}"
    told: dict[str, Event] = {}
    summary = go(
        tmp_path / "in",
        place,
        variants={
            "a": {"resize": {"width": 24}, "output": {"format": "png"}},
            "b": {"resize": {"width": 24, "height": 12, "mode": "stretch"}, "output": {"format": "png"}},
        },
        template="{stem}-{width}.{format}",
        manifest=tmp_path / "manifest.sqlite",
        overwrite=overwrite,
        on_event=lambda event: told.update({event.key: event}),
    )
    assert counts(summary) == (1, 1, 0)
    assert told["square.png"].error == "name_collision"
    assert told["square.png"].message == (
        "Its result 'square-24.png' of variant 'b' has the same name as the result of variant 'a': "
        "use a template that tells them apart."
    )
    assert [output.variant for output in told["wide.png"].outputs] == ["a"]
    fs, folder = fsspec.core.url_to_fs(place)
    (written,) = (path for path in fs.find(folder) if "/." not in path)
    assert written.endswith("wide-24.png")
    with Manifest(tmp_path / "manifest.sqlite", reading=True) as manifest:
        assert fs.size(written) == summary.bytes_out == manifest.totals().bytes_out


@pytest.mark.parametrize("text", ["{stem:>99999999999}.{format}", "{stem!r}.{format}"])
def test_templates_hold_names_only(text: str) -> None:
    with pytest.raises(SpecError, match="only names stand in braces"):
        Template(text)


def test_the_time_that_is_left_is_known_once_all_inputs_are() -> None:
    state = Progress(
        total=10,
        listed=True,
        done=2,
        failed=1,
        skipped=2,
        failed_before=0,
        bytes_in=0,
        bytes_out=0,
        seconds=6,
    )
    assert state.remaining_seconds == 10
    assert attrs.evolve(state, listed=False).remaining_seconds is None
    assert attrs.evolve(state, done=0, failed=0).remaining_seconds is None


def test_an_object_with_other_content_is_not_replaced(tmp_path: Path) -> None:
    place = f"memory://{tmp_path.name}"

    def write(data: bytes) -> bool:
        return write_object(place, "a.png", data, "image/png", replace=False)

    assert write(b"one")
    assert not write(b"one")
    for other in (b"two", b"three"):
        with pytest.raises(NameCollision, match="exists already"):
            write(other)


def test_the_first_signal_ends_a_batch_gently_once_it_has_started() -> None:
    early, gentle = Interrupts(), Interrupts()
    with pytest.raises(KeyboardInterrupt):
        early.handle(signal.SIGTERM, None)
    assert not gentle.stop()
    gentle.handle(signal.SIGTERM, None)
    assert gentle.stop()
    with pytest.raises(KeyboardInterrupt):
        gentle.handle(signal.SIGTERM, None)


def test_threads_that_stop_begin_no_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(_: object, tasks: object) -> None:
        begun.set()
        go_on.wait(60)

    monkeypatch.setattr(executors, "run_tasks", work)
    threads = executors.ThreadExecutor(cast("Any", None), 1)
    _, waiting = threads.submit(()), threads.submit(())
    begun.wait(60)
    threads.stop()
    go_on.set()
    assert waiting.cancelled()
