"""The state folder: private whoever made it, and used by one service at a time."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from imgsvc_core.errors import SpecError
from imgsvc_http.state.folder import check_scratch, make_contents_private, make_private
from tests.http.calls import upload
from tests.http.service_process import await_start, running, start
from tests.support import encoded

pytestmark = pytest.mark.asyncio


def readable_by_others(folder: Path) -> list[Path]:
    return [path for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


async def test_everything_in_it_is_private_whoever_made_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    old = state / "temporary" / "old"
    old.mkdir(parents=True)
    (old / "result.png").write_bytes(b"picture")
    for path in (state, state / "temporary", old):
        path.chmod(0o755)
    (old / "result.png").chmod(0o644)
    with running(state) as service:
        async with service.client() as client:
            assert (await upload(client, encoded.png().data)).status == 200
            asked = {"webhook": {"url": "https://localhost:1/", "delay": 600}}
            assert (await upload(client, encoded.png().data, asked)).status == 202
        assert readable_by_others(state) == []
        assert len(list((state / "temporary").iterdir())) == 2


async def test_loose_contents_of_a_private_folder_are_made_private(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running(state):
        pass
    (state / "temporary" / "result.png").write_bytes(b"picture")
    for path in (state / "temporary" / "result.png", state / "imgsvc.db"):
        path.chmod(0o644)
    (state / "temporary").chmod(0o755)
    with running(state):
        assert (state / "imgsvc.db-wal").exists()
        assert readable_by_others(state) == []


async def test_a_folder_that_a_link_names_is_made_private(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("state")
    make_private(tmp_path / "link")
    assert readable_by_others(tmp_path / "state") == []


async def test_links_have_to_lead_to_something_private(tmp_path: Path) -> None:
    state, outside = tmp_path / "state", tmp_path / "outside"
    outside.mkdir(mode=0o755)
    state.mkdir(mode=0o700)
    (state / "temporary").symlink_to(outside)
    with pytest.raises(SpecError, match=f"leads to '{outside}', which others can access: chmod go= "):
        make_contents_private(state)
    assert outside.stat().st_mode & 0o777 == 0o755
    outside.chmod(0o700)
    make_contents_private(state)


@pytest.mark.parametrize(("name", "check"), [("", make_private), ("temporary", make_contents_private)])
async def test_what_belongs_to_another_user_is_refused(
    tmp_path: Path, name: str, check: Callable[[Path], None]
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    state = tmp_path / "state"
    (state / "temporary").mkdir(parents=True, mode=0o700)
    os.chown(state / name, 65534, 65534)
    with pytest.raises(SpecError, match="belongs to user 65534: change its owner"):
        check(state)


async def test_a_mounted_volume_of_root_is_refused_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Kubernetes mounts an emptyDir: all may write into it, and only root may change its mode."""
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume").chmod(0o777)

    def forbidden(path: Path, mode: int, **_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", forbidden)
    with pytest.raises(
        SpecError, match=r"others can access .*: name a folder in it, which the service makes"
    ):
        make_private(tmp_path / "volume")
    make_private(tmp_path / "volume" / "imgsvc")


async def test_what_belongs_to_root_is_private_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has files of root")
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    make_private(tmp_path / "state")


async def test_a_new_folder_for_temporary_files_is_private(tmp_path: Path) -> None:
    check_scratch(tmp_path / "scratch")
    assert (tmp_path / "scratch").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("cleaned", [False, True])
async def test_a_second_service_is_refused_and_harms_nothing(tmp_path: Path, cleaned: bool) -> None:
    state = tmp_path / "state"
    with running(state) as service:
        (state / "incoming" / "under-way").write_bytes(b"source")
        user = f"process {service.process.pid}"
        if cleaned:  # of whatever was made to keep others out
            for name in ("lock", "service.pid"):
                (state / name).unlink(missing_ok=True)
            user = "another process"
        second = start(state)
        try:
            assert await asyncio.to_thread(second.wait, 60) != 0
        finally:
            second.kill()
            second.communicate()
        log = (tmp_path / "state.log").read_text()
        assert "'server.state_folder' must be a folder that no other service uses" in log
        assert f"{user} uses it" in log
        assert "Traceback" not in log
        assert (state / "incoming" / "under-way").read_bytes() == b"source"
        (state / "incoming" / "under-way").unlink()
        async with service.client() as client:
            assert (await upload(client, encoded.png().data)).status == 200


async def test_a_killed_service_leaves_the_folder_free(tmp_path: Path) -> None:
    first = start(tmp_path / "state")
    service = await asyncio.to_thread(await_start, first, tmp_path / "state")
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    second = start(tmp_path / "state")
    try:
        await asyncio.to_thread(await_start, second, tmp_path / "state", service.key)
    finally:
        second.kill()
        second.communicate()
