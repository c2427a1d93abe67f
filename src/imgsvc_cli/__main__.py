"""``imgsvc`` and ``python -m imgsvc_cli``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command and exit with its code."""
    from imgsvc_cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
