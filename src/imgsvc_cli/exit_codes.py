"""Exit codes and their meaning."""

from __future__ import annotations

from imgsvc_cli import INTERRUPTED
from imgsvc_core import errors

_UNSUPPORTED = "the operation cannot work on the picture, or needs a package that is not installed"

EXIT_CODES: tuple[tuple[type[BaseException], int, str], ...] = (
    (errors.SpecError, 2, "wrong usage, or an invalid parameter"),
    (errors.SourceError, 3, "the source cannot be read or is not an image"),
    (errors.LimitExceeded, 4, "a limit would be exceeded"),
    (errors.TargetError, 5, "the result cannot be written"),
    (errors.EncodingFailed, 5, "the result cannot be written"),
    (errors.MachineFailed, 8, "the machine lacks disk space, open files or the like; the picture is fine"),
    (errors.WorkerDied, 4, "a limit would be exceeded"),
    (errors.MissingDependency, 6, _UNSUPPORTED),
    (errors.UnsupportedOperation, 6, _UNSUPPORTED),
    (Exception, 1, "an unexpected failure"),
    (KeyboardInterrupt, INTERRUPTED, "interrupted; after another signal 128 and its number"),
)
"""Error classes, exit codes and their meaning; the first row that fits counts. 0 is success."""

SOME_FAILED = 7
"""The exit code of a batch that came to its end while some inputs failed, also in a run that it resumed."""


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error."""
    return next(code for kind, code, _ in EXIT_CODES if isinstance(error, kind))


def exit_code_help() -> str:
    """Return the table of exit codes for the help."""
    meanings = {0: "success", SOME_FAILED: "some pictures of a batch failed, or of a comparison differ"}
    meanings |= {code: text for _, code, text in EXIT_CODES}
    return "\n".join(f"  {code:>3}  {text}" for code, text in sorted(meanings.items()))
