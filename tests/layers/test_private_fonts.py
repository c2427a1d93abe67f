"""The folder in which fontconfig finds its configuration, its cache and the allowed fonts."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("fontpkg_inter")

DRAWN = """
import json, os, sys
import imgsvc_core as imgsvc
layer = {"text": {"text": "Hi", "font": sys.argv[1], "size": 30}}
pixels = imgsvc.process(bytes.fromhex(sys.argv[2]), {"layers": [layer]}).to_numpy()
print(json.dumps({"dark": int((pixels < 128).sum()), "set": [n for n in os.environ if "FONTCONFIG" in n]}))
"""


def drawn(cache: Path, family: str = "Inter", **environment: str) -> dict[str, object]:
    """Draw a text in a fresh process; how many samples are dark, and what its environment names."""
    import numpy as np

    from tests.support.photos import as_vips

    paper = as_vips(np.full((40, 60, 3), 255, np.uint8)).pngsave_buffer()
    command = [sys.executable, "-c", DRAWN, family, paper.hex()]
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)} | environment
    found: dict[str, object] = json.loads(subprocess.check_output(command, env=environment))
    return found


def inter() -> Path:
    spec = importlib.util.find_spec("fontpkg_inter")
    assert spec is not None
    assert spec.submodule_search_locations
    return next(Path(next(iter(spec.submodule_search_locations))).rglob("Inter[[]*.ttf"))


def test_processes_that_begin_together_share_a_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(drawn, [tmp_path] * 4))
    assert {json.dumps(one) for one in found} == {json.dumps({"dark": found[0]["dark"], "set": []})}
    assert found[0]["dark"]
    [root] = (tmp_path / "imgsvc").iterdir()
    assert (root / "fonts.conf").is_file()
    assert list((root / "cache").iterdir())


def test_folders_within_others_and_with_odd_names_are_read(tmp_path: Path) -> None:
    inner = tmp_path / "own <fonts> & more" / "inner"
    inner.mkdir(parents=True)
    shutil.copy(inter(), inner / "a.ttf")
    folders = json.dumps([str(inner), str(inner.parent), str(inner)])
    plain = drawn(tmp_path / "cache")
    assert drawn(tmp_path / "cache", IMGSVC_FONTS_FOLDERS=folders) == plain


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert drawn(tmp_path / "file") == drawn(tmp_path / "cache")


def test_without_a_cache_processes_share_a_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "tmp").mkdir()
    for _ in range(2):
        assert drawn(tmp_path / "file", TMPDIR=str(tmp_path / "tmp"))["dark"]
    [folder] = (tmp_path / "tmp").iterdir()
    assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (os.getuid(), 0o700)
    assert len(list(folder.iterdir())) == 1


def test_without_a_home_folder_nothing_is_made_where_the_process_runs(tmp_path: Path) -> None:
    """The user of a container, whom the system does not know."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "work").mkdir()
    code = """
import os, pwd
def unknown(uid):
    raise KeyError(uid)
pwd.getpwuid = unknown
from imgsvc_core.fonts import name_fonts
assert name_fonts()
print(os.environ["FONTCONFIG_SYSROOT"])
"""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")
    }
    environment["TMPDIR"] = str(tmp_path / "tmp")
    root = subprocess.check_output(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path / "work", text=True
    )
    assert Path(root.strip()).is_relative_to(tmp_path / "tmp")
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize("kind", ["open", "link"])
def test_a_temporary_folder_that_others_may_write_is_not_used(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    place = tmp_path / "tmp" / f"imgsvc-cache-{os.getuid()}"
    place.parent.mkdir()
    if kind == "open":
        place.mkdir()
        place.chmod(0o777)
    else:
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    assert drawn(tmp_path / "file", TMPDIR=str(tmp_path / "tmp"))["dark"]
    assert not list(place.iterdir())


def test_a_configuration_of_the_environment_is_left_as_it_is(tmp_path: Path) -> None:
    folder, own = inter().parent, tmp_path / "own.conf"
    own.write_text(f"<fontconfig><dir>{folder}</dir><cachedir>{tmp_path / 'cache'}</cachedir></fontconfig>")
    found = drawn(tmp_path / "cache", FONTCONFIG_FILE=str(own))
    assert found["dark"]
    assert found["set"] == ["FONTCONFIG_FILE"]
    assert not list((tmp_path / "cache").glob("imgsvc/fonts-*"))


@pytest.mark.parametrize("name", ["FONTCONFIG_FILE", "FONTCONFIG_SYSROOT"])
def test_each_of_the_names_is_a_configuration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from imgsvc_core.fonts import name_fonts

    monkeypatch.setattr(os, "environ", {name: "/own"})
    assert not name_fonts()
    assert os.environ == {name: "/own"}
