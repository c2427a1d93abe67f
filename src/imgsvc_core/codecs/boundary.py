"""The one place where errors of codecs become errors of the library."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator

import pyvips

from imgsvc_core.codecs.table import by_name
from imgsvc_core.errors import CorruptImage, EncodingFailed, ImageTooLarge, ImgsvcError, OutputTooLarge

_CODEC_ERRORS = (
    pyvips.Error, OSError, EOFError, SyntaxError, ValueError, LookupError, ArithmeticError, RuntimeError,
    AssertionError, TypeError, struct.error, zlib.error,
)  # fmt: skip


@contextlib.contextmanager
def translate_errors(format: str) -> Iterator[None]:
    """Around the evaluation of pixels that came from `load`: libvips' complaints become `CorruptImage`.

    libvips decodes while pixels flow, so damage shows only then, far from the reader. Without memory enough
    for the pixels, here or in `decoding`, it is `ImageTooLarge`.
    """
    try:
        yield
    except MemoryError as error:
        raise _too_large(format) from error
    except pyvips.Error as error:
        raise CorruptImage(_damaged(format, error)) from error


@contextlib.contextmanager
def decoding(format: str) -> Iterator[None]:
    """Around a reader: whatever a codec raises on bad data becomes `CorruptImage`.

    Codecs written in Python meet damage as any kind of exception, hence the long list; the library's own
    errors pass. What libvips still holds of other pictures, which were good enough, is forgotten first.
    """
    pyvips.vips_lib.vips_error_clear()
    try:
        yield
    except ImgsvcError:
        raise
    except MemoryError as error:
        raise _too_large(format) from error
    except _CODEC_ERRORS as error:
        raise CorruptImage(_damaged(format, error)) from error


@contextlib.contextmanager
def encoding(format: str, image: pyvips.Image) -> Iterator[None]:
    """Around a writer: `CorruptImage` where the picture cannot be computed, else `EncodingFailed`.

    A picture that is still being decoded while it is written fails inside the writer, so after a failure
    the pixels are asked for on their own. Without memory enough it is `OutputTooLarge`.
    """
    try:
        yield
    except ImgsvcError:
        raise
    except MemoryError as error:
        raise OutputTooLarge(
            f"The memory is not enough to write the picture as {_title(format)}: ask for a smaller size."
        ) from error
    except _CODEC_ERRORS as error:
        if isinstance(error, pyvips.Error) and not _computable(image):
            raise CorruptImage(f"The source image is damaged: {_reason(error)}.") from error
        title = _title(format)
        raise EncodingFailed(f"The picture cannot be written as {title}: {_reason(error)}.") from error


def _computable(image: pyvips.Image) -> bool:
    try:
        image.avg()
    except pyvips.Error:
        return False
    return True


def _too_large(format: str) -> ImageTooLarge:
    return ImageTooLarge(
        f"The memory is not enough for the pixels of the {_title(format)} image: send a smaller image."
    )


def _damaged(format: str, error: BaseException) -> str:
    return f"The {_title(format)} image is damaged or truncated: {_reason(error)}."


def _title(format: str) -> str:
    row = by_name(format)
    return row.title if row else format


def _reason(error: BaseException) -> str:
    """The most telling line of an error, without the name of the failed call and the closing stop."""
    text = str(getattr(error, "detail", "") or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
