"""Sources in archives, which stay open."""

from __future__ import annotations

import io
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from imgsvc_core import Limits
from imgsvc_core.errors import SourceUnreachable
from imgsvc_core.sources import open_bytes, open_filesystem

MEMBERS = {f"folder/{number}.jpg": bytes([number]) * 100_000 for number in range(40)}


def pack(path: Path, members: dict[str, bytes]) -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def read(name: str, archive: Path) -> bytes:
    scheme = "zip" if archive.suffix == ".zip" else "tar"
    return open_bytes(f"{scheme}://{name}::{archive}", Limits()).read()


@pytest.mark.parametrize("name", ["pictures.zip", "pictures.tar", "pictures.tar.gz"])
def test_members_are_read_by_several_threads(name: str, tmp_path: Path) -> None:
    archive = tmp_path / name
    pack(archive, MEMBERS)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda member: read(member, archive), MEMBERS)) == list(MEMBERS.values())


@pytest.mark.parametrize("name", ["pictures.zip", "pictures.tar"])
def test_an_archive_is_opened_once_until_it_changes(name: str, tmp_path: Path) -> None:
    archive = tmp_path / name
    pack(archive, MEMBERS)
    scheme = archive.suffix[1:]
    first, path = open_filesystem(f"{scheme}://folder/1.jpg::{archive}")
    assert path == "folder/1.jpg"
    assert open_filesystem(f"{scheme}://folder/2.jpg::file://{archive}")[0].isfile("folder/2.jpg")
    assert open_filesystem(f"{scheme}://folder/2.jpg::{archive}")[0] is first
    pack(archive, {"folder/1.jpg": b"other"})
    assert read("folder/1.jpg", archive) == b"other"
    with pytest.raises(SourceUnreachable, match=r"folder/2\.jpg"):
        read("folder/2.jpg", archive)


@pytest.mark.parametrize("name", ["pictures.zip", "pictures.tar", "pictures.tar.gz"])
@pytest.mark.parametrize("written", ["./folder/a.jpg", "/folder/a.jpg", "folder//a.jpg", "folder/./a.jpg"])
def test_members_have_plain_names_however_they_are_written(written: str, name: str, tmp_path: Path) -> None:
    """``tar -cf pictures.tar .`` writes ``./`` before all names."""
    pack(tmp_path / name, {written: b"picture"})
    assert read("folder/a.jpg", tmp_path / name) == read(written, tmp_path / name) == b"picture"


def test_a_missing_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match=r"missing\.zip"):
        read("a.jpg", tmp_path / "missing.zip")


@pytest.mark.parametrize("name", ["pictures.zip", "pictures.tar"])
def test_a_missing_member_is_told_in_plain_words(name: str, tmp_path: Path) -> None:
    pack(tmp_path / name, {"a.jpg": b"a"})
    with pytest.raises(SourceUnreachable) as caught:
        read("b.jpg", tmp_path / name)
    assert '"' not in caught.value.message


def test_members_of_a_tar_are_not_searched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of 10,000 members would be compared with all the others. The last one of a name is valid."""
    path = tmp_path / "pictures.tar"
    with tarfile.open(path, "w") as archive:
        for data in (b"old", b"newer"):
            member = tarfile.TarInfo("a/picture")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    monkeypatch.delattr(tarfile.TarFile, "_getmember")
    assert read("a/picture", path) == b"newer"
    with pytest.raises(SourceUnreachable):
        read("a/other", path)
