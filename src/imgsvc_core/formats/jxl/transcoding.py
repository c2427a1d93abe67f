"""JPEG files rewrapped as JPEG XL, from which the very same files come back, by imagecodecs."""

from __future__ import annotations

from imgsvc_core.errors import (
    CorruptImage,
    EncodingFailed,
    ImageTooLarge,
    UnsupportedFormat,
    UnsupportedOperation,
)
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import decoder, encoder
from imgsvc_core.formats.boxes import read_boxes
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.jxl import Jxl
from imgsvc_core.formats.jxl.reconstruction import check
from imgsvc_core.formats.reader import HeaderReader

_ARITHMETIC = frozenset({0xC9, 0xCA, 0xCB})  # starts of frames


def wrap(picture: Jpeg) -> bytes:
    """Return a JPEG XL from which the JPEG comes back, which is verified.

    Raises:
        UnsupportedOperation: the JPEG is of a kind that JPEG XL does not hold, or damaged.
        MissingDependency: imagecodecs is not installed.
    """
    availability.writer_backend("jxl")
    import imagecodecs

    if kind := _unknown_kind(picture):
        raise _refused(f"JPEG XL holds no JPEG that {kind}")
    data = bytes(picture.source.buffer())
    try:
        with encoder("jxl"):
            wrapped = bytes(imagecodecs.jpegxl_encode_jpeg(data, numthreads=1))
            same = imagecodecs.jpegxl_decode_jpeg(wrapped, numthreads=1) == data
    except EncodingFailed as error:
        raise _refused(
            "this JPEG is damaged, cut off, followed by more than 4 MB, "
            "or coded in a way that libjxl cannot repeat"
        ) from error
    if not same:
        raise _refused("another file than this JPEG would come back")
    reader = HeaderReader(ByteSource(wrapped), "JPEG XL")
    try:
        check(reader, read_boxes(reader, 0, reader.size))
    except (CorruptImage, ImageTooLarge, UnsupportedFormat) as error:  # as which `unwrap` would refuse it
        raise _refused("this JPEG has too many scans or segments") from error
    return wrapped


def unwrap(picture: Jxl) -> bytes:
    """Return the JPEG that the file was made of.

    Raises:
        UnsupportedOperation: it was not made of a JPEG.
        CorruptImage: it is damaged, or the JPEG has too many scans.
        ImageTooLarge: the JPEG has too many bytes beside its pixels.
        MissingDependency: imagecodecs is not installed.
    """
    availability.reader_backend("jxl")
    import imagecodecs

    if not check(picture.header_reader, picture.header.boxes):
        raise _refused("this JPEG XL was not made of a JPEG, or no longer holds how that was coded")
    with decoder("jxl"):
        return bytes(imagecodecs.jpegxl_decode_jpeg(picture.source.read(), numthreads=1))


def _unknown_kind(picture: Jpeg) -> str | None:
    frame = picture.header.frame
    if frame.marker in _ARITHMETIC:
        return "is coded arithmetically"
    if picture.info.lossless:
        return "is lossless"
    if frame.depth != 8:
        return f"has {frame.depth} bits per channel"
    return "holds inks (CMYK)" if picture.info.colorspace == "cmyk" else None


def _refused(reason: str) -> UnsupportedOperation:
    error = UnsupportedOperation(
        f"Output 'transcode' parameter cannot be used: {reason}. Leave it out to encode the picture again."
    )
    error.path = "output.transcode"
    return error
