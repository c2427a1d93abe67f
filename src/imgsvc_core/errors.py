"""Every error that the library raises on purpose, in one tree.

::

    ImgsvcError                  error
    ├── SpecError                invalid_parameter
    ├── SourceError              source_error
    │   ├── SourceUnreachable    source_unreachable
    │   ├── EmptySource          empty_source
    │   ├── InvalidPixels        invalid_pixels
    │   ├── UnsupportedFormat    unsupported_format
    │   └── CorruptImage         corrupt_image
    ├── LimitExceeded            limit_exceeded
    │   ├── SourceTooLarge       source_too_large
    │   ├── ImageTooLarge        image_too_large
    │   ├── OutputTooLarge       output_too_large
    │   ├── TimeLimitExceeded    time_limit_exceeded
    │   ├── MemoryLimitExceeded  memory_limit_exceeded
    │   ├── BudgetUnreachable    max_bytes_unreachable
    │   └── LookUnreachable      look_unreachable
    ├── UnsupportedOperation     unsupported_operation
    ├── MissingDependency        missing_dependency
    ├── EncodingFailed           encoding_failed
    ├── MachineFailed            machine_failed
    │   └── ScratchUnwritable    scratch_unwritable
    ├── WorkerDied               worker_died
    ├── ForkedProcess            forked_process
    └── TargetError              target_unwritable
        └── NameCollision        name_collision

Slugs are stable: programs branch on them, people read the message. The docstring of each class says what it
means, also in the documentation. Errors of pyvips, Pillow and other libraries are translated where they are
called, and stay reachable as ``__cause__``.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable
from typing import ClassVar, Literal, TypeAlias

import attrs

from imgsvc_core._runtime.records import frozen

__all__ = [
    "BudgetUnreachable",
    "CorruptImage",
    "EmptySource",
    "EncodingFailed",
    "ForkedProcess",
    "ImageTooLarge",
    "ImgsvcError",
    "InvalidPixels",
    "LimitExceeded",
    "LookUnreachable",
    "MachineFailed",
    "MemoryLimitExceeded",
    "MissingDependency",
    "NameCollision",
    "OutputTooLarge",
    "Problem",
    "ScratchUnwritable",
    "SourceError",
    "SourceTooLarge",
    "SourceUnreachable",
    "SpecError",
    "TargetError",
    "TimeLimitExceeded",
    "UnsupportedFormat",
    "UnsupportedOperation",
    "WorkerDied",
]

SourceFailure: TypeAlias = Literal["unreachable", "timed_out", "incomplete", "unknown_host"]


def _encodable(text: str) -> str:
    r"""Return a text with lone surrogates, which JSON may hold and UTF-8 may not, as escapes: \ud800."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class ImgsvcError(Exception):
    """Base of all errors of the library.

    ``slug`` names the kind for programs; ``message`` is one sentence for people. ``path`` is where the
    request names what is to blame, such as the picture of a layer, or empty.
    """

    slug: ClassVar[str] = "error"
    path: str = ""

    def __init__(self, message: str) -> None:
        self.message = _encodable(message)
        super().__init__(self.message)

    def begin_with(self, subject: str) -> None:
        """Put the subject of the error before its message."""
        self.message = _encodable(f"{subject}: {self.message}")
        self.args = (self.message,)


@frozen
class Problem:
    """A mistake in a request: its path, the expectation, and the detail of what came."""

    path: str = attrs.field(converter=_encodable)
    expected: str = attrs.field(converter=_encodable)
    detail: str = attrs.field(default="", converter=_encodable)

    @property
    def message(self) -> str:
        """Return the mistake as one sentence."""
        return f"{self.expected}, {self.detail}" if self.detail else self.expected

    def and_then(self, detail: str) -> Problem:
        """Return the problem with more detail."""
        return attrs.evolve(self, detail=f"{self.detail}, {detail}" if self.detail else detail)


class SpecError(ImgsvcError):
    """The request is wrong. ``problems`` lists everything, in the order of the declarations."""

    slug = "invalid_parameter"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def invalid(path: str, expected: str, detail: str = "") -> SpecError:
    """Return the error of one wrong parameter."""
    return SpecError([Problem(path, expected, detail)])


def invalid_id(path: str, expected: str, detail: str = "") -> SpecError:
    """Return the error of the id, at ``path``, of a watermark or of the picture of a layer."""
    title = "Watermark" if path.startswith("watermark") else "Picture"
    return invalid(path, f"{title} 'id' parameter {expected}", detail)


class SourceError(ImgsvcError):
    """The source image cannot be used."""

    slug = "source_error"


class SourceUnreachable(SourceError):
    """The source cannot be opened or read. ``failure`` is how it failed."""

    slug = "source_unreachable"

    def __init__(self, message: str, *, failure: SourceFailure = "unreachable") -> None:
        super().__init__(message)
        self.failure = failure


class EmptySource(SourceError):
    """The source has no bytes."""

    slug = "empty_source"


class InvalidPixels(SourceError):
    """The array or image in memory has a shape, a type or values that no picture has."""

    slug = "invalid_pixels"


class UnsupportedFormat(SourceError):
    """The bytes are not an image in a format, or of a kind, that can be read."""

    slug = "unsupported_format"


class CorruptImage(SourceError):
    """The image has a known format, but is truncated or damaged."""

    slug = "corrupt_image"


class LimitExceeded(ImgsvcError):
    """The work would go beyond one of the limits."""

    slug = "limit_exceeded"


class SourceTooLarge(LimitExceeded):
    """The source has more bytes than allowed."""

    slug = "source_too_large"


class ImageTooLarge(LimitExceeded):
    """The source image has more pixels or frames than allowed."""

    slug = "image_too_large"


class OutputTooLarge(LimitExceeded):
    """The result would have more pixels than allowed."""

    slug = "output_too_large"


class TimeLimitExceeded(LimitExceeded):
    """The work took longer than allowed."""

    slug = "time_limit_exceeded"


class MemoryLimitExceeded(LimitExceeded):
    """The work would need more memory than allowed, or more than the machine has."""

    slug = "memory_limit_exceeded"


class BudgetUnreachable(LimitExceeded):
    """Even the lowest quality exceeds ``output.max_bytes``; ``smallest`` is the number of bytes it needs."""

    slug = "max_bytes_unreachable"

    def __init__(self, message: str, *, smallest: int = 0) -> None:
        super().__init__(message)
        self.smallest = smallest


class LookUnreachable(LimitExceeded):
    """No quality keeps ``output.look``; ``best`` is the SSIMULACRA2 of the best one."""

    slug = "look_unreachable"

    def __init__(self, message: str, *, best: float = 0.0) -> None:
        super().__init__(message)
        self.best = best


class UnsupportedOperation(ImgsvcError):
    """The operation cannot work on this picture."""

    slug = "unsupported_operation"


class MissingDependency(ImgsvcError):
    """An optional package is needed; the message names the extra to install."""

    slug = "missing_dependency"


class EncodingFailed(ImgsvcError):
    """The picture could not be written in the output format."""

    slug = "encoding_failed"


class MachineFailed(ImgsvcError):
    """The machine lacks what the work needs, such as open files or processes. The image is not at fault."""

    slug = "machine_failed"


class ScratchUnwritable(MachineFailed):
    """Temporary files cannot be written: their folder is missing, full or read-only."""

    slug = "scratch_unwritable"


class WorkerDied(ImgsvcError):
    """The process that worked on the picture ended before the result was ready."""

    slug = "worker_died"


class ForkedProcess(ImgsvcError):
    """The process was forked after its parent had used libvips, so libvips does not work in it."""

    slug = "forked_process"


class TargetError(ImgsvcError):
    """The result could not be written to its target."""

    slug = "target_unwritable"


class NameCollision(TargetError):
    """The target exists already and does not belong to this input."""

    slug = "name_collision"


_HANDLES = (errno.EMFILE, errno.ENFILE)
_OF_MACHINE = (*_HANDLES, errno.EAGAIN, errno.EBADF, errno.EIO)
_OF_SCRATCH = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EACCES,
    errno.EPERM,
)  # fmt: skip


def lacks_handles(error: BaseException) -> bool:
    """Return True if the process or the machine may open no more files."""
    return isinstance(error, OSError) and error.errno in _HANDLES


def lacks_threads(error: BaseException) -> bool:
    """Return True if Python could not start a thread."""
    return isinstance(error, RuntimeError) and "start new thread" in str(error)


def machine_failure(number: int | None) -> MachineFailed | None:
    """Return the error for a resource that the system refused, by the number of the system's error.

    Return None for numbers that may have other reasons.
    """
    reason = os.strerror(number) if number else ""
    if number in _OF_SCRATCH:
        return ScratchUnwritable(
            f"Temporary files cannot be written ({reason}): the image is not at fault. Make room "
            "in their folder, or name another one as TMPDIR."
        )
    if number in _OF_MACHINE:
        return MachineFailed(
            f"The machine refuses to go on ({reason}): the image is not at fault. Try again later."
        )
    return None


def os_reason(error: BaseException) -> str:
    """Return the system's words for a failure, such as "No space left on device", without path and number."""
    number = getattr(error, "errno", None)
    if isinstance(error, io.UnsupportedOperation):
        return "it was not opened for that"
    return getattr(error, "strerror", None) or (os.strerror(number) if number else str(error).rstrip("."))
