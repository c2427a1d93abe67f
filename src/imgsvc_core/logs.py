"""What libraries log, in a process that is ours."""

from __future__ import annotations

import logging


def silence() -> None:
    """Let libraries that log to nobody in particular not write to the terminal."""
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
