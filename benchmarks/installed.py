"""Programs to compare with, installed once from their registries into a cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path

_HERE = Path(__file__).parent
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "imgsvc-benchmarks"
_THUMBOR = "thumbor==7.8.0"
_PILLOW_SIMD = "pillow-simd==12.1.1.post0"


def node_packages() -> Path:
    """The folder of the packages in ``package.json``; needs node and npm."""
    wanted = (_HERE / "package.json").read_text()

    def install(folder: Path) -> None:
        (folder / "package.json").write_text(wanted)
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(command, cwd=folder, check=True)

    return _installed("node", wanted, install) / "node_modules"


def thumbor() -> Path:
    """The ``thumbor`` command, in an environment of its own with the Pillow that pip finds for it."""

    def install(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", _THUMBOR], check=True)

    return _installed("thumbor", _THUMBOR, install) / "bin/thumbor"


def pillow_simd() -> Path | None:
    """A Python that has Pillow-SIMD for AVX2, or None if there is no compiler with the headers of libjpeg."""

    def install(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        command = [folder / "bin/pip", "install", "--quiet", "--no-binary", ":all:", _PILLOW_SIMD]
        subprocess.run(command, check=True, env=os.environ | {"CC": "cc -mavx2"})

    try:
        return _installed("pillow-simd", _PILLOW_SIMD, install) / "bin/python"
    except subprocess.CalledProcessError:
        return None


def _installed(name: str, wanted: str, install: Callable[[Path], None]) -> Path:
    """A folder where something was installed to the end, anew where something else is wanted."""
    folder = _CACHE / name
    mark = folder / ".installed"
    if not mark.exists() or mark.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install(folder)
        mark.write_text(wanted)
    return folder
