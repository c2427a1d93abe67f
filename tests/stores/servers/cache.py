"""Where `.ci/servers` puts the programs of test servers."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support import requires


def folder(name: str) -> Path:
    """The folder of one of the servers; the test is skipped, or fails in CI, where it is not installed."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    found = Path(os.environ.get("IMGSVC_SERVERS") or Path(home) / "imgsvc-servers") / name
    if not (found / "complete").exists():
        requires.missing(f"the server {name} is not installed; .ci/servers does that")
    return found
