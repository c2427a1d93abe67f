"""The reports of a batch, while it runs and when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from imgsvc_core.errors import ImgsvcError, MemoryLimitExceeded

Status = Literal["done", "failed", "unchanged"]
DONE: Final = "done"
FAILED: Final = "failed"
UNCHANGED: Final = "unchanged"


@attrs.frozen(kw_only=True)
class Output:
    """A result that was written. In place, ``path`` is the path or URL of the input.

    ``facts`` are the facts of pixels that the request asked for, and the ``look``, if it promises one.
    """

    variant: str
    path: str
    format: str
    width: int
    height: int
    bytes: int
    facts: Mapping[str, Any] = attrs.field(factory=dict, hash=False)


@attrs.frozen(kw_only=True)
class Event:
    """The outcome of one input: ``done`` with its outputs, ``failed`` with an error, or ``unchanged``.

    ``digest`` is the SHA-256 of the input, empty if the input could not be read. ``notes`` are sentences
    about what the results could not keep. In place, ``kept`` is True if the file is left alone.
    """

    key: str
    outcome: Status
    bytes: int
    digest: str = ""
    outputs: tuple[Output, ...] = ()
    error: str = ""
    message: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    kept: bool = False

    def failed(self, error: Exception) -> Event:
        """Return this event as a failure. A batch continues after any exception of a codec or store."""
        if isinstance(error, ImgsvcError):
            slug, message = error.slug, error.message
        elif isinstance(error, MemoryError):
            slug = MemoryLimitExceeded.slug
            message = "The memory is not enough for this picture: ask for a smaller size."
        else:
            slug, message = "internal_error", f"An unexpected error occurred: {error!r}."
        return attrs.evolve(self, outcome=FAILED, outputs=(), notes=(), error=slug, message=message)


@attrs.frozen(kw_only=True)
class Progress:
    """The state of a running batch. ``total`` is final once the source is ``listed``.

    ``skipped`` inputs are not processed: they are unchanged, or not to be tried again. ``failed_before`` is
    the number of skipped inputs that failed in an earlier run. ``passed_over`` counts files that are no
    inputs, by kind: their suffix, ``hidden``, ``no suffix``, ``link``, or ``not matched`` by a pattern.
    ``kept`` of the inputs that are done in place were left alone, to the byte. ``notes`` counts the sentences
    about what results could not keep.
    """

    total: int
    listed: bool
    done: int
    failed: int
    skipped: int
    failed_before: int
    bytes_in: int
    bytes_out: int
    seconds: float
    passed_over: Mapping[str, int] = attrs.field(factory=dict)
    kept: int = 0
    notes: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def rate(self) -> float:
        """Return the inputs per second."""
        return (self.done + self.failed) / self.seconds if self.seconds else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """Return the estimated time to the end, or None until the source is listed."""
        left = self.total - self.done - self.failed - self.skipped
        return left / self.rate if self.listed and self.rate else None


@attrs.frozen(kw_only=True)
class Summary(Progress):
    """The outcome of a batch. ``interrupted`` is True if it stopped before its end."""

    interrupted: bool = False

    @property
    def has_failures(self) -> bool:
        """Return True if inputs failed in this run, or in the run that it resumed."""
        return self.failed + self.failed_before > 0
