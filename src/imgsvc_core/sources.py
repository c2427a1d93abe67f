"""Everything that an image can come from."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

from typing_extensions import Buffer

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.deadline import Deadline
from imgsvc_core.errors import ImgsvcError, SourceUnreachable, os_reason
from imgsvc_core.info import ImageInfo
from imgsvc_core.limits import Limits, check_bytes
from imgsvc_core.url_messages import missing_package, reason_of, shown_url

if TYPE_CHECKING:
    import numpy.typing as npt
    import PIL.Image
    import pyvips


class Readable(Protocol):
    """A binary file object."""

    def read(self, size: int, /) -> Any:
        """Return at most that many bytes, or no bytes at the end."""


if TYPE_CHECKING:
    _Pixels: TypeAlias = npt.NDArray[Any] | PIL.Image.Image  # and pyvips.Image, which has no types
    Source: TypeAlias = str | os.PathLike[str] | Buffer | Readable | _Pixels | ByteSource
else:
    Source = Any
"""A path, an fsspec URL, encoded bytes, a binary file object, or pixels: numpy, Pillow or pyvips."""

_CHUNK = 1 << 20
_USUAL_DELAY = 100  # milliseconds, as browsers show frames without a duration
_ANIMATIONS_OF_PILLOW = ("GIF", "PNG", "WEBP", "AVIF")
_COLORSPACES = {"b-w": "gray", "grey16": "gray", "cmyk": "cmyk", "lab": "lab", "labs": "lab"}


def is_url(location: object) -> TypeGuard[str]:
    """Return True if a location is an fsspec URL rather than a path."""
    return isinstance(location, str) and ("://" in location or location.startswith("memory:"))


def open_bytes(source: Source, limits: Limits, *, name: str | None = None) -> ByteSource:
    """Return the encoded bytes of a path, bytes, a file object or a URL, within the limits.

    Raises:
        TypeError: the source is of a type that cannot be read.
        SourceUnreachable: the source cannot be read.
        EmptySource: there are no bytes.
        SourceTooLarge: there are too many.
    """
    if isinstance(source, ByteSource):
        opened = source
    elif isinstance(source, Buffer):
        opened = ByteSource(_in_order(source), name=name or "")
    elif is_url(source):
        last = shown_url(source).rstrip("/").rpartition("/")[2]
        opened = ByteSource(_fetch(source, limits), name=name or last)
    elif isinstance(source, str | os.PathLike):
        opened = ByteSource(_at(source, limits), name=name or Path(source).name)
    elif hasattr(source, "read"):
        opened = ByteSource(_read(source, limits), name=name or _name_of(source))
    else:
        raise TypeError(
            "Source must be a path, a URL, bytes, a binary file object, a numpy array, a Pillow image "
            f"or a pyvips image, got {type(source).__name__}."
        )
    check_bytes(opened.size, limits)
    return opened


def received(source: Source, limits: Limits, deadline: Deadline, *, name: str | None = None) -> Source:
    """Return the source, with the bytes of a file object in its place.

    An open file may work only in the thread of the caller, whose it is: the deadline ends between two reads.

    Raises:
        TimeLimitExceeded: the time is up.
        SourceUnreachable, EmptySource, SourceTooLarge: the bytes of a file object cannot be used.
    """
    if isinstance(source, ByteSource) or not hasattr(source, "read"):
        return source
    return open_bytes(_read(source, limits, deadline), limits, name=name or _name_of(source))


def _in_order(source: Buffer) -> Buffer:
    """Return the bytes of a buffer. It is copied only if it is not contiguous."""
    view = memoryview(source)
    return view if view.c_contiguous and view.format == "B" else view.tobytes()


def _at(source: str | os.PathLike[str], limits: Limits) -> Path | bytes:
    """Return the path of a file, or the bytes of a device or a pipe."""
    path = Path(source)
    if str(source) == "":
        raise SourceUnreachable("Source path must not be empty.")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            with path.open("rb") as file:
                return _read(file, limits)
    except (OSError, ValueError) as error:
        raise SourceUnreachable(f"Source '{path}' cannot be read: {error}.") from error
    return path


def as_image(source: Source) -> pyvips.Image | None:
    """Return a pyvips image, a Pillow image or a numpy array as an image, or None for anything else."""
    if _is_a(source, "pyvips", "Image"):
        from imgsvc_core.pixels.colorspace import from_memory

        return from_memory(_with_meaning(source))
    if _is_a(source, "PIL.Image", "Image"):
        return _of_pillow(source)
    if _is_a(source, "numpy", "ndarray"):
        return _of_array(source)
    return None


def _is_a(value: object, module: str, name: str) -> TypeGuard[Any]:
    """Return True if a value is of a class whose module need not be imported to find out."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name, ()))


def _of_array(array: npt.NDArray[Any]) -> pyvips.Image:
    """Return the image of an array of height x width, or of height x width x channels.

    The channels are gray, gray and alpha, RGB or RGBA.

    ``bool`` is black and white. Floats from 0 to 1 become 16 bits.
    """
    import numpy as np
    import pyvips

    kind, channels = array.dtype.kind, array.shape[2] if array.ndim == 3 else 1
    known = kind in "bf" or array.dtype.name in ("uint8", "uint16")
    if array.ndim not in (2, 3) or not 1 <= channels <= 4 or not known or not array.size:
        raise SourceUnreachable(
            "Source array must be height x width with 1 to 4 channels of uint8, uint16, bool or float, "
            f"got shape {array.shape} of {array.dtype}."
        )
    if kind == "b":
        array = array.astype(np.uint8) * np.uint8(255)
    elif kind == "f":
        # Rounding errors of a computation, such as 1.0000001, vanish when it is rounded to 16 bits.
        levels = np.rint(array.astype(np.float64) * 65_535)
        if not (levels.min() >= 0 and levels.max() <= 65_535):  # true for NaN as well
            raise SourceUnreachable(
                "Source array of floats must be within 0 to 1 range, "
                f"got {array.min():g} to {array.max():g}; divide or clip it."
            )
        array = levels.astype(np.uint16)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return _with_meaning(pyvips.Image.new_from_array(array).copy(interpretation="multiband"))


def _of_pillow(source: PIL.Image.Image) -> pyvips.Image:
    """Return a Pillow image, with its color profile, its orientation, and all frames of an animation.

    Of other files with several images, such as pages, the one that is selected is taken. Floats, of mode
    ``F``, are from 0 to 255, as Pillow converts them.
    """
    import numpy as np
    import pyvips
    from PIL import ExifTags, ImageSequence

    animated = source.format in _ANIMATIONS_OF_PILLOW and getattr(source, "n_frames", 1) > 1
    try:
        if animated:
            shown = source.tell()
            frames = [_pillow_frame(frame, animated) for frame in ImageSequence.Iterator(source)]
            source.seek(shown)
        else:
            frames = [_pillow_frame(source, animated)]
    except (OSError, SyntaxError, ValueError) as error:
        raise SourceUnreachable(f"Source Pillow image cannot be read: {error}.") from error
    image = _of_array(np.concatenate([np.asarray(frame) for frame in frames])).copy()
    facts: list[tuple[str, int, Any]] = [
        ("orientation", pyvips.GValue.gint_type, source.getexif().get(ExifTags.Base.Orientation, 1))
    ]
    if profile := source.info.get("icc_profile"):
        facts.append(("icc-profile-data", pyvips.GValue.blob_type, profile))
    if animated:
        delays = [round(frame.info.get("duration", _USUAL_DELAY)) for frame in frames]
        facts += [
            ("page-height", pyvips.GValue.gint_type, source.height),
            ("n-pages", pyvips.GValue.gint_type, len(frames)),
            ("delay", pyvips.GValue.array_int_type, delays),
            ("loop", pyvips.GValue.gint_type, _plays(source)),
        ]
    for name, kind, value in facts:
        image.set_type(kind, name, value)
    return image.copy(interpretation="cmyk") if frames[0].mode == "CMYK" else image


def _plays(animation: PIL.Image.Image) -> int:
    """Return how often an animation of Pillow plays, or 0 for ever. Of GIF, Pillow tells the repetitions."""
    loop = animation.info.get("loop")
    if loop is None:
        return 1
    return int(loop) + (animation.format == "GIF" and loop > 0)


def _pillow_frame(frame: PIL.Image.Image, animated: bool) -> PIL.Image.Image:
    """Return a frame in gray, RGB or CMYK, with alpha if it has any.

    Frames of an animation get the same mode.
    """
    if frame.mode == "La":
        frame = frame.convert("LA")  # the only mode that Pillow converts it to
    if animated or "transparency" in frame.info or frame.mode in ("PA", "RGBa"):
        return frame.convert("RGBA")
    if frame.mode in ("L", "LA", "RGB", "RGBA", "CMYK") or frame.mode.startswith("I;16"):
        return frame
    return frame.convert({"1": "L", "I": "I;16"}.get(frame.mode, "RGB"))


def describe(image: pyvips.Image, *, name: str | None = None) -> ImageInfo:
    """Return the facts of an image that is in memory already; its format is ``raw``."""
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
    """Return an image whose unnamed channels are gray or RGB, with or without alpha."""
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
        raise missing_package("Source", url, error) from error
    except ImgsvcError:
        raise
    except Exception as error:  # packages of stores raise anything
        raise SourceUnreachable(
            f"Source '{shown_url(url)}' cannot be read: {reason_of(error, url)}."
        ) from error


def _read(file: Any, limits: Limits, deadline: Deadline | None = None) -> bytes:
    """Return all bytes of a file object, within the limits."""
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
        if deadline is not None:
            deadline.check()
    return b"".join(chunks)


def _chunk(file: Any) -> Any:
    try:
        chunk = file.read(_CHUNK)
    except OSError as error:
        raise SourceUnreachable(f"Source file cannot be read: {os_reason(error)}.") from error
    except ValueError as error:
        raise SourceUnreachable(f"Source file cannot be read: {error}.") from error
    if chunk is None:  # a raw file that does not block may have more later
        raise SourceUnreachable("Source file must wait for its bytes, got a non-blocking one.")
    return chunk


def _name_of(file: object) -> str:
    name = getattr(file, "name", "")
    return Path(name).name if isinstance(name, str) else ""
