"""The one place where errors of codecs become errors of the library.

Only errors of codecs are translated: those of libvips, and those that Python packages raise inside of
`decoder` and `encoder`. A mistake in our own code keeps its exception, and front ends report an internal
error. A wrong call of libvips, for example with an unknown argument, is such a mistake.
"""

from __future__ import annotations

import errno
import os
import re
import traceback
from collections.abc import Iterator

import pyvips

from imgsvc_core._runtime.failing import handling
from imgsvc_core._runtime.patterns import pattern
from imgsvc_core._runtime.process_memory import bytes_left
from imgsvc_core.errors import (
    CorruptImage,
    EncodingFailed,
    ImgsvcError,
    MachineFailed,
    MemoryLimitExceeded,
    UnsupportedFormat,
    lacks_handles,
    machine_failure,
)
from imgsvc_core.formats.table import by_name

# Messages of codecs that cannot allocate memory. libwebp and OpenJPEG give no reason if encoding fails, but
# everything other than memory is checked before. libheif also complains of its "security limit", which means
# that an image is larger than its header states.
_NO_MEMORY = pattern(
    r"(?:out of|insufficient|not enough) memory|allocat(?!ion error: security limit)|"
    r"webpsave.*: unable to encode|broken data stream when writing",
    re.IGNORECASE,
)

# libvips, libheif and Python
_NO_THREAD = pattern(r"creating thread|thread creation failed|start new thread", re.IGNORECASE)
_NOT_DRAWN = "SVG rendering failed"  # which librsvg says if cairo cannot allocate
_STACK_BYTES = 1 << 24  # that a thread may need, with what else it allocates at once

# Messages of decoders about files that are sound, but that they cannot read. A reserved marker in a JPEG is
# damage, as is a code for uncompressed data in a fax.
_BEYOND_DECODER = pattern(
    # libheif, libjpeg-turbo, libtiff, imagecodecs, tifffile, psd-tools, Pillow
    r"\bunsupported\b(?! marker| or invalid)|\bnot (?:yet )?(?:supported|implemented|configured)\b(?!\))|"
    r"^too many color components|^image too wide for this|^maximum supported image|"  # libjpeg-turbo
    r"can ?not handle (?!zero)|exceeds maximum scans|^no support for |"  # libtiff
    r"exceeded more than \d+ referenced|cannot load more than \d+|nested layers has been exceeded|"  # librsvg
    r"excessive depth in document",  # libxml2
    re.IGNORECASE,
)

_PART_OF_LIBVIPS = pattern(r"^(?:vips\w+|\w+2vips|\w+(?:load|save)(?:_\w+)?|glib|heif): ", re.IGNORECASE)
_NO_REASON = "its codec gives no reason"
_SYSTEM_ERROR = pattern(r"^system error: (.+)$", re.MULTILINE)
_ERROR_NUMBERS = {os.strerror(number): number for number in errno.errorcode}

# pyvips checks names, numbers and types of arguments before libvips runs, and has words of its own for them.
# Failures of libvips itself begin with "unable to". Two of them are wrong calls as well: a required argument
# out of its range is "not set", and a missing field is "unable to get".
_WRONG_CALL = pattern(r"(?!unable to )|unable to get |unable to call \w+\s+\w+: parameter \S+ not set")


@handling
def translate_errors(format: str) -> Iterator[None]:
    """Translate the errors of libvips while pixels of an image of this format are opened or evaluated.

    libvips decodes while pixels flow, so damage may show only then, far from the reader.

    Raises:
        CorruptImage: libvips complains.
        UnsupportedFormat: the image is sound, but beyond what the decoder supports.
        MemoryLimitExceeded: the memory is not enough.
        MachineFailed: the machine lacks something else, such as room for temporary files, or open files for
            those of a reader and of packages that it imports.
    """
    try:
        with readable_messages():
            yield
    except (MemoryError, pyvips.Error) as error:
        if _is_wrong_call(error):
            raise
        raise _not_decoded(format, error) from error
    except OSError as error:
        if lacks_handles(error) and (machine := failure_of_machine(error)):
            raise machine from error
        raise


@handling
def readable_messages() -> Iterator[None]:
    """Raise `pyvips.Error` also if the binding cannot read the message of libvips as UTF-8.

    Codecs quote bytes of the file, such as the kind of a box.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        if not _is_raised_by_binding(error):
            raise
        pyvips.vips_lib.vips_error_clear()  # the binding does so after it has read the message
        raise pyvips.Error("unable to call libvips", error.object.decode(errors="replace")) from error


@handling
def decoder(format: str) -> Iterator[None]:
    """Translate the errors of a Python package that decodes; nothing else is to be called inside.

    Raises:
        CorruptImage: the package complains.
        UnsupportedFormat: the image is sound, but beyond what the package supports.
        MemoryLimitExceeded: the memory is not enough.
        MachineFailed: the machine lacks something else, such as room for temporary files.
    """
    try:
        yield
    except ImgsvcError:
        raise
    except Exception as error:  # packages meet damage as any kind of exception
        raise _not_decoded(format, error) from error


@handling
def encoder(format: str) -> Iterator[None]:
    """Translate the errors of a Python package that encodes; nothing else is to be called inside.

    Raises:
        EncodingFailed: the package complains.
        MemoryLimitExceeded: the memory is not enough.
        MachineFailed: the machine lacks something else, such as room for temporary files.
    """
    try:
        yield
    except ImgsvcError:  # such as of the time limit, between frames
        raise
    except Exception as error:  # packages raise anything
        raise _not_encoded(format, error) from error


@handling
def encoding(format: str, image: pyvips.Image | None = None) -> Iterator[None]:
    """Translate the errors of libvips while it encodes.

    An ``image`` that is still being decoded while it is written fails inside of the writer. After a failure
    its pixels are evaluated on their own.

    Raises:
        pyvips.Error: the pixels cannot be computed, which `translate_errors` tells of their source.
        EncodingFailed: libvips complains of something else.
        MemoryLimitExceeded: the memory is not enough.
        MachineFailed: the machine lacks something else, such as room for temporary files.
    """
    try:
        with readable_messages():
            yield
    except (MemoryError, pyvips.Error) as error:
        if _is_wrong_call(error):
            raise
        if machine := failure_of_machine(error):
            raise machine from error
        failure = None if image is None else _failure_of_pixels(image)
        if failure is not None and not lacks_memory(failure) and failure_of_machine(failure) is None:
            if _reason(failure) == _NO_REASON:  # libvips gives its reason only once
                raise
            raise failure from error
        raise _not_encoded(format, error if failure is None else failure) from error


def _not_decoded(format: str, error: BaseException) -> ImgsvcError:
    if lacks_memory(error):
        return MemoryLimitExceeded(
            f"The memory is not enough for the pixels of the {_title(format)} image: send a smaller image."
        )
    return failure_of_machine(error) or unreadable(format, error)


def _not_encoded(format: str, error: BaseException) -> ImgsvcError:
    title = _title(format)
    if lacks_memory(error):
        return MemoryLimitExceeded(
            f"The memory is not enough to write the picture as {title}: ask for a smaller size."
        )
    return failure_of_machine(error) or EncodingFailed(
        f"The picture cannot be written as {title}: {_reason(error)}."
    )


def failure_of_machine(error: BaseException) -> MachineFailed | None:
    """Return the error of a machine that refused something, or None if a codec complains of an image.

    libvips quotes what the system answers, for example to a request for a temporary file. Errors of Python
    packages have an error number only if they come from the system.
    """
    if _NO_THREAD.search(_text(error)):
        return machine_failure(errno.EAGAIN)
    if isinstance(error, pyvips.Error):
        found = _SYSTEM_ERROR.search(error.detail or "")
        return machine_failure(_ERROR_NUMBERS.get(found[1])) if found else None
    return machine_failure(error.errno) if isinstance(error, OSError) else None


def unreadable(format: str, error: BaseException) -> CorruptImage | UnsupportedFormat:
    """Return the error of an image of this format whose decoder raised ``error``."""
    if _BEYOND_DECODER.search(_reason(error)):
        return UnsupportedFormat(
            f"The {_title(format)} image cannot be read: it is beyond what its decoder supports "
            f"({_reason(error)}); save it in a simpler form."
        )
    return CorruptImage(f"The {_title(format)} image is damaged or truncated: {_reason(error)}.")


def lacks_memory(error: BaseException) -> bool:
    """Return True if a codec failed because it could not allocate memory, such as the stack of a thread."""
    text = _text(error)
    if isinstance(error, MemoryError) or _NO_MEMORY.search(text):
        return True
    not_drawn = _NOT_DRAWN in text and not _BEYOND_DECODER.search(_reason(error))
    left = bytes_left() if not_drawn or _NO_THREAD.search(text) else None
    return left is not None and (left < _STACK_BYTES or not_drawn)


def _text(error: BaseException) -> str:
    """Return the reason in an error. The message of `pyvips.Error` only names the failed call."""
    return (error.detail or "") if isinstance(error, pyvips.Error) else str(error)


def _failure_of_pixels(image: pyvips.Image) -> BaseException | None:
    """Return why the pixels of an image cannot be computed."""
    try:
        with readable_messages():
            image.avg()
    except (MemoryError, pyvips.Error) as error:
        return error
    return None


def _is_raised_by_binding(error: BaseException) -> bool:
    """Return True if an error comes from the code of pyvips, not from ours."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals["__name__"]).startswith("pyvips.")


def _is_wrong_call(error: BaseException) -> bool:
    return isinstance(error, pyvips.Error) and _WRONG_CALL.match(str(error)) is not None


def _title(format: str) -> str:
    """Return the name of a format for people; pictures in memory have none of the table."""
    row = by_name(format)
    return row.title if row else format


def _reason(error: BaseException) -> str:
    """Return the most telling line of an error, without what names a part of libvips and the full stop."""
    lines = [_PART_OF_LIBVIPS.sub("", line).strip() for line in _text(error).splitlines()]
    lines = [line for line in lines if line not in ("", "load error")]  # of a loader that failed before
    # The latter tell only a place in the file.
    lines.sort(key=lambda line: line == _NOT_DRAWN or line.startswith("source: "))
    if lines:
        return lines[0].rstrip(".")
    return _NO_REASON if isinstance(error, pyvips.Error) else type(error).__name__
