"""``imgsvc`` and ``python -m imgsvc_cli``."""

from __future__ import annotations

import contextlib
import io
import os
import sys

from imgsvc_cli import INTERRUPTED


def main() -> None:
    """Run the command and exit with its code."""
    _open_what_is_closed()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text
    try:
        from imgsvc_cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are loaded
        print("imgsvc: interrupted", file=sys.stderr)
        code = INTERRUPTED
    if code == INTERRUPTED:  # no thread that still computes is waited for
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Give away the numbers of closed standard streams, which files would get that words then go into."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number that is free
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    main()
