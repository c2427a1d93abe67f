"""Which formats this machine can read and write, with the codecs that are installed."""

from __future__ import annotations

import functools
import importlib.util

import pyvips

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import MemoryLimitExceeded, MissingDependency
from imgsvc_core.formats.boundary import failure_of_machine, lacks_memory
from imgsvc_core.formats.format import Coder, Format
from imgsvc_core.formats.table import FORMATS


@frozen
class Support:
    """How a format is decoded or encoded here.

    ``backend`` is the package that does it; without one, ``reason`` says in a sentence what is missing and
    ``extra`` is the extra of this package that brings it.
    """

    backend: str | None
    reason: str = ""
    extra: str | None = None

    def __bool__(self) -> bool:
        return self.backend is not None


@functools.cache
def read_support(format: str) -> Support:
    """Return how files of a format are decoded here."""
    return _first_present(FORMATS[format], FORMATS[format].reader, "read")


@functools.cache
def write_support(format: str) -> Support:
    """Return how files of a format are encoded here."""
    row = FORMATS[format]
    if row.writer is None:
        return Support(None, f"{row.title} is an input format only.")
    return _first_present(row, row.writer, "written")


def readable(format: str) -> bool:
    """Return True if files of the format can be decoded here."""
    return bool(read_support(format))


def writable(format: str) -> bool:
    """Return True if requests can name the format as output, and files of it can be encoded here."""
    return FORMATS[format].writable and bool(write_support(format))


def reader_backend(format: str) -> str:
    """Return the package that decodes the format; raise `MissingDependency` if none is installed."""
    return _required(read_support(format))


def writer_backend(format: str) -> str:
    """Return the package that encodes the format; raise `MissingDependency` if none is installed."""
    return _required(write_support(format))


def _required(support: Support) -> str:
    if support.backend is None:
        raise MissingDependency(support.reason)
    return support.backend


def _first_present(row: type[Format], coder: Coder, verb: str) -> Support:
    for requirement in coder.packages:
        package, _, feature = requirement.partition(":")
        if _libvips_has(feature) if feature else importlib.util.find_spec(package) is not None:
            return Support(package)
    if row.extra is None:
        return Support(None, f"{row.title} cannot be {verb}: this build of libvips lacks the codec.")
    return Support(
        None,
        f"{row.title} cannot be {verb} here; install it with: pip install 'imgsvc[{row.extra}]'.",
        row.extra,
    )


def _libvips_has(feature: str) -> bool:
    if feature in ("hevc", "av1"):
        return _heif_compression_works(feature)
    return bool(pyvips.type_find("VipsOperation", feature))


@functools.cache
def _heif_compression_works(compression: str) -> bool:
    """Try to encode and decode pixels: the HEIF operations exist even without their codecs.

    Raises:
        MemoryLimitExceeded, MachineFailed: memory or the machine is not enough to find out.
    """
    try:
        encoded = pyvips.Image.black(64, 64, bands=3).heifsave_buffer(compression=compression)
        pyvips.Image.heifload_buffer(encoded).avg()
    except pyvips.Error as error:
        if lacks_memory(error):
            raise MemoryLimitExceeded(
                "The memory is not enough to try the codecs of HEIC and AVIF: allow this process more memory."
            ) from error
        if machine := failure_of_machine(error):
            raise machine from error
        return False
    return True
