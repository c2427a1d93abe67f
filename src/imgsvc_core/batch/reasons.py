"""Why a store refused, in words."""

from __future__ import annotations

import re

_NOTHING_SAID = re.compile(r"(^|: )(None|Unknown)$")


def reason_of(error: BaseException) -> str:
    """What an error says; where it says nothing, what its cause says, or in the end its kind."""
    found: BaseException | None = error
    while found is not None:
        reason = str(getattr(found, "strerror", None) or " ".join(str(found).split()))
        reason = _NOTHING_SAID.sub("", reason)
        if reason:
            return reason
        found = found.__cause__ or found.__context__
    return type(error).__name__
