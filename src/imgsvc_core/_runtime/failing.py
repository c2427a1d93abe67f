"""Contexts that handle errors, and errors that keep no pictures in memory."""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

_OURS = frozenset({"imgsvc_core", "pyvips"})
_P = ParamSpec("_P")
_T = TypeVar("_T")


def handling(function: Callable[_P, Iterator[None]]) -> Callable[_P, AbstractContextManager[None]]:
    """Make a context of a generator, as `contextlib.contextmanager` does, that only handles errors.

    It has nothing to do before the block, nor after one that succeeds, so it starts only after an error.
    """
    context = contextmanager(function)

    @functools.wraps(function)
    def made(*args: _P.args, **kwargs: _P.kwargs) -> _Handler:
        return _Handler(lambda: context(*args, **kwargs))

    return made


class _Handler:
    """A context that is made when an error leaves its block."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        self._make = make

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if error is None:
            return None
        context = self._make()
        context.__enter__()
        return context.__exit__(kind, error, trace)


def without_pictures(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Clear the library's variables from the tracebacks of a function's errors.

    A kept error keeps the frames of its traceback, and the pictures in them. Python may free these pictures
    anywhere, even in a thread of libvips that is logging. Freeing them logs as well, and GLib then ends the
    process.
    """

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        handled = sys.exception()  # errors of the caller, whose frames are not the library's
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            _forget_variables(error, handled)
            raise

    return called


def _forget_variables(error: BaseException, handled: BaseException | None) -> None:
    known = {id(handled)}
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is not None and id(link) not in known:
            known.add(id(link))
            for frame, _ in traceback.walk_tb(link.__traceback__):
                if _is_ours(frame):
                    with suppress(RuntimeError):  # the frame still runs
                        frame.clear()
            todo += [link.__cause__, link.__context__]


def _is_ours(frame: FrameType) -> bool:
    """Return True if a frame is the library's. Those of coroutines stay, as clearing ends a coroutine."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in _OURS and not frame.f_code.co_flags & (
        inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    )
