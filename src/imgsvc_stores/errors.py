"""Errors of stores."""

from __future__ import annotations

import functools
from typing import Any

from imgsvc_core.errors import TargetError


class StoreRefused(TargetError):
    """The store refused the result. ``code`` is the provider's own code, such as ``NoSuchBucket``."""

    slug = "store_refused"

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), code=self.code), self.args


class StoreUnavailable(TargetError):
    """The store cannot be reached, fails, or did not accept the result in time."""

    slug = "store_unavailable"
