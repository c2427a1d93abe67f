"""The log messages of other libraries, in a process of our own."""

from __future__ import annotations

import logging


def silence() -> None:
    """Keep the log messages of libraries off the terminal if the root logger has no handler."""
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
