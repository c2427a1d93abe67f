"""The service against the library alone: what HTTPS, forms and bookkeeping cost.

A 2725 x 2225 JPEG is uploaded over TLS, and 720 pixels come back as a binary answer. The load comes from
``wrk`` (from Debian) in a process of its own, on the same cores. A bare service takes the same upload and
answers with a picture that it has: no service in Python takes less.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from benchmarks.harness import Bound, options_of, verdict
from benchmarks.peers import cpu_seconds, serving_bare
from benchmarks.pictures import picture

REQUEST = {
    "resize": {"width": 720},
    "output": {"format": "jpg", "quality": 80, "encoding": "baseline"},
    "response": {"mode": "binary"},
}
BOUNDARY = "-" * 24 + "Zq7d3Kf0TtW9xLr2mB5vYc"  # as long as that of curl; browsers have 38 characters
_UPLOAD = """
local file = io.open("{body}", "rb")
wrk.body = file:read("*all")
wrk.method = "POST"
wrk.headers["Content-Type"] = "multipart/form-data; boundary={boundary}"
wrk.headers["Authorization"] = "Bearer {key}"
"""
_COUNT_FAILURES = """
done = function(summary)
  local errors = summary.errors
  print("failed " .. errors.connect + errors.read + errors.write + errors.status + errors.timeout)
end
"""


@attrs.frozen
class Running:
    """A service that runs, its key, and its process."""

    url: str
    key: str
    folder: Path
    pid: int
    environment: Mapping[str, str]

    @property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.folder / "state" / "localhost.pem")

    def command(self, *arguments: str) -> Any:
        """Return what an administrative command prints about this service."""
        called = [sys.executable, "-m", "imgsvc_cli", *arguments, "--json"]
        state = {"IMGSVC_SERVER_STATE_FOLDER": str(self.folder / "state")}
        return json.loads(subprocess.check_output(called, env={**self.environment, **state}))


@attrs.frozen
class Load:
    """Pictures per second, and the CPU milliseconds of each."""

    rate: float
    cpu: float


def main() -> int:
    options = options_of(__doc__, seconds=15, rounds=3)
    photo = picture("6mp.jpg").read_bytes()
    with tempfile.TemporaryDirectory() as name, service(Path(name)) as running:
        body = form(photo)
        answer, state = Path(name) / "answer.jpg", running.folder / "state"
        answer.write_bytes(client(running, body)())
        overheads, shares, costs = [], [], []
        for _ in range(options.rounds):
            alone, served = median_call(library(photo)), median_call(client(running, body))
            overheads.append(served - alone)
            bare = bare_load(photo, options.seconds)
            loaded = upload_load(running, body, options.seconds)
            shares.append(loaded.rate / bare.rate)
            costs.append(loaded.cpu - bare.cpu)
            with serving_bare(state / "localhost.pem", state / "localhost.key", answer) as peer:
                floor = upload_load(attrs.evolve(running, url=peer.url, pid=peer.pid), body, options.seconds)
            print(
                f"library {alone:5.1f} ms, service {served:5.1f} ms; "
                f"library {bare.rate:5.1f} per second, service {loaded.rate:5.1f} per second; "
                f"library {bare.cpu:5.1f} ms of CPU, service {loaded.cpu:5.1f} ms, "
                f"bare service {floor.cpu:4.1f} ms"
            )
    return verdict(
        [
            Bound("service over library at the median", statistics.median(overheads), 5, unit=" ms"),
            Bound("share of the bare library's throughput", statistics.median(shares), 0.75, at_least=True),
            Bound("CPU of the service over the library's", statistics.median(costs), 3, unit=" ms"),
        ]
    )


@contextlib.contextmanager
def service(
    folder: Path,
    program: Sequence[str] = ("-m", "imgsvc_cli"),
    environment: Mapping[str, str] = os.environ,
    **more: object,
) -> Iterator[Running]:
    """The command that serves, with two workers, and ``more`` settings by their names with ``__``.

    Python runs the ``program`` as the command. Its log is ``service.log`` in the folder.
    """
    settings = {
        "server.port": 0, "server.state_folder": folder / "state", "workers.number": 2,
        "rate.requests": 10**9, "rate.pictures": 10**9, "rate.misses": 10**9,
        "accounts.quota": 10**9, "temporary.lifetime_seconds": 60,
        **{name.replace("__", "."): value for name, value in more.items()},
    }  # fmt: skip
    flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *program, "serve", *flags],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        text = ""
        while "curl" not in text:
            line = process.stdout.readline()
            assert line, text
            text += line
        url, key = re.search(r"https?://localhost:\d+", text), re.search(r"isk_[\w-]+", text)
        assert url is not None
        assert key is not None
        yield Running(url[0], key[0], folder, process.pid, environment)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def form(photo: bytes, request: Mapping[str, object] = REQUEST) -> bytes:
    """The body of an upload."""
    parts = (
        b'name="data"\r\nContent-Type: application/json\r\n\r\n' + json.dumps(request).encode(),
        b'name="file"; filename="photo.jpg"\r\nContent-Type: image/jpeg\r\n\r\n' + photo,
    )
    mark = f"--{BOUNDARY}".encode()
    disposed = (mark + b"\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts)
    return b"".join(disposed) + mark + b"--\r\n"


def library(photo: bytes) -> Callable[[], None]:
    """The same work without a service, with the same facts of source and result."""
    from imgsvc_core import process

    spec = {key: REQUEST[key] for key in ("resize", "output")}

    def call() -> None:
        process(photo, spec, threads=1, digest=True).to_dict()

    return call


def client(running: Running, body: bytes) -> Callable[[], bytes]:
    """An upload over a connection that is kept, which gives the picture."""
    address = urlsplit(running.url)
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=running.tls)
    headers = {
        "Authorization": f"Bearer {running.key}",
        "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
    }

    def call() -> bytes:
        connection.request("POST", "/1.0/upload", body=body, headers=headers)
        answer = connection.getresponse()
        data = answer.read()
        assert answer.status == 200, data
        assert answer.headers["Content-Type"] == "image/jpeg"
        return data

    return call


def median_call(call: Callable[[], object], times: int = 60) -> float:
    """Median milliseconds of a call."""
    taken = []
    for _ in range(5):
        call()
    for _ in range(times):
        started = time.perf_counter()
        call()
        taken.append(1000 * (time.perf_counter() - started))
    return statistics.median(taken)


def bare_load(photo: bytes, seconds: float) -> Load:
    """What the library does in two processes."""
    with ProcessPoolExecutor(2, get_context("spawn"), _prepare) as pool:
        list(pool.map(_work, [photo, photo], [1.0, 1.0]))
        done, cpu = zip(*pool.map(_work, [photo, photo], [seconds, seconds]), strict=True)
    return Load(sum(done) / seconds, 1000 * sum(cpu) / sum(done))


def _prepare() -> None:
    import imgsvc_core.processing  # noqa: F401
    from imgsvc_core._runtime.libvips import guard

    guard()


def _work(photo: bytes, seconds: float) -> tuple[int, float]:
    """Return the number of pictures, and the CPU seconds."""
    call, done, end = library(photo), 0, time.perf_counter() + seconds
    begun = time.process_time()
    while time.perf_counter() < end:
        call()
        done += 1
    return done, time.process_time() - begun


def upload_load(running: Running, body: bytes, seconds: int, connections: int = 8) -> Load:
    """What the service does with uploads of a form."""
    return under_load(running.pid, lambda: uploads(running, body, seconds, connections))


def under_load(pid: int, load: Callable[[], float]) -> Load:
    """What a service does under a load, which gives its rate."""
    before, begun = cpu_seconds(pid), time.perf_counter()
    rate = load()
    done = rate * (time.perf_counter() - begun)
    return Load(rate, 1000 * (cpu_seconds(pid) - before) / done)


def uploads(running: Running, body: bytes, seconds: int, connections: int = 8) -> float:
    """Uploads of a form per second."""
    file = running.folder / "body"
    file.write_bytes(body)
    script = _UPLOAD.format(body=file, boundary=BOUNDARY, key=running.key)
    return wrk(running.url + "/1.0/upload", seconds, running.folder, script, connections)


def wrk(url: str, seconds: int, folder: Path, script: str = "", connections: int = 8) -> float:
    """Requests per second over some connections, none of which failed."""
    file = folder / "load.lua"
    file.write_text(script + _COUNT_FAILURES)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s", "-s", str(file), url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    failed = re.search(r"failed (\d+)", done.stdout)
    found = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    assert failed is not None, done.stdout + done.stderr
    assert found is not None, done.stdout
    assert failed[1] == "0", done.stdout
    assert float(found[1]), f"{url} answered nothing in {seconds} seconds: give it more, by --seconds"
    return float(found[1])


if __name__ == "__main__":
    os.environ.setdefault("VIPS_CONCURRENCY", "1")
    sys.exit(main())
