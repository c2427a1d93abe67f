"""The ``imgsvc`` command."""

INTERRUPTED = 130
"""The exit code after an interrupt: 128 and the number of its signal."""
