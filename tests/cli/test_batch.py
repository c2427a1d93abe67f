"""``imgsvc batch`` as a person or a script runs it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from imgsvc_batch import Progress
from imgsvc_cli import app, printing
from imgsvc_cli.batch_display import _status
from imgsvc_core import inspect
from tests.batch.pictures import SPEC, VARIANTS, fill, results
from tests.support import encoded, forked_python

COMMAND = [sys.executable, "-m", "imgsvc_cli", "batch"]


pytestmark = pytest.mark.usefixtures("shared_fork_server")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests, as workers are forked from a process that is in it."""
    return tmp_path_factory.mktemp("batch")


@pytest.fixture
def folder(place: Path) -> Path:
    """Six pictures and a broken one, and requests beside them."""
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    fill(place / "in", 6)
    (place / "in" / "broken.jpg").write_bytes(b"broken")
    (place / "spec.json").write_text(json.dumps(SPEC))
    for name, spec in VARIANTS.items():
        (place / f"{name}.json").write_text(json.dumps(spec))
    return place


def run(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which needs no start of Python."""
    given, out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape") for _ in range(3))
    given.write(stdin)
    given.seek(0)
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "stdin", given)
        code = app.run(["batch", *arguments])
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def run_process(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command as a shell does."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (12, "12 B"), (999, "999 B"), (1234, "1.2 kB"), (123_456, "123 kB"), (2_500_000, "2.5 MB"),
     (1_234_000_000, "1.2 GB")],
)  # fmt: skip
def test_sizes_have_a_unit(size: int, shown: str) -> None:
    assert printing.size(size) == shown


def test_in_words(folder: Path) -> None:
    done = run_process(folder, "in", "out", "--spec", "spec.json")
    assert done.returncode == 7
    assert done.stdout == ""
    assert re.search(r"^broken\.jpg: .*broken\.jpg", done.stderr, re.MULTILINE)
    assert re.search(r"6 done, 1 failed, 0 skipped in .* kB became .* (B|kB)\.", done.stderr)
    assert "imgsvc batch report" in done.stderr
    assert "--retry" in done.stderr
    assert len(results(folder / "out")) == 6
    (folder / "in" / "broken.jpg").unlink()
    assert run_process(folder, "in", "out", "--spec", "-", stdin=json.dumps(SPEC)).returncode == 0


def test_what_resume_skips_because_it_failed_is_told_by_the_exit_code(folder: Path) -> None:
    assert run(folder, "in", "out", "--spec", "spec.json").returncode == 7
    resumed = run(folder, "in", "out", "--spec", "spec.json", "--resume")
    assert resumed.returncode == 7
    assert "0 done, 0 failed, 7 skipped (1 of them failed before)" in resumed.stderr
    assert "--retry" in resumed.stderr
    (folder / "in" / "broken.jpg").write_bytes((folder / "in" / "photo00001.png").read_bytes())
    assert run(folder, "in", "out", "--spec", "spec.json", "--retry").returncode == 0
    assert run(folder, "in", "out", "--spec", "spec.json", "--resume").returncode == 0


def test_in_json(folder: Path) -> None:
    done = run_process(folder, "in", "out", "--json", *(f"--variant={name}={name}.json" for name in VARIANTS))
    *events, last = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 7
    assert sorted(event["outcome"] for event in events) == ["done"] * 6 + ["failed"]
    assert {output["path"] for event in events for output in event["outputs"]} == set(results(folder / "out"))
    summary = last["summary"]
    assert (summary["done"], summary["failed"], summary["interrupted"]) == (6, 1, False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.04, "0:00.0"), (59.94, "0:59.9"), (59.96, "1:00.0"), (3599, "59:59.0"), (7325.4, "2:02:05")],
)
def test_the_time_that_is_left(seconds: float, shown: str) -> None:
    progress = Progress(
        total=2, listed=True, done=1, failed=0, skipped=0, failed_before=0, bytes_in=0, bytes_out=0,
        seconds=seconds,
    )  # fmt: skip
    assert _status(progress).endswith(f"{shown} left")


def test_without_a_terminal_lines_tell_the_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imgsvc_cli.batch_display._LINE_SECONDS", 0)
    done = run(folder, "in", "out", "--spec", "spec.json")
    assert re.search(r"^\d of 7.*, \d failed, \d+\.\d/s", done.stderr, re.MULTILINE)
    assert "failed" not in done.stdout


def test_on_a_terminal_it_is_live(folder: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*COMMAND, "in", "out", "--spec", "spec.json", "--workers", "1"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "160"}
    process = subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    assert process.wait() == 7
    text = shown.decode()
    assert "7 of 7, 1 failed" in text
    for word in ("%", "/s", "left", "saved"):
        assert word in text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # its other end is closed
        return b""


def test_what_would_happen(folder: Path) -> None:
    done = run(folder, "in", "out", "--spec", "spec.json", "--dry-run")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 7
    assert "7 would be processed, 0 skipped." in done.stderr
    assert not (folder / "out").exists()
    run(folder, "in", "out", "--spec", "spec.json")
    again = run(folder, "in", "out", "--spec", "spec.json", "--dry-run", "--json")
    told = {line["key"]: line["process"] for line in map(json.loads, again.stdout.splitlines())}
    assert [key for key, wanted in told.items() if wanted] == ["broken.jpg"]


def test_why_inputs_failed(folder: Path) -> None:
    (folder / "in" / "empty.png").write_bytes(b"")
    (folder / "in" / "text.webp").write_bytes(b"text")
    run(folder, "in", "out", "--spec", "spec.json")
    done = run(folder, "report", "out", "--failures")
    assert "9 inputs: 6 done, 3 failed" in done.stdout
    assert re.search(r"2  unsupported_format: .*\n\s+broken\.jpg, text\.webp", done.stdout)
    assert re.search(r"1  empty_source: .*\n\s+empty\.png", done.stdout)
    told = json.loads(run(folder, "report", "out", "--failures", "--json", "--html", "page.html").stdout)
    assert [item["key"] for item in told["failures"]] == ["broken.jpg", "empty.png", "text.webp"]
    assert told["totals"]["done"] == 6
    assert "empty_source" in (folder / "page.html").read_text()


def test_only_what_failed_is_tried_again(folder: Path) -> None:
    run(folder, "in", "out", "--spec", "spec.json", "--report", "page.html")
    assert "unsupported_format" in (folder / "page.html").read_text()
    (folder / "in" / "broken.jpg").write_bytes(encoded.jpeg().data)
    done = run(folder, "in", "out", "--spec", "spec.json", "--retry")
    assert done.returncode == 0, done.stderr
    assert "1 done, 0 failed" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["in", "out", "--spec", "spec.json", "--variant", "a=b.json"], 2, "either --spec or --variant"),
        (["in", "out", "--spec", "nothing.json"], 2, "got 'nothing.json': No such file or directory\n"),
        (["in", "out", "--spec", "in/broken.jpg"], 2, "must name a JSON file"),
        (["in", "out", "--spec", "twice.json"], 2, "occurs more than once"),
        (["in", "out", "--spec", "deep.json"], 2, "nested more than 100 levels deep"),
        (["in", "out", "--variant", "thumb=twice.json"], 2, "occurs more than once"),
        (["in", "out", "--variant", "thumb"], 2, "NAME=FILE"),
        (["in", "out", "--spec", "wrong.json"], 2, "Resize 'width' parameter must be"),
        (["in", "out", "--spec", "spec.json", "--name", "{size}.png"], 2, "there is no field {size}"),
        (["in", "in", "--spec", "spec.json"], 2, "another folder than the source"),
        (["nothing", "out", "--spec", "spec.json"], 3, "neither a folder"),
        (["in", "spec.json", "--spec", "spec.json"], 5, "cannot be made"),
        (["in", "what://out", "--spec", "spec.json"], 5, "what://out"),
        (["in", "out", "--spec", "spec.json", "--cluster", "nonsense://"], 3, "No scheduler answers"),
        (["in", "", "--spec", "spec.json"], 2, "must be a path or a URL"),
        (["in", "s3://", "--spec", "spec.json"], 2, "must be the URL of a bucket"),
        (["in", "out\udcff", "--spec", "spec.json"], 2, "must be UTF-8"),
        (["in\udcff", "out", "--spec", "spec.json"], 2, "must be UTF-8"),
        (["in", "out", "--spec", "spec.json", "--name", "{stem}\udcff.png"], 2, "must be UTF-8"),
        (["in", "out", "--variant", "thumb\udcff=spec.json"], 2, "that are UTF-8"),
        (["in", "out", "--spec", "\udcff.json"], 2, "must name a JSON file"),
        (["in", "out", "--spec", "spec.json", "--dry-run", "--report", "\udcff"], 0, "would be processed"),
        (["report", "out"], 2, "does not exist"),
    ],
)
def test_mistakes(arguments: list[str], code: int, text: str, folder: Path) -> None:
    (folder / "wrong.json").write_text('{"resize": {"width": -5, "depth": 1}}')
    (folder / "deep.json").write_text('{"resize": ' + "[" * 900 + "]" * 900 + "}")
    (folder / "twice.json").write_text('{"output": {"format": "webp", "format": "png"}}')
    done = run(folder, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert text in done.stderr
    assert not results(folder / "out")


def test_help(folder: Path) -> None:
    assert "imgsvc batch SOURCE TARGET --spec spec.json" in run(folder, "--help").stdout
    for option in (
        "--resume",
        "--retry",
        "--force",
        "--dry-run",
        "--cluster",
        "--report",
        "--json",
        "--name",
    ):
        assert option in run(folder, "run", "--help").stdout


def test_a_page_that_cannot_be_written_is_refused_at_once(folder: Path) -> None:
    done = run(folder, "in", "out", "--spec", "spec.json", "--report", "nowhere/page.html")
    assert (done.returncode, "nowhere/page.html" in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("ending", "linked"),
    [("", False), ("-wal", False), ("-shm", False), ("-journal", False), (".lock", False), ("", True)],
)
def test_a_page_in_the_place_of_the_manifest_is_refused_at_once(
    ending: str, linked: bool, folder: Path
) -> None:
    page = manifest = f"kept.sqlite{ending}"
    if linked:
        page = "page.html"
        (folder / page).symlink_to(manifest)
    arguments = ["--spec", "spec.json", "--manifest", "kept.sqlite"]
    done = run(folder, "in", "out", *arguments, "--report", page)
    assert done.returncode == 2
    assert f"must be a file that can be written, got '{page}': it is a file of the batch's" in done.stderr
    assert not (folder / "out").exists()
    assert not (folder / manifest).exists()


def test_a_page_of_an_earlier_batch_never_takes_the_place_of_its_manifest(folder: Path) -> None:
    run(folder, "in", "out", "--spec", "spec.json")
    (folder / "link.sqlite").symlink_to("out/.imgsvc-batch.sqlite")
    for arguments in (["out", "--html", "link.sqlite"], ["--manifest=link.sqlite", "--html=link.sqlite"]):
        done = run(folder, "report", *arguments)
        assert (done.returncode, "must be a file that can" in done.stderr) == (2, True)
    assert "6 done, 1 failed" in run(folder, "report", "out").stdout


def test_what_would_be_tried_again_is_shown(folder: Path) -> None:
    run(folder, "in", "out", "--spec", "spec.json")
    (folder / "in" / "new.png").write_bytes(encoded.png().data)
    done = run(folder, "in", "out", "--spec", "spec.json", "--dry-run", "--retry")
    assert done.stdout.splitlines() == ["broken.jpg (6 B)"]
    assert "1 would be processed" in done.stderr
    done = run(folder, "in", "out", "--spec", "spec.json", "--dry-run")
    assert [line.partition(" ")[0] for line in done.stdout.splitlines()] == ["broken.jpg", "new.png"]


def test_a_target_with_a_url_is_reported_by_it(folder: Path) -> None:
    target = f"local://{folder}/out"
    run(folder, "in", target, "--spec", "spec.json")
    assert "7 inputs: 6 done, 1 failed" in run(folder, "report", target).stdout


def test_the_page_may_be_in_a_target_that_is_not_there_yet(folder: Path) -> None:
    arguments = ["--report", "out/pages/page.html", "--limit", "output_pixels=600"]
    done = run(folder, "in", "out", "--spec", "spec.json", *arguments)
    assert done.returncode == 7, done.stderr
    page = (folder / "out" / "pages" / "page.html").read_text()
    assert "</html>" in page
    assert (page.count("<img"), page.count("at most 600")) == (6, 6)  # only results are small enough


@pytest.mark.parametrize("option", ["--variant", "--watermark"])
def test_a_name_is_given_once(option: str, folder: Path) -> None:
    done = run(
        folder, "in", "out", *(f"--variant={name}={name}.json" for name in VARIANTS),
        option, "thumb=card.json", option, "thumb=hero.json",
    )  # fmt: skip
    assert done.returncode == 2
    assert "each name once, got 'thumb' twice" in done.stderr
    assert not (folder / "out").exists()


def test_what_would_fail_for_its_name_is_shown(folder: Path) -> None:
    (folder / "in" / "photo00001.jpg").write_bytes(encoded.jpeg().data)
    (folder / "in" / f"{'n' * 251}.png").write_bytes(encoded.png().data)
    (folder / "in" / os.fsdecode(b"caf\xe9.jpg")).write_bytes(encoded.jpeg().data)
    (folder / "out").mkdir()
    (folder / "out" / "photo00002.webp").write_text("precious")
    arguments = ["in", "out", "--spec", "spec.json"]
    foretold = run(folder, *arguments, "--dry-run")
    assert "4 of them would fail" in foretold.stderr
    assert re.search("photo00001.*has the name of the result of", foretold.stderr)
    assert "File name too long" in foretold.stderr
    assert "exists already" in foretold.stderr
    assert "not UTF-8" in foretold.stderr
    done = run(folder, *arguments)
    assert "5 failed" in done.stderr  # and a broken one, which is not read before
    again = run(folder, *arguments, "--dry-run", "--json")
    problems = [line for line in map(json.loads, again.stdout.splitlines()) if line.get("problem")]
    assert len(problems) == 4


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_an_interrupt_before_all_else_says_how_to_go_on(folder: Path, flags: tuple[str, ...]) -> None:
    def interrupted(early: str) -> tuple[int, bool]:
        code = (
            "import sys; from imgsvc_batch import runner; from imgsvc_cli.app import run\n"
            "def interrupted(*_, **__): raise KeyboardInterrupt\n"
            f"{early} = interrupted; sys.exit(run(sys.argv[1:]))"
        )
        command = ["-c", code, "batch", "in", "out", "--spec", "spec.json", *flags]
        done = forked_python.run(*command, folder=folder)
        return done.returncode, "--resume" in done.stderr

    nothing_begun, begun = "runner.prepare", "runner.ProcessExecutor"
    assert interrupted(nothing_begun) == (130, False)
    assert interrupted(begun) == (130, True)
    run(folder, "in", "out", "--spec", "spec.json")
    assert interrupted(nothing_begun) == (130, False)  # the run before is none to go on with
    assert interrupted(begun) == (130, True)


def test_flags_and_presets_are_those_of_process(folder: Path) -> None:
    preset = "[presets.card]\nresize = {width = 6}\nfilter = {sepia = {value = 40}}\n"
    (folder / "imgsvc.toml").write_text(preset)
    (folder / "logo.png").write_bytes(encoded.png().data)
    flags = ["--preset", "card", "--config", "imgsvc.toml", "--format", "webp", "--watermark", "logo.png"]
    (folder / "in" / "broken.jpg").unlink()
    done = run(folder, "in", "out", *flags)
    assert done.returncode == 0, done.stderr
    single = subprocess.run(
        [*COMMAND[:-1], "process", "in/photo00001.png", "-o", "one.webp", *flags],
        cwd=folder, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert single.returncode == 0, single.stderr
    assert (folder / "out" / "photo00001.webp").read_bytes() == (folder / "one.webp").read_bytes()


def test_a_picture_by_an_id_comes_before_a_file_of_that_name(folder: Path) -> None:
    (folder / "logo.png").write_bytes(encoded.png().data)
    (folder / "mark").write_bytes(b"broken")
    (folder / "marked.json").write_text('{"watermark": {"id": "mark"}}')
    arguments = ("in", "out", "--spec", "marked.json", "--dry-run")
    assert run(folder, *arguments).returncode == 3
    done = run(folder, *arguments, "--watermark", "mark=logo.png")
    assert done.returncode == 0, done.stderr


def test_flags_complete_each_variant(folder: Path) -> None:
    variants = [f"--variant={name}={name}.json" for name in VARIANTS]
    done = run(folder, "in", "out", *variants, "--format", "gif", "--name", "{variant}/{stem}.{format}")
    assert done.returncode == 7, done.stderr
    assert {path.rpartition(".")[2] for path in results(folder / "out")} == {"gif"}
    assert len(results(folder / "out")) == 6 * len(VARIANTS)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["in", "out"], "Say what to do"),
        (["in", "out", "--watermark", "none.png"], "'none.png' does not exist"),
        (["in", "out", "--watermark", "a.json", "--watermark", "b.json"], "one picture, got 'a.json' and"),
        (["in", "nothing.jpg", "out", "--sepia", "40"], "Source '.*nothing.jpg' does not exist"),
        (["in", "s3://bucket", "out", "--sepia", "40"], "paths of this machine where it has several"),
    ],
)
def test_what_cannot_be_a_batch_is_said_before_anything_is_made(
    arguments: list[str], expected: str, folder: Path
) -> None:
    done = run(folder, *arguments)
    assert done.returncode in (2, 3)
    assert re.search(expected, done.stderr)
    assert not (folder / "out").exists()


def test_a_shell_may_spell_out_the_sources(folder: Path) -> None:
    fill(folder / "in" / "more", 2)
    files = sorted(str(path.relative_to(folder)) for path in (folder / "in").glob("photo*.png"))
    done = run(folder, *files, "in/more", "out", "--resize", "4x")
    assert done.returncode == 0, done.stderr
    assert f"{len(files) + 2} done" in done.stderr
    assert {path.partition("/")[0] for path in results(folder / "out") if "/" in path} == {"more"}
    again = run(folder, "in/more", *files, files[0], "out", "--resize", "4x")
    assert f"0 done, 0 failed, {len(files) + 2} skipped" in again.stderr


def test_quiet_prints_failures_only(folder: Path) -> None:
    done = run(folder, "in", "out", "--spec", "spec.json", "--quiet")
    assert done.returncode == 7
    assert done.stdout == ""
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["broken.jpg"]
    assert run(folder, "in/photo*.png", "out", "--spec", "spec.json", "--quiet").stderr == ""


def test_files_that_are_no_pictures_are_counted(folder: Path) -> None:
    for name in ("a.txt", "b.TXT", "c.pdf", ".hidden.jpg", "README"):
        (folder / "in" / name).touch()
    (folder / "in" / "folder.jpg").symlink_to(folder)
    done = run(folder, "in", "out", "--spec", "spec.json")
    assert "6 other files were passed over: 2 .txt, 1 .pdf, 1 hidden, 1 link, 1 no suffix." in done.stderr
    told = run(folder, "in", "out", "--spec", "spec.json", "--json").stdout.splitlines()[-1]
    kinds = {".txt": 2, ".pdf": 1, "hidden": 1, "link": 1, "no suffix": 1}
    assert json.loads(told)["summary"]["passed_over"] == kinds


def test_nothing_found_is_a_failure(folder: Path) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").touch()
    done = run(folder, "texts", "out", "--spec", "spec.json")
    assert done.returncode == 3
    assert "Source 'texts' holds no pictures; 1 other file was passed over: 1 .txt." in done.stderr
    assert run(folder, "in/*.gif", "out", "--spec", "spec.json", "--json").returncode == 3
    several = run(folder, "in/*.gif", "texts", "out", "--spec", "spec.json")
    assert "Source 'in/*.gif, ...' holds no pictures" in several.stderr


def test_a_batch_in_place_may_make_files_larger(folder: Path) -> None:
    (folder / "small").mkdir()
    photo = folder / "small" / "photo.jpg"
    Image.fromarray(encoded.photo()).save(photo, quality=40)
    assert run(folder, "small", "--in-place", "--quality", "95", "--quiet").returncode == 0
    assert inspect(photo).quality == 40
    assert run(folder, "small", "--in-place", "--quality", "95", "--no-if-smaller", "--quiet").returncode == 0
    assert inspect(photo).quality == 95


def test_in_place(folder: Path) -> None:
    done = run(folder, "in", "--in-place", "--quality", "10", "--quiet")
    assert done.returncode == 7
    assert done.stderr.startswith("broken.jpg: ")
    assert results(folder / "in") == sorted(["broken.jpg", *fill(folder / "same", 6)])
    (folder / "in" / "broken.jpg").unlink()
    again = run(folder, "in", "--in-place", "--quality", "10")
    assert again.stderr.startswith("0 done (0 replaced, 0 left alone), 0 failed, 6 skipped in ")
    told = run(folder, "in/*.png", "--in-place", "--json", "--manifest", "m.sqlite").stdout.splitlines()
    summary = json.loads(told[-1])["summary"]
    assert summary["kept"] == sum(json.loads(line)["kept"] for line in told[:-1]) == summary["done"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["in"], "Missing argument 'TARGET'; with --in-place the results replace SOURCE."),
        (["--in-place"], "Missing argument 'SOURCE...'."),
        (["in", "out"], "Say what to do, such as --resize 300x300"),
        (["in", "--in-place", "--format", "webp"], "Output 'format' parameter must not be given in place"),
        (["in", "--in-place", "--name", "{stem}.{ext}"], "'template' parameter must not be given in place"),
        (["in", "out", "--in-place"], "Source '{folder}/out' does not exist."),
    ],
)
def test_what_in_place_needs(folder: Path, arguments: list[str], told: str) -> None:
    done = run(folder, *arguments)
    assert done.returncode in (2, 3)
    assert told.format(folder=folder, stem="{stem}", ext="{ext}") in done.stderr
