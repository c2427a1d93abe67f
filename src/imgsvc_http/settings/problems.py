"""Problems of settings."""

from __future__ import annotations

from imgsvc_core.errors import Problem, SpecError


def setting_problem(path: str, how: str) -> Problem:
    """Return the problem of a setting, as what it must be or is."""
    return Problem(path, f"Setting '{path}' {how}")


def wrong_setting(path: str, how: str) -> SpecError:
    """Return the error of one wrong setting."""
    return SpecError([setting_problem(path, how)])
