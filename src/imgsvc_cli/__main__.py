"""``imgsvc`` and ``python -m imgsvc_cli``."""

from __future__ import annotations

import contextlib
import io
import os
import sys

from imgsvc_cli import INTERRUPTED, importing

_ENDED_BY_SIGNAL = 128  # exit codes above are of signals


def main() -> None:
    """Run the command and exit with its code."""
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be text
    try:
        with importing():
            from imgsvc_cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # during imports
        print("imgsvc: interrupted", file=sys.stderr)
        code = INTERRUPTED
    if code > _ENDED_BY_SIGNAL:  # do not wait for threads that still compute
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open /dev/null for closed standard streams; otherwise a picture file would get their descriptor."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    main()
