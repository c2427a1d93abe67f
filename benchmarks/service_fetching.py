"""The service against ipx and thumbor where all three fetch the picture, and nobody has it on its own disk.

The same work as in ``service_others``, with the photograph at an origin of its own: nginx (from Debian) on
the same cores, over plain HTTP. The service still answers over TLS, keeps results in temporary storage and
counts them. Needs node and npm.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Bound, options_of, verdict
from benchmarks.pictures import picture
from benchmarks.service import Running, client, form, service, wrk
from benchmarks.service_others import (
    ANEW,
    CORES,
    PHOTO,
    WANTED,
    check_alike,
    ended,
    free_port,
    get,
    serving_ipx,
    serving_thumbor,
    wait_for,
)

_NGINX = """
daemon off;
worker_processes 1;
pid {working}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  sendfile on;
  server {{ listen 127.0.0.1:{port}; root {folder}; }}
}}
"""
_FETCH = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
wrk.body = [==[{body}]==]
"""


def main() -> int:
    options = options_of(__doc__, seconds=10, rounds=5)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        origin = stack.enter_context(serving_files(picture(PHOTO).parent, folder))
        running = stack.enter_context(service(folder, fetch__private_allowed="127.0.0.1"))
        ipx = stack.enter_context(serving_ipx(origin))
        thumbor = stack.enter_context(serving_thumbor(origin, folder))
        uploaded = client(running, form(picture(PHOTO).read_bytes(), WANTED))()
        check_alike({"service": uploaded, "ipx": get(ipx), "thumbor": get(thumbor)})
        over_ipx, over_thumbor = [], []
        for _ in range(options.rounds):
            ours = fetches(running, f"{origin}/{PHOTO}", options.seconds)
            theirs = wrk(ipx, options.seconds, folder)
            thumbors = wrk(thumbor, options.seconds, folder, ANEW)
            over_ipx.append(ours / theirs)
            over_thumbor.append(ours / thumbors)
            print(f"per second: service {ours:5.1f}, ipx {theirs:5.1f}, thumbor {thumbors:5.1f}")
    return verdict(
        [
            Bound("service over ipx, all fetching", statistics.median(over_ipx), 1, at_least=True),
            Bound("service over thumbor, all fetching", statistics.median(over_thumbor), 1.3, at_least=True),
        ]
    )


def fetches(running: Running, url: str, seconds: int) -> float:
    """Pictures per second that the service fetches from a URL."""
    script = _FETCH.format(key=running.key, body=json.dumps({"url": url, **WANTED}))
    return wrk(running.url + "/1.0/fetch", seconds, running.folder, script)


@contextlib.contextmanager
def serving_files(folder: Path, working: Path) -> Iterator[str]:
    """URL of a folder at an nginx of its own."""
    port = free_port()
    configuration = working / "nginx.conf"
    configuration.write_text(_NGINX.format(folder=folder, working=working, port=port))
    with ended(["nginx", "-p", working, "-c", configuration]):
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/{PHOTO}")
        yield url


if __name__ == "__main__":
    sys.exit(main())
