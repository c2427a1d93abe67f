"""What a batch tells while it runs, and in the end."""

from __future__ import annotations

import attrs

DONE, FAILED, UNCHANGED = "done", "failed", "unchanged"


@attrs.frozen(kw_only=True)
class Output:
    """A result that was written."""

    variant: str
    path: str
    format: str
    width: int
    height: int
    bytes: int


@attrs.frozen(kw_only=True)
class Event:
    """What became of one input: ``done`` with its outputs, ``failed`` with the error, or ``unchanged``.

    ``digest`` is the SHA-256 of the input, as far as it could be read.
    """

    key: str
    outcome: str
    bytes: int
    digest: str = ""
    outputs: tuple[Output, ...] = ()
    error: str = ""
    message: str = ""
    seconds: float = 0.0


def failure(key: str, size: int, error: str, message: str) -> Event:
    """What is told of an input of so many bytes that nothing came of."""
    return Event(key=key, outcome=FAILED, bytes=size, error=error, message=message)


@attrs.frozen(kw_only=True)
class Progress:
    """Where a batch stands. ``total`` is what was found so far, all of it once ``listed``."""

    total: int
    listed: bool
    done: int
    failed: int
    skipped: int
    bytes_in: int
    bytes_out: int
    seconds: float

    @property
    def rate(self) -> float:
        """Inputs per second."""
        return (self.done + self.failed) / self.seconds if self.seconds else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """How long it will take, as far as that is known."""
        left = self.total - self.done - self.failed - self.skipped
        return left / self.rate if self.listed and self.rate else None


@attrs.frozen(kw_only=True)
class Summary(Progress):
    """How a batch ended.

    It was ``interrupted`` where it was told to stop before its end. What became of ``forgotten`` inputs could
    not be written into the manifest: a run with neither ``resume`` nor ``retry`` does them.
    """

    interrupted: bool = False
    forgotten: int = 0
