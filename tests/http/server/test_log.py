"""What a process that serves writes to its log."""

from __future__ import annotations

import subprocess
import sys

LOGGING = """
import asyncio, logging, warnings
from imgsvc_http.server.log import begin_log

begin_log(verbose=False)
warnings.warn("SECRET")
logging.getLogger("aiohttp.internal").warning("Illegal cookie name %r", "SECRET")
try:
    raise ValueError("SECRET")
except ValueError as error:
    logging.getLogger("aiohttp.server").exception("Error handling request from %s", "SECRET")
    loop = asyncio.new_event_loop()
    loop.call_exception_handler({"message": "Task failed", "exception": error, "future": "SECRET"})
logging.getLogger("imgsvc_http").info("not asked for")
logging.getLogger("imgsvc_http").warning("first\\r\\n2026-11-23 forged\\x1b[2J%s", "\\u2028")
"""


def test_it_holds_nothing_of_clients_and_no_forged_lines() -> None:
    done = subprocess.run([sys.executable, "-c", LOGGING], check=True, capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert "SECRET" not in "".join(line for line in lines if not line.startswith("   "))
    assert [line.partition(": ")[2] for line in lines if not line.startswith(" ")] == [
        "Illegal cookie name %r",
        "Error handling request from %s",
        "Task failed",
        "first\\r",
    ]
    assert sum(line.lstrip().startswith("ValueError") for line in lines) == 2  # not the code that raises it
    assert lines[-1] == "  2026-11-23 forged\\x1b[2J\\u2028"
