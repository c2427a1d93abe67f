"""Batches that are killed, interrupted, or run out of room."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from imgsvc_batch import Manifest
from tests.batch.pictures import SPEC, fill, results
from tests.support import encoded, forked_python, requires
from tests.support.forked_python import COMMAND, ForkedPython
from tests.support.processes import descendants_of

COUNT = 300
WORKERS = 2
UNDER_WAY = WORKERS * 4 * 16  # inputs that workers have been given: some tasks each, of as many as make one


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    fill(folder, COUNT)
    return folder


def start(
    source: Path,
    target: Path,
    *arguments: str,
    request: object = SPEC,
    session: bool = False,
    ignored: Sequence[signal.Signals] = (),
) -> ForkedPython:
    command = batch(source, target, *arguments, request=request)
    return forked_python.start(*command, session=session, ignored=ignored)


def batch(source: Path, target: Path, *arguments: str, request: object = SPEC) -> list[str]:
    spec = target.parent / "spec.json"
    spec.write_text(json.dumps(request))
    return [*COMMAND, "batch", str(source), str(target), "--spec", str(spec), *arguments]


def wait_for_results(target: Path, count: int, process: ForkedPython) -> None:
    deadline = time.monotonic() + 60

    def found() -> int:  # while a folder of an earlier run may be deleted
        return sum(name.endswith(".webp") for _, _, names in os.walk(target) for name in names)

    while found() < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_end(family: Sequence[int]) -> None:
    """Wait for workers of a dead process, which end by themselves."""
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in family):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_at_any_moment_it_goes_on_with_what_is_left(pictures: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    moments = random.Random(7)
    written: dict[str, int] = {}
    family: list[int] = []
    for number in range(5):
        resume = ["--resume"] if number else []
        process = start(pictures, target, "--json", "--workers", str(WORKERS), *resume)
        wait_for_results(target, len(written) + moments.randrange(10, 50), process)
        family += descendants_of(process.pid)
        process.kill()
        process.communicate()
        now = {name: (target / name).stat().st_mtime_ns for name in results(target) if name.endswith("webp")}
        written = now
    wait_for_end(family)
    process = start(pictures, target, "--json", "--resume")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert summary["failed"] == 0
    assert len(results(target)) == COUNT
    assert summary["done"] <= COUNT - len(written) + UNDER_WAY  # those may be done again
    kept = sum(written[name] == (target / name).stat().st_mtime_ns for name in written)
    assert kept >= len(written) - UNDER_WAY
    assert not list(target.glob(".imgsvc-batch-*"))


@pytest.mark.parametrize(
    ("number", "group", "ignored", "code"),
    [
        (signal.SIGINT, True, (), 130),
        (signal.SIGINT, False, (), 130),
        (signal.SIGTERM, True, (), 143),
        (signal.SIGTERM, False, (), 143),
        (signal.SIGHUP, False, (), 129),
        (signal.SIGTERM, False, [signal.SIGINT], 143),  # as of a script that starts it with &
        (signal.SIGHUP, True, [signal.SIGINT], 129),
        (signal.SIGTERM, True, [signal.SIGINT, signal.SIGHUP], 143),  # and with nohup
    ],
)
def test_a_signal_ends_it_cleanly_and_soon(
    number: signal.Signals,
    group: bool,
    ignored: Sequence[signal.Signals],
    code: int,
    pictures: Path,
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.html"
    for attempt in range(5):  # again where it was nearly done before this process had its turn
        target = tmp_path / f"out{attempt}"
        process = start(pictures, target, "--report", str(page), session=True, ignored=ignored)
        wait_for_results(target, 20, process)
        # To all of them, as by a terminal, or to one, as by a scheduler.
        os.killpg(process.pid, number) if group else process.send_signal(number)
        done = len(results(target))
        _, err = process.communicate(timeout=60)
        if done + UNDER_WAY < COUNT:
            break
    assert len(results(target)) <= done + UNDER_WAY < COUNT
    assert process.returncode == code
    assert "--resume" in err
    assert "Traceback" not in err
    assert "resource_tracker" not in err
    assert not list(target.glob(".imgsvc-batch-*"))
    if number == signal.SIGTERM and not ignored:  # what is left is the same however it ended
        assert finish(start(pictures, target, "--resume")) == 0
        assert len(results(target)) == COUNT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_a_script_has_ignored_stays_so(number: signal.Signals, pictures: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    process = start(pictures, target, ignored=[signal.SIGINT, signal.SIGHUP])
    wait_for_results(target, 20, process)
    process.send_signal(number)
    assert finish(process) == 0
    assert len(results(target)) == COUNT


def start_script(
    source: Path, target: Path, before: str = "", ignored: Sequence[signal.Signals] = ()
) -> ForkedPython:
    script = target.parent / "script.py"
    script.write_text(
        "import imgsvc_batch, signal, sys\n"
        "if __name__ == '__main__':\n"
        f"    {before or 'pass'}\n"
        f"    places = {str(source)!r}, {str(target)!r}\n"
        f"    summary = imgsvc_batch.run(*places, {{'': {SPEC}}}, workers={WORKERS})\n"
        "    print('interrupted' if summary.interrupted else 'complete')\n"
    )
    return forked_python.start(str(script), ignored=ignored)


@pytest.mark.parametrize(
    ("number", "ignored", "code", "told"),
    [
        (signal.SIGTERM, (), -signal.SIGTERM, ""),
        (signal.SIGTERM, [signal.SIGINT], -signal.SIGTERM, ""),  # as of a shell that starts it with &
        (signal.SIGHUP, [signal.SIGINT], -signal.SIGHUP, ""),
        (signal.SIGINT, (), 0, "interrupted\n"),
        (signal.SIGHUP, [signal.SIGHUP], 0, "complete\n"),  # as with nohup
    ],
)
def test_a_signal_ends_the_batch_of_a_script_cleanly(
    number: signal.Signals,
    ignored: Sequence[signal.Signals],
    code: int,
    told: str,
    pictures: Path,
    tmp_path: Path,
) -> None:
    target = tmp_path / "out"
    process = start_script(pictures, target, ignored=ignored)
    wait_for_results(target, 20, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, told, "")
    assert not list(target.glob(".imgsvc-batch-*"))
    written = {name for name in results(target) if name.endswith("webp")}
    with Manifest(target / ".imgsvc-batch.sqlite", reading=True) as manifest:
        assert manifest.totals().done == len(written)
    if number == signal.SIGINT:  # what is left is the same however it ended
        assert finish(start(pictures, target, "--resume")) == 0
        assert len(results(target)) == COUNT


def test_a_handler_of_the_script_decides_on_its_signal(pictures: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    handler = "signal.signal(signal.SIGTERM, lambda *_: print('handled', flush=True))"
    process = start_script(pictures, target, handler)
    wait_for_results(target, 20, process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "handled\ncomplete\n"), err


def worked(process: subprocess.Popen[str]) -> float:
    """Return the processor time of a process, in seconds."""
    times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def test_an_interrupt_waits_for_no_thread_that_computes(tmp_path: Path) -> None:
    """Places in memory are worked on in the process itself, and nothing stops an encoder."""
    source, spec = tmp_path / "in", tmp_path / "spec.json"
    source.mkdir()
    (source / "large.png").write_bytes(encoded.png().data)
    spec.write_text(json.dumps({"resize": {"width": 6000}, "output": {"format": "avif", "effort": 9}}))
    command = [sys.executable, "-m", "imgsvc_cli", "batch", str(source), "memory://out", "--spec", str(spec)]
    manifest = ["--manifest", str(tmp_path / "manifest.sqlite")]
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([*command, *manifest], stderr=subprocess.PIPE, text=True)
    while worked(process) < 3:  # more than a start takes
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime < 9  # the picture takes 20
    assert process.returncode == 130
    assert "--resume" in err


def test_an_interrupt_while_the_page_is_written_is_heeded(pictures: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("the one before")
    target = tmp_path / "out"
    assert finish(start(pictures, target)) == 0
    slow = (
        "import time, sys; from imgsvc_batch import report; from imgsvc_cli.app import run; "
        "image = report._image\n"
        "def slowly(made):\n print('drawing', flush=True); time.sleep(3); return image(made)\n"
        "report._image = slowly; sys.exit(run(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", slow, "batch", "report", str(target), "--html", str(page)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "drawing\n"
    process.send_signal(signal.SIGINT)
    code = process.wait(timeout=60)
    _, err = process.communicate(timeout=60)  # workers that were about to start end a little later
    assert code == 130, err
    assert "Traceback" not in err
    assert page.read_text() == "the one before"


def imports(process: subprocess.Popen[str]) -> bool:
    """True once a command is in the midst of its imports."""
    return "_sqlite3" in Path(f"/proc/{process.pid}/maps").read_text()


def heeds_signals(process: subprocess.Popen[str]) -> bool:
    """True once a command has set what signals do to it, and not only Python for Ctrl-C."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize(
    ("moment", "seconds"), [(imports, 0), (imports, 0.05), (heeds_signals, 0), (heeds_signals, 0.1)]
)
def test_an_interrupt_before_the_first_result_is_as_clean(
    pictures: Path, tmp_path: Path, moment: Callable[[subprocess.Popen[str]], bool], seconds: float
) -> None:
    command = [sys.executable, *batch(pictures, tmp_path / "out")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not moment(process):
        assert process.poll() is None
        time.sleep(0.001)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize("force", [False, True])
def test_an_interrupt_while_it_waits_for_a_cluster_loses_no_new_input(
    force: bool, pictures: Path, tmp_path: Path
) -> None:
    """After a run that came to its end."""
    requires.module("distributed")
    source, target = tmp_path / "in", tmp_path / "out"
    fill(source, 3)
    assert finish(start(source, target)) == 0
    shutil.copy(next(pictures.glob("*.png")), source / "new.png")
    forced = ["--force"] if force else []
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        process = start(source, target, "--cluster", address, *forced)
        connection, _ = mute.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in err
    out, _ = start(source, target, "--resume", "--json", *forced).communicate(timeout=60)
    assert json.loads(out.splitlines()[-1])["summary"]["done"] == (4 if force else 1)


def test_after_a_kill_other_work_replaces_what_was_written(pictures: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    for width, results_first in ((24, 50), (32, 120), (40, 200)):
        request = {"resize": {"width": width}, "output": {"format": "webp"}}
        process = start(pictures, target, request=request)
        wait_for_results(target, results_first, process)
        family = descendants_of(process.pid)
        process.kill()
        process.communicate()
        wait_for_end(family)
    process = start(pictures, target, "--json", request={"output": {"format": "webp"}})
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out[-2000:] + err
    assert json.loads(out.splitlines()[-1])["summary"]["failed"] == 0
    assert not list(target.glob(".imgsvc-batch-*"))


def test_an_interrupted_retry_goes_on(pictures: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    shutil.copytree(pictures, source)
    good = {path: path.read_bytes() for path in source.rglob("*.*")}
    for path in good:
        path.write_bytes(b"broken")
    assert finish(start(source, target)) == 7
    for path, data in good.items():
        path.write_bytes(data)
    process = start(source, target, "--retry")
    wait_for_results(target, 50, process)
    process.send_signal(signal.SIGINT)
    assert finish(process) == 130
    assert finish(start(source, target, "--retry")) == 0
    assert len(results(target)) == COUNT


def finish(process: ForkedPython) -> int:
    process.communicate(timeout=120)
    return process.returncode


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    if not shutil.which("mount") or os.geteuid() != 0:
        pytest.skip("needs root, to make a small disk")
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this machine does not let a test mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=False)


def test_a_disk_that_fills_up_costs_no_result_twice(pictures: Path, tmp_path: Path) -> None:
    target = tmp_path / "small"
    with small_disk(target, "300k"):
        see_failures(
            start(pictures, target, "--manifest", str(tmp_path / "manifest.sqlite"), "--json"), target
        )


def test_a_full_disk_that_holds_the_manifest_ends_it(pictures: Path, tmp_path: Path) -> None:
    target = tmp_path / "small"
    with small_disk(target, "300k"):
        process = start(pictures, target)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 5, err
        assert "Manifest" in err
        assert "with resume" in err
        assert "Traceback" not in err
        subprocess.run(["mount", "-o", "remount,size=50m", str(target)], check=True)
        assert finish(start(pictures, target)) == 0
        assert len(results(target)) == COUNT


def test_reports_need_only_to_read(pictures: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    with small_disk(target, "50m"):
        assert finish(start(pictures, target)) == 0
        subprocess.run(["mount", "-o", "remount,ro", str(target)], check=True)
        for arguments in ([str(target)], [str(target), "--html", str(tmp_path / "page.html")]):
            shown = forked_python.run(*COMMAND, "batch", "report", *arguments)
            assert shown.returncode == 0, shown.stderr
            assert f"{COUNT} done" in shown.stdout or "--html" in arguments


def see_failures(process: ForkedPython, target: Path) -> None:
    """Check that every input is done, or has failed for lack of room."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 7, out[-500:] + err
    events = [json.loads(line) for line in out.splitlines()]
    assert events.pop()["summary"]["total"] == len(events) == COUNT
    failed = [event for event in events if event["outcome"] == "failed"]
    assert failed
    assert {event["error"] for event in failed} == {"target_unwritable"}
    assert "No space left" in failed[0]["message"]
    assert not list(target.glob(".imgsvc-batch-*"))
    done = [event for event in events if event["outcome"] == "done"]
    assert len(results(target)) == len(done)
    for event in done:
        assert (target / event["outputs"][0]["path"]).stat().st_size == event["outputs"][0]["bytes"]
