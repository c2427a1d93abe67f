"""``imgsvc`` and ``python -m imgsvc_cli``."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Run the command and exit with its code."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text
    try:
        from imgsvc_cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are loaded
        print("imgsvc: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
