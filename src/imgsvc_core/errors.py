"""Every error that the library raises on purpose, in one tree.

::

    ImgsvcError
    ├── SpecError                invalid_parameter       the request is wrong; `problems` lists everything
    ├── SourceError              source_error
    │   ├── SourceUnreachable    source_unreachable      the source cannot be opened or read
    │   ├── EmptySource          empty_source            the source has no bytes
    │   ├── UnsupportedFormat    unsupported_format      the bytes are no image that we read
    │   └── CorruptImage         corrupt_image           an image of a known format, but damaged
    ├── LimitExceeded            limit_exceeded
    │   ├── SourceTooLarge       source_too_large        more bytes than allowed
    │   ├── ImageTooLarge        image_too_large         more pixels or frames than allowed in the source
    │   ├── OutputTooLarge       output_too_large        the result would have too many pixels
    │   ├── TimeLimitExceeded    time_limit_exceeded     the work took too long
    │   ├── MemoryLimitExceeded  memory_limit_exceeded   the work would need, or needed, too much memory
    │   └── BudgetUnreachable    max_bytes_unreachable   no quality fits into `output.max_bytes`
    ├── UnsupportedOperation     unsupported_operation   the operation cannot work on this picture
    ├── MissingDependency        missing_dependency      an optional package is needed; says which extra
    ├── EncodingFailed           encoding_failed         the picture could not be written in the format
    ├── WorkerDied               worker_died             the process that did the work ended before its answer
    ├── ForkedProcess            forked_process          libvips does not work in this forked process
    └── TargetError              target_unwritable       the result could not be put where it was to go
        ├── NameCollision        name_collision          something else is there already
        ├── StoreRefused         store_refused           the store refused the write; `code` is its own
        └── StoreUnavailable     store_unavailable       the store did not answer, or not in time

The slug is stable: programs branch on it, people read the message. Errors of pyvips, Pillow and other
libraries are translated where they are called, and stay reachable as ``__cause__``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, ClassVar

import attrs


class ImgsvcError(Exception):
    """Base of all errors of the library.

    ``slug`` names the kind for programs; ``message`` is one sentence for people.
    """

    slug: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def begin_with(self, subject: str) -> None:
        """Put what it is about before the message."""
        self.message = f"{subject}: {self.message}"
        self.args = (self.message,)


@attrs.frozen
class Problem:
    """One thing that is wrong with a request: where, and what to do about it."""

    path: str
    message: str


class SpecError(ImgsvcError):
    """The request is wrong. ``problems`` holds all that was found, in the order of the declarations."""

    slug = "invalid_parameter"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class SourceError(ImgsvcError):
    """The source image cannot be used."""

    slug = "source_error"


class SourceUnreachable(SourceError):
    """The source cannot be opened or read."""

    slug = "source_unreachable"


class EmptySource(SourceError):
    """The source has no bytes."""

    slug = "empty_source"


class UnsupportedFormat(SourceError):
    """The bytes are not an image of a format that can be read."""

    slug = "unsupported_format"


class CorruptImage(SourceError):
    """The image is of a known format, but truncated or damaged."""

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
    """The work would need more memory than allowed, or there was not enough of it."""

    slug = "memory_limit_exceeded"


class BudgetUnreachable(LimitExceeded):
    """Not even the lowest quality fits into ``output.max_bytes``. ``smallest`` is how many bytes it takes."""

    slug = "max_bytes_unreachable"

    def __init__(self, message: str, *, smallest: int = 0) -> None:
        super().__init__(message)
        self.smallest = smallest

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), smallest=self.smallest), self.args


class UnsupportedOperation(ImgsvcError):
    """The operation cannot work on this picture."""

    slug = "unsupported_operation"


class MissingDependency(ImgsvcError):
    """An optional package is needed; the message names the extra to install."""

    slug = "missing_dependency"


class EncodingFailed(ImgsvcError):
    """The picture could not be written in the output format."""

    slug = "encoding_failed"


class WorkerDied(ImgsvcError):
    """The process that worked on the picture ended before it had an answer."""

    slug = "worker_died"


class ForkedProcess(ImgsvcError):
    """The process was forked after its parent had used libvips, which does not work in it."""

    slug = "forked_process"


class TargetError(ImgsvcError):
    """The result could not be written to its target."""

    slug = "target_unwritable"


class NameCollision(TargetError):
    """The target is there already, and belongs to something else."""

    slug = "name_collision"


class StoreRefused(TargetError):
    """The store refused to take the result. ``code`` is the provider's own code, such as ``NoSuchBucket``."""

    slug = "store_refused"

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), code=self.code), self.args


class StoreUnavailable(TargetError):
    """The store cannot be reached, fails, or did not take the result in time."""

    slug = "store_unavailable"
