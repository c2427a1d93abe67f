"""What a worker process does."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Protocol

import attrs

from imgsvc_core._runtime.records import frozen


@frozen
class TaskResult:
    """What a task gives back: JSON values, and data such as a picture."""

    facts: dict[str, Any]
    data: bytes = attrs.field(default=b"", repr=False)


class Task(Protocol):
    """Work on one source. It travels by pickle, so that its class is one of a module."""

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Do the work in a worker process.

        Args:
            source: the encoded source, or nothing.
            threads: how many threads libvips may use.
        """


@frozen
class Call:
    """Call a function of a module. The data is its pickled result, or its pickled error."""

    function: Callable[..., Any]
    args: tuple[object, ...]

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return True as ``returned`` if the function returned, and the result or the error."""
        try:
            result = self.function(*self.args)
        except MemoryError:
            raise
        except Exception as error:
            return TaskResult({"returned": False}, pickle.dumps(error))
        return TaskResult({"returned": True}, pickle.dumps(result))
