"""A log that nobody reads stops nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from imgsvc_http.server import log_writer
from imgsvc_http.server.log_writer import LogWriter
from tests.http.calls import call, upload
from tests.http.service_process import await_start
from tests.support import encoded, forked_services

LINES = 3000
LONG = "x" * 1000


def notice(lost: int) -> str:
    return f"lost {lost}"


def read_all(descriptor: int, until: bytes) -> list[str]:
    """Return the lines up to the first that is the end."""
    found = b""
    while not found.endswith(until):
        assert select.select([descriptor], [], [], 60)[0], found[-100:]
        found += os.read(descriptor, 1 << 16)
    return found.decode().splitlines()


def fill(descriptor: int) -> int:
    """Fill a pipe, which stays in the mode that does not block. Return the number of bytes."""
    os.set_blocking(descriptor, False)
    filled = 0
    for piece in (b"." * 4096, b"."):
        with contextlib.suppress(BlockingIOError):
            while count := os.write(descriptor, piece):
                filled += count
    return filled


def test_lines_that_do_not_fit_are_counted_and_told_at_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    gate = threading.Event()  # until all are told, none is written
    monkeypatch.setattr(log_writer, "time", SimpleNamespace(sleep=lambda _: gate.wait()))
    writer = LogWriter(writing, notice, most_bytes=500_000)
    for number in range(LINES):
        writer.write(f"{number} {LONG}")
    lost = writer.lost
    assert 0 < lost < LINES
    gate.set()
    found = read_all(reading, f"lost {lost}\n".encode())
    writer.write("flows again")
    found += read_all(reading, b"flows again\n")
    numbers = [int(line.split()[0]) for line in found if LONG in line]
    assert numbers == list(range(LINES - lost))
    assert found[-2:] == [f"lost {lost}", "flows again"]
    assert writer.lost == lost


def test_a_log_that_is_refused_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "full"
    path.symlink_to("/dev/full")
    descriptor = os.open(path, os.O_WRONLY)
    writer = LogWriter(descriptor, notice)
    writer.write("first")
    writer.flush()
    assert writer.lost == 1
    with (tmp_path / "log").open("wb") as room:
        os.dup2(room.fileno(), descriptor)
    writer.write("second")
    while "lost" not in (tmp_path / "log").read_text():
        writer.flush()
    assert (tmp_path / "log").read_text() == "second\nlost 1\n"


def test_a_forked_process_has_a_queue_and_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "_RETRY_SECONDS", 600)  # only after a line that was refused
    reading, writing = os.pipe()
    writer = LogWriter(writing, notice)
    for line in ("parent", "again"):
        writer.write(line)
        writer.flush()
    pid = os.fork()
    if pid == 0:
        writer.write("child")
        writer.flush()
        os._exit(0)
    os.waitpid(pid, 0)
    assert read_all(reading, b"child\n") == ["parent", "again", "child"]
    assert threading.active_count() >= 1


@pytest.mark.asyncio
@pytest.mark.parametrize("processes", [1, 2])
async def test_a_service_whose_log_nobody_reads_answers(processes: int, tmp_path: Path) -> None:
    """Its pipe is filled before the first request: not even one line fits."""
    reading, writing = os.pipe()
    settings = {
        "server.port": 0, "server.state_folder": tmp_path / "state", "workers.number": 2,
        "server.processes": processes,
    }  # fmt: skip
    flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    process = forked_services.start(["serve", *flags], writing)
    try:
        service = await asyncio.to_thread(await_start, process, tmp_path / "state")
        filled = fill(writing)
        async with service.client() as client:
            for _ in range(20):
                replies = await asyncio.gather(*(call(client, "GET", "/healthz") for _ in range(50)))
                assert {reply.status for reply in replies} == {200}
            assert (await upload(client, encoded.jpeg().data)).status == 200
        found = await asyncio.to_thread(os.read, reading, filled)
        assert len(found) > 0
        process.terminate()
        os.close(writing)
        rest = await asyncio.to_thread(_rest_of, reading)
        assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        process.kill()
        process.communicate()
    assert rest.count(b"GET /healthz 200") == 1000
    assert not re.search(rb"lines of the log were lost", rest)


def _rest_of(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def test_a_thread_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    reading, writing = os.pipe()
    writer = LogWriter(writing, notice)
    with monkeypatch.context() as refusing:
        refusing.setattr("threading.Thread.start", refuse)
        writer.write("first")
    writer.write("second")
    assert read_all(reading, b"second\n") == ["first", "second"]


def test_what_is_being_written_has_its_room_in_the_queue() -> None:
    reading, writing = os.pipe()
    writer = LogWriter(writing, notice, most_bytes=500_000)
    fill(writing)
    writer.write("first")
    time.sleep(0.2)  # it is being written
    for _ in range(400):
        writer.write(LONG)
    assert writer.lost == 0
    found = b""
    while b"first\n" not in found:
        found += os.read(reading, 1 << 16)
    time.sleep(0.2)  # the others are
    for _ in range(200):
        writer.write(LONG)
    assert writer.lost > 50


def test_lines_that_a_full_disk_refuses_are_told_with_those_lost_before() -> None:
    reading, writing = os.pipe()
    descriptor = os.open("/dev/full", os.O_WRONLY)
    writer = LogWriter(descriptor, notice, most_bytes=100)
    writer.write("x" * 60)
    writer.write("y" * 60)
    deadline = time.monotonic() + 60
    while writer.lost < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.dup2(writing, descriptor)
    writer.write("flows again")
    found = b""
    while found.count(b"\n") < 2:
        found += os.read(reading, 1 << 16)
    assert found == b"flows again\nlost 2\n"
