"""Everything that a picture can come from."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import Buffer

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.errors import ImgsvcError, SourceUnreachable
from imgsvc_core.info import ImageInfo
from imgsvc_core.limits import Limits, check_bytes
from imgsvc_core.urls import reason_of, shown_url

if TYPE_CHECKING:
    import pyvips

Source = Any
"""A path, encoded bytes, a binary file object, an fsspec URL, a numpy array or a pyvips image."""

_CHUNK = 1 << 20
_COLORSPACES = {"b-w": "gray", "grey16": "gray", "cmyk": "cmyk", "lab": "lab", "labs": "lab"}


def is_url(location: object) -> bool:
    """Whether a location is an fsspec URL rather than a path."""
    return isinstance(location, str) and ("://" in location or location.startswith("memory:"))


def open_bytes(source: Source, limits: Limits, *, name: str | None = None) -> ByteSource:
    """The encoded bytes of a path, bytes, a file object or a URL; never more of them than the limits allow.

    Raises:
        SourceUnreachable: the source cannot be read, or is nothing that could be.
        EmptySource: there are no bytes.
        SourceTooLarge: there are too many.
    """
    if isinstance(source, ByteSource):
        opened = source
    elif isinstance(source, Buffer):
        opened = ByteSource(_in_order(source), name=name or "")
    elif is_url(source):
        usual = shown_url(source).rstrip("/").rpartition("/")[2]
        opened = ByteSource(_fetch(source, limits), name=name or usual)
    elif isinstance(source, str | os.PathLike):
        opened = ByteSource(_at(source, limits), name=name or Path(source).name)
    elif hasattr(source, "read"):
        opened = ByteSource(_read(source, limits), name=name or _name_of(source))
    else:
        raise SourceUnreachable(
            "Source must be a path, bytes, a binary file object, a URL, a numpy array or a pyvips image, "
            f"got {type(source).__name__}."
        )
    check_bytes(opened.size, limits)
    return opened


def received(source: Source, limits: Limits, *, name: str | None = None) -> Source:
    """Return the source, with the bytes of a file object in its place.

    An open file may work only in the thread of the caller, whose it is.
    """
    return open_bytes(source, limits, name=name) if hasattr(source, "read") else source


def _in_order(source: Buffer) -> Buffer:
    """The bytes of a buffer, copied only where they do not lie one after the other."""
    view = memoryview(source)
    return view if view.c_contiguous and view.format == "B" else view.tobytes()


def _at(source: str | os.PathLike[str], limits: Limits) -> Path | bytes:
    """A file by its path, or what comes from a device or a pipe."""
    path = Path(source)
    if str(source) == "":
        raise SourceUnreachable("Source path must not be empty.")
    try:
        passing = not (path.is_file() or path.is_dir()) and path.exists()
        if passing:
            with path.open("rb") as file:
                return _read(file, limits)
    except (OSError, ValueError) as error:
        raise SourceUnreachable(f"Source '{path}' cannot be read: {error}.") from error
    return path


def as_image(source: Source) -> pyvips.Image | None:
    """Return the image of a pyvips image or a numpy array, and None for anything else.

    Arrays are height x width or height x width x channels (1 gray, 2 gray and alpha, 3 RGB, 4 RGBA), of
    ``uint8`` or ``uint16``.
    """
    module = type(source).__module__.partition(".")[0]
    if module not in ("pyvips", "numpy"):
        return None
    import pyvips

    if isinstance(source, pyvips.Image):
        from imgsvc_core.pixels.colorspace import from_memory

        return from_memory(_with_meaning(source))
    if module == "numpy" and hasattr(source, "dtype") and hasattr(source, "ndim"):
        channels = source.shape[2] if source.ndim == 3 else 1
        if (
            source.ndim not in (2, 3)
            or channels > 4
            or source.dtype.name not in ("uint8", "uint16")
            or not source.size
        ):
            raise SourceUnreachable(
                "Source array must be height x width with 1 to 4 channels of uint8 or uint16, "
                f"got shape {source.shape} of {source.dtype}."
            )
        source = source.astype(source.dtype.newbyteorder("="), copy=False)
        return _with_meaning(pyvips.Image.new_from_array(source).copy(interpretation="multiband"))
    return None


def describe(image: pyvips.Image, *, name: str | None = None) -> ImageInfo:
    """The facts of a picture that is in memory already; its format is ``raw``."""
    frames = image.height // image.get_page_height()
    delays = tuple(image.get("delay")) if frames > 1 and image.get_typeof("delay") else ()
    return ImageInfo(
        name=name or "",
        format="raw",
        width=image.width,
        height=image.get_page_height(),
        colorspace=_COLORSPACES.get(image.interpretation, "srgb"),
        depth=16 if image.format == "ushort" else 8,
        bytes=image.width * image.height * image.bands * (2 if image.format == "ushort" else 1),
        frames=frames,
        delays=delays,
        plays=image.get("loop") if frames > 1 and image.get_typeof("loop") else None,
        alpha=bool(image.hasalpha()),
        orientation=image.get("orientation") if image.get_typeof("orientation") else 1,
        profile=bool(image.get_typeof("icc-profile-data")),
    )


def _with_meaning(image: pyvips.Image) -> pyvips.Image:
    """Channels that nobody named are grey or RGB, with or without alpha."""
    if image.interpretation != "multiband":
        return image
    if image.bands > 4:
        raise SourceUnreachable(f"Source image must have 1 to 4 channels, got {image.bands} without a name.")
    deep = image.format == "ushort"
    space = ("grey16" if deep else "b-w") if image.bands < 3 else ("rgb16" if deep else "srgb")
    return image.copy(interpretation=space)


def _fetch(url: str, limits: Limits) -> bytes:
    import fsspec

    with _translated(url), fsspec.open(url, "rb") as file:
        return _read(file, limits)


@contextlib.contextmanager
def _translated(url: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise SourceUnreachable(
            f"Source '{shown_url(url)}' needs a package that is not installed: {error}."
        ) from error
    except ImgsvcError:
        raise
    except Exception as error:  # whatever the store's own package makes of a failure
        raise SourceUnreachable(
            f"Source '{shown_url(url)}' cannot be read: {reason_of(error, url)}."
        ) from error


def _read(file: Any, limits: Limits) -> bytes:
    """All bytes of a file object, as long as there are not too many."""
    chunks: list[bytes] = []
    size = 0
    while chunk := _chunk(file):
        if not isinstance(chunk, Buffer):
            kind = "text" if isinstance(chunk, str) else type(chunk).__name__
            raise SourceUnreachable(f"Source file must be opened in binary mode, got {kind}.")
        chunk = bytes(chunk)  # the file may fill the same buffer again
        chunks.append(chunk)
        size += len(chunk)
        check_bytes(size, limits)
    return b"".join(chunks)


def _chunk(file: Any) -> Any:
    try:
        chunk = file.read(_CHUNK)
    except (OSError, ValueError) as error:
        raise SourceUnreachable(f"Source file cannot be read: {error}.") from error
    if chunk is None:  # what raw files say that do not block, when there may be more later
        raise SourceUnreachable("Source file must wait for its bytes, got a non-blocking one.")
    return chunk


def _name_of(file: object) -> str:
    name = getattr(file, "name", "")
    return Path(name).name if isinstance(name, str) else ""
