"""Errors that outlive a call, and what they must not keep alive."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from imgsvc_core.errors import ImgsvcError

_P = ParamSpec("_P")
_T = TypeVar("_T")


def without_pictures(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let the errors of a function hold none of its variables.

    Whoever keeps an error keeps the frames of its traceback, with pictures in them. Python may then end these
    pictures anywhere, even in a thread of libvips that logs: they log as well, and GLib ends the process.
    """

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        handled = sys.exception()  # the caller's own, whose frames are none of ours
        try:
            return function(*args, **kwargs)
        except ImgsvcError as error:
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
            traceback.clear_frames(link.__traceback__)
            todo += [link.__cause__, link.__context__]
