"""Show fontconfig the allowed fonts and no others, so that texts look the same on every machine."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from imgsvc_core.fonts.catalog import catalog
from imgsvc_core.fonts.markup import escape

_FILE, _ROOT = "FONTCONFIG_FILE", "FONTCONFIG_SYSROOT"
_NAME, _CACHE = "fonts.conf", "cache"


def name_fonts() -> bool:
    """Name the allowed fonts in the environment, where fontconfig finds them at the first text.

    Return False if there are none, or if the environment names a configuration.
    """
    if not os.environ.keys().isdisjoint((_FILE, _ROOT)) or not catalog().families:
        return False
    os.environ |= {_FILE: f"/{_NAME}", _ROOT: str(_root())}
    return True


_shown = False


@contextlib.contextmanager
def allowed_fonts() -> Iterator[None]:
    """Show fontconfig the allowed fonts, and no others, in a block that draws text.

    It reads its configuration at the first text of a process. Pango then has a thread, so a process that is
    forked later cannot draw text.
    """
    global _shown
    named = not _shown and name_fonts()
    try:
        yield
        _shown = True
    finally:
        if named:
            del os.environ[_FILE], os.environ[_ROOT]  # programs that are started have fonts of their own


@functools.cache
def use_fonts() -> None:
    """Show fontconfig the allowed fonts, and no others, by drawing a text."""
    import pyvips

    with allowed_fonts():
        pyvips.Image.text("x", font="9px", dpi=72)


def _root() -> Path:
    """Return the folder that fontconfig takes for the root of the system, which is made unless it is there.

    It has the configuration, a cache, and links to the folders of fonts at their own paths. In the system's
    root, fontconfig would also parse the configurations that packages install, only to list their names.
    """
    folders = _outermost([os.path.abspath(folder) for folder in catalog().folders])
    text = _configuration(folders)
    name = f"fonts-{zlib.crc32(text.encode()):08x}"
    for folder in (_cache_folder, _temporary_folder):
        with contextlib.suppress(OSError, RuntimeError):
            root = folder() / name
            return root if _has(root, text) else _made(root, folders, text)
    return _made(None, folders, text)


def _made(root: Path | None, folders: Sequence[str], text: str) -> Path:
    """Make the folder and return its place, which is another one if something else is there."""
    import shutil  # takes as long as a small picture
    import tempfile

    prefix = "imgsvc-fonts-" if root is None else f"{root.name}-"
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=root and root.parent))
    for folder in folders:
        link = made / folder.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder)
    (made / _NAME).write_text(text, encoding="utf-8")
    if root is None:
        return made
    with contextlib.suppress(OSError):
        return made.rename(root)
    if not _has(root, text):
        return made
    shutil.rmtree(made)  # another process was faster
    return root


def _has(root: Path, configuration: str) -> bool:
    with contextlib.suppress(OSError):
        return (root / _NAME).read_text(encoding="utf-8") == configuration
    return False


def _outermost(folders: Sequence[str]) -> list[str]:
    """Return the folders that lie in none of the others: fontconfig reads all that is in a folder."""
    return [
        folder
        for folder in dict.fromkeys(folders)
        if not any(folder.startswith(f"{other}/") for other in folders)
    ]


def _cache_folder() -> Path:
    """Return a folder of this user for caches.

    Raises:
        RuntimeError: the user has no home folder.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if base.startswith("/") else "~/.cache", "imgsvc").expanduser()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _temporary_folder() -> Path:
    """Return a folder of this user alone that may be gone tomorrow.

    Raises:
        PermissionError: others may write into the folder of that name.
    """
    import tempfile

    folder = Path(tempfile.gettempdir(), f"imgsvc-cache-{os.getuid()}")
    with contextlib.suppress(OSError):
        folder.mkdir(0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{folder} is not of this user alone")
    return folder


def _configuration(folders: Sequence[str]) -> str:
    """Return the configuration. Letters are not fitted to whole pixels, which browsers do not do either."""
    listed = "".join(f"<dir>{escape(folder)}</dir>" for folder in folders)
    return (
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd"><fontconfig>'
        f"{listed}<cachedir>/{_CACHE}</cachedir><config><rescan><int>0</int></rescan></config>"
        '<match target="pattern"><edit name="hinting" mode="assign"><bool>false</bool></edit></match>'
        "</fontconfig>\n"
    )
