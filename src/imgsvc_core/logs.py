"""What libraries log, in a process that is ours."""

from __future__ import annotations

import logging


def silence() -> None:
    """Keep the log messages of libraries off the terminal if the root logger has no handler."""
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
