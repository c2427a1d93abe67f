"""Sources in archives, which stay open."""

from __future__ import annotations

import io
import os
import tarfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from imgsvc_core import Limits
from imgsvc_core.errors import SourceUnreachable
from imgsvc_core.sources import list_archive, open_bytes, open_filesystem
from imgsvc_core.sources.filesystems import reading

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


def test_a_tar_is_not_listed_while_another_thread_reads(tmp_path: Path) -> None:
    """Both move its place in the file: listings would end early, and members be missing."""
    archive = tmp_path / "pictures.tar"
    pack(archive, MEMBERS)
    fs, root = open_filesystem(f"tar://::{archive}")
    with ThreadPoolExecutor(1) as threads:
        with reading(fs):
            listing = threads.submit(lambda: len(list(list_archive(fs, root) or ())))
            with pytest.raises(TimeoutError):
                listing.result(0.2)
        assert listing.result() == len(MEMBERS)


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


LINKS = {
    "link": (tarfile.SYMTYPE, "a/picture"),
    "a/beside": (tarfile.SYMTYPE, "picture"),
    "b/above": (tarfile.SYMTYPE, "../a/./picture"),
    "twice": (tarfile.SYMTYPE, "b/above"),
    "hard": (tarfile.LNKTYPE, "./a/picture"),
}
NO_FILES = {
    "circle": (tarfile.SYMTYPE, "circle"),
    "here": (tarfile.SYMTYPE, "there"),
    "there": (tarfile.SYMTYPE, "here"),
    "gone": (tarfile.SYMTYPE, "nowhere"),
    "out": (tarfile.SYMTYPE, "../../etc/passwd"),
    "hard-gone": (tarfile.LNKTYPE, "nowhere"),
    "device": (tarfile.CHRTYPE, ""),
    "pipe": (tarfile.FIFOTYPE, ""),
}


def with_links(path: Path, links: dict[str, tuple[bytes, str]]) -> Path:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("./a/picture")
        member.size = 7
        archive.addfile(member, io.BytesIO(b"picture"))
        for name, (kind, target) in links.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            archive.addfile(link)
    return path


def test_links_in_a_tar_are_followed(tmp_path: Path) -> None:
    archive = with_links(tmp_path / "pictures.tar", LINKS)
    assert [read(name, archive) for name in LINKS] == [b"picture"] * len(LINKS)
    assert open_filesystem(f"tar://::{archive}")[0].info("twice")["size"] == 7


@pytest.mark.parametrize("name", NO_FILES)
def test_what_is_no_file_in_a_tar_is_told_in_a_sentence(name: str, tmp_path: Path) -> None:
    archive = with_links(tmp_path / "pictures.tar", NO_FILES)
    with pytest.raises(SourceUnreachable, match="cannot be read: it is neither a file nor a link to one"):
        read(name, archive)


def test_a_chain_of_links_in_a_tar_takes_no_time(tmp_path: Path) -> None:
    """It took minutes: the target of each link was looked for in all members."""
    chain = {f"l{number}": (tarfile.SYMTYPE, f"l{number + 1}") for number in range(2000)}
    archive = with_links(tmp_path / "pictures.tar", chain)
    start = time.process_time()
    assert read("a/picture", archive) == b"picture"
    assert time.process_time() - start < 3


def test_a_hard_link_is_to_what_came_before_it(tmp_path: Path) -> None:
    path = tmp_path / "pictures.tar"
    with tarfile.open(path, "w") as archive:
        for name, data in (("a", b"old"), ("b", None), ("a", b"newer")):
            member = tarfile.TarInfo(name)
            if data is None:
                member.type, member.linkname = tarfile.LNKTYPE, "a"
            member.size = len(data or b"")
            archive.addfile(member, io.BytesIO(data or b""))
    assert [read(name, path) for name in "ab"] == [b"newer", b"old"]


@pytest.mark.parametrize("name", ["pictures.zip", "pictures.tar"])
def test_many_folders_are_listed_soon(name: str, tmp_path: Path) -> None:
    members = {f"{number % 600}/{number}.jpg": b"x" for number in range(6000)}
    pack(tmp_path / name, members)
    fs, root = open_filesystem(f"{name[-3:]}://::{tmp_path / name}")
    began = time.process_time()
    listed = list_archive(fs, root)
    assert listed is not None
    assert {facts["name"] for facts in listed} == set(members)
    below = list_archive(fs, "7")
    assert below is not None
    assert all(facts["name"].startswith("7/") for facts in below)
    assert time.process_time() - began < 2  # comparing each folder with all members took 8 s


def test_a_listed_member_of_a_tar_is_read_without_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "pictures.tar"
    pack(archive, MEMBERS)
    fs, _ = open_filesystem(f"tar://::{archive}")
    listed = list_archive(fs, "")
    assert listed is not None
    facts = {each["name"]: each for each in listed}
    headers = []
    following = tarfile.TarFile.next

    def count(self: tarfile.TarFile) -> tarfile.TarInfo | None:
        headers.append(self)
        return following(self)

    monkeypatch.setattr(tarfile.TarFile, "next", count)
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as in a worker, which opens the archive again
    name = "folder/39.jpg"
    url = f"tar://{name}::{archive}"
    assert open_bytes(url, Limits(), member=facts[name]["member"]).read() == MEMBERS[name]
    assert len(headers) == 1
    pack(archive, {name: b"other"})
    assert open_bytes(url, Limits(), member=facts[name]["member"]).read() == b"other"
