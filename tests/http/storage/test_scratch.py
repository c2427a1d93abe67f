"""Temporary files lie in a folder of the service's own, whose loss is the fault of the machine."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from imgsvc_core.errors import MachineFailed, ScratchUnwritable
from imgsvc_http.answering.errors import as_refusal
from imgsvc_http.webhooks.transient import is_transient
from tests.http.calls import assert_failure, call, upload
from tests.http.service_process import ended, running
from tests.http.storage.test_full_disk import fill
from tests.support import photos

OUT_OF_ORDER = {"rotate": {"angle": 10}}


@pytest.fixture
def photo(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A photograph for which libvips needs a temporary file, as it does for larger ones by itself."""
    monkeypatch.setenv("VIPS_DISC_THRESHOLD", "1m")
    return bytes(photos.as_vips(photos.mosaic(1000, 800)).jpegsave_buffer(Q=90, interlace=True))


@pytest.mark.asyncio
async def test_the_systems_folder_for_temporary_files_harms_nothing(
    photo: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with running(tmp_path / "state") as service:
        async with service.client() as client:
            assert (await upload(client, photo, OUT_OF_ORDER)).status == 200
        assert list((tmp_path / "state/scratch").iterdir()) == []


@pytest.mark.asyncio
async def test_a_full_folder_is_told_and_work_goes_on_when_there_is_room_again(
    photo: bytes, small_disk: Path, tmp_path: Path
) -> None:
    scratch = small_disk / "scratch"
    with running(tmp_path / "state", {"server.scratch_folder": scratch}) as service:
        async with service.client() as client:
            await asyncio.to_thread(fill, small_disk / "filler")
            refused = await upload(client, photo, OUT_OF_ORDER)
            assert_failure(refused, 507, "scratch_unwritable", "not at fault")
            assert int(refused.headers["Retry-After"]) > 0
            assert str(scratch) not in refused.body.decode()
            ready = await call(client, "GET", "/readyz")
            assert_failure(ready, 503, "not_ready", "temporary files")
            (small_disk / "filler").unlink()
            assert (await upload(client, photo, OUT_OF_ORDER)).status == 200


@pytest.mark.asyncio
async def test_a_folder_that_vanishes_is_told(photo: bytes, tmp_path: Path) -> None:
    with running(tmp_path / "state") as service:
        async with service.client() as client:
            assert (await call(client, "GET", "/readyz")).status == 200
            shutil.rmtree(tmp_path / "state/scratch")
            assert_failure(await upload(client, photo, OUT_OF_ORDER), 507, "scratch_unwritable", "Retry")
            for _ in range(5):
                assert_failure(await call(client, "GET", "/readyz"), 503, "not_ready", "temporary files")
            (tmp_path / "state/scratch").mkdir()
            deadline = time.monotonic() + 60
            while (await call(client, "GET", "/readyz")).status != 200:
                assert time.monotonic() < deadline
    log = (tmp_path / "state.log").read_text()
    assert log.count(f"Make room in {tmp_path / 'state/scratch'}") == log.count("Ready again.") == 1


def test_the_start_refuses_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    scratch = ["--set", f"server.scratch_folder={tmp_path / 'file'}"]
    code, told = ended(tmp_path / "log", "--state", str(tmp_path / "state"), *scratch)
    assert code == 2, told
    assert "'server.scratch_folder'" in told
    assert str(tmp_path / "file") in told
    assert "Traceback" not in told


def test_a_folder_of_the_operators_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with running(tmp_path / "state", {"server.scratch_folder": shared}):
        assert shared.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize(("error", "status"), [(ScratchUnwritable("x"), 507), (MachineFailed("x"), 503)])
def test_failures_of_the_machine_are_answered_as_such_and_jobs_try_again(
    error: MachineFailed, status: int
) -> None:
    refused = as_refusal(error, "id")
    assert (refused.status, refused.headers["Retry-After"]) == (status, "10")
    assert is_transient(error)
    assert as_refusal(OSError(24, "Too many open files"), "id").status == 503
    assert as_refusal(RuntimeError("can't start new thread"), "id").status == 503
