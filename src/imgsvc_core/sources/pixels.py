"""Sources that are in memory already: pyvips images, Pillow images and numpy arrays."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import InvalidPixels, MemoryLimitExceeded, SourceUnreachable
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.limits import Limits, check_memory, check_source
from imgsvc_core.sources.receiving import Source

if TYPE_CHECKING:
    import numpy.typing as npt
    import PIL.Image
    import pyvips

_USUAL_DELAY = 100  # milliseconds: browsers show frames without a duration for so long
_ANIMATIONS_OF_PILLOW = ("GIF", "PNG", "WEBP")  # formats whose files are animations, too
_COLORSPACES = {"b-w": "gray", "grey16": "gray", "cmyk": "cmyk", "lab": "lab", "labs": "lab"}
_MOST_CHANNELS = 4
_COPIES = 2  # copies of an animation's frames, while the last copy is made


def as_image(source: Source, limits: Limits) -> pyvips.Image | None:
    """Return a pyvips image, a Pillow image or a numpy array as an image, or None for anything else.

    Raises:
        InvalidPixels: they are not those of a picture.
        SourceUnreachable: the pixels cannot be read. ImageTooLarge, MemoryLimitExceeded: it exceeds the
            limits, as far as that is known without decoding.
    """
    if isinstance(source, bytes | str | ByteSource):
        return None
    if _is_a(source, "pyvips", "Image"):
        from imgsvc_core.pixels.colorspace import from_memory

        return from_memory(_with_meaning(source))
    if is_of_pillow(source):
        return of_pillow(source, limits).image()
    if isinstance(source, PillowPixels):
        return source.image()
    if _is_a(source, "numpy", "ndarray"):
        return _of_array(source, limits)
    return None


def is_of_pillow(source: object) -> TypeGuard[PIL.Image.Image]:
    """Return True for an image of Pillow."""
    return _is_a(source, "PIL.Image", "Image")


def _is_a(value: object, module: str, name: str) -> TypeGuard[Any]:
    """Return True if a value is of a class, without importing the module of the class."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name, ()))


def _of_array(array: npt.NDArray[Any], limits: Limits) -> pyvips.Image:
    """Return the image of an array of height x width, or of height x width x channels.

    The channels are gray, gray and alpha, RGB or RGBA.

    ``bool`` is black and white. Floats from 0 to 1 become 16 bits.
    """
    import numpy as np

    if _is_a(array, "numpy.ma", "MaskedArray"):
        raise InvalidPixels("Source array must have all of its pixels, got a masked array; fill it first.")
    kind, channels = array.dtype.kind, array.shape[2] if array.ndim == 3 else 1
    known = kind in "bf" or array.dtype.name in ("uint8", "uint16")
    if array.ndim not in (2, 3) or not 1 <= channels <= _MOST_CHANNELS or not known or not array.size:
        raise InvalidPixels(
            "Source array must be height x width with 1 to 4 channels of uint8, uint16, bool or float, "
            f"got shape {array.shape} of {array.dtype}{_remedy(array.shape)}."
        )
    _check_size(array.shape[1], array.shape[0], 1, limits)
    if kind == "b":
        array = array.astype(np.uint8) * np.uint8(255)
    elif kind == "f":
        # Rounding errors of a computation, such as 1.0000001, vanish when it is rounded to 16 bits.
        levels = np.rint(array.astype(np.float64) * 65_535)
        if not (levels.min() >= 0 and levels.max() <= 65_535):  # true for NaN as well
            told = f"{array.min():g} to {array.max():g}; divide or clip it"
            raise InvalidPixels(
                "Source array of floats must be within 0 to 1 range, "
                f"got {'NaN; replace it first' if np.isnan(array).any() else told}."
            )
        array = levels.astype(np.uint16)
    return _of_samples(array)


def _remedy(shape: tuple[int, ...]) -> str:
    """Return what to do with an array that is laid out as networks take it."""
    if len(shape) == 4:
        return ": pass the pictures one by one"
    if len(shape) == 3 and shape[0] <= _MOST_CHANNELS < shape[2]:
        return ": channels must come last, as after array.transpose(1, 2, 0)"
    return ""


def _of_samples(array: npt.NDArray[Any]) -> pyvips.Image:
    """Return the image of an array of 8 or 16 bits."""
    import pyvips

    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return _with_meaning(pyvips.Image.new_from_array(array).copy(interpretation="multiband"))


@frozen
class PillowPixels:
    """A Pillow image with its color profile and orientation, and all frames of an animation below each other.

    Pickled images of Pillow lose frames, so worker processes get this.
    """

    samples: npt.NDArray[Any]
    height: int
    orientation: int
    profile: bytes | None
    delays: list[int]
    plays: int
    is_cmyk: bool

    def image(self) -> pyvips.Image:
        """Return the image."""
        from pyvips import GValue

        from imgsvc_core._runtime.vipsimage import PROFILE

        image = _of_samples(self.samples).copy()
        facts: list[tuple[str, int, Any]] = [("orientation", GValue.gint_type, self.orientation)]
        if self.profile:
            facts.append((PROFILE, GValue.blob_type, self.profile))
        if self.delays:
            facts += [
                ("page-height", GValue.gint_type, self.height),
                ("n-pages", GValue.gint_type, len(self.delays)),
                ("delay", GValue.array_int_type, self.delays),
                ("loop", GValue.gint_type, self.plays),
            ]
        for name, kind, value in facts:
            image.set_type(kind, name, value)
        return image.copy(interpretation="cmyk") if self.is_cmyk else image


def of_pillow(source: PIL.Image.Image, limits: Limits) -> PillowPixels:
    """Read a Pillow image.

    If the images of a file are no animation, such as pages, the selected one is taken. Floats, of mode
    ``F``, are from 0 to 255, as Pillow converts them.

    Raises:
        InvalidPixels: it has no pixels.
        SourceUnreachable: the pixels cannot be read. ImageTooLarge, MemoryLimitExceeded: it exceeds the
            limits, as far as that is known without decoding.
    """
    from PIL import ExifTags

    if 0 in source.size:
        raise InvalidPixels(f"Source Pillow image must have pixels, got {source.width} x {source.height}.")
    try:
        first, count = _frames(source)
        _check_size(*source.size, count, limits)
        check_memory(_COPIES * count * 4 * source.width * source.height, limits)
        samples, delays = _strip(source, first, count) if count > 1 else (_pixels(source), [])
        orientation = source.getexif().get(ExifTags.Base.Orientation, 1)
    except (OSError, SyntaxError, ValueError) as error:
        raise SourceUnreachable(f"Source Pillow image cannot be read: {error}.") from error
    except MemoryError as error:
        raise MemoryLimitExceeded(
            "The memory is not enough to read the source Pillow image: pass a smaller one."
        ) from error
    return PillowPixels(
        samples=samples,
        height=source.height,
        orientation=orientation,
        profile=source.info.get("icc_profile"),
        delays=delays,
        plays=_plays(source),
        is_cmyk=source.mode == "CMYK",
    )


def _frames(source: PIL.Image.Image) -> tuple[int, int]:
    """Return the number of the first frame, and of all frames. An animated PNG may begin with a still."""
    if source.format not in _ANIMATIONS_OF_PILLOW:
        return 0, 1
    first = int(getattr(source, "default_image", False))
    return first, max(1, getattr(source, "n_frames", 1) - first)


def _strip(source: PIL.Image.Image, first: int, count: int) -> tuple[npt.NDArray[Any], list[int]]:
    """Return the frames of an animation below each other, and their delays."""
    import numpy as np

    selected, strip, delays = source.tell(), np.empty(0), []
    for number in range(count):
        check_time()
        source.seek(first + number)
        pixels = _pixels(source, animated=True)
        if number == 0:
            strip = np.empty((count, *pixels.shape), pixels.dtype)
        strip[number] = pixels
        delays.append(round(source.info.get("duration", _USUAL_DELAY)))
    source.seek(selected)
    return strip.reshape(-1, *strip.shape[2:]), delays


def _plays(animation: PIL.Image.Image) -> int:
    """Return how often an animation of Pillow plays, or 0 for ever. Of GIF, Pillow tells repetitions."""
    loop = animation.info.get("loop")
    if loop is None:
        return 1
    return int(loop) + (animation.format == "GIF" and loop > 0)


def _pixels(frame: PIL.Image.Image, *, animated: bool = False) -> npt.NDArray[Any]:
    """Return the pixels of a frame in gray, RGB or CMYK, with alpha if it has any.

    Frames of an animation get the same channels.
    """
    import numpy as np

    if frame.mode != "I" and not frame.mode.startswith("I;16"):
        return np.asarray(_in_usual_mode(frame, animated))
    gray = np.asarray(frame.convert("I;16") if frame.mode == "I" else frame)
    transparent = frame.info.get("transparency")
    if transparent is None and not animated:
        return gray
    opaque = np.ones_like(gray) if transparent is None else gray != transparent
    return np.dstack([gray, opaque * np.uint16(65_535)])


def _in_usual_mode(frame: PIL.Image.Image, animated: bool) -> PIL.Image.Image:
    if frame.mode == "La":
        frame = frame.convert("LA")  # the only mode that Pillow can convert to
    if animated or "transparency" in frame.info or frame.mode in ("PA", "RGBa"):
        return frame.convert("RGBA")
    if frame.mode in ("L", "LA", "RGB", "RGBA", "CMYK"):
        return frame
    return frame.convert("L" if frame.mode == "1" else "RGB")


def describe(image: pyvips.Image, *, name: str | None) -> ImageInfo:
    """Return the facts of an image in memory. Its format is ``raw``."""
    from imgsvc_core._runtime.vipsimage import PROFILE, frame_count, has

    frames, depth = frame_count(image), 16 if image.format == "ushort" else 8
    delays = tuple(image.get("delay")) if frames > 1 and has(image, "delay") else ()
    return ImageInfo(
        name=name or "",
        format="raw",
        width=image.width,
        height=image.get_page_height(),
        colorspace=_COLORSPACES.get(image.interpretation, "srgb"),
        depth=depth,
        bytes=image.width * image.height * image.bands * depth // 8,
        frames=frames,
        delays=delays,
        plays=image.get("loop") if frames > 1 and has(image, "loop") else None,
        alpha=bool(image.hasalpha()),
        orientation=image.get("orientation") if has(image, "orientation") else 1,
        profile=has(image, PROFILE),
    )


def _with_meaning(image: pyvips.Image) -> pyvips.Image:
    """Return an image whose unnamed channels are gray or RGB, with or without alpha."""
    if image.interpretation != "multiband":
        return image
    if image.bands > 4:
        raise InvalidPixels(f"Source image must have 1 to 4 channels, got {image.bands} without a name.")
    from imgsvc_core.formats.vips import usual_interpretation

    return image.copy(interpretation=usual_interpretation(image.bands, image.format))


def _check_size(width: int, height: int, frames: int, limits: Limits) -> None:
    info = ImageInfo(format="raw", width=width, height=height, colorspace="srgb", bytes=0, frames=frames)
    check_source(info, limits)
