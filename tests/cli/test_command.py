"""The command as a person or a script runs it."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from imgsvc_cli import exit_codes
from imgsvc_cli.app import run as in_process
from imgsvc_core import errors
from tests.process.pictures import pixels_of
from tests.support import commands, encoded
from tests.support.perceptual import distance
from tests.support.photos import as_vips, coffee

COMMAND = [sys.executable, "-m", "imgsvc_cli"]


def run(
    *arguments: object, stdin: bytes | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return commands.run(*map(str, arguments), stdin=stdin or b"", folder=cwd)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    as_vips(coffee()).jpegsave(str(path), Q=92)
    return path


def test_from_heic_to_webp(tmp_path: Path) -> None:
    (tmp_path / "photo.heic").write_bytes(encoded.heic().data)
    arguments = ["process", "photo.heic", "-o", "out.webp", "--resize", "80x60", "--mode", "fit"]
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"photo.heic 96x64 ")
    assert b" -> out.webp 80x60 " in done.stdout
    info = imgsvc.inspect(tmp_path / "out.webp")
    assert (info.format, info.width, info.height) == ("webp", 80, 60)


def test_a_watermark_from_a_long_path(photo: Path, tmp_path: Path) -> None:
    folder = tmp_path / (100 * "a") / (100 * "b")
    folder.mkdir(parents=True)
    Image.new("RGB", (9, 9), "red").save(folder / "mark.png")
    done = run("process", photo, "--watermark", folder / "mark.png", "-o", "out.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    marked = imgsvc.process(tmp_path / "out.png", {}).to_numpy()
    assert (marked == [255, 0, 0]).all(axis=2).sum() == 81


def test_codecs_do_not_write_past_the_command(tmp_path: Path) -> None:
    data = encoded.tiff().data
    where = data.index(b"\x03\x01\x03\x00\x01\x00\x00\x00") + 8  # compression, one short number
    (tmp_path / "photo.tif").write_bytes(data[:where] + (34712).to_bytes(2, "little") + data[where + 2 :])
    done = run("process", "photo.tif", "-o", "out.png", cwd=tmp_path)
    assert done.returncode == 3
    message = (
        b"imgsvc: TIFF image 'photo.tif' cannot be read: its compression 34712 is not supported; "
        b"save it with deflate.\n"
    )
    assert done.stderr == message


def test_libraries_write_nothing_beside_the_command(tmp_path: Path) -> None:
    """libtiff writes to the file of standard error, Pillow warns, and pyvips decodes what is no UTF-8."""
    Image.fromarray(coffee()).save(tmp_path / "lzma.tif", compression="lzma")
    whole = (tmp_path / "lzma.tif").read_bytes()
    (tmp_path / "lzma.tif").write_bytes(whole[:2000] + bytes(100) + whole[2100:])
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    beyond = profile[:136] + b"\xff\xff\xff\xf0" + profile[140:]  # where its first tag is
    part = b"iCCP" + b"Profil d'\xe9cran\0\0" + zlib.compress(beyond)
    chunk = struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
    png = encoded.png().data
    end = png.index(b"IHDR") + 4 + 13 + 4
    (tmp_path / "named.png").write_bytes(png[:end] + chunk + png[end:])
    Image.fromarray(coffee()).save(tmp_path / "cut.tif", compression="zstd", icc_profile=profile)
    os.truncate(tmp_path / "cut.tif", (tmp_path / "cut.tif").stat().st_size - 100)
    for source, code in (("lzma.tif", 3), ("named.png", 0), ("cut.tif", 0)):
        done = run("process", source, "-o", "out.webp", "--metadata", "keep", cwd=tmp_path)
        told = done.stderr.decode()
        assert (done.returncode, told.count("\n")) == (code, bool(code)), told
        assert not told or told.startswith(f"imgsvc: {source}: The TIFF image")


def test_pipes(photo: Path) -> None:
    command = [*COMMAND, "process", "-", "-o", "-", "--resize", "150x", "--format", "png"]
    done = subprocess.run(command, input=photo.read_bytes(), capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert distance(pixels_of(done.stdout), as_vips(coffee()).resize(0.25).numpy()) < 0.02
    assert b"standard input 600x400" in done.stderr
    told = run("inspect", "-", "--json", stdin=photo.read_bytes())
    assert json.loads(told.stdout)["width"] == 600


def test_the_request_may_come_from_a_file(photo: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text('{"resize": {"width": 90}, "filter": {"sepia": {"value": 50}}}')
    done = run("process", photo, "-o", tmp_path / "a.png", "--spec", spec, "--resize-width", "60")
    assert done.returncode == 0, done.stderr
    assert imgsvc.inspect(tmp_path / "a.png").width == 60
    piped = run("process", photo, "-o", tmp_path / "b.png", "--spec", "-", stdin=spec.read_bytes())
    assert piped.returncode == 0, piped.stderr
    assert imgsvc.inspect(tmp_path / "b.png").width == 90
    spec.write_text('{"resize": {"width": 30}}', encoding="utf-8-sig")
    marked = run("process", photo, "-o", tmp_path / "c.png", "--spec", "-", stdin=spec.read_bytes())
    assert marked.returncode == 0, marked.stderr
    for text in ("{", "[]", '{"resize": 5}'):
        spec.write_text(text)
        assert run("process", photo, "--spec", spec).returncode == 2
    assert run("process", photo, "--spec", tmp_path / "missing.json").returncode == 2
    spec.write_text('{"resize": {"width": 5}, "resize": {"width": 6}}')
    twice = run("process", photo, "--spec", spec)
    assert (twice.returncode, b"'resize' occurs more than once" in twice.stderr) == (2, True)


def test_names_that_no_terminal_can_show_are_spelt(photo: Path, tmp_path: Path) -> None:
    source = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jpg"))
    photo.rename(source)
    command = [*COMMAND, "process", source, "-o", tmp_path / "out.webp"]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"caf\\udce9.jpg" in done.stdout
    assert (tmp_path / "out.webp").exists()


def test_results_without_a_name_lie_beside_the_source(photo: Path) -> None:
    assert run("process", photo, "--format", "webp").returncode == 0
    made = photo.with_name("photo-out.webp")
    before = made.read_bytes()
    again = run("process", photo, "--format", "webp", "--sepia", "90")
    assert again.returncode == 5
    assert b"exists already" in again.stderr
    assert made.read_bytes() == before
    assert run("process", photo, "--format", "webp", "--sepia", "90", "--force").returncode == 0
    assert made.read_bytes() != before


def test_many_sources_go_on_after_a_bad_one(photo: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no picture")
    other = tmp_path / "other.png"
    as_vips(coffee()).pngsave(str(other))
    folder = tmp_path / "results"
    done = run("process", photo, bad, other, "-o", f"{folder}/", "--resize", "40x")
    assert done.returncode == 3
    assert sorted(path.name for path in folder.iterdir()) == ["other.png", "photo.jpg"]
    assert done.stderr.count(b"\n") == 1
    assert b"bad.jpg" in done.stderr
    assert run("process", photo, other, "-o", tmp_path / "one.jpg").returncode == 5
    again = run("process", bad, photo, "-o", f"{folder}/", "--resize", "40x")
    assert (again.returncode, again.stderr.count(b"exists already")) == (3, 1)  # the first failure counts


def test_no_result_takes_the_place_of_another(photo: Path, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(photo, tmp_path / folder)
    as_vips(coffee()).pngsave(str(tmp_path / "photo.png"))
    for arguments, name in (
        (["a/photo.jpg", "b/photo.jpg", "-o", "made/"], "made/photo.jpg"),
        (["photo.jpg", "photo.png", "-o", "made/", "--format", "webp"], "made/photo.webp"),
        (["photo.jpg", "./photo.png", "--format", "webp"], "photo-out.webp"),
        (["a/photo.jpg", "a/../a/photo.jpg"], "a/../a/photo-out.jpg"),
    ):
        done = run("process", *arguments, "--force", cwd=tmp_path)
        assert done.returncode == 5
        assert f"would both be named '{name}'" in done.stderr.decode()
    assert len(list(tmp_path.rglob("*"))) == 6
    done = run("process", "photo.jpg", "photo.png", "a/photo.jpg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("*-out.*"))) == 3


def test_the_name_tells_the_format_that_was_chosen(photo: Path, tmp_path: Path) -> None:
    noise = np.random.default_rng(3).integers(0, 2, (90, 120), np.uint8) * 255
    Image.fromarray(noise).save(tmp_path / "noise.gif")
    chosen = set()
    for arguments in (["photo.jpg", "--sepia", "5"], ["photo.jpg", "--quality", "1"], ["noise.gif"]):
        done = run(
            "process", *arguments, "--format", "auto", "-o", "made/", "--json", "--force", cwd=tmp_path
        )
        told = json.loads(done.stdout)["output"]
        (made,) = (tmp_path / "made").iterdir()
        assert (made.name, imgsvc.inspect(made).format) == (told["name"], told["format"])
        assert made.suffix == imgsvc.FORMATS[told["format"]].suffix
        chosen.add(told["format"])
        made.unlink()
    assert len(chosen) > 1


def test_json_of_results_and_errors(photo: Path, tmp_path: Path) -> None:
    done = run("process", photo, "-o", tmp_path / "a.webp", "--json")
    told = json.loads(done.stdout)
    assert told["success"] is True
    assert told["output"]["format"] == "webp"
    failed = run(
        "process", photo, "-o", tmp_path / "b.webp", "--json", "--brightness", "900", "--quality", "0"
    )
    assert failed.returncode == 2
    error = json.loads(failed.stdout)
    assert error["error"] == "invalid_parameter"
    assert [item["path"] for item in error["errors"]] == ["adjust.brightness", "output.quality"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["process"], 2),
        (["nonsense"], 2),
        (["process", "{photo}", "--nonsense"], 2),
        (["process", "{photo}", "--brightness", "101"], 2),
        (["process", "missing.jpg"], 3),
        (["process", "{photo}", "-o", "a.jpg", "--resize", "20000x20000"], 4),
        (["process", "{photo}", "-o", "nowhere/a.jpg"], 5),
        (["process", "{photo}", "-o", "a.png", "--crop", "5x5", "--crop-x", "4000"], 6),
        (["inspect", "missing.jpg"], 3),
        (["explain"], 2),
        (["explain", "{photo}", "--size", "2x3"], 2),
        (["explain", "--size", "\u00b2x3"], 2),
        (["--version"], 0),
        (["--help"], 0),
    ],
)
def test_exit_codes(arguments: list[str], code: int, photo: Path, tmp_path: Path) -> None:
    done = run(*(argument.format(photo=photo) for argument in arguments), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert bool(done.stderr) == bool(code)
    assert b"\x1b[" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SpecError([errors.Problem("a", "wrong")]), 2),
        (errors.SourceUnreachable("away"), 3),
        (errors.ImageTooLarge("large"), 4),
        (errors.WorkerDied("died"), 4),
        (errors.TargetError("full"), 5),
        (errors.UnsupportedOperation("no crop"), 6),
        (errors.MissingDependency("no package"), 6),
        (errors.MachineFailed("no files"), 8),
        (ValueError("ours"), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert exit_codes.exit_code(error) == code


def test_each_problem_has_a_line(photo: Path) -> None:
    boxes = photo.with_name("boxes.json")
    boxes.write_text('[{"faces": true}, {"faces": 1}]')
    done = run("process", photo, "--brightness", "900", "--hue", "x", "--sepia", "-1", "--redact", boxes)
    assert done.stderr.decode().splitlines() == [
        "imgsvc: redact[1].faces: Redact 'faces' parameter must be boolean, true or false, got 1",
        "imgsvc: Adjust 'brightness' parameter must be integer within -100 to 100 range, got 900",
        "imgsvc: Adjust 'hue' parameter must be integer within -180 to 180 range, got \"x\"",
        "imgsvc: Sepia 'value' parameter must be float within 0 to 100 range, got -1",
    ]


def test_json_names_sources_and_what_is_to_blame(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("photo.jpg").write_bytes(encoded.jpeg().data)
    Path("broken.jpg").write_bytes(b"broken")
    Path("layers.json").write_text('[{"picture": {"source": "none.png"}}]')
    assert in_process(["inspect", "broken.jpg", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["source"] == "broken.jpg"
    assert in_process(["process", "photo.jpg", "--layers", "layers.json", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert [problem["path"] for problem in told["errors"]] == ["layers[0].picture.source"]
    assert in_process(["explain", "--size", "400x300", "--resize", "200x", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert (planned["input"]["width"], planned["output"]["height"]) == (400, 150)


def test_a_folder_needs_no_slash(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "photo.jpg").write_bytes(encoded.jpeg().data)
    assert in_process(["process", str(tmp_path / "photo.jpg"), "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "photo.jpg").is_file()


def test_inspect_explain_formats_schema(photo: Path) -> None:
    told = run("inspect", photo).stdout.decode()
    assert "upright" not in told
    assert "width        600" in told
    assert "quality      92" in told
    plan = run("explain", photo, "--resize", "100x", "--contrast", "10", "--hue", "20").stdout.decode()
    assert "LUT of contrast 10; matrix of hue 20" in plan
    assert "1/4 of its size" in plan
    imagined = run("explain", "--size", "4000x3000", "--resize", "100x", "--json")
    assert json.loads(imagined.stdout)["load"]["scale"] == 0.125
    rows = json.loads(run("formats", "--json").stdout)
    assert {row["name"] for row in rows} == set(imgsvc.FORMATS)
    assert all(row["reads"] for row in rows)
    assert "Animated PNG" in run("formats").stdout.decode()
    assert json.loads(run("schema").stdout) == imgsvc.request_schema()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert b"_IMGSVC_COMPLETE" in done.stdout
    if shell == "bash" and shutil.which("bash"):
        subprocess.run(["bash", "-n"], input=done.stdout, check=True)


def test_a_shell_that_is_left_out_is_told_in_a_line() -> None:
    done = run("completion")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].endswith(b"Choose from bash, zsh, fish")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("process ph", ["file,ph"]),
        ("process photo.jpg ph", ["file,ph"]),
        ("process photo.jpg -o ma", ["file,ma"]),
        ("process --spec ", ["file,"]),
        ("process --watermark l", ["file,l"]),
        ("inspect ph", ["file,ph"]),
        ("batch pho", ["file,pho"]),
        ("batch rep", ["file,rep", "plain,report"]),
        ("batch photos out", ["file,out"]),
        ("process --mode f", ["plain,fit", "plain,fill"]),
        ("process --resize-mode st", ["plain,stretch"]),
        ("process --format we", ["plain,webp"]),
        ("process --gravity bottom-", ["plain,bottom-left", "plain,bottom-right"]),
        ("process --crop ", ["plain,face"]),
        ("explain --source-format ap", ["plain,apng"]),
    ],
)
def test_shells_offer_files_and_words(line: str, offered: list[str]) -> None:
    words = ["imgsvc", *line.split(" ")]
    asked = {"COMP_WORDS": " ".join(words).strip(), "COMP_CWORD": str(len(words) - 1)}
    environment = {**os.environ, **asked, "_IMGSVC_COMPLETE": "bash_complete"}
    told = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert sorted(told.stdout.splitlines()) == sorted(offered)


def test_the_help_has_a_section_for_every_operation() -> None:
    told = run("process", "--help").stdout.decode()
    for operation in (*imgsvc.OPERATIONS.values(), *imgsvc.FILTERS):
        assert f"\n{operation.title}: " in told


def test_every_format_loads_in_the_guarded_process(tmp_path: Path) -> None:
    sources = [encoded.jpeg(), encoded.jp2(), encoded.png(), encoded.apng(), encoded.gif(), encoded.webp()]
    sources += [encoded.heic(), encoded.avif(), encoded.tiff(), encoded.svg()]
    paths = []
    for index, source in enumerate(sources):
        paths.append(tmp_path / f"{index}.bin")
        paths[-1].write_bytes(source.data)
    done = run("process", *paths, "-o", f"{tmp_path}/made/", "--format", "png")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "made").iterdir())) == len(sources)
    script = (
        "from imgsvc_core._runtime.libvips import guard\nguard()\nimport pyvips, sys\n"
        "try:\n    pyvips.Image.csvload(sys.argv[1])\n"
        "except pyvips.Error as error:\n    print('blocked', error)\n"
    )
    table = tmp_path / "table.csv"
    table.write_text("1,2\n3,4\n")
    assert subprocess.check_output([sys.executable, "-c", script, str(table)]).startswith(b"blocked")


def test_guarding_again_disturbs_nobody_who_reads(tmp_path: Path) -> None:
    """As every task of a cluster does, in a process whose other threads are at work."""
    script = (
        "import sys, threading, pyvips\n"
        "from imgsvc_core._runtime.libvips import guard\n"
        "guard()\n"
        "def again():\n    for _ in range(2000): guard()\n"
        "threads = [threading.Thread(target=again) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for _ in range(500): pyvips.Image.new_from_file(sys.argv[1])\n"
        "for thread in threads: thread.join()\n"
        "print('read')\n"
    )
    picture = tmp_path / "picture.png"
    picture.write_bytes(encoded.png().data)
    done = subprocess.run([sys.executable, "-c", script, picture], capture_output=True, text=True, timeout=60)
    assert done.stdout == "read\n", done.stderr


_WITH_DELAY = """
import sys
from imgsvc_cli import progress
progress._DELAY = float(sys.argv[1])
from imgsvc_cli.app import run
sys.exit(run(sys.argv[2:]))
"""


def _on_a_terminal(*arguments: object, delay: float = 1, **environment: str) -> str:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _WITH_DELAY, str(delay), *map(str, arguments)],
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    process.wait(timeout=60)
    os.close(leader)
    return shown.decode(errors="replace")


def test_progress_is_shown_on_a_terminal_for_long_work_only(photo: Path, tmp_path: Path) -> None:
    quick = _on_a_terminal("process", photo, "-o", tmp_path / "a.jpg", "--resize", "50x", delay=60)
    assert "\x1b[?25l" not in quick
    slow = _on_a_terminal("process", photo, "-o", tmp_path / "a.avif", "--effort", "4", delay=0.001)
    assert "\x1b[?25l" in slow
    assert "photo.jpg" in slow
    assert "\x1b[31mimgsvc:" in _on_a_terminal("process", "missing.jpg")
    assert _on_a_terminal("process", "missing.jpg", NO_COLOR="1").startswith("imgsvc:")


def test_an_interrupt_ends_it() -> None:
    process = subprocess.Popen([*COMMAND, "inspect", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(bytes(1 << 20))  # more than a pipe holds: by the end of it the command reads
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.strip() == b"imgsvc: interrupted"


@pytest.mark.parametrize(
    "arguments",
    [["formats"], ["--help"], ["inspect", "PHOTO"], ["process", "PHOTO", "-o", "made.webp", "--json"]],
)
def test_standard_output_that_takes_nothing_is_told(
    arguments: list[str], photo: Path, tmp_path: Path
) -> None:
    command = [*COMMAND, *(str(photo) if part == "PHOTO" else part for part in arguments)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, cwd=tmp_path, check=False
        )
    told = f"imgsvc: Standard output cannot be written: {os.strerror(errno.ENOSPC)}."
    assert (done.returncode, done.stderr.strip()) == (5, told)


def test_other_failures_are_not_blamed_on_standard_output() -> None:
    code = (
        "from imgsvc_cli.app import cli, run\n"
        "@cli.command()\n"
        "def fail(): raise ConnectionRefusedError(111, 'refused')\n"
        "run(['fail'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ConnectionRefusedError: [Errno 111] refused"


@pytest.mark.parametrize(
    "line", ["process a.jpg -o a.png", "batch . small --quality 75", "batch {photo} small --quality 75"]
)
def test_a_current_folder_that_was_deleted_is_told(
    line: str,
    photo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert in_process(line.format(photo=photo).split()) == 8
    assert capsys.readouterr().err == "imgsvc: The current folder no longer exists: change to another one.\n"


def test_too_few_open_files_are_told(photo: Path, tmp_path: Path) -> None:
    line = f"ulimit -n 9; {sys.executable} -m imgsvc_cli batch {photo} {tmp_path} --quality 75"
    ended = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 8
    assert ended.stderr.startswith("imgsvc: The machine refuses to go on (Too many open files)")


def test_standard_error_may_be_closed(photo: Path, tmp_path: Path) -> None:
    line = f"{sys.executable} -m imgsvc_cli process {photo} -o {tmp_path}/made.webp 2>&-"
    subprocess.run(line, shell=True, check=True, stdout=subprocess.DEVNULL)
    assert imgsvc.inspect(tmp_path / "made.webp").format == "webp"


def test_a_closed_pipe_is_no_error(photo: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m imgsvc_cli process --help | head -1",
        shell=True,
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    assert io.BytesIO(done.stdout).readline().startswith(b"Usage: imgsvc process")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["proces", "photo.jpg"], "There is no command 'proces': did you mean 'process'?"),
        (["zzz"], "There is no command 'zzz': expected one of accounts, batch, "),
        (["process", "photo.jpg", "--formt", "webp"], "--format"),
        (
            ["process", "photo.jpg", "--widht", "300"],
            "No such option '--widht'. Did you mean '--resize-width'?",
        ),
        (["process", "photo.jpg", "--qualty", "9"], "No such option '--qualty'. Did you mean '--quality'?"),
        (["process", "cut.jpg", "-o", "out.png"], "imgsvc: cut.jpg: The JPEG image is damaged or truncated"),
        (["process", "-", "-o", "out.png"], "imgsvc: standard input: "),
        (["process", "photo.jpg", "--watermark", "none.png"], "picture, 'none.png' does not exist"),
        (["process", "photo.jpg", "--watermark", "."], "picture, '.' is no file"),
        (["process", "photo.jpg", "--watermark", "photo.jpg/a"], "'photo.jpg/a' cannot be read: Not a dir"),
        (["process", "photo.jpg", "-o", "photo.jpg"], "is the source itself; use --force to replace it"),
        (["process", "photo.jpg", "-o", "link.jpg"], "is the source itself; use --force to replace it"),
    ],
)
def test_a_refusal_says_what_it_is_about(
    arguments: list[str], expected: str, photo: Path, tmp_path: Path
) -> None:
    (tmp_path / "link.jpg").symlink_to("photo.jpg")
    before = photo.read_bytes()
    (tmp_path / "cut.jpg").write_bytes(before[: len(before) // 2])
    done = run(*arguments, cwd=tmp_path, stdin=b"text")
    assert done.returncode in (2, 3, 5)
    lines = done.stderr.decode().splitlines()
    assert lines[0].startswith("imgsvc: ")
    assert expected in lines[0]
    assert photo.read_bytes() == before


def test_the_source_is_replaced_only_by_force(photo: Path, tmp_path: Path) -> None:
    arguments = ["process", "photo.jpg", "-o", "photo.jpg", "--resize", "40x", "--force"]
    assert run(*arguments, cwd=tmp_path).returncode == 0
    assert imgsvc.inspect(photo).width == 40


def test_what_the_format_cannot_hold_is_told(tmp_path: Path) -> None:
    (tmp_path / "moving.gif").write_bytes(encoded.gif_animated().data)
    done = run("process", "moving.gif", "-o", "still.jpg", cwd=tmp_path)
    assert done.returncode == 0
    assert b"moving.gif: Only the first of " in done.stderr
