"""The loop of a worker process."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import ImgsvcError


@frozen
class TaskResult:
    """The result of a task: JSON values, and data such as a picture."""

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

    pickled: bytes = attrs.field(repr=False)

    @classmethod
    def of(cls, function: Callable[..., Any], args: tuple[object, ...]) -> Call:
        """Return the call of a function.

        Raises:
            TypeError: the function or its arguments cannot be sent to another process.
            ImgsvcError: a result among the arguments cannot be encoded.
        """
        named = function.func if isinstance(function, partial) else function
        name = getattr(named, "__qualname__", repr(named))
        if getattr(named, "__module__", None) == "__main__":
            raise TypeError(
                f"Function '{name}' must be one of a module that worker processes can import, got one of the "
                "script itself: move it into a module."
            )
        try:
            return cls(pickle.dumps((function, args), protocol=pickle.HIGHEST_PROTOCOL))
        except ImgsvcError:  # a result is encoded to be sent
            raise
        except Exception as error:  # objects raise anything
            raise TypeError(
                f"Function '{name}' and its arguments must be picklable to be sent to a worker process: "
                f"{str(error).rstrip('.')}."
            ) from error

    def run(self, source: bytes, threads: int) -> TaskResult:
        """Return True as ``returned`` if the function returned, and the result or the error."""
        try:
            function, args = pickle.loads(self.pickled)
        except MemoryError:
            raise
        except Exception as error:  # modules raise anything while they are imported
            return _failed(
                TypeError(
                    f"A worker process cannot read a function or its arguments: {str(error).rstrip('.')}. "
                    "All that they need must be in modules that it can import, and not in the script itself."
                )
            )
        try:
            return TaskResult({"returned": True}, pickle.dumps(function(*args)))
        except MemoryError:
            raise
        except Exception as error:
            return _failed(error)


def _failed(error: Exception) -> TaskResult:
    return TaskResult({"returned": False}, pickle.dumps(error))
