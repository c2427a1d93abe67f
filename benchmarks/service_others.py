"""The service against ipx and thumbor: pictures per second of the same work, side by side on two cores.

A 2725 x 2225 JPEG becomes a baseline JPEG of 720 pixels, by two processes of each. The service receives the
picture by upload over TLS and answers it; ipx and thumbor read it from their disk and answer over plain HTTP.
That the results are alike (size, tables, subsampling, optimized coding) is checked before the load. The load
comes from ``wrk`` (from Debian), on the same cores, over eight connections that are kept; as one process of
thumbor takes all of these, it is measured with a new connection for each request, too. Needs node and npm.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Bound, options_of, verdict
from benchmarks.installed import node_packages, thumbor
from benchmarks.pictures import picture
from benchmarks.service import REQUEST, client, form, service, uploads, wrk

CORES = 2
PHOTO = "6mp.jpg"
_IPX = "f_jpeg,q_80,w_720"
_THUMBOR = "unsafe/720x0/filters:quality(80):format(jpeg)"
WANTED: dict[str, Any] = {
    "resize": REQUEST["resize"],
    "output": {"format": "jpg", "quality": 80, "encoding": "baseline", "effort": 4},
    "response": REQUEST["response"],
}
"""The others optimize the Huffman tables, and thumbor always does: effort 4 does it too."""
_CONFIGURATION = """
SECURITY_KEY = "unused"
LOADER = "thumbor.loaders.{loader}"
FILE_LOADER_ROOT_PATH = {folder!r}
STORAGE = "thumbor.storages.no_storage"
PROGRESSIVE_JPEG = False
"""
ANEW = """
wrk.headers["Connection"] = "close"
"""
"""Connections that are kept all go to one process of thumbor, and leave the other without work."""


def main() -> int:
    options = options_of(__doc__, seconds=10, rounds=5)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    photo = picture(PHOTO)
    body = form(photo.read_bytes(), WANTED)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = stack.enter_context(service(folder))
        ipx = stack.enter_context(serving_ipx(photo.parent))
        other = stack.enter_context(serving_thumbor(photo.parent, folder))
        check_alike({"service": client(running, body)(), "ipx": get(ipx), "thumbor": get(other)})
        over_ipx, over_kept, over_anew = [], [], []
        for _ in range(options.rounds):
            ours = uploads(running, body, options.seconds)
            theirs = wrk(ipx, options.seconds, folder)
            kept = wrk(other, options.seconds, folder)
            anew = wrk(other, options.seconds, folder, ANEW)
            over_ipx.append(ours / theirs)
            over_kept.append(ours / kept)
            over_anew.append(ours / anew)
            print(
                f"per second: service {ours:5.1f}, ipx {theirs:5.1f}, "
                f"thumbor {kept:5.1f} (new connections {anew:5.1f})"
            )
    return verdict(
        [
            Bound("service over ipx", statistics.median(over_ipx), 1.25, at_least=True),
            Bound("service over thumbor", statistics.median(over_kept), 3, at_least=True),
            Bound("service over thumbor, new connections", statistics.median(over_anew), 3, at_least=True),
        ]
    )


@contextlib.contextmanager
def serving_ipx(origin: Path | str) -> Iterator[str]:
    """URL of the resized photograph at an ipx of two processes, whose origin is a folder or a URL."""
    port = free_port()
    program = Path(__file__).with_name("ipx.mjs")
    with ended(["node", program, node_packages(), origin, str(port)]):
        url = f"http://127.0.0.1:{port}/{_IPX}/{_location(origin)}"
        wait_for(url)
        yield url


@contextlib.contextmanager
def serving_thumbor(origin: Path | str, working: Path) -> Iterator[str]:
    """URL of the resized photograph at a thumbor of two processes, whose origin is a folder or a URL."""
    port = free_port()
    configuration = working / "thumbor.conf"
    loader = "http_loader" if isinstance(origin, str) else "file_loader"
    configuration.write_text(_CONFIGURATION.format(folder=str(origin), loader=loader))
    address = ["--ip", "127.0.0.1", "--port", str(port)]
    with ended(
        [thumbor(), "--conf", configuration, *address, "--processes", str(CORES), "--log-level", "error"]
    ):
        url = f"http://127.0.0.1:{port}/{_THUMBOR}/{_location(origin)}"
        wait_for(url)
        yield url


def _location(origin: Path | str) -> str:
    return PHOTO if isinstance(origin, Path) else f"{origin}/{PHOTO}"


@contextlib.contextmanager
def ended(command: Sequence[str | Path]) -> Iterator[None]:
    """A program that is ended together with the processes that it starts."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(url: str, seconds: float = 60) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            get(url)
            return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as answer:
        data: bytes = answer.read()
        return data


def check_alike(results: Mapping[str, bytes]) -> None:
    """See that all did the same work with the same encoder settings, and print how large the results are."""
    from PIL import Image, JpegImagePlugin

    found = {}
    for name, data in results.items():
        with Image.open(io.BytesIO(data)) as image:
            assert isinstance(image, JpegImagePlugin.JpegImageFile), f"{name} answers {image.format}"
            sampling = {2: "4:2:0"}.get(JpegImagePlugin.get_sampling(image))
            found[name] = (image.size, sampling, "progressive" in image.info, image.quantization)
        print(f"{name}: {len(data):,} bytes")
    size, sampling, progressive, _ = found["service"]
    assert (size, sampling, progressive) == ((720, 588), "4:2:0", False), found["service"]
    for name, facts in found.items():
        assert facts == found["service"], f"{name} is set otherwise: {facts}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
